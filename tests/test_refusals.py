"""Wrong types and torn files: always one sentence, never another kind of error."""

import math

import numpy as np
import pytest

from fairduel import PROBIT, RCDB, RCDBS, Agent, BadInputError, Link, MaxPairUCB, clipped_linear
from fairduel.adversaries import Greedy, Misleading, NoAttack
from fairduel.core.links import as_link
from fairduel.simulation import Cell, Store, play, run_cells
from fairduel.simulation.compiled_run import play_compiled
from fairduel.worlds import FixedWorld, HardCorrupted, HardStochastic, Hypercube, Table

ACTIONS = np.array([[0.9, 0.0], [0.0, 0.9], [-0.5, 0.5]])


def rng():
    return np.random.default_rng(0)


def made(kind=RCDB, **settings):
    return kind(**{"dimension": 2, "norm_bound": 2.0, "horizon": 100} | settings)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("norm_bound", "2"),
        ("norm_bound", None),
        ("radius", None),
        ("radius_scale", "x"),
        ("ridge", "x"),
        ("failure_probability", "x"),
        ("kappa", "x"),
        ("trust", "x"),
        ("trust", math.inf),
        ("link", 3),
        ("horizon", True),
    ],
)
def test_a_setting_of_the_wrong_type_is_refused(setting, value):
    with pytest.raises(BadInputError):
        made(**{setting: value})


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_a_slope_radius_must_be_a_number_from_0_on(value):
    with pytest.raises(BadInputError):
        made(RCDBS, slope_radius=value)


def test_numbers_of_numpy_are_numbers(tmp_path):
    agent = made(flip_budget=np.int64(5), horizon=np.int64(100), seed=np.int64(3), norm_bound=np.float32(2.0))
    agent.save(tmp_path / "agent.npz")
    assert Agent.load(tmp_path / "agent.npz").settings == agent.settings
    assert Greedy(budget=np.int64(3)).budget == 3
    assert as_link(str(clipped_linear(np.float64(0.5)))) == Link("clipped-linear", 0.5)


@pytest.mark.parametrize("actions", [[["0.1", "0.2"], ["0.3", "0.4"]], np.array([[0.1 + 1j, 0.2], [0.3, 0.4]])])
def test_features_that_are_no_real_numbers_are_refused(actions):
    with pytest.raises(BadInputError, match="real numbers"):
        made().ask(actions)


def test_a_flat_probit_link_gives_no_false_advice():
    with pytest.raises(BadInputError) as caught:
        PROBIT.kappa(30.0)
    assert "0.25" not in str(caught.value)


@pytest.mark.parametrize("text", ["[1]", '{"version": 1, "agent": []}', "no json"])
def test_an_archive_without_an_agent_is_refused(tmp_path, text):
    np.savez(tmp_path / "agent.npz", json=np.array(text))
    with pytest.raises(BadInputError):
        Agent.load(tmp_path / "agent.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04torn", b"\x93NUMPY"])
def test_a_torn_file_is_neither_an_agent_nor_a_table(tmp_path, content):
    path = tmp_path / "file.npz"
    path.write_bytes(content)
    with pytest.raises(BadInputError):
        Agent.load(path)
    with pytest.raises(BadInputError):
        Table.read(path=str(path), norm_bound=1.0)


@pytest.mark.parametrize(
    ("features", "rewards"),
    [([["a", "b"], ["c", "d"]], [1, 2]), (ACTIONS, ["a", "b", "c"]), ([[0.1], [0.1, 0.2]], [1, 2])],
)
def test_a_table_of_no_numbers_is_refused(features, rewards):
    with pytest.raises(BadInputError):
        Table(features=features, rewards=rewards, norm_bound=1.0)


@pytest.mark.parametrize("world", [HardCorrupted, HardStochastic])
def test_a_hard_world_needs_a_positive_slope(world):
    with pytest.raises(BadInputError):
        world(rng=rng(), kappa=0.0)


def test_a_world_needs_a_finite_norm():
    with pytest.raises(BadInputError):
        Hypercube(rng=rng(), norm=math.inf)


@pytest.mark.parametrize(
    "changes",
    [{"agent_settings": {"dimension": 3}}, {"world": "hard-corrupted", "world_settings": {"dimension": 1}}],
)
def test_a_compiled_run_refuses_what_ask_would(changes):
    with pytest.raises(BadInputError):
        Cell(agent="rcdb", attack="none", budget=0, horizon=5, **changes).run(0)


def test_a_compiled_run_refuses_actions_that_are_too_long():
    class Loud(FixedWorld):
        def __init__(self):
            super().__init__(3 * np.eye(3), np.ones(3), link=PROBIT, norm_bound=1.0, parameter=None)

    for driver in (play, play_compiled):
        with pytest.raises(BadInputError, match="norm"):
            driver(MaxPairUCB(dimension=3, norm_bound=1.0), Loud(), NoAttack(), horizon=3, labels=rng())


def test_a_seed_given_twice_runs_once(tmp_path):
    store, cell = Store(tmp_path), Cell(agent="rcdb", attack="none", budget=0, horizon=5)
    assert run_cells([cell], [0, 0, 1], store) == 2
    assert store.records(cell, [0, 1])["seed"].to_list() == [0, 1]


def test_a_cell_that_never_ran_is_not_called_torn(tmp_path):
    with pytest.raises(BadInputError, match="has no runs of rcdb"):
        Store(tmp_path).records(Cell(agent="rcdb", attack="none", budget=0, horizon=5), [0])


def test_a_random_target_is_never_tied_for_best():
    rewards = np.array([1.0, 1.0, 0.0])
    assert {Misleading(budget=1, rng=np.random.default_rng(seed)).rank(rewards) for seed in range(50)} == {2}
