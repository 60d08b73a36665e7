"""The whole audit of recorded votes: whom to trust, the ranking without the others, and how far to trust that."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from fairduel.checks import integer
from fairduel.votes.fragility import Fragility, challengers, fragility
from fairduel.votes.ranking import Ranking, Standing, rank
from fairduel.votes.voters import LEAST_OF_OTHERS, Evidence, audit_voters, crowd_sentence
from fairduel.votes.votes import Ties, Votes

_FRAGILE = 0.01  # share of the votes: less is within the reach of one determined person
_FEW = 3  # votes, whatever their share


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that an audit found."""

    votes: Votes
    everyone: Ranking
    trusted: Ranking
    """Without the votes of flagged voters; the same where nobody is flagged."""
    evidence: Evidence | None
    """None where the file does not say who voted."""
    fragility: Sequence[Fragility]
    """Of all votes: the leader, the top 2, …"""
    challengers: Sequence[Fragility]
    trusted_fragility: Sequence[Fragility]
    """Of the leader, without the votes of flagged voters; empty where nobody is flagged."""

    def summary(self) -> list[str]:
        """The findings in a few sentences."""
        fragile = [f"All votes: {result.sentence}" for result in self.fragility[:2]]
        fragile += [f"Without the flagged voters: {result.sentence}" for result in self.trusted_fragility]
        return [*_voter_summary(self), *_leader_summary(self), *fragile]

    def advice(self) -> list[str]:
        """What to do now."""
        return _advice(self)

    def record(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        found: dict[str, Any] = {"summary": self.summary(), "advice": self.advice()}
        if self.voters is not None:
            found["flagged"] = self.voters.filter("flagged").to_dicts()
            found["alike"] = self.alike()
        for name in ("fragility", "challengers", "trusted_fragility"):
            results: Sequence[Fragility] = getattr(self, name)
            found[name] = [{**vars(result), "sentence": result.sentence} for result in results]
        left = self.left_alone
        found["ranks"] = [
            {
                "item": new.item,
                "group": new.component,
                "all_votes": old.rank,
                "without_flagged": None if new.item in left else new.rank,
            }
            for old, new in self.ranks()
        ]
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """What made the numbers."""
        ranking = {f"ranking: {name}": value for name, value in self.everyone.settings.items()}
        voters = {} if self.evidence is None else {f"voters: {n}": v for n, v in self.evidence.settings.items()}
        return {"ties": self.everyone.settings["ties"], **voters, **ranking}

    @functools.cached_property
    def voters(self) -> pl.DataFrame | None:
        """One row for each voter, the most suspicious first; None where the file does not say who voted."""
        return None if self.evidence is None else self.evidence.frame(self.votes.items)

    @property
    def crowd(self) -> str:
        """What a flagged crowd did, in a sentence; empty without one."""
        if self.evidence is None or self.evidence.crowd is None or not self.evidence.crowd_flagged:
            return ""
        return f"A crowd is flagged. Each is {crowd_sentence(self.evidence.crowd, self.votes.items)}."

    def alike(self) -> list[dict[str, Any]]:
        """Flagged pairs of voters."""
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

    def ranks(self) -> list[tuple[Standing, Standing]]:
        """Each item's standing by all votes and without the flagged voters, in the order of the latter."""
        before = {standing.item: standing for standing in self.everyone.standings}
        return [(before[after.item], after) for after in self.trusted.standings]

    @property
    def left_alone(self) -> frozenset[str]:
        """Items that only votes of flagged voters compare with others: without them they have no rank."""
        alone = (
            {group[0].item for group in ranking.components() if len(group) == 1}
            for ranking in (self.trusted, self.everyone)
        )
        without, before = alone
        return frozenset(without - before)


def audit(
    votes: Votes,
    *,
    level: float = 0.05,
    duels_assigned: bool = True,
    ties: Ties = "half",
    top: int = 5,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Audit the votes: evidence on voters, the ranking with and without the flagged, fragility of the first ``top``.

    ``progress`` is called with 1 after each of two steps and of the ``tops``.

    >>> from fairduel.votes.synthetic import arena
    >>> print(audit(arena(seed=4)[0], top=1).summary()[1])
    Without them Birch leads, not Maple. 7 items change rank; the most is Maple, from 1 to 7.
    """
    done = progress or (lambda _: None)
    everyone = rank(votes, ties=ties)
    done(1)
    evidence, trusted, without = None, everyone, []
    if votes.voter is not None:
        evidence = audit_voters(votes, level=level, duels_assigned=duels_assigned)
        flagged = evidence.flagged_votes(votes)
        if flagged.any() and not flagged.all():
            trusted = rank(votes.without(flagged), ties=ties)
            without = fragility(votes.without(flagged), ties=ties)
    done(1)
    results = []
    for size in range(1, tops(votes, ties=ties, top=top) + 1):
        results += fragility(votes, top=size, ties=ties)
        done(1)
    rivals = challengers(votes, ties=ties)
    return Audit(votes, everyone, trusted, evidence, fragility=results, challengers=rivals, trusted_fragility=without)


def tops(votes: Votes, *, ties: Ties, top: int) -> int:
    """How many of the first 1, 2, … ``top`` items of the largest component can change."""
    return max(1, min(integer("top", top, least=1), int((votes.components(ties) == 0).sum()) - 1))


def _voter_summary(found: Audit) -> list[str]:
    evidence = found.evidence
    if evidence is None:
        return ["The file does not say who voted, so no voter could be checked."]
    flagged = evidence.flagged_votes(found.votes)
    level = evidence.settings["level"]
    if flagged.any():
        sentence = (
            f"{int(evidence.flagged.sum()):,} of {evidence.settings['voters_tested']:,} voters are flagged; they cast "
            f"{int(flagged.sum()):,} of {len(found.votes):,} votes. If all voters were honest, the chance of any flag "
            f"would be at most {level:.0%}."
        )
    else:
        sentence = (
            f"No voter is flagged: none of {evidence.settings['voters_tested']:,} gives enough evidence of lying "
            f"(level {level:.0%})."
        )
    sentences = [sentence]
    if untested := evidence.settings["voters_not_tested"]:
        sentences.append(
            f"{untested:,} {'voter was' if untested == 1 else 'voters were'} not tested alone: the others cast fewer "
            f"than {LEAST_OF_OTHERS} votes an item, which is too little to compare with."
        )
    hasty = int(evidence.hasty.sum())
    if not hasty:
        return sentences
    return [
        *sentences,
        f"{hasty:,} voters need less than a fifth of the usual {evidence.usual_seconds:.3g} seconds for a vote; "
        "voters.csv says who. Haste is careless, not false, so it flags nobody.",
    ]


def _leader_summary(found: Audit) -> list[str]:
    if found.evidence is None or not found.evidence.flagged.any():
        return []
    before, after = (next(ranking.components())[0].item for ranking in (found.everyone, found.trusted))
    left = sorted(found.left_alone)
    moved = [(old, new) for old, new in found.ranks() if old.rank != new.rank and new.item not in left]
    most = max(moved, key=lambda pair: abs(pair[0].rank - pair[1].rank), default=None)
    leads = f"Without them {after} leads, not {before}." if before != after else f"Without them {after} still leads."
    alone = (
        [f"Only flagged voters compared {', '.join(left)} with others: without them no rank is known."] if left else []
    )
    if most is None:
        return [f"{leads} No rank changes.", *alone]
    old, new = most
    return [f"{leads} {len(moved)} items change rank; the most is {new.item}, from {old.rank} to {new.rank}.", *alone]


def _advice(found: Audit) -> list[str]:
    advice = []
    evidence = found.evidence
    if evidence is None:
        advice.append("Record who votes (a pseudonym is enough): without it nobody can be told from a liar.")
    elif evidence.flagged.any():
        advice.append(
            "Look at the flagged voters and at why they are flagged. Use the ranking without them unless you can "
            "explain their votes. flagged-rows.csv lists the rows of their votes; nothing was deleted."
        )
        if evidence.crowd_flagged:
            advice.append(
                "Many voters with few votes push the same item. Nobody can tell which of them lie: ask for a login, or "
                "limit votes by address, before you trust new votes on that item."
            )
    results = found.trusted_fragility or [result for result in found.fragility if result.top == 1]
    leader = min((result for result in results if result.found), key=lambda result: result.found or 0, default=None)
    if leader is None or leader.found is None:
        return advice
    share = leader.found / leader.votes
    how_many = f"{leader.found:,} of {leader.votes:,} votes ({share:.2%})"
    standing = next(standing for standing in found.trusted.standings if standing.item == leader.loses)
    if share < _FRAGILE or leader.found <= max(_FEW, math.sqrt(leader.votes)):
        advice.append(
            f"Do not announce {leader.loses} as the winner: {how_many} would make {leader.gains} the leader. Call them "
            "tied, or collect more votes between the two."
        )
    elif standing.rank_high > 1:
        advice.append(
            f"Do not announce {leader.loses} as the winner: its true rank may be {standing.rank_low} to "
            f"{standing.rank_high}. Collect more votes on the first items."
        )
    else:
        advice.append(
            f"{leader.loses} leads safely against few false votes: it takes {how_many} to put {leader.gains} in front."
        )
    return advice
