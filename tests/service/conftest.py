import csv
import itertools
import time
from pathlib import Path

import pytest

from fairduel.service.events.database import database
from fairduel.service.service import Service
from fairduel.service.study import learner
from helpers.booth import Booth, Clock
from helpers.clusters import new_database
from helpers.servers import Launcher
from helpers.torture import Trial


@pytest.fixture
def new_location(request, tmp_path):
    """Makes locations for stores: folders, or databases too with ``in_both``."""
    if getattr(request, "param", "folder") == "postgres":
        url = request.getfixturevalue("postgres")
        return lambda: database(new_database(url))
    numbers = itertools.count()
    return lambda: tmp_path / f"store{next(numbers)}"


@pytest.fixture
def service(tmp_path):
    service = Service(tmp_path / "store")
    yield service
    service.close()


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


@pytest.fixture(scope="session")
def launcher():
    """Starts servers in processes of their own."""
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="session")
def torture_rows(request):
    """Rows of the table of results, which is written at the end."""
    rows = []
    yield rows
    if file := request.config.getoption("--torture"):
        with Path(file).open("w", newline="") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow(["test", "what happens", "size", "measured", "seconds"])
            writer.writerows(sorted(rows))


@pytest.fixture
def trial(request, torture_rows):
    """The size of one of the twenty tests, and where it says what it measured."""
    about = request.node.get_closest_marker("torture").kwargs
    is_full = bool(request.config.getoption("--torture"))
    trial = Trial(about["full" if is_full else "small"], is_full)
    began = time.perf_counter()
    yield trial
    seconds = time.perf_counter() - began
    size = f"{trial.size:,} {about['unit']}"
    in_postgres = (
        getattr(request.node, "callspec", None) and request.node.callspec.params.get("new_location") == "postgres"
    )
    title = f"{about['title']} (PostgreSQL)" if in_postgres else about["title"]
    torture_rows.append([about["number"], title, size, trial.found or "FAILED", f"{seconds:.0f}"])


@pytest.fixture
def url(postgres):
    """The address of a database that nobody else uses."""
    return new_database(postgres)


@pytest.fixture
def stored(url):
    """A booth in that database."""
    booth = Booth(database(url), Clock(), {"repeat_pairs": True})
    yield booth
    booth.ledger.close()
