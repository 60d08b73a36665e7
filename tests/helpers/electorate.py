"""Simulated people who vote in a service, a fifth of whom always prefer the worse item."""

import random

from fairduel.core.links import LOGISTIC
from fairduel.service.commands import operating, voting
from fairduel.service.keys import Holder
from fairduel.service.study.study import NewStudy
from fairduel.votes.attacking.liars import Liar, happens

ITEMS = ("Maple", "Birch", "Oak", "Ash", "Elm", "Pine", "Larch", "Rowan")  # from worst to best
VOTERS, LIARS = 20, 4
STEP = 0.8  # log-odds between neighbours


class Electorate:
    """Voters of a new study, who see pairs again and cannot undo."""

    def __init__(self, service, seed=0):
        self.service, self.rng = service, random.Random(seed)
        about = NewStudy(
            question="Which tree is nicer?",
            items=[{"name": name} for name in sorted(ITEMS)],
            access="invitation",
            repeat_pairs=True,
            show_names=True,
            undo_seconds=0,
        )
        self.study = service.ledger.run(lambda ledger: operating.create_study(ledger, about)).study
        names = [f"liar {n + 1}" if n < LIARS else f"honest {n + 1}" for n in range(VOTERS)]
        invited = service.ledger.run(lambda ledger: operating.invite(ledger, self.study, names))
        self.voters = [Holder("voter", self.study, each["voter"]) for each in invited]

    def vote(self):
        """Let a random person vote once."""
        place = self.rng.randrange(VOTERS)
        holder, run = self.voters[place], self.service.ledger.run
        (duel,) = run(lambda ledger: voting.ask(ledger, holder, 1))["duels"]
        left, right = (ITEMS.index(duel[side]["name"]) for side in ("left", "right"))
        worse, better = sorted((left, right))
        chance = LOGISTIC.probability(STEP * (better - worse))
        if place < LIARS:
            chance = float(Liar("contrarians").chance(better, worse, chance))
        says_left = (left == better) == happens(chance, self.rng.random)
        answer, key = "left" if says_left else "right", str(self.rng.getrandbits(64))
        run(lambda ledger: voting.answer(ledger, holder, voting.Given(duel["duel"], key, answer)))
