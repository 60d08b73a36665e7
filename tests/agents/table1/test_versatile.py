import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from fairduel import BadInputError, Duel, Outcome
from fairduel.agents import VersatileDB
from fairduel.agents.table1.versatile import tsallis_distribution
from fairduel.core.selection import draw
from fairduel.simulation import Cell

LOSSES = st.lists(st.floats(0, 1e6), min_size=2, max_size=12).map(np.array)
RATES = st.floats(1e-3, 4.0)


@given(LOSSES, RATES)
def test_the_distribution_sums_to_one_and_is_that_of_a_root_finder(losses, rate):
    p = tsallis_distribution(losses, rate)
    assert abs(p.sum() - 1) <= 1e-12
    assert (p > 0).all()

    def excess(x):
        return np.sum(4 / (rate * (losses - losses.min() - x)) ** 2) - 1

    x = brentq(excess, -2 * math.sqrt(len(losses)) / rate, -2 / rate, xtol=1e-14 / rate, rtol=1e-14)
    np.testing.assert_allclose(p, 4 / (rate * (losses - losses.min() - x)) ** 2, rtol=1e-9)


@given(LOSSES, RATES, st.floats(-1e3, 1e3))
def test_only_differences_of_losses_count_and_less_loss_is_more_chance(losses, rate, shift):
    p = tsallis_distribution(losses, rate)
    np.testing.assert_allclose(tsallis_distribution(losses + shift, rate), p, rtol=1e-5)
    order = np.argsort(losses)
    assert (np.diff(p[order]) <= 1e-15).all()


def test_a_draw_follows_the_chances():
    p = np.array([0.2, 0.0, 0.5, 0.3])
    drawn = np.bincount([draw(p, u) for u in (np.arange(1000) + 0.5) / 1000], minlength=4)
    assert drawn.tolist() == [200, 0, 500, 300]
    assert draw(p, 0.0) == 0
    assert draw(p, 1 - 1e-16) == 3


@pytest.mark.parametrize("ties", [0.0, 0.3])
@pytest.mark.parametrize(("form", "rate"), [("two-players", 2.0), ("two-players", 4.0), ("one-learner", 2.0)])
def test_losses_are_weighed_by_the_chances_of_asking(form, rate, ties):
    agent = VersatileDB(arms=4, form=form, rate=rate, seed=5)
    losses = np.zeros((2, 4))
    rng = np.random.default_rng(1)
    for t in range(1, 80):
        p = [tsallis_distribution(row, rate / math.sqrt(t)) for row in losses]
        for mine, theirs in zip(agent.distributions, p, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)
        duel = agent.ask()
        players = (0, 1) if duel.player == 0 else (1, 0)
        outcome = Outcome.FIRST if rng.random() < 0.6 else Outcome.SECOND
        if rng.random() < ties:
            outcome = Outcome.TIE
        agent.tell(duel, outcome)
        is_even = duel.is_self_duel or outcome is Outcome.TIE
        paid = (0.5, 0.5) if is_even else (0, 1) if outcome is Outcome.FIRST else (1, 0)
        for player, arm, loss in zip(players, (duel.first, duel.second), paid, strict=True):
            estimate = loss / p[player][arm]
            if form == "two-players":
                losses[player, arm] += estimate
            else:
                losses[:, arm] += estimate / 2
    assert agent.recommend() == np.argmin(losses.sum(axis=0))


def test_the_loss_estimates_are_unbiased():
    """Over 2000 agents in their first round, the mean estimated loss of arm k is Σ_j (1 − P_kj)/K."""
    chances = np.array([[0.5, 0.9, 0.7], [0.1, 0.5, 0.6], [0.3, 0.4, 0.5]])
    rng, total = np.random.default_rng(0), np.zeros(3)
    for seed in range(2000):
        agent = VersatileDB(arms=3, seed=seed)
        duel = agent.ask()
        won = rng.random() < chances[duel.first, duel.second]
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        total += agent.state()["memory"]["_losses"].mean(axis=0)
    np.testing.assert_allclose(total / 2000, (1 - chances).mean(axis=1), atol=0.06)


@pytest.mark.parametrize("form", ["two-players", "one-learner"])
def test_late_outcomes_in_any_order_leave_the_same_losses(form):
    in_order, shuffled = VersatileDB(arms=5, form=form, seed=3), VersatileDB(arms=5, form=form, seed=3)
    duels, twins = in_order.ask_many(None, 40), shuffled.ask_many(None, 40)
    outcomes = [Outcome.FIRST if duel.first > duel.second else Outcome.SECOND for duel in duels]
    for duel, outcome in zip(duels, outcomes, strict=True):
        in_order.tell(duel, outcome)
    for i in np.random.default_rng(0).permutation(40):
        shuffled.tell(twins[i], outcomes[i])
    for mine, theirs in zip(shuffled.distributions, in_order.distributions, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("form", ["two-players", "one-learner"])
@pytest.mark.parametrize(("attack", "budget", "at_most"), [("none", 0, 0.3), ("greedy", 50, 0.4)])
def test_its_regret_is_far_below_that_of_uniform_play(form, attack, budget, at_most):
    """K = 10, gap 0.3: uniform play costs 0.54 a round, 1620 in all."""
    cell = Cell("versatile-db", attack, budget, 3000, "preferences", {"form": form}, world_settings={"gap": 0.3})
    assert cell.run(1).trace.regret.sum() < at_most * 1620


def test_bad_settings_are_refused():
    for settings in ({"form": "three"}, {"rate": 0}, {"rate": "x"}, {"arms": 1}):
        with pytest.raises(BadInputError):
            VersatileDB(**{"arms": 3} | settings)


def test_another_number_of_actions_is_refused():
    agent = VersatileDB(arms=3)
    with pytest.raises(BadInputError, match="has 3 arms but got 4 actions"):
        agent.ask(np.eye(4))
    assert isinstance(agent.ask(np.eye(3)), Duel)
