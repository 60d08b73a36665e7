"""Bookkeeping shared by all agents: what was asked, what is pending, saving and loading."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numba
import numpy as np
from numpy.typing import ArrayLike

from fairduel import agents
from fairduel.action_sets import ActionSet, checked_actions
from fairduel.agents.parts.state_file import FORMAT, check_format, read_state, write_state
from fairduel.checks import ensure, finite, integer, positive
from fairduel.core.likelihood import LONGEST_DIFFERENCE
from fairduel.core.links import Link
from fairduel.duel import Asked, Duel, Matrix, Outcome, Pull
from fairduel.errors import BadInputError, UnknownDuelError
from fairduel.features import FeatureMap

Actions = ArrayLike | ActionSet | None
"""What an agent chooses from: features (K, d), an implicit set, or ``None`` for a K-armed agent."""
AskedT = TypeVar("AskedT", bound=Asked)
DuelT = TypeVar("DuelT", bound=Duel)
PullT = TypeVar("PullT", bound=Pull)
Answer = TypeVar("Answer", Outcome, float)


Model = Literal[
    "K-armed bandits",
    "linear bandits",
    "linear contextual bandits",
    "K-armed dueling bandits",
    "contextual dueling bandits",
]
"""The settings of the paper's Table 1, in its order."""


class Guarantee(NamedTuple):
    """An agent's row of Table 1, as published."""

    source: str
    model: Model
    adversary: Literal["weak", "weak only", "strong", "none"]
    """The adversary that the bound covers; a weak one commits before it can see the action."""
    bound: str
    """The regret bound, without logarithms."""
    needs: str
    """What the algorithm must be told."""
    in_paper: bool = False
    """Whether it is in the paper's Table 1."""


class Stream(np.random.Generator):
    """A random stream whose type Numba knows without asking, which saves a tenth of a round."""

    _numba_type_ = numba.typeof(np.random.default_rng(0))  # type: ignore[no-untyped-call]


def _full_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@dataclass(kw_only=True, eq=False)
class Agent(ABC, Generic[AskedT, Answer]):
    """Base class of all agents: ``ask`` for a duel or a pull, then ``tell`` its answer, later and in any order.

    A subclass implements :meth:`_ask`, :meth:`_tell` and :meth:`recommend`, and lists in ``_memory`` the attributes to
    save. It overrides :meth:`_cancel` if there is something to undo, and :meth:`_check_restored` and
    :meth:`_check_pending` if some saved values would be invalid.

    Args:
        horizon: T, the planned number of rounds; ``None`` uses the current round instead, where an agent can.
        seed: Seed of the agent's random stream.
    """

    title: ClassVar[str]
    """The name used in papers; ``module:Class`` by default. Not inherited."""
    full_title: ClassVar[str] = ""
    """A longer name for Table 1, if needed."""
    colour: ClassVar[str | None]
    """Line colour in figures, such as ``"#D55E00"``; ``None`` lets the figure choose. Not inherited."""
    guarantee: ClassVar[Guarantee | None] = None
    """The published regret bound under corruption: the agent's row in Table 1."""
    assumes: ClassVar[str] = ""
    """An assumption of the guarantee that is stated before a run."""
    published_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings that restore the published constants where the defaults differ."""
    tuned_choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Settings other than the radius that tuning varies, with their values."""

    _classes: ClassVar[dict[str, type["Agent[Any, Any]"]]] = {}
    _asks: ClassVar[type[Asked]]
    """What ``ask`` returns: :class:`Duel`, :class:`Pull`, or a subclass with more fields."""
    _memory: ClassVar[tuple[str, ...]] = ()
    """The learned attributes that are saved: numbers, text, lists of these, and arrays.

    A new agent has all of them. Loaded values must have the same types, and arrays the same shapes; an axis of length
    0 in a new agent may have any length, and ``None`` may become anything.
    """
    _parts: ClassVar[tuple[str, ...]] = ()
    """The learned attributes that save themselves, by ``state`` and ``restore``, and lists of such."""
    _resolved: ClassVar[tuple[str, ...]] = ()
    """Settings with a resolved value, which is the attribute with an underscore before the name; added to those of the
    base classes."""

    horizon: int | None = None
    seed: int = 0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.title = vars(cls).get("title", _full_name(cls))
        cls.colour = vars(cls).get("colour")
        Agent._classes[_full_name(cls)] = cls

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # JSON supports only Python's own numbers
                setattr(self, field.name, value.item())
        self.horizon = None if self.horizon is None else integer("horizon", self.horizon, least=1)
        self.seed = integer("seed", self.seed)
        self._asked = 0
        self._pending: dict[int, AskedT] = {}
        self._rng = Stream(np.random.PCG64(self.seed))

    # ------------------------------------------------------------------ public methods

    def ask(self, actions: Actions = None) -> AskedT:
        """Choose what to try next.

        Args:
            actions: The features of the actions, shape (K, d) with norms ≤ 1, or an implicit action set. A K-armed
                agent needs none.

        Returns:
            A duel or a pull, to be passed to :meth:`tell` or :meth:`cancel`.
        """
        kept = self._ask(actions)
        self._pending[kept.number] = kept
        self._asked += 1
        # The agent keeps its own arrays, so that callers cannot change what it learns from.
        return kept.copied()

    def ask_many(self, actions: Actions, count: int) -> list[AskedT]:
        """Ask ``count`` times; each choice takes the pending ones before it into account."""
        return [self.ask(actions) for _ in range(integer("count", count, least=1))]

    def tell(self, asked: AskedT, answer: Answer) -> None:
        """Learn the answer to a duel or a pull that :meth:`ask` returned.

        Args:
            asked: What :meth:`ask` returned; answers may arrive late and in any order, but only once.
            answer: An :class:`~fairduel.Outcome` for a duel, a reward for a pull.

        Raises:
            UnknownDuelError: The agent is not waiting for this answer.
        """
        checked = self._checked_answer(answer)
        self._tell(self._release(asked), checked)

    def cancel(self, asked: AskedT) -> None:
        """Withdraw a duel or a pull that will never be answered."""
        self._cancel(self._release(asked))

    @abstractmethod
    def recommend(self, actions: Actions = None) -> int:
        """Return the index of the action that is best according to everything learned so far."""

    @property
    def asked(self) -> int:
        """How many times the agent has asked, including what was cancelled."""
        return self._asked

    @property
    def pending(self) -> tuple[AskedT, ...]:
        """Read-only copies of what was asked but neither told nor cancelled."""
        return tuple(kept.copied() for kept in self._pending.values())

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, resolved, ready for JSON."""
        names = [name for kind in type(self).__mro__ for name in vars(kind).get("_resolved", ())]
        return self._given() | {name: _named(getattr(self, f"_{name}")) for name in names}

    def _given(self) -> dict[str, Any]:
        """Every setting as given, with links and maps by name."""
        return {field.name: _named(getattr(self, field.name)) for field in dataclasses.fields(self)}

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _ask(self, actions: Actions) -> AskedT:
        """Choose, and return an object with the number ``self._asked``."""

    @abstractmethod
    def _tell(self, asked: AskedT, answer: Answer) -> None:
        """Learn the answer."""

    @abstractmethod
    def _checked_answer(self, answer: Answer) -> Answer:
        """Return the answer if it is valid."""

    def _cancel(self, asked: AskedT) -> None:
        """Undo what ``_ask`` changed; nothing by default."""

    def _planned_horizon(self) -> int:
        """The horizon, for an agent that requires one."""
        if self.horizon is None:
            raise BadInputError(f"{type(self).__name__} needs a horizon to plan its epochs or levels; set horizon.")
        return self.horizon

    def _horizon_or(self, round_number: int) -> int:
        """The horizon, or this round if there is none."""
        return round_number if self.horizon is None else self.horizon

    # ------------------------------------------------------------------ saving and loading

    def state(self) -> dict[str, Any]:
        """Return the agent's complete state as nested dictionaries of JSON values and arrays."""
        return {
            "version": FORMAT,
            "agent": _full_name(type(self)),
            "settings": self._given(),
            "random": self._rng.bit_generator.state,
            "asked": self._asked,
            "pending": {str(number): asked.state() for number, asked in self._pending.items()},
            "memory": {name: _copied(getattr(self, name)) for name in self._memory},
            **{name.removeprefix("_"): _state_of(getattr(self, name)) for name in self._parts},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent[Any, Any]":
        """Rebuild an agent from :meth:`state`; it continues exactly where the original stopped.

        Nothing but built-in agents is imported, so a class of yours must already be defined.
        """
        check_format(state)
        kind = _class_named(state["agent"])
        if not issubclass(kind, cls):
            raise BadInputError(f"it contains an agent of class {_full_name(kind)}, not {_full_name(cls)}.")
        agent = kind._from_settings(state["settings"])  # noqa: SLF001
        agent._restore(state)  # noqa: SLF001
        agent._check_restored()  # noqa: SLF001
        return agent

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make a new agent with saved settings."""
        return cls(**settings)

    def _restore(self, state: dict[str, Any]) -> None:
        """Load the state; :meth:`_check_restored` validates most of it afterwards."""
        self._rng.bit_generator.state = _checked_stream(state["random"])
        self._asked = integer("asked", state["asked"])
        for number, fields in state["pending"].items():
            kept: Any = self._asks.from_state(fields)
            ensure(str(kept.number) == number, "the number of a pending duel or pull is inconsistent")
            self._pending[kept.number] = kept
        for name in self._memory:
            setattr(self, name, like(getattr(self, name), state["memory"][name], name))
        for name in self._parts:
            parts, saved = getattr(self, name), state[name.removeprefix("_")]
            for i, part in enumerate(parts if isinstance(parts, list) else [parts]):
                part.restore(saved[str(i)] if isinstance(parts, list) else saved, self._asked - len(self._pending))

    def _check_restored(self) -> None:
        """Reject a state that an agent with these settings cannot have."""
        for kept in self._pending.values():
            ensure(kept.number < self._asked, f"{kept} is pending, but only {self._asked} were asked")
            self._check_pending(kept)

    def _check_pending(self, asked: AskedT) -> None:
        """Reject a pending duel or pull that this agent cannot have asked."""
        d, m = getattr(self, "dimension", None), getattr(self, "_size", None)
        shapes = {array.shape for _, array in asked._arrays()}  # noqa: SLF001
        ensure(d is None or shapes <= {(0,), (d,), (2, d), (m,)}, f"{asked} does not fit {d} features")

    def save(self, path: str | Path) -> None:
        """Save the agent to one file, atomically."""
        write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load an agent from a file written by :meth:`save`.

        Raises:
            BadInputError: The file does not contain a valid agent.
        """
        state = read_state(Path(path))
        try:
            agent = cls.from_state(state)
        except BadInputError as error:
            raise BadInputError(f"cannot load {path}: {error}") from error
        except Exception as error:  # an invalid state can raise anything, also in a user's class
            raise BadInputError(f"cannot load {path}: {type(error).__name__}: {error}.") from error
        assert isinstance(agent, cls)
        return agent

    def _release(self, asked: AskedT) -> AskedT:
        """Remove a pending duel or pull, and return the agent's own copy of it."""
        if not isinstance(asked, Asked):
            raise BadInputError(f"pass the object that ask returned, not {asked!r}.")
        kept = self._pending.get(asked.number)
        if kept is not None and kept.same_as(asked):
            return self._pending.pop(asked.number)
        if kept is not None or not 0 <= asked.number < self._asked:
            raise UnknownDuelError(f"{asked} was never asked by this agent.")
        raise UnknownDuelError(f"{asked} was already told or cancelled.")


@dataclass(kw_only=True, eq=False)
class DuelingAgent(Agent[DuelT, Outcome]):
    """An agent that asks duels and learns from their outcomes; a tie counts as half a win for each."""

    _asks: ClassVar[type[Asked]] = Duel

    def _checked_answer(self, answer: Outcome) -> Outcome:
        if not isinstance(answer, Outcome):
            raise BadInputError(f"the outcome must be Outcome.FIRST, SECOND or TIE, not {answer!r}.")
        return answer


@dataclass(kw_only=True, eq=False)
class RewardAgent(Agent[PullT, float]):
    """An agent that pulls one action at a time and learns from its reward."""

    _asks: ClassVar[type[Asked]] = Pull

    def _checked_answer(self, answer: float) -> float:
        return finite("a reward", answer)


@dataclass(kw_only=True, eq=False)
class KArmed:
    """Mixin for an agent with K arms and no features; ``ask`` ignores what the actions are.

    Args:
        arms: K, the number of arms.
    """

    arms: int

    def __post_init__(self) -> None:
        self.arms = integer("arms", self.arms, least=2)
        super().__post_init__()  # type: ignore[misc]  # next in the MRO

    def _check_count(self, actions: Actions) -> None:
        if isinstance(actions, ActionSet):
            raise BadInputError(f"{type(self).__name__} identifies arms by index; pass no actions, or a list of them.")
        try:
            count = self.arms if actions is None else len(actions)  # type: ignore[arg-type]  # or it has none
        except TypeError:
            count = 0
        if count != self.arms:
            raise BadInputError(f"{type(self).__name__} has {self.arms} arms but got {count} actions.")

    def _check_pending(self, asked: Any) -> None:
        super()._check_pending(asked)  # type: ignore[misc]
        indices = (asked.first, asked.second) if isinstance(asked, Duel) else (asked.action,)
        ensure(max(indices) < self.arms, f"{asked} is pending, but there are {self.arms} arms")
        ensure(all(array.shape == (0,) for _, array in asked._arrays()), f"{asked} has features")  # noqa: SLF001


@dataclass(kw_only=True, eq=False)
class Featured:
    """Mixin for an agent whose rewards are linear in features: xᵀθ*.

    Args:
        dimension: d, the number of features of an action.
        norm_bound: B, an upper bound on ‖θ*‖; never estimated from data.
    """

    dimension: int
    norm_bound: float

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # next in the MRO
        self.dimension = integer("dimension", self.dimension, least=1)
        self.norm_bound = positive("norm_bound", self.norm_bound)

    def _listed(self, actions: Actions) -> Matrix:
        """The actions as a checked array (K, d), for an agent that needs a list."""
        if actions is None or isinstance(actions, ActionSet):
            raise BadInputError(f"{type(self).__name__} needs the actions as a list of features, one row each.")
        return checked_actions(actions, self.dimension)


def check_difference(duel: Duel, dimension: int) -> None:
    """Reject a pending duel with the wrong number of features, or with a difference that is too long."""
    ensure(duel.difference.shape == (dimension,), f"{duel} does not fit {dimension} features")
    ensure(np.linalg.norm(duel.difference) <= LONGEST_DIFFERENCE, f"the difference of {duel} is too long")


def _class_named(name: str) -> type[Agent[Any, Any]]:
    """Find the class of a saved agent among the built-in ones and those that are defined.

    A class defined in a script (``__main__``) has another module when the script is imported.
    """
    ensure(isinstance(name, str), "the saved agent does not name its class")
    known = agents.AGENTS.name_of(name)
    if known is not None:
        return agents.AGENTS[known]
    classes = Agent._classes  # noqa: SLF001
    if name in classes:
        return classes[name]
    module, _, bare = name.rpartition(":")
    if module == "__main__":
        imported = (c for c in classes.values() if c.__qualname__ == bare and not c.__module__.startswith("fairduel."))
        found = next(imported, None)
        if found is not None:
            return found
    raise BadInputError(f"the saved agent's class {name} is not defined; import its module first.")


def _checked_stream(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a PCG64 stream after checking it."""
    inner = state["state"]
    numbers = (inner["state"], inner["inc"], state["has_uint32"], state["uinteger"])
    limits = (2**128, 2**128, 2, 2**32)
    ensure(
        state["bit_generator"] == "PCG64"
        and all(type(n) is int and 0 <= n < limit for n, limit in zip(numbers, limits, strict=True))
        and inner["inc"] % 2 == 1,
        "its random stream is not a valid PCG64 state",
    )
    return state


def _state_of(part: Any) -> dict[str, Any]:
    """The state of a part, or of each in a list."""
    return {str(i): each.state() for i, each in enumerate(part)} if isinstance(part, list) else part.state()


def _named(value: Any) -> Any:
    return str(value) if isinstance(value, (Link, FeatureMap)) else value


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return list(value) if isinstance(value, list) else value


def like(new: Any, saved: Any, name: str) -> Any:
    """Return a copy of a ``saved`` attribute after checking that it fits the ``new`` agent's value.

    NaN is rejected, and infinities too unless the new value has some.
    """
    if isinstance(new, np.ndarray):
        ensure(isinstance(saved, np.ndarray) and saved.dtype == new.dtype, f"{name} is not an array of {new.dtype}")
        fits = saved.ndim == new.ndim and all(n in {0, m} for n, m in zip(new.shape, saved.shape, strict=True))
        ensure(fits, f"{name} has shape {saved.shape} where a new agent has {new.shape}")
        numbers = saved if new.dtype.kind == "f" else np.zeros(0)
        ensure(not np.isnan(numbers).any(), f"{name} contains NaN")
        ensure(np.isfinite(numbers).all() or np.isinf(new).any(), f"{name} is not finite")
    elif isinstance(new, (bool, str, list)):
        ensure(type(saved) is type(new), f"{name} is {saved!r} where a new agent has {new!r}")
    elif isinstance(new, (int, float)):
        ensure(type(saved) in {int, float} and not math.isnan(saved), f"{name} is {saved!r}, not a number")
        ensure(math.isfinite(saved) or math.isinf(new), f"{name} is not finite")
    return _copied(saved)
