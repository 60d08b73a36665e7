"""The settings of contextual dueling agents, their defaults, and the radius."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fairduel.agents.parts.agent import DuelingAgent, Featured
from fairduel.checks import boolean, fraction, integer, literal, number_or_name, positive
from fairduel.core.estimators import EstimatorName
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.radius import rcdb_ridge
from fairduel.duel import Duel
from fairduel.errors import BadInputError
from fairduel.features import FeatureMap, as_map

_MAPPED_RADIUS = 0.3  # β over its value without a map, for the same effective dimension; chosen on other worlds
_USUAL_DIMENSION = 5.0  # in which rewards xᵀθ of unit vectors x have a range of about 2‖θ‖
RecommendBy = Literal["votes", "estimate"]


@dataclass(kw_only=True, eq=False)
class ContextualSettings(Featured, DuelingAgent[Duel]):
    """Everything that a contextual dueling agent is told, checked and resolved.

    Args:
        dimension: d, the number of features of an action.
        norm_bound: B, an upper bound on ‖θ*‖; never estimated from data.
        items: The number of items of a poll without features, in place of ``dimension``; ``ask`` and ``recommend`` then
            need no actions, because every item has a feature of its own. B defaults to √``items``, which suits scores
            with a standard deviation of 1.
        map: A :class:`~fairduel.features.FeatureMap` or its text, such as ``"rbf(0.5)"``: rewards are then linear in
            the features that it makes of an action, and every default uses their effective dimension and a norm in
            their space in place of d and B. B is then half the range of rewards. If all actions are known in advance,
            fit the map to them.
        link: σ, a :class:`~fairduel.core.links.Link` or its name.
        kappa: κ, the smallest slope of the link; ``None`` derives it from the link and the norm bound.
        ridge: λ; ``None`` uses the theorem's value.
        radius: β, the confidence radius: ``"practical"``, ``"theory"`` or a number.
        radius_scale: A factor on the radius.
        failure_probability: δ of the theory radius.
        warmup: τ, the number of initial duels between random distinct actions.
        self_duels: Whether an action may duel itself, as the paper's argmax allows. ``False`` when people answer;
            ``None`` allows it unless there are ``items``.
        constrained: Whether the estimate is constrained to ‖θ‖ ≤ B; the paper's is not.
        estimator: ``"exact"`` computes the MLE in every round, as in the paper; ``"lazy"`` only when det Σ has doubled
            and there are 10% more outcomes; ``"one-pass"`` uses mirror descent, which stores no outcomes.
        recommend_by: ``"votes"``: :meth:`recommend` trusts all recorded votes equally, except for a stretch that
            contradicts the rest (see :meth:`conclude`). ``"estimate"``: it uses the estimate that ``ask`` uses, as
            is the default with a ``map``, because early lies can outnumber the honest votes that matter.
    """

    published_settings: ClassVar[dict[str, str]] = {"radius": "theory"}
    _resolved: ClassVar[tuple[str, ...]] = ("link", "kappa", "ridge")

    if TYPE_CHECKING:  # what they are once an agent is made
        dimension: int = 0
        norm_bound: float = 0.0
        self_duels: bool = True
    else:
        dimension: int | None = None
        norm_bound: float | None = None
        self_duels: bool | None = None
    items: int | None = None
    map: FeatureMap | str | None = None
    link: Link | str = LOGISTIC
    kappa: float | None = None
    ridge: float | None = None
    radius: float | str = "practical"
    radius_scale: float = 1.0
    failure_probability: float = 0.05
    warmup: int = 0
    constrained: bool = False
    estimator: EstimatorName = "exact"
    recommend_by: RecommendBy | None = None

    def __post_init__(self) -> None:
        self._set_up_items()
        super().__post_init__()
        self._set_up_map()
        if self.recommend_by is None:
            self.recommend_by = "votes" if self.map is None else "estimate"
        self._link = as_link(self.link)
        self._check_settings()
        self._kappa = self._default_kappa() if self.kappa is None else self.kappa
        self._ridge = self._default_ridge() if self.ridge is None else self.ridge

    def _set_up_items(self) -> None:
        if self.items is not None:
            self.items = integer("items", self.items, least=2)
            if self.dimension not in {None, self.items}:
                raise BadInputError("items have no features; set items or dimension, not both.")
            self.dimension = self.items
            self.norm_bound = math.sqrt(self.items) if self.norm_bound is None else self.norm_bound
        elif self.dimension is None or self.norm_bound is None:
            raise BadInputError("set dimension and norm_bound or, for a poll without features, items.")
        self.self_duels = self.items is None if self.self_duels is None else boolean("self_duels", self.self_duels)

    def _set_up_map(self) -> None:
        """Fit the map if that is left to do, and find d and B of the space in which rewards are linear."""
        self._size, self._effective_dimension, self._norm = self.dimension, float(self.dimension), self.norm_bound
        if self.map is None:
            return
        if self.items is not None:
            raise BadInputError("items have no features to map; set dimension instead of items, or omit map.")
        given = as_map(self.map)
        self.map = given if given.is_fitted else given.fit(self.dimension, seed=self.seed)
        if self.map.dimension != self.dimension:
            raise BadInputError(f"the map takes {self.map.dimension} features, but the agent has {self.dimension}.")
        self._size = self.dimension if self.map.learns else self.map.size
        self._effective_dimension = self.map.effective_dimension()
        self._norm = self.norm_bound * math.sqrt(self._effective_dimension / _USUAL_DIMENSION)

    @property
    def _practical_scale(self) -> float:
        """A factor on the practical radius: with a map, most of a hundred directions hardly matter."""
        return 1.0 if self.map is None else _MAPPED_RADIUS

    @property
    def _feature_map(self) -> FeatureMap | None:
        assert not isinstance(self.map, str)
        return self.map

    @property
    def current_radius(self) -> float:
        """β of the next duel, including ``radius_scale``."""
        return self.radius_at(self._asked + 1)

    def radius_at(self, round_number: int) -> float:
        """β of round t = 1, 2, …, including ``radius_scale``."""
        if not isinstance(self.radius, str):
            return self.radius_scale * self.radius
        if self.radius == "practical":
            return self.radius_scale * self._practical_scale * self._practical_radius(round_number)
        return self.radius_scale * self._theory_radius(round_number)

    @abstractmethod
    def _theory_radius(self, round_number: int) -> float:
        """The theorem's radius in round t."""

    @abstractmethod
    def _practical_radius(self, round_number: int) -> float:
        """The practical radius in round t."""

    def _default_kappa(self) -> float:
        return self._link.kappa(self.norm_bound)

    def _default_ridge(self) -> float:
        return rcdb_ridge(self._norm)

    def _horizon_or(self, round_number: int) -> int:
        return self.horizon if self.horizon is not None else max(round_number, 2)

    def _check_settings(self) -> None:
        self.ridge = None if self.ridge is None else positive("ridge", self.ridge)
        self.radius_scale = positive("radius_scale", self.radius_scale)
        self.failure_probability = fraction("failure_probability", self.failure_probability)
        self.warmup = integer("warmup", self.warmup)
        self.constrained = boolean("constrained", self.constrained)
        self.kappa = None if self.kappa is None else positive("kappa", self.kappa)
        steepest = float(self._link.slope(0.0))
        if self.kappa is not None and self.kappa > steepest:
            raise BadInputError(
                f"kappa must be in (0, {steepest:.4g}], the range of the {self._link} slope, not {self.kappa!r}."
            )
        literal("estimator", self.estimator, EstimatorName)
        literal("recommend_by", self.recommend_by, RecommendBy)
        if self.constrained and self.estimator == "one-pass":
            raise BadInputError("estimator='one-pass' always keeps ‖θ‖ ≤ B; omit constrained.")
        self.radius = number_or_name("radius", self.radius, self._radius_names())

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical", "theory")
