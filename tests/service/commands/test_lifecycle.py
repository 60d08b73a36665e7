"""How studies open, close, grow and end: by operators, at their time, at a number of votes, at the verdict."""

import re

import pytest
from pydantic import ValidationError

from fairduel.service.commands import imports, operating, voting
from fairduel.service.events import backup, schema
from fairduel.service.events.database import DATABASE, read_events
from fairduel.service.events.lifecycle import Deleted
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study.study import NewStudy
from helpers.booth import about

ITEMS = [{"name": "a"}, {"name": "b"}]


def later(booth, seconds):
    booth.ledger._began += seconds
    booth.run(voting.sweep)


def test_a_study_opens_and_closes_at_its_times_once(booth):
    now = booth.ledger.now()
    study = booth.run(operating.create_study, about(opens=now + 100, closes=now + 200)).study
    found = booth.ledger.state.studies[study]
    assert (found.about.state, found.about.opens) == ("paused", now + 100)
    later(booth, 110)
    assert (found.about.state, found.about.opens) == ("open", None)
    later(booth, 100)
    assert (found.about.state, found.about.closes, found.stopped.reason) == ("closed", None, "time")
    booth.run(operating.change_study, study, {"state": "open"})
    later(booth, 1000)
    assert (found.about.state, found.stopped) == ("open", None)  # whoever opens it again means it
    position = booth.ledger.state.position
    booth.restart()
    assert booth.ledger.state.position == position
    assert booth.ledger.state.studies[study].about == found.about


@pytest.mark.parametrize("times", [{"opens": 5.0}, {"closes": 5.0}, {"opens": 4e9, "closes": 3e9}])
def test_times_that_cannot_be_kept_are_refused(booth, times):
    with pytest.raises(Problem, match="time to"):
        booth.run(operating.create_study, about(**times))
    with pytest.raises(Problem, match="time to"):
        booth.run(operating.change_study, booth.study, times)


def test_times_are_read_with_their_offset():
    study = NewStudy(question="?", items=ITEMS, closes="2030-05-31T18:00:00+02:00")
    assert study.closes == NewStudy(question="?", items=ITEMS, closes="2030-05-31T16:00:00Z").closes == 1906473600.0
    for wrong in ("2030-05-31T18:00:00", "tomorrow"):
        with pytest.raises(ValidationError, match=r"2030-05-31T18:00:00Z"):
            NewStudy(question="?", items=ITEMS, closes=wrong)


def test_a_study_stops_at_exactly_its_number_of_votes(booth):
    booth.run(operating.change_study, booth.study, {"stop_at_votes": 3})
    duels = [booth.ask(voter)[0]["duel"] for voter in range(4)]
    booth.answer(duels[0], "skip", voter=0)
    for voter in (1, 2):
        assert booth.answer(duels[voter], voter=voter)["counted"]
    (third,) = booth.ask(0)
    assert booth.answer(third["duel"], voter=0)["counted"]
    assert (booth.state.about.state, booth.state.stopped.reason, booth.state.counts["voted"]) == ("closed", "votes", 3)
    with pytest.raises(Problem, match="closed"):
        booth.answer(duels[3], voter=3)
    with pytest.raises(Problem, match="undone"):
        booth.undo(third["duel"])
    booth.restart()
    assert booth.state.stopped.reason == "votes"


def test_a_certain_verdict_is_recorded_once_and_can_stop_the_study(booth):
    booth.run(operating.change_study, booth.study, {"stop_when_decided": True})
    verdict = {"group": "", "state": "leads", "leader": "a", "headline": "a leads.", "votes": 9, "can_stop": False}
    before = booth.ledger.state.position
    booth.run(voting.stop_decided, booth.study, [verdict])
    assert booth.ledger.state.position == before  # not certain, as before
    won = verdict | {"state": "won", "headline": "a has won.", "can_stop": True}
    for _ in range(2):
        booth.run(voting.stop_decided, booth.study, [won])
    assert (booth.state.about.state, booth.state.stopped.reason) == ("closed", "verdict")
    assert booth.ledger.state.position == before + 2
    booth.run(voting.stop_decided, booth.study, [verdict])
    assert booth.ledger.state.position == before + 3  # no longer certain


def test_personal_data_are_erased_some_days_after_the_end(booth):
    booth.run(operating.change_study, booth.study, {"keep_personal_days": 2, "access": "link"} | {"state": "closed"})
    (voter,) = (each["voter"] for each in booth.run(operating.invite, booth.study, ["Ann"]))

    def names():
        return booth.run(lambda ledger: ledger.connection().execute(schema.personal.select()).all())

    later(booth, 86_400)
    assert [row.text for row in names() if row.voter == voter] == ["Ann"]
    later(booth, 2 * 86_400)
    assert names() == []
    position = booth.ledger.state.position
    later(booth, 10)
    assert booth.ledger.state.position == position  # once
    assert backup.check(booth.folder).problems == ()


@pytest.mark.usefixtures("often_saved")
def test_a_deleted_study_is_gone_from_disk_but_the_chain_holds(booth):
    other = booth.run(operating.create_study, about(title="stays")).study
    booth.run(operating.change_study, booth.study, {"title": "Confidential matter"})
    booth.run(operating.invite, booth.study, ["Ann Confidential"])
    booth.vote(60)
    head = booth.receipts()[-1]
    booth.ledger.close()
    service = Service(booth.folder)
    service.ledger.run(lambda ledger: operating.delete_study(ledger, booth.study))
    service.delete(booth.study).result()
    assert list(service.ledger.state.studies) == [other]
    valid = service.ledger.run(lambda ledger: operating.check_receipt(ledger, head))
    assert valid["valid"]  # it was in the log
    service.ledger.run(lambda ledger: operating.delete_study(ledger, booth.study))  # again: nothing
    service.close()
    content = b"".join(file.read_bytes() for file in booth.folder.rglob("*") if file.is_file())
    assert b"Confidential" not in content
    assert not list((booth.folder / "learners").glob(f"{booth.study}*"))
    assert backup.check(booth.folder).problems == ()
    booth.open()
    assert list(booth.ledger.state.studies) == [other]
    assert [receipt for receipt in booth.receipts() if receipt == head]


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(booth):
    booth.vote(10)
    booth.run(operating.delete_study, booth.study)
    booth.ledger.close()
    service = Service(booth.folder)
    service._refolds.submit(lambda: None).result()
    events = service.ledger.run(lambda ledger: list(read_events(ledger.connection(), study=booth.study)))
    service.close()
    assert {type(event.body) for event in events[:-1]} == {Deleted}


def test_events_that_are_gone_without_a_deletion_are_noticed(booth):
    booth.vote(10)

    def forge(ledger):
        operating.scrub(ledger, booth.study, ledger.state.position + 1)

    booth.run(forge)
    booth.ledger.close()
    assert re.search(
        "events of study .* are gone, but it was not deleted", " ".join(backup.check(booth.folder).problems)
    )
    assert (booth.folder / DATABASE).is_file()


def test_a_study_that_is_open_is_not_archived(booth):
    booth.run(operating.change_study, booth.study, {"archived": True})
    assert (booth.state.about.state, booth.state.about.archived) == ("closed", True)
    copy = booth.run(imports.clone_study, booth.study, None, votes=False)[0]
    assert (copy.about.state, copy.about.archived) == ("open", False)
    booth.run(operating.change_study, booth.study, {"state": "open"})
    assert (booth.state.about.state, booth.state.about.archived) == ("open", False)
