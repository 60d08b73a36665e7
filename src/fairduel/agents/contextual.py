"""What agents with features share: the estimate, Σ, the radius, and the round from ask to tell."""

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import ActionSet, checked_actions
from fairduel.agents.base import Actions, DuelingAgent, check_difference
from fairduel.checks import at_least_zero, boolean, ensure, integer, positive
from fairduel.core.information import Information
from fairduel.core.likelihood import Comparisons, maximum_likelihood, predicted, worth_a_fit
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.mirror_descent import STEP, mirror_step
from fairduel.core.radius import rcdb_ridge
from fairduel.core.selection import random_pair, symmetric_pair, symmetric_pair_by_gram
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError, LockInWarning, unknown_name

EstimatorName = Literal["exact", "lazy", "one-pass"]
_LOCK_IN_STREAK = 100


@dataclass(kw_only=True, eq=False)
class ContextualAgent(DuelingAgent):
    """What every agent with features is given, and what it learns by.

    A subclass writes :meth:`_choose` (which pair next) and :meth:`_theory_radius`; one that weighs
    duels also writes :meth:`_weigh`. Everything else is here.

    Σ needs no outcome, so it grows in :meth:`ask`; with feedback at once that is exactly the paper's
    order, and with late feedback the agent does not ask the same thing again while it waits.
    """

    published_settings: ClassVar[dict[str, str]] = {"radius": "theory"}

    dimension: int
    """d, the number of features of an action."""
    norm_bound: float
    """B, a bound on ‖θ*‖; it must be known, and is never taken from the data."""
    link: Link | str = LOGISTIC
    """σ, a :class:`~fairduel.core.links.Link` or its name."""
    kappa: float | None = None
    """κ, the smallest slope of the link; ``None`` takes it from the link and the norm bound."""
    ridge: float | None = None
    """λ; ``None`` takes the theorem's."""
    radius: float | str = "practical"
    """β: ``"practical"``, ``"theory"`` or a number."""
    radius_scale: float = 1.0
    """A factor on the radius, whichever it is."""
    failure_probability: float = 0.05
    """δ of the theory radius."""
    warmup: int = 0
    """τ: that many duels of random distinct actions come first."""
    self_duels: bool = True
    """Whether an action may duel itself, as the paper's argmax allows; people are never shown that."""
    constrained: bool = False
    """Whether the estimate is kept within ‖θ‖ ≤ B; the paper's is not."""
    estimator: EstimatorName = "exact"
    """``"exact"``: the MLE of all that was told, in every round, as in the paper. ``"lazy"``: the same, but anew only
    when det Σ has doubled and a tenth more was told. ``"one-pass"``: mirror descent, which keeps no outcomes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._link = as_link(self.link)
        self._check_settings()
        self._kappa = self._link.kappa(self.norm_bound) if self.kappa is None else self.kappa
        self._ridge = self._default_ridge() if self.ridge is None else self.ridge
        self._information = Information(self.dimension, self._ridge)
        self._told = Comparisons(self.dimension)
        self._theta: Vector = np.zeros(self.dimension)
        self._root: Matrix = np.empty((0, 0))  # of the Hessian at the last exact fit
        one_pass = self.estimator == "one-pass"
        self._curvature = Information(self.dimension, self._ridge) if one_pass else None
        self._outcomes = 0
        self._fitted_at = -math.inf  # log det Σ at the last fit
        self._fitted_outcomes = 0
        self._stale = False
        self._self_duel_streak = 0
        self._warned_of_lock_in = False

    # ------------------------------------------------------------------ what users call

    def _ask(self, actions: Actions) -> Duel:
        duel = self._duel_in(actions) if isinstance(actions, ActionSet) else self._duel_among(self._table(actions))
        self._watch_for_lock_in(duel)
        self._absorb(duel)
        return duel

    def _duel_among(self, table: Matrix) -> Duel:
        """The next duel of listed actions (K, d)."""
        self._refit()
        for information in self._informations:
            information.look_at(table)
        if self._asked < self.warmup:
            first, second = random_pair(len(table), self._rng.random())
        else:
            first, second = self._choose(table)
        if self._rng.random() < 0.5:
            first, second = second, first
        return self._weigh(first, second, np.subtract(table[first], table[second], dtype=np.float64))

    def _duel_in(self, actions: ActionSet) -> Duel:
        """The next duel of a set that is not listed."""
        self._check_dimension(actions)
        steering = self._steering
        if steering is None:  # said before a warm-up, which could do without
            raise BadInputError(
                f"{type(self).__name__} looks at its actions one by one: list them, or ask RCDB, RCDB-S or MaxPairUCB."
            )
        self._refit()
        for information in self._informations:
            information.look_at(None)
        if self._asked < self.warmup:
            first, second, gap = actions.random(self._rng), actions.random(self._rng), 0.0
            while np.array_equal(first, second):
                second = actions.random(self._rng)
        else:
            pair = actions.best_pair(
                self._theta, steering.inverse, self.current_radius, self._rng, self_duels=self.self_duels
            )
            first, second, gap = pair.first, pair.second, pair.gap
        if self._rng.random() < 0.5:
            first, second = second, first
        duel = self._weigh(*actions.indices(first, second), first - second)
        return replace(duel, features=np.array([first, second]), gap=gap)

    def _tell(self, asked: Duel, answer: Outcome) -> None:
        if asked.is_self_duel:
            return
        first_won = answer is Outcome.FIRST
        if self._curvature is not None:
            self._mirror_step(self._curvature, asked, first_won)
        else:
            self._told.add(asked.difference, weight=asked.weight, first_won=first_won)
            self._outcomes += 1
            self._stale = True
            if self.estimator == "exact":
                self._theta = predicted(
                    self._theta,
                    self._root,
                    asked.difference,
                    asked.weight,
                    first_won,
                    self._link.kind,
                    self._link.scale,
                )

    def _cancel(self, asked: Duel) -> None:
        self._absorb(asked, sign=-1)

    def recommend(self, actions: Actions = None) -> int:
        """Index of the action with the highest estimated reward; the lowest index among equals."""
        if isinstance(actions, ActionSet):
            self._check_dimension(actions)
            return actions.index(actions.best(self.estimate))
        return int(np.argmax(self._table(actions) @ self.estimate))

    def _table(self, actions: ArrayLike | None) -> Matrix:
        if actions is None:
            raise BadInputError(f"{type(self).__name__} chooses by features: give the actions, one row each.")
        return checked_actions(actions, self.dimension, single=True)

    def _check_dimension(self, actions: ActionSet) -> None:
        if actions.dimension != self.dimension:
            raise BadInputError(
                f"this agent has {self.dimension} features and the set's actions have {actions.dimension}."
            )

    @property
    def estimate(self) -> Vector:
        """θ on all that was told, shape (d,): of eq. (MLE), or as the ``estimator`` has it."""
        self._refit()
        return self._theta.copy()

    @property
    def information(self) -> Information:
        """Σ of all that was asked."""
        return self._information

    @property
    def current_radius(self) -> float:
        """β of the next duel, with its scale."""
        return self.radius_at(self._asked + 1)

    def radius_at(self, round_number: int) -> float:
        """β of round t = 1, 2, and so on, with its scale."""
        if not isinstance(self.radius, str):
            return self.radius_scale * self.radius
        if self.radius == "practical":
            return self.radius_scale * self._practical_radius(round_number)
        return self.radius_scale * self._theory_radius(round_number)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it; plain values, ready for JSON."""
        return super().settings | {"link": str(self._link), "kappa": self._kappa, "ridge": self._ridge}

    # ------------------------------------------------------------------ save and resume

    _memory = (
        "_self_duel_streak",
        "_warned_of_lock_in",
        "_stale",
        "_theta",
        "_root",
        "_outcomes",
        "_fitted_at",
        "_fitted_outcomes",
    )

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        state = super().state()
        state["settings"]["link"] = str(self._link)
        curvature = self._curvature.state() if self._curvature else None
        if curvature:
            del curvature["log_determinant"]  # mirror descent has no use for it
        return state | {
            "curvature": curvature,
            "information": self._information.state(),
            "told": self._told.state(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._curvature = Information.from_state(state["curvature"], self.dimension) if self._curvature else None
        self._information = Information.from_state(state["information"], self.dimension)
        self._told = Comparisons.from_state(state["told"], self.dimension)

    def _check_restored(self) -> None:
        super()._check_restored()
        for name in ("_self_duel_streak", "_outcomes", "_fitted_outcomes"):
            integer(name, getattr(self, name))
        ensure(self._self_duel_streak <= self._asked, "it has more self-duels than duels")
        told = self._asked - len(self._pending)
        ensure(self._outcomes <= told, f"there are {self._outcomes} outcomes of {told} duels")
        ensure(self._fitted_outcomes <= self._outcomes, "the last fit had more outcomes than were told")
        ensure(self._root.shape in {(0, 0), (self.dimension,) * 2}, f"_root has shape {self._root.shape}")
        ensure((self._root.diagonal() > 0).all(), "_root is not the root of a Hessian")

    def _check_pending(self, asked: Duel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self.dimension)
        ensure(not math.isnan(asked.slope), f"the slope of {asked} is NaN")

    # ------------------------------------------------------------------ what a subclass writes

    @abstractmethod
    def _choose(self, actions: Matrix) -> tuple[int, int]:
        """Which pair to ask, given all that was told."""

    @property
    def _steering(self) -> Information | None:
        """What an agent with the symmetric rule (line 6) explores by; ``None`` for one with another rule.

        Only the symmetric rule can be answered for a set that is not listed.
        """
        return None

    @abstractmethod
    def _theory_radius(self, round_number: int) -> float:
        """The radius of the agent's theorem in round t."""

    @abstractmethod
    def _practical_radius(self, round_number: int) -> float:
        """The radius that works, in round t."""

    def _default_ridge(self) -> float:
        return rcdb_ridge(self.norm_bound)

    def _weigh(self, first: int, second: int, difference: Vector) -> Duel:
        """Make the duel, with its weight; here every duel counts fully."""
        width = self._information.width(difference, (first, second))
        return Duel(self._asked, first, second, difference, weight=1.0, width=width, slope=1.0)

    def _absorb(self, duel: Duel, sign: int = 1) -> None:
        """Add the duel to Σ, or take it back with ``sign`` −1."""
        if not duel.is_self_duel:
            self._information.add(duel.difference, sign * duel.weight * duel.slope, self._pair_if(sign, duel))

    @staticmethod
    def _pair_if(sign: int, duel: Duel) -> tuple[int, int] | None:
        """The duel's indices, if they are of the set that is looked at now: those of a cancelled duel need not be."""
        return (duel.first, duel.second) if sign > 0 else None

    @property
    def _informations(self) -> tuple[Information, ...]:
        """Every matrix that the agent keeps of what it asked."""
        return (self._information,)

    # ------------------------------------------------------------------ the books

    def _symmetric_pair(self, actions: Matrix, information: Information) -> tuple[int, int]:
        """argmax (x_a + x_b)ᵀθ + β‖x_a − x_b‖, the norm by ``information``: the rule of three agents."""
        radius, tie = self.current_radius, self._rng.random()
        if information.gram is not None:
            return symmetric_pair_by_gram(actions @ self._theta, information.gram, radius, self.self_duels, tie)
        return symmetric_pair(actions, self._theta, information.inverse, radius, self.self_duels, tie)

    def _horizon_or(self, round_number: int) -> int:
        return self.horizon if self.horizon is not None else max(round_number, 2)

    def _refit(self) -> None:
        if self._stale and (self.estimator == "exact" or self._is_worth_a_fit()):
            ball = self.norm_bound if self.constrained else None
            estimate = maximum_likelihood(self._told, ridge=self._ridge, link=self._link, start=self._theta, ball=ball)
            self._theta, self._root = estimate.theta, estimate.root
            self._stale = False
            self._fitted_at, self._fitted_outcomes = self._information.log_determinant, self._outcomes

    def _is_worth_a_fit(self) -> bool:
        gain = self._information.log_determinant - self._fitted_at
        return worth_a_fit(gain, self._fitted_outcomes, self._outcomes)

    def _mirror_step(self, curvature: Information, duel: Duel, first_won: bool) -> None:
        curvature.updates += 1
        self._theta = mirror_step(
            self._theta,
            curvature.matrix,
            curvature.inverse,
            curvature.updates,
            duel.difference,
            duel.weight,
            first_won,
            STEP,
            self.norm_bound,
            self._link.kind,
            self._link.scale,
        )

    def _watch_for_lock_in(self, duel: Duel) -> None:
        self._self_duel_streak = self._self_duel_streak + 1 if duel.is_self_duel else 0
        if self._self_duel_streak == _LOCK_IN_STREAK and not self._warned_of_lock_in:
            self._warned_of_lock_in = True
            warnings.warn(
                f"the last {_LOCK_IN_STREAK} duels of this {type(self).__name__} set an action against itself (now "
                f"action {duel.first}) and taught it nothing: if that action is not the best, a larger radius or a "
                "warm-up would find out.",
                LockInWarning,
                stacklevel=4,
            )

    def _check_settings(self) -> None:
        self.dimension = integer("dimension", self.dimension, least=1)
        self.norm_bound = positive("norm_bound", self.norm_bound)
        self.ridge = None if self.ridge is None else positive("ridge", self.ridge)
        self.radius_scale = positive("radius_scale", self.radius_scale)
        self.failure_probability = positive("failure_probability", self.failure_probability)
        if self.failure_probability >= 1:
            raise BadInputError(f"failure_probability must be between 0 and 1, not {self.failure_probability!r}.")
        self.warmup = integer("warmup", self.warmup)
        self.self_duels = boolean("self_duels", self.self_duels)
        self.constrained = boolean("constrained", self.constrained)
        self.kappa = None if self.kappa is None else positive("kappa", self.kappa)
        steepest = float(self._link.slope(0.0))
        if self.kappa is not None and self.kappa > steepest:
            raise BadInputError(
                f"kappa must be in (0, {steepest:.4g}], the slopes of the {self._link} link, not {self.kappa!r}."
            )
        if self.estimator not in get_args(EstimatorName):
            raise unknown_name("estimator", str(self.estimator), get_args(EstimatorName))
        if self.constrained and self.estimator == "one-pass":
            raise BadInputError("one-pass estimates always stay within ‖θ‖ ≤ B: leave constrained out.")
        self.radius = self._checked_radius("radius", self.radius)

    def _checked_radius(self, name: str, radius: float | str) -> float | str:
        if isinstance(radius, str):
            if radius not in self._radius_names():
                raise unknown_name(name, radius, self._radius_names())
            return radius
        return at_least_zero(name, radius)

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical", "theory")
