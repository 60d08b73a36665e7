"""Run the notebooks and store what they show: ``python docs/notebook.py``.

That on preference data needs the recorded votes: FAIRDUEL_DATA, or shared/data beside the repository.
"""
# ruff: noqa: INP001  # a script

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

VOTES = Path(__file__).parent / "votes"
NOTEBOOK, PREFERENCES = VOTES / "notebook.ipynb", VOTES / "preferences-notebook.ipynb"
DATA = Path(__file__).parents[2] / "shared" / "data"


def run(folder: Path, notebook: Path = NOTEBOOK) -> Any:
    """Run a notebook's cells in ``folder``; return it with the fresh outputs, without times and counters."""
    os.environ.setdefault("FAIRDUEL_DATA", str(DATA))
    cells = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(cells, resources=where, record_timing=False, coalesce_streams=True).execute()
    return cells


if __name__ == "__main__":
    for each in (NOTEBOOK, PREFERENCES):
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(run(Path(folder), each), each)
