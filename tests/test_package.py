import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def test_importing_the_library_brings_no_plotting_and_no_command():
    code = "import sys, fairduel; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"matplotlib", "polars", "rich", "typer", "joblib", "jinja2"})


def test_importing_the_library_compiles_nothing():
    code = (
        "from fairduel.simulation.compiled_run import run; from fairduel.core.likelihood import newton;"
        "print(run.signatures, newton.signatures)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("1", 1)])
def test_a_skipped_test_fails_in_ci(ci, status, tmp_path):
    shutil.copy(Path(__file__).parent / "conftest.py", tmp_path)
    (tmp_path / "test_skipped.py").write_text("import pytest\n\ndef test_skipped():\n    pytest.skip('no data')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(command, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert ("not allowed in CI: Skipped: no data" in done.stdout) == bool(ci)
