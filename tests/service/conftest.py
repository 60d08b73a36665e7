import itertools

import pytest

from fairduel.service import learner
from fairduel.service.locations import database
from helpers.booth import Booth, Clock
from helpers.clusters import cluster, new_database


@pytest.fixture(scope="session")
def postgres():
    """The address of a PostgreSQL that runs while tests need it."""
    with cluster() as url:
        yield url


@pytest.fixture
def new_location(request, tmp_path):
    """Makes locations for stores: folders, or databases too with ``in_both``."""
    if getattr(request, "param", "folder") == "postgres":
        url = request.getfixturevalue("postgres")
        return lambda: database(new_database(url))
    numbers = itertools.count()
    return lambda: tmp_path / f"store{next(numbers)}"


@pytest.fixture
def new_booth(new_location):
    """Makes booths, and closes them."""
    booths = []

    def make(**settings):
        booths.append(Booth(new_location(), Clock(), {"repeat_pairs": True} | settings))
        return booths[-1]

    yield make
    for booth in booths:
        booth.ledger.close()


@pytest.fixture
def booth(new_booth):
    return new_booth()


@pytest.fixture
def often_saved(monkeypatch):
    """Learners are saved every 20 events."""
    monkeypatch.setattr(learner, "SAVE_EVERY", 20)
