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
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from fairduel.checks import positive
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.campaign import Cells, Meetings, find_cells, find_meetings, over_targets, pushing
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
    log_mean,
    taste_size,
)
from fairduel.votes.votes import Indices, Mask, Votes

LOG_10 = math.log(10.0)
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

    def flagged_rows(self, votes: Votes) -> pl.DataFrame:
        """The row of the file and the voter of each of these votes."""
        flagged = self.flagged_votes(votes)
        return pl.DataFrame({"row": votes.row[flagged], "voter": np.array(self.voters)[votes.cast_by[flagged]]})

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
            "log10_evidence": self.total / LOG_10,
            **{f"log10_{kind.replace(' ', '_')}": log / LOG_10 for kind, log in self.log_evidence.items()},
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
    base = _baseline(votes, level=level, duels_assigned=duels_assigned)
    cells = find_cells(base.decisive, base.z, base.variance, base.meetings)
    ups, downs = cells.pushes(duels_assigned=duels_assigned)
    log_evidence, pushed = _by_kind(base, cells, ups, downs)
    total = log_mean(np.stack(list(log_evidence.values())))
    flags = _flags(base, total, level)
    agreed = base.decisive.per_voter((base.z * base.decisive.sign > 0) + 0.5 * (base.z == 0))
    with np.errstate(invalid="ignore"):
        agreement = agreed / base.cast
    seconds, clock_step = _seconds(votes)
    strongest = _strongest(cells, np.maximum(ups, downs), base.decisive.voters)
    return Evidence(
        voters=votes.voters,
        votes=np.bincount(votes.cast_by, minlength=base.decisive.voters),
        decisive=base.cast,
        agreement=agreement,
        agreement_interval=_wilson(agreed, base.cast),
        log_evidence=log_evidence,
        total=total,
        flagged=flags.by != "",
        flagged_by=tuple(flags.by.tolist()),
        why=_sentences(base, cells, strongest, log_evidence, agreement, flags),
        target=np.append(cells.item, -1)[strongest],
        seconds=seconds,
        clock_step=clock_step,
        pushed=pushed,
        pairs=flags.pairs,
        crowd=flags.crowd,
        crowd_flagged=flags.crowd_flagged,
        settings=_settings(base, flags, level),
    )


class _Baseline(NamedTuple):
    """What all kinds of evidence are measured by."""

    votes: Votes
    decisive: Decisive
    cast: Indices
    """Decisive votes of each voter, shape (V,)."""
    duels_assigned: bool
    meetings: Meetings
    choosers: Mask
    """Who chooses their duels, shape (V,)."""
    z: Vector
    """The consensus of the others on each decisive vote, shape (n,)."""
    taste_for_items: float
    taste_for_a_side: float
    variance: Vector
    """τ² of each cell of ``decisive.cells()``, shape (c,)."""


def _baseline(votes: Votes, *, level: float, duels_assigned: bool) -> _Baseline:
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
    sides = np.tile(typical, 2)
    for_items = taste_size(decisive.cells()[1][sides], decisive.sides(z)[sides], decisive.sides(decisive.sign)[sides])
    return _Baseline(
        votes=votes,
        decisive=decisive,
        cast=np.bincount(decisive.voter, minlength=decisive.voters),
        duels_assigned=duels_assigned,
        meetings=meetings,
        choosers=choosers,
        z=z,
        taste_for_items=for_items,
        taste_for_a_side=taste_size(decisive.voter[typical], z[typical], decisive.sign[typical]),
        variance=for_items**2 + consensus_variance(decisive, typical, for_items),
    )


def _by_kind(base: _Baseline, cells: Cells, ups: Vector, downs: Vector) -> tuple[dict[str, Vector], Vector]:
    """Log E of each of the ``KINDS``, each (V,), and that somebody pushes each item, up or down (K,)."""
    items = base.decisive.items
    voter, target = np.tile(cells.voter, 2), np.concatenate([cells.item, cells.item + items])
    pushes, sizes = np.concatenate([ups, downs]), {"voters": base.decisive.voters, "targets": 2 * items}
    log_evidence = {
        "inverts": _inverts(base),
        "one side": _one_side(base),
        "taste": over_targets(cells.voter, np.logaddexp(cells.up, cells.down), **sizes),
        "campaign": over_targets(cells.voter, np.logaddexp(ups, downs), **sizes),
        "group": shared_evidence(voter, target, pushes, **sizes),
    }
    return log_evidence, log_mean(group_evidence(target, pushes, **sizes).reshape(2, items))


class _Flags(NamedTuple):
    """Who is flagged, and by what."""

    judged: Mask
    """Whose own votes could be judged, shape (V,)."""
    alone: Mask
    """Who is flagged by their own votes, shape (V,)."""
    needed: float
    """Log evidence that this needed."""
    pairs: AlikePairs
    crowd: Crowd | None
    crowd_flagged: bool
    by: NDArray[np.str_]
    """As ``Evidence.flagged_by``, shape (V,)."""


def _flags(base: _Baseline, total: Vector, level: float) -> _Flags:
    """Flag by the ``total`` evidence (V,), by pairs and by crowds, at a third of the level each."""
    decisive, share = base.decisive, level / 3.0
    judged = (base.cast > 0) & (len(decisive.sign) - base.cast >= LEAST_OF_OTHERS * decisive.items)
    alone = np.zeros(decisive.voters, dtype=np.bool_)
    alone[judged], needed = e_bh(total[judged], share)
    pairs = alike_pairs(decisive, base.z, level=share)
    crowds = [
        find_crowd(
            base.votes,
            decisive,
            base.choosers,
            most=most,
            taste=base.taste_for_items,
            unevenness=base.meetings.unevenness,
            duels_assigned=base.duels_assigned,
        )
        for most in OCCASIONAL
    ]
    crowd = max((each for each in crowds if each), key=lambda each: each.log_evidence, default=None)
    crowd_flagged = crowd is not None and crowd.log_evidence >= np.log(3.0 * len(OCCASIONAL) / level)
    by = np.where(alone, "own votes", "").astype("U9")
    for who in (pairs.one[pairs.flagged], pairs.other[pairs.flagged]):
        by[who] = np.where(by[who] == "", "pair", by[who])
    if crowd is not None and crowd_flagged:
        by[crowd.pushers & (by == "")] = "crowd"
    return _Flags(judged, alone, needed, pairs, crowd, crowd_flagged=crowd_flagged, by=by)


def _settings(base: _Baseline, flags: _Flags, level: float) -> dict[str, Any]:
    return {
        "level": level,
        "flags": "a third of the level each: voters (e-BH), pairs (e-BH), occasional voters together",
        "needed_log10_evidence": (flags.needed if flags.judged.any() else np.log(3.0 / level)) / LOG_10,
        "voters_tested": int(flags.judged.sum()),
        "voters_not_tested": int(((base.cast > 0) & ~flags.judged).sum()),
        "needed_votes_of_others": f"{LEAST_OF_OTHERS} an item",
        "duels_assigned": base.duels_assigned,
        "taste_for_items": base.taste_for_items,
        "taste_for_a_side": base.taste_for_a_side,
        "unevenness_of_exposure": base.meetings.unevenness,
        "voters_who_choose_their_duels": int(base.choosers.sum()),
    }


def evidence_text(log10_evidence: float) -> str:
    """E as people read it.

    >>> evidence_text(np.log10(1234.0)), evidence_text(26.1), evidence_text(-1.3)
    ('1,234', '10²⁶', 'none')
    """
    if log10_evidence < 0.0:
        return "none"
    if log10_evidence >= 6.0:
        return "10" + f"{log10_evidence:.0f}".translate(_RAISED)
    return f"{10.0**log10_evidence:,.0f}"


def crowd_sentence(crowd: Crowd, items: tuple[str, ...]) -> str:
    """What occasional voters did together."""
    return (
        f"one of {crowd.pushers.sum():,} occasional voters (at most {crowd.most} votes each) who mostly voted "
        f"{'for' if crowd.up else 'against'} {items[crowd.item]}: all {crowd.voters.sum():,} occasional voters "
        f"together met it in {crowd.met:,} of {crowd.votes:,} duels (others in {crowd.rate:.1%}) and voted so in "
        f"{crowd.pushed:,} of {crowd.duels:,} (the others would in {crowd.expected:.0f})"
    )


def _inverts(base: _Baseline) -> Vector:
    """Log evidence for s < 0, shape (V,)."""
    right = base.decisive.sign * base.z
    lying = np.stack([base.decisive.per_voter(-np.logaddexp(0.0, slope * right)) for slope in _INVERTED])
    return np.asarray(log_mean(lying) - best_honest_slope(base.decisive, base.z, base.variance))


def _one_side(base: _Baseline) -> Vector:
    """Log evidence that the voter looks at the side only, shape (V,): the mean over first and second."""
    voter, voters, sign = base.decisive.voter, base.decisive.voters, base.decisive.sign
    first, cast = base.decisive.per_voter(sign > 0), base.cast.astype(np.float64)
    honest = best_honest(voter, voters, base.z, sign, base.taste_for_a_side)
    one_way = np.logaddexp(pushing(first, cast), pushing(cast - first, cast))
    return np.asarray(one_way - np.log(2.0) - honest)


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
    base: _Baseline, cells: Cells, strongest: Indices, log_evidence: dict[str, Vector], agreement: Vector, flags: _Flags
) -> tuple[str, ...]:
    """Why each flagged voter is flagged; shape (V,), empty for the others."""
    votes, pairs, cast = base.votes, flags.pairs, base.cast
    sentences = [""] * len(cast)
    first = base.decisive.per_voter(base.decisive.sign > 0)
    if flags.crowd is not None and flags.crowd_flagged:
        of_crowd = f"{crowd_sentence(flags.crowd, votes.items)}; which of them lie cannot be told"
        for voter in np.flatnonzero(flags.crowd.pushers):
            sentences[voter] = of_crowd
    for place in np.flatnonzero(pairs.flagged)[::-1]:
        for voter, twin in ((pairs.one[place], pairs.other[place]), (pairs.other[place], pairs.one[place])):
            sentences[voter] = (
                f"answered {pairs.same[place]} of {pairs.shared[place]} shared duels like {votes.voters[twin]} "
                f"(any two voters: {pairs.expected[place]:.0f})"
            )
    for voter in np.flatnonzero(flags.alone):
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
