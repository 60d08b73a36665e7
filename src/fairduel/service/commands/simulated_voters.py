"""A study with simulated voters, a fifth of whom lie."""

import random
import threading

from fairduel.core.links import LOGISTIC
from fairduel.service.commands import operating, voting
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study.study import GoldDuels, Item, KnownAnswer, NewStudy
from fairduel.votes.attacking.liars import Liar, happens

_ITEMS = ("Maple", "Birch", "Oak", "Ash", "Elm", "Pine", "Larch", "Rowan")  # from worst to best
_LIAR = Liar("promote", item=0)
_PRESENT = 10  # voters at a time
_EVERY = 5  # one in this many lies
_VOTES_EACH = 20
_STEP = 1.2  # log-odds between neighbours
_PAUSE = 0.2  # seconds between two votes


class Demo:
    """Simulated people who join, vote and leave: honest ones by taste and chance, liars for the worst item."""

    def __init__(self, service: Service, seed: int = 0) -> None:
        self._service, self._rng = service, random.Random(seed)  # noqa: S311  # no secret
        about = NewStudy(
            title="Demo: simulated voters, a fifth of whom lie",
            question="Which tree is nicer?",
            items=[Item(name=name) for name in sorted(_ITEMS)],
            access="invitation",
            votes_per_voter=_VOTES_EACH,
            show_names=True,
            gold=GoldDuels(
                answers=[KnownAnswer(winner=name, loser=_ITEMS[0]) for name in _ITEMS[2:]], first=2, every=2
            ),
            undo_seconds=0,
        )
        self.study = service.ledger.run(lambda ledger: operating.create_study(ledger, about)).study
        self._joined = 0
        self._present = [self._newcomer() for _ in range(_PRESENT)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fairduel-demo", daemon=True)
        self._thread.start()
        service.at_end(self.close)

    def close(self) -> None:
        """Stop voting."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stop.wait(_PAUSE):
            try:
                self.vote()
            except Problem:
                continue  # the study is paused, or the disk is full

    def vote(self) -> None:
        """Let a random person vote once, or be replaced by a newcomer."""
        place = self._rng.randrange(_PRESENT)
        holder, is_liar = self._present[place]
        run = self._service.ledger.run
        duels = run(lambda ledger: voting.ask(ledger, holder, 1))["duels"]
        if not duels:
            self._present[place] = self._newcomer()
            return
        left, right = (_ITEMS.index(duels[0][side]["name"]) for side in ("left", "right"))
        worse, better = sorted((left, right))
        chance = float(LOGISTIC.probability(_STEP * (better - worse)))
        if is_liar:
            chance = float(_LIAR.chance(better, worse, chance))
        answer = "left" if (left == better) == happens(chance, self._rng.random) else "right"
        key = str(self._rng.getrandbits(64))
        run(lambda ledger: voting.answer(ledger, holder, voting.Given(duels[0]["duel"], key, answer)))

    def _newcomer(self) -> tuple[Holder, bool]:
        """Invite the next voter; return them and whether they lie."""
        self._joined += 1
        is_liar = self._joined % _EVERY == 0
        names: list[str | None] = [f"{'liar' if is_liar else 'honest'} {self._joined}"]
        (invited,) = self._service.ledger.run(lambda ledger: operating.invite(ledger, self.study, names))
        return Holder("voter", self.study, invited["voter"]), is_liar
