"""A study with simulated voters, a fifth of whom lie."""

import random
import threading

from fairduel.core.links import LOGISTIC
from fairduel.service import commands, voting
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study import Item, NewStudy

_ITEMS = ("Maple", "Birch", "Oak", "Ash", "Elm", "Pine", "Larch", "Rowan")  # from worst to best
_VOTERS, _LIARS = 20, 4
_STEP = 0.8  # log-odds between neighbours
_PAUSE = 0.2  # seconds between two votes


class Demo:
    """Simulated people who vote until they are stopped: honest ones by taste and chance, liars for the worse item.

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
            repeat_pairs=True,
            show_names=True,
            undo_seconds=0,
        )
        self.study = service.ledger.run(lambda ledger: commands.create_study(ledger, about)).study
        names: list[str | None] = [f"liar {n + 1}" if n < _LIARS else f"honest {n + 1}" for n in range(_VOTERS)]
        invited = service.ledger.run(lambda ledger: commands.invite(ledger, self.study, names))
        self._voters = [Holder("voter", self.study, each["voter"]) for each in invited]
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
        """Let a random person vote once."""
        place = self._rng.randrange(_VOTERS)
        holder = self._voters[place]
        duels = self._service.ledger.run(lambda ledger: voting.ask(ledger, holder, 1))["duels"]
        for duel in duels:
            left, right = (_ITEMS.index(duel[side]["name"]) for side in ("left", "right"))
            says_better = place >= _LIARS and self._rng.random() < LOGISTIC.probability(_STEP * abs(left - right))
            answer = "left" if (left > right) == says_better else "right"
            key = str(self._rng.getrandbits(64))
            self._service.ledger.run(
                lambda ledger, duel=duel, answer=answer, key=key: voting.answer(  # type: ignore[misc]
                    ledger, holder, duel["duel"], key, answer, None, None
                )
            )
