"""How the ranking depends on what a tie means: half a win, nothing, or an outcome of its own."""

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from fairduel.duel import Vector
from fairduel.votes.intervals import ranks_within
from fairduel.votes.outcome_models import SCORE_DIGITS, OutcomeModel, Outcomes, fit_outcomes
from fairduel.votes.votes import Codes, Indices, Votes
from fairduel.votes.words import listed, ordinal

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
        leader = f"{first.leader} leads whatever a tie means"
        if len(leaders) > 1:
            who = [f"{name} ({listed(titles)})" for name, titles in leaders.items()]
            leader = f"who leads depends on what a tie means, {' or '.join(who)}"
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
