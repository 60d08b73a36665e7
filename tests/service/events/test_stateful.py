"""Random operations, restarts and failing commits against a model that knows only what was acknowledged."""

import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from fairduel.service.commands import operating, voting
from fairduel.service.events import backup
from fairduel.service.events.database import database
from fairduel.service.events.ledger import Ledger
from fairduel.service.problems import Problem
from helpers.booth import Booth, Clock
from helpers.clusters import new_database
from helpers.torture import torture

VOTERS = st.integers(0, 3)
GIVEN = st.sampled_from(["left", "right", "tie", "skip"])


class Voting(RuleBasedStateMachine):
    """What became of each duel, as its voter was told."""

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        known = [{"winner": "item 3", "loser": "item 0"}, {"winner": "item 1", "loser": "item 2"}]
        about = {"items": 4, "repeat_pairs": True, "duel_seconds": 100, "least_views": 2}
        self.booth = Booth(self.new_location(), Clock(), about | {"gold": {"answers": known, "first": 2, "every": 2}})
        self.duels = {}  # id → [voter, status, answer, key]
        self.last = dict.fromkeys(range(4))
        self.keys = 0

    def new_location(self):
        return self.root / "store"

    def teardown(self):
        self.booth.ledger.close()
        assert backup.check(self.booth.folder).problems == ()
        assert all(not each.problem for each in backup.replay(self.booth.folder))
        shutil.rmtree(self.root)

    def open_of(self, voter):
        return [duel for duel, (who, status, *_) in self.duels.items() if who == voter and status == "open"]

    def key(self):
        self.keys += 1
        return f"key{self.keys}"

    @rule(voter=VOTERS, count=st.integers(1, 3))
    def ask(self, voter, count):
        duels = [duel["duel"] for duel in self.booth.ask(voter, count)]
        before = self.open_of(voter)
        assert duels[: len(before)] == before
        assert len(duels) == max(count, len(before))
        for duel in duels[len(before) :]:
            assert duel not in self.duels
            self.duels[duel] = [voter, "open", None, None]

    @rule(voter=VOTERS, given=GIVEN, place=st.integers(0, 2))
    def answer(self, voter, given, place):
        for duel in self.open_of(voter)[place : place + 1]:
            key = self.key()
            assert self.booth.answer(duel, given, voter, key)["counted"]
            self.duels[duel][1:] = ["skipped" if given == "skip" else "voted", given, key]
            self.last[voter] = duel

    @rule(voter=VOTERS, given=GIVEN, place=st.integers(0, 20), same_key=st.booleans())
    def answer_again(self, voter, given, place, same_key):
        answered = [d for d, (who, _, answer, _) in self.duels.items() if who == voter and answer is not None]
        for duel in answered[place : place + 1]:
            _, _, before, key = self.duels[duel]
            try:
                reply = self.booth.answer(duel, given, voter, key if same_key else self.key())
                assert same_key
                assert given == before == reply["answer"]
            except Problem as problem:
                assert problem.code == ("key-reused" if same_key else "already-answered")  # noqa: PT017
                assert given != before or not same_key

    @rule(voter=VOTERS)
    def undo(self, voter):
        duel = self.last[voter]
        if duel is not None:
            again = self.booth.undo(duel, voter)["duel"]["duel"]
            self.duels[duel][1] = "undone"
            self.duels[again] = [voter, "open", None, None]
            self.last[voter] = None

    @rule(seconds=st.sampled_from([30, 61, 101]))
    def wait(self, seconds):
        self.booth.ledger._began += seconds
        self.booth.run(voting.sweep)
        state = self.booth.state
        for duel, entry in self.duels.items():
            if entry[1] == "open" and duel not in state.voters[self.booth.voters[entry[0]].voter].open:
                assert seconds == 101 or self.waited + seconds > 100
                entry[1] = "expired"
        for place in self.last:
            if state.voters[self.booth.voters[place].voter].last is None:
                self.last[place] = None
        self.waited += seconds

    waited = 0

    @rule(voter=VOTERS, set_aside=st.booleans())
    def set_aside(self, voter, set_aside):
        self.booth.run(operating.set_voter_aside, self.booth.study, self.booth.voters[voter].voter, set_aside=set_aside)

    @rule()
    def restart(self):
        began = self.booth.ledger._began
        self.booth.restart()
        self.booth.ledger._began = began

    @precondition(lambda self: any(self.open_of(voter) for voter in range(4)))
    @rule(given=GIVEN)
    def crash_while_answering(self, given):
        """The events are written but not committed; then the process ends."""
        voter = next(voter for voter in range(4) if self.open_of(voter))
        commit = Ledger._commit

        def crash(ledger):
            ledger._flush()
            raise sqlite3.OperationalError("disk I/O error")

        Ledger._commit = crash
        try:
            with suppress(Problem):
                self.booth.answer(self.open_of(voter)[0], given, voter, self.key())
                raise AssertionError("a vote was acknowledged that is not on disk")
        finally:
            Ledger._commit = commit
        self.restart()

    @invariant()
    def everything_acknowledged_is_there(self):
        counts = self.booth.state.counts
        for status in ("open", "voted", "skipped", "undone", "expired"):
            assert counts[status] == sum(entry[1] == status for entry in self.duels.values()), status


@torture(15, "random operations, restarts and crashes against a model", small=8, full=150, unit="runs of 25 steps")
def test_random_operations_and_crashes(trial):
    """Generated ones, which hypothesis shortens if they fail."""
    run_state_machine_as_test(
        Voting, settings=settings(max_examples=trial.size, stateful_step_count=25, deadline=None, derandomize=True)
    )
    trial.found = "the service always agrees with the model"


def test_voting_in_postgres(postgres):
    class InPostgres(Voting):
        def new_location(self):
            return database(new_database(postgres))

    few = settings(max_examples=3, stateful_step_count=25, deadline=None, derandomize=True)
    run_state_machine_as_test(InPostgres, settings=few)
