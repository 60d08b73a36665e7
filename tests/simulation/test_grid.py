"""A grid declared in TOML, and what is wrong with one."""

import pytest

from fairduel import BadInputError
from fairduel.simulation import Cell
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid, declare, read_grid
from helpers.sweeps import SMALL, sweep, written


def test_every_combination_is_a_cell(tmp_path):
    grid = read_grid(written(tmp_path, SMALL))
    assert grid.seeds == range(10, 13)
    assert len(grid.cells) == 2 * 2 * 3 * 3
    expected = Cell(
        agent="maxpairucb",
        attack="misleading",
        budget=4,
        horizon=20,
        agent_settings={"radius": 2.0},
        attack_settings={"target": "worst"},
    )
    assert grid.cells[expected.key] == expected
    assert grid.settings["agent_radius"].values.count(4.0) == 12
    assert set(grid.settings) == {"agent_radius", "attack_target"}


def test_names_can_be_listed_and_one_cell_twice_is_one_cell():
    common = {"runs": 1, "horizon": 9, "budget": 1, "attack": [{"name": "none"}]}
    one = declare(common | {"agent": [{"name": ["rcdb", "maxinp"], "warmup": [0, 3]}]})
    assert [(c.agent, c.agent_settings["warmup"]) for c in one.cells.values()] == [
        ("rcdb", 0),
        ("rcdb", 3),
        ("maxinp", 0),
        ("maxinp", 3),
    ]
    assert len(declare(common | {"agent": [{"name": "rcdb"}, {"name": "rcdb"}]}).cells) == 1


def test_a_budget_can_follow_the_horizon_and_worlds_have_settings():
    grid = declare(
        {
            "runs": 1,
            "horizon": [2000, 16],
            "budget": ["sqrt", 7],
            "agent": [{"name": "rcdb"}],
            "attack": [{"name": "greedy"}],
            "world": [{"name": "hypercube", "dimension": [2, 3]}, {"name": "fresh", "count": 5}],
        }
    )
    cells = list(grid.cells.values())
    assert {(cell.horizon, cell.budget) for cell in cells} == {(2000, 45), (2000, 7), (16, 4), (16, 7)}
    assert len(cells) == 4 * 3
    assert set(grid.settings) == {"world_dimension", "world_count"}


COMMON = {"runs": 1, "horizon": 30, "budget": 4, "attack": [{"name": "greedy"}]}


def told(grid):
    return [(cell.agent, cell.agent_settings.get("known_budget")) for cell in grid.cells.values()]


def test_a_grid_or_an_agent_can_say_that_c_is_unknown():
    two = [{"name": "rcdb"}, {"name": "rcdb-s", "known_budget": True}]
    assert told(declare(COMMON | {"agent": two})) == [("rcdb", None), ("rcdb-s", True)]
    assert told(declare(COMMON | {"agent": two, "known_budget": False})) == [("rcdb", False), ("rcdb-s", True)]


def test_known_and_unknown_c_are_an_axis_that_does_not_multiply_agents_without_a_budget():
    agents = [{"name": ["rcdb", "maxinp"], "warmup": [0, 2]}]
    grid = declare(COMMON | {"agent": agents, "known_budget": [True, False]})
    expected = [("rcdb", True), ("rcdb", False)] * 2 + [("maxinp", None)] * 2
    assert told(grid) == expected
    assert grid.settings["agent_known_budget"].values == [True, False, True, False]
    own = declare(COMMON | {"agent": [{"name": "rcdb", "known_budget": [True, False]}, {"name": "maxinp"}]})
    assert told(own) == [("rcdb", True), ("rcdb", False), ("maxinp", None)]


def test_a_sweep_with_unknown_c_can_be_stored_and_queried(tmp_path):
    grid = declare(COMMON | {"agent": [{"name": ["rcdb", "maxinp"]}], "known_budget": [True, False]})
    sweep(grid, tmp_path)
    assert Grid.load(tmp_path) == grid
    answer = query(
        tmp_path,
        "SELECT agent, agent_known_budget, budget, CAST(agent_settings->>'flip_budget' AS INT) FROM runs ORDER BY ALL",
    )
    assert list(answer.rows) == [("maxinp", None, 4, None), ("rcdb", False, 4, 6), ("rcdb", True, 4, 4)]


GOOD = {"runs": "2", "horizon": "9", "budget": "1", "agent": 'name = "rcdb"', "attack": 'name = "greedy"'}


def grid_text(**changes):
    parts = GOOD | changes
    tables = {name: parts.pop(name) for name in ("agent", "attack", "world") if name in parts}
    lines = [f"{name} = {value}" for name, value in parts.items() if value is not None]
    return "\n".join(lines + [f"[[{name}]]\n{value}" for name, value in tables.items() if value is not None])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (grid_text(run="3"), ["key", "'run'", "did you mean 'runs'"]),
        (grid_text(horizons="3"), ["did you mean 'horizon'"]),
        (grid_text(runs=None), ["needs runs"]),
        (grid_text(horizon=None), ["needs horizon"]),
        (grid_text(budget=None), ["needs budget"]),
        (grid_text(agent=None), ["needs agent"]),
        (grid_text(attack=None), ["needs attack"]),
        (grid_text(runs="0"), ["runs", "≥ 1", "0"]),
        (grid_text(runs="true"), ["runs", "True"]),
        (grid_text(runs="[1, 2]"), ["runs", "whole number"]),
        (grid_text(seed="-1"), ["seed", "≥ 0"]),
        (grid_text(horizon="[]"), ["horizon", "list"]),
        (grid_text(horizon="[10, 0]"), ["horizon", "≥ 1"]),
        (grid_text(horizon="10.5"), ["horizon", "10.5"]),
        (grid_text(budget='"log"'), ["budget", "sqrt", "log"]),
        (grid_text(budget="-1"), ["budget", "-1"]),
        (grid_text(budget="2020-01-01"), ["budget"]),
        (grid_text(known_budget='"maybe"'), ["known_budget", "maybe"]),
        (grid_text(known_budget="[]"), ["known_budget", "list"]),
        (grid_text(agent='name = "rcdb"\nknown_budget = 1'), ["known_budget", "1"]),
        (
            grid_text(agent='name = "maxinp"\nknown_budget = false'),
            ["no setting for C", "omit known_budget"],
        ),
        (grid_text(agent="radius = 1.0"), ["[[agent]]", "name"]),
        (grid_text(agent="name = 3"), ["agent name must be a string", "3"]),
        (grid_text(agent="name = []"), ["name", "list"]),
        (grid_text(agent='name = "rcbd"'), ["'rcbd'", "did you mean 'rcdb'"]),
        (grid_text(agent='name = "rcdb"\nraduis = 1.0'), ["raduis", "did you mean 'radius'"]),
        (grid_text(agent='name = "rcdb"\nradius = []'), ["radius", "list"]),
        (grid_text(agent='name = "rcdb"\nradius = [[1.0]]'), ["radius", "list"]),
        (grid_text(agent='name = "rcdb"\nradius = {a = 1}'), ["radius"]),
        (grid_text(agent='name = "rcdb"\n"my radius" = 1.0'), ["my radius"]),
        (grid_text(agent='name = "rcdb"\ndesign = "round"'), ["rcdb", "greedy", "design"]),
        (grid_text(agent='name = "nowhere:Agent"'), ["nowhere"]),
        (grid_text(agent='name = "rcdb-s"', world='name = "hard-corrupted"'), ["rcdb-s", "hard-corrupted"]),
        (grid_text(attack='name = "gredy"'), ["did you mean 'greedy'"]),
        (grid_text(attack='name = "greedy"\ntarget = "worst"'), ["target"]),
        (grid_text(attack='name = "misleading"\ntarget = 99'), ["99"]),
        (grid_text(world="name = 3"), ["world name must be a string", "3"]),
        (grid_text(world='name = "cube"'), ["did you mean 'hypercube'"]),
        (grid_text(world='name = "hypercube"\ndimension = "five"'), ["dimension", "five"]),
        (grid_text(world='name = "hypercube"\nrng = 3'), ["hypercube", "cannot run"]),
        (grid_text(agent='name = ["rcdb", "barbar"]'), ["barbar", "cannot run", "rewards"]),
        (grid_text(agent='name = "wiwr"', world='name = "fresh"'), ["wiwr", "cannot run", "actions change"]),
        (grid_text(agent=None) + '\n[agent]\nname = "rcdb"', ["[[agent]]"]),
        (grid_text(agent=None).replace("[[", 'agent = ["rcdb"]\n[[', 1), ["[[agent]]"]),
        ("runs = ", ["TOML", "Invalid value"]),
        ("runs = 1\nruns = 2", ["TOML"]),
        ("", ["needs"]),
    ],
)
def test_an_error_in_a_grid_is_one_sentence(tmp_path, text, words):
    path = written(tmp_path, text)
    with pytest.raises(BadInputError) as caught:
        read_grid(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in [str(path), *words]:
        assert word in sentence


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"nothing\.toml: No such file"):
        read_grid(tmp_path / "nothing.toml")
    with pytest.raises(BadInputError, match="Is a directory"):
        read_grid(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"runs = 1 # caf\xe9")
    with pytest.raises(BadInputError, match="not valid TOML"):
        read_grid(tmp_path / "latin.toml")


def test_the_record_of_a_sweep_brings_back_its_grid(swept):
    grid = read_grid(swept / "grid.toml")
    assert Grid.load(swept) == grid


def test_a_folder_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="holds no sweep"):
        query(tmp_path, "FROM runs")
    for text in ("", "[]", "{}", '{"seeds": {"first": 0, "runs": 1}, "cells": {"a": {"agnet": 1}}}'):
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(BadInputError, match="not a sweep record"):
            query(tmp_path, "FROM runs")
