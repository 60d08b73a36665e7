"""A tie is half a win for each: two of them are a win and a loss, and nothing but ties leaves an agent indifferent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import Agent, BadInputError, Outcome
from fairduel.agents import AGENTS, VACDB, WIWR, VersatileDB
from fairduel.agents.parts.state_file import same_state
from fairduel.core.likelihood import Comparisons
from helpers.every_agent import ACTIONS, small

LIKELIHOOD = ["rcdb", "rcdb-s", "maxpairucb", "maxinp", "colstim", "ginop", "random-pairs", "fgts"]
"""Agents in which two duels of one pair can have the same weight: 1."""


def settled(name):
    """An agent whose weights are all 1, after thirty rounds without ties."""
    agent = small(AGENTS[name], self_duels=False, **({"flip_budget": 0} if name in {"rcdb", "rcdb-s"} else {}))
    for i in range(30):
        agent.tell(agent.ask(ACTIONS), Outcome.FIRST if i % 3 else Outcome.SECOND)
    return agent


def told_rows(agent):
    """What the agent was told, as sums by difference."""
    state = agent.state()
    return state.get("belief", state)["estimator"]["told"]


@pytest.mark.parametrize("name", LIKELIHOOD)
def test_two_ties_are_a_win_and_a_loss(name):
    told_ties, told_wins = settled(name), settled(name)
    for agent, outcomes in ((told_ties, [Outcome.TIE] * 2), (told_wins, [Outcome.FIRST, Outcome.SECOND])):
        one, other = agent.ask_many(ACTIONS[:2], 2)
        is_turned = one.first != other.first
        agent.tell(one, outcomes[0])
        agent.tell(other, outcomes[1].flipped if is_turned else outcomes[1])
    rows = [told_rows(agent) for agent in (told_ties, told_wins)]
    assert same_state(*({name: row for name, row in told.items() if name != "votes"} for told in rows))
    np.testing.assert_allclose(told_ties.estimate, told_wins.estimate, rtol=0, atol=1e-11)
    assert np.abs(told_ties.estimate).max() > 1e-3


@given(st.lists(st.tuples(st.sampled_from([1.0, -1.0]), st.floats(1e-3, 1.0), st.booleans()), max_size=8))
def test_ties_add_half_a_win_of_each_to_the_rows(duels):
    told, twice = Comparisons(dimension=2), Comparisons(dimension=2)
    for sign, weight, is_long in duels:
        difference = sign * np.array([0.6, -0.8 if is_long else 0.1])
        told.add(difference, weight=weight, share=Outcome.TIE.first_share)
        for outcome in (Outcome.FIRST, Outcome.SECOND):
            twice.add(difference, weight=weight / 2, share=outcome.first_share)
    np.testing.assert_array_equal(told.differences, twice.differences)
    np.testing.assert_allclose(told.weights, twice.weights, rtol=1e-14)
    np.testing.assert_allclose(told.wins, twice.wins, rtol=1e-14)
    np.testing.assert_allclose(told.wins, told.weights / 2, rtol=1e-14)


@pytest.mark.parametrize("name", [*LIKELIHOOD, "vacdb"])
def test_nothing_but_ties_estimates_nothing(name):
    agent = small(AGENTS[name], self_duels=False)
    for _ in range(40):
        agent.tell(agent.ask(ACTIONS), Outcome.TIE)
    estimates = [level.theta for level in agent._levels] if name == "vacdb" else [agent.estimate]
    assert not np.any(estimates)


def test_nothing_but_ties_keeps_the_candidate_of_wiwr_over_epochs():
    agent = WIWR(arms=4, horizon=100, seed=3)
    candidate = agent.recommend()
    while agent.epoch < 4:
        agent.tell(agent.ask(), Outcome.TIE)
        assert agent.recommend() == candidate
    assert not agent.state()["memory"]["_leads"].any()


@pytest.mark.parametrize("form", ["two-players", "one-learner"])
def test_a_tie_costs_both_sides_of_versatile_db_half(form):
    agent = VersatileDB(arms=3, form=form, seed=1)
    duel = next(duel for duel in agent.ask_many(None, 20) if not duel.is_self_duel)
    agent.tell(duel, Outcome.TIE)
    losses = np.zeros((2, 3))
    losses[duel.player, duel.first] = 0.5 / duel.first_chance
    losses[1 - duel.player, duel.second] = 0.5 / duel.second_chance
    expected = losses if form == "two-players" else losses.sum(axis=0, keepdims=True) / 2
    np.testing.assert_allclose(agent.state()["memory"]["_losses"], expected)


def test_a_tie_in_vacdb_is_saved_with_its_level(tmp_path):
    agent = small(VACDB)
    duels = agent.ask_many(ACTIONS, 3)
    for duel, outcome in zip(duels, (Outcome.TIE, Outcome.FIRST, Outcome.TIE), strict=True):
        agent.tell(duel, outcome)
    agent.save(tmp_path / "agent.npz")
    state = Agent.load(tmp_path / "agent.npz").state()
    tied = [sum(duel.weight**2 for duel in duels[::2] if duel.level == level) for level in range(1, agent.levels + 1)]
    assert [level["tied"] for level in state["levels"].values()] == tied
    assert sum(tied) > 0
    for wrong in (-1.0, 1e9, np.nan, None):
        state["levels"]["0"]["tied"] = wrong
        with pytest.raises(BadInputError):
            Agent.from_state(state)
