import numpy as np
import pytest
from scipy import stats

from fairduel.inference import exponent, line, mean, paired_difference, share


def test_interval_is_that_of_students_t():
    values = np.random.default_rng(0).normal(3.0, 2.0, 12)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean(values).low == pytest.approx(expected.low)
    assert mean(values).high == pytest.approx(expected.high)


def test_one_value_has_no_error():
    assert np.isnan(mean(np.array([4.0])).error)


def test_pairing_removes_what_both_share():
    rng = np.random.default_rng(1)
    shared = rng.normal(0.0, 100.0, 30)
    difference = paired_difference(shared + 1.0 + rng.normal(0.0, 0.1, 30), shared)
    assert difference.low < 1.0 < difference.high
    assert difference.error < 0.1


def test_line_through_points_on_a_line_is_exact():
    x = np.arange(5.0)
    fit = line(x, 2.5 * x - 1.0)
    assert (fit.slope, fit.intercept, fit.r_squared) == pytest.approx((2.5, -1.0, 1.0))


def test_exponent_is_recovered_with_its_error():
    rng = np.random.default_rng(2)
    x = np.array([100.0, 200.0, 400.0, 800.0])
    y = x**0.5 * np.exp(rng.normal(0.0, 0.05, (40, 4)))
    grown = exponent(x, y)
    assert grown.low < 0.5 < grown.high
    assert grown.high - grown.low < 0.05


def test_line_is_that_of_ordinary_least_squares():
    rng = np.random.default_rng(3)
    x, y = np.arange(8.0), rng.normal(size=8)
    expected = stats.linregress(x, y)
    assert line(x, y) == pytest.approx((expected.slope, expected.stderr, expected.intercept, expected.rvalue**2))


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (3, 10), (10, 10), (57, 60)])
def test_share_interval_is_clopper_pearsons(successes, count):
    expected = stats.binomtest(successes, count).proportion_ci(0.95)
    assert (share(successes, count).low, share(successes, count).high) == pytest.approx((expected.low, expected.high))


def test_share_interval_covers_certainty_honestly():
    assert share(100, 100).low == pytest.approx(0.025 ** (1 / 100))
