"""Every command in the documents runs: in order, page by page, in a folder that holds what the page shows."""

import dataclasses
import re
import shlex
import shutil
import sys
import tomllib

import pytest
import typer

from fairduel.cli import main
from fairduel.cli.command_list import app_for
from fairduel.experiments import claims, competition, replayed_votes, table1_growth, tuning
from helpers.clusters import new_database
from helpers.documents import DOCUMENTS, ROOT, commands, inline_commands, page_name, write_files

PLACEHOLDER = re.compile(r"[A-Z]{2,}|…")
CHEAP = {
    "attack": {"--search": "1", "--runs": "2", "--jobs": "1", "--horizon": "100"},
    "cost": {"--runs": "1", "--voters": "3", "--votes-per-day": "2", "--days": "1"},
    "leaderboard": {"--runs": "1", "--jobs": "1"},
    "poll": {"--port": "0"},
    "reproduce": {"--runs": "1", "--jobs": "1"},
    "serve": {"--port": "0"},
    "simulate": {"--runs": "1", "--jobs": "1", "--horizon": "300"},
    "sweep": {"--jobs": "1"},
    "tune": {"--runs": "2", "--jobs": "1"},
    "verify": {"--runs": "2", "--jobs": "1"},
}
"""Options that make a command cheap enough to be run; all others are the document's."""


@pytest.fixture
def small_experiments(monkeypatch):
    """Shrink what no option can: fewer scenarios, claims, problems and shorter horizons, through the same code."""
    monkeypatch.setattr(competition, "SCENARIOS", (dataclasses.replace(competition.SCENARIOS[0], horizon=300),))
    monkeypatch.setattr(competition, "CANDIDATES", competition.CANDIDATES[:2])
    monkeypatch.setattr(competition, "RUNGS", (competition.Rung(1, 2),))
    monkeypatch.setattr(replayed_votes, "HORIZON", 100)
    monkeypatch.setattr(replayed_votes, "RADII", replayed_votes.RADII[:1])
    monkeypatch.setattr(replayed_votes, "FOLDS", 2)
    monkeypatch.setattr(table1_growth, "HORIZONS", (100, 200, 400))
    monkeypatch.setattr(table1_growth, "REFERENCE_HORIZON", 200)
    monkeypatch.setattr(table1_growth, "BUDGETS", (5, 10, 20))
    monkeypatch.setattr(table1_growth, "REFERENCE_BUDGET", 10)
    monkeypatch.setattr("fairduel.cli.live.serving._serve", lambda *_: None)  # it would run until it is stopped
    some_claims, some_problems = claims.all_claims()[:2], tuning.paper_problems()[:1]
    monkeypatch.setattr(claims, "all_claims", lambda: some_claims)
    monkeypatch.setattr("fairduel.cli.research.tune.paper_problems", lambda: some_problems)
    monkeypatch.setattr("fairduel.cli.research.tune.to_ship", lambda _: "")  # which needs all of them


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    """Results of the commands that have run, by command and the files it names: each runs once."""
    return {"folder": tmp_path_factory.mktemp("done")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder; modules loaded from it are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def cheaper(words):
    """Return the command with the options that make it cheap, in place of its own."""
    words = list(words)
    for option, value in CHEAP.get(words[0], {}).items():
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return words


def run(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fairduel", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, f"fairduel {shlex.join(words)} exits with {ended.value.code}"


def run_once(words, folder, done, monkeypatch):
    """Run a command made cheap, or take over the results of the same command on the same files."""
    words = cheaper(words)
    shown = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.stem in str(words)}
    key = (tuple(words), tuple(shown.items()))
    if key not in done:
        run(words, monkeypatch)
        done[key] = done["folder"] / str(len(done))
        shutil.copytree(folder / "results", done[key]) if (folder / "results").exists() else done[key].mkdir()
    else:
        shutil.copytree(done[key], folder / "results", dirs_exist_ok=True)


def check_other(words):
    """Check a command that cannot be run here: its target, extra or script exists."""
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets)
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = re.fullmatch(r"(?:\.|fairduel)(?:\[([\w,]+)\])?", words[2])
        assert set(filter(None, (wanted[1] or "").split(","))) <= set(extras)
    else:
        assert words[0] == "python", f"no check for {shlex.join(words)}"
        place = ROOT / (words[2].replace(".", "/") if words[1] == "-m" else words[1])
        assert place.is_file() or (place / "__main__.py").is_file()


PAGES_WITH_COMMANDS = [path for path in DOCUMENTS if commands(path)]


@pytest.mark.parametrize("path", PAGES_WITH_COMMANDS, ids=page_name)
@pytest.mark.usefixtures("small_experiments")
def test_commands_run(path, folder, done, monkeypatch, request):
    write_files(path, folder)
    databases = {}
    for words in commands(path):
        if words[0] == "fairduel":
            for word in words:
                if word.startswith("postgresql://") and word not in databases:
                    databases[word] = new_database(request.getfixturevalue("postgres"))
            run_once([databases.get(word, word) for word in words[1:]], folder, done, monkeypatch)
        else:
            check_other(words)


def inline_cases():
    """Return each inline command that is complete, once after it is made cheap, with a page that has it."""
    found = {
        shlex.join(cheaper(words[1:])): path
        for path in DOCUMENTS
        for words in inline_commands(path)
        if len(words) > 2 and not PLACEHOLDER.search(" ".join(words))
    }
    return [pytest.param(shlex.split(words), path, id=words) for words, path in found.items()]


@pytest.mark.parametrize(("words", "path"), inline_cases())
@pytest.mark.usefixtures("small_experiments")
def test_complete_inline_commands_run(words, path, folder, done, monkeypatch, data):
    write_files(path, folder)
    for recorded in data.iterdir():
        (folder / recorded.name).symlink_to(recorded)
    run_once(words, folder, done, monkeypatch)


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_name)
def test_inline_commands_and_options_exist(path):
    for words in inline_commands(path):
        command, names = typer.main.get_command(app_for()), words[1:]
        while names and not names[0].startswith("-") and hasattr(command, "commands"):
            command = command.commands[names.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {name for name in names if name.startswith("--")} <= known | {"--help"}, shlex.join(words)


@pytest.mark.parametrize("command", [["rank", "nothing.csv"], ["simulate", "--agents", "rcdb"], ["ranks", "votes.csv"]])
def test_a_command_that_fails_is_noticed(command, folder, done, monkeypatch):
    with pytest.raises(AssertionError, match="exits with 2"):
        run_once(command, folder, done, monkeypatch)


@pytest.mark.parametrize("line", ["make dmeo", "pip install .[vote]", "python docs/table.py"])
def test_a_wrong_target_extra_or_script_is_noticed(line):
    with pytest.raises(AssertionError):
        check_other(shlex.split(line))
