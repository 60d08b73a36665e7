"""Shared vocabulary: duels and pulls that an agent asked, and the outcome of a duel."""

import dataclasses
import functools
import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import at_least_zero, boolean, ensure, finite, integer

Vector = NDArray[np.float64]  # (d,) or (K,)
Matrix = NDArray[np.float64]  # (d, d), (K, d), …


_FEW = 4096  # copies of at most this many numbers are compared faster than the arrays


class Outcome(Enum):
    """Who won a duel: ``FIRST``, ``SECOND``, or neither (``TIE``)."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"

    @property
    def flipped(self) -> "Outcome":
        """The outcome after an adversary flips it; a tie stays a tie.

        >>> Outcome.FIRST.flipped
        <Outcome.SECOND: 'second'>
        """
        return {Outcome.FIRST: Outcome.SECOND, Outcome.SECOND: Outcome.FIRST}.get(self, self)

    @property
    def first_share(self) -> float:
        """The first action's share of the win: 1, 0, or ½ for a tie.

        >>> Outcome.TIE.first_share
        0.5
        """
        return 0.5 if self is Outcome.TIE else float(self is Outcome.FIRST)


class Asked:
    """What an agent asked. Keep it and pass it back to that agent's ``tell``, at any time and in any order.

    An agent that needs more information in ``tell`` declares a subclass of :class:`Duel` or :class:`Pull` with extra
    fields, and names it in ``_asks``. A field is a non-negative ``int``, or ``int | None``; a ``bool``; a ``float``; or
    an array of floats, declared with ``compare=False``.
    """

    __slots__ = ()
    number: int

    def same_as(self, other: Self) -> bool:
        """Whether ``other`` is equal, arrays included."""
        return self == other and all(same_array(array, getattr(other, name)) for name, array in self._arrays())

    def copied(self) -> Self:
        """Return a copy with its own, read-only arrays."""
        values = dict(self._fields())
        for name in _array_fields(type(self)):  # type: ignore[arg-type]
            if values[name].size:
                values[name] = array = values[name].copy()
                array.setflags(write=False)
        return type(self)(**values)

    def state(self) -> dict[str, Any]:
        """All fields, as JSON values and arrays."""
        return dict(self._fields())

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the object from :meth:`state`; only ``width`` and ``slope``, which agents may ignore, can be NaN."""
        types = {field.name: field.type for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: _checked_field(name, types[name], value) for name, value in state.items()})

    def _fields(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.__dataclass_fields__]  # type: ignore[attr-defined]

    def _arrays(self) -> list[tuple[str, Vector]]:
        return [(name, getattr(self, name)) for name in _array_fields(type(self))]  # type: ignore[arg-type]


@functools.cache
def _array_fields(kind: type[Asked]) -> tuple[str, ...]:
    """The names of the fields that are arrays."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return tuple(field.name for field in fields if field.type not in (bool, int, int | None, float))


def same_array(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays are equal; faster than NumPy's ``array_equal`` for small ones.

    >>> same_array(np.zeros(2), np.zeros(2)), same_array(np.zeros(2), np.zeros((1, 2)))
    (True, False)
    """
    if one.shape != other.shape:
        return False
    is_small = one.size <= _FEW
    return (is_small and one.tobytes() == other.tobytes()) or bool((one == other).all())


def _checked_field(name: str, kind: Any, value: Any) -> Any:
    """Return a saved field of a duel or a pull after checking its type."""
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
    """One comparison that an agent asked, with what the agent knew at that moment.

    Args:
        number: Running number among the agent's duels, from 0.
        first: Index of the first action; 0 if the actions cannot be numbered, and then ``second`` is 1.
        second: Index of the second action; equal to ``first`` in a self-duel.
        difference: φ = x_first − x_second, shape (d,); empty for an agent without features.
        weight: w of eq. (weight), fixed when the duel was asked.
        width: ‖φ‖ in the norm of Σ⁻¹, or H⁻¹ of GINOP and HCW, when the duel was asked.
        slope: How much the duel informs: κ, 1, v_t of RCDB-S, or σ′(φᵀθ) of GINOP and HCW.
        features: The two actions, shape (2, d), if they come from an implicit action set; otherwise empty.
        gap: How far the pair's score can be from the best score of an implicit set; 0 if it is the best.

    >>> Duel(number=0, first=3, second=5).is_self_duel
    False
    """

    number: int
    first: int
    second: int
    difference: Vector = field(default_factory=_no_features, repr=False, compare=False)
    weight: float = 1.0
    width: float = field(default=math.nan, compare=False)
    slope: float = field(default=math.nan, compare=False)
    features: Matrix = field(default_factory=_no_features, repr=False, compare=False)
    gap: float = 0.0

    @property
    def is_self_duel(self) -> bool:
        """Whether an action duels itself, which carries no information."""
        return self.first == self.second

    def __str__(self) -> str:
        return f"duel {self.number} ({self.first} against {self.second})"


@dataclass(frozen=True, slots=True)
class Pull(Asked):
    """One action that an agent pulls in order to learn its reward.

    Args:
        number: Running number among the agent's pulls, from 0.
        action: Index of the action.
        features: x of the action, shape (d,); empty for an agent without features.
        weight: How much the agent will trust the reward.
        width: ‖x‖ in the norm of Σ⁻¹ when the pull was asked.

    >>> print(Pull(number=0, action=3))
    pull 0 (of 3)
    """

    number: int
    action: int
    features: Vector = field(default_factory=_no_features, repr=False, compare=False)
    weight: float = 1.0
    width: float = field(default=math.nan, compare=False)

    def __str__(self) -> str:
        return f"pull {self.number} (of {self.action})"
