"""The learner: an agent that chooses duels, as a fold of the log.

The agent asks, is told or cancels in the order of the log and at no other time, so folding the log again asks the same
duels and learns the same state, bit for bit. Saving an agent affects the rounding of what follows, so it is part of the
fold too: once every ``SAVE_EVERY`` events.

If voters are set aside, or another machine rounds differently, the learner is *refolded*: a new agent gets the recorded
pairs instead of choosing its own, without those of the voters set aside, and weighs them itself. The log records where
this happened; from there on the agent chooses again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from fairduel.agents import Agent
from fairduel.agents.old_formats import FORMAT
from fairduel.agents.state_file import read_state, unpack_state, write_state
from fairduel.duel import Duel, Matrix, Outcome
from fairduel.errors import BadInputError, FairduelError
from fairduel.service.gold import Compared, compared, is_doubtful, known_answers
from fairduel.service.log import Body, Event, Kind
from fairduel.service.study import NewStudy, features_of, new_agent

SAVE_EVERY = 1000
"""Events of a study between two saves of its learner."""
_MOST_KEPT = 4_000_000  # numbers in tables of actions


class DivergedError(FairduelError):
    """Folding the log again led to other duels than those recorded."""


class Proposal(NamedTuple):
    """A duel that the agent asked and that is not in the log yet."""

    context: int | None
    first: int
    second: int
    weight: float
    declined: bool
    """Whether another pair took the place of the agent's choice: the voter had seen it, or it lacked an item."""
    given: bool = False
    """Whether the pair was given to the agent instead of chosen by it."""


class _Asked(NamedTuple):
    duel: Duel
    first: int
    """The item that is first in the agent's duel."""


class Held(NamedTuple):
    """A voter's last answer, which can still be undone."""

    duel: str
    winner: int | None
    is_vote: bool


class Learner:
    """The agent of one study and what it waits for."""

    def __init__(self, study: NewStudy) -> None:
        count = len(study.items)
        self.agent: Agent[Any, Any] = new_agent(study.agent, study.agent_settings, count, study.seed, study.dimension)
        self.position = 0
        self.folded = 0
        self.saved: dict[str, Any] | None = None
        """The state to write to disk once the events it rests on are there."""
        self._digest = b""
        self._undo_seconds = 0
        self._enabled = [True] * count
        self._shown = [0] * max(1, len(study.contexts))
        self._set_aside: set[str] = set()
        self._asked: dict[str, _Asked] = {}
        self._held: dict[str, Held] = {}
        self._known: dict[Compared, int] = {}
        self._tests: dict[str, Compared] = {}  # gold duels that are open, or their answers not settled
        self._tested: dict[str, dict[Compared, int]] = {}  # answers to gold duels, by voter
        self._proposed: Duel | None = None
        place = {item.name: number for number, item in enumerate(study.items)}
        self._candidates = [sorted(place[name] for name in context.contents) for context in study.contexts]
        self._has_contexts = bool(study.contexts)
        self._features = features_of(study)
        self._tables: dict[tuple[int, ...], Matrix] = {}

    # ------------------------------------------------------------------ choosing

    def propose(self, seen: Collection[Compared], shown: list[int], lead: int | None = None) -> Proposal | None:
        """Ask the agent for a duel that is not among those ``seen``; None if all are.

        The next event to be folded must record it.

        Args:
            seen: What the voter has compared.
            shown: How often each item was shown, shape (K,); if the agent's choice was seen, the least shown items that
                the voter has not compared replace it.
            lead: An item to show, if the voter has not compared it with both of the agent's choice.
        """
        for context in self._contexts():
            rows = self._rows(context)
            other = _unseen(context, sorted(rows, key=shown.__getitem__), seen)
            if other is not None:
                return self._ask(context, rows, other, seen, lead)
        return None

    def propose_short(
        self, seen: Collection[Compared], shown: list[int], missing: Mapping[int, int]
    ) -> Proposal | None:
        """Ask about the items that were shown least compared with what they need; None if that is not possible.

        Args:
            seen: What the voter has compared.
            shown: How often each item was shown, shape (K,).
            missing: How many more views items need, by item.
        """
        for context in self._contexts():
            rows = sorted(self._rows(context), key=lambda item: (-missing.get(item, 0), shown[item]))
            pair = _unseen(context, rows, seen)
            if pair is not None and pair[0] in missing:
                return self.propose_given(context, *pair)
        return None

    def random_pair(self, seen: Collection[Compared], seed: int) -> Compared | None:
        """Return a context and two items at random without asking the agent; None if the voter has seen all."""
        rng = np.random.default_rng(seed)
        places = rng.permutation(len(self._shown)).tolist()
        for context in places if self._has_contexts else [None]:
            pair = _unseen(context, rng.permutation(self._rows(context)).tolist(), seen)
            if pair is not None:
                return compared(context, *pair)
        return None

    def propose_given(self, context: int | None, one: int, other: int) -> Proposal:
        """Ask the agent about two items that someone else chose; the next event to be folded must record it."""
        rows = sorted((one, other))
        self._proposed = duel = self._ask_among(context, rows)
        return Proposal(context, rows[duel.first], rows[duel.second], duel.weight, declined=False, given=True)

    def is_exhausted(self, seen: Collection[Compared]) -> bool:
        """Whether a voter has compared everything that can be compared."""
        places = range(len(self._shown)) if self._has_contexts else (None,)
        return all(
            compared(context, *pair) in seen for context in places for pair in combinations(self._rows(context), 2)
        )

    def _contexts(self) -> list[int] | list[None]:
        """Return the contexts, the least asked first."""
        return sorted(range(len(self._shown)), key=self._shown.__getitem__) if self._has_contexts else [None]

    def _rows(self, context: int | None) -> list[int]:
        candidates = range(len(self._enabled)) if context is None else self._candidates[context]
        return [item for item in candidates if self._enabled[item]]

    def _ask(
        self,
        context: int | None,
        rows: list[int],
        other: tuple[int, int],
        seen: Collection[Compared],
        lead: int | None,
    ) -> Proposal:
        duel = self._ask_among(context, rows)
        chosen = rows[duel.first], rows[duel.second]
        instead = None if compared(context, *chosen) not in seen else other
        if lead in rows and lead not in chosen:
            with_lead = [(lead, item) for item in chosen if compared(context, lead, item) not in seen]
            instead = with_lead[0] if with_lead else instead
        if instead is not None:
            self.agent.cancel(duel)
            rows = sorted(instead)
            duel = self._ask_among(context, rows)
        self._proposed = duel
        return Proposal(context, rows[duel.first], rows[duel.second], duel.weight, declined=instead is not None)

    def _ask_among(self, context: int | None, rows: list[int]) -> Duel:
        features = self._features
        place = context if features is not None and len(features) > 1 and context is not None else 0
        key = (place, *rows)
        if key not in self._tables:
            count = len(self._enabled)
            table = np.eye(count)[rows] if features is None else np.array([features[place][item] for item in rows])
            if len(self._tables) * count * table.shape[1] > _MOST_KEPT:  # pairs come and go
                self._tables.clear()
            self._tables[key] = table
        duel: Duel = self.agent.ask(self._tables[key])
        return duel

    # ------------------------------------------------------------------ learning

    def fold(self, event: Event, *, impose: bool = False) -> None:
        """Take in the next event of the study.

        Args:
            event: The event.
            impose: Whether to ask the recorded pair instead of choosing one.

        Raises:
            DivergedError: The agent chooses another duel than the one recorded.
        """
        if event.kind is Kind.DUEL_ISSUED:
            self._issued(event.body, impose=impose)
        elif event.kind in _FOLDS:
            _FOLDS[event.kind](self, event.body)
        self.position, self._digest = event.position, event.hash
        self.folded += 1
        if self.folded % SAVE_EVERY == 0:
            self.saved = self.state()

    def _issued(self, body: Body, *, impose: bool) -> None:
        duel, first, second, context = body["duel"], body["first"], body["second"], body["context"]
        if body["repeats"] is not None:
            if body["repeats"] in self._asked:
                self._asked[duel] = self._asked.pop(body["repeats"])
            elif body["repeats"] in self._tests:
                self._tests[duel] = self._tests.pop(body["repeats"])
            return
        if body["weight"] <= 0.0:  # not for the agent
            if body.get("gold"):
                self._tests[duel] = compared(context, first, second)
            return
        self._shown[context or 0] += 1
        asked, self._proposed = self._proposed, None
        if asked is None:
            pair = sorted((first, second))
            rows = pair if impose or body.get("given") else self._rows(context)
            if body["declined"] and not impose:
                self.agent.cancel(self._ask_among(context, rows))
                rows = pair
            asked = self._ask_among(context, rows)
            if not impose and (rows[asked.first], rows[asked.second], asked.weight) != (first, second, body["weight"]):
                raise DivergedError(
                    f"the learner would ask {rows[asked.first]} against {rows[asked.second]} where the log has {first} "
                    f"against {second}."
                )
            first = rows[asked.first]
        self._asked[duel] = _Asked(asked, first)

    def _answered(self, body: Body) -> None:
        voter, duel = body["voter"], body["duel"]
        self._settle(voter)
        if duel in self._asked or duel in self._tests:
            self._held[voter] = Held(duel, body["winner"], body["answer"] != "skip")
            if self._undo_seconds == 0 or body.get("final"):
                self._settle(voter)

    def _undone(self, body: Body) -> None:
        self._held.pop(body["voter"], None)

    def _settled(self, body: Body) -> None:
        self._settle(body["voter"])

    def _expired(self, body: Body) -> None:
        self._tests.pop(body["duel"], None)
        asked = self._asked.pop(body["duel"], None)
        if asked is not None:
            self.agent.cancel(asked.duel)

    def _item_changed(self, body: Body) -> None:
        self._enabled[body["item"]] = body["enabled"]

    def _gold_changed(self, body: Body) -> None:
        """Learn the known answers that are new."""
        known = known_answers(body)
        for pair, winner in known.items():
            if self._known.get(pair) != winner:
                context, *rows = pair
                duel = self._ask_among(context, rows)
                self.agent.tell(duel, Outcome.FIRST if rows[duel.first] == winner else Outcome.SECOND)
        self._known = known

    def _study_changed(self, body: Body) -> None:
        self._undo_seconds = body.get("undo_seconds", self._undo_seconds)

    def _voter_changed(self, body: Body) -> None:
        (self._set_aside.add if body["set_aside"] else self._set_aside.discard)(body["voter"])

    def _settle(self, voter: str) -> None:
        """Learn a voter's last answer, which can no longer be undone."""
        held = self._held.pop(voter, None)
        if held is None:
            return
        test = self._tests.pop(held.duel, None)
        if test is not None:
            if held.winner is not None:
                self._tested.setdefault(voter, {})[test] = held.winner
            return
        asked = self._asked.pop(held.duel)
        if voter in self._set_aside or not held.is_vote or is_doubtful(*self.tested(voter)):
            self.agent.cancel(asked.duel)
        elif held.winner is None:
            self.agent.tell(asked.duel, Outcome.TIE)
        else:
            self.agent.tell(asked.duel, Outcome.FIRST if held.winner == asked.first else Outcome.SECOND)

    def tested(self, voter: str) -> tuple[int, int]:
        """Return how many known answers a voter has right, and of how many."""
        found = [
            (self._known[pair], winner) for pair, winner in self._tested.get(voter, {}).items() if pair in self._known
        ]
        return sum(known == winner for known, winner in found), len(found)

    @property
    def dimension(self) -> int | None:
        """The number of features of an item; None without features."""
        return None if self._features is None else len(next(iter(self._features[0].values())))

    @property
    def waiting(self) -> int:
        """How many duels are open, or their answers not learned yet."""
        return len(self._asked)

    @classmethod
    def refolded(cls, study: NewStudy, events: Iterable[Event], without: Collection[str]) -> Self:
        """Return a new learner that has folded events with :meth:`impose` and ended the refold."""
        learner = cls(study)
        learner.impose(events, without)
        learner.end_refold()
        return learner

    def impose(self, events: Iterable[Event], without: Collection[str]) -> None:
        """Fold recorded events with their pairs given, leaving out the duels of some voters."""
        for event in events:
            body = event.body
            if event.kind != Kind.DUEL_ISSUED or body["voter"] not in without or body.get("gold"):
                self.fold(event, impose=True)

    def end_refold(self) -> None:
        """Save, as a part of the fold, so that a restart begins here."""
        self.saved = self.state()

    # ------------------------------------------------------------------ saving

    def state(self) -> dict[str, Any]:
        """Return everything but the study, for :func:`~fairduel.agents.state_file.write_state`."""
        return {
            "version": FORMAT,
            "agent": self.agent.state(),
            "position": self.position,
            "digest": self._digest.hex(),
            "folded": self.folded,
            "undo_seconds": self._undo_seconds,
            "enabled": list(self._enabled),
            "shown": list(self._shown),
            "set_aside": sorted(self._set_aside),
            "asked": [[duel, asked.duel.number, asked.first] for duel, asked in self._asked.items()],
            "held": [[voter, *held] for voter, held in self._held.items()],
            "known": [[*pair, winner] for pair, winner in self._known.items()],
            "tests": [[duel, *pair] for duel, pair in self._tests.items()],
            "tested": [[voter, *pair, won] for voter, found in self._tested.items() for pair, won in found.items()],
        }

    @classmethod
    def from_state(cls, study: NewStudy, state: dict[str, Any]) -> Self:
        """Rebuild a learner from :meth:`state`."""
        learner = cls(study)
        learner.agent = type(learner.agent).from_state(state["agent"])
        pending = {duel.number: duel for duel in learner.agent.pending}
        learner.position, learner._digest = state["position"], bytes.fromhex(state["digest"])
        learner.folded, learner._undo_seconds = state["folded"], state["undo_seconds"]
        learner._enabled, learner._shown = list(state["enabled"]), list(state["shown"])
        learner._set_aside = set(state["set_aside"])
        learner._asked = {duel: _Asked(pending[number], first) for duel, number, first in state["asked"]}
        learner._held = {voter: Held(*held) for voter, *held in state["held"]}
        learner._known = {tuple(pair): winner for *pair, winner in state.get("known", [])}
        learner._tests = {duel: tuple(pair) for duel, *pair in state.get("tests", [])}
        for voter, *pair, winner in state.get("tested", []):
            learner._tested.setdefault(voter, {})[tuple(pair)] = winner
        return learner

    @property
    def digest(self) -> bytes:
        """The hash of the last event folded."""
        return self._digest


_FOLDS: dict[Kind, Callable[[Learner, Body], None]] = {
    Kind.STUDY_CREATED: Learner._study_changed,  # noqa: SLF001  # its own methods
    Kind.STUDY_CHANGED: Learner._study_changed,  # noqa: SLF001
    Kind.ITEM_CHANGED: Learner._item_changed,  # noqa: SLF001
    Kind.GOLD_CHANGED: Learner._gold_changed,  # noqa: SLF001
    Kind.VOTER_CHANGED: Learner._voter_changed,  # noqa: SLF001
    Kind.ANSWERED: Learner._answered,  # noqa: SLF001
    Kind.UNDONE: Learner._undone,  # noqa: SLF001
    Kind.SETTLED: Learner._settled,  # noqa: SLF001
    Kind.EXPIRED: Learner._expired,  # noqa: SLF001
}


def _unseen(context: int | None, rows: list[int], seen: Collection[Compared]) -> tuple[int, int] | None:
    """Return the first pair that is not among those ``seen``."""
    return next((pair for pair in combinations(rows, 2) if compared(context, *pair) not in seen), None)


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a learner's state atomically."""
    write_state(path, state)


def load(saved: Path | bytes, study: NewStudy) -> Learner | None:
    """Read a saved learner, or return None if there is none or it is damaged: then the log is folded from its start."""
    try:
        state = unpack_state(saved, "the saved learner") if isinstance(saved, bytes) else read_state(saved)
        return Learner.from_state(study, state)
    except (BadInputError, LookupError, TypeError, ValueError):
        return None
