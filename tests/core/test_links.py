import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats

from fairduel import LOGISTIC, PROBIT, BadInputError, Link, clipped_linear
from fairduel.core.links import as_link, potential

LINKS = [
    LOGISTIC,
    PROBIT,
    clipped_linear(),
    clipped_linear(0.3),
    Link("logistic", 1.7),
    Link("probit", 0.6),
]
any_link = st.sampled_from(LINKS)
margins = st.floats(-30, 30)


def potential_of(link, x):
    return potential(link.kind, link.scale, x)


@given(any_link, st.floats(-1e6, 1e6))
def test_probabilities_of_both_sides_sum_to_one(link, x):
    assert float(link.probability(x) + link.probability(-x)) == pytest.approx(1.0, abs=2e-16)


@given(any_link, margins, st.floats(0, 10))
def test_probability_never_falls(link, x, step):
    assert link.probability(x + step) >= link.probability(x)


@given(any_link, margins)
def test_slope_is_the_derivative_of_the_probability(link, x):
    assume(link.name != "clipped-linear" or abs(abs(link.scale * x) - 0.5) > 1e-3)
    step = 1e-5
    numeric = (link.probability(x + step) - link.probability(x - step)) / (2 * step)
    assert float(link.slope(x)) == pytest.approx(float(numeric), abs=1e-8)


@given(any_link, margins)
def test_probability_is_the_derivative_of_the_potential(link, x):
    step = 1e-5
    numeric = (potential_of(link, x + step) - potential_of(link, x - step)) / (2 * step)
    assert float(link.probability(x)) == pytest.approx(numeric, abs=1e-5)


@given(any_link, st.floats(-40, 40), st.floats(-40, 40))
def test_potential_lies_above_its_tangents(link, x, y):
    tangent = potential_of(link, x) + float(link.probability(x)) * (y - x)
    assert potential_of(link, y) >= tangent - 1e-12 * (1 + abs(tangent))


@given(st.sampled_from([LOGISTIC, PROBIT, Link("logistic", 1.7)]), st.floats(0.01, 4), st.floats(-1, 1))
def test_slope_is_at_least_kappa_where_margins_can_lie(link, norm_bound, share):
    assert link.slope(2 * norm_bound * share) >= link.kappa(norm_bound)


@given(st.floats(0.01, 100), st.floats(-1, 1))
def test_clipped_linear_slope_is_its_scale_up_to_the_largest_allowed_bound(scale, share):
    link = clipped_linear(scale)
    norm_bound = 0.25 / scale
    assert link.kappa(norm_bound) == scale
    assert link.slope(2 * norm_bound * share) == scale


def test_logistic_kappa_is_the_papers_figure():
    assert LOGISTIC.kappa(2.0) == pytest.approx(1 / (2 + math.exp(4) + math.exp(-4)), rel=1e-13)


def test_probit_kappa_is_the_normal_density_at_twice_the_bound():
    assert PROBIT.kappa(1.5) == pytest.approx(stats.norm.pdf(3.0), rel=1e-13)


def test_kappa_of_a_scaled_link_carries_the_scale():
    assert Link("logistic", 0.5).kappa(2.0) == pytest.approx(0.5 * LOGISTIC.kappa(1.0), rel=1e-13)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_clipped_linear_refuses_a_bound_beyond_its_slope(scale):
    with pytest.raises(BadInputError, match=f"at most {0.25 / scale:g}"):
        clipped_linear(scale).kappa(0.2501 / scale)


def test_logistic_and_probit_agree_with_scipy_far_into_the_tails():
    x = np.linspace(-35, 35, 281)
    np.testing.assert_allclose(LOGISTIC.probability(x), special.expit(x), rtol=1e-13)
    np.testing.assert_allclose(PROBIT.probability(x), stats.norm.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(PROBIT.slope(x), stats.norm.pdf(x), rtol=1e-12)


def test_clipped_linear_is_equation_0014():
    x = [-0.6, -0.5, -0.1, 0.0, 0.25, 0.5, 2.0]
    np.testing.assert_allclose(clipped_linear().probability(x), [0, 0, 0.4, 0.5, 0.75, 1, 1], atol=1e-16)


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("x", [-1e300, 1e300])
def test_huge_margins_stay_finite(link, x):
    assert link.probability(x) == (x > 0)
    assert link.slope(x) == 0.0
    assert potential_of(link, x) == pytest.approx(max(x, 0.0))


def test_values_keep_the_shape_of_their_input():
    assert LOGISTIC.probability(0.3).shape == ()
    assert LOGISTIC.slope(np.zeros((2, 3))).shape == (2, 3)
    assert LOGISTIC.probability([]).shape == (0,)


@given(st.sampled_from(["logistic", "probit", "clipped-linear"]), st.floats(1e-6, 1e6))
def test_a_link_is_read_back_from_its_text(name, scale):
    link = Link(name, scale)
    assert as_link(str(link)) == link


def test_a_link_of_scale_one_is_its_bare_name():
    assert [str(link) for link in LINKS[:3]] == ["logistic", "probit", "clipped-linear"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("logistik", "logistic"), ("probbit", "probit"), ("clipped_linear", "clipped-linear")]
)
def test_an_unknown_link_is_answered_with_the_nearest(wrong, meant):
    with pytest.raises(BadInputError, match=f"did you mean '{meant}'"):
        as_link(wrong)
    with pytest.raises(BadInputError, match=f"did you mean '{meant}'"):
        Link(wrong)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_is_not_positive_is_refused(scale):
    with pytest.raises(BadInputError, match="positive"):
        Link("logistic", scale)


@pytest.mark.parametrize("text", ["probit(two)", "probit(-1)", "probit(nan)", "probit()", "probit(1", ""])
def test_a_text_with_a_bad_scale_is_refused(text):
    with pytest.raises(BadInputError):
        as_link(text)
