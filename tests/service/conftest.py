import csv
import itertools
import time
from pathlib import Path

import pytest

from fairduel.service import learner
from helpers.booth import Booth, Clock
from helpers.servers import Launcher
from helpers.torture import Trial


@pytest.fixture
def new_booth(tmp_path):
    """Makes booths, and closes them."""
    booths, numbers = [], itertools.count()

    def make(**settings):
        booths.append(Booth(tmp_path / f"store{next(numbers)}", Clock(), {"repeat_pairs": True} | settings))
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
    torture_rows.append([about["number"], about["title"], size, trial.found or "FAILED", f"{seconds:.0f}"])
