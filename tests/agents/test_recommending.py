"""Recommendations by recorded votes: a burst of lies at any time, what is said about it, and when there is none."""

import numpy as np
import pytest

from fairduel import RCDB, Agent, BadInputError, MaxPairUCB, Outcome
from fairduel.action_sets import HypercubeSet
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.simulation import Cell, play
from fairduel.simulation.compiled_run import play_compiled

ACTIONS = np.array([[0.9, 0.0], [0.0, 0.9], [-0.6, 0.3]])
WITH_VOTES = [n for n, k in AGENTS.items() if issubclass(k, ContextualAgent) and k.estimator != "one-pass"]


def taught(kind, votes=200, lies=range(0), **settings):
    """An agent whose first action is the best, as all votes but the lies say."""
    agent = kind(dimension=2, norm_bound=2.0, horizon=votes, self_duels=False, **settings)
    tell(agent, votes, lies)
    return agent


def tell(agent, votes, lies=range(0)):
    for vote in range(votes):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if (duel.first < duel.second) != (vote in lies) else Outcome.SECOND)


@pytest.mark.parametrize("name", WITH_VOTES)
def test_a_last_minute_burst_does_not_change_the_recommendation(name):
    agent = taught(AGENTS[name], lies=range(150, 200))
    assert agent.recommend(ACTIONS) == 0
    assert agent.recommend(HypercubeSet(2)) == HypercubeSet(2).index(HypercubeSet(2).best(agent.conclude().theta))
    [burst] = agent.conclude().bursts
    assert (burst.begin, burst.end) == (150, 200)


def test_the_explanation_names_the_votes_and_the_evidence():
    agent = taught(MaxPairUCB, votes=2000, lies=range(1500, 1700))
    [burst] = agent.conclude().bursts
    text = agent.explain_recommendation()
    assert text.startswith("Of 2,000 votes, the recommendation sets aside votes 1,501 to 1,700 (log-likelihood gain ")
    assert f"gain {burst.gain:.1f}; chance explains up to {burst.bar:.1f})" in text
    assert text.endswith("lies are one possible reason, a release or a new audience another.")
    assert text.count(".") == 3  # two decimal points, one sentence
    honest = taught(MaxPairUCB)
    assert honest.conclude().bursts == ()
    assert honest.explain_recommendation().startswith("The recommendation rests on all 200 votes: no stretch")


@pytest.mark.parametrize(
    ("settings", "votes", "reason"),
    [
        ({"recommend_by": "estimate"}, 100, "because recommend_by is 'estimate'."),
        ({"estimator": "one-pass"}, 100, "because one-pass estimates store no votes."),
        ({}, 39, "at least 40 votes and fewer than 64 features."),
    ],
)
def test_without_votes_to_scan_the_own_estimate_recommends_and_says_why(settings, votes, reason):
    agent = taught(RCDB, votes=votes, flip_budget=5, **settings)
    assert agent.conclude() is None
    assert agent.recommend(ACTIONS) == np.argmax(ACTIONS @ agent.estimate)
    assert agent.explain_recommendation().endswith(reason)


def test_a_wrong_way_to_recommend_is_refused():
    with pytest.raises(BadInputError, match="recommend_by"):
        RCDB(dimension=2, norm_bound=2.0, flip_budget=5, recommend_by="vote")


def test_conclusions_survive_saving_and_follow_new_votes(tmp_path):
    agent = taught(RCDB, lies=range(150, 200), flip_budget=5)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    for both in (agent, again):
        assert both.conclude().bursts[0].begin == 150
        tell(both, 60)
        assert both.conclude().votes == 260
    np.testing.assert_allclose(agent.conclude().theta, again.conclude().theta, rtol=1e-9)


def test_a_file_without_the_order_of_votes_loads_and_recommends_by_the_own_estimate():
    state = taught(RCDB, lies=range(150, 200), flip_budget=5).state()
    del state["estimator"]["told"]["votes"]
    agent = Agent.from_state(state)
    assert agent.explain_recommendation().endswith("because it was loaded from a file that lacks the order of votes.")
    tell(agent, 100)  # of which it knows the order, but not of all
    assert agent.conclude() is None
    assert agent.recommend(ACTIONS) == np.argmax(ACTIONS @ agent.estimate)
    assert Agent.from_state(agent.state()).conclude() is None


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
@pytest.mark.parametrize("world", ["hypercube", "fresh"])
@pytest.mark.parametrize("settings", [{}, {"estimator": "lazy"}, {"estimator": "one-pass"}], ids=str)
def test_both_drivers_recommend_alike(world, settings):
    cell = Cell("rcdb", "adversarial", 20, 150, world=world, attack_settings={"start": 100}, agent_settings=settings)
    found = []
    for driver in (play_compiled, play):
        agent, place, adversary, streams = cell.start(1)
        driver(agent, place, adversary, horizon=150, labels=streams.labels)
        offer = place.offer(151)
        found.append((agent.recommend(offer.actions), agent.conclude() and agent.conclude().bursts, offer.rewards))
    np.testing.assert_array_equal(found[0][2], found[1][2])
    assert found[0][:2] == found[1][:2]
    assert ("one-pass" in settings.values()) == (found[0][1] is None)
