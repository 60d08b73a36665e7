import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import LOGISTIC
from fairduel.core import radius
from fairduel.core.information import Information
from fairduel.core.selection import uncertainty_weight

D, B, T, C, DELTA = 5, 2.0, 2000, 45, 0.1
KAPPA = LOGISTIC.kappa(B)

dimensions = st.integers(1, 30)
bounds = st.floats(0.2, 4)
budgets = st.integers(1, 1000)
horizons = st.integers(2, 10**6)
slopes = st.floats(1e-4, 0.25)
failures = st.floats(0.001, 0.5)
ridges = st.floats(0.01, 10)


def approx(value):
    return pytest.approx(value, rel=1e-11)


def lemma_mle(d, b, c, t, kappa, delta, lam, alpha):
    return lam**0.5 * b + alpha * c + (d / kappa * (math.log(1 + 2 * t / lam) - math.log(delta))) ** 0.5


@given(dimensions, budgets, slopes)
def test_rcdb_trust_is_theorem_mains(d, c, kappa):
    assert radius.rcdb_trust(d, c, kappa) == approx(d**0.5 / (c * kappa**0.5))


@given(dimensions, bounds, budgets, horizons, slopes, failures, ridges)
def test_rcdb_radius_is_lemma_mles(d, b, c, t, kappa, delta, lam):
    alpha = radius.rcdb_trust(d, c, kappa)
    noise = radius.horizon_noise(dimension=d, horizon=t, ridge=lam, kappa=kappa, failure=delta)
    beta = radius.confidence_radius(norm_bound=b, flip_budget=c, ridge=lam, trust=alpha, noise=noise)
    assert beta == approx(lemma_mle(d, b, c, t, kappa, delta, lam, alpha))


@given(st.integers(0, 2**32 - 1), slopes, failures, ridges)
def test_determinant_noise_is_the_self_normalised_bound(seed, kappa, delta, lam):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((3, 6))
    matrix = lam * np.eye(3) + root @ root.T
    noise = radius.determinant_noise(
        dimension=3,
        log_determinant=float(np.linalg.slogdet(matrix)[1]),
        ridge=lam,
        kappa=kappa,
        failure=delta,
    )
    ratio = math.sqrt(np.linalg.det(matrix)) * lam**-1.5 / delta
    assert noise == approx(0.5 / math.sqrt(kappa) * math.sqrt(2 * math.log(ratio)))


@given(dimensions, bounds, budgets, st.integers(1, 10**6), failures)
def test_rcdbs_radius_is_lemma_ces(d, b, c, t, delta):
    lam = radius.rcdbs_ridge(d, b)
    alpha = radius.rcdbs_trust(d, b, c, lam)
    assert lam == approx(d / b)
    assert alpha * c == approx(d**0.5 + lam**0.5 * b)
    beta = radius.rcdbs_radius(
        dimension=d, norm_bound=b, flip_budget=c, round_number=t, ridge=lam, trust=alpha, failure=delta
    )
    logs = math.log((d * lam + 2 * t) / (d * lam)) + math.log(1 / delta)
    inner = [lam**0.5 * b, lam**0.5 / 2, 2 / lam**0.5 * d * logs, alpha * c]
    assert beta == approx((1 + 4 * b) * sum(inner))


@given(dimensions, horizons, slopes, failures, ridges, st.floats(0.1, 100))
def test_the_regret_bound_is_the_sum_of_both_cases(d, t, kappa, delta, lam, beta):
    alpha = delta
    logarithm = math.log(1 + 2 * t / lam)
    j1 = 4 * beta / kappa**0.5 * (d * t * logarithm) ** 0.5
    j2 = 4 * d * beta * logarithm / (alpha * kappa)
    bound = radius.rcdb_regret_bound(dimension=d, horizon=t, ridge=lam, trust=alpha, kappa=kappa, radius=beta)
    assert bound == approx(j1 + j2)


@given(dimensions, horizons, slopes, failures)
def test_maxinp_radius_is_sahas(d, t, kappa, delta):
    inner = 0.5 * d * math.log1p(2 * t / d) - math.log(delta)
    assert radius.maxinp_radius(d, t, kappa, delta) == approx(inner**0.5 / kappa / 2)


@given(dimensions, st.integers(100, 10**6), slopes)
def test_colstim_radius_is_bengs(d, t, kappa):
    inner = d * (math.log(t) - math.log(d)) + 2 * math.log(t)
    assert radius.colstim_radius(d, t, kappa) == approx(inner**0.5 / (2 * kappa))


@given(dimensions, st.integers(100, 10**6), st.integers(1, 10**6))
def test_colstim_mixing_is_bengs(d, t, since):
    assert radius.colstim_mixing(d, t, since) == approx(min(1.0, d * math.log(d * t) / since**0.5))


def test_colstim_mixes_always_in_the_papers_setting():
    assert all(radius.colstim_mixing(D, T, since) == 1.0 for since in (1, 45, T))


@given(dimensions, horizons)
def test_practical_radius_grows_with_the_logarithm(d, t):
    assert radius.practical_radius(d, t) == approx((d * math.log(t)) ** 0.5)


def test_short_horizons_leave_every_radius_usable():
    for horizon in (1, 2, 3):
        assert radius.practical_radius(5, horizon) > 0
        assert radius.colstim_radius(5, horizon, KAPPA) > 0
        assert radius.maxinp_radius(5, horizon, KAPPA, DELTA) > 0


def test_the_papers_setting_has_the_figures_of_the_notes():
    lam = radius.rcdb_ridge(B)
    alpha = radius.rcdb_trust(D, C, KAPPA)
    noise = radius.horizon_noise(dimension=D, horizon=T, ridge=lam, kappa=KAPPA, failure=DELTA)
    beta = radius.confidence_radius(norm_bound=B, flip_budget=C, ridge=lam, trust=alpha, noise=noise)
    assert lam == 0.25
    assert alpha == pytest.approx(0.374, abs=5e-4)
    assert beta == pytest.approx(76, abs=0.5)


def test_the_largest_determinant_has_the_figure_of_the_notes():
    lam = radius.rcdb_ridge(B)
    largest = D * math.log(lam + 4 * KAPPA * T / D)  # det ≤ (tr/d)^d, ‖φ‖ ≤ 2, w = 1
    noise = radius.determinant_noise(dimension=D, log_determinant=largest, ridge=lam, kappa=KAPPA, failure=DELTA)
    trust = radius.rcdb_trust(D, C, KAPPA)
    beta = radius.confidence_radius(norm_bound=B, flip_budget=C, ridge=lam, trust=trust, noise=noise)
    assert beta == pytest.approx(38, abs=0.5)


def test_rcdbs_has_the_figure_of_the_notes():
    lam = radius.rcdbs_ridge(D, B)
    beta = radius.rcdbs_radius(
        dimension=D,
        norm_bound=B,
        flip_budget=C,
        round_number=T,
        ridge=lam,
        trust=radius.rcdbs_trust(D, B, C, lam),
        failure=DELTA,
    )
    assert beta == pytest.approx(544, abs=0.5)


def test_without_flips_trust_is_boundless_and_costs_nothing():
    lam = radius.rcdb_ridge(B)
    assert radius.rcdb_trust(D, 0, KAPPA) == math.inf
    assert radius.rcdbs_trust(D, B, 0, lam) == math.inf
    assert radius.corruption_term(math.inf, 0) == 0.0
    assert radius.confidence_radius(norm_bound=B, flip_budget=0, ridge=lam, trust=math.inf, noise=3.0) == 4.0
    bound = radius.rcdb_regret_bound(dimension=D, horizon=T, ridge=lam, trust=math.inf, kappa=KAPPA, radius=4.0)
    assert math.isfinite(bound)


@given(budgets, budgets)
def test_at_the_theorems_trust_the_radius_does_not_depend_on_the_budget(one, other):
    radii = [
        radius.confidence_radius(
            norm_bound=B, flip_budget=c, ridge=0.25, trust=radius.rcdb_trust(D, c, KAPPA), noise=1.0
        )
        for c in (one, other)
    ]
    assert radii[0] == approx(radii[1])


@given(st.integers(0, 2**32 - 1), slopes, st.floats(0.05, 2), st.integers(1, 100))
def test_the_kappa_design_is_the_plain_one_with_ridge_over_kappa(seed, kappa, lam, c):
    rng = np.random.default_rng(seed)
    with_kappa, plain = Information(3, lam), Information(3, lam / kappa)
    trust_kappa, trust_plain = radius.rcdb_trust(3, c, kappa), radius.rcdb_trust(3, c, 1.0)
    assert trust_plain == approx(trust_kappa * math.sqrt(kappa))
    for _ in range(40):
        direction = rng.uniform(-1, 1, 3)
        width_kappa, width_plain = with_kappa.width(direction), plain.width(direction)
        assert width_plain == pytest.approx(math.sqrt(kappa) * width_kappa, rel=1e-9)
        weight = uncertainty_weight(trust_kappa, width_kappa)
        assert uncertainty_weight(trust_plain, width_plain) == pytest.approx(weight, rel=1e-9)
        with_kappa.add(direction, weight * kappa)
        plain.add(direction, weight)
