"""Run the notebook and store what it shows: ``python docs/notebook.py``."""
# ruff: noqa: INP001  # a script

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "votes" / "notebook.ipynb"


def run(folder: Path) -> Any:
    """Run the notebook's cells in ``folder``; return it with the fresh outputs, without times and counters."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, record_timing=False).execute()
    return notebook


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(run(Path(folder)), NOTEBOOK)
