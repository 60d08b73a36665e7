"""The notebook runs, and shows what the documentation shows."""

import importlib.util
import json

import pytest

from helpers.documents import ROOT


@pytest.mark.filterwarnings("ignore")  # of the kernel's client
def test_the_notebook_shows_what_a_fresh_run_shows(tmp_path):
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "docs" / "notebook.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stored = json.loads(script.NOTEBOOK.read_text())
    fresh = script.run(tmp_path)
    assert any(cell.outputs for cell in fresh.cells if cell.cell_type == "code")
    for cell, again in zip(stored["cells"], fresh.cells, strict=True):
        assert list(map(shown, cell.get("outputs", []))) == list(map(shown, again.get("outputs", [])))
    assert {file.name for file in (tmp_path / "cleaned").iterdir()} == {"ranking.parquet", "votes.parquet", "trl.jsonl"}


def shown(output):
    """What a reader sees of an output."""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    return output["output_type"], "".join(output.get("text", "")), data
