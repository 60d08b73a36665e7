"""Where the recorded votes are: FAIRDUEL_DATA, or shared/data beside the repository."""

import os
from pathlib import Path

import pytest

from fairduel.votes.reading import read_votes

FILES = {"llmfao": "votes.csv", "mtbench_human": "votes.csv", "ukpconvarg1": "votes.csv.gz"}


@pytest.fixture(scope="session")
def data():
    """The folder with the recorded votes."""
    folder = Path(os.environ.get("FAIRDUEL_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not folder.is_dir():
        reason = f"the recorded votes are not at {folder}: set FAIRDUEL_DATA"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def recorded(data):
    """Call with the name of a set of votes to read it."""
    return lambda name: read_votes(data / name / FILES[name]).votes
