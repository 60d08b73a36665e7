"""The loop that all agents share: ask a duel, be told its outcome, keep the books."""

import dataclasses
import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairduel.actions import checked_actions
from fairduel.agents.state_file import read_state, write_state
from fairduel.checks import at_least_zero, positive, whole
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError, LockInWarning, UnknownDuelError, unknown_name
from fairduel.information import Information
from fairduel.likelihood import Comparisons, maximum_likelihood, worth_a_fit
from fairduel.links import LOGISTIC, Link, as_link
from fairduel.mirror_descent import STEP, mirror_step
from fairduel.radius import rcdb_ridge
from fairduel.selection import random_pair, symmetric_pair, symmetric_pair_by_gram

EstimatorName = Literal["exact", "lazy", "one-pass"]
_STATE_VERSION = 1
_LOCK_IN_STREAK = 100


@dataclass(kw_only=True, eq=False)
class Agent(ABC):
    """What every agent is given, and the books that it keeps.

    A subclass writes :meth:`_choose` (which pair next) and :meth:`_theory_radius`; one that weighs
    duels also writes :meth:`_weigh`. Everything else is here.

    Σ needs no outcome, so it grows in :meth:`ask`; with feedback at once that is exactly the paper's
    order, and with late feedback the agent does not ask the same thing again while it waits.
    """

    _classes: ClassVar[dict[str, type["Agent"]]] = {}

    dimension: int
    """d, the number of features of an action."""
    norm_bound: float
    """B, a bound on ‖θ*‖; it must be known, and is never taken from the data."""
    horizon: int | None = None
    """T, the number of duels planned; ``None`` puts the current round in its place."""
    seed: int = 0
    """Seed of the agent's own random stream: ties, first/second, warm-up, perturbations."""
    link: Link | str = LOGISTIC
    """σ, a :class:`~fairduel.links.Link` or its name."""
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Agent._classes[cls.__name__] = cls

    def __post_init__(self) -> None:
        self._link = as_link(self.link)
        self._check_settings()
        self._kappa = self._link.kappa(self.norm_bound) if self.kappa is None else self.kappa
        self._ridge = self._default_ridge() if self.ridge is None else self.ridge
        self._information = Information(self.dimension, self._ridge)
        self._told = Comparisons(self.dimension)
        self._theta: Vector = np.zeros(self.dimension)
        one_pass = self.estimator == "one-pass"
        self._curvature = Information(self.dimension, self._ridge) if one_pass else None
        self._outcomes = 0
        self._fitted_at = (-math.inf, 0)  # log det Σ and the number of outcomes at the last fit
        self._stale = False
        self._asked = 0
        self._pending: dict[int, Duel] = {}
        self._cancelled: set[int] = set()
        self._self_duel_streak = 0
        self._warned_of_lock_in = False
        self._rng = np.random.Generator(np.random.PCG64(self.seed))

    # ------------------------------------------------------------------ what users call

    def ask(self, actions: ArrayLike) -> Duel:
        """Choose the next duel among ``actions``, shape (K, d) with norms ≤ 1."""
        table = checked_actions(actions, self.dimension)
        self._refit()
        for information in self._informations:
            information.look_at(table)
        if self._asked < self.warmup:
            first, second = random_pair(len(table), self._rng.random())
        else:
            first, second = self._choose(table)
        if self._rng.random() < 0.5:
            first, second = second, first
        duel = self._weigh(first, second, table[first] - table[second])
        self._watch_for_lock_in(duel)
        # The agent keeps a difference of its own: what the caller does to the duel's is not learned.
        kept = dataclasses.replace(duel, difference=duel.difference.copy())
        self._absorb(kept)
        self._pending[duel.number] = kept
        self._asked += 1
        duel.difference.setflags(write=False)
        return duel

    def ask_many(self, actions: ArrayLike, count: int) -> list[Duel]:
        """Choose ``count`` duels at once; each takes into account what the ones before it will tell."""
        return [self.ask(actions) for _ in range(whole("count", count, least=1))]

    def tell(self, duel: Duel, outcome: Outcome) -> None:
        """Learn the outcome of a duel that was asked earlier; any time, any order, once."""
        if not isinstance(outcome, Outcome):
            raise BadInputError(f"an outcome is Outcome.FIRST or Outcome.SECOND, not {outcome!r}.")
        kept = self._release(duel)
        if kept.is_self_duel:
            return
        first_won = outcome is Outcome.FIRST
        if self._curvature is not None:
            self._mirror_step(self._curvature, kept, first_won)
        else:
            self._told.add(kept.difference, weight=kept.weight, first_won=first_won)
            self._outcomes += 1
            self._stale = True

    def cancel(self, duel: Duel) -> None:
        """Take back a duel that will never be told."""
        kept = self._release(duel)
        self._cancelled.add(kept.number)
        self._absorb(kept, sign=-1)

    def recommend(self, actions: ArrayLike) -> int:
        """Index of the action with the highest estimated reward; the lowest index among equals."""
        return int(np.argmax(checked_actions(actions, self.dimension) @ self.estimate))

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
    def asked(self) -> int:
        """How many duels were asked, cancelled ones included."""
        return self._asked

    @property
    def pending(self) -> tuple[Duel, ...]:
        """Duels that were asked and are neither told nor cancelled yet."""
        return tuple(self._pending.values())

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
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return given | {"link": str(self._link), "kappa": self._kappa, "ridge": self._ridge}

    # ------------------------------------------------------------------ save and resume

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        pending = list(self._pending.values())
        return {
            "version": _STATE_VERSION,
            "agent": type(self).__name__,
            "settings": given | {"link": str(self._link)},
            "random": self._rng.bit_generator.state,
            "asked": self._asked,
            "cancelled": sorted(self._cancelled),
            "self_duel_streak": self._self_duel_streak,
            "warned_of_lock_in": self._warned_of_lock_in,
            "stale": self._stale,
            "theta": self._theta.copy(),
            "outcomes": self._outcomes,
            "fitted_at": list(self._fitted_at),
            "curvature": self._curvature.state() if self._curvature else None,
            "information": self._information.state(),
            "told": self._told.state(),
            "pending": {
                "duels": [[d.number, d.first, d.second, d.weight, d.width, d.slope] for d in pending],
                "differences": np.array([d.difference for d in pending]).reshape(-1, self.dimension),
            },
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "Agent":
        """Rebuild the agent that gave ``state``: its next duels are the ones that one would ask."""
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
        self._self_duel_streak = state["self_duel_streak"]
        self._warned_of_lock_in = state["warned_of_lock_in"]
        self._stale = state["stale"]
        self._theta = np.array(state["theta"])
        self._outcomes = state["outcomes"]
        self._fitted_at = (state["fitted_at"][0], state["fitted_at"][1])
        self._curvature = Information.from_state(state["curvature"]) if self._curvature else None
        self._information = Information.from_state(state["information"])
        self._told = Comparisons.from_state(state["told"])
        for row, difference in zip(state["pending"]["duels"], state["pending"]["differences"], strict=True):
            number, first, second, weight, width, slope = row
            self._pending[number] = Duel(number, first, second, difference.copy(), weight, width, slope)

    def save(self, path: str | Path) -> None:
        """Write :meth:`state` to one file, whole or not at all."""
        write_state(Path(path), self.state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an agent back from :meth:`save`."""
        state = read_state(Path(path))
        try:
            agent = cls.from_state(state)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, BadInputError):
                raise
            raise BadInputError(f"{path} holds no usable agent: {error}.") from error
        assert isinstance(agent, cls)
        return agent

    # ------------------------------------------------------------------ what a subclass writes

    @abstractmethod
    def _choose(self, actions: Matrix) -> tuple[int, int]:
        """Which pair to ask, given all that was told."""

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
            self._theta = estimate.theta
            self._stale = False
            self._fitted_at = (self._information.log_determinant, self._outcomes)

    def _is_worth_a_fit(self) -> bool:
        log_determinant, outcomes = self._fitted_at
        return worth_a_fit(self._information.log_determinant - log_determinant, outcomes, self._outcomes)

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

    def _release(self, duel: Duel) -> Duel:
        """Take a duel off the list of those that are waited for, and return the agent's own copy of it."""
        if not isinstance(duel, Duel):
            raise BadInputError(f"a duel is what ask returned, not {duel!r}.")
        kept = self._pending.get(duel.number)
        if kept == duel and np.array_equal(kept.difference, duel.difference):
            return self._pending.pop(duel.number)
        if duel.number in self._cancelled:
            raise UnknownDuelError(f"duel {duel.number} was cancelled.")
        if kept is not None or not 0 <= duel.number < self._asked:
            raise UnknownDuelError(f"duel {duel.number} ({duel.first} against {duel.second}) was never asked here.")
        raise UnknownDuelError(f"duel {duel.number} was told already.")

    def _watch_for_lock_in(self, duel: Duel) -> None:
        self._self_duel_streak = self._self_duel_streak + 1 if duel.is_self_duel else 0
        if self._self_duel_streak == _LOCK_IN_STREAK and not self._warned_of_lock_in:
            self._warned_of_lock_in = True
            warnings.warn(
                f"the last {_LOCK_IN_STREAK} duels of this {type(self).__name__} set an action against itself (now "
                f"action {duel.first}) and taught it nothing: if that action is not the best, a larger radius or a "
                "warm-up would find out.",
                LockInWarning,
                stacklevel=3,
            )

    def _check_settings(self) -> None:
        self.dimension = whole("dimension", self.dimension, least=1)
        self.norm_bound = positive("norm_bound", self.norm_bound)
        self.horizon = None if self.horizon is None else whole("horizon", self.horizon, least=1)
        self.seed = whole("seed", self.seed)
        self.ridge = None if self.ridge is None else positive("ridge", self.ridge)
        self.radius_scale = positive("radius_scale", self.radius_scale)
        self.failure_probability = positive("failure_probability", self.failure_probability)
        if self.failure_probability >= 1:
            raise BadInputError(f"failure_probability must be between 0 and 1, not {self.failure_probability!r}.")
        self.warmup = whole("warmup", self.warmup)
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
