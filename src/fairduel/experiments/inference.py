"""What a handful of runs says: means with errors, paired differences, fitted growth."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from fairduel.duel import Matrix, Vector


class Mean(NamedTuple):
    """A mean over runs, its standard error and its confidence interval (Student's t)."""

    value: float
    error: float
    low: float
    high: float

    def as_json(self) -> dict[str, float | None]:
        """By name; what is not a number becomes ``None``, because JSON has no NaN.

        >>> Mean(2.0, math.nan, math.nan, math.nan).as_json()
        {'value': 2.0, 'error': None, 'low': None, 'high': None}
        """
        return {name: value if math.isfinite(value) else None for name, value in self._asdict().items()}


class Line(NamedTuple):
    """A straight line through points, with the standard error of its slope."""

    slope: float
    slope_error: float
    intercept: float
    r_squared: float


def mean(values: Vector, confidence: float = 0.95) -> Mean:
    """Return the mean of independent ``values``, shape (n,); one value has no error (NaN).

    >>> mean(np.array([1.0, 3.0])).error
    1.0
    """
    count = len(values)
    centre = float(np.mean(values))
    if count < 2:
        return Mean(centre, math.nan, math.nan, math.nan)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    reach = float(special.stdtrit(count - 1, 0.5 + confidence / 2.0)) * error
    return Mean(centre, error, centre - reach, centre + reach)


def paired_difference(values: Vector, reference: Vector, confidence: float = 0.95) -> Mean:
    """Return the mean of ``values`` − ``reference``, both (n,) over the same seeds in the same order."""
    return mean(values - reference, confidence)


def mixed_mean(values: Vector, kinds: NDArray[np.int64], confidence: float = 0.95) -> Mean:
    """Return the mean of ``values``, shape (n,), that come in several kinds, (n,): 0 is the usual one, others are rare.

    Student's interval fails where few runs cost many times the rest (lock-in): the sample seldom has the right number
    of them. Here the share of each rare kind has its exact interval and the mean of each kind Student's; what these
    reach beyond the estimate on either side adds up in squares (MOVER, Zou & Donner 2008). With one kind only it is
    :func:`mean`, so a kind that was never seen is not allowed for: of 100 runs it may then still be up to 3.6 %.

    >>> values, locked_in = np.array([1.0, 2.0, 3.0, 100.0]), np.array([0, 0, 0, 1])
    >>> mixed_mean(values, locked_in).value
    26.5
    """
    plain = mean(values, confidence)
    usual, rare = values[kinds == 0], [values[kinds == kind] for kind in np.unique(kinds[kinds != 0])]
    if len(usual) < 2 or not rare:
        return plain
    centre = float(usual.mean())
    variance = float(np.var(usual, ddof=1)) / len(usual)
    below = above = 0.0
    for group in rare:
        proportion, extra = share(len(group), len(values), confidence), float(group.mean()) - centre
        ends = (extra * (proportion.low - proportion.value), extra * (proportion.high - proportion.value))
        below, above = below + min(ends) ** 2, above + max(ends) ** 2
        # One run shows no spread: as much as half of what sets it apart is assumed.
        spread = float(np.var(group, ddof=1)) / len(group) if len(group) > 1 else (extra / 2.0) ** 2
        variance += proportion.value**2 * spread
    reach = float(special.stdtrit(len(usual) - 1, 0.5 + confidence / 2.0)) ** 2 * variance
    return Mean(
        plain.value, plain.error, plain.value - math.sqrt(below + reach), plain.value + math.sqrt(above + reach)
    )


def line(x: Vector, y: Vector) -> Line:
    """Fit y = intercept + slope · x by least squares.

    >>> line(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0])).slope
    2.0
    """
    across, up = x - x.mean(), y - y.mean()
    slope = float(across @ up / (across @ across))
    unexplained = float(((up - slope * across) ** 2).sum())
    error = math.sqrt(unexplained / (len(x) - 2) / float(across @ across)) if len(x) > 2 else math.nan
    explained = 1.0 - unexplained / float(up @ up) if up.any() else math.nan
    return Line(slope, error, float(y.mean() - slope * x.mean()), explained)


def exponent(x: Vector, y: Matrix, confidence: float = 0.95) -> Mean:
    """Return the exponent p of y ~ x^p: fitted to each run by itself, so that its error is over runs.

    ``x`` is (m,), ``y`` is (n, m), one row a seed; all positive, else it has no exponent (NaN).

    >>> exponent(np.array([1.0, 2.0, 4.0]), np.array([[3.0, 6.0, 12.0], [1.0, 2.0, 4.0]])).value
    1.0
    """
    if not (y > 0).all():
        return Mean(math.nan, math.nan, math.nan, math.nan)
    log_x = np.log(x) - np.log(x).mean()
    slopes = np.log(y) @ log_x / (log_x @ log_x)
    return mean(slopes, confidence)


def excess_exponent(x: Vector, y: Matrix, without: Vector, confidence: float = 0.95) -> Mean:
    """Return the exponent p of y − y₀ ~ x^p, of the mean over runs; its error by leaving out one run at a time.

    ``x`` is (m,), positive, ``y`` (n, m) and ``without``, y at x = 0, (n,), one row a seed. The fit is by least squares
    of y − y₀ itself, not of its logarithm, so that a small x, where noise rules, has little say; 0 ≤ p ≤ 4. NaN where
    the mean excess at the largest x is not above 0 with this confidence: then it is within the noise.

    >>> x, clean = np.array([1.0, 2.0, 4.0]), np.array([5.0, 7.0])
    >>> round(excess_exponent(x, clean[:, None] + 3 * x, clean).value, 6)
    1.0
    """
    excess = y - without[:, None]
    largest = mean(excess[:, np.argmax(x)], confidence)
    is_noise = largest.value <= 0 if len(excess) < 2 else largest.low <= 0
    if is_noise or not np.isfinite(excess).all():
        return Mean(math.nan, math.nan, math.nan, math.nan)
    log_x = np.log(x / x.max())

    def fitted(mean_excess: Vector) -> float:
        def unexplained(p: float) -> float:  # but for a constant, with the best factor for this p
            power = np.exp(p * log_x)
            return -float((power @ mean_excess) ** 2 / (power @ power))

        return float(optimize.minimize_scalar(unexplained, bounds=(0.0, 4.0), options={"xatol": 1e-9}).x)

    left_out = [fitted(np.delete(excess, i, axis=0).mean(axis=0)) for i in range(len(excess)) if len(excess) > 1]
    return jackknifed(fitted(excess.mean(axis=0)), np.array(left_out), confidence)


def jackknifed(value: float, left_out: Vector, confidence: float = 0.95) -> Mean:
    """Return ``value`` with its error from what it would be without one run each, shape (n,); NaN for fewer than two.

    Of a mean it is the error of the mean:

    >>> jackknifed(2.0, np.array([3.0, 1.0])).error
    1.0
    """
    count = len(left_out)
    if count < 2:
        return Mean(value, math.nan, math.nan, math.nan)
    error = math.sqrt((count - 1) * float(np.var(left_out)))
    reach = float(special.stdtrit(count - 1, 0.5 + confidence / 2.0)) * error
    return Mean(value, error, value - reach, value + reach)


def jackknife(statistic: Callable[[Vector], float], sample: Vector, confidence: float = 0.95) -> Mean:
    """Return a statistic of an array whose last axis is the runs, with its jackknife error.

    >>> jackknife(lambda runs: float(runs.mean()), np.array([1.0, 3.0])).error
    1.0
    """
    count = sample.shape[-1]
    left_out = [statistic(np.delete(sample, run, axis=-1)) for run in range(count) if count > 1]
    return jackknifed(statistic(sample), np.array(left_out), confidence)


def share(successes: int, count: int, confidence: float = 0.95) -> Mean:
    """Return a share with its exact (Clopper–Pearson) interval.

    >>> round(share(20, 20).low, 3)
    0.832
    """
    tail = (1.0 - confidence) / 2.0
    low = float(special.betaincinv(successes, count - successes + 1, tail)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, count - successes, 1.0 - tail)) if successes < count else 1.0
    value = successes / count
    return Mean(value, math.sqrt(value * (1.0 - value) / count), low, high)
