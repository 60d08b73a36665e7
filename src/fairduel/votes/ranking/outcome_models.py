r"""Models of a vote's outcome (first wins, tie, second wins), fitted jointly with the side and with ties.

The log-odds of a decisive vote are z = θ_first − θ_second + β, where β is the advantage of being shown first.

======================  ==========================  =================================
model                   P(first), P(second)          P(tie)
======================  ==========================  =================================
``half``, ``drop``      σ(z), σ(−z)                  none: a tie is half a win for both, or dropped
``davidson``            ∝ exp(z/2), exp(−z/2)        ∝ ν (Davidson 1970; Davidson and Beaver 1977 with β)
``rao-kupper``          σ(z − η), σ(−z − η)          (e²ᵑ − 1) σ(z − η) σ(−z − η) (Rao and Kupper 1967)
======================  ==========================  =================================

All log-likelihoods are concave in (θ, β, log ν) or (θ, β, η), so Newton's method finds the maximum. A ridge of 0.01 per
parameter, a normal prior with a standard deviation of 10, keeps everything finite.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy import linalg, special

from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE
from fairduel.votes.votes import Codes, Votes, pair_sums, sums

OutcomeModel = Literal["half", "drop", "davidson", "rao-kupper"]
SCORE_DIGITS = 6
"""Scores that agree to this many digits have no order."""
_SMALL_STEP = 1e-8
_MOST_STEPS = 100
_MOST_SHARE = 0.98  # of ties, at the start


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How often each duel, first against second, ended how."""

    items: int
    first: Codes
    """Shape (r,)."""
    second: Codes
    """Shape (r,)."""
    counts: Matrix
    """How often the first won, they tied, and the second won, shape (r, 3)."""

    @classmethod
    def of(cls, votes: Votes) -> Self:
        """Count the outcomes of votes.

        >>> Outcomes.of(Votes.from_arrays("ab", [0, 0, 1], [1, 1, 0], [1, 0.5, 1])).counts.tolist()
        [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
        """
        keys = votes.first.astype(np.int64) * len(votes.items) + votes.second
        found, duel = np.unique(keys, return_inverse=True)
        outcome = np.rint(2.0 * (1.0 - votes.result)).astype(np.int64)
        counts = sums(duel * 3 + outcome, 3 * len(found), votes.weight).reshape(-1, 3)
        first, second = np.divmod(found, len(votes.items))
        return cls(len(votes.items), first.astype(np.int32), second.astype(np.int32), counts)

    def margins(self, scores: Vector, side: float) -> Vector:
        """Return z of each duel, shape (r,)."""
        return np.asarray(scores[self.first] - scores[self.second] + side)

    def total(self, values: Vector) -> Vector:
        """Sum the ``values`` (r,) of each item's duels, negated where it is the second, shape (K,)."""
        return sums(self.first, self.items, values) - sums(self.second, self.items, values)

    def laplacian(self, values: Vector) -> Matrix:
        """Return Σ v φφᵀ over the duels, shape (K, K), for ``values`` v (r,)."""
        between = pair_sums(self.first, self.second, self.items, values)
        result = -(between + between.T)
        np.fill_diagonal(result, -result.sum(axis=1))
        return result


class Slopes(NamedTuple):
    """The log-likelihood of outcomes, with its derivatives in z of each duel (r,) and in the tie parameter t."""

    log_likelihood: float
    z: Vector
    zz: Vector
    t: float
    zt: Vector
    tt: float


def slopes(model: OutcomeModel, counts: Matrix, z: Vector, tie: float) -> Slopes:
    """Return the log-likelihood of ``counts`` (r, 3) at margins ``z`` (r,), with its derivatives.

    ``tie`` is log ν of Davidson's model or η of Rao and Kupper's; the others ignore it.
    """
    if model == "davidson":
        return _davidson(counts, z, tie)
    ties = counts[:, 1]
    credit = {"half": 0.5, "drop": 0.0, "rao-kupper": 1.0}[model]
    won, lost = counts[:, 0] + credit * ties, counts[:, 2] + credit * ties
    if model != "rao-kupper":
        tie = 0.0
    elif tie <= 0.0:
        return Slopes(-math.inf, z, z, 0.0, z, 0.0)
    up, down = special.expit(z - tie), special.expit(-z - tie)
    first, second = won * (1.0 - up), lost * (1.0 - down)
    curved_up, curved_down = first * up, second * down
    value = float(won @ special.log_expit(z - tie) + lost @ special.log_expit(-z - tie))
    if model != "rao-kupper":
        return Slopes(value, first - second, -curved_up - curved_down, 0.0, np.zeros_like(z), 0.0)
    tied, left = float(ties.sum()), -math.expm1(-2.0 * tie)
    return Slopes(
        value + tied * (2.0 * tie + math.log(left)),
        first - second,
        -curved_up - curved_down,
        2.0 * tied / left - float(first.sum() + second.sum()),
        curved_up - curved_down,
        -4.0 * tied * math.exp(-2.0 * tie) / left**2 - float(curved_up.sum() + curved_down.sum()),
    )


def _davidson(counts: Matrix, z: Vector, tie: float) -> Slopes:
    games = counts.sum(axis=1)
    chances = outcome_chances("davidson", z, tie)
    mean, tied = 0.5 * (chances[:, 0] - chances[:, 2]), chances[:, 1]
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    return Slopes(
        float(np.sum(counts * logs, where=counts > 0.0)),
        0.5 * (counts[:, 0] - counts[:, 2]) - games * mean,
        -games * (0.25 * (1.0 - tied) - mean**2),
        float((counts[:, 1] - games * tied).sum()),
        games * mean * tied,
        -float(games @ (tied * (1.0 - tied))),
    )


def outcome_chances(model: OutcomeModel, z: Vector, tie: float) -> Matrix:
    """Return the probabilities that the first wins, of a tie, and that the second wins, shape (r, 3).

    >>> outcome_chances("davidson", np.zeros(1), 0.0).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    if model == "davidson":
        largest = np.maximum(0.5 * np.abs(z), tie)
        parts = np.exp(np.stack([0.5 * z - largest, tie - largest, -0.5 * z - largest]))
        return np.asarray((parts / parts.sum(axis=0)).T)
    shift = tie if model == "rao-kupper" else 0.0
    first, second = special.expit(z - shift), special.expit(-z - shift)
    return np.stack([first, np.maximum(1.0 - first - second, 0.0) if shift else np.zeros_like(z), second], axis=1)


@dataclass(frozen=True, eq=False)
class OutcomeFit:
    """A fitted model."""

    model: OutcomeModel
    scores: Vector
    """θ, shape (K,), with mean 0 in each component."""
    side: float
    """β, or 0 if it was not fitted."""
    tie: float
    """log ν or η; 0 without ties."""
    log_likelihood: float
    """Without the ridge."""
    hessian: Matrix
    """Of the penalised loss in θ, then β if fitted, then the tie parameter if the model has one, shape (d, d)."""


def fit_outcomes(
    outcomes: Outcomes, model: OutcomeModel, *, side: bool = False, ridge: float = TINY_RIDGE
) -> OutcomeFit:
    """Maximise the log-likelihood minus ½ ``ridge`` ‖θ‖², with β fitted if ``side``; ``"rao-kupper"`` needs a tie.

    >>> outcomes = Outcomes.of(Votes.from_arrays("ab", [0] * 4, [1] * 4, [1, 1, 1, 0]))
    >>> fitted = fit_outcomes(outcomes, "half")
    >>> (fitted.scores[0] - fitted.scores[1]).round(1) == np.log(3.0).round(1)
    np.True_
    """
    count, has_tie = outcomes.items, model in ("davidson", "rao-kupper")
    penalty = np.concatenate([np.full(count, ridge), np.full(side + has_tie, TINY_RIDGE)])
    point = np.zeros(len(penalty))
    if has_tie:
        share = min(float(outcomes.counts[:, 1].sum() / outcomes.counts.sum()), _MOST_SHARE) + 0.01
        point[-1] = math.log(2.0 * share / (1.0 - share)) if model == "davidson" else 2.0 * math.atanh(share)

    def at(point: Vector) -> tuple[float, Slopes]:
        z = outcomes.margins(point[:count], point[count] if side else 0.0)
        found = slopes(model, outcomes.counts, z, float(point[-1]) if has_tie else 0.0)
        return found.log_likelihood - 0.5 * float(penalty @ point**2), found

    value, found = at(point)
    for _ in range(_MOST_STEPS):
        extra = ([float(found.z.sum())] if side else []) + ([found.t] if has_tie else [])
        gradient = np.concatenate([outcomes.total(found.z), extra]) - penalty * point
        hessian = _hessian(outcomes, found, side=side, has_tie=has_tie) + np.diag(penalty)
        step = linalg.solve(hessian, gradient, assume_a="pos")
        size, near = 1.0, float(step @ gradient) < 1e-8
        after = at(point + step)
        while not near and after[0] < value + 1e-4 * size * float(step @ gradient) and size > 1e-10:
            size *= 0.5
            after = at(point + size * step)
        point, (value, found) = point + size * step, after
        if np.abs(step).max() <= _SMALL_STEP:
            scores = point[:count]
            advantage, tie = float(point[count]) if side else 0.0, float(point[-1]) if has_tie else 0.0
            return OutcomeFit(model, scores, advantage, tie, found.log_likelihood, hessian)
    raise ConvergenceError(f"the {model} model did not converge in {_MOST_STEPS} steps: check for extreme weights.")


def _hessian(outcomes: Outcomes, found: Slopes, *, side: bool, has_tie: bool) -> Matrix:
    """Return minus the second derivatives of the log-likelihood, shape (d, d)."""
    count = outcomes.items
    size = count + side + has_tie
    result = np.zeros((size, size))
    result[:count, :count] = outcomes.laplacian(-found.zz)
    if side:
        result[:count, count] = -outcomes.total(found.zz)
        result[count, count] = -found.zz.sum()
    if has_tie:
        result[:count, -1] = -outcomes.total(found.zt)
        if side:
            result[count, -1] = -found.zt.sum()
        result[-1, -1] = -found.tt
    return np.triu(result) + np.triu(result, 1).T
