"""Statistics of a few runs: means and shares with intervals, paired differences, fitted growth."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairduel.duel import Matrix, Vector


class Mean(NamedTuple):
    """A mean over runs, its standard error and its confidence interval (Student's t)."""

    value: float
    error: float
    low: float
    high: float

    def as_json(self) -> dict[str, float | None]:
        """Return the values by name; NaN and infinities become ``None``, because JSON has neither.

        >>> Mean(2.0, math.nan, math.nan, math.nan).as_json()
        {'value': 2.0, 'error': None, 'low': None, 'high': None}
        """
        return {name: value if math.isfinite(value) else None for name, value in self._asdict().items()}


class Line(NamedTuple):
    """A fitted straight line, with the standard error of its slope."""

    slope: float
    slope_error: float
    r_squared: float


NOT_A_NUMBER = Mean(math.nan, math.nan, math.nan, math.nan)


def mean(values: Vector, confidence: float = 0.95) -> Mean:
    """Return the mean of independent ``values``, shape (n,); a single value has no error (NaN).

    >>> mean(np.array([1.0, 3.0])).error
    1.0
    """
    count = len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    return _with_student_interval(float(np.mean(values)), error, count - 1, confidence)


def _with_student_interval(value: float, error: float, degrees: int, confidence: float) -> Mean:
    reach = _student_quantile(degrees, confidence) * error if degrees > 0 else math.nan
    return Mean(value, error, value - reach, value + reach)


def _student_quantile(degrees: int, confidence: float) -> float:
    return float(special.stdtrit(degrees, 0.5 + confidence / 2.0))


def median(values: Vector) -> Mean:
    """Return the median of ``values``, shape (n,), with a 95% interval between two of them, for any distribution.

    Its error is a quarter of the interval's width. Six values are the fewest with an interval.

    >>> median(np.arange(1.0, 101.0))[2:]
    (40.0, 61.0)
    """
    count = len(values)
    below = int(np.sum(special.bdtr(np.arange(count), count, 0.5) <= 0.025))  # this many on each side may be beyond it
    ordered = np.sort(values)
    low, high = (float(ordered[below - 1]), float(ordered[-below])) if below else (math.nan, math.nan)
    return Mean(float(np.median(values)), (high - low) / 4.0, low, high)


def paired_difference(values: Vector, reference: Vector, confidence: float = 0.95) -> Mean:
    """Return the mean of ``values`` − ``reference``, both (n,), over the same seeds in the same order."""
    return mean(values - reference, confidence)


def mixed_mean(values: Vector, kinds: NDArray[np.int64], confidence: float = 0.95) -> Mean:
    """Return the mean of ``values``, shape (n,), with an interval that allows for rare kinds of runs.

    Student's interval fails if a few runs cost many times as much as the rest (lock-in), because a sample seldom has
    the right number of them. Here the share of each rare kind gets its exact interval and the mean of each kind
    Student's; their half-widths add up in squares on either side (MOVER, Zou & Donner 2008).

    Kinds that never occurred are not allowed for: if all runs are of one kind, the result is that of :func:`mean`,
    although in 100 runs the share of an unseen kind can still be up to 3.6%.

    Args:
        values: One value per run, shape (n,).
        kinds: The kind of each run, shape (n,); 0 is the usual one, all others are rare.
        confidence: The coverage of the interval.

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
        proportion, extra = exact_share(len(group), len(values), confidence), float(group.mean()) - centre
        ends = (extra * (proportion.low - proportion.value), extra * (proportion.high - proportion.value))
        below, above = below + min(ends) ** 2, above + max(ends) ** 2
        # A single run shows no spread; assume a standard error of half its distance from the usual mean.
        spread = float(np.var(group, ddof=1)) / len(group) if len(group) > 1 else (extra / 2.0) ** 2
        variance += proportion.value**2 * spread
    reach = _student_quantile(len(usual) - 1, confidence) ** 2 * variance
    value, error = plain.value, plain.error
    return Mean(value, error, value - math.sqrt(below + reach), value + math.sqrt(above + reach))


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
    return Line(slope, error, explained)


def exponent(x: Vector, y: Matrix) -> Mean:
    """Return the exponent p of y ~ x^p, fitted to each run separately, so that its error is over runs.

    ``x`` is (m,) and ``y`` (n, m), one row per seed. The exponent is NaN unless all values are positive.

    >>> exponent(np.array([1.0, 2.0, 4.0]), np.array([[3.0, 6.0, 12.0], [1.0, 2.0, 4.0]])).value
    1.0
    """
    if not (y > 0).all():
        return NOT_A_NUMBER
    log_x = np.log(x) - np.log(x).mean()
    slopes = np.log(y) @ log_x / (log_x @ log_x)
    return mean(slopes)


def excess_exponent(x: Vector, y: Matrix, without: Vector) -> Mean:
    """Return the exponent p of y − y₀ ~ x^p, fitted to the mean over runs, with a jackknife error.

    The fit is by least squares of y − y₀ itself, not of its logarithm, so that small x, where noise dominates, have
    little influence; 0 ≤ p ≤ 4. The result is NaN if the mean excess at the largest x is not significantly above 0.

    Args:
        x: Positive values, shape (m,).
        y: One row per seed, shape (n, m).
        without: y₀, the value at x = 0, shape (n,).

    >>> x, clean = np.array([1.0, 2.0, 4.0]), np.array([5.0, 7.0])
    >>> round(excess_exponent(x, clean[:, None] + 3 * x, clean).value, 6)
    1.0
    """
    excess = y - without[:, None]
    largest = mean(excess[:, np.argmax(x)])
    is_noise = largest.value <= 0 if len(excess) < 2 else largest.low <= 0
    if is_noise or not np.isfinite(excess).all():
        return NOT_A_NUMBER
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow, and a server needs none of it

    log_x = np.log(x / x.max())

    def fitted(sample: Matrix) -> float:
        mean_excess = sample.mean(axis=1)

        def unexplained(p: float) -> float:  # up to a constant, with the best factor for this p
            power = np.exp(p * log_x)
            return -float((power @ mean_excess) ** 2 / (power @ power))

        return float(minimize_scalar(unexplained, bounds=(0.0, 4.0), options={"xatol": 1e-9}).x)

    return jackknife(fitted, excess.T)


def jackknife(statistic: Callable[[Vector], float], sample: Vector, confidence: float = 0.95) -> Mean:
    """Return a statistic of ``sample``, whose last axis is the runs, with its jackknife error; NaN for one run.

    >>> jackknife(lambda runs: float(runs.mean()), np.array([1.0, 3.0])).error
    1.0
    """
    count, error = sample.shape[-1], math.nan
    if count > 1:
        left_out = [statistic(np.delete(sample, run, axis=-1)) for run in range(count)]
        error = math.sqrt((count - 1) * float(np.var(left_out)))
    return _with_student_interval(statistic(sample), error, count - 1, confidence)


def exact_share(successes: int, count: int, confidence: float = 0.95) -> Mean:
    """Return a share with its exact (Clopper–Pearson) interval.

    >>> round(exact_share(20, 20).low, 3)
    0.832
    """
    tail = (1.0 - confidence) / 2.0
    low = float(special.betaincinv(successes, count - successes + 1, tail)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, count - successes, 1.0 - tail)) if successes < count else 1.0
    value = successes / count
    return Mean(value, math.sqrt(value * (1.0 - value) / count), low, high)


def corrected(compared: Collection[object]) -> float:
    """The confidence of each of several 95% intervals (Bonferroni)."""
    return 1.0 - 0.05 / max(len(compared), 1)
