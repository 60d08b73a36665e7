"""What every agent of rewards keeps to: one seed, one run; late, cancelled, saved, refused."""

import math

import numpy as np
import pytest

from fairduel import Agent, BadInputError, Pull, UnknownDuelError
from fairduel.agents import AGENTS, RewardAgent

NAMES = [name for name, kind in AGENTS.items() if issubclass(kind, RewardAgent)]
ACTIONS = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9], [-0.6, 0.3, 0.5]])
MEANS = np.array([0.8, 0.2, 0.4, 0.1])


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def made(name, **settings):
    kind = AGENTS[name]
    features = {"dimension": 3, "norm_bound": 1.0, "noise": 0.3}
    own = {"arms": 4} if name in ("arm-race", "barbar") else features
    return kind(**own | {"horizon": 600, "seed": 7} | settings)


def play(agent, rounds, seed=0):
    rng, pulled = np.random.default_rng(seed), []
    for _ in range(rounds):
        pull = agent.ask(ACTIONS)
        agent.tell(pull, float(MEANS[pull.action] + 0.3 * rng.standard_normal()))
        pulled.append(pull)
    return pulled


def test_all_of_the_issue_are_listed():
    expected = {
        "arm-race",
        "barbar",
        "sbe",
        "phased-elimination",
        "weighted-oful",
        "multilevel-oful",
        "cw-oful",
        "cobe",
    }
    assert expected <= set(NAMES)


def test_the_same_seed_asks_the_same(name):
    assert play(made(name), 300) == play(made(name), 300)
    assert play(made(name), 300) != play(made(name, seed=8), 300) or name == "phased-elimination"


@pytest.mark.parametrize("rounds", [0, 1, 37, 250])
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(name, rounds, tmp_path):
    agent = made(name)
    play(agent, rounds)
    open_pulls = agent.ask_many(ACTIONS, 3)
    agent.cancel(open_pulls[0])
    agent.save(tmp_path / "agent.npz")
    twin = Agent.load(tmp_path / "agent.npz")
    assert type(twin) is type(agent)
    assert twin.settings == agent.settings
    for one in (agent, twin):
        one.tell(open_pulls[2], 0.4)
        with pytest.raises(UnknownDuelError, match="already told or cancelled"):
            one.tell(open_pulls[0], 0.4)
    assert play(twin, 300, seed=1) == play(agent, 300, seed=1)
    assert twin.recommend(ACTIONS) == agent.recommend(ACTIONS)


def test_a_saved_state_does_not_change_with_the_agent(name):
    agent = made(name)
    play(agent, 50)
    state = agent.state()
    before = play(Agent.from_state(state), 100, seed=1)
    play(agent, 100)
    assert play(Agent.from_state(state), 100, seed=1) == before


def test_rewards_in_any_order_many_rounds_late_still_find_the_best(name):
    rng = np.random.default_rng(0)
    agent, waiting = made(name, horizon=3000), []
    for _ in range(3000):
        waiting.append(agent.ask(ACTIONS))
        if len(waiting) > 20:
            pull = waiting.pop(int(rng.integers(len(waiting))))
            agent.tell(pull, float(MEANS[pull.action] + 0.1 * rng.standard_normal()))
    assert len(agent.pending) == 20
    assert agent.recommend(ACTIONS) == 0


def test_cancelled_duels_teach_nothing(name):
    agent, twin = made(name), made(name)
    for pull in agent.ask_many(ACTIONS, 10):
        agent.cancel(pull)
    assert agent.pending == ()
    memory, untouched = agent.state()["memory"], twin.state()["memory"]
    if name not in ("sbe", "phased-elimination"):  # those have planned for the set
        assert all(np.array_equal(memory[field], untouched[field]) for field in memory)
    play(agent, 50)
    assert agent.recommend(ACTIONS) in range(4)


@pytest.mark.parametrize("reward", [math.nan, math.inf, "1", None, True])
def test_a_reward_that_is_no_number_is_refused_and_the_pull_stays_open(name, reward):
    agent = made(name)
    pull = agent.ask(ACTIONS)
    with pytest.raises(BadInputError, match="reward"):
        agent.tell(pull, reward)
    agent.tell(pull, 1.0)
    with pytest.raises(UnknownDuelError, match="already told"):
        agent.tell(pull, 1.0)
    with pytest.raises(UnknownDuelError, match="never asked"):
        agent.tell(Pull(5, 0), 1.0)


@pytest.mark.parametrize("actions", [np.eye(3)[:, :2], np.full((4, 3), np.nan), [], "abc"])
def test_bad_actions_are_refused_and_nothing_changes(name, actions):
    agent = made(name)
    if name in ("arm-race", "barbar") and len(np.atleast_1d(actions)) == 4:
        return  # an agent of K arms looks at nothing but how many there are
    with pytest.raises(BadInputError):
        agent.ask(actions)
    assert agent.asked == 0
    assert play(agent, 100) == play(made(name), 100)


def test_settings_are_plain_and_say_the_scale(name):
    practical, theory = made(name).settings["scale"], made(name, scale="theory").settings["scale"]
    assert practical < theory == 1.0
