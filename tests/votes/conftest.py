"""The sets of recorded votes."""

import pytest

from fairduel.votes.reading.read import read_votes

FILES = {"llmfao": "votes.csv", "mtbench_human": "votes.csv", "ukpconvarg1": "votes.csv.gz"}


@pytest.fixture(scope="session")
def recorded(data):
    """Call with the name of a set of votes to read it."""
    return lambda name: read_votes(data / name / FILES[name]).votes
