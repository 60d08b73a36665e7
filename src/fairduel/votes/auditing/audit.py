"""Audit recorded votes: check voters, rank with and without the flagged ones, and test how fragile the result is."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from fairduel.checks import integer
from fairduel.votes.auditing.bursts import BurstScan
from fairduel.votes.auditing.camps import Camps
from fairduel.votes.auditing.known_answers import KnownAnswers
from fairduel.votes.auditing.voters import LEAST_OF_OTHERS, Evidence, crowd_sentence
from fairduel.votes.certifying.certificates import searchable_groups
from fairduel.votes.certifying.search import Fragility, Group
from fairduel.votes.given import takes_votes
from fairduel.votes.judging import judge, ranking_to_show
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.many_items import MOST_DENSE
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import Standing
from fairduel.votes.timing import duration_text
from fairduel.votes.verdict import Verdict, headlines
from fairduel.votes.votes import Ties, Votes
from fairduel.words import counted_noun, listed, shortened

_RANKS = ("rank", "rank_low", "rank_high")
_MOST_EXAMINED = 300  # items; with more, what changes the top 2, …, or helps each challenger, takes minutes
_TOO_MANY = (
    f"With more than {MOST_DENSE:,} items, nobody examined how few votes would change first place, nor whether some "
    "voters share an order of their own."
)
_TOO_FEW = f"fewer than {LEAST_OF_OTHERS} votes per item, too few to compare with."


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
    """Fragility of the leader, the top 2, …, with all votes; of the leader of each group, if there are several. Groups
    of more than 1,000 items are left out."""
    challengers: Sequence[Fragility]
    """Fragility of the leader of the largest group against each of the next items; empty above 300 items."""
    trusted_fragility: Sequence[Fragility]
    """Fragility of the leader with those weights; empty if ``shown`` counts all votes fully."""
    burst: BurstScan
    """The stretch of votes that differs most from the rest, and ``shown`` without it."""
    camps: Camps
    """The camps that voters form; none if the file does not say who voted."""

    def summary(self) -> list[str]:
        """Summarise the findings in a few sentences, conclusion first."""
        fragile = [_after("All votes", result) for result in self.fragility[:2]]
        fragile += [_after("After the audit", result) for result in self.trusted_fragility]
        details = self.verdicts[0].details if len(self.verdicts) == 1 else []
        voters, burst = _voter_summary(self), self.burst_summary()
        left_out = [_TOO_MANY] if len(next(self.everyone.components())) > MOST_DENSE else []
        shown = len(headlines(self.verdicts))
        after, before = self.headlines()[:shown], self.headlines()[shown:]
        return [*after, *details, *before, *_rank_changes(self), *voters, *burst, *fragile, *left_out]

    def in_short(self) -> list[str]:
        """Return the sentences of the summary that come first on a page: who wins, who is flagged, what it survives."""
        survives = [self.verdicts[0].survives] if len(self.verdicts) == 1 else []
        return [each for each in (*self.headlines(), *_voter_summary(self)[:1], *survives) if each]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the votes decide about each group, given all that the audit found."""
        return self.shown.verdicts

    def headlines(self) -> list[str]:
        """Return the verdicts, after the audit first if it changes the ranking, and then with all votes."""
        found = headlines(self.verdicts)
        if self.shown is self.everyone:
            return found
        after, before = [f"{_without(self)}: {each}" for each in found], headlines(self.everyone.verdicts)
        if before == found:
            return [*after, "With all votes, the verdict is the same."]
        return after + [f"With all votes: {each.replace(', so you can stop', '')}" for each in before]

    def burst_summary(self) -> list[str]:
        """Say whether a stretch of votes differs, and what it does to the ranking that is shown."""
        stretch, *change = self.burst.sentences()
        after = self.shown is not self.everyone
        return [stretch, *(f"After the audit: {each}" if after else each for each in change)]

    def advice(self) -> list[str]:
        """Recommend what to do."""
        return [*_voter_advice(self), *_leader_advice(self), *self.burst.advice()]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        found: dict[str, Any] = {"summary": self.summary(), "advice": self.advice()}
        found["verdicts"] = [verdict.record() for verdict in self.verdicts]
        if self.voters is not None:
            found["flagged"] = self.voters.filter("flagged").to_dicts()
            found["alike"] = self.alike()
            found["camps"] = self.camps.record()
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
        """Whether any voter is flagged, any crowd differs, or any two voters are nearly identical."""
        return self.evidence is not None and self.evidence.someone_differs

    @property
    def shown(self) -> Ranking:
        """The ranking to go by: ``trusted`` if the audit finds anyone, otherwise ``everyone``."""
        return ranking_to_show(self.everyone, self.trusted, self.evidence)

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
        return f"This group differs: {sentence}. All of their votes on it count less, for the item or against it."

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
        """Return the verdict on the largest group."""
        return self.headlines()[0]

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


@takes_votes
def audit(
    votes: Votes,
    *,
    level: float = 0.05,
    duels_assigned: bool = True,
    ties: Ties = "half",
    top: int = 5,
    lies: int = 0,
    votes_per_voter: float | None = None,
    known: KnownAnswers | None = None,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    r"""Audit the votes: evidence on voters, rankings before and after, and how fragile the result is.

    Fragility is computed for the leader, the top 2, … up to ``top``. ``progress`` is called with 1 after each of three
    steps and each of the ``tops``. Features per vote are ignored. The verdict allows for ``lies`` false votes beyond
    those that do not count; :func:`~fairduel.votes.decide` explains it, and ``votes_per_voter``.

    >>> from fairduel.votes.attacking.liars import arena
    >>> print(*audit(arena(seed=4)[0], top=1).headlines(), sep="\n")
    Without the 8 flagged voters: Rowan, Birch, Elm, Hazel and Fir are tied for first of 12 items.
    With all votes: It is too early to say which of 12 items is the best.
    """
    done, votes = progress or (lambda _: None), votes.without_features()
    judged = judge(
        votes,
        level=level,
        duels_assigned=duels_assigned,
        ties=ties,
        lies=lies,
        votes_per_voter=votes_per_voter,
        known=known,
        progress=done,
    )
    everyone, trusted = judged.everyone, judged.trusted
    by_all, results = searchable_groups(votes, everyone), list[Fragility]()
    without = list[Fragility]()
    if judged.shown is everyone:
        by_all = judged.groups
    else:
        without = _leaders(trusted, judged.groups)
    several = len(list(everyone.components())) > 1
    largest = len(next(everyone.components()))
    for size in range(1, tops(votes, ties=ties, top=top) + 1):
        if several or largest <= MOST_DENSE:
            results += _leaders(everyone, by_all) if several else by_all(0).fragility(size)
        done(1)
    rivals = by_all(0).challengers() if largest <= _MOST_EXAMINED else []
    if rivals:
        fewest = min(results[0], *rivals, key=_size)  # predictions of the best pair can be wrong
        results[0] = replace(fewest, at_least=results[0].at_least)
    return Audit(
        votes,
        everyone,
        trusted,
        judged.evidence,
        fragility=results,
        challengers=rivals,
        trusted_fragility=without,
        burst=judged.burst,
        camps=judged.camps,
    )


def _size(result: Fragility) -> float:
    return math.inf if result.found is None else result.found


def _leaders(ranking: Ranking, prepared: Callable[[int], Group]) -> list[Fragility]:
    """Return the fragility of the leader of each component with at least two items, unless they are too many."""
    groups = [group for group in ranking.components() if len(group) > 1]
    return [
        replace(result, group=group[0].group if len(groups) > 1 else "")
        for number, group in enumerate(groups)
        if len(group) <= MOST_DENSE
        for result in prepared(number).fragility()
    ]


def tops(votes: Votes, *, ties: Ties, top: int) -> int:
    """Return up to which k ≤ ``top`` the top k can change.

    With several components, or more than 300 items, only leaders are examined.
    """
    component = votes.components(ties)
    size = len(component) if component.max(initial=0) == 0 and len(component) <= _MOST_EXAMINED else 2
    return max(1, min(integer("top", top, least=1), size - 1))


def _without(found: Audit) -> str:
    """Name the votes that do not count fully after the audit."""
    flagged = 0 if found.evidence is None else int(found.evidence.flagged.sum())
    if not flagged:
        camps = len(found.camps.found)
        words = "If the camp counts less" if camps == 1 else "If the camps count less"
        return words if camps else "If votes count by reliability"
    return f"Without the {'flagged voter' if flagged == 1 else f'{flagged:,} flagged voters'}"


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
        return ["No voter could be checked, because these votes do not say who cast them."]
    sentences = _flag_summary(found, evidence)
    if doubtful := int(evidence.doubtful.sum()):
        sentences.append(
            f"{counted_noun(doubtful, 'other voter') if evidence.flagged.any() else counted_noun(doubtful, 'voter')} "
            "failed most duels with a known answer, but answered too few of them for a flag."
        )
    sentences += [*found.camps.sentences(), *evidence.about_duels]
    if found.crowd:
        sentences.append(found.crowd)
    if pairs := int(evidence.pairs.flagged.sum()):
        sentences.append(
            f"{counted_noun(pairs, 'pair')} of voters gave nearly the same answers; where they voted on the same duel, "
            "only the first counts."
        )
    if (untested := evidence.settings["voters_not_tested"]) and evidence.settings["voters_tested"]:
        sentences.append(
            f"{counted_noun(untested, 'voter')} {'was' if untested == 1 else 'were'} not tested individually: everyone "
            f"else cast {_TOO_FEW}"
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


def _flag_summary(found: Audit, evidence: Evidence) -> list[str]:
    """Say how many voters are flagged, and what that means."""
    flagged, tested = evidence.flagged_votes(found.votes), evidence.settings["voters_tested"]
    level = f"{100.0 * evidence.settings['level']:.3g}%"
    if flagged.any():
        count = int(evidence.flagged.sum())
        sentences = [
            f"{count:,} of {tested:,} voters {'is' if count == 1 else 'are'} flagged: their votes show patterns that "
            "honest voting is unlikely to produce.",
            f"They cast {int(flagged.sum()):,} of {len(found.votes):,} votes.",
            f"If everyone were honest, there would be at most a {level} chance of flagging anybody.",
        ]
        if found.trusted is found.everyone:
            sentences.append("No votes are left without them, so nobody is left out.")
    elif not tested:
        sentences = [f"No voter could be tested individually: everyone else cast {_TOO_FEW}"]
    elif found.camps.found or evidence.doubtful.any():
        but = found.camps.brief if found.camps.found else "that does not mean that all is well"
        sentences = [f"No voter stands out enough to be flagged (level {level}), but {but}."]
    else:
        sentences = [
            f"None of the {tested:,} voters tested shows a pattern that honest voting is unlikely to produce (level "
            f"{level}). That does not prove that all are honest: a few false votes among many go unnoticed."
        ]
    return sentences


def _voter_advice(found: Audit) -> list[str]:
    evidence = found.evidence
    if evidence is None:
        return ["Record who votes (a pseudonym is enough): without it, no voter can be checked."]
    advice = found.camps.advice()
    if evidence.flagged.any():
        advice.append(
            "A flag is statistical evidence, not proof. Look at each flagged voter's reason and votes "
            "(flagged-rows.csv), then decide. If you leave them out, say so and show both rankings. Nothing was "
            "deleted."
        )
    if _counts_exposure(evidence):
        advice.append(
            "Flags for seeing one item too often assume that your system chose the pairs, in the same way for everyone "
            "at the same time and in the same context. If voters chose their own, rerun with --voters-choose-duels."
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
    """Say which winners can be announced, as the verdicts say."""
    if len(found.verdicts) == 1:
        [verdict] = found.verdicts
        return [
            "Announce nothing yet."
            if verdict.state == "tie" and found.burst.changes_leader
            else _winner_advice(verdict)
        ]
    won = [f"{each.items[0]} (group {each.group})" for each in found.verdicts if each.can_stop]
    unclear = len(found.verdicts) - len(won)
    announce = [f"{len(won)} of {len(found.verdicts)} winners can be announced: {shortened(won)}."] if won else []
    others = f"Do not announce a winner in {'the other ' if won else ''}{counted_noun(unclear, 'group')}."
    return [*announce, *([others] if unclear else [])]


def _winner_advice(verdict: Verdict) -> str:
    if verdict.state == "won":
        return f"Announce {verdict.items[0]} as the winner, and say how many false votes that survives."
    if verdict.state == "leads":
        return f"Say that {verdict.items[0]} leads, but do not announce a winner yet."
    if verdict.equal:
        return f"Announce a tie between {shortened(verdict.items)}."
    if verdict.state == "tie":
        return f"Announce a tie between {shortened(verdict.items)}, or collect more votes on them."
    if verdict.doubts:
        return "Announce nothing yet: more votes like these may not settle it."
    return "Announce nothing yet: collect more votes."
