"""What is not of this log is noticed: saved learners, files, erased texts, changed events, and wrong clocks."""

import io
import shutil
from contextlib import closing

import pytest
from PIL import Image
from sqlalchemy import delete, insert, select, update
from starlette.testclient import TestClient

from fairduel.agents.parts.state_file import same_state
from fairduel.service.api import app as applications
from fairduel.service.api.limits import unlimited
from fairduel.service.commands import operating
from fairduel.service.events import backup, schema
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study.media import MEDIA
from fairduel.service.study.study import NewStudy
from helpers.booth import open_ledger
from helpers.waiting import wait_for


def change(booth, statement):
    booth.ledger.close()
    with closing(open_ledger(booth.folder)) as ledger:
        ledger.run(lambda ledger: ledger.connection().execute(statement))


@pytest.mark.usefixtures("often_saved")
def test_a_saved_learner_of_another_log_is_not_used(new_booth, tmp_path):
    """Two logs of one study, of the same length: the learner of one must not go on with the other."""
    booth = new_booth(items=5, undo_seconds=0)
    booth.vote(3)
    booth.ledger.close()
    shutil.copytree(booth.folder, tmp_path / "other")
    logs, whole = [], []
    for folder, seed in ((booth.folder, 1), (tmp_path / "other", 2)):
        one = booth.at(folder)
        one.crowd(60, seed)
        whole.append(one.receipts())
        one.ledger.close()
        logs.append(one.folder / "learners" / f"{booth.study}.npz")
    assert logs[0].read_bytes() != logs[1].read_bytes()
    shutil.copyfile(logs[1], logs[0])
    assert [found for found in backup.check(booth.folder).problems if "is not of this log" in found]
    booth.open()
    assert booth.receipts() == whole[0]  # nothing had to be learned again
    live = booth.state.learner.state()
    booth.ledger.close()
    logs[0].unlink()
    booth.open()
    assert same_state(booth.state.learner.state(), live)


def test_a_missing_picture_is_noticed(new_booth):
    booth, picture = new_booth(), io.BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    stored = MEDIA["image"].prepare(picture.getvalue())
    booth.run(operating.store_file, stored)
    items = [{"name": "a", "image": stored.digest}, {"name": "b"}]
    booth.run(operating.create_study, NewStudy(question="?", items=items))
    assert backup.check(booth.folder).problems == ()
    change(booth, delete(schema.media))
    assert backup.check(booth.folder).problems == (f"The image or audio {stored.digest} of a study is missing.",)


def test_a_text_that_was_erased_and_is_back_is_noticed(new_booth):
    booth = new_booth()
    voter = booth.run(operating.invite, booth.study, ["Ann"])[0]["voter"]
    row = booth.run(lambda ledger: ledger.connection().execute(select(schema.personal)).mappings().one())
    booth.run(operating.erase_personal, booth.study, voter)
    assert backup.check(booth.folder).problems == ()
    change(booth, insert(schema.personal).values(**row))
    assert "was erased, but is still there" in backup.check(booth.folder).problems[0]


def test_a_changed_event_is_noticed_while_the_server_runs(booth):
    booth.vote(5)
    changed = update(schema.events).where(schema.events.c.position == 9).values(at=schema.events.c.at + 1e-6)
    change(booth, changed)
    with closing(Service(booth.folder)) as service:
        wait_for(lambda: service.damage)
        assert "event 9" in service.damage
        client = TestClient(applications.create_app(service, limits=unlimited()), base_url="http://localhost")
        assert client.get("/readyz").status_code == 503
        assert "event 9" in client.get("/readyz").json()["detail"]
    booth.open()


def test_a_whole_log_is_verified_after_the_start(booth):
    booth.vote(5)
    last = booth.state.learner.position
    booth.ledger.close()
    with closing(Service(booth.folder)) as service:
        wait_for(lambda: service.verified >= last)
        assert service.damage == ""
    booth.open()


def test_time_passes_after_the_clock_was_once_wrong(new_booth, caplog):
    booth = new_booth(duel_seconds=10)
    booth.clock.now += 10 * 365 * 86_400
    booth.restart()
    duel = booth.ask()[0]["duel"]
    booth.clock.now -= 10 * 365 * 86_400
    with caplog.at_level("WARNING", logger="fairduel.service"):
        booth.restart()
    assert any("the clock is behind" in str(vars(record)) for record in caplog.records)
    before = booth.run(lambda ledger: ledger.now())
    wait_for(lambda: booth.run(lambda ledger: ledger.now()) > before + 0.01)
    booth.ledger._began += 10
    assert booth.answer(duel)["reason"] == "late"


def test_a_clock_that_is_right_gives_no_warning(booth, caplog):
    booth.vote(3)
    booth.clock.now += 5
    with caplog.at_level("WARNING", logger="fairduel.service"):
        booth.restart()
    assert not caplog.records
    with pytest.raises(Problem):
        booth.undo("nothing")
