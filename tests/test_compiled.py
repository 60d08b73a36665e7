"""The cache of machine code follows the sources, callees included."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fairduel

CODE = """
import numpy as np
from fairduel.likelihood import loss
from fairduel.links import potential
one = np.array([1.0])
print(abs(potential(0, 1.0, 0.5) - loss(0.5 * one, one[:, None], one, 0 * one, 0.0, 0, 1.0)) < 1e-9)
"""


def test_a_changed_function_reaches_the_compiled_ones_that_call_it(tmp_path):
    shutil.copytree(Path(fairduel.__file__).parent, tmp_path / "fairduel", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(tmp_path)

    def agree():
        command = [sys.executable, "-c", CODE]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert agree() == "True"
    links = tmp_path / "fairduel" / "links.py"
    source = links.read_text(encoding="utf-8")
    assert "return (max(z, 0.0)" in source
    links.write_text(source.replace("return (max(z, 0.0)", "return 100.0 + (max(z, 0.0)"), encoding="utf-8")
    assert agree() == "True"
