import math

import numpy as np
import pytest
from scipy.special import logsumexp

from fairduel import LOGISTIC, PROBIT, BadInputError, Duel, Outcome
from fairduel.action_sets import hypercube
from fairduel.agents import FGTS
from fairduel.agents.fgts import langevin
from fairduel.simulation import Cell

TRUTH = np.array([1.2, -0.8])
ACTIONS = np.array([[0.9, 0.1], [-0.4, 0.8], [0.2, -0.9], [-0.7, -0.5]])


def made(**settings):
    return FGTS(**{"dimension": 2, "norm_bound": 2.0, "horizon": 200, "seed": 3} | settings)


def played(agent, rounds, tables=(ACTIONS,), seed=0, ties=0.0):
    """Play; return (the set, x of chain 1, x of chain 2, y of chain 1's action, 0 in a tie) of each round."""
    rng, history = np.random.default_rng(seed), []
    for t in range(rounds):
        table = tables[t % len(tables)]
        duel = agent.ask(table)
        won = rng.random() < LOGISTIC.probability(duel.difference @ TRUTH)
        is_tie = ties and rng.random() < ties
        agent.tell(duel, Outcome.TIE if is_tie else Outcome.FIRST if won else Outcome.SECOND)
        mine, theirs = (duel.first, duel.second) if duel.chain == 0 else (duel.second, duel.first)
        sign = 0 if is_tie else 1 if won == (duel.chain == 0) else -1
        history.append((table, table[mine], table[theirs], sign))
    return history


def slow_density(theta, chain, history, eta, mu, prior_scale):
    """−log density of notes E6, round by round."""
    total = theta @ theta / (2 * prior_scale**2)
    for table, one, two, sign in history:
        opponent = two if chain == 0 else one
        for half in (sign, sign) if sign else (1, -1):
            total += 0.5 * eta * math.log1p(math.exp(-half * theta @ (one - two)))
        total -= mu * max(theta @ (x - opponent) for x in table)
    return total


SETS = (ACTIONS, 0.5 * ACTIONS[:3], 0.8 * ACTIONS[::-1])


@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize("tables", [(ACTIONS,), SETS], ids=["one set", "three sets of two sizes"])
def test_the_density_is_that_of_the_whole_history(tables, ties):
    agent = made(learning_rate=0.8, feel_good=0.3, prior_scale=1.5)
    history = played(agent, 60, tables, ties=ties)
    rng = np.random.default_rng(1)
    origin, _ = agent.posterior()(np.zeros((2, 2)))
    for _ in range(10):
        chains = rng.standard_normal((2, 2))
        values, _ = agent.posterior()(chains)
        for j in range(2):
            expected = slow_density(chains[j], j, history, 0.8, 0.3, 1.5)
            at_origin = slow_density(np.zeros(2), j, history, 0.8, 0.3, 1.5)
            assert values[j] - origin[j] == pytest.approx(expected - at_origin, rel=1e-9)


def test_the_gradient_is_that_of_finite_differences():
    agent = made(feel_good=0.3)
    played(agent, 40, SETS)
    rng, density = np.random.default_rng(2), agent.posterior()
    for _ in range(20):
        chains = rng.standard_normal((2, 2))
        _, gradients = density(chains)
        for axis in range(2):
            nudge = np.zeros((2, 2))
            nudge[:, axis] = 1e-6
            slope = (density(chains + nudge)[0] - density(chains - nudge)[0]) / 2e-6
            np.testing.assert_allclose(gradients[:, axis], slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("feel_good", [0.0, 0.1])
def test_the_chains_sample_their_posteriors(feel_good):
    """Means and deviations of 8,000 draws agree with those of a grid over the plane to 0.1 deviations."""
    agent = made(feel_good=feel_good)
    history = played(agent, 30)
    density, root = agent.posterior(), agent._root()
    side = np.linspace(-8, 8, 81)
    grid = np.array([(x, y) for x in side for y in side])
    chains, rng = agent.chains, np.random.default_rng(4)
    draws = np.empty((8_000, 2, 2))
    for i in range(len(draws)):
        chains = draws[i] = langevin(density, chains, root, step_size=1.0, steps=1, rng=rng)
    for j in range(2):
        heights = -np.array([density(np.tile(point, (2, 1)))[0][j] for point in grid])
        chance = np.exp(heights - logsumexp(heights))
        assert heights[0] - heights.max() == pytest.approx(
            slow_density(grid[np.argmax(heights)], j, history, 1.0, feel_good, 2.0)
            - slow_density(grid[0], j, history, 1.0, feel_good, 2.0)
        )
        mean = chance @ grid
        deviation = np.sqrt(chance @ (grid - mean) ** 2)
        assert np.abs(draws[:, j].mean(axis=0) - mean).max() < 0.1 * deviation.max()
        np.testing.assert_allclose(draws[:, j].std(axis=0), deviation, rtol=0.1)


def test_any_metric_and_step_leave_a_known_law_as_it_is():
    """Standard normal chains, a poor metric: exact draws stay exact."""
    rng = np.random.default_rng(5)
    chains = rng.standard_normal((20_000, 2))
    root = np.array([[0.9, 0.0], [0.7, 0.4]])
    moved = langevin(lambda c: (0.5 * np.sum(c**2, axis=1), c), chains, root, step_size=1.5, steps=5, rng=rng)
    assert (moved != chains).any(axis=1).mean() > 0.5
    np.testing.assert_allclose(moved.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(np.cov(moved.T), np.eye(2), atol=0.04)


def test_each_chain_puts_up_its_best_action():
    agent = made()
    for _ in range(30):
        duel = agent.ask(ACTIONS)
        best = [int(np.argmax(ACTIONS @ theta)) for theta in agent.chains]
        assert [duel.first, duel.second] == (best if duel.chain == 0 else best[::-1])
        agent.tell(duel, Outcome.FIRST)
    without = made(self_duels=False)
    assert not any(duel.is_self_duel for duel in without.ask_many(ACTIONS, 60))


def test_before_any_outcome_the_chains_are_draws_from_the_prior():
    chains = np.array([made(seed=seed, prior_scale=1.5).chains for seed in range(500)])
    assert chains.std() == pytest.approx(1.5, rel=0.06)
    assert np.abs(chains.mean(axis=0)).max() < 0.25


def test_the_feel_good_term_is_small_by_default_and_listed_in_the_settings():
    assert made().settings["feel_good"] == pytest.approx(0.1 * math.sqrt(2 / 200))
    assert made(feel_good="theory").settings["feel_good"] == pytest.approx(math.sqrt(2 / 200))
    assert made(feel_good=0.0).settings["feel_good"] == 0.0


def test_all_rounds_are_alike_to_be_kept_where_sets_change():
    rng = np.random.default_rng(0)
    tables = [0.5 * rng.random((3, 2)) for _ in range(40)]
    kept = np.zeros(40)
    for seed in range(100):
        agent = made(sets_kept=8, steps=1, seed=seed)
        agent.ask_many(tables[0], 1)
        for table in tables[1:]:
            agent.ask(table)
        sets, shares = agent._sets()
        assert sets.shape == (8, 3, 2)
        np.testing.assert_allclose(shares, 1 / 8)
        for i, table in enumerate(tables):
            kept[i] += any(np.array_equal(table, one) for one in sets)
    assert kept.sum() == 100 * 8
    assert np.abs(kept.reshape(4, 10).mean(axis=1) / 100 - 0.2).max() < 0.04


def test_late_outcomes_in_any_order_give_the_same_density():
    one, other = made(), made()
    duels, twins = one.ask_many(ACTIONS, 30), other.ask_many(ACTIONS, 30)
    for duel in duels:
        one.tell(duel, Outcome.FIRST)
    for i in np.random.default_rng(0).permutation(30):
        other.tell(twins[i], Outcome.FIRST)
    point = np.array([[0.5, -0.2], [1.0, 0.3]])
    for mine, theirs in zip(one.posterior()(point), other.posterior()(point), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_it_learns_the_best_action_and_little_regret():
    """The paper's cube, d = 5 and T = 800: random play has twice the best reward a round as its regret."""
    cell = Cell("fgts", "none", 0, 800)
    best = cell.start(3)[1].offer(1).rewards.max()
    assert cell.run(3).trace.regret.sum() < 0.25 * 2 * best * 800
    agent = FGTS(dimension=2, norm_bound=2.0, horizon=300, seed=1)
    played(agent, 300, (hypercube(2),))
    assert agent.recommend(hypercube(2)) == np.argmax(hypercube(2) @ TRUTH)


@pytest.mark.parametrize(
    "settings",
    [
        {"link": PROBIT},
        {"feel_good": "great"},
        {"feel_good": -0.1},
        {"steps": 0},
        {"step_size": 0},
        {"sets_kept": 0},
        {"prior_scale": "x"},
        {"learning_rate": math.nan},
        {"dimension": 0},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        made(**settings)


def test_a_duel_holds_enough_for_a_restart(tmp_path):
    agent = made()
    duel = agent.ask(ACTIONS)
    agent.save(tmp_path / "agent.npz")
    again = FGTS.load(tmp_path / "agent.npz")
    assert isinstance(again.pending[0], Duel)
    for each in (agent, again):
        each.tell(duel, Outcome.FIRST)
    point = np.ones((2, 2))
    np.testing.assert_array_equal(agent.posterior()(point)[0], again.posterior()(point)[0])


def test_single_precision_is_learned_exactly():
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(7, 64)) / 20).astype(np.float32)
    agents = [FGTS(dimension=64, norm_bound=2.0, horizon=50, seed=1) for _ in range(2)]
    for _ in range(5):
        one, two = (agent.ask(table) for agent, table in zip(agents, (rows, rows.astype(float)), strict=True))
        assert (one.first, one.second) == (two.first, two.second)
        for agent, duel in zip(agents, (one, two), strict=True):
            agent.tell(duel, Outcome.FIRST)
