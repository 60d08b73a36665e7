r"""Estimate scores with a ridge chosen from the votes, and say how uncertain they are.

The votes of one voter share that voter's tastes, and the votes on one prompt share its peculiarities. So the log-odds
of a vote with difference φ are φᵀ(θ + u_voter + u_context), where every voter and every context has its own
u ~ N(0, τ²I). The scores themselves are modelled as θ ~ N(0, σ²I).

Votes that count a = f·w (frequency times weight) have information I = Σ a s φφᵀ, with s the slope of the logistic
function. The estimate maximises the likelihood minus λ/2 ‖θ‖². With H = I + λ and A_g the part of I that belongs to
group g (a voter, or a context), its error is about H⁻¹(noise + Σ_g A_g u_g − λθ), and has covariance

    V = H⁻¹ (B + τ² Σ_g A_g² + λ) H⁻¹,   B = Σ f w² s φφᵀ,   λ = 1/σ².

**τ²** is one number for all items, so a few voters with many votes reveal it. T = Σ_g Σ_k r_gk² / I_kk, with r_g the
sum of the group's residuals times φ, has expectation b + cτ². The fit makes residuals smaller; b and c, averages of T
over simulated residuals of the linearised fit, allow for that. T has about ν degrees of freedom (Satterthwaite 1946),
so draws of τ², with T ν/χ²_ν in place of T, reflect how little a few voters reveal.

**σ²** solves E‖θ̂‖² = σ² tr((H⁻¹I)²) + tr(H⁻¹(B + τ²Σ_g A_g²)H⁻¹). A tenth of a further item, with a score of ±1, is
added, so that few votes do not suggest σ = 0. The ridge keeps the scores of items that won every vote finite, and their
errors small: without it, the more clearly an item wins, the less certain its score (Hauck and Donner 1977).

λ shrinks the scores as if voters had no tastes. What is known about θ with tastes, E[θ | θ̂] and its covariance, follows
from Var(θ̂) = σ²(H⁻¹I)² + V − λH⁻² and Cov(θ, θ̂) = σ²IH⁻¹, averaged over draws of τ².
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse, special

from fairduel.duel import Matrix, Vector
from fairduel.votes.design import Differences, PairsAndNumbers
from fairduel.votes.votes import Codes, Indices, sums

_PRIOR_ITEMS, _PRIOR_VARIANCE = 0.1, 1.0  # a tenth of a further item with a score of ±1
_ROUNDS = 30
_CLOSE = 1e-4  # in log λ
_LEAST_RIDGE, _MOST_RIDGE = 0.01, 1e6
_MOST_PROBES, _LEAST_PROBES, _PROBED = 64, 2, 200_000  # simulated residuals: fewer of many votes are as accurate
_NEWTON_STEPS, _SMALL_STEP = 20, 1e-6
_STEEPEST = -0.2  # slope of the secant that solves for λ, which is between −1 and 0
_DENSE = 0.05  # share of entries above which a matrix is multiplied as dense
_NO_VARIANCE = 1e-10  # relative; the mean of a component has none, and its inverse would be rounding errors
_POSTERIORS, _MOST_POSTERIORS = 30, 300  # draws of τ² to average over; one of more items than the second number
_ENOUGH_FREEDOM = 1e5  # then draws of τ² are all close to its estimate
_LEAST_FREEDOM = 1.0  # fewer degrees of freedom: the groups share too few items to be compared


FOR_FEATURES = "_for_features"
"""End of the name of a source of tastes for features per vote."""


class Source(NamedTuple):
    """Groups of votes that share tastes: the voters, or the contexts."""

    name: str
    variance: float
    """τ²."""
    covariance: Matrix
    """Covariance of θ if τ² were 1, shape (d, d)."""


@dataclass(frozen=True, eq=False)
class Moments:
    """What determines τ² of each of m sources."""

    observed: Vector
    """T, shape (m,)."""
    expected: Matrix
    """The expectation of T is ``expected`` (1, τ²…)ᵀ, shape (m, m + 1)."""
    freedom: Vector
    """ν, shape (m,)."""
    error: Vector
    """E‖θ̂ − θ‖² from noise, and from each source if its τ² were 1, shape (m + 1,)."""

    @property
    def fitted(self) -> Vector:
        """τ² of each source, shape (m,)."""
        return np.asarray(self.variances(self.observed[None])[0])

    @property
    def taste_factor(self) -> float:
        """By what factor tastes enlarge the noise: o."""
        return 1.0 + float(self.fitted @ self.error[1:] / self.error[0])

    def variances(self, observed: Matrix) -> Matrix:
        """Solve for τ² ≥ 0, shape (n, m), given ``observed`` values of T (n, m)."""
        excess, slopes = observed - self.expected[:, 0], self.expected[:, 1:]
        alone = np.maximum(excess / np.diag(slopes), 0.0)
        together = np.linalg.solve(slopes, excess.T).T
        possible = (together >= 0.0).all(axis=1, keepdims=True)
        return np.where(possible, together, np.where(together < 0.0, 0.0, alone))

    def draws(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw τ², shape (count, m)."""
        shape = count, len(self.freedom)
        return self.variances(self.observed * self.freedom / rng.chisquare(self.freedom, size=shape))


class Spread(NamedTuple):
    """What determines σ²."""

    observed: float
    """‖θ̂‖²."""
    noise: float
    """How much of it is noise, on average."""
    slope: float
    """By how much it grows with σ²."""
    freedom: float
    """Degrees of freedom of ‖θ̂‖² (Satterthwaite)."""

    @property
    def variance(self) -> float:
        """σ²."""
        return float(self._variances(self.observed))

    def ratios(self, count: int, rng: np.random.Generator) -> Vector:
        """Draw σ², divided by its estimate, shape (count,)."""
        chi = rng.chisquare(self.freedom, size=count)
        return np.asarray(self._variances(self.observed * self.freedom / chi) / self.variance)

    def _variances(self, observed: Any) -> Any:
        signal = np.maximum(observed - self.noise, 0.0)
        return (signal + _PRIOR_ITEMS * _PRIOR_VARIANCE) / (self.slope + _PRIOR_ITEMS)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance of an estimate, by source."""

    sampling: Matrix
    """H⁻¹BH⁻¹, shape (d, d)."""
    shrinking: Matrix
    """λH⁻², shape (d, d)."""
    sources: Sequence[Source]
    moments: Moments
    spread: "Spread"

    @property
    def covariance(self) -> Matrix:
        """V, shape (d, d)."""
        shared = (source.variance * source.covariance for source in self.sources)
        return sum(shared, self.sampling + self.shrinking)

    def mapped(self, change: Callable[[Matrix], Matrix]) -> "Uncertainty":
        """Apply a change of variables to all covariances."""
        sources = [source._replace(covariance=change(source.covariance)) for source in self.sources]
        return Uncertainty(change(self.sampling), change(self.shrinking), sources, self.moments, self.spread)

    def draws(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw errors of the estimate, shape (count, d); τ² is drawn too."""
        errors = rng.normal(size=(count, len(self.sampling))) @ half(self.sampling + self.shrinking)
        for source, variance in zip(self.sources, self.moments.draws(count, rng).T, strict=True):
            errors += np.sqrt(variance)[:, None] * (rng.normal(size=errors.shape) @ half(source.covariance))
        return errors


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The penalised likelihood around an estimate, to compare items whose score is far from the others'."""

    differences: Differences
    counted: Vector
    """Σ f w per row, (r,)."""
    wins: Vector
    """The same of votes won, (r,)."""
    ridge: float
    theta: Vector

    def steepness(self, contrasts: Matrix, needed: Vector) -> Vector:
        """Return by what factor Wald's statistic understates that cᵀθ > 0, shape (p,), for ``contrasts`` c (p, d).

        It is √(2D)/z, where D is by how much the likelihood falls if cᵀθ = 0, and z the same for a quadratic
        likelihood. Where this cannot reach ``needed`` (p,), an upper bound is returned, which is cheaper: the fall
        in the direction of H⁻¹c.
        """
        chance = special.expit(self.differences.margins(self.theta))
        hessian = self.differences.information(self.counted * chance * (1.0 - chance))
        hessian += self.ridge * np.eye(len(self.theta))
        moved = linalg.solve(hessian, contrasts.T, assume_a="pos").T
        gap, variance = contrasts @ self.theta, np.einsum("ij,ij->i", contrasts, moved)
        steps = moved * (gap / variance)[:, None]
        quadratic = gap / np.sqrt(variance)
        result = np.concatenate(
            [self._roots(self.theta - part) for part in np.array_split(steps, len(steps) // 100 + 1)]
        )
        for place in np.flatnonzero(result >= needed * quadratic):
            result[place] = self._roots(self._constrained(contrasts[place], self.theta - steps[place])[None])[0]
        return np.asarray(result / quadratic)

    def _constrained(self, contrast: Vector, theta: Vector) -> Vector:
        """Maximise the likelihood among all θ with cᵀθ = 0, by Newton steps from such a θ."""
        for _ in range(_NEWTON_STEPS):
            margins = self.differences.margins(theta)
            chance = special.expit(margins)
            hessian = self.differences.information(self.counted * chance * (1.0 - chance))
            hessian += self.ridge * np.eye(len(theta))
            gradient = self.differences.total(self.counted * chance - self.wins) + self.ridge * theta
            both = linalg.solve(hessian, np.column_stack([gradient, contrast]), assume_a="pos")
            step = both[:, 0] - both[:, 1] * (contrast @ both[:, 0]) / (contrast @ both[:, 1])
            theta = theta - step
            if np.abs(step).max() < _SMALL_STEP:
                break
        return theta

    def _roots(self, theta: Matrix) -> Vector:
        """Return √(2D) of each θ (p, d), where D is how much the likelihood falls, shape (p,)."""
        return np.asarray(np.sqrt(np.maximum(2.0 * (self._losses(theta) - self._losses(self.theta[None])), 0.0)))

    def _losses(self, theta: Matrix) -> Vector:
        margins = self.differences.margins(theta)
        losses = np.logaddexp(0.0, margins) @ self.counted - margins @ self.wins
        return np.asarray(losses + 0.5 * self.ridge * (theta**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class ShrunkenFit:
    """An estimate."""

    theta: Vector
    """Shape (d,)."""
    ridge: float
    """λ."""
    spread: float
    """σ, the standard deviation of the scores behind the ridge."""
    uncertainty: Uncertainty
    posterior: tuple[Vector, Matrix]
    """E[θ | θ̂], shape (d,), and its covariance, shape (d, d)."""
    likelihood: Likelihood
    steps: int
    """Newton steps of the last fit."""


def shrunken_fit(
    differences: Differences,
    row: Indices,
    won: Vector,
    frequency: Vector,
    weight: Vector,
    *,
    ridge: float | None = None,
    groups: Mapping[str, Codes] | None = None,
) -> ShrunkenFit:
    """Estimate θ from n votes, with the ridge chosen from the votes unless given.

    Vote i is on row ``row[i]`` of ``differences``, with result ``won[i]`` (1, 0 or ½) for the row's first side; it
    occurred ``frequency[i]`` times and counts ``weight[i]`` each time. ``groups`` names the sources of shared tastes,
    each with the group of every vote (n,), numbered from 0.

    >>> from fairduel.votes.design import Pairs
    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> fit = shrunken_fit(pairs, np.zeros(4, np.int64), np.array([1.0, 1, 1, 0]), np.ones(4), np.ones(4), ridge=0.0)
    >>> (fit.theta[0] - fit.theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """
    told = _Told.of(differences, row, won, frequency, weight, groups or {})
    theta, steps = told.estimate(1.0 if ridge is None else ridge)
    used, measured = ridge, None
    if used is None:
        theta, used, steps = told.choose_ridge(theta)
        moments, _ = measured = told.moments(theta, used)
        if moments.taste_factor > 1.0:  # tastes change the ridge, which changes them little
            theta, used, steps = told.choose_ridge(theta, used, moments.taste_factor)
            measured = None
    found, posterior = told.uncertainty(theta, used, measured)
    spread = math.sqrt(1.0 / used) if used else math.inf
    return ShrunkenFit(theta, used, spread, found, posterior, told.likelihood(theta, used), steps)


class _Sums(NamedTuple):
    """Sums over votes with frequency f and weight w, per row or per entry."""

    counted: Vector
    """Σ f w."""
    wins: Vector
    """Σ f w·won."""
    noise: Vector
    """Σ f w²."""


@dataclass(frozen=True, eq=False)
class _Told:
    """Votes by row and by entry: all votes of one voter on one row in one context."""

    differences: Differences
    rows: _Sums
    """Shape (r,)."""
    entries: _Sums
    """Shape (e,)."""
    row: Indices
    """Row of each entry, shape (e,)."""
    phi: sparse.csr_array
    """φ of each entry, shape (e, d)."""
    sources: Mapping[str, tuple[sparse.csr_array, Indices]]
    """φ of each entry in the coordinates (g, k) of the groups of a source, shape (cells, e), and the k of each cell."""

    @classmethod
    def of(
        cls,
        differences: Differences,
        row: Indices,
        won: Vector,
        frequency: Vector,
        weight: Vector,
        groups: Mapping[str, Codes],
    ) -> "_Told":
        """Collect the votes; see :func:`shrunken_fit`."""
        counted = frequency * weight
        groups = _sharing(groups, float(np.ceil(frequency).sum()))
        entry = row
        for group in groups.values():
            entry = np.unique(entry * (int(group.max(initial=0)) + 1) + group, return_inverse=True)[1]
        some_vote = np.zeros(int(entry.max(initial=-1)) + 1, dtype=np.int64)
        some_vote[entry] = np.arange(len(row))

        def totals(place: Indices, count: int) -> _Sums:
            return _Sums(*(sums(place, count, values) for values in (counted, counted * won, counted * weight)))

        phi = differences.of_votes(row[some_vote] if groups else row[:0])
        sources = dict[str, tuple[sparse.csr_array, Indices]]()
        for name, group in groups.items():
            cells, item = _cells(phi, group[some_vote])
            if isinstance(differences, PairsAndNumbers):  # tastes for features differ from those for items
                last = item >= differences.items
                sources[name + FOR_FEATURES] = cells[last], item[last]
                cells, item = cells[~last], item[~last]
            sources[name] = cells, item
        per_row = totals(row, len(differences))
        return cls(differences, per_row, totals(entry, len(some_vote)), row[some_vote], phi, sources)

    def estimate(self, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """Fit with this ridge; return θ (d,) and the number of Newton steps."""
        return self.differences.estimate(self.rows.counted, self.rows.wins, ridge, start)

    def likelihood(self, theta: Vector, ridge: float) -> Likelihood:
        """Return the likelihood around θ."""
        return Likelihood(self.differences, self.rows.counted, self.rows.wins, ridge, theta)

    def choose_ridge(self, theta: Vector, ridge: float = 1.0, factor: float = 1.0) -> tuple[Vector, float, int]:
        """Solve λ = 1/σ²(λ), starting from θ and λ = ``ridge``; return θ, λ and the last fit's Newton steps.

        Tastes enlarge the noise by ``factor``.
        """
        bounds = math.log(_LEAST_RIDGE), math.log(_MOST_RIDGE)
        here, last = math.log(ridge), None
        for _ in range(_ROUNDS):
            theta, steps = self.estimate(math.exp(here), theta)
            step = float(np.clip(-math.log(self._prior(theta, math.exp(here), factor)), *bounds)) - here
            if abs(step) < _CLOSE:
                break
            slope = -1.0 if last is None else min((step - last[1]) / (here - last[0]), _STEEPEST)  # a secant
            last = here, step
            here = float(np.clip(here - step / slope, *bounds))
        return theta, math.exp(here), steps

    def _prior(self, theta: Vector, ridge: float, factor: float) -> float:
        """Return σ² by moments, with tastes enlarging the noise by ``factor``."""
        information, noise, inverse = self._parts(theta, ridge)
        kept = inverse @ information
        noisy = kept if noise is information else inverse @ noise
        noise_part = factor * float(np.sum(noisy * inverse))
        return Spread(float(theta @ theta), noise_part, float(np.sum(kept**2)), freedom=1.0).variance

    def _parts(self, theta: Vector, ridge: float) -> tuple[Matrix, Matrix, Matrix]:
        """Return I, B and H⁻¹, all (d, d)."""
        chance = special.expit(self.differences.margins(theta))
        slope = chance * (1.0 - chance)
        information = self.differences.information(self.rows.counted * slope)
        plain = np.array_equal(self.rows.noise, self.rows.counted)  # all weights are 1
        noise = information if plain else self.differences.information(self.rows.noise * slope)
        if ridge == 0.0:
            return information, noise, np.asarray(linalg.pinvh(information))
        return information, noise, np.asarray(linalg.inv(information + ridge * np.eye(len(theta))))

    def uncertainty(
        self, theta: Vector, ridge: float, measured: tuple[Moments, list[str]] | None = None
    ) -> tuple[Uncertainty, tuple[Vector, Matrix]]:
        """Return the uncertainty of θ, fitted with λ = ``ridge``, and the posterior of the scores.

        ``measured`` are the moments, if known.
        """
        information, noise, inverse = self._parts(theta, ridge)
        moments, names = measured or self.moments(theta, ridge)
        chance = special.expit(self.differences.margins(theta))[self.row]
        pull = self.entries.counted * chance * (1.0 - chance)
        sources = [
            Source(name, float(variance), _between(inverse, _square(self.sources[name][0], pull, self.phi)))
            if variance > 0.0 or freedom < _ENOUGH_FREEDOM
            else Source(name, 0.0, np.zeros_like(inverse))  # many votes show that there are no tastes
            for name, variance, freedom in zip(names, moments.fitted, moments.freedom, strict=True)
        ]
        sampling, shrinking, shrunken = _between(inverse, noise), ridge * (inverse @ inverse), inverse @ information
        shared = sum((source.variance * source.covariance for source in sources), sampling)
        signal = shrunken @ shrunken.T / ridge if ridge else np.zeros_like(shared)
        variance = signal + shared  # of θ̂
        freedom = float(np.trace(variance) ** 2 / np.sum(variance**2))
        spread = Spread(float(theta @ theta), float(np.trace(shared)), float(np.sum(shrunken**2)), freedom)
        found = Uncertainty(sampling, shrinking, sources, moments, spread)
        draws = _POSTERIORS if len(theta) <= _MOST_POSTERIORS else 1
        if ridge == 0.0 or not sources or (draws == 1 and not moments.fitted.any()):
            return found, (theta, found.covariance)
        joint, means, covariances = shrunken.T / ridge, [], []
        for variances in moments.draws(draws, np.random.default_rng(0)) if draws > 1 else moments.fitted[None]:
            tastes = (each * source.covariance for each, source in zip(variances, sources, strict=True))
            known = linalg.pinvh(sum(tastes, signal + sampling), rtol=_NO_VARIANCE)
            means.append(joint @ known @ theta)
            covariances.append(np.eye(len(theta)) / ridge - joint @ known @ joint.T)
        between = np.cov(means, rowvar=False, bias=True)
        return found, (np.mean(means, axis=0), np.mean(covariances, axis=0) + between)

    def moments(self, theta: Vector, ridge: float) -> tuple[Moments, list[str]]:
        """Return the moments of the sources whose groups can be compared, and their names."""
        if not self.sources:
            return Moments(np.empty(0), np.empty((0, 1)), np.empty(0), np.ones(1)), []
        information, _, inverse = self._parts(theta, ridge)
        own = np.diag(information)
        scale = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        chance = special.expit(self.differences.margins(theta))[self.row]
        residual = self.entries.wins - self.entries.counted * chance
        slope = (chance * (1.0 - chance))[:, None]
        pull = self.entries.counted[:, None] * slope
        rng = np.random.default_rng(0)
        probes = int(np.clip(_PROBED / max(len(self.row), 1), _LEAST_PROBES, _MOST_PROBES))
        noise = np.sqrt(self.entries.noise[:, None] * slope) * rng.normal(size=(len(self.row), probes))
        simulated = {"": noise}
        for name, (cells, _) in self.sources.items():
            simulated[name] = pull * (cells.T @ rng.normal(size=(cells.shape[0], probes)))
        moved = {name: inverse @ (self.phi.T @ each) for name, each in simulated.items()}
        left = {name: each - pull * (self.phi @ moved[name]) for name, each in simulated.items()}
        sizes, freedom, observed = dict[str, dict[str, Vector]](), dict[str, float](), dict[str, float]()
        for name, (cells, item) in self.sources.items():
            sizes[name] = {other: scale[item] * ((cells @ each) ** 2).mean(axis=1) for other, each in left.items()}
            size = sizes[name][""]
            share = size.sum() / (scale[item] @ ((cells @ noise) ** 2).mean(axis=1))  # that the fit has left
            # the squares of averages over the probes are too large by the last factor
            effective = size.sum() ** 2 / max(size @ size, 1e-300) * (1.0 + 2.0 / probes)
            freedom[name] = effective * share * (1.0 - 1.0 / np.count_nonzero(own))
            observed[name] = float(scale[item] @ (cells @ residual) ** 2)
        names = [
            name
            for name, (_, item) in self.sources.items()
            if len(item) > len(np.unique(item)) and freedom[name] >= _LEAST_FREEDOM
        ]
        everything = ["", *names]
        moments = Moments(
            np.array([observed[name] for name in names], dtype=np.float64),
            np.reshape([sizes[name][other].sum() for name in names for other in everything], (-1, len(everything))),
            np.array([freedom[name] for name in names], dtype=np.float64),
            np.array([(moved[name] ** 2).sum() for name in everything]),
        )
        return moments, names


def _sharing(groups: Mapping[str, Codes], votes: float) -> dict[str, Codes]:
    """Keep the sources whose groups share votes: not those with one group, a group per vote, or the groups of another.

    If voters and contexts are the same groups, nothing tells their tastes apart; together they count once.
    """
    kept = dict[str, Codes]()
    for name, group in groups.items():
        count = len(np.unique(group))
        same = any(
            len(np.unique(other)) == count == len(np.unique(other.astype(np.int64) * (int(group.max()) + 1) + group))
            for other in kept.values()
        )
        if 1 < count < votes and not same:
            kept[name] = group
    return kept


def _cells(phi: sparse.csr_array, group: Codes) -> tuple[sparse.csr_array, Indices]:
    """Return φ (e, d) in the coordinates (g, k), shape (cells, e), and the k of each cell; ``group`` is (e,)."""
    dimension = phi.shape[1]
    entry = np.repeat(np.arange(phi.shape[0]), np.diff(phi.indptr))
    codes, cell = np.unique(group[entry].astype(np.int64) * dimension + phi.indices, return_inverse=True)
    return sparse.csr_array((phi.data, (cell, entry)), shape=(len(codes), phi.shape[0])), codes % dimension


def _square(cell: sparse.csr_array, pull: Vector, phi: sparse.csr_array) -> Matrix:
    """Return Σ_g A_g², shape (d, d): row (g, k) of ``part`` is row k of A_g."""
    part = (cell * pull[None, :]).tocsr() @ phi
    if part.nnz > _DENSE * part.shape[0] * part.shape[1]:
        dense = part.toarray()
        return np.asarray(dense.T @ dense)
    return np.asarray((part.T @ part).toarray())


def _between(inverse: Matrix, middle: Matrix) -> Matrix:
    product = inverse @ middle @ inverse
    return np.asarray(0.5 * (product + product.T))


def half(covariance: Matrix) -> Matrix:
    """Return a matrix R with RᵀR = ``covariance``, up to rounding."""
    tiny = 1e-12 * float(np.trace(covariance)) + 1e-300  # centred scores have a singular covariance
    try:
        return np.asarray(linalg.cholesky(covariance + tiny * np.eye(len(covariance))))
    except linalg.LinAlgError:  # by more than rounding usually does
        values, vectors = linalg.eigh(covariance)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
