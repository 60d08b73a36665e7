"""A study with simulated voters, a fifth of whom lie."""

import random
import threading

from fairduel.core.links import LOGISTIC
from fairduel.service import commands, voting
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study import GoldDuels, Item, KnownAnswer, NewStudy

_ITEMS = ("Maple", "Birch", "Oak", "Ash", "Elm", "Pine", "Larch", "Rowan")  # from worst to best
_PRESENT = 10  # voters at a time
_EVERY = 5  # one in so many lies
_VOTES_EACH = 20
_STEP = 1.2  # log-odds between neighbours
_PAUSE = 0.2  # seconds between two votes


class Demo:
    """Simulated people who come, vote and go: honest ones by taste and chance, liars for the worst item.

    Args:
        service: Where they vote, in a new study.
        seed: Seed of what they say.
    """

    def __init__(self, service: Service, seed: int = 0) -> None:
        self._service, self._rng = service, random.Random(seed)  # noqa: S311  # no secret
        about = NewStudy(
            title="Demo: simulated voters, a fifth of whom lie",
            question="Which tree is nicer?",
            items=[Item(name=name) for name in sorted(_ITEMS)],
            access="invitation",
            votes_per_voter=_VOTES_EACH,
            show_names=True,
            gold=GoldDuels(answers=[KnownAnswer(winner=name, loser=_ITEMS[0]) for name in _ITEMS[-4:]], every=5),
            undo_seconds=0,
        )
        self.study = service.ledger.run(lambda ledger: commands.create_study(ledger, about)).study
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
        is_false = is_liar and 0 in (left, right)
        says_better = not is_false and self._rng.random() < LOGISTIC.probability(_STEP * abs(left - right))
        answer = "left" if (left > right) == says_better else "right"
        key = str(self._rng.getrandbits(64))
        run(lambda ledger: voting.answer(ledger, holder, duels[0]["duel"], key, answer, None, None))

    def _newcomer(self) -> tuple[Holder, bool]:
        """Invite the next voter; return them and whether they lie."""
        self._joined += 1
        is_liar = self._joined % _EVERY == 0
        names: list[str | None] = [f"{'liar' if is_liar else 'honest'} {self._joined}"]
        (invited,) = self._service.ledger.run(lambda ledger: commands.invite(ledger, self.study, names))
        return Holder("voter", self.study, invited["voter"]), is_liar
