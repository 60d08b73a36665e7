"""Agents whose features a network learns, and the neural rivals."""

from functools import partial

import numpy as np
import pytest

from fairduel import RCDB, RCDBS, Agent, BadInputError, Sceptic
from fairduel.agents import AGENTS, MaxPairUCB
from fairduel.agents.parts.belief import LinearBelief
from fairduel.core.likelihood import Comparisons
from fairduel.features import Network
from fairduel.testing import check_agent
from helpers.agents import answer, played, same, sphere

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")]
NETWORK = Network(width=8, steps=3, every=10)
TANGENT = Network(features="tangent", components=8, width=8, steps=3, every=10)
KNOWN = {"dimension": 3, "norm_bound": 2.0, "horizon": 60, "seed": 1}
AGENTS_BY_NAME = {
    "rcdb": partial(RCDB, flip_budget=5, map=NETWORK, **KNOWN),
    "sceptic": partial(Sceptic, self_duels=False, map=NETWORK, **KNOWN),
    "ndb-ucb": partial(AGENTS["ndb-ucb"], map=TANGENT, **KNOWN),
    "ndb-ts": partial(AGENTS["ndb-ts"], map=TANGENT, **KNOWN),
}


@pytest.mark.parametrize("name", AGENTS_BY_NAME)
def test_every_neural_agent_passes(name):
    check_agent(AGENTS_BY_NAME[name], rounds=16)


@pytest.mark.parametrize("kind", [RCDB, Sceptic])
def test_sigma_weights_and_votes_are_those_of_the_current_features(kind):
    """A refit replays all stored duels: with cancelled and late answers, against the replay written out."""
    agent = kind(flip_budget=5, map=NETWORK, **KNOWN)
    rng, told, late = np.random.default_rng(0), [], []
    for number in range(47):
        duel = agent.ask(sphere(rng))
        if number % 9 == 4:
            agent.cancel(duel)
        elif number % 9 == 7:
            late.append(duel)
        else:
            agent.tell(duel, answer(duel, rng.random()))
            told.append(duel)
    belief = agent.belief
    belief._learn()
    features, twin = (
        belief.features,
        LinearBelief(belief.features.size, ridge=agent.settings["ridge"], link=agent._link),
    )
    votes = Comparisons(features.size)
    weights = {}
    for duel in sorted(told + late, key=lambda duel: duel.number):
        if duel.is_self_duel:
            continue
        difference = features(duel.features)[0] - features(duel.features)[1]
        grown = duel.weight / min(1.0, agent.settings["trust"] / duel.width)
        weights[duel.number] = grown * min(1.0, agent.settings["trust"] / twin.information.width(difference))
        twin.information.add(difference, weights[duel.number] * agent._design_slope)
    np.testing.assert_allclose(belief.linear.information.matrix, twin.information.matrix, rtol=1e-6, atol=1e-9)
    for duel in told:
        if not duel.is_self_duel:
            difference = features(duel.features)[0] - features(duel.features)[1]
            votes.add(difference, weight=weights[duel.number], share=belief._asked[duel.number].share)
    np.testing.assert_allclose(belief.votes.weights.sum(), votes.weights.sum(), rtol=1e-6)
    agent.cancel(late[0])  # takes the new weight back
    kept = [duel.number for duel in told + late[1:] if not duel.is_self_duel]
    assert sorted(belief._asked) == sorted(kept)


def test_the_network_is_refitted_on_schedule_and_its_features_change():
    agent = RCDB(flip_budget=5, self_duels=False, map=NETWORK, **KNOWN)  # so that every duel counts
    before = agent.belief.features(sphere(np.random.default_rng(9)))
    played(agent, 10)
    assert np.array_equal(agent.belief.features(sphere(np.random.default_rng(9))), before)
    played(agent, 1)
    assert not np.array_equal(agent.belief.features(sphere(np.random.default_rng(9))), before)


@pytest.mark.parametrize("name", AGENTS_BY_NAME)
def test_a_saved_agent_continues_and_looking_changes_nothing(name, tmp_path):
    agent = AGENTS_BY_NAME[name]()
    played(agent, 23)
    actions = sphere(np.random.default_rng(5))
    before = agent.state()
    assert 0 <= agent.recommend(actions) < len(actions)
    assert agent.explain_recommendation().startswith("The recommendation rests on")
    agent.conclude()
    assert same(agent.state(), before)
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    assert same(loaded.state(), before)
    assert [d.weight for d, _ in played(agent, 15, 3)] == [d.weight for d, _ in played(loaded, 15, 3)]


def test_a_damaged_network_is_refused():
    state = played_state = RCDB(flip_budget=5, map=NETWORK, **KNOWN).state()
    weights = played_state["belief"]["features"]["arrays"]
    name = next(name for name in weights if name.startswith("now:"))
    for wrong in (np.full_like(weights[name], np.nan), weights[name][:1]):
        weights[name], kept = wrong, weights[name]
        with pytest.raises(BadInputError):
            Agent.from_state(state)
        weights[name] = kept
    Agent.from_state(state)


def test_who_cannot_use_a_network_says_so():
    with pytest.raises(BadInputError, match="RCDBS cannot learn its features; use another map, or RCDB"):
        RCDBS(map="neural", flip_budget=5, **KNOWN)
    with pytest.raises(BadInputError, match="NDB-UCB needs a network as its map, not quadratic"):
        AGENTS["ndb-ucb"](map="quadratic", **KNOWN)


def test_the_rivals_trust_every_answer_fully_and_differ_from_each_other():
    asked = [[duel.second for duel, _ in played(AGENTS_BY_NAME[name](), 30)] for name in AGENTS.optional]
    assert asked[0] != asked[1]
    for agent in (AGENTS_BY_NAME["ndb-ucb"](), MaxPairUCB(map=NETWORK, **KNOWN)):
        assert {duel.weight for duel, _ in played(agent, 12)} == {1.0}
