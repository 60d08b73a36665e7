"""The books that all agents keep: what was asked, what is waited for, and how to resume."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import ActionSet
from fairduel.actions import checked_actions
from fairduel.agents.state_file import read_state, write_state
from fairduel.checks import finite, whole
from fairduel.duel import Duel, Matrix, Outcome, Pull
from fairduel.errors import BadInputError, UnknownDuelError, unknown_name

_STATE_VERSION = 3

Actions = ArrayLike | ActionSet | None
"""What an agent chooses from: rows of features (K, d), a set that is not listed, or nothing for an agent of K arms."""
Asked = TypeVar("Asked", Duel, Pull)
Answer = TypeVar("Answer", Outcome, float)


@dataclass(kw_only=True, eq=False)
class Agent(ABC, Generic[Asked, Answer]):
    """Asks, and is told; any time later, in any order, each once.

    A subclass writes :meth:`_ask`, :meth:`_tell` and :meth:`recommend`, and names in ``_memory`` the attributes that
    a saved agent must have; :meth:`_cancel` only if it has something to take back.
    """

    _classes: ClassVar[dict[str, type["Agent[Any, Any]"]]] = {}
    _asks: ClassVar[type[Duel] | type[Pull]]
    _memory: ClassVar[tuple[str, ...]] = ()
    """Attributes (numbers, text, lists of them, arrays) that make the agent what it became by being told."""

    horizon: int | None = None
    """T, the number of rounds planned; ``None`` puts the current round in its place, where an agent can do that."""
    seed: int = 0
    """Seed of the agent's own random stream."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Agent._classes[cls.__name__] = cls

    def __post_init__(self) -> None:
        self.horizon = None if self.horizon is None else whole("horizon", self.horizon, least=1)
        self.seed = whole("seed", self.seed)
        self._asked = 0
        self._pending: dict[int, Asked] = {}
        self._cancelled: set[int] = set()
        self._rng = np.random.Generator(np.random.PCG64(self.seed))

    # ------------------------------------------------------------------ what users call

    def ask(self, actions: Actions = None) -> Asked:
        """Choose what to try next among ``actions``: shape (K, d) with norms ≤ 1, or a set that is not listed.

        An agent of K arms needs none.
        """
        kept = self._ask(actions)
        self._pending[kept.number] = kept
        self._asked += 1
        # The agent keeps arrays of its own: what the caller does to these is not learned.
        return kept.copied()

    def ask_many(self, actions: Actions, count: int) -> list[Asked]:
        """Ask ``count`` times at once; each takes into account what the ones before it will tell."""
        return [self.ask(actions) for _ in range(whole("count", count, least=1))]

    def tell(self, asked: Asked, answer: Answer) -> None:
        """Learn the answer to what was asked earlier; any time, any order, once."""
        checked = self._checked_answer(answer)
        self._tell(self._release(asked), checked)

    def cancel(self, asked: Asked) -> None:
        """Take back what will never be told."""
        kept = self._release(asked)
        self._cancelled.add(kept.number)
        self._cancel(kept)

    @abstractmethod
    def recommend(self, actions: Actions = None) -> int:
        """Index of the action that is best by all that was told."""

    @property
    def asked(self) -> int:
        """How often it asked, what was cancelled included."""
        return self._asked

    @property
    def pending(self) -> tuple[Asked, ...]:
        """What was asked and is neither told nor cancelled yet."""
        return tuple(self._pending.values())

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it; plain values, ready for JSON."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    # ------------------------------------------------------------------ what a subclass writes

    @abstractmethod
    def _ask(self, actions: Actions) -> Asked:
        """Choose; what is returned carries the number ``self._asked``."""

    @abstractmethod
    def _tell(self, asked: Asked, answer: Answer) -> None:
        """Learn the answer."""

    @abstractmethod
    def _checked_answer(self, answer: Answer) -> Answer:
        """Return the answer, or refuse it."""

    def _cancel(self, asked: Asked) -> None:
        """Forget what was asked; nothing to do for an agent that learns only when it is told."""

    def _listed(self, actions: Actions, dimension: int) -> Matrix:
        """The actions as rows of features, for an agent that looks at them one by one."""
        if actions is None or isinstance(actions, ActionSet):
            raise BadInputError(f"{type(self).__name__} chooses by features: list the actions, one row each.")
        return checked_actions(actions, dimension)

    def _planned_horizon(self) -> int:
        """The horizon, for an agent that cannot do without one."""
        if self.horizon is None:
            raise BadInputError(f"{type(self).__name__} plans its epochs or levels by the horizon: give one.")
        return self.horizon

    # ------------------------------------------------------------------ save and resume

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        return {
            "version": _STATE_VERSION,
            "agent": type(self).__name__,
            "settings": {field.name: getattr(self, field.name) for field in dataclasses.fields(self)},
            "random": self._rng.bit_generator.state,
            "asked": self._asked,
            "cancelled": sorted(self._cancelled),
            "pending": {str(number): asked.state() for number, asked in self._pending.items()},
            "memory": {name: _copied(getattr(self, name)) for name in self._memory},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent[Any, Any]":
        """Rebuild the agent that gave ``state``: what it asks next is what that one would ask."""
        if state.get("version") != _STATE_VERSION:
            raise BadInputError(
                f"this agent was saved in format {state.get('version')!r}, and only {_STATE_VERSION} is known."
            )
        known = {name: c for name, c in Agent._classes.items() if issubclass(c, cls)}
        if state["agent"] not in known:
            raise unknown_name("saved agent", state["agent"], known)
        agent = known[state["agent"]](**state["settings"])
        agent._restore(state)  # noqa: SLF001
        return agent

    def _restore(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["random"]
        self._asked = state["asked"]
        self._cancelled = set(state["cancelled"])
        self._pending = {int(number): self._from_state(kept) for number, kept in state["pending"].items()}
        for name in self._memory:
            setattr(self, name, _copied(state["memory"][name]))

    def _from_state(self, kept: dict[str, Any]) -> Asked:
        return self._asks.from_state(kept)  # type: ignore[return-value]  # the subclass pairs the two

    def save(self, path: str | Path) -> None:
        """Write :meth:`state` to one file, whole or not at all."""
        write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an agent back from :meth:`save`."""
        state = read_state(Path(path))
        try:
            agent = cls.from_state(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, BadInputError):
                raise
            raise BadInputError(f"{path} holds no usable agent: {error}.") from error
        assert isinstance(agent, cls)
        return agent

    def _release(self, asked: Asked) -> Asked:
        """Take something off the list of what is waited for, and return the agent's own copy of it."""
        if not isinstance(asked, self._asks):
            raise BadInputError(f"a {self._asks.__name__.lower()} is what ask returned, not {asked!r}.")
        kept = self._pending.get(asked.number)
        if kept is not None and kept.same_as(asked):
            return self._pending.pop(asked.number)
        if asked.number in self._cancelled:
            raise UnknownDuelError(f"{asked} was cancelled.")
        if kept is not None or not 0 <= asked.number < self._asked:
            raise UnknownDuelError(f"{asked} was never asked here.")
        raise UnknownDuelError(f"{asked} was told already.")


@dataclass(kw_only=True, eq=False)
class DuelingAgent(Agent[Duel, Outcome]):
    """An agent that asks duels, and is told who won."""

    _asks = Duel

    def _checked_answer(self, answer: Outcome) -> Outcome:
        if not isinstance(answer, Outcome):
            raise BadInputError(f"an outcome is Outcome.FIRST or Outcome.SECOND, not {answer!r}.")
        return answer


@dataclass(kw_only=True, eq=False)
class RewardAgent(Agent[Pull, float]):
    """An agent that pulls one action at a time, and is told a number: its reward."""

    _asks = Pull

    def _checked_answer(self, answer: float) -> float:
        return finite("a reward", answer)


@dataclass(kw_only=True, eq=False)
class KArmed:
    """Mixed into an agent of K arms without features: ``ask`` needs no actions, and takes any K of them."""

    arms: int
    """K."""

    def __post_init__(self) -> None:
        self.arms = whole("arms", self.arms, least=2)
        super().__post_init__()  # type: ignore[misc]  # the agent's, which stands behind

    def _check_count(self, actions: Actions) -> None:
        if isinstance(actions, ActionSet):
            raise BadInputError(f"{type(self).__name__} knows arms by their number alone: give it none, or list them.")
        try:
            count = self.arms if actions is None else len(actions)  # type: ignore[arg-type]  # or it has none
        except TypeError:
            count = 0
        if count != self.arms:
            raise BadInputError(f"this {type(self).__name__} has {self.arms} arms, and {count} actions came.")


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list) else value
