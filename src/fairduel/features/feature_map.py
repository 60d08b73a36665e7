"""What a feature map is: actions in, features in which rewards are linear out."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fairduel.checks import ensure, integer
from fairduel.core.information import checked_array, effective_dimension
from fairduel.core.links import Link
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name

LEARNED = "votes"
"""A length scale that the votes choose."""
_VOTES = 100.0  # of which the effective dimension counts the directions
_REFERENCE = 512  # rows that stand for actions that are not known in advance
_MOST_ACTIONS = 1000  # of which features are made exactly; of more, this many are drawn


_KINDS: dict[str, type["FeatureMap"]] = {}
"""Every class of maps, by its full name."""


class TrainingVotes(NamedTuple):
    """What a map learns from: n answered duels."""

    first: Matrix
    """The actions that were asked first, shape (n, d)."""
    second: Matrix
    """Those that were asked second, shape (n, d)."""
    weights: Vector
    """How much each counts, shape (n,)."""
    shares: Vector
    """The first action's share of the win: 1, 0, or ½ for a tie, shape (n,)."""


class FeatureMap(ABC):
    """A map φ from actions (K, d) to features (K, m) with norms ≤ 1, in which rewards are linear.

    A map is first declared and then fitted: to all actions, if they are known in advance, or else only to their number
    of features. :meth:`fit` returns a new map and leaves this one as it is. A subclass calls ``super().__init__`` with
    its settings, which must be JSON values and the constructor's arguments, and implements :meth:`learn` and
    :meth:`mapped`. Everything learned is in ``arrays``, so that the map can be saved with its agent.

    >>> from fairduel.features import Quadratic
    >>> quadratic = Quadratic().fit(2)
    >>> quadratic.size, quadratic([[1.0, 0.0], [0.6, 0.8]]).shape
    (5, (2, 5))
    """

    name: ClassVar[str] = ""
    """Its name in text such as ``"rbf(0.5)"``; a map without one is written as its class."""
    needs_actions: ClassVar[bool] = False
    """Whether it can only be fitted to actions."""
    learns: bool = False
    """Whether the votes change it, by :meth:`trained`, as they do a network."""
    every: int = 25
    """The fewest votes between two refits of a map that learns."""
    growth: float = 1.1
    """The votes at its next refit over those at the last, at least."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _KINDS[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        """The constructor's arguments."""
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        """What was learned."""
        self.dimension = 0
        """d, the number of features of an action; 0 until the map is fitted."""
        self.size = 0
        """m, the number of features that it returns; 0 until the map is fitted."""
        self.reference: Matrix = np.empty((0, 0))
        """Features of the actions that it was fitted to, or of others that stand for them, shape (n, m)."""

    @abstractmethod
    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:
        """Fill ``arrays`` by ``actions`` (n, d): all actions if ``are_known``, else random ones of norm 1."""

    @abstractmethod
    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d), shape (K, m)."""

    def fit(self, dimension: int, actions: Matrix | None = None, seed: int = 0) -> Self:
        """Return this map, fitted.

        Args:
            dimension: d.
            actions: All actions, shape (n, d), if they are known in advance.
            seed: Seed of random features, and of actions that stand for unknown ones.
        """
        dimension = integer("dimension", dimension, least=1)
        rng = np.random.default_rng([seed, 0x0FEA7])
        if actions is None and self.needs_actions:
            raise BadInputError(
                f"the feature map {self} learns from actions; fit it first: map.fit({dimension}, actions)."
            )
        known = rng.standard_normal((_REFERENCE, dimension)) if actions is None else _distinct(actions, dimension, rng)
        if actions is None:
            known /= np.linalg.norm(known, axis=1, keepdims=True) * (1.0 + 1e-12)
        fitted = self.unfitted()
        fitted.learn(known, rng, are_known=actions is not None)
        fitted.settle(dimension, known)
        return fitted

    def trained(self, ballots: TrainingVotes, *, link: Link, ridge: float, actions: Matrix | None = None) -> Self:
        """Return a map that learns after a refit to all votes, and leave this one as it is.

        Args:
            ballots: The votes.
            link: σ.
            ridge: λ.
            actions: What to centre and scale the features by, shape (n, d); ``None`` leaves that as it is.
        """
        raise NotImplementedError

    def settle(self, dimension: int, known: Matrix) -> None:
        """Take over what was learned, after checking the features of the ``known`` actions (n, d)."""
        self.dimension = dimension
        reference = np.asarray(self.mapped(known), dtype=np.float64)
        if reference.ndim != 2 or len(reference) != len(known):
            raise BadInputError(f"the feature map {self} must return one row per action, not shape {reference.shape}.")
        if not np.isfinite(reference).all() or np.linalg.norm(reference, axis=1).max() > 1.0 + 1e-6:
            raise BadInputError(
                f"the feature map {self} must return finite features with norms of at most 1; divide them by the "
                "largest norm."
            )
        self.reference, self.size = reference, reference.shape[1]

    def unfitted(self) -> Self:
        """Return an unfitted map with these settings."""
        return type(self)(**self.settings)

    def __call__(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d), shape (K, m)."""
        if not self.is_fitted:
            raise BadInputError(f"the feature map {self} is not fitted; call fit first.")
        return np.ascontiguousarray(self.mapped(np.asarray(actions, dtype=np.float64)), dtype=np.float64)

    @property
    def is_fitted(self) -> bool:
        """Whether it can be applied."""
        return self.dimension > 0

    def effective_dimension(self) -> float:
        """tr(Σ(Σ + I)⁻¹) for Σ of a hundred actions: how many directions they reveal; at least 1.

        It takes the place of d in the defaults of agents.

        >>> from fairduel.features import Kernel
        >>> wide, narrow = (Kernel("rbf", scale=scale).fit(2).effective_dimension() for scale in (2.0, 0.2))
        >>> bool(1.0 < wide < narrow < 60.0)
        True
        """
        centred = self.reference - self.reference.mean(axis=0)
        return max(effective_dimension(centred * np.sqrt(_VOTES / len(centred)), ridge=1.0), 1.0)

    def __str__(self) -> str:
        values = [value for value in self.settings.values() if value is not None]
        inside = f"({', '.join(map(str, values))})" if values else ""
        return (self.name or type(self).__name__) + inside

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.settings.items())})"

    # ------------------------------------------------------------------ saving and loading

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs, as nested dictionaries of JSON values and arrays."""
        return {
            "map": f"{type(self).__module__}:{type(self).__qualname__}",
            "settings": dict(self.settings),
            "dimension": self.dimension,
            "size": self.size,
            "arrays": {name: array.copy() for name, array in self.arrays.items()} | {"reference": self.reference},
        }

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "FeatureMap":
        """Rebuild a fitted map from :meth:`state`; a class of yours must already be defined."""
        kind = _KINDS.get(state["map"])
        if kind is None:
            raise BadInputError(f"the saved feature map {state['map']} is not defined; import its module first.")
        made = kind(**state["settings"])
        made.restore(state)
        return made

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state` returned, after checking it."""
        self.dimension, self.size = (integer(name, state[name], least=1) for name in ("dimension", "size"))
        arrays = dict(state["arrays"])
        for name, array in arrays.items():
            ensure(
                isinstance(array, np.ndarray) and array.dtype == np.float64, f"{name} of the map is no array of floats"
            )
            ensure(np.isfinite(array).all(), f"{name} of the map is not finite")
        reference = arrays.pop("reference")
        self.reference = checked_array("the map's reference", reference, (len(reference), self.size))
        self.arrays = {name: np.array(array, order="C") for name, array in arrays.items()}


def _distinct(actions: Matrix, dimension: int, rng: np.random.Generator) -> Matrix:
    """Return the distinct rows of ``actions`` (n, d) in their order, at most a thousand of them."""
    rows = np.array(actions, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != dimension or not len(rows) or not np.isfinite(rows).all():
        raise BadInputError(f"a map is fitted to finite actions of shape (n, {dimension}), not {rows.shape}.")
    _, first = np.unique(rows, axis=0, return_index=True)
    kept = np.sort(first)
    if len(kept) > _MOST_ACTIONS:
        kept = np.sort(rng.choice(kept, _MOST_ACTIONS, replace=False))
    return rows[kept]


class Chain(FeatureMap):
    """Several maps, one after another.

    >>> from fairduel.features import as_map
    >>> chain = as_map("whitened(2)|rbf(1.0)")
    >>> chain.fit(4, np.eye(4)).size <= 60
    True
    """

    def __init__(self, *maps: "FeatureMap", steps: list[dict[str, Any]] | None = None) -> None:
        made = [_declared(step) for step in steps] if steps is not None else list(maps)
        if len(made) < 2:
            raise BadInputError("a chain needs at least two feature maps.")
        for each in made:
            if each.learns:
                raise BadInputError(f"{each} learns from an agent's votes, so it cannot be part of a chain.")
        self.maps = made
        super().__init__(steps=[{"map": _kind(each), "settings": dict(each.settings)} for each in made])

    @property
    def needs_actions(self) -> bool:  # type: ignore[override]
        """Whether any of them can only be fitted to actions."""
        return any(each.needs_actions for each in self.maps)

    def unfitted(self) -> "Chain":
        """Return an unfitted chain of these maps."""
        return Chain(*(each.unfitted() for each in self.maps))

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:
        """Fit one map after another."""
        fitted, seen = [], actions
        for each in self.maps:
            seed = int(rng.integers(2**31))
            step = each.unfitted()
            step.learn(seen, np.random.default_rng(seed), are_known=are_known)
            step.settle(seen.shape[1], seen)
            seen = step.reference
            fitted.append(step)
        self.maps = fitted

    def mapped(self, actions: Matrix) -> Matrix:
        """Apply one map after another."""
        for each in self.maps:
            actions = each.mapped(actions)
        return actions

    def __str__(self) -> str:
        return "|".join(map(str, self.maps))

    def state(self) -> dict[str, Any]:
        """Return everything that ``from_state`` needs."""
        return super().state() | {"maps": {str(i): each.state() for i, each in enumerate(self.maps)}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state` returned, after checking it."""
        super().restore(state)
        self.maps = [FeatureMap.from_state(state["maps"][str(i)]) for i in range(len(self.maps))]


def _kind(made: FeatureMap) -> str:
    return f"{type(made).__module__}:{type(made).__qualname__}"


def _declared(step: Mapping[str, Any]) -> FeatureMap:
    kind = _KINDS.get(step["map"])
    if kind is None:
        raise BadInputError(f"the saved feature map {step['map']} is not defined; import its module first.")
    return kind(**step["settings"])


def as_map(given: "FeatureMap | str") -> FeatureMap:
    """Return the map itself, or the one that text such as ``"rbf(0.5)"`` or ``"whitened(32)|rbf"`` names.

    >>> [str(as_map(text)) for text in ("quadratic", "rbf", "matern52(0.5)", "whitened(8)|rbf(1.0, 128)")]
    ['quadratic', 'rbf', 'matern52(0.5)', 'whitened(8)|rbf(1.0, 128)']
    """
    if isinstance(given, FeatureMap):
        return given
    parts = [_named(part) for part in str(given).split("|")]
    return parts[0] if len(parts) == 1 else Chain(*parts)


def _named(text: str) -> FeatureMap:
    from fairduel.features import MAPS  # noqa: PLC0415  # which imports this module

    match = re.fullmatch(r"\s*([\w-]+(?::\w+)?)\s*(?:\(([^()]*)\))?\s*", text)
    known = match and (match[1] in MAPS or match[1] in _KINDS)
    if match is None or not known:
        raise unknown_name("feature map", match[1] if match else text.strip(), MAPS)
    make: Any = MAPS.get(match[1]) or _KINDS[match[1]]
    try:
        values = [_value(value.strip()) for value in (match[2] or "").split(",") if value.strip()]
    except ValueError:
        raise BadInputError(
            f"the feature map {text.strip()!r} needs numbers in its brackets, as in rbf(0.5)."
        ) from None
    try:
        made: FeatureMap = make(*values)
    except TypeError:
        raise BadInputError(f"the feature map {text.strip()!r} does not take {len(values)} numbers.") from None
    return made


def _value(text: str) -> float | int | str:
    """Read a number, of which a whole one stays whole, or the name of a scale that is learned."""
    if text == LEARNED:
        return text
    return float(text) if "." in text or "e" in text else int(text)
