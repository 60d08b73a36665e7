"""Estimators of θ: exact, lazy or one-pass.

``"exact"`` computes the MLE in every round, as in the paper. ``"lazy"`` does so only when det Σ has doubled and there
are 10% more outcomes. ``"one-pass"`` is online mirror descent, with O(d²) time and memory per round.

Mirror descent is after Zhang and Sugiyama (2023) for logistic bandits, with the uncertainty weight w of eq. (weight) on
each outcome. With the curvature H of all earlier outcomes, one outcome (φ, w, o) moves θ to the minimiser over the ball
‖θ‖ ≤ B of

    ⟨g, θ⟩ + ‖θ − θ_t‖²_H̃ / (2η),   g = w [σ(φᵀθ_t) − o] φ,   H̃ = H + η w σ′(φᵀθ_t) φφᵀ,

and then H grows by w σ′(φᵀθ_{t+1}) φφᵀ. (For d ≥ 64, θ is scaled into the ball instead.)
Its price compared with the MLE: θ depends on the order of the outcomes and does not solve eq. (MLE), so the theorems'
radii do not apply; and ‖θ‖ ≤ B always holds.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import boolean, ensure, integer
from fairduel.core.compiling import compiled, inlined
from fairduel.core.information import HIGH_DIMENSION, Information, checked_array, dot, multiply, products, rank_one
from fairduel.core.likelihood import (
    Comparisons,
    FitProblem,
    ToldRows,
    add_outcome,
    check_converged,
    converging,
    hessian_of,
    longest_of,
    one_step_ahead,
    size_of,
    solve,
    solve_by_root,
)
from fairduel.core.links import Link, LinkNumbers, probability_and_slope, slope
from fairduel.duel import Matrix, Vector

STEP = 2.0
"""η; on tuning seeds regret is flat from 2 to 5 (see docs/speed.md). The analysis asks for ½ log 2 + 2B + 1."""


@compiled
def mirror_step(
    theta: Vector,
    curvature: Matrix,
    inverse: Matrix,
    outcomes: int,
    difference: Vector,
    weight: float,
    share: float,
    step: float,
    ball: float,
    link: LinkNumbers,
) -> Vector:
    """Return θ (d,) after one more outcome, ``share`` = o; update H = ``curvature`` and its ``inverse`` in place."""
    p, s = probability_and_slope(link.kind, link.scale, dot(difference, theta))
    image = multiply(inverse, difference)
    # H̃⁻¹φ by Sherman–Morrison; H̃ itself is needed only for a projection.
    image /= 1.0 + step * weight * s * dot(difference, image)
    result = theta - step * weight * (p - share) * image
    norm = math.sqrt(dot(result, result))
    if norm > ball and theta.size >= HIGH_DIMENSION:
        result *= ball / norm  # the projection in H̃'s norm would cost d³
    elif norm > ball:
        tilted = curvature.copy()
        for i in range(theta.size):
            for j in range(theta.size):
                tilted[i, j] += step * weight * s * (difference[i] * difference[j])
        result = _into_ball(result, tilted, ball)
    margin = dot(difference, result)
    gain = weight * slope(link.kind, link.scale, margin)
    rank_one(curvature, inverse, difference, gain, outcomes)
    return result


@compiled
def _into_ball(theta: Vector, metric: Matrix, ball: float) -> Vector:
    """Project θ (d,) onto ‖·‖ ≤ B in the metric M (d, d).

    The projection is (M + μI)⁻¹Mθ for the μ that puts it on the sphere; its norm decreases with μ.
    """
    target = metric @ theta
    low, high = 0.0, np.trace(metric)
    while _norm(_pulled(metric, high, target)) > ball:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _norm(_pulled(metric, middle, target)) > ball:
            low = middle
        else:
            high = middle
    return _pulled(metric, high, target)


@compiled
def _pulled(metric: Matrix, pull: float, target: Vector) -> Vector:
    """(M + μI)⁻¹v, shape (d,)."""
    shifted = metric.copy()
    for i in range(target.size):
        shifted[i, i] += pull
    return solve_by_root(np.linalg.cholesky(shifted), target)  # type: ignore[arg-type]  # it stays float64


@compiled
def _norm(vector: Vector) -> float:
    return math.sqrt(dot(vector, vector))


EstimatorName = Literal["exact", "lazy", "one-pass"]
_EXACT, _LAZY, _ONE_PASS = range(3)
_LOG_TWO = math.log(2.0)


class EstimatorPlan(NamedTuple):
    """The settings of an :class:`Estimator`, for compiled functions."""

    kind: int
    ridge: float
    ball: float
    step: float
    link: LinkNumbers


class EstimatorArrays(NamedTuple):
    """The arrays of an :class:`Estimator`."""

    theta: Vector
    """θ, shape (d,)."""
    matrices: NDArray[np.float64]
    """Exact and lazy: L of the Hessian LLᵀ at the last fit, or about its inverse if :func:`keeps_inverse` says so,
    shape (1, d, d). One-pass: H and H⁻¹, shape (2, d, d)."""
    told: ToldRows
    marks: Vector
    """Scalars, shape (8,): the number of outcomes, now and at the last fit; log det Σ at the last fit; whether there
    are new outcomes; whether there is a root; the ratio of the gradient to its tolerance; the problem's size; the
    number of updates of H."""


_OUTCOMES, _FITTED_OUTCOMES, _FITTED_AT, _IS_STALE, _HAS_ROOT, EXCESS, _SIZE, UPDATES = range(8)


@inlined
def worth_a_fit(gain: float, outcomes_then: int, outcomes_now: int) -> bool:
    """Whether a lazy fit is due: det Σ has doubled (log gain ≥ log 2) and there are 10% more outcomes."""
    return gain >= _LOG_TWO and 10 * outcomes_now >= 11 * outcomes_then


@inlined
def tell_step(
    plan: EstimatorPlan,
    arrays: EstimatorArrays,
    pair: tuple[int, int],
    difference: Vector,
    weight: float,
    share: float,
) -> None:
    """Learn the outcome of a duel from φ (d,), w and o = ``share``; there must be room for one more row.

    Self-duels are ignored.
    """
    if pair[0] == pair[1]:
        return
    arrays.marks[_OUTCOMES] += 1
    arrays.marks[_IS_STALE] = 1
    if plan.kind == _ONE_PASS:
        arrays.marks[UPDATES] += 1
        curvature, inverse = arrays.matrices[0], arrays.matrices[1]
        arrays.theta[:] = mirror_step(
            arrays.theta,
            curvature,
            inverse,
            int(arrays.marks[UPDATES]),
            difference,
            weight,
            share,
            plan.step,
            plan.ball,
            plan.link,
        )
        return
    add_outcome(arrays.told, difference, weight, share)
    arrays.marks[_SIZE] += weight * longest_of(difference)
    if plan.kind == _EXACT and arrays.marks[_HAS_ROOT]:
        arrays.theta[:] = one_step_ahead(arrays.theta, arrays.matrices[0], difference, weight, share, plan.link)


@inlined
def refit(plan: EstimatorPlan, arrays: EstimatorArrays, log_determinant: float) -> bool:
    """Update θ if a fit is due, and return whether it is new; ``log_determinant`` is log det Σ.

    A fit that does not converge only sets ``EXCESS``. A one-pass estimate was updated by :func:`tell_step`.
    """
    marks = arrays.marks
    if not marks[_IS_STALE]:
        return False
    if plan.kind == _ONE_PASS:
        marks[_IS_STALE] = 0
        return True
    gain = log_determinant - marks[_FITTED_AT]
    if plan.kind == _LAZY and not worth_a_fit(gain, marks[_FITTED_OUTCOMES], marks[_OUTCOMES]):
        return False
    told = arrays.told
    rows = told.size[0]
    differences, weights, wins = told.differences[:rows], told.sums[0, :rows], told.sums[1, :rows]
    problem = FitProblem(differences, weights, wins, plan.ridge, plan.link, marks[_SIZE])
    is_large = marks[_HAS_ROOT] and arrays.theta.size >= HIGH_DIMENSION
    root = arrays.matrices[0] if is_large else np.empty((0, 0))
    estimate = solve(arrays.theta, problem, plan.ball, root, is_repeated=True)
    marks[EXCESS] = estimate.gradient / estimate.tolerance
    if not marks[EXCESS] <= 1.0:
        return False
    arrays.theta[:] = estimate.theta
    marks[_HAS_ROOT] = estimate.root.size > 0
    if marks[_HAS_ROOT]:
        arrays.matrices[0] = estimate.root
    marks[_IS_STALE] = 0
    marks[_FITTED_AT], marks[_FITTED_OUTCOMES] = log_determinant, marks[_OUTCOMES]
    return True


@compiled
def hessian(plan: EstimatorPlan, arrays: EstimatorArrays) -> Matrix:
    """λI + Σ_i w_i σ′(φ_iᵀθ) φ_i φ_iᵀ over all outcomes told, shape (d, d).

    One-pass estimates keep it as H, in which the slope of each outcome is that of the θ it led to.
    """
    if plan.kind == _ONE_PASS:
        return arrays.matrices[0].copy()  # type: ignore[no-any-return]
    rows, link = arrays.told.size[0], plan.link
    differences = arrays.told.differences[:rows]
    curvatures = products(differences, arrays.theta)
    for i in range(rows):
        curvatures[i] = arrays.told.sums[0, i] * slope(link.kind, link.scale, curvatures[i])
    return hessian_of(differences, curvatures, plan.ridge)


class Estimator:
    """θ and the outcomes that it is estimated from.

    >>> estimator = Estimator("exact", 1, ridge=0.25, link=Link("logistic"))
    >>> estimator.tell((0, 1), np.array([1.0]), weight=1.0, share=1.0)
    >>> estimator.fitted(log_determinant=0.0).round(4)
    array([1.0426])
    """

    def __init__(
        self, name: EstimatorName, dimension: int, *, ridge: float, link: Link, ball: float = math.inf, room: int = 64
    ) -> None:
        """Start with θ = 0; ``ball`` is the bound on ‖θ‖, ``room`` the initial number of rows."""
        kind = get_args(EstimatorName).index(name)
        one_pass = kind == _ONE_PASS
        self.plan = EstimatorPlan(kind, ridge, ball, STEP, link.numbers)
        self._told = Comparisons(dimension, 1 if one_pass else room)
        self._arrays = EstimatorArrays(
            theta=np.zeros(dimension),
            matrices=np.array([ridge * np.eye(dimension), np.eye(dimension) / ridge][: 1 + one_pass]),
            told=self._told.rows,
            marks=np.array([0.0, 0.0, -math.inf, 0.0, 0.0, 0.0, 1.0, 0.0]),
        )
        self._seen: tuple[float, list[NDArray[np.float64]]] | None = None  # log det Σ at the last look, and its fit

    @property
    def arrays(self) -> EstimatorArrays:
        """The arrays for compiled functions, with room for one more outcome."""
        self._told.make_room()
        if self._arrays.told is not self._told.rows:
            self._arrays = self._arrays._replace(told=self._told.rows)
        return self._arrays

    def take(self, arrays: EstimatorArrays) -> None:
        """Go on with the arrays that compiled functions have filled for an estimator with these settings."""
        self._arrays, self._told.rows, self._seen = arrays, arrays.told, None

    @property
    def theta(self) -> Vector:
        """θ as of the last fit, shape (d,)."""
        return self._arrays.theta

    @property
    def told(self) -> Comparisons:
        """All outcomes told so far; empty for one-pass estimates."""
        return self._told

    @property
    def outcomes(self) -> int:
        """How many outcomes were told."""
        return int(self._arrays.marks[_OUTCOMES])

    @property
    def is_one_pass(self) -> bool:
        """Whether it keeps no outcomes."""
        return self.plan.kind == _ONE_PASS

    def tell(self, pair: tuple[int, int], difference: Vector, *, weight: float, share: float) -> None:
        """Learn the outcome of a duel with this difference (d,); ``share`` is 1, 0, or ½ for a tie."""
        self._seen = None
        tell_step(self.plan, self.arrays, pair, difference, weight, share)

    def refit(self, log_determinant: float) -> bool:
        """Update θ if a fit is due, and return whether it is new."""
        marks, is_new = self._arrays.marks, False
        if marks[_IS_STALE] and self._seen is not None and self._seen[0] == log_determinant:
            is_new = True
            for array, fit in zip(self._fit, self._seen[1], strict=True):
                array[:] = fit
        elif marks[_IS_STALE]:
            with converging(self.plan.ridge):
                is_new = refit(self.plan, self._arrays, log_determinant)
            check_converged(float(marks[EXCESS]), self.plan.ridge)
        return is_new

    def fitted(self, log_determinant: float) -> Vector:
        """Return θ (d,), after refitting if that is due."""
        self.refit(log_determinant)
        return self._arrays.theta

    @contextmanager
    def looked_at(self, log_determinant: float) -> Iterator[bool]:
        """Refit if that is due, yield whether θ is new, and forget the fit: a look changes nothing that follows."""
        changed = self._fit
        before = [array.copy() for array in changed]
        try:
            is_new = self.refit(log_determinant)
            if is_new:  # the next refit finds the same
                self._seen = log_determinant, [array.copy() for array in changed]
            yield is_new
        finally:
            for array, kept in zip(changed, before, strict=True):
                array[:] = kept

    @property
    def _fit(self) -> tuple[NDArray[np.float64], ...]:
        """What a fit changes."""
        return self._arrays.theta, self._arrays.matrices, self._arrays.marks

    @property
    def hessian(self) -> Matrix:
        """λI + Σ_i w_i σ′(φ_iᵀθ) φ_i φ_iᵀ over all outcomes told, shape (d, d)."""
        return hessian(self.plan, self._arrays)

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`restore` needs, as JSON values and arrays."""
        outcomes, fitted_outcomes, fitted_at, is_stale, has_root, _, _, updates = self._arrays.marks.tolist()
        matrices = self._arrays.matrices.copy()
        curvature = None
        if self.is_one_pass:
            curvature = {"matrix": matrices[0], "inverse": matrices[1], "updates": int(updates)}
        return {
            "theta": self.theta.copy(),
            "root": matrices[0] if has_root else np.empty((0, 0)),
            "told": self._told.state(),
            "curvature": curvature,
            "outcomes": int(outcomes),
            "fitted_outcomes": int(fitted_outcomes),
            "fitted_at": fitted_at,
            "stale": bool(is_stale),
        }

    def restore(self, state: dict[str, Any], most: int) -> None:
        """Load what :meth:`state` returned, after checking it; there can be at most ``most`` outcomes."""
        dimension = len(self.theta)
        theta = checked_array("θ", state["theta"], (dimension,))
        has_root = np.shape(state["root"]) != (0, 0)
        one_pass = self.is_one_pass
        shape = (dimension, dimension) if has_root and not one_pass else (0, 0)
        root = checked_array("the Hessian's root", state["root"], shape)
        outcomes = integer("the number of outcomes", state["outcomes"])
        fitted_outcomes = integer("the number of outcomes at the last fit", state["fitted_outcomes"])
        fitted_at = state["fitted_at"]
        ensure(outcomes <= most, f"there are {outcomes} outcomes but only {most} duels")
        ensure(fitted_outcomes <= outcomes, "the last fit had more outcomes than there are")
        ensure(type(fitted_at) is float and fitted_at < math.inf, "log det Σ at the last fit is not a number")
        ensure((root.diagonal() > 0).all(), "the Hessian's root has a diagonal entry ≤ 0")
        told = Comparisons.from_state(state["told"], dimension)
        ensure(len(told.votes) <= outcomes, f"there are {len(told.votes)} votes but only {outcomes} outcomes")
        is_stale = boolean("stale", state["stale"])
        size = size_of(told.differences, told.weights)
        updates = 0
        if one_pass:
            curvature = Information.from_state(state["curvature"], dimension)
            self._arrays.matrices[0], self._arrays.matrices[1] = curvature.matrix, curvature.inverse
            updates = state["curvature"]["updates"]
        else:
            self._told = told
            self._arrays = self._arrays._replace(told=told.rows)
        if has_root:
            self._arrays.matrices[0] = root
        self._seen = None
        self._arrays.theta[:] = theta
        self._arrays.marks[:] = outcomes, fitted_outcomes, fitted_at, is_stale, has_root, 0.0, size, updates
