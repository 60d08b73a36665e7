r"""What changes if the advantage of the item shown first is taken out, or if a tie means something else.

A tie is half a win, nothing, or an outcome of its own. The advantage is one parameter β that is added to the scores:
P(first wins) = σ(θ_first − θ_second + β). With ψ_g the sum of voter g's residuals times the side, the scores projected
out, and h_g the voter's share of the information J about β,

    Var(β̂) = Σ_g ψ_g² / (1 − h_g) / J²,

which allows for voters who lean to one side (cluster-robust, with Bell and McCaffrey's correction for one parameter).
It is enlarged for the K scores that were fitted, too. The interval uses Student's t, with Satterthwaite's degrees of
freedom for voters of different size; without voters, every vote is a group of its own.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import linalg, special

from fairduel.duel import Vector
from fairduel.votes.ranking.intervals import ranks_within
from fairduel.votes.ranking.outcome_models import SCORE_DIGITS, OutcomeFit, OutcomeModel, Outcomes, fit_outcomes
from fairduel.votes.verdict import CONFIDENCE
from fairduel.votes.votes import Codes, Indices, Ties, Votes, distinct_duels, sums
from fairduel.words import counted_noun, listed, ordinal

BAND = 0.01
"""A share within 50% ± this is immaterial: ±0.04 log-odds, the standard error of a score after 2,500 votes."""
_LEAST_ITEMS = 3  # two items' position and quality cannot be told apart
_ONE_ORDER = 0.95  # share of votes in a pair's usual order from which pairs have one order each
_LEAST_SHOWN = 4.0  # votes on a pair, on average over votes: with fewer, one order may be chance
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
    reason = _unknown(used, ties)
    if reason:
        return Position("unknown", reason=reason)
    outcomes, component = Outcomes.of(used), votes.components(ties)
    without, fitted = (fit_outcomes(outcomes, ties, side=side) for side in (False, True))
    reach, freedom, groups = _reach(used, fitted)
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


@dataclass(frozen=True)
class OneOrder:
    """What it does that nearly every pair is shown in one order, so that position passes for quality."""

    share: float
    """Probability that the first of two equal items wins."""
    low: float
    """Lower end of its 95% interval."""
    high: float
    """Upper end of that interval."""
    scores: Vector
    """Scores without the advantage of being first, shape (K,)."""

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        return (
            "Nearly every pair was shown in one order, and of two equal items the one shown first would win "
            f"{self.share:.0%} of the votes ({self.low:.0%} to {self.high:.0%}). Ranks and ranges do not allow for "
            "that: show each pair in both orders."
        )


def one_order(votes: Votes, ties: Ties = "half") -> OneOrder | None:
    """Return what position does to a ranking of votes whose pairs have one order each, or None if nothing is seen.

    Where both orders occur, position averages out. Where each pair has one, only the scores' consistency across three
    items or more tells position from quality.

    >>> one, other = np.repeat([0, 0, 1], 300), np.repeat([1, 2, 2], 300)
    >>> found = one_order(Votes.from_arrays("abc", one, other, np.tile([1, 1, 0], 300)))
    >>> round(found.share, 2), np.abs(found.scores).max() < 0.01
    (0.67, np.True_)
    """
    used = votes.select(votes.counts(ties) > 0.0)
    size = len(used.items)
    if not used.sides_known or len(np.unique([used.first, used.second])) < _LEAST_ITEMS:
        return None
    _, low, _, row, turned = distinct_duels(used.first, used.second, size)
    shown, reverse = sums(row, len(low), used.weight), sums(row, len(low), used.weight * turned)
    mostly = np.maximum(reverse, shown - reverse)
    if mostly.sum() < _ONE_ORDER * shown.sum() or (shown**2).sum() < _LEAST_SHOWN * shown.sum():
        return None
    if _always_wins(used, 1.0) or _always_wins(used, 0.0):
        return None
    fitted = fit_outcomes(Outcomes.of(used), ties, side=True)
    reach, _, _ = _reach(used, fitted)
    if abs(fitted.side) <= reach:
        return None
    share, least, most = (float(special.expit(fitted.side + each)) for each in (0.0, -reach, reach))
    return OneOrder(share, least, most, fitted.scores)


def _reach(votes: Votes, fitted: OutcomeFit) -> tuple[float, float, int]:
    """Return half the width of β's 95% interval, its degrees of freedom and the number of groups."""
    variance, freedom, groups = _variance(votes, fitted)
    return float(special.stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE)) * math.sqrt(variance), freedom, groups


def _always_wins(votes: Votes, value: float) -> bool:
    """Whether every decisive vote has this result, beyond chance, so that the order says who won."""
    decisive = votes.result[~votes.is_tie]
    return len(decisive) >= _SURE_VOTES and bool((decisive == value).all())


def _unknown(votes: Votes, ties: Ties) -> str:
    """Say why the side is unknown, or return an empty text."""
    if not votes.sides_known:
        return "the file does not say which item was shown first"
    for value, side in ((1.0, "first"), (0.0, "second")):
        if _always_wins(votes, value):
            return f"the {side} item always wins, so the file lists winner and loser, not who was shown first"
    shown = np.unique(votes.first.astype(np.int64) * len(votes.items) + votes.second)
    first, second = np.divmod(shown, len(votes.items))
    pairs = np.unique(np.minimum(first, second) * len(votes.items) + np.maximum(first, second))
    in_one_order = len(pairs) == len(shown) and len(votes) - len(pairs) >= _SURE_VOTES
    if in_one_order and one_order(votes, ties) is None:
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


TITLES: dict[OutcomeModel, str] = {
    "half": "half a win each",
    "drop": "dropped",
    "davidson": "Davidson",
    "rao-kupper": "Rao–Kupper",
}


@dataclass(frozen=True, eq=False)
class TieRule:
    """The ranking under one treatment of ties."""

    model: OutcomeModel
    scores: Vector
    """Shape (K,)."""
    ranks: Indices
    """Within components, shape (K,)."""
    leader: str
    """Of the largest component."""
    moved: int
    """Number of items with another rank than if a tie is half a win."""
    largest_move: int
    """Most ranks that an item moves."""
    mover: str
    """The item that moves most, or an empty text."""
    parameter: float
    """ν (Davidson) or θ = e^η (Rao–Kupper); NaN otherwise."""
    log_likelihood: float
    """Of all outcomes, ties included; NaN if the rule has no probability of ties."""


@dataclass(frozen=True, eq=False)
class TieReview:
    """What ties change. Created by :func:`review_ties`."""

    share: float
    """Share of votes that are ties."""
    rules: tuple[TieRule, ...]
    """Empty if there are no ties."""

    @property
    def better(self) -> TieRule | None:
        """The model of ties that fits better, if there are ties."""
        modelled = [rule for rule in self.rules if not math.isnan(rule.log_likelihood)]
        return max(modelled, key=lambda rule: rule.log_likelihood, default=None)

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        if not self.rules:
            return "Ties: there are none."
        first = self.rules[0]
        leaders = dict[str, list[str]]()
        for rule in self.rules:
            leaders.setdefault(rule.leader, []).append(TITLES[rule.model])
        leader = f"{first.leader} has the highest score no matter how ties are counted"
        if len(leaders) > 1:
            who = [f"{name} ({listed(titles)})" for name, titles in leaders.items()]
            leader = f"which item has the highest score depends on how ties are counted, {' or '.join(who)}"
        most = max(self.rules, key=lambda rule: rule.largest_move)
        change = "no rank changes"
        if most.largest_move:
            before, after = first.ranks, most.ranks
            item = int(np.argmax(np.abs(after - before)))
            change = (
                f"the largest change is {most.mover}, {ordinal(int(before[item]))} to {ordinal(int(after[item]))} "
                f"({TITLES[most.model]})"
            )
        return f"Ties: {self.share:.1%} of votes; {leader}; {change}."


def review_ties(votes: Votes) -> TieReview:
    """Rank the items under each treatment of ties.

    Scores are maximum likelihood, without shrinking or weights, so that only the treatment differs. ``half`` and
    ``drop`` say nothing about how likely a tie is, so only the last two have comparable likelihoods.

    >>> found = review_ties(Votes.from_arrays("ab", [0] * 6, [1] * 6, [1, 1, 1, 0.5, 0.5, 0]))
    >>> round(found.share, 2), [rule.leader for rule in found.rules]
    (0.33, ['a', 'a', 'a', 'a'])
    """
    votes = votes.select(votes.weight > 0.0)
    outcomes, component = Outcomes.of(votes), votes.components()
    share = float(votes.weight @ votes.is_tie / votes.weight.sum())
    if share == 0.0:
        return TieReview(0.0, ())
    rules: list[TieRule] = []
    for model in get_args(OutcomeModel):
        rules.append(_rule(votes, outcomes, component, model, rules[0].ranks if rules else None))
    return TieReview(share, tuple(rules))


def _rule(votes: Votes, outcomes: Outcomes, component: Codes, model: OutcomeModel, before: Indices | None) -> TieRule:
    fitted = fit_outcomes(outcomes, model)
    ranks = ranks_within(fitted.scores.round(SCORE_DIGITS), component)
    moves = np.abs(ranks - (ranks if before is None else before))
    is_modelled = model in ("davidson", "rao-kupper")
    return TieRule(
        model,
        fitted.scores,
        ranks,
        leader=votes.items[int(np.flatnonzero((component == 0) & (ranks == 1))[0])],
        moved=int((moves > 0).sum()),
        largest_move=int(moves.max()),
        mover=votes.items[int(moves.argmax())] if moves.any() else "",
        parameter=math.exp(fitted.tie) if is_modelled else math.nan,
        log_likelihood=fitted.log_likelihood if is_modelled else math.nan,
    )
