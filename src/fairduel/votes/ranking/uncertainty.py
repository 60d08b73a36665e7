r"""Estimate scores with a ridge chosen from the votes, and say how uncertain they are.

The votes of one voter share that voter's tastes, and the votes on one prompt share its peculiarities. So the log-odds
of a vote with difference φ are φᵀ(θ + u_voter + u_context), where every voter and every context has its own
u ~ N(0, τ²I). The scores themselves are modelled as θ ~ N(0, σ²I).

Votes that count a = f·w (frequency times weight) have information I = Σ a s φφᵀ, with s the slope of the logistic
function. The estimate maximises the likelihood minus λ/2 ‖θ‖². With H = I + λ and A_g the part of I that belongs to
group g (a voter, or a context), its error is about H⁻¹(noise + Σ_g A_g u_g − λθ), and has covariance

    V = H⁻¹ (B + τ² Σ_g A_g² + λ) H⁻¹,   B = Σ f w² s φφᵀ,   λ = 1/σ².

**τ²** is one number for all items, times a factor ρ_k for item k, so a few voters with many votes reveal it, and items
that divide voters do not hide among the others. T = Σ_g Σ_k r_gk² / I_kk, with r_g the sum of the group's residuals
times φ, has expectation b + cτ². The fit makes residuals smaller; b and c, averages of T over simulated residuals of
the linearised fit, allow for that. T has about ν degrees of freedom (Satterthwaite 1946), so draws of τ², with T ν/χ²_ν
in place of T, reflect how little a few voters reveal. The part of T that belongs to item k estimates τ²ρ_k in the same
way, and is shrunken towards τ² as the differences between items, beyond their own noise, suggest (James and Stein).

**σ²** solves E‖θ̂‖² = σ² tr((H⁻¹I)²) + tr(H⁻¹(B + τ²Σ_g A_g²)H⁻¹). A tenth of a further item, with a score of ±1, is
added, so that few votes do not suggest σ = 0. The ridge keeps the scores of items that won every vote finite, and their
errors small: without it, the more clearly an item wins, the less certain its score (Hauck and Donner 1977).

**By evidence**, for features, ‖θ̂‖² is replaced by ‖θ̂‖² + 2θ̂ᵀδ, where δ is the mean of the posterior minus its mode θ̂.
The slope s falls with the size of a margin. So the posterior is skewed away from 0, and with few votes per feature, θ̂
is much too small. To third order (Lindley 1980), δ = −½ H⁻¹ Σ a s(1 − 2p) ‖φ‖²_H⁻¹ φ, with p the chance that the row's
first side wins. The equation above ignores that s depends on θ. With δ, and if all weights are 1 and nobody has tastes,
it says that λ maximises Laplace's approximation to the marginal likelihood (MacKay 1992), as long as the votes show
more than noise. That can be flat in λ, so a whole further item is added, whose score has the unit of the features: ±1
if the mean of ‖φ‖² is 2, as it is for two items.

What is known about θ, given θ̂, follows in :mod:`fairduel.votes.ranking.posterior`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from scipy import linalg, sparse, special

from fairduel.core.memory import give_back
from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.design_matrix import Differences, PairsAndNumbers
from fairduel.votes.votes import Codes, Indices, sums

_PRIOR_ITEMS, _PRIOR_VARIANCE = 0.1, 1.0  # a tenth of a further item with a score of ±1
_MORE_PRIOR_ITEMS = 1.0  # by evidence; of 0.1, 0.5, 1 and 2, the best for 3 to 200 votes (seeds from 1,000,200)
_ROUNDS = 30
_CLOSE = 1e-4  # in log λ
_LEAST_RIDGE, _MOST_RIDGE = 0.01, 1e6
_MOST_PROBES, _LEAST_PROBES, _PROBED = 64, 2, 200_000  # simulated residuals: fewer of many votes are as accurate
_NEWTON_STEPS, _SMALL_STEP = 20, 1e-6
_STEEPEST = -0.2  # slope of the secant that solves for λ, which is between −1 and 0
_AT_ONCE = 200_000  # entries of a sparse matrix
_DENSE = 0.05  # share of entries above which a matrix is multiplied as dense
_ENOUGH_FREEDOM = 1e5  # then draws of τ² are all close to its estimate
_LEAST_FREEDOM = 1.0  # fewer degrees of freedom: the groups share too few items to be compared


Solve = Callable[[Matrix], Matrix]
FOR_FEATURES = "_for_features"
"""End of the name of a source of tastes for features per vote."""


class Source(NamedTuple):
    """Groups of votes that share tastes: the voters, or the contexts."""

    name: str
    variance: float
    """τ²."""
    factors: Vector
    """ρ, how much more than other items each divides the groups, shape (d,); 1 on average."""
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
    prior_items: float = _PRIOR_ITEMS
    unit: float = 1.0
    """Half the mean of ‖φ‖²."""

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
        return (signal + self.prior_items * _PRIOR_VARIANCE / self.unit) / (self.slope + self.prior_items)


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The covariance of an estimate, by source."""

    sampling: Matrix
    """H⁻¹BH⁻¹, shape (d, d)."""
    shrinking: Matrix
    """λH⁻², or λ²σ²H⁻² if that is more, shape (d, d)."""
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

    def mean(self) -> Vector:
        """Return the mean of the posterior, whose mode is θ, to third order (see the module's docstring), (d,)."""
        chance = special.expit(self.differences.margins(self.theta))
        slope = self.counted * chance * (1.0 - chance)
        hessian = self.differences.information(slope) + self.ridge * np.eye(len(self.theta))
        skew = slope * (1.0 - 2.0 * chance) * self.differences.widths(hessian) ** 2
        shift = linalg.solve(hessian, self.differences.total(skew), assume_a="pos")
        return np.asarray(self.theta - 0.5 * shift)

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
    kept: Matrix
    """H⁻¹I, how much of θ is in the estimate on average, shape (d, d)."""
    likelihood: Likelihood
    steps: int
    """Newton steps of the last fit."""
    told: "Told | None"
    """The votes; None once nothing more is fitted to them."""
    measured: "MeasuredTastes"
    """What they say about tastes."""

    def with_chosen_ridge(self) -> Self:
        """Fit the same votes with the ridge that they suggest, and with tastes as measured here."""
        told, factor = cast("Told", self.told), self.measured.moments.taste_factor
        theta, ridge, steps = told.choose_ridge(self.theta, 1.0 / self.spread**2, factor)
        found, kept = told.uncertainty(theta, ridge, self.measured)
        return replace(
            self,
            theta=theta,
            ridge=ridge,
            spread=math.sqrt(found.spread.variance),
            uncertainty=found,
            kept=kept,
            likelihood=told.likelihood(theta, ridge),
            steps=steps,
        )


def shrunken_fit(
    differences: Differences,
    row: Indices,
    won: Vector,
    frequency: Vector,
    weight: Vector,
    *,
    ridge: float | None = None,
    groups: Mapping[str, Codes] | None = None,
    by_evidence: bool = False,
) -> ShrunkenFit:
    """Estimate θ from n votes, with the ridge chosen from the votes unless given: by moments or by evidence.

    Vote i is on row ``row[i]`` of ``differences``, with result ``won[i]`` (1, 0 or ½) for the row's first side; it
    occurred ``frequency[i]`` times and counts ``weight[i]`` each time. ``groups`` names the sources of shared tastes,
    each with the group of every vote (n,), numbered from 0.

    >>> from fairduel.votes.ranking.design_matrix import Pairs
    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> fit = shrunken_fit(pairs, np.zeros(4, np.int64), np.array([1.0, 1, 1, 0]), np.ones(4), np.ones(4), ridge=0.0)
    >>> (fit.theta[0] - fit.theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """
    told = Told.of(differences, row, won, frequency, weight, groups or {}, by_evidence=by_evidence)
    give_back(len(row))
    theta, steps = told.estimate(told.unit if ridge is None else ridge)
    used, measured = ridge, None
    if used is None:
        theta, used, steps = told.choose_ridge(theta, told.unit)
        measured = told.tastes(theta, used)
        if measured.moments.taste_factor > 1.0:  # tastes change the ridge, which changes them little
            theta, used, steps = told.choose_ridge(theta, used, measured.moments.taste_factor)
            measured = None
    measured = measured or told.tastes(theta, used)
    found, kept = told.uncertainty(theta, used, measured)
    spread, likelihood = math.sqrt(found.spread.variance), told.likelihood(theta, used)
    return ShrunkenFit(theta, used, spread, found, kept, likelihood, steps, told, measured)


class _Sums(NamedTuple):
    """Sums over votes with frequency f and weight w, per row or per entry."""

    counted: Vector
    """Σ f w."""
    wins: Vector
    """Σ f w·won."""
    noise: Vector
    """Σ f w²."""


@dataclass(frozen=True, eq=False)
class Told:
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
    by_evidence: bool = False
    """Whether the ridge is chosen by evidence (see the module's docstring), not by moments alone."""

    @classmethod
    def of(
        cls,
        differences: Differences,
        row: Indices,
        won: Vector,
        frequency: Vector,
        weight: Vector,
        groups: Mapping[str, Codes],
        *,
        by_evidence: bool = False,
    ) -> Self:
        """Collect the votes; see :func:`shrunken_fit`."""
        counted = frequency * weight
        groups = _sharing(groups, float(np.ceil(frequency).sum()))
        entry = row
        for group in groups.values():
            entry = np.unique(entry * (int(group.max(initial=0)) + 1) + group, return_inverse=True)[1]
        some_vote = np.zeros(int(entry.max(initial=-1)) + 1, dtype=np.int64)
        some_vote[entry] = np.arange(len(row))

        def totals(place: Indices, count: int) -> _Sums:
            total = sums(place, count, counted)
            noise = total if (weight == 1.0).all() else sums(place, count, counted * weight)
            return _Sums(total, sums(place, count, counted * won), noise)

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
        per_entry = totals(entry, len(some_vote))
        return cls(differences, per_row, per_entry, row[some_vote].astype(np.int32), phi, sources, by_evidence)

    @cached_property
    def unit(self) -> float:
        """Half the mean of ‖φ‖², which is 1 for two items; λ is proportional to it if features change their unit."""
        squares = float(np.trace(self.differences.information(self.rows.counted))) if self.by_evidence else 0.0
        return 0.5 * squares / float(self.rows.counted.sum()) if squares else 1.0

    def estimate(self, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """Fit with this ridge; return θ (d,) and the number of Newton steps."""
        return self.differences.estimate(self.rows.counted, self.rows.wins, ridge, start)

    def likelihood(self, theta: Vector, ridge: float) -> Likelihood:
        """Return the likelihood around θ."""
        return Likelihood(self.differences, self.rows.counted, self.rows.wins, ridge, theta)

    def choose_ridge(self, theta: Vector, ridge: float, factor: float = 1.0) -> tuple[Vector, float, int]:
        """Solve λ = 1/σ²(λ), starting from θ and λ = ``ridge``; return θ, λ and the last fit's Newton steps.

        Tastes enlarge the noise by ``factor``.
        """
        bounds = math.log(_LEAST_RIDGE * self.unit), math.log(_MOST_RIDGE * self.unit)
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
        return self._spread(theta, ridge, noise_part, float(np.sum(kept**2))).variance

    def _spread(self, theta: Vector, ridge: float, noise: float, slope: float, freedom: float = 1.0) -> Spread:
        """Return what determines σ²: ‖θ̂‖², or by evidence ‖θ̂‖² + 2θ̂ᵀδ."""
        if not self.by_evidence:
            return Spread(float(theta @ theta), noise, slope, freedom)
        observed = float(theta @ (2.0 * self.likelihood(theta, ridge).mean() - theta))
        return Spread(observed, noise, slope, freedom, _MORE_PRIOR_ITEMS, self.unit)

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

    def solver(self, theta: Vector, ridge: float) -> tuple[Vector, Solve]:
        """Return the diagonal of I (d,), and what multiplies by H⁻¹."""
        information, _, inverse = self._parts(theta, ridge)
        return np.diag(information), lambda values: inverse @ values

    def uncertainty(self, theta: Vector, ridge: float, measured: "MeasuredTastes") -> tuple[Uncertainty, Matrix]:
        """Return the uncertainty of θ, fitted with λ = ``ridge``, and H⁻¹I."""
        information, noise, inverse = self._parts(theta, ridge)
        moments, names, factors = measured
        chance = special.expit(self.differences.margins(theta))[self.row]
        pull = self.entries.counted * chance * (1.0 - chance)
        sources = []
        for name, variance, freedom in zip(names, moments.fitted, moments.freedom, strict=True):
            covariance = np.zeros_like(inverse)
            if variance > 0.0 or freedom < _ENOUGH_FREEDOM:  # otherwise many votes show that there are no tastes
                cells, item = self.sources[name]
                covariance = _between(inverse, _square(cells, pull, self.phi, factors[name][item]))
            sources.append(Source(name, float(variance), factors[name], covariance))
        sampling, kept = _between(inverse, noise), inverse @ information
        shared = sum((source.variance * source.covariance for source in sources), sampling)
        variance = (kept @ kept.T / ridge if ridge else 0.0) + shared  # of θ̂
        freedom = float(np.trace(variance) ** 2 / np.sum(variance**2))
        spread = self._spread(theta, ridge, float(np.trace(shared)), float(np.sum(kept**2)), freedom)
        shrinking = ridge * max(1.0, ridge * spread.variance) * (inverse @ inverse)  # a weak ridge may be too strong
        return Uncertainty(sampling, shrinking, sources, moments, spread), kept

    def tastes(self, theta: Vector, ridge: float) -> "MeasuredTastes":
        """Return the moments of the sources whose groups can be compared, their names, and the factors ρ by name."""
        alike = {name: np.ones(self.differences.dimension) for name in self.sources}
        found = self._tastes(theta, ridge, alike, None)
        if not any((factors != 1.0).any() for factors in found.factors.values()):
            return found
        return self._tastes(theta, ridge, alike | dict(found.factors), found)._replace(factors=found.factors)

    def _tastes(
        self, theta: Vector, ridge: float, factors: Mapping[str, Vector], before: "MeasuredTastes | None"
    ) -> "MeasuredTastes":
        """Measure tastes, given ρ by source (d,) and what was measured with ρ = 1, if anything."""
        if not self.sources:
            return MeasuredTastes(Moments(np.empty(0), np.empty((0, 1)), np.empty(0), np.ones(1)), [], {})
        own, solve = self.solver(theta, ridge)
        scale = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)
        chance = special.expit(self.differences.margins(theta))[self.row]
        residual = self.entries.wins - self.entries.counted * chance
        observed = {name: scale[item] * (cells @ residual) ** 2 for name, (cells, item) in self.sources.items()}
        slope = (chance * (1.0 - chance))[:, None]
        pull = self.entries.counted[:, None] * slope
        del chance, residual
        rng = np.random.default_rng(0)
        probes = int(np.clip(_PROBED / max(len(self.row), 1), _LEAST_PROBES, _MOST_PROBES))
        noise = np.sqrt(self.entries.noise[:, None] * slope) * rng.normal(size=(len(self.row), probes))
        del slope
        plain = {name: scale[item] @ _mean_squares(cells, noise) for name, (cells, item) in self.sources.items()}
        moved, left = dict[str, Matrix](), dict[str, Matrix]()
        for name in ("", *self.sources):  # in place: with many votes, each array is large
            if name:
                cells, item = self.sources[name]
                drawn = rng.normal(size=(cells.shape[0], probes))
                drawn *= np.sqrt(factors[name][item])[:, None]
                noise = cells.T @ drawn
                noise *= pull
                del drawn
            moved[name] = solve(self.phi.T @ noise)
            fitted = self.phi @ moved[name]
            fitted *= pull
            left[name] = np.subtract(noise, fitted, out=noise)
        del noise, fitted, pull
        sizes, freedom = dict[str, dict[str, Vector]](), dict[str, float]()
        for name, (cells, item) in self.sources.items():
            sizes[name] = {other: scale[item] * _mean_squares(cells, each) for other, each in left.items()}
            size = sizes[name][""]
            share = size.sum() / plain[name]  # that the fit has left
            if before is not None and name in before.names:
                size = size + before.moments.fitted[before.names.index(name)] * sizes[name][name]
            # the squares of averages over the probes are too large by the last factor
            effective = size.sum() ** 2 / max(size @ size, 1e-300) * (1.0 + 2.0 / probes)
            freedom[name] = effective * share * (1.0 - 1.0 / np.count_nonzero(own))
        names = [
            name
            for name, (_, item) in self.sources.items()
            if len(item) > len(np.unique(item)) and freedom[name] >= _LEAST_FREEDOM
        ]
        everything = ["", *names]
        moments = Moments(
            np.array([observed[name].sum() for name in names], dtype=np.float64),
            np.reshape([sizes[name][other].sum() for name in names for other in everything], (-1, len(everything))),
            np.array([freedom[name] for name in names], dtype=np.float64),
            np.array([(moved[name] ** 2).sum() for name in everything]),
        )
        known = dict(zip(names, moments.fitted, strict=True))
        found = {
            name: _factors(self.sources[name][1], len(own), observed[name], sizes[name], known, name) for name in names
        }
        return MeasuredTastes(moments, names, found)


class MeasuredTastes(NamedTuple):
    """What the votes say about tastes."""

    moments: Moments
    names: list[str]
    """The sources whose groups can be compared."""
    factors: Mapping[str, Vector]
    """ρ of each of these, (d,)."""


def _factors(
    item: Indices,
    count: int,
    observed: Vector,
    sizes: Mapping[str, Vector],
    known: Mapping[str, float],
    name: str,
) -> Vector:
    """Return ρ of each item, shape (count,), for the source ``name``, from its cells' ``item`` and moments (c,).

    An item's own estimate of τ² is shrunken towards ``known[name]``, that of all items, with the share of the variance
    between the items' estimates that their noise explains.
    """
    slope = sums(item, count, sizes[name])
    common, seen = known[name], slope > 0.0
    if common == 0.0 or not seen.any():
        return np.ones(count)
    expected = sizes[""] + sum((variance * sizes[other] for other, variance in known.items()), np.zeros_like(observed))
    total = sums(item, count, expected)
    own = np.full(count, common)
    own[seen] += (sums(item, count, observed) - total)[seen] / slope[seen]
    noise = np.zeros(count)  # variance of an item's estimate: 2 E[T]²/ν, with ν by Satterthwaite
    noise[seen] = 2.0 * sums(item, count, expected**2)[seen] / slope[seen] ** 2
    weight = np.where(seen, 1.0 / np.where(seen, noise, 1.0), 0.0)
    between = max(float(weight @ ((own - common) ** 2 - noise)) / float(weight.sum()), 0.0)
    if between == 0.0:
        return np.ones(count)
    shrunken = np.where(seen, common + between / (between + noise) * (own - common), common)
    return np.asarray(np.maximum(shrunken, 0.0) / common)


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
    return sparse.csr_array((phi.data, (cell, entry)), shape=(len(codes), phi.shape[0])), (codes % dimension).astype(
        np.int32
    )


def _mean_squares(cells: sparse.csr_array, values: Matrix) -> Vector:
    """Return the mean over the columns of the squares of ``cells`` times ``values`` (e, b), shape (cells,)."""
    product = cells @ values
    return np.asarray(np.square(product, out=product).mean(axis=1))


def _square(cell: sparse.csr_array, pull: Vector, phi: sparse.csr_array, factors: Vector) -> Matrix:
    """Return Σ_g A_g diag(ρ) A_g, shape (d, d): row (g, k) of ``part`` is √ρ_k times row k of A_g."""
    result = np.zeros((phi.shape[1], phi.shape[1]))
    for rows in np.array_split(np.arange(cell.shape[0]), cell.nnz // _AT_ONCE + 1):
        some = cell[rows[0] : rows[-1] + 1] if len(rows) else cell
        part = (some * pull[None, :] * np.sqrt(factors[rows])[:, None]).tocsr() @ phi
        if part.nnz > _DENSE * part.shape[0] * part.shape[1]:
            dense = part.toarray()
            result += dense.T @ dense
        else:
            result += (part.T @ part).toarray()
    return result


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
