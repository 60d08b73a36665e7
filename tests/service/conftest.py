import itertools

import pytest

from fairduel.service import learner
from helpers.booth import Booth, Clock


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
