"""What every agent with features does between ask and tell."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from fairduel import (
    LOGISTIC,
    PROBIT,
    RCDBS,
    BadInputError,
    MaxPairUCB,
    Outcome,
    clipped_linear,
)
from fairduel.agents import AGENTS, GINOP
from helpers.agents import ACTIONS, FIVE, TRUTH, answer, made, played, same, sphere, sums


def test_a_duel_names_two_of_the_actions_and_their_difference(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    for number in range(30):
        actions = sphere(rng)
        duel = agent.ask(actions)
        assert duel.number == number
        np.testing.assert_array_equal(duel.difference, actions[duel.first] - actions[duel.second])
        assert 0 < duel.weight <= 1
        agent.tell(duel, answer(duel, rng.random()))


def test_the_width_is_taken_before_the_duel_is_counted(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    for _ in range(30):
        matrix = agent.steering if kind is GINOP else agent.information  # RCDB-S weighs by Σ, too
        before = matrix.matrix.copy()
        duel = agent.ask(sphere(rng))
        phi = duel.difference
        assert duel.width == pytest.approx(math.sqrt(phi @ np.linalg.solve(before, phi)), rel=1e-9, abs=1e-12)
        agent.tell(duel, answer(duel, rng.random()))


@pytest.mark.parametrize(("link", "norm_bound"), [(LOGISTIC, 2.0), (PROBIT, 1.0), (clipped_linear(0.2), 1.25)], ids=str)
def test_the_estimate_solves_equation_mle_on_the_whole_history(kind, link, norm_bound, score_equation, slow_estimate):
    if kind is RCDBS and link is not LOGISTIC:
        with pytest.raises(BadInputError, match="supports only the logistic link"):
            made(kind, link=link, norm_bound=norm_bound)
        return
    agent = made(kind, link=link, norm_bound=norm_bound)
    history = sums(played(agent, 120))
    ridge = agent.settings["ridge"]
    residual = score_equation(agent.estimate, *history, ridge, link)
    assert np.abs(residual).max() <= 1e-8 * (1 + history[1].sum())
    np.testing.assert_allclose(agent.estimate, slow_estimate(*history, ridge, link), atol=1e-5)


def test_no_outcome_no_opinion(kind):
    agent = made(kind)
    agent.ask_many(ACTIONS, 5)
    assert agent.estimate.tolist() == [0, 0, 0]


def test_the_estimate_is_a_copy(kind):
    agent = made(kind)
    played(agent, 10)
    estimate = agent.estimate
    estimate[:] = 99.0
    assert not (agent.estimate == 99.0).any()


def test_the_agent_keeps_no_hold_of_the_actions(kind):
    agent, other = made(kind), made(kind)
    table = ACTIONS.copy()
    duel, twin = agent.ask(table), other.ask(ACTIONS)
    assert (table == ACTIONS).all()
    table[:] = 0.0
    agent.tell(duel, Outcome.FIRST)
    other.tell(twin, Outcome.FIRST)
    np.testing.assert_array_equal(agent.estimate, other.estimate)


def test_it_learns_the_best_action(kind):
    agent = made(kind, horizon=600)
    history = played(agent, 600)
    best = ACTIONS @ TRUTH
    assert agent.recommend(ACTIONS) == np.argmax(best)
    cosine = agent.estimate @ TRUTH / np.linalg.norm(agent.estimate) / np.linalg.norm(TRUTH)
    assert cosine > 0.9
    assert len(history) == agent.asked


def test_recommend_takes_the_lowest_of_equals_and_asks_nothing(kind):
    agent = made(kind)
    before = agent.state()
    assert agent.recommend([[0.1, 0.1, 0.1]] * 3) == 0
    assert same(agent.state(), before)
    with pytest.raises(BadInputError):
        agent.recommend([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def test_a_self_duel_teaches_nothing():
    agent = made(MaxPairUCB, radius=0.0, warmup=10)
    played(agent, 10)
    estimate, matrix = agent.estimate, agent.information.matrix.copy()
    duel = agent.ask(ACTIONS)
    assert duel.is_self_duel
    assert duel.weight == 1.0
    assert duel.width == 0.0
    agent.tell(duel, Outcome.FIRST)
    np.testing.assert_array_equal(agent.estimate, estimate)
    np.testing.assert_array_equal(agent.information.matrix, matrix)
    assert not agent.pending


def test_an_outcome_that_is_none_is_refused_and_the_duel_still_waits(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    for wrong in (1, True, "first", None):
        with pytest.raises(BadInputError, match="Outcome"):
            agent.tell(duel, wrong)
    assert agent.pending == (duel,)
    agent.tell(duel, Outcome.SECOND)
    assert agent.pending == ()


@pytest.mark.parametrize(
    "actions",
    [
        [[math.nan, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.9, 0.9, 0.0], [0.0, 0.0, 0.0]],
        [[0.5, 0.5], [0.1, 0.2]],
        [0.1, 0.2, 0.3],
        [],
        np.empty((0, 3)),
        [[0.1, 0.2, 0.3]],
        [["a", "b", "c"], ["d", "e", "f"]],
        "actions",
        None,
        [[0.1, 0.2, 0.3], [0.1]],
    ],
    ids=[
        "nan",
        "infinite",
        "long",
        "dimension",
        "one-dimensional",
        "empty",
        "no rows",
        "single",
        "strings",
        "text",
        "none",
        "ragged",
    ],
)
def test_bad_actions_are_refused_and_change_nothing(kind, actions):
    agent = made(kind, warmup=10)
    told, _ = agent.ask_many(ACTIONS, 2)
    agent.tell(told, Outcome.FIRST)
    before = agent.state()
    assert before["belief"]["estimator"]["stale"]
    for ask in (agent.ask, lambda table: agent.ask_many(table, 3)):
        with pytest.raises(BadInputError):
            ask(actions)
        assert same(agent.state(), before)


@pytest.mark.parametrize("kind", [AGENTS[name] for name in FIVE], ids=FIVE)
def test_in_high_dimension_the_books_are_the_same(kind):
    rng = np.random.default_rng(0)
    agent = made(kind, dimension=80, norm_bound=1.0)
    actions = sphere(rng, count=9, dimension=80)
    truth = actions[4]
    explicit = agent.settings["ridge"] * np.eye(80)
    for round_number in range(60):
        duel = agent.ask(actions)
        phi = duel.difference
        width = math.sqrt(phi @ np.linalg.solve(explicit, phi))
        assert duel.width == pytest.approx(width, rel=1e-8, abs=1e-7)
        explicit += duel.weight * (1.0 if kind is RCDBS else duel.slope) * np.outer(phi, phi)
        if round_number % 20 == 7:
            agent.cancel(duel)
            explicit -= duel.weight * (1.0 if kind is RCDBS else duel.slope) * np.outer(phi, phi)
        else:
            agent.tell(duel, Outcome.FIRST if phi @ truth > 0 else Outcome.SECOND)
    np.testing.assert_allclose(agent.information.matrix, explicit, atol=1e-10)
    assert agent.recommend(actions) == 4


def test_the_seed_decides_everything(kind):
    one, other = played(made(kind, seed=3), 80), played(made(kind, seed=3), 80)
    assert one == other
    assert one != played(made(kind, seed=4), 80)


def test_both_orders_are_asked_equally_often(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    duels = [agent.ask(sphere(rng)) for _ in range(500)]
    real = [duel for duel in duels if not duel.is_self_duel]
    lower_first = sum(duel.first < duel.second for duel in real)
    assert len(real) > 400
    assert stats.binomtest(lower_first, len(real)).pvalue > 0.01


def test_the_warm_up_asks_every_pair_of_distinct_actions_equally(kind):
    agent, rng = made(kind, warmup=1200, radius=0.0), np.random.default_rng(0)
    pairs = Counter()
    for _ in range(1200):
        duel = agent.ask(ACTIONS)
        pairs[duel.first, duel.second] += 1
        agent.tell(duel, answer(duel, rng.random()))
    assert len(pairs) == 12
    assert all(first != second for first, second in pairs)
    assert stats.chisquare(list(pairs.values())).pvalue > 0.01
    assert agent.ask(ACTIONS).is_self_duel  # radius 0: it is over
