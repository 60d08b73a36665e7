"""Audit recorded votes: check voters, rank with and without the flagged ones, and test how fragile the result is."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.votes.bursts import BurstScan, scan_bursts
from fairduel.votes.care import trusted_weights
from fairduel.votes.fragile import Fitting, Fragility, challengers, fragility
from fairduel.votes.intervals import CONFIDENCE
from fairduel.votes.ranking import Ranking, Standing, rank, verdicts
from fairduel.votes.results import Result
from fairduel.votes.timing import duration_text
from fairduel.votes.voters import LEAST_OF_OTHERS, Evidence, audit_voters, crowd_sentence
from fairduel.votes.votes import Ties, Votes
from fairduel.votes.words import counted_noun, listed, shortened

_RANKS = ("rank", "rank_low", "rank_high")
_FRAGILE_SHARE = 0.01  # of the votes: one determined person could cast fewer
_FRAGILE_VOTES = 3  # whatever their share
_MOST_EXAMINED = 300  # items; with more, what changes the top 2, … takes minutes


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result):
    """The findings of an audit."""

    votes: Votes
    everyone: Ranking
    trusted: Ranking
    """With ``trusted_weights``: flagged voters do not count, and the others by their reliability."""
    evidence: Evidence | None
    """None if the file does not say who voted."""
    fragility: Sequence[Fragility]
    """Fragility of the leader, the top 2, …, with all votes; of the leader of each group, if there are several."""
    challengers: Sequence[Fragility]
    """Fragility of the leader of the largest group against each of the next items."""
    trusted_fragility: Sequence[Fragility]
    """Fragility of the leader with those weights; empty if nobody is flagged and no group differs."""
    burst: BurstScan
    """The stretch of votes that differs most from the rest, and ``shown`` without it."""

    def summary(self) -> list[str]:
        """Summarise the findings in a few sentences, conclusion first."""
        fragile = [_after("All votes", result) for result in self.fragility[:2]]
        fragile += [_after("After the audit", result) for result in self.trusted_fragility]
        voters, burst = _voter_summary(self), self.burst_summary()
        return [_conclusion(self), *_verdicts(self), *_rank_changes(self), *voters, *burst, *fragile]

    def burst_summary(self) -> list[str]:
        """Say whether a stretch of votes differs, and what it does to the ranking that is shown."""
        stretch, *change = self.burst.sentences()
        return [stretch, *(f"After the audit: {each}" if self.someone_flagged else each for each in change)]

    def advice(self) -> list[str]:
        """Recommend what to do."""
        return [*_voter_advice(self.evidence), *_leader_advice(self), *self.burst.advice()]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        found: dict[str, Any] = {"summary": self.summary(), "advice": self.advice()}
        if self.voters is not None:
            found["flagged"] = self.voters.filter("flagged").to_dicts()
            found["alike"] = self.alike()
        for name in ("fragility", "challengers", "trusted_fragility"):
            results: Sequence[Fragility] = getattr(self, name)
            found[name] = [{**vars(result), "sentence": result.sentence} for result in results]
        found["burst"] = self.burst.record()
        left = self.left_alone
        found["ranks"] = [
            {
                "item": new.item,
                "group": new.group,
                "all_votes": old.rank,
                "without_flagged": None if new.item in left else new.rank,
            }
            for old, new in self.ranks()
        ]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """All settings behind the numbers."""
        evidence = {} if self.evidence is None else {"evidence": self.evidence.settings}
        return {"ties": self.everyone.settings["ties"], **evidence, "ranking": dict(self.everyone.settings)}

    @property
    def someone_flagged(self) -> bool:
        """Whether any voter is flagged or any group differs, so that there are two rankings to show."""
        return self.evidence is not None and self.evidence.someone_differs

    @property
    def shown(self) -> Ranking:
        """The ranking to go by: ``trusted`` if anyone is flagged or any group differs, otherwise ``everyone``."""
        return self.trusted if self.someone_flagged else self.everyone

    @functools.cached_property
    def voters(self) -> pl.DataFrame | None:
        """One row per voter, most evidence first; None if the file does not say who voted."""
        return None if self.evidence is None else self.evidence.to_frame()

    @property
    def crowd(self) -> str:
        """How a crowd differs; empty if none does."""
        if self.evidence is None or self.evidence.crowd is None or not self.evidence.crowd_flagged:
            return ""
        sentence = crowd_sentence(self.evidence.crowd, self.votes.items)
        return f"This group differs: {sentence}. All of their votes on it count less, whatever they say."

    def alike(self) -> list[dict[str, Any]]:
        """List the pairs of voters whose votes are nearly the same."""
        if self.evidence is None:
            return []
        pairs, names = self.evidence.pairs, self.evidence.voters
        return [
            {
                "one": names[pairs.one[place]],
                "other": names[pairs.other[place]],
                "shared": int(pairs.shared[place]),
                "same": int(pairs.same[place]),
                "expected": float(pairs.expected[place]),
            }
            for place in np.flatnonzero(pairs.flagged)
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per item: rank and range after the audit and by all votes, best first."""
        left = self.left_alone
        rows = [
            {
                "item": new.item,
                "group": new.group,
                **{name: None if new.item in left else getattr(new, name) for name in _RANKS},
                **{f"{name}_by_all": getattr(old, name) for name in _RANKS},
            }
            for old, new in self.ranks()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def brief(self) -> str:
        """Say who won, and whether that depends on flagged voters."""
        return _conclusion(self)

    def _preview(self) -> pl.DataFrame:
        several = any(standing.component > 1 for standing in self.shown.standings)
        return self.to_frame().select("item", *(["group"] if several else []), *_RANKS, "rank_by_all")

    def ranks(self) -> list[tuple[Standing, Standing]]:
        """Return each item's standing with all votes and after the audit, in the order of the latter."""
        before = {standing.item: standing for standing in self.everyone.standings}
        return [(before[after.item], after) for after in self.shown.standings]

    @property
    def left_alone(self) -> frozenset[str]:
        """Items that only votes of weight 0 compared with others; after the audit, they have no rank."""
        before, after = (
            frozenset(group[0].item for group in ranking.components() if len(group) == 1)
            for ranking in (self.everyone, self.shown)
        )
        return after - before


def audit(
    votes: Votes,
    *,
    level: float = 0.05,
    duels_assigned: bool = True,
    ties: Ties = "half",
    top: int = 5,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Audit the votes: evidence on voters, rankings before and after, and how fragile the result is.

    Fragility is computed for the leader, the top 2, … up to ``top``. ``progress`` is called with 1 after each of three
    steps and each of the ``tops``. Features per vote are ignored.

    >>> from fairduel.votes.synthetic import arena
    >>> print(audit(arena(seed=4)[0], top=1).summary()[0])
    Without the 8 flagged voters, Birch is first; with all votes, Maple is.
    """
    done, votes = progress or (lambda _: None), votes.without_features()
    everyone = rank(votes, ties=ties)
    done(1)
    evidence, trusted, reliability, without = None, everyone, None, list[Fragility]()
    if votes.voter is not None:
        evidence = audit_voters(votes, level=level, duels_assigned=duels_assigned)
        weights, left, found = trusted_ranking(votes, evidence, ties)
        if found is not None:
            trusted = found
            if evidence.someone_differs:
                reliability, without = weights, _leaders(left, trusted, ties)
    done(1)
    shown = everyone if reliability is None else trusted
    burst = scan_bursts(votes, ties=ties, level=level, ranking=shown, reliability=reliability)
    done(1)
    results, largest = list[Fragility](), _fitting(everyone, ties)
    several = len(list(everyone.components())) > 1
    for size in range(1, tops(votes, ties=ties, top=top) + 1):
        results += _leaders(votes, everyone, ties) if several else fragility(votes, top=size, fitting=largest)
        done(1)
    rivals = challengers(votes, fitting=largest)
    results[0] = min(results[0], *rivals, key=_size)  # predictions of the best pair can be wrong
    return Audit(
        votes,
        everyone,
        trusted,
        evidence,
        fragility=results,
        challengers=rivals,
        trusted_fragility=without,
        burst=burst,
    )


def trusted_ranking(votes: Votes, evidence: Evidence, ties: Ties) -> tuple[Vector, Votes, Ranking | None]:
    """Rank the items by how much votes count after the audit.

    Returns:
        How much each vote counts, shape ``(n,)``; the votes, with weight 0 for those that do not count; and the ranking
        by them, or None if there are none.
    """
    weights = trusted_weights(votes, evidence, ties)
    left = replace(votes, weight=np.where(weights > 0.0, votes.weight, 0.0))
    return weights, left, rank(left, ties=ties, reliability=weights) if left.counts(ties).any() else None


def _size(result: Fragility) -> float:
    return math.inf if result.found is None else result.found


def _fitting(ranking: Ranking, ties: Ties, component: int = 0) -> Fitting:
    """How the ranking fits its votes."""
    return Fitting(ties, ranking.weights, ranking.settings["ridge"], component)


def _leaders(votes: Votes, ranking: Ranking, ties: Ties) -> list[Fragility]:
    """Return the fragility of the leader of each component with at least two items."""
    groups = [group for group in ranking.components() if len(group) > 1]
    return [
        replace(result, group=group[0].group if len(groups) > 1 else "")
        for number, group in enumerate(groups)
        for result in fragility(votes, fitting=_fitting(ranking, ties, number))
    ]


def tops(votes: Votes, *, ties: Ties, top: int) -> int:
    """Return up to which k ≤ ``top`` the top k can change.

    With several components, or more than 300 items, only leaders are examined.
    """
    component = votes.components(ties)
    size = len(component) if component.max(initial=0) == 0 and len(component) <= _MOST_EXAMINED else 2
    return max(1, min(integer("top", top, least=1), size - 1))


def _conclusion(found: Audit) -> str:
    before, after = (next(ranking.components())[0].item for ranking in (found.everyone, found.shown))
    groups = max(standing.component for standing in found.shown.standings)
    first = "first" if groups == 1 else f"first in the largest of {groups} groups"
    if found.evidence is None:
        return f"{after} is {first}; no voter could be checked, because the file does not say who voted."
    flagged = int(found.evidence.flagged.sum())
    if not flagged and before == after:
        groups_too = "" if found.shown is found.everyone else ", whether or not groups that differ count less"
        return f"{after} is {first}{groups_too}, and no voter is flagged."
    if not flagged:
        return f"No voter is flagged, but if groups that differ count less, {after} is {first}; otherwise {before} is."
    them = "the flagged voter" if flagged == 1 else f"the {flagged:,} flagged voters"
    if found.trusted is found.everyone:
        return f"{after} is {first}, but every vote was cast by {'' if flagged == 1 else 'one of '}{them}."
    if before == after:
        return f"{after} is {first}, with or without {them}."
    return f"Without {them}, {after} is {first}; with all votes, {before} is."


def _verdicts(found: Audit) -> list[str]:
    """Say who won, as the ranking does: after the audit first."""
    if found.shown is found.everyone:
        return verdicts(found.everyone) + _soft_doubt(found)
    after = [f"After the audit: {each}" for each in verdicts(found.trusted)]
    return after + [f"All votes: {each}" for each in verdicts(found.everyone)]


def _soft_doubt(found: Audit) -> list[str]:
    """Say if weights by reliability, without any flag, change the leader."""
    by_all, by_reliability = (next(ranking.components())[0].item for ranking in (found.everyone, found.trusted))
    if by_all == by_reliability:
        return []
    return [
        f"If votes count by how reliable their voters are (rank --model ours), {by_reliability} is first instead: "
        "treat the two as tied."
    ]


def _after(label: str, result: Fragility) -> str:
    sentence = result.sentence
    return f"{label}: {sentence if result.group else sentence[0].lower() + sentence[1:]}"


def _rank_changes(found: Audit) -> list[str]:
    if found.shown is found.everyone:
        return []
    left = sorted(found.left_alone)
    moved = [(old, new) for old, new in found.ranks() if old.rank != new.rank and new.item not in left]
    sentences = ["No rank changes after the audit."]
    if moved:
        old, new = max(moved, key=lambda pair: abs(pair[0].rank - pair[1].rank))
        change = f"change{'s' if len(moved) == 1 else ''} rank after the audit"
        sentences = [
            f"{counted_noun(len(moved), 'item')} {change}; {new.item} moves most, from {old.rank} to {new.rank}."
        ]
    if left:
        sentences.append(
            f"Only flagged voters compared {listed(left)} with other items, so no rank is known without them."
        )
    return sentences


def _voter_summary(found: Audit) -> list[str]:
    evidence = found.evidence
    if evidence is None:
        return []
    flagged, tested = evidence.flagged_votes(found.votes), evidence.settings["voters_tested"]
    level = f"{100.0 * evidence.settings['level']:.3g}%"
    if flagged.any():
        count = int(evidence.flagged.sum())
        sentences = [
            f"{count:,} of {tested:,} voters {'is' if count == 1 else 'are'} flagged: their votes show patterns that "
            f"honest voting is unlikely to produce. They cast {int(flagged.sum()):,} of {len(found.votes):,} votes. If "
            f"all voters were honest (see the documentation), the probability of any flag would be at most {level}."
        ]
    elif not tested:
        sentences = ["No voter could be tested individually."]
    else:
        sentences = [
            f"None of the {tested:,} voters tested shows a pattern that honest voting is unlikely to produce (level "
            f"{level}). That does not prove that all are honest: a few false votes among many go unnoticed."
        ]
    if found.crowd:
        sentences.append(found.crowd)
    if pairs := int(evidence.pairs.flagged.sum()):
        sentences.append(
            f"{counted_noun(pairs, 'pair')} of voters gave nearly the same answers; where they voted on the same duel, "
            "only the first counts."
        )
    if untested := evidence.settings["voters_not_tested"]:
        sentences.append(
            f"{counted_noun(untested, 'voter')} {'was' if untested == 1 else 'were'} not tested individually: everyone "
            f"else cast fewer than {LEAST_OF_OTHERS} votes per item, too few to compare with."
        )
    if np.median(evidence.votes) <= 1.0 and not evidence.crowd_flagged:
        sentences.append(
            "Most voters cast a single vote, so fake accounts with one vote each are likely to go unnoticed."
        )
    if not evidence.pairs.compared:
        sentences.append("Pairs of voters were not compared: too many voters share the same duels.")
    if hasty := int(evidence.hasty.sum()):
        sentences.append(
            f"{counted_noun(hasty, 'voter')} took less than a fifth of the usual "
            f"{duration_text(evidence.usual_seconds)} per vote (see voters.csv). Very fast voters are reported, never "
            "flagged."
        )
    return sentences


def _voter_advice(evidence: Evidence | None) -> list[str]:
    if evidence is None:
        return ["Record who votes (a pseudonym is enough): without it, no voter can be checked."]
    advice = []
    if evidence.flagged.any():
        advice.append(
            "A flag is statistical evidence, not proof. Look at each flagged voter's reason and votes "
            "(flagged-rows.csv), then decide. If you leave them out, say so and show both rankings. Nothing was "
            "deleted."
        )
    if _counts_exposure(evidence):
        advice.append(
            "Flags for seeing one item too often assume that your system chose the pairs, alike for all voters at the "
            "same time and in the same context. If voters chose their own, rerun with --voters-choose-duels."
        )
    if evidence.crowd_flagged:
        advice.append(
            "Occasional voters differ from the others. They may be new users with another taste, fans who came for a "
            "launch, or fake accounts: the votes cannot tell. Find out where they came from before trusting either "
            "ranking; a login or a limit of votes per address keeps fake accounts out."
        )
    if evidence.pairs.flagged.any():
        advice.append(
            "Two voters with nearly the same answers may be one person with two accounts, two versions of one LLM "
            "judge, or people who voted together."
        )
    return advice


def _counts_exposure(evidence: Evidence) -> bool:
    """Whether some flag rests on how often voters saw an item."""
    if not evidence.settings["duels_assigned"]:
        return False
    kinds = np.array(list(evidence.log_evidence))
    strongest = kinds[np.argmax(np.stack(list(evidence.log_evidence.values())), axis=0)]
    return bool(np.isin(strongest[evidence.flagged], ("campaign", "group")).any())


def _leader_advice(found: Audit) -> list[str]:
    """Say which winners can be announced: those that no other item may equal, as the ranking says."""
    groups = [group for group in found.shown.components() if len(group) > 1]
    return [_winner_advice(found, groups[0])] if len(groups) == 1 else _winners_advice(groups)


def _winners_advice(groups: Sequence[Sequence[Standing]]) -> list[str]:
    clear = [group[0] for group in groups if group[0].rank_high == 1]
    unclear = len(groups) - len(clear)
    winners = [f"{leader.item} (group {leader.group})" for leader in clear]
    announce = [f"{len(clear)} of {len(groups)} winners can be announced: {shortened(winners)}."] if clear else []
    others = f"Do not announce a winner in {'the other ' if clear else ''}{counted_noun(unclear, 'group')}: "
    return [*announce, *([f"{others}their first items are too close."] if unclear else [])]


def _winner_advice(found: Audit, group: Sequence[Standing]) -> str:
    leader = group[0]
    if doubt := _soft_doubt(found) if found.shown is found.everyone else []:
        return f"Do not announce {leader.item} as the winner. {doubt[0]}"
    if leader.rank_high > 1:
        tied = [each.item for each in group if each.rank_low == 1]
        return (
            f"Do not announce {leader.item} as the winner: its true rank may be {leader.rank_low} to "
            f"{leader.rank_high}. Call it a tie between {shortened(tied)}, or collect more votes on them."
        )
    sentence = f"{leader.item} can be announced as the winner ({CONFIDENCE:.0%} confidence)."
    results = found.trusted_fragility or [result for result in found.fragility if result.top == 1]
    fewest = min((result for result in results if result.found), key=lambda result: result.found or 0, default=None)
    if fewest is None or fewest.found is None:
        return sentence
    doing, share = "dropping" if fewest.how == "dropped" else "flipping", fewest.found / fewest.votes
    if share < _FRAGILE_SHARE or fewest.found <= _FRAGILE_VOTES:
        return (
            f"{sentence} But say that few votes decide: {doing} {fewest.found:,} of {fewest.votes:,} ({share:.2%}) "
            f"puts {fewest.gains} first."
        )
    return (
        f"{sentence} Putting {fewest.gains} first takes {doing} at least {fewest.at_least:,} of {fewest.votes:,} votes "
        f"(proven); the smallest set found has {fewest.found:,} ({share:.2%})."
    )
