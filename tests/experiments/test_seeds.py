"""What is chosen on some seeds is reported on others: no report reaches a tuning seed, no tuning one of a report.

Commands and functions are found, not listed, so that a new one is held to this too.
"""

import importlib
import inspect
import pkgutil

import pytest
import typer.main
from typer.testing import CliRunner

import fairduel.experiments
from fairduel import BadInputError
from fairduel.cli.command_list import app_for
from fairduel.cli.research.reproduce import REPLAY, TABLE1
from fairduel.experiments import EXPERIMENTS
from fairduel.experiments.paper_setup import GREEDY, paper_cell
from fairduel.experiments.tuning import FIRST_TUNING_SEED, collect
from fairduel.simulation import Cell, Store

ACROSS = [FIRST_TUNING_SEED - 1, FIRST_TUNING_SEED]
MODULES = [
    importlib.import_module(f"fairduel.experiments.{info.name}")
    for info in pkgutil.iter_modules(fairduel.experiments.__path__)
]
RUNNERS = [
    function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not name.startswith("_")
    and {"seeds", "jobs"} <= set(inspect.signature(function).parameters)
]
COMMANDS = typer.main.get_command(app_for()).commands
REPORTING = [name for name, command in COMMANDS.items() if {"seed", "runs"} <= {p.name for p in command.params}]
ARGUMENTS = {
    "attack": [["rcdb"]],
    "cost": [["votes.csv"]],
    "stress": [["votes.csv", "--target", "a"]],
    "reproduce": [[name] for name in (*EXPERIMENTS, "all", TABLE1, REPLAY)],
}
CALLS = [(name, *arguments) for name in REPORTING for arguments in ARGUMENTS.get(name, [[]])]


@pytest.fixture(autouse=True)
def no_run(monkeypatch):
    def fail(cell, seed):
        raise AssertionError(f"seed {seed} of {cell} ran")

    monkeypatch.setattr(Cell, "run", fail)


def test_what_is_found_is_all_there_is():
    assert {function.__name__ for function in RUNNERS} >= {"run_experiment", "measure", "compete", "verify"}
    assert set(REPORTING) >= {"reproduce", "simulate", "verify", "leaderboard"}


@pytest.mark.parametrize("function", RUNNERS, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_a_function_that_reports_refuses_tuning_seeds(function, tmp_path):
    known = {
        "experiment": EXPERIMENTS["figure1"](),
        "problem": paper_cell("rcdb", GREEDY),
        "store": Store(tmp_path),
        "folder": tmp_path,
        "settings": {},
        "seeds": ACROSS,
    }
    parameters = inspect.signature(function).parameters
    with pytest.raises(BadInputError, match="are reserved for tuning"):
        function(**{name: known[name] for name in parameters if name in known})


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_that_reports_refuses_tuning_seeds(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app_for(call), [*call, "--seed", str(ACROSS[0]), "--runs", "2"])
    assert isinstance(outcome.exception, BadInputError), outcome.output
    assert "are reserved for tuning" in str(outcome.exception)


def test_a_command_with_runs_but_no_seed_is_a_tuning():
    """Its seeds are fixed then: test_cli checks that those of ``tune`` are tuning seeds."""
    others = {name for name, command in COMMANDS.items() if "runs" in {p.name for p in command.params}} - {*REPORTING}
    assert others == {"tune"}


def test_a_tuning_refuses_seeds_of_reports(tmp_path):
    with pytest.raises(BadInputError, match="are reserved for reports"):
        collect(paper_cell("maxinp", GREEDY), [{"radius": 1.0}], Store(tmp_path), ACROSS)
