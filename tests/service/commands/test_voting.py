"""The promises to voters: every answer is kept, a duel counts at most once, and late answers do not count."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from fairduel.service.commands import operating, voting
from fairduel.service.events import backup, schema
from fairduel.service.events.database import read_events
from fairduel.service.events.kinds import Answered, Expired, Refused, Settled
from fairduel.service.keys import first_is_left
from fairduel.service.problems import Problem
from helpers.clusters import in_both
from helpers.torture import torture


def kinds(booth):
    return [type(e.body) for e in booth.run(lambda ledger: list(read_events(ledger.connection(), study=booth.study)))]


def totals(booth):
    counts = booth.state.counts
    issued = booth.run(
        lambda ledger: ledger.connection().execute(select(func.count()).select_from(schema.duels)).scalar()
    )
    return issued, sum(counts[status] for status in ("open", "voted", "skipped", "expired", "undone"))


@in_both
def test_the_same_answer_a_hundred_times_at_once_counts_once(booth):
    duel = booth.ask()[0]["duel"]
    with ThreadPoolExecutor(32) as pool:
        replies = list(pool.map(lambda _: booth.answer(duel), range(100)))
    assert all(reply == replies[0] for reply in replies)
    assert replies[0]["counted"]
    assert kinds(booth).count(Answered) == 1
    assert booth.state.counts["voted"] == 1


@in_both
def test_a_key_cannot_be_used_for_another_answer(booth):
    duel = booth.ask()[0]["duel"]
    booth.answer(duel, "left")
    with pytest.raises(Problem, match="another answer") as refused:
        booth.answer(duel, "right")
    assert (refused.value.status, refused.value.code) == (422, "key-reused")
    assert kinds(booth).count(Refused) == 0


@in_both
def test_a_second_answer_is_kept_but_does_not_count(booth):
    duel = booth.ask()[0]["duel"]
    booth.answer(duel, "left")
    for _ in range(2):  # the refusal is repeatable too
        with pytest.raises(Problem) as refused:
            booth.answer(duel, "right", key="other")
        assert (refused.value.status, refused.value.code) == (409, "already-answered")
    assert kinds(booth).count(Refused) == 1
    assert booth.state.counts["voted"] == 1


def test_refused_answers_do_not_fill_the_disk(booth):
    duel = booth.ask()[0]["duel"]
    booth.answer(duel)
    for number in range(30):
        with pytest.raises(Problem):
            booth.answer(duel, key=f"other{number}")
    assert kinds(booth).count(Refused) == 10


@in_both
@pytest.mark.parametrize("is_swept", [False, True])
def test_a_late_answer_is_kept_but_not_learned(new_booth, is_swept):
    booth = new_booth(duel_seconds=10, undo_seconds=0)
    duel = booth.ask()[0]["duel"]
    booth.ledger._began += 11
    if is_swept:
        booth.run(voting.sweep)
    reply = booth.answer(duel)
    assert (reply["counted"], reply["reason"]) == (False, "late")
    assert booth.answer(duel) == reply
    assert kinds(booth)[-2:] == [Expired, Refused]
    assert booth.state.learner.agent.belief.estimator.outcomes == 0
    assert booth.state.learner.waiting == 0
    assert booth.state.counts["expired"] == 1
    assert totals(booth) == (1, 1)


@in_both
@torture(10, "votes later than their deadline", small=80, full=4000, unit="duels")
def test_late_votes_are_kept_and_every_duel_is_accounted_for(trial, new_booth):
    booth, rng, late = new_booth(duel_seconds=10, undo_seconds=5), random.Random(0), 0
    for number in range(trial.size):
        voter = rng.randrange(4)
        duel = booth.ask(voter, rng.randint(1, 3))[0]
        booth.ledger._began += rng.choice([0, 0, 2, 11])
        if rng.random() < 0.3:
            booth.run(voting.sweep)
        if rng.random() < 0.9:
            is_late = booth.ledger.now() >= duel["deadline"]
            reply = booth.answer(duel["duel"], rng.choice(["left", "tie", "skip"]), voter, str(number))
            assert reply["counted"] is not is_late
            late += is_late
            if rng.random() < 0.1 and not is_late:
                booth.undo(duel["duel"], voter)
        if number % 50 == 0:
            assert totals(booth)[0] == totals(booth)[1]
    booth.ledger._began += 11
    booth.run(voting.sweep)
    assert totals(booth)[0] == totals(booth)[1] >= trial.size // 2
    counts = booth.state.counts
    assert counts["open"] == 0
    assert late > trial.size // 10
    assert kinds(booth).count(Refused) == late
    assert booth.state.learner.agent.belief.estimator.outcomes == counts["voted"]
    assert backup.check(booth.folder).problems == ()
    trial.found = (
        f"{late:,} late answers kept, none learned; {totals(booth)[0]:,} duels issued = {counts['voted']:,} voted "
        f"+ {counts['skipped']:,} skipped + {counts['expired']:,} expired + {counts['undone']:,} undone + 0 open"
    )


@in_both
def test_an_undone_vote_is_kept_but_not_learned(booth):
    before = booth.state.learner.agent.information.matrix.copy()
    first = booth.ask()[0]
    booth.answer(first["duel"], "left")
    undone = booth.undo(first["duel"])
    again = undone["duel"]
    assert undone["progress"]["votes"] == 0
    assert (again["left"], again["right"]) == (first["left"], first["right"])
    assert booth.undo(first["duel"])["duel"]["duel"] == again["duel"]  # safe to repeat
    booth.answer(again["duel"], "right")
    booth.ask()
    booth.answer(booth.ask()[0]["duel"], "tie")  # so that the one before is learned
    agent = booth.state.learner.agent
    assert agent.belief.estimator.outcomes == 1
    assert (agent.information.matrix != before).any()
    assert kinds(booth).count(Answered) == 3
    assert booth.state.counts["undone"] == 1


def test_only_the_last_answer_can_be_undone_and_only_for_a_while(booth):
    first, second = (duel["duel"] for duel in booth.ask(count=2))
    booth.answer(first)
    booth.answer(second)
    with pytest.raises(Problem) as refused:
        booth.undo(first)
    assert refused.value.code == "cannot-undo"
    booth.ledger._began += 61
    with pytest.raises(Problem):
        booth.undo(second)
    booth.run(voting.sweep)
    assert kinds(booth)[-1] == Settled
    assert booth.state.learner.agent.belief.estimator.outcomes == 2


def test_asking_again_returns_the_same_duels(booth):
    one = booth.ask(count=2)
    assert booth.ask(count=2) == one
    assert booth.ask(count=3)[:2] == one


def test_nobody_sees_a_pair_twice_or_an_item_against_itself(new_booth):
    booth = new_booth(items=5, repeat_pairs=False)
    seen = []
    while duels := booth.ask():
        seen.append(frozenset(duels[0][side]["text"] for side in ("left", "right")))
        booth.answer(duels[0]["duel"], "tie" if len(seen) % 2 else "skip")
        if len(seen) == 5:
            shown = list(booth.state.shown)
            booth.restart()
            assert booth.state.shown == shown
    assert len(seen) == len(set(seen)) == 10
    assert all(len(pair) == 2 for pair in seen)
    assert booth.run(voting.ask, booth.voters[0], 1)["progress"]["done"]


def test_voters_at_the_same_time_get_different_duels(new_booth):
    booth = new_booth(items=6)
    pairs = [frozenset(booth.ask(v)[0][side]["text"] for side in ("left", "right")) for v in range(4)]
    assert len(set(pairs)) > 1


def test_the_sides_are_balanced_and_recorded(new_booth):
    booth = new_booth(items=4, undo_seconds=0)
    left = 0
    for number in range(100):
        duel = booth.ask(number % 4)[0]
        kept = booth.state.voters[booth.voters[number % 4].voter].open[duel["duel"]]
        shown = kept.first if kept.first_is_left else kept.second
        assert duel["left"]["text"] == f"item {shown}"
        left += kept.first_is_left
        booth.answer(duel["duel"], "tie", number % 4)
    assert 25 <= left <= 75  # 5 standard deviations


def test_a_study_ends_after_its_votes_and_gives_the_code(new_booth):
    booth = new_booth(votes_per_voter=2, completion_code="C0DE")
    for expected in (False, True):
        duel = booth.ask(count=3)[0]["duel"]
        reply = booth.answer(duel)
        assert reply["progress"]["done"] is expected
    assert reply["progress"]["completion_code"] == "C0DE"
    assert booth.ask() == []


def test_a_paused_study_issues_nothing_and_a_closed_one_takes_nothing(booth):
    duels = booth.ask(count=2)
    booth.run(operating.change_study, booth.study, {"state": "paused"})
    assert booth.ask(1) == []
    with pytest.raises(Problem, match="paused") as refused:
        booth.answer(duels[0]["duel"])
    assert (refused.value.status, refused.value.code) == (409, "not-open")
    booth.run(operating.change_study, booth.study, {"state": "open"})
    assert booth.answer(duels[0]["duel"])["counted"]
    booth.run(operating.change_study, booth.study, {"state": "closed"})
    with pytest.raises(Problem, match="closed"):
        booth.answer(duels[1]["duel"])
    assert booth.answer(duels[0]["duel"])["counted"]  # a repeated request gets the same reply, also afterwards
    assert booth.state.counts["voted"] == 1


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_nothing_is_undone_while_a_study_is_not_open(booth, state):
    duel = booth.ask()[0]["duel"]
    booth.answer(duel)
    booth.run(operating.change_study, booth.study, {"state": state})
    with pytest.raises(Problem) as refused:
        booth.undo(duel)
    assert (refused.value.status, refused.value.code) == (409, "cannot-undo")
    assert (booth.state.counts["voted"], booth.state.counts["undone"]) == (1, 0)


def test_each_item_is_on_the_left_in_half_of_its_duels(new_booth):
    """The standard deviations of 3,000 hashes and of 600 duels are 0.9% and 2%."""
    hashes = [first_is_left(b"secret", f"voter {n % 7}", f"duel {n}") for n in range(3000)]
    assert abs(sum(hashes) / len(hashes) - 0.5) < 0.04
    booth = new_booth(undo_seconds=0)
    booth.crowd(600)
    with booth.ledger.store.engine.connect() as connection:
        shown = connection.execute(select(schema.duels.c.first_is_left)).scalars().all()
    assert abs(sum(shown) / len(shown) - 0.5) < 0.09


def test_a_disabled_item_is_not_shown_and_contexts_show_their_answers(new_booth):
    contexts = [
        {
            "name": f"prompt {n}",
            "text": "Say it",
            "contents": {f"item {k}": f"answer {k} to {n}" for k in range(n, n + 3)},
        }
        for n in range(2)
    ]
    booth = new_booth(items=4, contexts=contexts, undo_seconds=0)
    booth.run(operating.change_item, booth.study, 1, {"enabled": False})
    seen = set()
    for number in range(12):
        duel = booth.ask(number % 4)[0]
        place = int(duel["context"]["name"][-1])
        texts = {duel[side]["text"] for side in ("left", "right")}
        assert all(text.endswith(f"to {place}") for text in texts)
        assert not any(text.startswith("answer 1 ") for text in texts)
        seen.add(place)
        booth.answer(duel["duel"], "left", number % 4)
    assert seen == {0, 1}


def test_another_voters_duel_does_not_exist(booth):
    duel = booth.ask(0)[0]["duel"]
    for attempt in (booth.answer, booth.undo):
        with pytest.raises(Problem) as refused:
            attempt(duel, voter=1)
        assert refused.value.status == 404


def test_personal_data_can_be_erased_and_the_log_still_verifies(new_booth):
    booth = new_booth(comments=True)
    invited = booth.run(operating.invite, booth.study, ["Ada Lovelace"])[0]
    holder = booth.voters[0].__class__("voter", booth.study, invited["voter"])
    duel = booth.run(voting.ask, holder, 1)["duels"][0]["duel"]
    booth.run(voting.answer, holder, voting.Given(duel, "key", "left", comment="my secret comment"))
    booth.ledger.close()
    path = booth.folder / "fairduel.db"
    assert backup.check(booth.folder).problems == ()
    booth.open()
    booth.run(operating.erase_personal, booth.study, invited["voter"])
    booth.ledger.close()
    found = backup.check(booth.folder)
    assert found.problems == ()
    assert found.votes == 1
    files = [path, *booth.folder.glob("fairduel.db-*")]
    assert not any(word in file.read_bytes() for file in files for word in (b"Ada Lovelace", b"secret comment"))
    booth.open()


@in_both
def test_a_receipt_proves_that_a_vote_is_in_the_log(booth):
    receipt = booth.answer(booth.ask()[0]["duel"])["receipt"]
    assert booth.run(operating.check_receipt, receipt)["valid"]
    position, _, digest = receipt.partition("-")
    for wrong in (f"{position}-{'0' * 64}", f"{int(position) + 1}-{digest}", "", "x", "9" * 30 + "-" + digest):
        assert not booth.run(operating.check_receipt, wrong)["valid"]
    booth.ledger.close()
    assert backup.find_receipt(booth.folder, receipt).body.answer == "left"
    assert backup.find_receipt(booth.folder, f"{position}-{'0' * 64}") is None
    booth.open()
