"""Kernel features: rewards that are smooth, with a length scale."""

import math
from typing import Literal, Self, get_args

import numpy as np

from fairduel.checks import integer, positive
from fairduel.core.likelihood import hessian_of, loss, problem_of, solved
from fairduel.core.links import Link
from fairduel.duel import Matrix, Vector
from fairduel.errors import unknown_name
from fairduel.features.feature_map import LEARNED, FeatureMap, TrainingVotes

KernelName = Literal["rbf", "matern52"]
FEATURES = 60
"""m if nothing else is said: below 64, so that whole runs are compiled."""
_USUAL_SCALE = 0.5  # ℓ over the median distance of two actions
_SMALLEST = 1e-8  # eigenvalues, relative to the largest, that count as 0
_TRIED = (-1.0, 0.0, 1.0, 2.0)  # log₂ of the scales that the votes choose from, over the usual one
_DOUBT = 2.0  # log-likelihood by which the votes must favour a scale, per doubling
_DEGREES = 5  # of freedom of the t distribution that Matérn-5/2 frequencies have: 2ν


def kernel_matrix(kernel: KernelName, scale: float, one: Matrix, other: Matrix) -> Matrix:
    """k(x, y) of all pairs of rows of (n, d) and (p, d), shape (n, p).

    RBF: exp(−δ²/2ℓ²). Matérn-5/2: (1 + s + s²/3)e⁻ˢ with s = √5 δ/ℓ. δ is the distance and ℓ the ``scale``.
    """
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2.0 * one @ other.T
    squares = np.maximum(squares, 0.0) / scale**2
    if kernel == "rbf":
        return np.asarray(np.exp(-0.5 * squares))
    steps = np.sqrt(5.0 * squares)
    return np.asarray((1.0 + steps + steps**2 / 3.0) * np.exp(-steps))


def random_frequencies(rng: np.random.Generator, kernel: KernelName, shape: tuple[int, int], scale: float) -> Matrix:
    """Draw frequencies ω (m, d) from the spectral density of a kernel: the mean of cos ωᵀ(x − y) is k(x, y).

    RBF frequencies are Gaussian with standard deviation 1/ℓ; those of Matérn-5/2 have a t distribution with 5 degrees
    of freedom (Rahimi and Recht 2007).

    >>> omega = random_frequencies(np.random.default_rng(0), "rbf", (4000, 2), scale=1.0)
    >>> bool(abs(np.cos(omega @ [1.0, 0.0]).mean() - np.exp(-0.5)) < 0.02)
    True
    """
    frequencies = rng.standard_normal(shape) / scale
    if kernel == "matern52":
        frequencies *= np.sqrt(_DEGREES / rng.chisquare(_DEGREES, (shape[0], 1)))
    return frequencies


class Kernel(FeatureMap):
    """Features whose products are a kernel: similar actions have similar rewards.

    Fitted to known actions (n, d), φ(x) = Λ^(−½)Uᵀk(A, x) with the largest eigenvalues Λ of K = UΛUᵀ. If there are at
    most m of them that are not 0, products on these actions are the kernel exactly; on others it is Nyström's
    approximation. Without known actions, φ has m/2 random cosines and sines (Rahimi and Recht 2007).

    Args:
        kernel: ``"rbf"``, for very smooth rewards, or ``"matern52"``.
        scale: ℓ: how far apart actions are whose rewards are hardly related. ``None``: half the median distance of two
            actions. ``"votes"``: the agent begins with that, and its votes then choose among half, one, two and four
            times as much, by their likelihood.
        features: m, the most features.

    >>> known = np.linspace(-1.0, 1.0, 5)[:, None]
    >>> exact = Kernel("rbf", scale=0.5).fit(1, known)(known)
    >>> bool(np.allclose(exact @ exact.T, np.exp(-2.0 * (known - known.T) ** 2)))
    True
    """

    growth = 1.5  # a scale changes less than the features of a network

    def __init__(
        self,
        kernel: KernelName = "rbf",
        scale: float | Literal["votes"] | None = None,
        features: int = FEATURES,
    ) -> None:
        if kernel not in get_args(KernelName):
            raise unknown_name("kernel", str(kernel), get_args(KernelName))
        self.kernel: KernelName = kernel
        self.learns = scale == LEARNED
        self.scale = scale if scale is None or self.learns else positive("scale", scale)
        self.features = integer("features", features, least=2)
        super().__init__(kernel=kernel, scale=self.scale, features=self.features)

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:
        """Set the length scale and compute the features' weights."""
        usual = self.scale is None or self.learns
        scale = _USUAL_SCALE * median_distance(actions) if usual else float(self.scale)  # type: ignore[arg-type]
        self.arrays = {"scale": np.array([scale])}
        if self.learns:
            self.arrays["usual"] = np.array([scale])
        if are_known:
            self.arrays |= {"anchors": actions.copy(), "basis": self._basis(actions)}
        else:
            shape = (max(self.features // 2, 1), actions.shape[1])
            self.arrays["waves"] = random_frequencies(rng, self.kernel, shape, scale)

    def trained(self, ballots: TrainingVotes, *, link: Link, ridge: float, actions: Matrix | None = None) -> Self:
        """Return this kernel with the length scale under which the votes are most likely.

        The likelihood is integrated over all rewards by Laplace's method. Another than the usual scale must be e² times
        as likely per doubling, so that a few votes, or lies, do not change it.
        """
        tried = [self._at(float(self.arrays["usual"][0]) * 2.0**power) for power in _TRIED]
        found = [
            evidence_of_map(each.mapped(ballots.first) - each.mapped(ballots.second), ballots, link, ridge)
            for each in tried
        ]
        best = tried[int(np.argmax(np.array(found) - _DOUBT * np.abs(_TRIED)))]
        best.settle(self.dimension, ballots.first if actions is None else actions)
        return best

    def _at(self, scale: float) -> Self:
        """Return this kernel with another length scale."""
        new = self.unfitted()
        new.arrays = self.arrays | {"scale": np.array([scale])}
        if "anchors" in self.arrays:
            new.arrays["basis"] = new._basis(self.arrays["anchors"])  # noqa: SLF001
        else:
            new.arrays["waves"] = self.arrays["waves"] * (self.current_scale / scale)
        return new

    def _basis(self, anchors: Matrix) -> Matrix:
        """Λ^(−½)Uᵀ, shape (m, n)."""
        values, vectors = np.linalg.eigh(kernel_matrix(self.kernel, self.current_scale, anchors, anchors))
        kept = np.flatnonzero(values > _SMALLEST * values[-1])[::-1][: self.features]
        vectors = vectors[:, kept]
        vectors *= np.where(vectors[np.argmax(np.abs(vectors), axis=0), range(len(kept))] < 0, -1.0, 1.0)
        return np.ascontiguousarray((vectors / np.sqrt(values[kept])).T)

    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d)."""
        if "anchors" in self.arrays:
            similar = kernel_matrix(self.kernel, self.current_scale, actions, self.arrays["anchors"])
            return within_unit_ball(similar @ self.arrays["basis"].T)
        angles = actions @ self.arrays["waves"].T
        return np.hstack([np.cos(angles), np.sin(angles)]) * ((1.0 - 1e-12) / math.sqrt(angles.shape[1]))

    @property
    def current_scale(self) -> float:
        """ℓ, once the map is fitted."""
        return float(self.arrays["scale"][0])

    def __str__(self) -> str:
        values = [] if self.scale is None else [str(self.scale)]
        if self.features != FEATURES:
            values = [*(values or ["0"]), str(self.features)]
        return self.kernel + (f"({', '.join(values)})" if values else "")


def evidence_of_map(differences: Matrix, ballots: TrainingVotes, link: Link, ridge: float) -> float:
    """Return log ∫ p(votes | θ) N(θ | 0, I/λ) dθ up to a constant, by Laplace's method.

    With θ̂ of eq. (MLE) and H the Hessian there, it is −loss(θ̂) − ½ log det(H/λ).

    Args:
        differences: φ of each vote, shape (n, m).
        ballots: The votes.
        link: σ.
        ridge: λ.
    """
    problem = problem_of(
        np.ascontiguousarray(differences), ballots.weights, ballots.weights * ballots.shares, ridge, link
    )
    theta = solved(np.zeros(differences.shape[1]), problem).theta
    curvatures: Vector = ballots.weights * link.slope(differences @ theta)
    hessian = hessian_of(problem.differences, curvatures, ridge) / ridge
    return float(-loss(theta, problem) - 0.5 * np.linalg.slogdet(hessian)[1])


def median_distance(actions: Matrix) -> float:
    """The median distance of two different rows of ``actions`` (n, d); 1 if there is only one."""
    rows = actions[:: max(1, len(actions) // 256)]
    squares = (rows**2).sum(axis=1)
    apart = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * rows @ rows.T, 0.0))
    positive_ones = apart[np.triu_indices(len(rows), 1)]
    positive_ones = positive_ones[positive_ones > 1e-9]
    return float(np.median(positive_ones)) if positive_ones.size else 1.0


def within_unit_ball(rows: Matrix) -> Matrix:
    """Scale rows (n, m) that are longer than 1 to norm 1."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) * (1.0 + 1e-12), 1.0))
