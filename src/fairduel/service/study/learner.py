"""The learner: an agent that chooses duels, as a fold of the log.

The agent asks, is told or cancels in the order of the log and at no other time, so folding the log again asks the same
duels and learns the same state, bit for bit. Saving an agent affects the rounding of what follows, so it is part of the
fold too: once every ``SAVE_EVERY`` events.

If voters are set aside, or another machine rounds differently, the learner is *refolded*: a new agent gets the recorded
pairs instead of choosing its own, without those of the voters set aside, and weighs them itself. The log records where
this happened; from there on the agent chooses again.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from fairduel.agents import Agent
from fairduel.agents.parts.state_file import FORMAT, check_format, read_state, unpack_state, write_state
from fairduel.duel import Duel, Matrix, Outcome
from fairduel.errors import BadInputError, FairduelError
from fairduel.service.events.log import Event
from fairduel.service.study.gold import Compared, compared, is_doubtful
from fairduel.service.study.study import NewStudy, features_of, known_features, new_agent

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
        known = known_features(study)
        self.agent: Agent[Any, Any] = new_agent(study.agent, study.agent_settings, count, study.seed, known)
        self.position = 0
        self.folded = 0
        self.saved: dict[str, Any] | None = None
        """The state to write to disk once the events it rests on are there."""
        self._digest = b""
        self.enabled = [True] * count
        self._shown = [0] * max(1, len(study.contexts))
        self.set_aside: set[str] = set()
        self._asked: dict[str, _Asked] = {}
        self._held: dict[str, Held] = {}
        self._known: dict[Compared, int] = {}
        self._tests: dict[str, Compared] = {}  # gold duels that are open, or their answers not settled
        self._tested: dict[str, dict[Compared, int]] = {}  # answers to gold duels, by voter
        self._proposed: Duel | None = None
        self._imposes = False  # whether it is given the recorded pairs
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
            shown: How often each item was shown, shape (K,). If the agent's choice was seen, one of its items meets the
                least shown one that it has not met; if it has met all, two others meet, the least shown ones.
            lead: An item to show, if the voter has not compared it with both of the agent's choice.
        """
        for context in self._contexts():
            rows = self._rows(context)
            rarest = sorted(rows, key=shown.__getitem__)
            if _unseen(context, rarest, seen) is not None:
                return self._ask(context, rows, rarest, seen, lead)
        return None

    def propose_short(
        self, seen: Collection[Compared], shown: list[int], missing: Mapping[int, int]
    ) -> Proposal | None:
        """Ask about the items that were shown least compared with the views they miss; None if that is not possible."""
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
        candidates = range(len(self.enabled)) if context is None else self._candidates[context]
        return [item for item in candidates if self.enabled[item]]

    def _ask(
        self,
        context: int | None,
        rows: list[int],
        rarest: list[int],
        seen: Collection[Compared],
        lead: int | None,
    ) -> Proposal:
        duel = self._ask_among(context, rows)
        chosen = rows[duel.first], rows[duel.second]
        instead = None
        if compared(context, *chosen) in seen:
            half = ((item, other) for other in rarest for item in chosen if item != other)
            pairs = chain(half, combinations(rarest, 2))
            instead = next(pair for pair in pairs if compared(context, *pair) not in seen)
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
            count = len(self.enabled)
            table = np.eye(count)[rows] if features is None else np.array([features[place][item] for item in rows])
            if len(self._tables) * count * table.shape[1] > _MOST_KEPT:  # pairs come and go
                self._tables.clear()
            self._tables[key] = table
        duel: Duel = self.agent.ask(self._tables[key])
        return duel

    # ------------------------------------------------------------------ learning

    def fold(self, event: Event[Any], *, impose: bool = False) -> None:
        """Take in the next event of the study.

        Args:
            event: The event.
            impose: Whether to ask the recorded pair instead of choosing one.

        Raises:
            DivergedError: The agent chooses another duel than the one recorded.
        """
        self._imposes = impose
        event.body.learn(self)
        self.position, self._digest = event.position, event.hash
        self.folded += 1
        if self.folded % SAVE_EVERY == 0:
            self.saved = self.state()

    def ask(self, duel: str, recorded: Proposal) -> None:
        """Record a duel of the agent; ask it now if :meth:`propose` has not."""
        context, first, second = recorded.context, recorded.first, recorded.second
        self._shown[context or 0] += 1
        asked, self._proposed = self._proposed, None
        if asked is None:
            pair = sorted((first, second))
            rows = pair if recorded.given or self._imposes else self._rows(context)
            if recorded.declined and not self._imposes:
                self.agent.cancel(self._ask_among(context, rows))
                rows = pair
            asked = self._ask_among(context, rows)
            choice = rows[asked.first], rows[asked.second], asked.weight
            if not self._imposes and choice != (first, second, recorded.weight):
                raise DivergedError(
                    f"the learner would ask {choice[0]} against {choice[1]} where the log has {first} against {second}."
                )
            first = rows[asked.first]
        self._asked[duel] = _Asked(asked, first)

    def test(self, duel: str, pair: Compared) -> None:
        """Record a gold duel, which is not for the agent."""
        self._tests[duel] = pair

    def repeat(self, undone: str, duel: str) -> None:
        """Let a duel stand for an undone one."""
        if undone in self._asked:
            self._asked[duel] = self._asked.pop(undone)
        elif undone in self._tests:
            self._tests[duel] = self._tests.pop(undone)

    def cancel(self, duel: str) -> None:
        """Forget a duel that nobody answered."""
        self._tests.pop(duel, None)
        asked = self._asked.pop(duel, None)
        if asked is not None:
            self.agent.cancel(asked.duel)

    def hold(self, voter: str, duel: str, winner: int | None, *, is_vote: bool) -> None:
        """Keep a voter's last answer, which may be undone."""
        if duel in self._asked or duel in self._tests:
            self._held[voter] = Held(duel, winner, is_vote)

    def forget_answer(self, voter: str) -> None:
        """Forget a voter's last answer, which was undone."""
        self._held.pop(voter, None)

    def know(self, known: dict[Compared, int]) -> None:
        """Learn the known answers that are new."""
        for pair, winner in known.items():
            if self._known.get(pair) != winner:
                context, *rows = pair
                duel = self._ask_among(context, rows)
                self.agent.tell(duel, Outcome.FIRST if rows[duel.first] == winner else Outcome.SECOND)
        self._known = known

    def settle(self, voter: str) -> None:
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
        if voter in self.set_aside or not held.is_vote or is_doubtful(*self.tested(voter)):
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
        """The number of duels that are open or whose answers are not learned yet."""
        return len(self._asked)

    @classmethod
    def refolded(cls, study: NewStudy, events: Iterable[Event[Any]], without: Collection[str]) -> Self:
        """Return a new learner that has folded events with :meth:`impose` and ended the refold."""
        learner = cls(study)
        learner.impose(events, without)
        learner.end_refold()
        return learner

    def impose(self, events: Iterable[Event[Any]], without: Collection[str]) -> None:
        """Fold recorded events with their pairs given, leaving out the duels of some voters."""
        for event in events:
            if not event.body.is_left_out(without):
                self.fold(event, impose=True)

    def end_refold(self) -> None:
        """Save, as a part of the fold, so that a restart begins here."""
        self.saved = self.state()

    # ------------------------------------------------------------------ saving

    def state(self) -> dict[str, Any]:
        """Return everything but the study, for :func:`~fairduel.agents.parts.state_file.write_state`."""
        return {
            "version": FORMAT,
            "agent": self.agent.state(),
            "position": self.position,
            "digest": self._digest.hex(),
            "folded": self.folded,
            "enabled": list(self.enabled),
            "shown": list(self._shown),
            "set_aside": sorted(self.set_aside),
            "asked": [[duel, asked.duel.number, asked.first] for duel, asked in self._asked.items()],
            "held": [[voter, *held] for voter, held in self._held.items()],
            "known": [[*pair, winner] for pair, winner in self._known.items()],
            "tests": [[duel, *pair] for duel, pair in self._tests.items()],
            "tested": [[voter, *pair, won] for voter, found in self._tested.items() for pair, won in found.items()],
        }

    @classmethod
    def from_state(cls, study: NewStudy, state: dict[str, Any]) -> Self:
        """Rebuild a learner from :meth:`state`."""
        check_format(state)
        learner = cls(study)
        learner.agent = type(learner.agent).from_state(state["agent"])
        pending = {duel.number: duel for duel in learner.agent.pending}
        learner.position, learner._digest = state["position"], bytes.fromhex(state["digest"])
        learner.folded, learner.enabled, learner._shown = state["folded"], list(state["enabled"]), list(state["shown"])
        learner.set_aside = set(state["set_aside"])
        learner._asked = {duel: _Asked(pending[number], first) for duel, number, first in state["asked"]}
        learner._held = {voter: Held(*held) for voter, *held in state["held"]}
        learner._known = {tuple(pair): winner for *pair, winner in state["known"]}
        learner._tests = {duel: tuple(pair) for duel, *pair in state["tests"]}
        for voter, *pair, winner in state["tested"]:
            learner._tested.setdefault(voter, {})[tuple(pair)] = winner
        return learner

    @property
    def digest(self) -> bytes:
        """The hash of the last event folded."""
        return self._digest


def _unseen(context: int | None, rows: list[int], seen: Collection[Compared]) -> tuple[int, int] | None:
    """Return the first pair that is not among those ``seen``."""
    return next((pair for pair in combinations(rows, 2) if compared(context, *pair) not in seen), None)


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a learner's state atomically."""
    write_state(path, state)


def state_of(saved: Path | bytes) -> dict[str, Any] | None:
    """Read the state of a saved learner, or return None if there is none or it is damaged."""
    try:
        return unpack_state(saved, "the saved learner") if isinstance(saved, bytes) else read_state(saved)
    except (BadInputError, LookupError, TypeError, ValueError):
        return None


def read_learner(saved: Path | bytes, study: NewStudy) -> Learner | None:
    """Read a saved learner, or return None if there is none or it is damaged: then the log is folded from its start."""
    state = state_of(saved)
    try:
        return None if state is None else Learner.from_state(study, state)
    except (BadInputError, LookupError, TypeError, ValueError):
        return None
