"""Agents with a feature map: they are the same agents on features that somebody else made."""

from dataclasses import replace

import numpy as np
import pytest

from fairduel import RCDB, BadInputError, MaxPairUCB, Outcome, Sceptic
from fairduel.action_sets import BallSet
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.features import Custom, Kernel
from fairduel.simulation import Cell, play
from fairduel.simulation.compiled_run import can_compile, play_compiled
from fairduel.testing import ACTIONS, check_agent

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
CONTEXTUAL = [name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent)]
NEEDS = {"horizon": 80}


@pytest.mark.parametrize("name", CONTEXTUAL)
def test_every_contextual_agent_passes_the_checks_with_a_map(name):
    kernel = Kernel("rbf", scale=0.6, features=20).fit(3)
    settings = {"dimension": 3, "norm_bound": 2.0, "horizon": 60, "map": kernel}
    if "flip_budget" in AGENTS[name].__dataclass_fields__:
        settings["flip_budget"] = 5
    check_agent(lambda: AGENTS[name](**settings), rounds=25)


@pytest.mark.parametrize("name", CONTEXTUAL)
def test_a_mapped_agent_is_an_agent_without_a_map_on_mapped_actions(name):
    kernel = Kernel("matern52", scale=0.8, features=12).fit(3, ACTIONS)
    one = AGENTS[name](dimension=3, norm_bound=2.0, map=kernel, seed=4, **NEEDS)
    told = {"ridge": one._ridge, "radius": one.radius_at(1), "kappa": one._kappa}
    extra = {key: value for key, value in (("trust", one._trust),) if hasattr(one, "flip_budget")}
    if name in ("colstim", "rcdb-s"):
        return  # their radii change with the round, or there are two of them
    other = AGENTS[name](dimension=kernel.size, norm_bound=one._norm, seed=4, **NEEDS, **told, **extra)
    same = AGENTS[name](dimension=3, norm_bound=2.0, map=kernel, seed=4, **NEEDS, radius=told["radius"])
    if name == "sceptic":
        other.allowance = same.allowance = same._allowance
    draws = np.random.default_rng(1)
    for _ in range(60):
        duels = same.ask(ACTIONS), other.ask(kernel(ACTIONS))
        assert (duels[0].first, duels[0].second, duels[0].weight) == (duels[1].first, duels[1].second, duels[1].weight)
        answer = Outcome.FIRST if draws.random() < 0.5 else Outcome.SECOND
        for agent, duel in zip((same, other), duels, strict=True):
            agent.tell(duel, answer)
    assert same.recommend(ACTIONS) == other.recommend(kernel(ACTIONS))


CELLS = [
    ("mesh", {"function": "ackley", "side": 6}, "rbf(0.4)"),
    ("curved", {"shape": "rbf", "count": 6, "dimension": 3}, "matern52(0.7, 20)"),
    ("curved", {"shape": "quadratic", "count": 6, "dimension": 3, "ties": "davidson(1)"}, "quadratic"),
    ("hypercube", {"dimension": 4}, "whitened(3)|rbf(0.5)"),
    ("fresh", {"dimension": 3, "count": 5}, "rbf(0.5, 10)"),
]


@pytest.mark.parametrize(("world", "settings", "text"), CELLS)
@pytest.mark.parametrize("agent", ["sceptic", "rcdb", "rcdb-s", "maxinp", "colstim", "ginop", "hcw"])
def test_compiled_runs_of_mapped_agents_are_plain_runs(agent, world, settings, text):
    cell = Cell(agent, "adversarial", 10, 120, world, {"map": text}, world_settings=settings)
    traces = []
    for driver in (play, play_compiled):
        player, place, adversary, streams = cell.start(1)
        traces.append(driver(player, place, adversary, horizon=120, labels=streams.labels))
    for column in ("first", "second", "flipped", "tied", "regret", "weight", "width"):
        np.testing.assert_array_equal(getattr(traces[0], column), getattr(traces[1], column), err_msg=column)
    assert traces[1].flipped.any()


def test_both_drivers_agree_on_late_answers_and_searched_attacks():
    attack = {"settling": 0.02, "chance": 0.5}
    world = {"shape": "cosine", "dimension": 3, "count": 5}
    cell = Cell("sceptic", "watching", 10, 150, "curved", {"map": "rbf(0.7)"}, attack, world, "fixed", {"rounds": 5})
    results = []
    for driver in (play, play_compiled):
        agent, place, adversary, streams = cell.start(2)
        delay = cell.make_delay(streams)
        results.append(driver(agent, place, adversary, horizon=150, labels=streams.labels, delay=delay))
    np.testing.assert_array_equal(results[0].first, results[1].first)
    np.testing.assert_array_equal(results[0].weight, results[1].weight)


def test_defaults_use_the_effective_dimension_and_a_norm_of_the_mapped_space():
    kernel = Kernel("rbf", scale=0.5).fit(3)
    size = kernel.effective_dimension()
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=10, map=kernel)
    assert agent.current_radius == pytest.approx(0.3 * np.sqrt(size))
    assert agent.settings["trust"] == pytest.approx(np.sqrt(size) / 10)
    assert agent.settings["ridge"] == pytest.approx(1 / (4 * size / 5))
    assert agent.size == kernel.size > size
    linear = Custom(lambda x: x).fit(5)
    with_map, without = (RCDB(dimension=5, norm_bound=2.0, flip_budget=9, map=m).settings for m in (linear, None))
    for name in ("ridge", "trust"):
        assert with_map[name] == pytest.approx(without[name], rel=0.12)


@pytest.mark.parametrize("known", [False, True])
def test_the_map_is_saved_with_its_agent(tmp_path, known):
    actions = ACTIONS if known else None
    agent = Sceptic(dimension=3, norm_bound=2.0, map=Kernel("rbf", scale=0.5).fit(3, actions), seed=1)
    draws = np.random.default_rng(0)
    for _ in range(30):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if draws.random() < 0.5 else Outcome.SECOND)
    waiting = agent.ask(ACTIONS)
    agent.save(tmp_path / "agent.npz")
    again = Sceptic.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(again.map(ACTIONS), agent.map(ACTIONS))
    for each in (agent, again):
        each.tell(waiting, Outcome.FIRST)
    for _ in range(20):
        duels = agent.ask(ACTIONS), again.ask(ACTIONS)
        assert (duels[0].first, duels[0].second, duels[0].width) == (duels[1].first, duels[1].second, duels[1].width)
        for each, duel in zip((agent, again), duels, strict=True):
            each.tell(duel, Outcome.SECOND)


def test_a_map_turns_the_worst_arm_into_the_best_one():
    """On Ackley's function every linear agent is lost; with kernel features the best arm is found."""
    best = []
    for text in (None, "rbf(0.3)"):
        settings = {} if text is None else {"map": text}
        cell = Cell("maxpairucb", "none", 0, 600, "mesh", settings, world_settings={"function": "ackley"})
        best.append(cell.run(1_000_003).advice.is_best)
    assert best == [0.0, 1.0]


def test_early_lies_do_not_decide_the_recommendation():
    """Counted alike, votes on the camel function favour the worst action in one of five runs: most are early lies."""
    losses = []
    for settings in ({}, {"recommend_by": "votes"}):
        cell = Cell("sceptic", "adversarial", 45, 2000, "mesh", {"map": "rbf", "known_budget": False} | settings)
        cell = replace(cell, world_settings={"function": "camel"})
        losses.append([cell.run(seed).advice.regret for seed in range(1_000_000, 1_000_005)])
    assert max(losses[0]) < 1.0
    assert max(losses[1]) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"items": 5, "map": "rbf(0.5)"}, "items have no features to map"),
        ({"dimension": 3, "norm_bound": 1.0, "map": Kernel("rbf").fit(2)}, "takes 2 features, but the agent has 3"),
        ({"dimension": 3, "norm_bound": 1.0, "map": "whitened"}, "learns from actions; fit it first"),
        ({"dimension": 3, "norm_bound": 1.0, "map": "rfb"}, "did you mean 'rbf'"),
    ],
)
def test_maps_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(BadInputError, match=message):
        MaxPairUCB(**settings)


def test_implicit_action_sets_are_refused_in_a_sentence():
    agent = MaxPairUCB(dimension=3, norm_bound=1.0, map="rbf(0.5)")
    with pytest.raises(BadInputError, match="feature map, which needs listed actions; list them, or omit the map"):
        agent.ask(BallSet(3))


def test_an_agent_whose_map_is_a_function_plays_but_is_not_saved(tmp_path):
    agent = MaxPairUCB(dimension=3, norm_bound=1.0, map=Custom(np.sin))
    agent.tell(agent.ask(ACTIONS), Outcome.FIRST)
    with pytest.raises(BadInputError, match="cannot be saved"):
        agent.save(tmp_path / "agent.npz")


@pytest.mark.parametrize(("name", "compiled"), [("curved", True), ("hypercube", False)])
def test_high_dimensional_features_are_played_plainly_where_the_same_actions_come_again(name, compiled):
    cell = Cell("rcdb", "none", 0, 5, name, {"map": "rbf(0.5, 100)"}, world_settings={"dimension": 7})
    agent, world, adversary, _ = cell.start(0)
    assert agent.size == 100
    assert can_compile(agent, world, adversary) is compiled
    assert len(cell.run(0).trace.regret) == 5
