"""Small mistakes that would cost votes or trust, each of which some test must notice."""

import shutil

import pytest

from fairduel.service.commands import operating
from fairduel.service.events import backup
from fairduel.service.events.database import folded_learner, last_refold
from fairduel.service.keys import first_is_left
from fairduel.service.problems import Problem


def test_the_connection_that_writes_waits_for_the_disk(booth):
    def settings(ledger):
        connection = ledger.connection()
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "journal_mode")]

    assert booth.run(settings) == [2, "wal"]  # FULL


def test_each_item_is_on_the_left_in_half_of_the_duels():
    """Within 4 standard deviations of a half, overall and for one voter: 48% and 52% would be noticed."""
    many = 20_000
    for voter in ("one", None):
        left = sum(first_is_left(b"secret", voter or f"voter {n}", f"duel {n}") for n in range(many))
        assert abs(left / many - 0.5) < 2.0 / many**0.5


def test_nothing_is_undone_after_the_end(booth):
    duel = booth.ask()[0]["duel"]
    booth.answer(duel)
    booth.run(operating.change_study, booth.study, {"state": "closed"})
    with pytest.raises(Problem, match="undone"):
        booth.undo(duel)
    booth.run(operating.change_study, booth.study, {"state": "paused"})
    with pytest.raises(Problem, match="undone"):
        booth.undo(duel)


@pytest.mark.usefixtures("often_saved")
def test_a_saved_learner_of_another_log_is_not_used(booth, tmp_path):
    """Two logs that begin alike and go on differently have learners saved at the same position."""
    booth.crowd(10)
    booth.ledger.close()
    shutil.copytree(booth.folder, tmp_path / "other")
    other = booth.at(tmp_path / "other")
    other.crowd(30, seed=1)
    other.ledger.close()
    booth.open()
    booth.crowd(30, seed=2)
    booth.ledger.close()
    name = f"learners/{booth.study}.npz"
    assert (booth.folder / name).read_bytes() != (other.folder / name).read_bytes()
    shutil.copy(other.folder / name, booth.folder / name)
    head = backup.check(booth.folder).head
    booth.open()
    assert booth.receipts()[-1] == head  # else it was used, and the learner had to be refolded

    def folded(ledger):
        connection = ledger.connection()
        return folded_learner(connection, booth.state, None, last_refold(connection, booth.study))

    expected = booth.run(folded).agent.state()
    found = booth.state.learner.agent.state()
    assert repr(found) == repr(expected)
    assert repr(other.state.learner.agent.state()) != repr(expected)
