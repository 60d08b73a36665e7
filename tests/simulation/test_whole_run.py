"""The compiled driver is the plain one, duel by duel."""

import itertools

import numpy as np
import pytest

from fairduel.adversaries import ATTACKS, StrongAdversary
from fairduel.agents import AGENTS
from fairduel.simulation import Cell, Streams, play
from fairduel.simulation.whole_run import play_whole_run
from fairduel.worlds import Hypercube

WORLDS = {
    "hypercube": {"dimension": 3},
    "fresh": {"dimension": 3, "count": 6},
    "hard-stochastic": {"dimension": 3},
    "hard-corrupted": {"dimension": 4},
}
pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


def both(cell, seed):
    traces = []
    for driver in (play, play_whole_run):
        agent, world, adversary, streams = cell.start(seed)
        traces.append(driver(agent, world, adversary, horizon=cell.horizon, labels=streams.labels))
    return traces


def assert_same(plain, whole):
    for name in ("first", "second", "flipped"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(whole, name))
    for name in ("regret", "weak_regret", "weight", "width", "slope", "estimate_norm"):
        np.testing.assert_allclose(getattr(plain, name), getattr(whole, name), atol=1e-9, rtol=0)


COMBINATIONS = [
    (agent, attack, world)
    for agent, attack, world in itertools.product(AGENTS, ATTACKS, WORLDS)
    if not (agent == "rcdb-s" and world.startswith("hard"))  # RCDB-S takes the sigmoid only
]


@pytest.mark.parametrize(("agent", "attack", "world"), COMBINATIONS)
def test_every_combination_plays_the_same_duels(agent, attack, world):
    cell = Cell(agent, attack, budget=20, horizon=200, world=world, world_settings=WORLDS[world])
    for seed in (0, 1):
        assert_same(*both(cell, seed))


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("rcdb", {"radius": "theory"}),
        ("rcdb", {"radius": 1.5, "design": "kappa", "trust": 0.2, "self_duels": False, "warmup": 10}),
        ("rcdb", {"horizon": None, "flip_budget": 0}),
        ("rcdb-s", {"radius": "theory", "slope_radius": "theory", "radius_scale": 0.01}),
        ("rcdb-s", {"radius": 0.7, "slope_radius": 0.3, "self_duels": False}),
        ("maxpairucb", {"link": "probit"}),
        ("maxinp", {"horizon": None, "warmup": 30, "self_duels": False}),
        ("colstim", {"coupling": "vacdb", "threshold": 1.0}),
        ("colstim", {"link": "probit", "horizon": None, "warmup": 7, "self_duels": False}),
        ("colstim", {"radius": "theory"}),
    ],
)
def test_every_setting_plays_the_same_duels(agent, settings):
    cell = Cell(agent, "random", budget=20, horizon=300, agent_settings=settings)
    assert_same(*both(cell, seed=3))


@pytest.mark.parametrize("target", ["random", "median", "second", "worst", 3])
@pytest.mark.parametrize("world", ["hypercube", "fresh"])
def test_every_misleading_target_is_the_same(target, world):
    cell = Cell("rcdb", "misleading", 20, 200, world=world, attack_settings={"target": target})
    assert_same(*both(cell, seed=5))


def test_past_the_1024th_update_nothing_changes():
    cell = Cell("maxpairucb", "greedy", 20, 1500, world="fresh", world_settings={"dimension": 3, "count": 5})
    assert_same(*both(cell, seed=0))


def test_what_cannot_be_compiled_is_left_to_the_plain_driver():
    class OwnAttack(StrongAdversary):
        def wants_flip(self, sight):
            return sight.first == 0

    streams = Streams.of(0)
    world = Hypercube(rng=streams.world)
    agent = AGENTS["rcdb"](dimension=5, norm_bound=2.0, horizon=10)
    assert play_whole_run(agent, world, OwnAttack(budget=1), horizon=10, labels=streams.labels) is None
    for settings in ({"constrained": True}, {"radius": "determinant"}):
        assert not Cell("rcdb", "none", 0, 10, agent_settings=settings).runs_whole
    assert Cell("rcdb", "none", 0, 10).runs_whole
