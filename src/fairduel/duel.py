"""The words of every round: a duel or a pull that was asked, and the outcome of a duel."""

import dataclasses
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import at_least_zero, boolean, ensure, finite, integer

Vector = NDArray[np.float64]  # (d,) or (K,)
Matrix = NDArray[np.float64]  # (d, d), (K, d), …


class Outcome(Enum):
    """Who won a duel, if anybody did."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"

    @property
    def flipped(self) -> "Outcome":
        """What an adversary turns it into; a tie stays a tie.

        >>> Outcome.FIRST.flipped
        <Outcome.SECOND: 'second'>
        """
        return {Outcome.FIRST: Outcome.SECOND, Outcome.SECOND: Outcome.FIRST}.get(self, self)

    @property
    def first_share(self) -> float:
        """How much of a win it is for the first: 1, 0, or ½ of a tie.

        >>> Outcome.TIE.first_share
        0.5
        """
        return 0.5 if self is Outcome.TIE else float(self is Outcome.FIRST)


class Asked:
    """What an agent asked. Keep it and hand it back to ``tell`` of that agent, at any time and in any order.

    An agent that must know more when it is told declares a subclass of :class:`Duel` or :class:`Pull` with fields of
    its own, and names it in ``_asks``. A field is an ``int`` from 0 on, or ``int | None``; a ``bool``; a ``float``; or
    an array of floats, declared with ``compare=False``.
    """

    __slots__ = ()
    number: int

    def same_as(self, other: Self) -> bool:
        """Whether the other is equal, arrays included."""
        return self == other and all(np.array_equal(array, getattr(other, name)) for name, array in self._arrays())

    def copied(self) -> Self:
        """A twin whose arrays are its own and cannot be written to."""
        twin = dataclasses.replace(self, **{name: array.copy() for name, array in self._arrays()})  # type: ignore[type-var]
        for _, array in twin._arrays():  # noqa: SLF001
            array.setflags(write=False)
        return twin

    def state(self) -> dict[str, Any]:
        """All fields, as JSON values and arrays."""
        return dict(self._fields())

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """What gave ``state``; NaN is allowed only in what the agent has no use for (``width``, ``slope``)."""
        types = {field.name: field.type for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: _checked_field(name, types[name], value) for name, value in state.items()})

    def _fields(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__dataclass_fields__]  # type: ignore[attr-defined]

    def _arrays(self) -> list[tuple[str, Vector]]:
        return [(name, value) for name, value in self._fields() if isinstance(value, np.ndarray)]


def _checked_field(name: str, kind: Any, value: Any) -> Any:
    """Return one saved field of a duel or a pull, if it is of its ``kind``."""
    if kind is bool:
        return boolean(f"a pending {name}", value)
    if kind in (int, int | None):
        return None if value is None and kind is not int else integer(name, value)
    if kind is float:
        is_unused = name in {"width", "slope"} and type(value) is float and math.isnan(value)
        check = at_least_zero if name in {"weight", "width", "slope", "gap"} else finite
        return value if is_unused else check(f"a pending {name}", value)
    ensure(isinstance(value, np.ndarray) and value.dtype == np.float64, f"a pending {name} is not an array of floats")
    ensure(np.isfinite(value).all(), f"a pending {name} is not finite")
    return value.copy()


def _no_features() -> Vector:
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Duel(Asked):
    """One comparison that an agent asked, with what it knew at that moment.

    >>> Duel(number=0, first=3, second=5).is_self_duel
    False
    """

    number: int
    """Running number among the duels of its agent, from 0."""
    first: int
    """Index of the first action; in a set that cannot be numbered 0, and the second's is 1."""
    second: int
    """Index of the second action; equal to ``first`` in a self-duel."""
    difference: Vector = field(default_factory=_no_features, repr=False, compare=False)
    """φ = x_first − x_second, shape (d,); empty for an agent without features."""
    weight: float = 1.0
    """w of eq. (weight), frozen when the duel was asked."""
    width: float = field(default=math.nan, compare=False)
    """‖φ‖ in the norm of Σ⁻¹ when the duel was asked."""
    slope: float = field(default=math.nan, compare=False)
    """How much the duel informs: κ, 1, or v_t of RCDB-S."""
    features: Matrix = field(default_factory=_no_features, repr=False, compare=False)
    """The two actions themselves, shape (2, d), if they come from a set that is not listed; else empty."""
    gap: float = 0.0
    """How far the pair's score can be from the best one's of such a set, at most; 0 if it is the best."""

    @property
    def is_self_duel(self) -> bool:
        """Whether one action was asked against itself, which carries no information."""
        return self.first == self.second

    def __str__(self) -> str:
        return f"duel {self.number} ({self.first} against {self.second})"


@dataclass(frozen=True, slots=True)
class Pull(Asked):
    """One action that an agent tries, to be told its reward.

    >>> print(Pull(number=0, action=3))
    pull 0 (of 3)
    """

    number: int
    """Running number among the pulls of its agent, from 0."""
    action: int
    """Index of the action."""
    features: Vector = field(default_factory=_no_features, repr=False, compare=False)
    """x of the action, shape (d,); empty for an agent without features."""
    weight: float = 1.0
    """How much the agent will trust the reward."""
    width: float = field(default=math.nan, compare=False)
    """‖x‖ in the norm of Σ⁻¹ when it was asked."""

    def __str__(self) -> str:
        return f"pull {self.number} (of {self.action})"
