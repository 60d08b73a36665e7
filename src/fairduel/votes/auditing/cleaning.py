"""Clean recorded votes: weigh them as the audit does, rank the items by these weights, and delete nothing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.votes.auditing.voters import Evidence
from fairduel.votes.judging import judge
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.reading.read import Reading, renamed
from fairduel.votes.votes import Mask, Ties, Votes
from fairduel.words import counted_noun


@dataclass(frozen=True, eq=False, repr=False)
class Cleaned(Result):
    """Votes with what the audit makes of each, and the ranking that follows.

    Created by :func:`clean`.

    Args:
        reading: The votes as they were read.
        evidence: The evidence on each voter; None if the file does not say who voted.
        trust: How much each vote counts, shape ``(n,)``: 1 each if nobody is flagged and no group differs; otherwise 0
            for a flagged voter's, at most 2, and 1 on average.
        ranking: The ranking that :func:`audit` shows, with its verdict: with these weights, or by all votes if none of
            them has any weight left.
    """

    reading: Reading
    evidence: Evidence | None
    trust: Vector
    ranking: Ranking

    @property
    def votes(self) -> Votes:
        """All votes, also those that do not count."""
        return self.reading.votes

    @property
    def flagged(self) -> Mask:
        """Which votes were cast by flagged voters, shape (n,)."""
        if self.evidence is None:
            return np.zeros(len(self.votes), dtype=np.bool_)
        return self.evidence.flagged_votes(self.votes)

    def reasons(self) -> NDArray[np.object_]:
        """Return why votes count less, shape (n,): a flag, a near-identical voter, or a crowd; otherwise empty.

        Weights by reliability have no reason of their own: they depend on all votes of the voter.
        """
        result = np.full(len(self.votes), "", dtype=object)
        if self.evidence is None:
            return result
        if (crowd := self.evidence.crowd) is not None:
            for push in crowd.differs:
                on_item = (self.votes.first == push.item) | (self.votes.second == push.item)
                told = f"one of the occasional voters who, as a group, {push.sentence(self.votes.items)}"
                result[on_item & crowd.voters[self.votes.cast_by]] = told
        result[self.evidence.pairs.repeated(self.votes)] = "repeats the vote of a near-identical voter"
        why = np.array(self.evidence.why, dtype=object)[self.votes.cast_by]
        return np.where(self.flagged, why, result)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per vote: its row in the file and all columns read, then weight, flagged and reason.

        The weight is how many votes the row counts after the audit. A column of the file that has the name of one of
        these four gets "(column)" added to its name.
        """
        added = {"weight": self.votes.weight * self.trust, "flagged": self.flagged}
        reason = pl.Series("reason", self.reasons().tolist(), dtype=pl.String)
        table = renamed(self.reading.table, "row", *added, "reason")
        return pl.DataFrame({"row": self.votes.row}).hstack(table).hstack([*pl.DataFrame(added), reason])

    def brief(self) -> str:
        """Say who won after the audit, and how many voters are flagged."""
        return " ".join([self.ranking.brief(), *self.summary()])

    def summary(self) -> list[str]:
        """Say how many voters are flagged, how many votes they cast, and whether any votes are left."""
        votes = counted_noun(len(self.votes), "vote")
        if self.evidence is None:
            return [f"The file does not say who voted, so no voter was checked: all {votes} count fully."]
        voters, flagged = counted_noun(len(self.evidence.voters), "voter"), int(self.evidence.flagged.sum())
        sentences = [f"None of the {voters} is flagged."]
        if flagged:
            them = f"{flagged:,} of {voters} {'is' if flagged == 1 else 'are'} flagged"
            sentences = [f"{them}: {int(self.flagged.sum()):,} of {votes} count nothing."]
        if not (self.trust * self.votes.weight).any():
            sentences.append("No vote is left after the audit, so the ranking is by all votes.")
        return sentences


def clean(
    reading: Reading,
    *,
    ties: Ties = "half",
    level: float = 0.05,
    duels_assigned: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Cleaned:
    """Weigh the votes as an audit does, and rank the items by these weights.

    Args:
        reading: The votes, from :func:`fairduel.votes.read_votes`.
        ties: A tie counts as ``"half"`` a win for each item, or is ignored (``"drop"``).
        level: Maximum probability of any flag if all voters are honest.
        duels_assigned: Whether the system chooses who votes on what.
        progress: Called with 1 after each of three steps.

    Returns:
        The votes with their weights, and the ranking.

    Raises:
        BadInputError: No vote counts.

    >>> from fairduel.votes.reading.read import votes_of
    >>> from fairduel.votes.attacking.liars import arena
    >>> cleaned = clean(votes_of(arena(seed=4)[0].to_frame()))
    >>> cleaned.to_frame().columns
    ['row', 'first', 'second', 'winner', 'voter', 'weight', 'flagged', 'reason']
    >>> int(cleaned.flagged.sum()), cleaned.ranking.standings[0].item
    (344, 'Rowan')
    """
    judged = judge(
        reading.votes.without_features(),
        level=level,
        duels_assigned=duels_assigned,
        ties=ties,
        progress=progress or (lambda _: None),
    )
    return Cleaned(reading, judged.evidence, judged.reliability, judged.shown)
