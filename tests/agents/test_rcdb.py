import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, RCDB, BadInputError, MaxPairUCB, Outcome, clipped_linear
from fairduel.adversaries import Greedy
from fairduel.simulation import Streams, play
from fairduel.worlds import Hypercube
from helpers.agents import pair_scores, sphere

TRUTH = np.array([1.5, -1.0, 0.6])
KAPPA = 1 / (2 + math.exp(4) + math.exp(-4))


def lemma_beta(d, b, c, t, delta, lam, alpha, kappa):
    return math.sqrt(lam) * b + alpha * c + math.sqrt(d * math.log((1 + 2 * t / lam) / delta) / kappa)


@pytest.mark.parametrize(
    ("settings", "alpha", "slope", "beta"),
    [
        ({}, math.sqrt(3) / 4, 1.0, math.sqrt(3)),
        ({"design": "plain", "radius": 0.6, "trust": 0.9}, 0.9, 1.0, 0.6),
        ({"design": "kappa", "radius": 1.2}, math.sqrt(3 / KAPPA) / 4, KAPPA, 1.2),
        ({"design": "kappa", "radius": 0.3, "trust": 1.1, "ridge": 0.8}, 1.1, KAPPA, 0.3),
        (
            {"radius": "theory", "radius_scale": 0.01},
            math.sqrt(3 / KAPPA) / 4,
            KAPPA,
            0.01 * lemma_beta(3, 2, 4, 60, 0.05, 0.25, math.sqrt(3 / KAPPA) / 4, KAPPA),
        ),
    ],
    ids=["practical", "plain", "kappa", "kappa with ridge", "theory"],
)
def test_sixty_rounds_under_flips_are_algorithm_1(settings, alpha, slope, beta, slow_estimate):
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=4, horizon=60, seed=1, **settings)
    ridge = settings.get("ridge", 0.25)
    rng = np.random.default_rng(2)
    phis, weights, outcomes = np.empty((0, 3)), [], []
    for t in range(60):
        sigma = ridge * np.eye(3)
        for phi, weight in zip(phis, weights, strict=True):
            sigma += weight * slope * np.outer(phi, phi)
        inverse = np.linalg.inv(sigma)
        theta = agent.estimate
        np.testing.assert_allclose(theta, slow_estimate(phis, weights, outcomes, ridge, LOGISTIC), atol=1e-6)
        actions = sphere(rng, 7)
        score = pair_scores(actions, theta, inverse, beta)

        duel = agent.ask(actions)

        assert score[duel.first, duel.second] >= max(score.values()) - 1e-9
        phi = actions[duel.first] - actions[duel.second]
        width = math.sqrt(phi @ inverse @ phi)
        weight = min(1.0, alpha / width) if width > 0 else 1.0
        assert duel.width == pytest.approx(width, abs=1e-9)
        assert duel.weight == pytest.approx(weight, rel=1e-9)
        assert duel.slope == pytest.approx(slope, rel=1e-12)
        first_won = (rng.random() < LOGISTIC.probability(phi @ TRUTH)) != (t < 4)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, weights, outcomes = np.vstack([phis, phi]), [*weights, weight], [*outcomes, float(first_won)]
    assert min(weights) < 0.99
    assert max(weights) == 1.0


def test_a_weight_stays_as_it_was_when_the_duel_was_asked(score_equation):
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=20, horizon=100, trust=0.2)
    rng = np.random.default_rng(0)
    duels = [agent.ask(sphere(rng, 7)) for _ in range(30)]
    weights = np.array([duel.weight for duel in duels])
    assert weights[0] < weights[-1]  # the first was weighed by the ridge alone
    assert duels[0].weight == pytest.approx(0.2 / (2.0 * np.linalg.norm(duels[0].difference)), rel=1e-12)
    outcomes = rng.integers(0, 2, 30).astype(float)
    for k in reversed(range(30)):
        agent.tell(duels[k], Outcome.FIRST if outcomes[k] else Outcome.SECOND)
    differences = np.array([duel.difference for duel in duels])
    residual = score_equation(agent.estimate, differences, weights, outcomes, 0.25, LOGISTIC)
    assert np.abs(residual).max() < 1e-6


@pytest.mark.parametrize("design", ["kappa", "plain"])
def test_information_is_the_weighted_sum_of_outer_products(design):
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=20, horizon=100, design=design)
    rng = np.random.default_rng(0)
    duels = [agent.ask(sphere(rng, 7)) for _ in range(50)]
    slope = KAPPA if design == "kappa" else 1.0
    explicit = 0.25 * np.eye(3) + sum(d.weight * slope * np.outer(d.difference, d.difference) for d in duels)
    np.testing.assert_allclose(agent.information.matrix, explicit, rtol=1e-11)


@pytest.mark.parametrize("horizon", [1, 99, 100, 101, 2000])
def test_an_unknown_budget_is_the_root_of_the_horizon_rounded_up(horizon):
    agent = RCDB(dimension=5, norm_bound=2.0, horizon=horizon)
    budget = agent.settings["flip_budget"]
    assert (budget - 1) ** 2 < horizon <= budget**2
    assert agent.settings["trust"] == pytest.approx(math.sqrt(5) / budget)


def test_an_unknown_budget_needs_a_horizon():
    with pytest.raises(BadInputError, match="set flip_budget, or set horizon"):
        RCDB(dimension=5, norm_bound=2.0)


@pytest.mark.parametrize("radius", ["practical", "theory", "determinant", 1.0])
def test_without_flips_every_weight_is_one_and_nothing_is_nan(radius):
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=0, horizon=200, radius=radius)
    rng = np.random.default_rng(0)
    for _ in range(60):
        duel = agent.ask(sphere(rng, 7))
        assert duel.weight == 1.0
        agent.tell(duel, Outcome.FIRST if rng.random() < 0.7 else Outcome.SECOND)
        assert math.isfinite(agent.current_radius)
        assert np.isfinite(agent.estimate).all()
        assert np.isfinite(agent.information.inverse).all()
    assert agent.settings["trust"] == math.inf


def test_without_flips_it_is_maxpairucb():
    robust = RCDB(dimension=3, norm_bound=2.0, flip_budget=0, horizon=200, seed=3)
    plain = MaxPairUCB(dimension=3, norm_bound=2.0, horizon=200, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions, uniform = sphere(rng, 7), rng.random()
        for agent in (robust, plain):
            duel = agent.ask(actions)
            first_won = uniform < LOGISTIC.probability(duel.difference @ TRUTH)
            agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        assert robust.information.matrix.tolist() == plain.information.matrix.tolist()
    np.testing.assert_array_equal(robust.estimate, plain.estimate)


def test_the_theorems_values_come_with_the_theorems_radius():
    agent = RCDB(dimension=5, norm_bound=2.0, flip_budget=45, horizon=2000, radius="theory", failure_probability=0.1)
    alpha = math.sqrt(5) / 45 / math.sqrt(KAPPA)
    assert agent.settings["design"] == "kappa"
    assert agent.settings["ridge"] == 0.25
    assert agent.settings["trust"] == pytest.approx(alpha, rel=1e-12)
    assert agent.settings["trust"] == pytest.approx(0.374, abs=5e-4)
    assert agent.current_radius == pytest.approx(lemma_beta(5, 2, 45, 2000, 0.1, 0.25, alpha, KAPPA), rel=1e-12)
    assert agent.current_radius == pytest.approx(76, abs=0.5)


def test_the_practical_values_come_with_the_practical_radius():
    agent = RCDB(dimension=5, norm_bound=2.0, flip_budget=45, horizon=2000)
    assert agent.settings["design"] == "plain"
    assert agent.settings["ridge"] == 0.25
    assert agent.settings["trust"] == pytest.approx(math.sqrt(5) / 45, rel=1e-12)
    assert agent.current_radius == pytest.approx(math.sqrt(5), rel=1e-12)
    assert RCDB(dimension=5, norm_bound=2.0, flip_budget=0, horizon=2000).current_radius == pytest.approx(
        math.sqrt(5 * math.log(2000))
    )


def test_on_the_plain_design_the_theorems_radius_grows_by_one_over_root_kappa():
    common = {"dimension": 5, "norm_bound": 2.0, "flip_budget": 45, "horizon": 2000, "radius": "theory"}
    kappa, plain = RCDB(design="kappa", **common), RCDB(design="plain", **common)
    assert plain.current_radius == pytest.approx(kappa.current_radius / math.sqrt(KAPPA), rel=1e-12)
    assert plain.settings["trust"] == pytest.approx(kappa.settings["trust"] * math.sqrt(KAPPA), rel=1e-12)


def test_the_determinant_radius_after_a_run_is_half_the_theorems():
    streams = Streams.of(0)
    agent = RCDB(
        dimension=5, norm_bound=2.0, flip_budget=45, horizon=2000, radius="determinant", failure_probability=0.1
    )
    alpha_c = math.sqrt(5 / KAPPA)
    fresh = 1 + alpha_c + math.sqrt(2 * math.log(10)) / (2 * math.sqrt(KAPPA))
    assert agent.current_radius == pytest.approx(fresh, rel=1e-9)
    play(agent, Hypercube(rng=streams.world), Greedy(budget=45), horizon=2000, labels=streams.labels)
    grown = 0.5 * (np.linalg.slogdet(agent.information.matrix)[1] - 5 * math.log(0.25)) + math.log(10)
    assert agent.current_radius == pytest.approx(1 + alpha_c + math.sqrt(grown / (2 * KAPPA)), rel=1e-9)
    assert 35 < agent.current_radius < 38  # 38 is the largest that det Σ allows


@pytest.mark.parametrize("link", [PROBIT, clipped_linear(0.1)], ids=str)
def test_another_link_brings_its_own_kappa(link):
    agent = RCDB(dimension=3, norm_bound=1.0, flip_budget=4, horizon=50, link=link, design="kappa")
    assert agent.ask(np.eye(3)).slope == float(link.slope(2.0))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("flip_budget", -1), ("flip_budget", 1.5), ("trust", 0.0), ("trust", -1.0), ("trust", math.nan)],
)
def test_a_bad_setting_is_refused_by_name(setting, value):
    with pytest.raises(BadInputError, match=f"{setting} must be"):
        RCDB(dimension=3, norm_bound=2.0, horizon=100, **{setting: value})


def test_an_unknown_radius_is_answered_with_the_nearest():
    with pytest.raises(BadInputError, match="did you mean 'determinant'"):
        RCDB(dimension=3, norm_bound=2.0, horizon=100, radius="determinent")
