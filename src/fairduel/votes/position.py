r"""Whether the item shown first has an advantage, and what changes if that is taken out.

One parameter β is added to the scores: P(first wins) = σ(θ_first − θ_second + β). With ψ_g the sum of voter g's
residuals times the side, the scores projected out, and h_g the voter's share of the information J about β,

    Var(β̂) = Σ_g ψ_g² / (1 − h_g) / J²,

which allows for voters who lean to one side (cluster-robust, with Bell and McCaffrey's correction for one parameter).
It is enlarged for the K scores that were fitted, too. The interval uses Student's t, with Satterthwaite's degrees of
freedom for voters of different size; without voters, every vote is a group of its own.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg, special, stats

from fairduel.duel import Vector
from fairduel.votes.intervals import CONFIDENCE, ranks_within
from fairduel.votes.outcome_models import SCORE_DIGITS, OutcomeFit, Outcomes, fit_outcomes
from fairduel.votes.votes import Codes, Indices, Ties, Votes, sums
from fairduel.votes.words import counted_noun, ordinal

BAND = 0.01
"""A share within 50% ± this is immaterial: ±0.04 log-odds, the standard error of a score after 2,500 votes."""
_SURE_VOTES = 20  # a coin has the same side that often once in a million times

PositionVerdict = Literal["immaterial", "biased", "unclear", "unknown"]


@dataclass(frozen=True, eq=False)
class Position:
    """The advantage of being shown first. Created by :func:`position_bias`.

    Args:
        verdict: ``"immaterial"`` (the interval lies in the band), ``"biased"`` (the interval excludes 50% and is not in
            the band), ``"unclear"``, or ``"unknown"`` (the file does not say which item was shown first).
        share: Probability that the first of two equal items wins; a tie is half a win, unless dropped.
        low: Lower end of its 95% interval.
        high: Upper end of that interval.
        raw_share: Share of votes that the first item won.
        freedom: Degrees of freedom of the interval.
        groups: Number of voters, or of votes if voters are unknown.
        most_shown: Item whose share of votes in which it was shown first is farthest from half, and that share.
        moved: Items whose rank changes if position is fitted: name, rank without, rank with.
        reason: Why the verdict is ``"unknown"``.
    """

    verdict: PositionVerdict
    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    raw_share: float = math.nan
    freedom: float = math.nan
    groups: int = 0
    has_voters: bool = False
    most_shown: tuple[str, float] = ("", math.nan)
    moved: tuple[tuple[str, int, int], ...] = ()
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        if self.verdict == "unknown":
            return f"Position bias cannot be tested: {self.reason}."
        about = ", for other voters like these" if self.has_voters else ""
        low, high = f"{0.5 - BAND:.0%}", f"{0.5 + BAND:.0%}"
        return (
            f"Position: {_VERDICTS[self.verdict]}. Of two equal items, the one shown first gets {self.share:.1%} of "
            f"the vote (95% interval {self.low:.1%} to {self.high:.1%}{about}; {low} to {high} is immaterial). "
            + self._order()
        )

    def _order(self) -> str:
        if not self.moved:
            return "Fitting position out changes no rank."
        item, before, after = self.moved[0]
        return (
            f"Fitting position out changes {counted_noun(len(self.moved), 'rank')}, most for {item}: "
            f"{ordinal(before)} to {ordinal(after)}."
        )


_VERDICTS = {
    "immaterial": "no bias that matters",
    "biased": "biased",
    "unclear": "unclear, a bias that matters is possible",
}


def position_bias(votes: Votes, ties: Ties = "half") -> Position:
    """Estimate the advantage of the item shown first.

    Args:
        votes: The votes.
        ties: A tie is ``"half"`` a win for each, or dropped (``"drop"``).

    Returns:
        The advantage with its interval, and the ranks that change without it.

    >>> votes = Votes.from_arrays("ab", [0, 1] * 200, [1, 0] * 200, [1, 1, 1, 1, 1, 1, 0, 0] * 50)
    >>> found = position_bias(votes)
    >>> found.verdict, round(found.share, 2), found.low > 0.7
    ('biased', 0.75, True)
    """
    used = votes.select(votes.counts(ties) > 0.0)
    reason = _unknown(used)
    if reason:
        return Position("unknown", reason=reason)
    outcomes, component = Outcomes.of(used), votes.components(ties)
    without, fitted = (fit_outcomes(outcomes, ties, side=side) for side in (False, True))
    variance, freedom, groups = _variance(used, fitted)
    reach = float(stats.t.ppf(0.5 + 0.5 * CONFIDENCE, freedom)) * math.sqrt(variance)
    share, low, high = (float(special.expit(fitted.side + each)) for each in (0.0, -reach, reach))
    verdict: PositionVerdict = "unclear"
    if low >= 0.5 - BAND and high <= 0.5 + BAND:
        verdict = "immaterial"
    elif not low <= 0.5 <= high:
        verdict = "biased"
    before, after = (ranks_within(each.scores.round(SCORE_DIGITS), component) for each in (without, fitted))
    moved = np.flatnonzero(before != after)
    moved = moved[np.lexsort((before[moved], -np.abs(after - before)[moved]))]
    return Position(
        verdict,
        share,
        low,
        high,
        raw_share=float(used.weight @ used.result / used.weight.sum()),
        freedom=freedom,
        groups=groups,
        has_voters=_clusters(used)[1],
        most_shown=_most_shown(used),
        moved=tuple((votes.items[item], int(before[item]), int(after[item])) for item in moved),
    )


def _unknown(votes: Votes) -> str:
    """Say why the side is unknown, or return an empty text."""
    if not votes.sides_known:
        return "the file does not say which item was shown first"
    decisive = votes.result[~votes.is_tie]
    for value, side in ((1.0, "first"), (0.0, "second")):
        if len(decisive) >= _SURE_VOTES and (decisive == value).all():
            return f"the {side} item always wins, so the file lists winner and loser, not who was shown first"
    shown = np.unique(votes.first.astype(np.int64) * len(votes.items) + votes.second)
    first, second = np.divmod(shown, len(votes.items))
    pairs = np.unique(np.minimum(first, second) * len(votes.items) + np.maximum(first, second))
    if len(pairs) == len(shown) and len(votes) - len(pairs) >= _SURE_VOTES:
        return "every pair is always listed in the same order"
    return ""


def _clusters(votes: Votes) -> tuple[Codes | Indices, bool]:
    """Return the group of each vote (n,), and whether groups are voters."""
    if votes.voter is None or len(np.unique(votes.voter)) == 1:
        return np.arange(len(votes)), False
    return votes.voter, True


def _variance(votes: Votes, fitted: OutcomeFit) -> tuple[float, float, int]:
    """Return Var(β̂), its degrees of freedom and the number of groups."""
    items, hessian = len(votes.items), fitted.hessian
    of_side = linalg.solve(hessian[:items, :items], hessian[:items, items], assume_a="pos")
    chance = special.expit(fitted.scores[votes.first] - fitted.scores[votes.second] + fitted.side)
    lever = 1.0 - of_side[votes.first] + of_side[votes.second]
    group, _ = _clusters(votes)
    count = int(group.max()) + 1
    information = sums(group, count, votes.weight * lever**2 * chance * (1.0 - chance))
    residual = sums(group, count, votes.weight * lever * (votes.result - chance))
    voted = information > 0.0
    total = float(information.sum())
    share, residual = information[voted] / total, residual[voted]
    left = max(len(votes) - len(np.unique([votes.first, votes.second])), 1)
    enlarged = len(votes) / left
    variance = enlarged * float((residual**2 / np.maximum(1.0 - share, 1e-9)).sum()) / total**2
    lean = max(float((residual**2).sum()) - total, 0.0) / (total * float((share**2).sum()))  # τ² J
    expected = share * (1.0 + lean * share)
    freedom = max(float(expected.sum() ** 2 / (expected**2).sum()) - 1.0, 1.0)
    return variance, freedom, int(voted.sum())


def _most_shown(votes: Votes) -> tuple[str, float]:
    """Return the item whose share of votes as the first is farthest from half, beyond chance, and the share."""
    first, second = (sums(item, len(votes.items), votes.weight) for item in (votes.first, votes.second))
    excess: Vector = np.abs(first - second) / np.sqrt(np.maximum(first + second, 1.0))
    item = int(np.argmax(excess))
    return votes.items[item], float(first[item] / (first[item] + second[item]))
