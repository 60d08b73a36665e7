import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, RCDBS, BadInputError, Link, Outcome
from fairduel.core.information import Information
from helpers.agents import sphere

TRUTH = np.array([1.5, -1.0, 0.6])
KAPPA = 1 / (2 + math.exp(4) + math.exp(-4))


def sigmoid_slope(x):
    return math.exp(-x) / (1 + math.exp(-x)) ** 2


def practical(t):  # noqa: ARG001
    return math.sqrt(3) / 4, math.sqrt(3) / 2


def theory(t, scale=1.0):
    lam, c, delta = 1.5, 4, 0.05
    alpha_c = math.sqrt(3) + math.sqrt(lam) * 2
    beta = math.sqrt(lam) * 2 + math.sqrt(3 * math.log(2 * (1 + 2 * t / lam) / delta)) / math.sqrt(KAPPA) + alpha_c
    logarithm = math.log((3 * lam + 2 * t) / (3 * lam)) + math.log(1 / delta)
    inner = math.sqrt(lam) * 2 + math.sqrt(lam) / 2 + 2 * 3 / math.sqrt(lam) * logarithm + alpha_c / c * c
    return scale * beta, scale * (1 + 4 * 2) * inner


BY_THEOREM = {"radius": "theory", "slope_radius": "theory"}


@pytest.mark.parametrize(
    ("settings", "ridge", "alpha", "design", "radii"),
    [
        ({}, 0.25, math.sqrt(3) / 4, 1.0, practical),
        ({"radius": 0.7, "slope_radius": 0.2, "trust": 0.8}, 0.25, 0.8, 1.0, lambda _: (0.2, 0.7)),
        (
            {"radius": 0.7, "slope_radius": 0.1, "design": "kappa"},
            0.25,
            math.sqrt(3 / KAPPA) / 4,
            KAPPA,
            lambda _: (0.1, 0.7),
        ),
        (BY_THEOREM, 1.5, (math.sqrt(3) + math.sqrt(1.5) * 2) / 4, KAPPA, theory),
        (
            BY_THEOREM | {"radius_scale": 0.01},
            1.5,
            (math.sqrt(3) + math.sqrt(1.5) * 2) / 4,
            KAPPA,
            lambda t: theory(t, 0.01),
        ),
    ],
    ids=["practical", "numbers", "kappa", "theory", "scaled theory"],
)
def test_sixty_rounds_under_flips_are_algorithm_2(settings, ridge, alpha, design, radii, slow_estimate):
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=4, horizon=60, seed=1, **settings)
    rng = np.random.default_rng(2)
    phis, weights, slopes, outcomes = np.empty((0, 3)), [], [], []
    for t in range(1, 61):
        sigma, local = ridge * np.eye(3), ridge * np.eye(3)
        for phi, weight, slope in zip(phis, weights, slopes, strict=True):
            sigma += weight * design * np.outer(phi, phi)
            local += weight * slope * np.outer(phi, phi)
        inverse, local_inverse = np.linalg.inv(sigma), np.linalg.inv(local)
        slope_beta, beta = radii(t)
        theta = agent.estimate
        np.testing.assert_allclose(theta, slow_estimate(phis, weights, outcomes, ridge, LOGISTIC), atol=1e-6)
        np.testing.assert_allclose(agent.steering.matrix, local, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(agent.information.matrix, sigma, rtol=1e-9, atol=1e-12)
        actions = sphere(rng, 7)
        score = {
            (a, b): (x + y) @ theta + beta * math.sqrt((x - y) @ local_inverse @ (x - y))
            for a, x in enumerate(actions)
            for b, y in enumerate(actions)
        }

        duel = agent.ask(actions)

        assert score[duel.first, duel.second] >= max(score.values()) - 1e-9 * max(1.0, beta)
        phi = actions[duel.first] - actions[duel.second]
        width = math.sqrt(phi @ inverse @ phi)
        weight = min(1.0, alpha / width) if width > 0 else 1.0
        slope = max(KAPPA, sigmoid_slope(abs(phi @ theta) + slope_beta * width))
        assert duel.width == pytest.approx(width, abs=1e-9)
        assert duel.weight == pytest.approx(weight, rel=1e-9)
        assert duel.slope == pytest.approx(slope, rel=1e-7)
        first_won = (rng.random() < LOGISTIC.probability(phi @ TRUTH)) != (t <= 4)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, weights = np.vstack([phis, phi]), [*weights, weight]
        slopes, outcomes = [*slopes, slope], [*outcomes, float(first_won)]
    if "radius_scale" not in settings and settings != BY_THEOREM:
        assert min(weights) < 0.99
        assert len({round(slope, 6) for slope in slopes}) > 30


def test_by_the_theorem_every_slope_is_kappa_and_both_matrices_are_one():
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=4, horizon=60, radius="theory", slope_radius="theory")
    rng = np.random.default_rng(0)
    for _ in range(40):
        duel = agent.ask(sphere(rng, 7))
        assert duel.slope == agent.settings["kappa"]
        agent.tell(duel, Outcome.FIRST)
    np.testing.assert_array_equal(agent.steering.matrix, agent.information.matrix)


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_the_plain_design_with_ridge_over_kappa_is_the_theorem(scale):
    """Σ_κ/κ is the plain Σ with ridge λ/κ: with α and β carried over, nothing that the agent does may change."""
    by_theorem = BY_THEOREM | {"radius_scale": scale, "ridge": 1.5}
    printed, plain = (
        RCDBS(dimension=3, norm_bound=2.0, flip_budget=4, horizon=60, seed=1, design=design, **by_theorem)
        for design in ("kappa", "plain")
    )
    plain.belief.information = Information(3, 1.5 / KAPPA)
    rng, weights = np.random.default_rng(2), []
    for _ in range(60):
        actions = sphere(rng, 7)
        duel, twin = printed.ask(actions), plain.ask(actions)
        assert (duel.first, duel.second) == (twin.first, twin.second)
        assert twin.width == pytest.approx(math.sqrt(KAPPA) * duel.width, rel=1e-9)
        assert (twin.weight, twin.slope) == pytest.approx((duel.weight, duel.slope), rel=1e-9)
        assert plain.current_radius == pytest.approx(printed.current_radius, rel=1e-12)
        outcome = Outcome.FIRST if rng.random() < LOGISTIC.probability(duel.difference @ TRUTH) else Outcome.SECOND
        printed.tell(duel, outcome)
        plain.tell(twin, outcome)
        weights.append(duel.weight)
    assert min(weights) < 0.9


def test_the_theorems_radius_has_the_figure_of_the_notes():
    agent = RCDBS(dimension=5, norm_bound=2.0, flip_budget=45, radius="theory", failure_probability=0.1)
    assert agent.radius_at(2000) == pytest.approx(544, abs=0.5)
    assert agent.settings["ridge"] == 2.5
    assert agent.settings["trust"] * 45 == pytest.approx(math.sqrt(5) + math.sqrt(2.5) * 2)


def test_the_theorems_radii_follow_the_round():
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=4, horizon=10**6, radius="theory", slope_radius="theory")
    rng = np.random.default_rng(0)
    for t in range(1, 6):
        assert (agent.slope_radius_at(t), agent.current_radius) == pytest.approx(theory(t), rel=1e-12)
        agent.ask(sphere(rng, 7))


def test_cancel_takes_the_duel_out_of_both_matrices():
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=4, horizon=60)
    rng = np.random.default_rng(0)
    agent.ask_many(sphere(rng, 7), 5)
    before = agent.steering.inverse.copy(), agent.information.inverse.copy()
    agent.cancel(agent.ask(sphere(rng, 7)))
    np.testing.assert_allclose(agent.steering.inverse, before[0], atol=1e-10)
    np.testing.assert_allclose(agent.information.inverse, before[1], atol=1e-10)


@pytest.mark.parametrize("radius", ["practical", "theory", 1.0])
def test_without_flips_every_weight_is_one_and_nothing_is_nan(radius):
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=0, horizon=200, radius=radius, slope_radius="theory")
    rng = np.random.default_rng(0)
    for _ in range(60):
        duel = agent.ask(sphere(rng, 7))
        assert duel.weight == 1.0
        assert KAPPA * (1 - 1e-12) <= duel.slope <= 0.25
        agent.tell(duel, Outcome.FIRST if rng.random() < 0.7 else Outcome.SECOND)
        assert math.isfinite(agent.current_radius)
        assert math.isfinite(agent.slope_radius_at(agent.asked + 1))
        assert np.isfinite(agent.estimate).all()


@pytest.mark.parametrize("horizon", [1, 99, 100, 101, 2000])
def test_an_unknown_budget_is_the_root_of_the_horizon_rounded_up(horizon):
    budget = RCDBS(dimension=5, norm_bound=2.0, horizon=horizon).settings["flip_budget"]
    assert (budget - 1) ** 2 < horizon <= budget**2


def test_an_unknown_budget_needs_a_horizon():
    with pytest.raises(BadInputError, match="set flip_budget, or set horizon"):
        RCDBS(dimension=5, norm_bound=2.0)


@pytest.mark.parametrize("link", [PROBIT, "probit", Link("logistic", 2.0), "clipped-linear(0.1)"], ids=str)
def test_another_link_is_refused_with_the_reason(link):
    with pytest.raises(BadInputError, match=r"only the logistic link, not .*; use RCDB"):
        RCDBS(dimension=3, norm_bound=2.0, horizon=100, link=link)
