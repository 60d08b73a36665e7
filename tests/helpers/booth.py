"""Ledgers with a study and voters, without HTTP."""

import copy
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from fairduel.errors import BadInputError
from fairduel.service.cluster.postgres import PostgresStore
from fairduel.service.commands import operating, voting
from fairduel.service.events.database import VoteStore, read_events
from fairduel.service.events.ledger import Ledger
from fairduel.service.keys import Holder
from fairduel.service.study.study import NewStudy


def about(items=5, **settings):
    return NewStudy(question="Which?", items=[{"name": f"item {n}"} for n in range(items)], **settings)


def open_ledger(where, clock=time.time):
    """Open the ledger of a folder or a database; PostgreSQL needs a moment to notice that its last leader has ended."""
    give_up = time.monotonic() + 5.0
    while not isinstance(where, Path | VoteStore):
        try:
            where = PostgresStore.alone(where)
        except BadInputError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)
    return Ledger(where, sweep=voting.sweep, clock=clock)


@dataclass
class Booth:
    """A ledger, one study and its voters; ``folder`` may be the address of a database."""

    folder: object
    clock: object
    settings: dict
    ledger: Ledger = None
    study: str = ""
    voters: list = field(default_factory=list)

    def __post_init__(self):
        self.open()
        self.study = self.run(operating.create_study, about(**self.settings)).study
        self.join(4)

    def open(self):
        self.ledger = open_ledger(self.folder, self.clock)

    def run(self, command, *arguments, **named):
        return self.ledger.run(lambda ledger: command(ledger, *arguments, **named))

    def join(self, count):
        for _ in range(count):
            self.voters.append(Holder("voter", self.study, self.run(voting.join, self.study, voting.Newcomer())[0]))

    def ask(self, voter=0, count=1):
        return self.run(voting.ask, self.voters[voter], count)["duels"]

    def answer(self, duel, given="left", voter=0, key="key"):
        return self.run(voting.answer, self.voters[voter], voting.Given(duel, key, given))

    def undo(self, duel, voter=0):
        return self.run(voting.undo, self.voters[voter], duel)

    def vote(self, count, seed=0):
        """Let voters vote, skip and undo at random; what they say does not depend on the sides."""
        rng = random.Random(seed)
        for _ in range(count):
            voter = rng.randrange(len(self.voters))
            for duel in self.ask(voter):
                given = rng.choice(["lower", "higher", "tie", "skip"])
                if given in ("lower", "higher"):
                    is_left = (duel["left"]["text"] < duel["right"]["text"]) == (given == "lower")
                    given = "left" if is_left else "right"
                self.answer(duel["duel"], given, voter)
                if rng.random() < 0.1 and self.state.about.undo_seconds:
                    self.undo(duel["duel"], voter)

    def crowd(self, votes, seed=0):
        """Let voters vote at random, many votes per commit."""
        rng = random.Random(seed)

        def some(ledger, count):
            for _ in range(count):
                holder = rng.choice(self.voters)
                duel = voting.ask(ledger, holder, 1)["duels"][0]["duel"]
                voting.answer(ledger, holder, voting.Given(duel, "key", rng.choice(["left", "right", "tie"])))

        for done in range(0, votes, 1000):
            self.run(some, min(1000, votes - done))

    def receipts(self):
        return [event.receipt for event in self.run(lambda ledger: list(read_events(ledger.connection())))]

    def at(self, folder):
        """Return a booth whose store is a copy of this one's."""
        other = copy.copy(self)
        other.folder = folder
        other.open()
        return other

    @property
    def state(self):
        return self.ledger.state.studies[self.study]

    def restart(self):
        self.ledger.close()
        self.open()


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now
