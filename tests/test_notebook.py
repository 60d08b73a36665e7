"""The notebooks run, and show what the documentation shows."""

import importlib.util
import json
import re

import pytest

from helpers.documents import ROOT

pytestmark = pytest.mark.filterwarnings("ignore")  # of the kernel's client


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "notebook.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_notebook_shows_what_a_fresh_run_shows(script, tmp_path):
    stored = json.loads(script.NOTEBOOK.read_text())
    fresh = script.run(tmp_path)
    assert any(cell.outputs for cell in fresh.cells if cell.cell_type == "code")
    for cell, again in zip(stored["cells"], fresh.cells, strict=True):
        assert list(map(shown, cell.get("outputs", []))) == list(map(shown, again.get("outputs", [])))
    assert {file.name for file in (tmp_path / "cleaned").iterdir()} == {"ranking.parquet", "votes.parquet", "trl.jsonl"}


def test_the_notebook_on_real_preferences_says_in_ten_cells_what_a_fresh_run_says(script, data, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRDUEL_DATA", str(data))
    stored = json.loads(script.PREFERENCES.read_text())
    fresh = script.run(tmp_path, script.PREFERENCES)
    assert len(stored["cells"]) == 10
    for cell, again in zip(stored["cells"], fresh.cells, strict=True):
        was, now = ("".join(shown(output)[1] for output in each.get("outputs", [])) for each in (cell, again))
        assert re.sub(r"\d", "", was) == re.sub(r"\d", "", now)
        numbers = [[float(number) for number in re.findall(r"\d+(?:\.\d+)?", said)] for said in (was, now)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.02)  # single precision, on any machine


def shown(output):
    """What a reader sees of an output."""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    return output["output_type"], "".join(output.get("text", "")), data
