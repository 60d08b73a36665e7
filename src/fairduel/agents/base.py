"""The books that all agents keep: what was asked, what is waited for, and how to resume."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import ActionSet, checked_actions
from fairduel.agents.guarantee import Guarantee
from fairduel.agents.old_formats import FORMAT, upgraded
from fairduel.agents.state_file import read_state, write_state
from fairduel.checks import ensure, finite, integer, positive
from fairduel.core.likelihood import LONGEST_DIFFERENCE
from fairduel.core.links import Link
from fairduel.duel import Asked, Duel, Matrix, Outcome, Pull
from fairduel.errors import BadInputError, UnknownDuelError

Actions = ArrayLike | ActionSet | None
"""What an agent chooses from: rows of features (K, d), a set that is not listed, or nothing for an agent of K arms."""
AskedT = TypeVar("AskedT", bound=Asked)
DuelT = TypeVar("DuelT", bound=Duel)
PullT = TypeVar("PullT", bound=Pull)
Answer = TypeVar("Answer", Outcome, float)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@dataclass(kw_only=True, eq=False)
class Agent(ABC, Generic[AskedT, Answer]):
    """Asks, and is told; any time later, in any order, each once.

    A subclass writes :meth:`_ask`, :meth:`_tell` and :meth:`recommend`, and names in ``_memory`` the attributes that
    a saved agent must have; :meth:`_cancel` only if it has something to take back, and :meth:`_check_restored` and
    :meth:`_check_pending` if not every value of its memory makes sense.
    """

    title: ClassVar[str]
    """Its name as papers write it; by default ``module:Class``, the name it is run by. Not inherited."""
    full_title: ClassVar[str] = ""
    """The same in full for Table 1, where that is longer."""
    colour: ClassVar[str | None]
    """Of its lines in figures, as ``"#D55E00"``; ``None`` leaves the choice to the figure. Not inherited."""
    guarantee: ClassVar[Guarantee | None] = None
    """What its publication promises of regret under corruption: its row in Table 1."""
    assumes: ClassVar[str] = ""
    """What its guarantee does not hold without, said before it runs."""
    published_settings: ClassVar[Mapping[str, Any]] = {}
    """The settings that give it the constants as published, where the defaults are others."""
    tuned_choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Values of settings that tuning tries beside the radius."""

    _classes: ClassVar[dict[str, type["Agent[Any, Any]"]]] = {}
    _asks: ClassVar[type[Asked]]
    """What it asks: :class:`Duel`, :class:`Pull`, or a subclass with more that it must know when it is told."""
    _memory: ClassVar[tuple[str, ...]] = ()
    """Attributes (numbers, text, lists of them, arrays) that make the agent what it became by being told.

    A new agent has them all. A saved one is loaded only if they are of the same types, and arrays of the same shapes;
    an axis that is empty in a new agent may have any length, and ``None`` may have become anything.
    """

    horizon: int | None = None
    """T, the number of rounds planned; ``None`` puts the current round in its place, where an agent can do that."""
    seed: int = 0
    """Seed of the agent's own random stream."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.title = vars(cls).get("title", _full_name(cls))
        cls.colour = vars(cls).get("colour")
        Agent._classes[_full_name(cls)] = cls

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # JSON knows Python's own numbers only
                setattr(self, field.name, value.item())
        self.horizon = None if self.horizon is None else integer("horizon", self.horizon, least=1)
        self.seed = integer("seed", self.seed)
        self._asked = 0
        self._pending: dict[int, AskedT] = {}
        self._rng = np.random.Generator(np.random.PCG64(self.seed))

    # ------------------------------------------------------------------ what users call

    def ask(self, actions: Actions = None) -> AskedT:
        """Choose what to try next among ``actions``: shape (K, d) with norms ≤ 1, or a set that is not listed.

        An agent of K arms needs none.
        """
        kept = self._ask(actions)
        self._pending[kept.number] = kept
        self._asked += 1
        # The agent keeps arrays of its own: what the caller does to these is not learned.
        return kept.copied()

    def ask_many(self, actions: Actions, count: int) -> list[AskedT]:
        """Ask ``count`` times at once; each takes into account what the ones before it will tell."""
        return [self.ask(actions) for _ in range(integer("count", count, least=1))]

    def tell(self, asked: AskedT, answer: Answer) -> None:
        """Learn the answer to what was asked earlier; any time, any order, once."""
        checked = self._checked_answer(answer)
        self._tell(self._release(asked), checked)

    def cancel(self, asked: AskedT) -> None:
        """Take back what will never be told."""
        self._cancel(self._release(asked))

    @abstractmethod
    def recommend(self, actions: Actions = None) -> int:
        """Index of the action that is best by all that was told."""

    @property
    def asked(self) -> int:
        """How often it asked, what was cancelled included."""
        return self._asked

    @property
    def pending(self) -> tuple[AskedT, ...]:
        """What was asked and is neither told nor cancelled yet; copies that cannot be written to."""
        return tuple(kept.copied() for kept in self._pending.values())

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it; plain values, ready for JSON."""
        return self._given()

    def _given(self) -> dict[str, Any]:
        """Every setting as given, a link by its name."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: str(value) if isinstance(value, Link) else value for name, value in values.items()}

    # ------------------------------------------------------------------ what a subclass writes

    @abstractmethod
    def _ask(self, actions: Actions) -> AskedT:
        """Choose; what is returned carries the number ``self._asked``."""

    @abstractmethod
    def _tell(self, asked: AskedT, answer: Answer) -> None:
        """Learn the answer."""

    @abstractmethod
    def _checked_answer(self, answer: Answer) -> Answer:
        """Return the answer, or refuse it."""

    def _cancel(self, asked: AskedT) -> None:
        """Forget what was asked; nothing to do for an agent that learns only when it is told."""

    def _planned_horizon(self) -> int:
        """The horizon, for an agent that cannot do without one."""
        if self.horizon is None:
            raise BadInputError(f"{type(self).__name__} plans its epochs or levels by the horizon: give one.")
        return self.horizon

    def _horizon_or(self, round_number: int) -> int:
        """The horizon, or this round in its place."""
        return round_number if self.horizon is None else self.horizon

    # ------------------------------------------------------------------ save and resume

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        return {
            "version": FORMAT,
            "agent": _full_name(type(self)),
            "settings": self._given(),
            "random": self._rng.bit_generator.state,
            "asked": self._asked,
            "pending": {str(number): asked.state() for number, asked in self._pending.items()},
            "memory": {name: _copied(getattr(self, name)) for name in self._memory},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent[Any, Any]":
        """Rebuild the agent that gave ``state``: what it asks next is what that one would ask.

        Nothing is imported for it: its class must be defined already.
        """
        kind = _class_named(state["agent"])
        own = next(c for c in kind.__mro__ if c.__module__.startswith("fairduel."))
        state = upgraded(state | {"agent": own.__name__})
        if not issubclass(kind, cls):
            raise BadInputError(f"it holds an agent of class {_full_name(kind)}, not {_full_name(cls)}.")
        agent = kind._from_settings(state["settings"])  # noqa: SLF001
        agent._restore(state)  # noqa: SLF001
        agent._check_restored()  # noqa: SLF001
        return agent

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """A new agent with the settings of a saved one."""
        return cls(**settings)

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over the state; it is checked afterwards, except for what code that checks nothing would see."""
        self._rng.bit_generator.state = _checked_stream(state["random"])
        self._asked = integer("asked", state["asked"])
        for number, fields in state["pending"].items():
            kept: Any = self._asks.from_state(fields)
            ensure(str(kept.number) == number, "something pending has two numbers")
            self._pending[kept.number] = kept
        for name in self._memory:
            setattr(self, name, _like(getattr(self, name), state["memory"][name], name))

    def _check_restored(self) -> None:
        """Refuse a state that no agent with these settings can have."""
        for kept in self._pending.values():
            ensure(kept.number < self._asked, f"{kept} is pending, but only {self._asked} were asked")
            self._check_pending(kept)

    def _check_pending(self, asked: AskedT) -> None:
        """Refuse something pending that this agent cannot have asked."""
        d = getattr(self, "dimension", None)
        shapes = {array.shape for _, array in asked._arrays()}  # noqa: SLF001
        ensure(d is None or shapes <= {(0,), (d,), (2, d)}, f"{asked} does not fit {d} features")

    def save(self, path: str | Path) -> None:
        """Write :meth:`state` to one file, whole or not at all."""
        write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an agent back from :meth:`save`; a file that no agent can have written is refused."""
        state = read_state(Path(path))
        try:
            agent = cls.from_state(state)
        except BadInputError as error:
            raise BadInputError(f"cannot load {path}: {error}") from error
        except Exception as error:  # whatever a made-up state leads to, here or in a class of the user's
            raise BadInputError(f"cannot load {path}: {type(error).__name__}: {error}.") from error
        assert isinstance(agent, cls)
        return agent

    def _release(self, asked: AskedT) -> AskedT:
        """Take something off the list of what is waited for, and return the agent's own copy of it."""
        if not isinstance(asked, Asked):
            raise BadInputError(f"give back what ask returned, not {asked!r}.")
        kept = self._pending.get(asked.number)
        if kept is not None and kept.same_as(asked):
            return self._pending.pop(asked.number)
        if kept is not None or not 0 <= asked.number < self._asked:
            raise UnknownDuelError(f"{asked} was never asked here.")
        raise UnknownDuelError(f"{asked} was already told or cancelled.")


@dataclass(kw_only=True, eq=False)
class DuelingAgent(Agent[DuelT, Outcome]):
    """An agent that asks duels, and is told who won, or that it was a tie: half a win for each."""

    _asks: ClassVar[type[Asked]] = Duel

    def _checked_answer(self, answer: Outcome) -> Outcome:
        if not isinstance(answer, Outcome):
            raise BadInputError(f"the outcome must be Outcome.FIRST, SECOND or TIE, not {answer!r}.")
        return answer


@dataclass(kw_only=True, eq=False)
class RewardAgent(Agent[PullT, float]):
    """An agent that pulls one action at a time, and is told a number: its reward."""

    _asks: ClassVar[type[Asked]] = Pull

    def _checked_answer(self, answer: float) -> float:
        return finite("a reward", answer)


@dataclass(kw_only=True, eq=False)
class KArmed:
    """Mixed into an agent of K arms without features: ``ask`` needs no actions, and takes any K of them."""

    arms: int
    """K."""

    def __post_init__(self) -> None:
        self.arms = integer("arms", self.arms, least=2)
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

    def _check_pending(self, asked: Any) -> None:
        super()._check_pending(asked)  # type: ignore[misc]
        indices = (asked.first, asked.second) if isinstance(asked, Duel) else (asked.action,)
        ensure(max(indices) < self.arms, f"{asked} is pending, but there are {self.arms} arms")
        ensure(all(array.shape == (0,) for _, array in asked._arrays()), f"{asked} has features")  # noqa: SLF001


@dataclass(kw_only=True, eq=False)
class Featured:
    """Mixed into an agent that chooses by features, in which the rewards are linear: xᵀθ*."""

    dimension: int
    """d, the number of features of an action."""
    norm_bound: float
    """B, a bound on ‖θ*‖; it must be known, and is never taken from the data."""

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # the agent's, which stands behind
        self.dimension = integer("dimension", self.dimension, least=1)
        self.norm_bound = positive("norm_bound", self.norm_bound)

    def _listed(self, actions: Actions) -> Matrix:
        """The actions as rows of features, for an agent that looks at them one by one."""
        if actions is None or isinstance(actions, ActionSet):
            raise BadInputError(f"{type(self).__name__} chooses by features: list the actions, one row each.")
        return checked_actions(actions, self.dimension)


def check_difference(duel: Duel, dimension: int) -> None:
    """Refuse a pending duel of other than ``dimension`` features, or of actions that are too far apart."""
    ensure(duel.difference.shape == (dimension,), f"{duel} does not fit {dimension} features")
    ensure(np.linalg.norm(duel.difference) <= LONGEST_DIFFERENCE, f"the difference of {duel} is too long")


def _class_named(name: str) -> type[Agent[Any, Any]]:
    """The class of a saved agent, among those that are defined.

    Formats 1 to 3 hold the bare name; fairduel's own class goes first. A class of a script, ``__main__``, has another
    module when the script is imported.
    """
    ensure(isinstance(name, str), "the class of the saved agent has no name")
    classes = Agent._classes  # noqa: SLF001
    if name in classes:
        return classes[name]
    module, _, bare = name.rpartition(":")
    if module in {"", "__main__"}:
        alike = [c for c in classes.values() if bare in {c.__name__, c.__qualname__}]
        own = [c for c in alike if c.__module__.startswith("fairduel.")]
        others = [c for c in alike if c not in own]
        found = [*own, *others] if not module else others
        if found:
            return found[0]
    raise BadInputError(f"the class {name} of the saved agent is not defined: import the module that defines it first.")


def _checked_stream(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a PCG64 stream, if it is one."""
    inner = state["state"]
    numbers = (inner["state"], inner["inc"], state["has_uint32"], state["uinteger"])
    limits = (2**128, 2**128, 2, 2**32)
    ensure(
        state["bit_generator"] == "PCG64"
        and all(type(n) is int and 0 <= n < limit for n, limit in zip(numbers, limits, strict=True))
        and inner["inc"] % 2 == 1,
        "its random stream is not one of PCG64",
    )
    return state


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list) else value


def _like(new: Any, saved: Any, name: str) -> Any:
    """Return a copy of a ``saved`` attribute, if it could have come of what a ``new`` agent has there.

    NaN never could, and infinities only of others.
    """
    if isinstance(new, np.ndarray):
        ensure(isinstance(saved, np.ndarray) and saved.dtype == new.dtype, f"{name} is not an array of {new.dtype}")
        fits = saved.ndim == new.ndim and all(n in {0, m} for n, m in zip(new.shape, saved.shape, strict=True))
        ensure(fits, f"{name} has shape {saved.shape} where a new agent has {new.shape}")
        numbers = saved if new.dtype.kind == "f" else np.zeros(0)
        ensure(not np.isnan(numbers).any(), f"{name} holds NaN")
        ensure(np.isfinite(numbers).all() or np.isinf(new).any(), f"{name} is not finite")
    elif isinstance(new, (bool, str, list)):
        ensure(type(saved) is type(new), f"{name} is {saved!r} where a new agent has {new!r}")
    elif isinstance(new, (int, float)):
        ensure(type(saved) in {int, float} and not math.isnan(saved), f"{name} is {saved!r}, not a number")
        ensure(math.isfinite(saved) or math.isinf(new), f"{name} is not finite")
    return _copied(saved)
