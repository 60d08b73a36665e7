import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fairduel
from fairduel.cli.command_list import app_for


def test_importing_the_library_brings_no_plotting_and_no_command():
    code = "import sys, fairduel; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"matplotlib", "polars", "rich", "typer", "joblib", "jinja2", "numba", "scipy", "numpy"})


@pytest.mark.parametrize("words", [["--help"], [], ["rnk"]])
def test_help_and_misspelt_commands_import_no_numerical_library_and_know_all_commands(words):
    code = (
        f"import sys; sys.argv = ['fairduel', *{words}]\nfrom fairduel.cli import main\n"
        "try: main()\nfinally: assert not {'numba', 'numpy', 'polars'} & {name.split('.')[0] for name in sys.modules}"
    )
    quick = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    whole = CliRunner().invoke(app_for(), words, prog_name="fairduel")
    assert (quick.stdout + quick.stderr).split() == whole.output.split()
    assert quick.returncode == whole.exit_code


def test_a_command_after_two_dashes_runs(tmp_path):
    script = Path(sys.executable).with_name("fairduel")
    done = subprocess.run([script, "--", "rank", "none.csv"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot read none.csv" in done.stderr


def test_importing_the_library_compiles_nothing():
    code = (
        "from fairduel.simulation.compiled_run import run; from fairduel.core.likelihood import newton;"
        "print(run.signatures, newton.signatures)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


@pytest.mark.parametrize("ending", ["js", "css", "html"])
def test_no_line_of_a_page_is_longer_than_120_characters(ending):
    files = list(Path(fairduel.__file__).parent.rglob(f"*.{ending}"))
    lines = {file.name: file.read_text(encoding="utf-8").splitlines() for file in files}
    found = [f"{name}:{n}" for name in lines for n, line in enumerate(lines[name], 1) if len(line) > 120]
    assert files
    assert found == []


PACKAGE = Path(fairduel.__file__).parent


@pytest.mark.parametrize("kind", ["class", "def"])
def test_no_two_classes_or_functions_of_modules_have_the_same_name(kind):
    """Names with an underscore belong to their module."""
    defined = re.compile(rf"^{kind} ([A-Za-z]\w*)", re.MULTILINE)
    names = Counter(name for file in PACKAGE.rglob("*.py") for name in defined.findall(file.read_text("utf-8")))
    assert len(names) > 300
    assert [name for name, count in names.items() if count > 1] == []


def test_no_two_modules_have_the_same_name():
    """Modules of routes may be named after what they serve."""
    files = [file for file in PACKAGE.rglob("*.py") if file.parent.name != "api" and not file.name.startswith("__")]
    names = Counter(file.name for file in files)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_folder_has_at_most_15_files():
    folders = Counter(file.parent for file in PACKAGE.rglob("*.py"))
    assert {folder.name: count for folder, count in folders.items() if count > 15} == {}


IMPORT_EVERYTHING = """
import importlib, pkgutil, sys, fairduel
from fairduel import agents, votes
for module in agents.AGENTS.modules:
    importlib.import_module(module)
for name in fairduel.__all__:
    getattr(fairduel, name)
print("torch" in sys.modules)
"""


@pytest.mark.torch
def test_importing_every_agent_does_not_import_pytorch():
    """So `import fairduel` takes the same time with and without it."""
    done = subprocess.run([sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("selected", "status"),
    [([], 0), (["-m", "torch"], 1)],
    ids=["among other tests", "when asked for"],
)
def test_a_test_without_pytorch_is_skipped_in_ci_unless_asked_for(selected, status, tmp_path):
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_skipped.py").write_text("import pytest\n\n@pytest.mark.torch\ndef test(): pytest.skip('none')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tmp_path, *selected, tmp_path]
    done = subprocess.run(command, env=os.environ | {"CI": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("1", 1)])
def test_a_skipped_test_fails_in_ci(ci, status, tmp_path):
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_skipped.py").write_text("import pytest\n\ndef test_skipped():\n    pytest.skip('no data')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(command, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert ("not allowed in CI: Skipped: no data" in done.stdout) == bool(ci)
