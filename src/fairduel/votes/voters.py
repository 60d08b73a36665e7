"""Whom to trust: evidence against each voter, valid however often one looks, and the flags that follow from it.

Evidence is an e-value: under honesty (see ``null_model``) it is 1 on average, so that E ≥ 1000 has a chance of at most
1 in 1000. Five kinds of liar are looked for, and a voter's evidence is the mean of the five:

- **inverts**: votes against the consensus (s < 0), beyond what tastes for items explain;
- **one side**: votes for what is shown first, or second, nine times in ten or more;
- **taste**: votes for one item, or against it, nine times in ten or more (averaged over items and directions);
- **campaign**: the same, times the evidence that he *meets* the item more often than others do, where the votes alone
  speak for pushing at all (E > 1): who chooses his duels and votes like everybody is no liar. This assumes that the
  system, not the voter, chooses duels, as far as it does so in this file: how unevenly voters meet an item is
  estimated from everybody (a Pólya urn), so where voters choose or get batches it weighs little;
- **group**: campaign evidence that looks hardest at the items that other voters push (see ``collusion``).

Flags are set by e-BH over the voters, at a third of the level: the expected share of false flags among the flags is at
most that. Another third is for pairs of voters whose votes are too alike, and one for two crowds of occasional voters,
where who did little else than push the item is flagged as one of the crowd. With honest voters only, the chance of any
flag is at most the level. Nothing is deleted; a flag carries its evidence and a sentence.

Voters who choose their duels (by the exposure evidence alone, e-BH) are no part of the consensus and of the tastes that
others are measured by: a campaign must not become the consensus. That choice looks at duels, never at votes.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fairduel.checks import positive
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.campaign import Cells, find_cells, find_meetings, over_targets, pushing
from fairduel.votes.collusion import (
    OCCASIONAL,
    AlikePairs,
    Crowd,
    alike_pairs,
    e_bh,
    find_crowd,
    group_evidence,
    shared_evidence,
)
from fairduel.votes.null_model import (
    Decisive,
    best_honest,
    best_honest_slope,
    consensus,
    consensus_variance,
    taste_size,
)
from fairduel.votes.votes import Indices, Mask, Votes, sums

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
KINDS = ("inverts", "one side", "taste", "campaign", "group")
LEAST_OF_OTHERS = 3
"""Votes an item that the others must have cast, or nobody can say what an honest voter would do."""
_ENOUGH_VOTES = 5  # to say how fast somebody is
_HASTE = 0.2
_INVERTED = (0.5, 1.0, 2.0)  # −s of who inverts


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of each of V voters, and who is flagged. Logs are natural."""

    voters: tuple[str, ...]
    votes: Indices
    """Votes, ties included, shape (V,)."""
    decisive: Indices
    """Votes with a winner, shape (V,)."""
    agreement: Vector
    """Share of the decisive votes that the consensus of the others agrees with, shape (V,); NaN without any."""
    agreement_interval: NDArray[np.float64]
    """95 % interval of it (Wilson), shape (V, 2)."""
    log_evidence: dict[str, Vector]
    """Log E of each kind, each (V,)."""
    total: Vector
    """Log of the mean E over the kinds, shape (V,)."""
    flagged: Mask
    flagged_by: tuple[str, ...]
    """``own votes``, ``pair`` or ``crowd`` for each flagged voter, else empty."""
    why: tuple[str, ...]
    """One sentence for each flagged voter, else empty."""
    target: Indices
    """Item that the voter pushes most, as far as any, shape (V,)."""
    seconds: Vector
    """Median seconds for a vote, shape (V,); NaN where unknown."""
    clock_step: float
    """The smallest difference between two times for a vote; NaN where unknown."""
    pushed: Vector
    """Log evidence (K,) that somebody pushes each item, up or down."""
    pairs: AlikePairs
    crowd: Crowd | None
    """Occasional voters taken together, where there are any and others to compare with; the more suspicious crowd."""
    crowd_flagged: bool
    settings: dict[str, Any]
    """Level, sizes of tastes, and all else that made these numbers."""

    @property
    def usual_seconds(self) -> float:
        """Median over the voters with five votes or more of their seconds for a vote; NaN where unknown."""
        known = self.seconds[(self.votes >= _ENOUGH_VOTES) & ~np.isnan(self.seconds)]
        return float(np.median(known)) if len(known) else math.nan

    @property
    def hasty(self) -> Mask:
        """Who needs less than a fifth of the usual time for a vote, over five votes or more, shape (V,).

        That is careless, not false, so it flags nobody. Where times are too coarse to tell, nobody is hasty.
        """
        limit = _HASTE * self.usual_seconds
        return (self.votes >= _ENOUGH_VOTES) & (self.seconds < limit) & (self.clock_step <= limit)

    def flagged_votes(self, votes: Votes) -> Mask:
        """Which votes flagged voters cast, shape (n,)."""
        return self.flagged[votes.cast_by]

    def frame(self, items: tuple[str, ...]) -> pl.DataFrame:
        """One row for each voter, the most suspicious first; evidence as log10."""
        order = np.lexsort((-self.votes, -self.total, ~self.flagged))
        columns = {
            "voter": self.voters,
            "flagged": self.flagged,
            "flagged_by": self.flagged_by,
            "votes": self.votes,
            "decisive": self.decisive,
            "agreement": self.agreement,
            "agreement_low": self.agreement_interval[:, 0],
            "agreement_high": self.agreement_interval[:, 1],
            "log10_evidence": self.total / np.log(10.0),
            **{f"log10_{kind.replace(' ', '_')}": log / np.log(10.0) for kind, log in self.log_evidence.items()},
            "target": [items[k] if k >= 0 else None for k in self.target],
            "seconds_per_vote": self.seconds,
            "hasty": self.hasty,
            "why": self.why,
        }
        return pl.DataFrame(columns)[order].with_columns(pl.col(pl.Float64).fill_nan(None))


def audit_voters(votes: Votes, *, level: float = 0.05, duels_assigned: bool = True) -> Evidence:
    """Gather the evidence on every voter and flag those whose evidence is enough at ``level``.

    Say ``duels_assigned=False`` where voters choose what they vote on: how often they meet an item then counts for
    nothing.

    >>> from fairduel.votes.synthetic import arena
    >>> votes, liars = arena(liars={"promotes": 3, "one side": 1}, seed=1)
    >>> evidence = audit_voters(votes)
    >>> sorted(np.array(evidence.voters)[evidence.flagged]) == sorted(liars)
    True
    """
    if positive("level", level) >= 1.0:
        raise BadInputError(f"the level must lie between 0 and 1, not {level}.")
    decisive = Decisive.of(votes)
    if len(decisive.sign) == 0:
        raise BadInputError("no vote has a winner and a weight above 0, so there is nothing to audit.")
    meetings = find_meetings(votes)
    choosers = np.zeros(decisive.voters, dtype=np.bool_)
    if duels_assigned:
        chosen = over_targets(meetings.voter, meetings.log_evidence, voters=decisive.voters, targets=decisive.items)
        choosers, _ = e_bh(chosen, level)
    z = consensus(decisive, choosers)
    typical = ~choosers[decisive.voter]
    tastes = {
        "item": taste_size(decisive.cells()[1][np.tile(typical, 2)], *_sides_of(decisive, z, typical)),
        "side": taste_size(decisive.voter[typical], z[typical], decisive.sign[typical]),
    }
    variance = tastes["item"] ** 2 + consensus_variance(decisive, typical, tastes["item"])
    cells = find_cells(decisive, z, variance, meetings)
    ups, downs = cells.pushes(duels_assigned=duels_assigned)
    targets = {"voter": np.tile(cells.voter, 2), "target": np.concatenate([cells.item, cells.item + decisive.items])}
    sizes = {"voters": decisive.voters, "targets": 2 * decisive.items}
    pushes = np.concatenate([ups, downs])
    log_evidence = {
        "inverts": _inverts(decisive, z, variance),
        "one side": _one_side(decisive, z, tastes["side"]),
        "taste": over_targets(cells.voter, np.logaddexp(cells.up, cells.down), **sizes),
        "campaign": over_targets(cells.voter, np.logaddexp(ups, downs), **sizes),
        "group": shared_evidence(targets["voter"], targets["target"], pushes, **sizes),
    }
    total = np.asarray(special.logsumexp(np.stack(list(log_evidence.values())), axis=0) - np.log(len(KINDS)))
    voted = np.bincount(decisive.voter, minlength=decisive.voters)
    flagged = np.zeros(decisive.voters, dtype=np.bool_)
    judged = (voted > 0) & (len(decisive.sign) - voted >= LEAST_OF_OTHERS * decisive.items)
    flagged[judged], needed = e_bh(total[judged], level / 3.0)
    pairs = alike_pairs(decisive, z, level=level / 3.0)
    crowds = [
        find_crowd(
            votes,
            decisive,
            choosers,
            most=most,
            taste=tastes["item"],
            unevenness=meetings.unevenness,
            duels_assigned=duels_assigned,
        )
        for most in OCCASIONAL
    ]
    crowd = max((each for each in crowds if each), key=lambda each: each.log_evidence, default=None)
    crowd_flagged = crowd is not None and crowd.log_evidence >= np.log(3.0 * len(OCCASIONAL) / level)
    by = np.where(flagged, "own votes", "").astype("U9")
    for who in (pairs.one[pairs.flagged], pairs.other[pairs.flagged]):
        by[who] = np.where(by[who] == "", "pair", by[who])
    if crowd is not None and crowd_flagged:
        by[crowd.pushers & (by == "")] = "crowd"
    pushed = group_evidence(targets["target"], pushes, **sizes).reshape(2, decisive.items)
    agreed = sums(decisive.voter, decisive.voters, (z * decisive.sign > 0) + 0.5 * (z == 0))
    with np.errstate(invalid="ignore"):
        agreement = agreed / voted
    seconds, clock_step = _seconds(votes)
    strongest = _strongest(cells, np.maximum(ups, downs), decisive.voters)
    return Evidence(
        voters=votes.voters,
        votes=np.bincount(votes.cast_by, minlength=decisive.voters),
        decisive=voted,
        agreement=agreement,
        agreement_interval=_wilson(agreed, voted),
        log_evidence=log_evidence,
        total=total,
        flagged=by != "",
        flagged_by=tuple(by.tolist()),
        why=_sentences(
            votes, decisive, cells, strongest, log_evidence, flagged, agreement, pairs, crowd if crowd_flagged else None
        ),
        target=np.append(cells.item, -1)[strongest],
        seconds=seconds,
        clock_step=clock_step,
        pushed=np.asarray(special.logsumexp(pushed, axis=0) - np.log(2.0)),
        pairs=pairs,
        crowd=crowd,
        crowd_flagged=crowd_flagged,
        settings={
            "level": level,
            "flags": "a third of the level each: voters (e-BH), pairs (e-BH), occasional voters together",
            "needed_log10_evidence": (needed if judged.any() else np.log(3.0 / level)) / np.log(10.0),
            "voters_tested": int(judged.sum()),
            "voters_not_tested": int(((voted > 0) & ~judged).sum()),
            "needed_votes_of_others": f"{LEAST_OF_OTHERS} an item",
            "duels_assigned": duels_assigned,
            "taste_for_items": tastes["item"],
            "taste_for_a_side": tastes["side"],
            "unevenness_of_exposure": meetings.unevenness,
            "voters_who_choose_their_duels": int(choosers.sum()),
        },
    )


def evidence_text(log_evidence: float) -> str:
    """E as people read it.

    >>> evidence_text(np.log(1234.0)), evidence_text(60.0), evidence_text(-3.0)
    ('1,234', '10²⁶', 'none')
    """
    power = log_evidence / np.log(10.0)
    if power < 0.0:
        return "none"
    return "10" + f"{power:.0f}".translate(_RAISED) if power >= 6.0 else f"{np.exp(log_evidence):,.0f}"


def crowd_sentence(crowd: Crowd, items: tuple[str, ...]) -> str:
    """What occasional voters did together."""
    return (
        f"one of {crowd.pushers.sum():,} occasional voters (at most {crowd.most} votes each) who mostly voted "
        f"{'for' if crowd.up else 'against'} {items[crowd.item]}: all {crowd.voters.sum():,} occasional voters "
        f"together met it in {crowd.met:,} of {crowd.votes:,} duels (others in {crowd.rate:.1%}) and voted so in "
        f"{crowd.pushed:,} of {crowd.duels:,} (the others would in {crowd.expected:.0f})"
    )


def _sides_of(decisive: Decisive, z: Vector, which: Mask) -> tuple[Vector, Vector]:
    return decisive.sides(z)[np.tile(which, 2)], decisive.sides(decisive.sign)[np.tile(which, 2)]


def _inverts(decisive: Decisive, z: Vector, variance: Vector) -> Vector:
    """Log evidence for s < 0, shape (V,)."""

    def likelihood(slope: float) -> Vector:
        return sums(decisive.voter, decisive.voters, -np.logaddexp(0.0, -slope * decisive.sign * z))

    lying = special.logsumexp(np.stack([likelihood(-s) for s in _INVERTED]), axis=0) - np.log(len(_INVERTED))
    return np.asarray(lying - best_honest_slope(decisive, z, variance))


def _one_side(decisive: Decisive, z: Vector, taste: float) -> Vector:
    """Log evidence that the voter looks at the side only, shape (V,): the mean over first and second."""
    cast = sums(decisive.voter, decisive.voters)
    first = sums(decisive.voter, decisive.voters, decisive.sign > 0)
    honest = best_honest(decisive.voter, decisive.voters, z, decisive.sign, taste)
    return np.asarray(np.logaddexp(pushing(first, cast), pushing(cast - first, cast)) - np.log(2.0) - honest)


def _strongest(cells: Cells, log_evidence: Vector, voters: int) -> Indices:
    """The cell of each voter with the most evidence, shape (V,); −1 without any."""
    order = np.lexsort((log_evidence, cells.voter))
    last = np.append(np.diff(cells.voter[order]) > 0, True)[: len(order)]
    result = np.full(voters, -1)
    result[cells.voter[order][last]] = order[last]
    return result


def _wilson(agreed: Vector, cast: Indices) -> NDArray[np.float64]:
    """95 % interval of a share, shape (V, 2)."""
    z2 = special.ndtri(0.975) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = agreed / cast
        half = np.sqrt(z2 * (share * (1.0 - share) / cast + z2 / (4.0 * cast**2)))
        bounds = np.stack([share + z2 / (2.0 * cast) - half, share + z2 / (2.0 * cast) + half], axis=1)
        return np.asarray(bounds / (1.0 + z2 / cast)[:, None])


def _seconds(votes: Votes) -> tuple[Vector, float]:
    """Median seconds for a vote, shape (V,), and the smallest difference between two times for a vote.

    Times that never fall from a voter's vote to his next are clock times, and their differences count; else they are
    response times themselves.
    """
    result = np.full(len(votes.voters), np.nan)
    if votes.time is None or votes.voter is None:
        return result, math.nan
    known = np.flatnonzero(~np.isnan(votes.time))
    known = known[np.argsort(votes.voter[known], kind="stable")]
    voter, time = votes.voter[known].astype(np.int64), votes.time[known]
    same = np.diff(voter) == 0
    if same.any() and (np.diff(time)[same] >= 0).all():
        voter, time = voter[1:][same], np.diff(time)[same]
    medians = pl.DataFrame({"voter": voter, "time": time}).group_by("voter").agg(pl.col("time").median())
    result[medians["voter"].to_numpy()] = medians["time"].to_numpy()
    return result, float(np.diff(np.unique(time)).min(initial=math.inf))


def _sentences(
    votes: Votes,
    decisive: Decisive,
    cells: Cells,
    strongest: Indices,
    log_evidence: dict[str, Vector],
    alone: Mask,
    agreement: Vector,
    pairs: AlikePairs,
    crowd: Crowd | None,
) -> tuple[str, ...]:
    """Why each flagged voter is flagged; shape (V,), empty for the others."""
    sentences = [""] * decisive.voters
    first = np.bincount(decisive.voter, decisive.sign > 0, decisive.voters)
    cast = np.bincount(decisive.voter, minlength=decisive.voters)
    if crowd is not None:
        of_crowd = f"{crowd_sentence(crowd, votes.items)}; which of them lie cannot be told"
        for voter in np.flatnonzero(crowd.pushers):
            sentences[voter] = of_crowd
    for place in np.flatnonzero(pairs.flagged)[::-1]:
        for voter, twin in ((pairs.one[place], pairs.other[place]), (pairs.other[place], pairs.one[place])):
            sentences[voter] = (
                f"answered {pairs.same[place]} of {pairs.shared[place]} shared duels like {votes.voters[twin]} "
                f"(any two voters: {pairs.expected[place]:.0f})"
            )
    for voter in np.flatnonzero(alone):
        kind = max(KINDS, key=lambda name: float(log_evidence[name][voter]))
        met, pushes = _push_sentences(votes, cells, int(strongest[voter]))
        sentences[voter] = {
            "inverts": f"agrees with the others in only {agreement[voter]:.0%} of {cast[voter]} votes",
            "one side": f"chose the {'first' if first[voter] * 2 > cast[voter] else 'second'} of the two in "
            f"{max(first[voter], cast[voter] - first[voter]):.0f} of {cast[voter]} votes",
            "taste": pushes,
        }.get(kind, f"{met} and {pushes}")
    return tuple(sentences)


def _push_sentences(votes: Votes, cells: Cells, cell: int) -> tuple[str, str]:
    """How often the voter of a cell met its item, and how he voted on it; empty for cell −1."""
    if cell < 0:
        return "", ""
    name, up = votes.items[cells.item[cell]], cells.up[cell] > cells.down[cell]
    wins = cells.wins[cell] if up else cells.duels[cell] - cells.wins[cell]
    expected = cells.expected[cell] if up else cells.duels[cell] - cells.expected[cell]
    cast = int(np.sum(votes.cast_by == cells.voter[cell]))
    return (
        f"met {name} in {cells.met[cell]:.0f} of {cast} duels (others in {cells.rate[cell]:.1%})",
        f"voted {'for' if up else 'against'} {name} in {wins:.0f} of {cells.duels[cell]:.0f} duels "
        f"(the others would in {expected:.0f})",
    )
