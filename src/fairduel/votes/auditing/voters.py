"""Audit the voters: evidence that votes show patterns unlike honest voting, and flags based on it.

Evidence is an e-value: for an honest voter (see ``null_model``) it is 1 on average, so E ≥ 1000 has a probability of at
most 1 in 1000, no matter how often one checks. Five patterns are tested, and a voter's evidence is their mean:

- **inverts**: votes against the consensus (s < 0), beyond what tastes for items explain;
- **one side**: votes for the item shown first, or second, nine times in ten or more (only if the sides are known);
- **taste**: votes for one item, or against it, nine times in ten or more (averaged over items and directions);
- **campaign**: the same, times the evidence that the voter *sees* the item more often than others do around the same
  time and in the same context, but only if the votes alone suggest pushing (E > 2): choosing one's duels and voting
  like everyone else is no reason for a flag. This assumes that the system, not the voter, chooses duels, to the extent
  that it does in this file: how unevenly voters see items is estimated from all voters (a Pólya urn), so this counts
  little where voters choose or receive batches, and nothing where the winner of a duel stays (see ``collection``);
- **group**: campaign evidence that looks hardest at items pushed by other voters (see ``collusion``).

**Known answers** are evidence of their own (see ``known_answers``). As they are not among the votes, an honest voter's
are independent of them, so E_known · (0.9 + 0.1 E_votes) is an e-value, too; it is the evidence on who gave any.

Voters are flagged by e-BH at a third of the level, so the expected share of false flags is at most that. Another third
is for pairs of voters whose votes are nearly the same, and the last for two crowds of occasional voters. A pair or a
crowd is reported as a group that differs, but its members are not flagged: the pair counts once, and all votes of the
crowd on the item count less, whatever they say. If all voters are honest, the probability of any flag or report is at
most the level. A flag is statistical evidence, not proof; nothing is deleted, and every flag has a reason.

Voters who may choose their own duels (by the exposure evidence alone, E ≥ 1/level) do not contribute to the consensus
and the tastes that others are compared with, so that a campaign cannot become the consensus. This depends on their
duels, not votes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fairduel.checks import fraction
from fairduel.core.blas import one_thread
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.auditing.campaign import Cells, Meetings, find_cells, find_meetings, over_targets, pushing
from fairduel.votes.auditing.collection import WINNER_STAYS, winner_stays
from fairduel.votes.auditing.collusion import (
    OCCASIONAL,
    AlikePairs,
    Crowd,
    alike_pairs,
    e_bh,
    find_crowd,
    shared_evidence,
)
from fairduel.votes.auditing.known_answers import KnownAnswers, evidence_against
from fairduel.votes.auditing.null_model import (
    Decisive,
    best_honest,
    best_honest_slope,
    consensus,
    consensus_variance,
    log_mean,
    taste_size,
)
from fairduel.votes.auditing.voter_columns import LOG_10, VOTERS
from fairduel.votes.columns import frame_columns
from fairduel.votes.given import takes_votes
from fairduel.votes.notebook import Result
from fairduel.votes.timing import seconds_per_vote
from fairduel.votes.votes import Indices, Mask, Votes
from fairduel.words import counted_noun, listed

if TYPE_CHECKING:
    from fairduel.votes.auditing.camps import Camps

LEAST_OF_OTHERS = 3
"""Votes per item that everyone else must have cast before a voter can be compared with them."""
_ENOUGH_VOTES = 5  # to measure how fast a voter is
_HASTY_SHARE = 0.2  # of the usual time per vote
_DOUBTFUL = 20  # evidence of known answers that is reported, but too weak for a flag
_KNOWN_ALONE = 0.9  # weight of known answers without the evidence of votes
INVERTED = (0.5, 1.0, 2.0)
"""−s of a voter who inverts."""


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Result):
    """Evidence on each of ``V`` voters, and who is flagged. Logs are natural.

    Created by :func:`audit_voters`. A flag means that a voter's votes show a pattern that honest voting is unlikely to
    produce; it is evidence, not proof.

    Args:
        items: Names of the items.
        voters: Names of the voters.
        votes: Number of votes, ties included, shape ``(V,)``.
        decisive: Number of votes with a winner, shape ``(V,)``.
        agreement: Share of the voter's decisive votes predicted by everyone else, shape ``(V,)``; NaN without any.
        agreement_interval: Its 95% interval (Wilson), shape ``(V, 2)``.
        log_evidence: Log E of each pattern, each of shape ``(V,)``.
        total: Log of the mean E over the patterns, shape ``(V,)``.
        flagged: Whether the voter is flagged by their own votes, shape ``(V,)``.
        why: The reason for each flag, otherwise empty.
        target: Index of the item that the voter pushes most, shape ``(V,)``; −1 if none.
        known: How the voter answered duels with a known answer: right ones and all, shape ``(V, 2)``.
        seconds: Median seconds per vote within a visit, shape ``(V,)``; NaN if unknown.
        clock_step: Smallest difference between two times per vote; NaN if unknown.
        pairs: Pairs of voters with similar votes.
        crowd: The crowd of occasional voters with the most evidence; None without occasional or other voters.
        settings: The level, the estimated tastes and everything else behind these numbers.
        camps: The camps that voters form, if they were looked for.

    >>> from fairduel.votes.attacking.liars import arena
    >>> evidence = audit_voters(arena(liars={"one-side": 1}, seed=1)[0])
    >>> [why for why in evidence.why if why]
    ['chose the first of the two items in 30 of 30 votes']
    """

    items: tuple[str, ...]
    voters: tuple[str, ...]
    votes: Indices
    decisive: Indices
    agreement: Vector
    agreement_interval: NDArray[np.float64]
    log_evidence: dict[str, Vector]
    total: Vector
    flagged: Mask
    why: tuple[str, ...]
    target: Indices
    known: Indices
    seconds: Vector
    clock_step: float
    pairs: AlikePairs
    crowd: Crowd | None
    settings: dict[str, Any]
    camps: "Camps | None" = None

    @property
    def usual_seconds(self) -> float:
        """Median seconds per vote of voters with at least five votes; NaN if unknown."""
        known = self.seconds[(self.votes >= _ENOUGH_VOTES) & ~np.isnan(self.seconds)]
        return float(np.median(known)) if len(known) else math.nan

    @property
    def hasty(self) -> Mask:
        """Whether a voter takes less than a fifth of the usual time per vote, over at least five votes, shape (V,).

        Very fast voters are reported, never flagged. If times are too coarse to tell, nobody is hasty.
        """
        limit = _HASTY_SHARE * self.usual_seconds
        return (self.votes >= _ENOUGH_VOTES) & (self.seconds < limit) & (self.clock_step <= limit)

    @property
    def crowd_flagged(self) -> bool:
        """Whether occasional voters differ from the others on some item."""
        return self.crowd is not None and bool(self.crowd.differs)

    @property
    def doubtful(self) -> Mask:
        """Who is not flagged, but fails as many known answers as one in 20 honest voters at most, shape (V,)."""
        fails = [of > 0 and evidence_against(right, of) >= _DOUBTFUL for right, of in self.known.tolist()]
        return np.array(fails, dtype=np.bool_) & ~self.flagged

    @property
    def flagged_names(self) -> frozenset[str]:
        """The names of the flagged voters."""
        return frozenset(name for name, flag in zip(self.voters, self.flagged, strict=True) if flag)

    def flagged_votes(self, votes: Votes) -> Mask:
        """Return which votes were cast by flagged voters, shape (n,)."""
        return self.flagged[votes.cast_by]

    @property
    def about_duels(self) -> list[str]:
        """What the way in which duels were chosen means for the evidence, if anything."""
        return [WINNER_STAYS] if self.settings["winner_stays"] else []

    @property
    def someone_differs(self) -> bool:
        """Whether any voter is flagged, any crowd differs, or any two voters are nearly identical."""
        return bool(self.flagged.any()) or self.crowd_flagged or bool(self.pairs.flagged.any())

    @property
    def finds_anyone(self) -> bool:
        """Whether someone differs, or voters form a camp."""
        return self.someone_differs or (self.camps is not None and bool(self.camps.found))

    def vote_weights(self, votes: Votes) -> Vector:
        """Return how much each vote counts after the audit, from 0 to 1, shape (n,).

        - 0 for votes of flagged voters;
        - 0 for votes that repeat those of a near-identical voter on the same duel: the two count once;
        - a common factor for all votes of a differing crowd on its item (see ``Crowd.vote_weights``);
        - otherwise 1.

        >>> from fairduel.votes.attacking.liars import arena
        >>> votes, _ = arena(liars={"one-side": 1}, seed=1)
        >>> evidence = audit_voters(votes)
        >>> bool((evidence.vote_weights(votes) == ~evidence.flagged_votes(votes)).all())
        True
        """
        weights = np.where(self.flagged_votes(votes) | self.pairs.repeated(votes), 0.0, 1.0)
        return weights if self.crowd is None else weights * self.crowd.vote_weights(votes, votes.weight * weights)

    def flagged_rows(self, votes: Votes) -> pl.DataFrame:
        """Return the file row and the voter of each vote cast by a flagged voter."""
        flagged = self.flagged_votes(votes)
        return pl.DataFrame({"row": votes.row[flagged], "voter": np.array(self.voters)[votes.cast_by[flagged]]})

    def to_frame(self) -> pl.DataFrame:
        """Return one row per voter, most evidence first; evidence as log10."""
        order = np.lexsort((-self.votes, -self.total, ~self.flagged))
        return pl.DataFrame(frame_columns(VOTERS, self))[order].with_columns(pl.col(pl.Float64).fill_nan(None))

    def brief(self) -> str:
        """Return how many voters are flagged."""
        return f"{int(self.flagged.sum()):,} of {counted_noun(len(self.voters), 'voter')} flagged"

    def _preview(self) -> pl.DataFrame:
        voters = self.to_frame().select("voter", "flagged", "votes", "agreement", "log10_evidence", "why")
        return voters.filter("flagged") if self.flagged.any() else voters


@takes_votes
def audit_voters(
    votes: Votes, *, level: float = 0.05, duels_assigned: bool = True, known: KnownAnswers | None = None
) -> Evidence:
    """Gather the evidence on every voter, and flag those with enough evidence at ``level``.

    Args:
        votes: The votes, which must name their voters.
        level: Maximum probability of any flag, or report of a group, if all voters are honest.
        duels_assigned: Whether the system chooses who votes on what. Pass False if voters choose: then it does not
            matter how often they see an item. Nor does it in a file where the winner of a duel stays for the next.
        known: How voters answered duels whose better item is known, and which are not among the votes.

    Returns:
        The evidence on each voter.

    Raises:
        BadInputError: The votes do not say who voted, none of them has a winner, or their weights stand for more than
            20 million votes.

    >>> from fairduel.votes.attacking.liars import arena
    >>> votes, liars = arena(liars={"promote": 3, "one-side": 1}, seed=2)
    >>> evidence = audit_voters(votes)
    >>> sorted(np.array(evidence.voters)[evidence.flagged]) == sorted(liars)
    True
    """
    fraction("level", level)
    stays = winner_stays(votes)
    votes, duels_assigned = votes.written_out(), duels_assigned and not stays
    with one_thread():
        base = _baseline(votes, level=level, duels_assigned=duels_assigned)
    cells = find_cells(base.decisive, base.z, base.variance, base.meetings)
    ups, downs = cells.pushes(duels_assigned=duels_assigned)
    log_evidence = _by_kind(base, cells, ups, downs)
    answered = np.array([(known or {}).get(voter, (0, 0)) for voter in votes.voters], dtype=np.int64).reshape(-1, 2)
    total = with_known(log_mean(np.stack(list(log_evidence.values()))), answered, _comparable(base))
    flags = _flags(base, total, answered, level)
    with np.errstate(invalid="ignore"):
        agreement = base.agreed / base.cast
    seconds, clock_step = seconds_per_vote(votes)
    strongest = _strongest(cells, np.maximum(ups, downs), base.decisive.voters)
    return Evidence(
        items=votes.items,
        voters=votes.voters,
        votes=np.bincount(votes.cast_by, minlength=base.decisive.voters),
        decisive=base.cast,
        agreement=agreement,
        agreement_interval=wilson(base.agreed, base.cast),
        log_evidence=log_evidence,
        total=total,
        flagged=flags.alone,
        why=_sentences(base, cells, strongest, log_evidence, answered, flags),
        target=np.append(cells.item, -1)[strongest],
        known=answered,
        seconds=seconds,
        clock_step=clock_step,
        pairs=flags.pairs,
        crowd=flags.crowd,
        settings=_settings(base, flags, level) | {"winner_stays": stays},
    )


class _Baseline(NamedTuple):
    """What every kind of evidence is measured against."""

    votes: Votes
    decisive: Decisive
    cast: Indices
    """Number of decisive votes of each voter, shape (V,)."""
    duels_assigned: bool
    meetings: Meetings
    choosers: Mask
    """Who seems to choose their duels, shape (V,)."""
    z: Vector
    """Consensus of all other voters on each decisive vote, shape (n,)."""
    agreed: Vector
    """Number of each voter's decisive votes that agree with it, shape (V,); where it is 0, half a vote."""
    chose_first: Vector
    """Number of each voter's decisive votes for the item shown first, shape (V,)."""
    taste_for_items: float
    taste_for_a_side: float
    variance: Vector
    """τ² of each cell of ``decisive.cells``, shape (c,)."""


def _baseline(votes: Votes, *, level: float, duels_assigned: bool) -> _Baseline:
    decisive = Decisive.of(votes)
    if len(decisive.sign) == 0:
        raise BadInputError("there is nothing to audit: no vote has a winner and a weight above 0.")
    meetings = find_meetings(votes)
    choosers = np.zeros(decisive.voters, dtype=np.bool_)
    if duels_assigned:
        chosen = over_targets(meetings.voter, meetings.log_evidence, voters=decisive.voters, targets=decisive.items)
        choosers = chosen >= -np.log(level)
    z = consensus(decisive, choosers)
    typical = ~choosers[decisive.voter]
    sides = np.tile(typical, 2)
    for_items = taste_size(decisive.cells[1][sides], decisive.sides(z)[sides], decisive.sides(decisive.sign)[sides])
    return _Baseline(
        votes=votes,
        decisive=decisive,
        cast=np.bincount(decisive.voter, minlength=decisive.voters),
        duels_assigned=duels_assigned,
        meetings=meetings,
        choosers=choosers,
        z=z,
        agreed=decisive.per_voter((z * decisive.sign > 0) + 0.5 * (z == 0)),
        chose_first=decisive.per_voter(decisive.sign > 0),
        taste_for_items=for_items,
        taste_for_a_side=(
            taste_size(decisive.voter[typical], z[typical], decisive.sign[typical]) if votes.sides_known else math.nan
        ),
        variance=for_items**2 + consensus_variance(decisive, typical, for_items),
    )


def _by_kind(base: _Baseline, cells: Cells, ups: Vector, downs: Vector) -> dict[str, Vector]:
    """Return log E of each kind, each (V,)."""
    items = base.decisive.items
    voter, target = np.tile(cells.voter, 2), np.concatenate([cells.item, cells.item + items])
    pushes, sizes = np.concatenate([ups, downs]), {"voters": base.decisive.voters, "targets": 2 * items}
    own = {kind: pattern.evidence(base) for kind, pattern in PATTERNS.items()}
    return {kind: found for kind, found in own.items() if found is not None} | {
        "taste": over_targets(cells.voter, np.logaddexp(cells.up, cells.down), **sizes),
        "campaign": over_targets(cells.voter, np.logaddexp(ups, downs), **sizes),
        "group": shared_evidence(voter, target, pushes, **sizes),
    }


class _Flags(NamedTuple):
    """Who is flagged, and by what."""

    judged: Mask
    """Who could be tested by their own votes, shape (V,)."""
    alone: Mask
    """Who is flagged by their own votes, shape (V,)."""
    needed: float
    """Log-evidence needed for that."""
    pairs: AlikePairs
    crowd: Crowd | None


def _comparable(base: _Baseline) -> Mask:
    """Return which voters (V,) can be compared with the others."""
    others = len(base.decisive.sign) - base.cast
    return (base.cast > 0) & (others >= LEAST_OF_OTHERS * base.decisive.items)


def with_known(total: Vector, answered: Indices, comparable: Mask) -> Vector:
    """Return the log-evidence (V,) given that of the votes, and the known answers (V, 2): see this file's docstring.

    The votes of voters who are not ``comparable`` (V,) say nothing.
    """
    result = total.copy()
    for voter in np.flatnonzero(answered[:, 1]):
        alone = math.log(_KNOWN_ALONE)
        of_votes = np.logaddexp(alone, math.log1p(-_KNOWN_ALONE) + total[voter]) if comparable[voter] else 0.0
        result[voter] = of_votes + math.log(evidence_against(*answered[voter].tolist()))
    return result


def _flags(base: _Baseline, total: Vector, answered: Indices, level: float) -> _Flags:
    """Flag voters by their ``total`` evidence (V,), and find pairs and crowds, each at a third of the level."""
    decisive, share = base.decisive, level / 3.0
    judged = _comparable(base) | (answered[:, 1] > 0)
    alone = np.zeros(decisive.voters, dtype=np.bool_)
    alone[judged], needed = e_bh(total[judged], share)
    crowds = [
        find_crowd(
            base.votes,
            decisive,
            base.choosers,
            most=most,
            taste=base.taste_for_items,
            level=share / len(OCCASIONAL),
        )
        for most in OCCASIONAL
    ]
    crowd = max((each for each in crowds if each), key=lambda each: each.log_evidence, default=None)
    return _Flags(judged, alone, needed, alike_pairs(decisive, base.z, level=share), crowd)


def _settings(base: _Baseline, flags: _Flags, level: float) -> dict[str, Any]:
    return {
        "level": level,
        "flags": "a third of the level each: voters (e-BH), pairs (e-BH), crowds of occasional voters",
        "needed_log10_evidence": (flags.needed if flags.judged.any() else np.log(3.0 / level)) / LOG_10,
        "voters_tested": int(flags.judged.sum()),
        "voters_not_tested": int(((base.cast > 0) & ~flags.judged).sum()),
        "needed_votes_of_others": f"{LEAST_OF_OTHERS} per item",
        "duels_assigned": base.duels_assigned,
        "taste_for_items": base.taste_for_items,
        "sides_known": base.votes.sides_known,
        "taste_for_a_side": base.taste_for_a_side if base.votes.sides_known else None,
        "unevenness_of_exposure": base.meetings.unevenness,
        "voters_who_choose_their_duels": int(base.choosers.sum()),
    }


def crowd_sentence(crowd: Crowd, items: tuple[str, ...]) -> str:
    """Describe how a crowd differs."""
    ways = listed([push.sentence(items) for push in crowd.differs])
    return f"the {crowd.voters.sum():,} occasional voters (at most {crowd.most} votes each) {ways}"


def _inverts(base: _Baseline) -> Vector:
    """Return the log-evidence for s < 0, shape (V,)."""
    right = base.decisive.sign * base.z
    lying = np.stack([base.decisive.per_voter(-np.logaddexp(0.0, slope * right)) for slope in INVERTED])
    return np.asarray(log_mean(lying) - best_honest_slope(base.decisive, base.z, base.variance))


def _why_inverts(base: _Baseline, voter: int) -> str:
    share = base.agreed[voter] / base.cast[voter]
    return f"agrees with everyone else in only {share:.0%} of {base.cast[voter]:,} votes"


def _one_side(base: _Baseline) -> Vector | None:
    """Return the log-evidence that a voter goes by the side alone, shape (V,): the mean over first and second."""
    if not base.votes.sides_known:
        return None
    first, cast = base.chose_first, base.cast.astype(np.float64)
    honest = best_honest(base.decisive.voter, base.decisive.voters, base.z, base.decisive.sign, base.taste_for_a_side)
    one_way = np.logaddexp(pushing(first, cast), pushing(cast - first, cast))
    return np.asarray(one_way - np.log(2.0) - honest)


def _why_one_side(base: _Baseline, voter: int) -> str:
    first, cast = base.chose_first[voter], base.cast[voter]
    side, chosen = max(("first", first), ("second", cast - first), key=itemgetter(1))
    return f"chose the {side} of the two items in {chosen:,.0f} of {cast:,} votes"


class Pattern(NamedTuple):
    """What the votes of a liar, but seldom those of an honest voter, show, whatever the items are."""

    evidence: Callable[[_Baseline], Vector | None]
    """Log E of each voter, shape (V,); None if these votes cannot show it."""
    why: Callable[[_Baseline, int], str]
    """Why a voter is flagged."""


PATTERNS = {
    "inverts": Pattern(_inverts, _why_inverts),
    "one side": Pattern(_one_side, _why_one_side),
}


def _strongest(cells: Cells, log_evidence: Vector, voters: int) -> Indices:
    """Return the cell of each voter with the most evidence, shape (V,); −1 without any."""
    order, result = np.argsort(log_evidence, kind="stable"), np.full(voters, -1)
    result[cells.voter[order]] = order  # the last assignment to a voter remains
    return result


def wilson(agreed: Vector, cast: Indices) -> NDArray[np.float64]:
    """Return the 95% interval of a share, shape (V, 2)."""
    z2 = special.ndtri(0.975) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = agreed / cast
        half = np.sqrt(z2 * (share * (1.0 - share) / cast + z2 / (4.0 * cast**2)))
        bounds = np.stack([share + z2 / (2.0 * cast) - half, share + z2 / (2.0 * cast) + half], axis=1)
        return np.asarray(bounds / (1.0 + z2 / cast)[:, None])


def _sentences(
    base: _Baseline,
    cells: Cells,
    strongest: Indices,
    log_evidence: dict[str, Vector],
    answered: Indices,
    flags: _Flags,
) -> tuple[str, ...]:
    """Return why each flagged voter is flagged, shape (V,); empty for the others."""
    votes, sentences = base.votes, [""] * len(base.cast)
    by_votes = _strongest(cells, np.maximum(cells.up, cells.down), len(sentences))
    for voter in np.flatnonzero(flags.alone).tolist():
        kind = max(log_evidence, key=lambda name: float(log_evidence[name][voter]))
        right, of = answered[voter].tolist()
        if of and math.log(evidence_against(right, of)) > log_evidence[kind][voter]:
            sentences[voter] = f"answered {right:,} of {of:,} duels with a known answer right"
        elif kind in PATTERNS:
            sentences[voter] = PATTERNS[kind].why(base, voter)
        else:
            cell = (by_votes if kind == "taste" else strongest)[voter]
            push = cells.push(cell, up=bool(cells.up[cell] > cells.down[cell]))
            saw = (
                f"saw {votes.items[push.item]} in {cells.met[cell]:,.0f} of {np.sum(votes.cast_by == voter):,} duels "
                f"(comparable duels of others: {cells.rate[cell]:.1%}) and "
            )
            sentences[voter] = ("" if kind == "taste" else saw) + push.sentence(votes.items)
    return tuple(sentences)
