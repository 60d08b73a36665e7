"""Base class of contextual dueling agents: the estimate, Σ, the radius and bookkeeping."""

import dataclasses
import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import ActionSet, checked_actions
from fairduel.action_sets.base import Pair
from fairduel.agents.base import Actions, DuelingAgent, Featured, check_difference
from fairduel.agents.round import Known, Plan, RunPlan, Steps, choose, steps, weigh
from fairduel.checks import boolean, ensure, fraction, integer, number_or_name, positive
from fairduel.core.bursts import FEWEST_VOTES, Conclusion, can_scan, conclude
from fairduel.core.estimators import Estimator, EstimatorArrays, EstimatorName
from fairduel.core.information import Information
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.radius import rcdb_ridge
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError, LockInWarning, unknown_name

_LOCK_IN_STREAK = 100
RecommendBy = Literal["votes", "estimate"]


@dataclass(kw_only=True, eq=False)
class ContextualAgent(Featured, DuelingAgent[Duel]):
    """Base class of contextual dueling agents.

    A subclass implements :meth:`_theory_radius` and :meth:`_practical_radius`. To choose pairs differently it sets
    ``_choose``, a compiled function like :func:`choose`, and overrides :meth:`_pair_in` for implicit action sets; to
    weigh duels differently it sets ``_weigh``. :meth:`_numbers_at` returns what these need to know about a round.

    Σ does not depend on outcomes, so it is updated in :meth:`ask`. With immediate feedback that is exactly the paper's
    order; with late feedback it keeps the agent from repeating itself while it waits.

    Args:
        dimension: d, the number of features of an action.
        norm_bound: B, an upper bound on ‖θ*‖; never estimated from data.
        items: The number of items of a poll without features, in place of ``dimension``; ``ask`` and ``recommend`` then
            need no actions, because every item has a feature of its own. B defaults to √``items``, which suits scores
            with a standard deviation of 1.
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
            contradicts the rest (see :meth:`conclude`). ``"estimate"``: it uses the estimate that ``ask`` uses.
    """

    published_settings: ClassVar[dict[str, str]] = {"radius": "theory"}

    dimension: int = None  # type: ignore[assignment]  # set from ``items`` if omitted
    norm_bound: float = None  # type: ignore[assignment]
    items: int | None = None
    link: Link | str = LOGISTIC
    kappa: float | None = None
    ridge: float | None = None
    radius: float | str = "practical"
    radius_scale: float = 1.0
    failure_probability: float = 0.05
    warmup: int = 0
    self_duels: bool = None  # type: ignore[assignment]
    constrained: bool = False
    estimator: EstimatorName = "exact"
    recommend_by: RecommendBy = "votes"

    _choose: ClassVar[Any] = staticmethod(choose)
    _weigh: ClassVar[Any] = staticmethod(weigh)
    _has_local_information: ClassVar[bool] = False
    _by_hessian: ClassVar[bool] = False
    _counts_upsets: ClassVar[bool] = False
    _memory = ("_self_duel_streak", "_warned_of_lock_in")

    def __post_init__(self) -> None:
        self._set_up_items()
        super().__post_init__()
        self._link = as_link(self.link)
        self._check_settings()
        self._kappa = self._default_kappa() if self.kappa is None else self.kappa
        self._ridge = self._default_ridge() if self.ridge is None else self.ridge
        self._information = Information(self.dimension, self._ridge)
        self._local_information = Information(self.dimension if self._has_local_information else 0, self._ridge)  # Λ
        self._estimator = self._new_estimator()
        self._self_duel_streak = 0
        self._warned_of_lock_in = False
        self._conclusion: Conclusion | None = None  # of all votes when it was last asked for

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

    def _new_estimator(self, room: int = 64) -> Estimator:
        is_bounded = self.constrained or self.estimator == "one-pass"
        ball = self.norm_bound if is_bounded else math.inf
        return Estimator(self.estimator, self.dimension, ridge=self._ridge, link=self._link, ball=ball, room=room)

    # ------------------------------------------------------------------ public methods

    def _ask(self, actions: Actions) -> Duel:
        duel = self._duel_in(actions) if isinstance(actions, ActionSet) else self._duel_among(self._table(actions))
        self._watch_for_lock_in(duel)
        return duel

    def _duel_among(self, table: Matrix) -> Duel:
        """Choose the next duel among listed actions (K, d)."""
        self._refit()
        self._information.set_actions(table, few=not self._has_local_information)
        if self._has_local_information:
            self._local_information.set_actions(table)
        table = np.asarray(table, dtype=np.float64)
        is_warmup = self._asked < self._random_rounds
        return Duel(self._asked, *self._steps.ask(*self._now(), table, is_warmup, self._rng))

    def _duel_in(self, actions: ActionSet) -> Duel:
        """Choose the next duel in an implicit action set."""
        self._check_dimension(actions)
        has_own_search = type(self)._pair_in is not ContextualAgent._pair_in  # noqa: SLF001
        if self._choose is not choose and not has_own_search:  # also during the warm-up, which would work
            raise BadInputError(
                f"{type(self).__name__} needs listed actions; list them, or use Sceptic, RCDB, RCDB-S, MaxPairUCB, "
                "GINOP or HCW."
            )
        self._refit()
        for information in (self._information, self._local_information):
            information.set_actions(None)
        if self._asked < self._random_rounds:
            first, second, gap = actions.random(self._rng), actions.random(self._rng), 0.0
            while np.array_equal(first, second):
                second = actions.random(self._rng)
        else:
            best = self._pair_in(actions)
            first, second, gap = best.first, best.second, best.gap
        if self._rng.random() < 0.5:
            first, second = second, first
        pair = actions.indices(first, second)
        weighed = self._steps.commit(*self._now(), pair, first - second)
        features = np.array([first, second])
        return Duel(self._asked, *pair, first - second, *weighed, features=features, gap=gap)

    def _pair_in(self, actions: ActionSet) -> Pair:
        """Line 6 for an implicit action set."""
        inverse = (self._local_information if self._has_local_information else self._information).inverse
        return actions.best_pair(
            self._estimator.theta, inverse, self.current_radius, self._rng, self_duels=self.self_duels
        )

    def _tell(self, asked: Duel, answer: Outcome) -> None:
        pair, share = (asked.first, asked.second), answer.first_share
        self._estimator.tell(pair, asked.difference, weight=asked.weight, share=share)

    def _cancel(self, asked: Duel) -> None:
        if not asked.is_self_duel:
            self._information.add(asked.difference, -asked.weight * self._plan.design_slope)
            if self._has_local_information:
                self._local_information.add(asked.difference, -asked.weight * asked.slope)

    def serve(self, duel: Duel, features: ArrayLike) -> Duel:
        """Replace a pending duel's features by those seen after serving it.

        Σ and the duel's weight become those of a duel asked with these features, by Σ of all other duels.

        Args:
            duel: What :meth:`ask` returned.
            features: Features of its first and its second action, shape (2, d) with norms ≤ 1.

        Returns:
            The duel to pass to :meth:`tell` or :meth:`cancel` from now on.

        >>> from fairduel import RCDB
        >>> agent = RCDB(dimension=2, norm_bound=2.0, flip_budget=5)
        >>> duel = agent.serve(agent.ask([[1.0, 0.0], [0.0, 0.0]]), [[0.6, 0.8], [0.0, 0.0]])
        >>> duel.difference.tolist()
        [0.6, 0.8]
        """
        table = checked_actions(features, self.dimension)
        if len(table) != 2:
            raise BadInputError(f"features of a served duel must have shape (2, {self.dimension}), not {table.shape}.")
        difference = table[0] - table[1]
        if duel.is_self_duel and difference.any():
            raise BadInputError(f"{duel} compares an action with itself, but its two features differ.")
        kept = self._release(duel)
        self._cancel(kept)
        for information in (self._information, self._local_information):
            information.set_actions(None)  # the new features are not those of the actions that were asked about
        pair = kept.first, kept.second
        weight, width, slope = self._steps.commit(*self._now(kept.number + 1), pair, difference)
        now = {"difference": difference, "weight": weight, "width": width, "slope": slope}
        served = dataclasses.replace(kept, **now, features=table if kept.features.size else kept.features)
        self._pending[served.number] = served
        return served.copied()

    def recommend(self, actions: Actions = None) -> int:
        """Return the index of the action with the highest estimated reward, the lowest among ties.

        The estimate is that of :meth:`conclude`, or the agent's own where that is ``None``.
        """
        conclusion = self.conclude()
        theta = self.estimate if conclusion is None else conclusion.theta
        if isinstance(actions, ActionSet):
            self._check_dimension(actions)
            return actions.index(actions.best(theta))
        return int(np.argmax(self._table(actions) @ theta))

    def conclude(self) -> Conclusion | None:
        """Estimate θ from the recorded votes, without those in a burst of lies.

        Weights that help to ask well let the last votes, or the first, decide. Here all votes count alike, but up to
        two stretches of at most a quarter of them are set aside if they contradict the rest by more than chance (5%
        level). Evenly spread lies are not found.

        Returns:
            The estimate and the stretches set aside; ``None`` if the agent recommends by its own estimate: if
            ``recommend_by`` says so, if it has fewer than 40 votes or more than 63 features, if the estimator is
            one-pass, or if it was loaded from a file of an older version, which lacks the order of votes.

        >>> from fairduel import MaxPairUCB, Outcome
        >>> agent = MaxPairUCB(dimension=1, norm_bound=1.0, horizon=200, self_duels=False)
        >>> for vote in range(200):
        ...     duel = agent.ask([[0.0], [1.0]])
        ...     is_lie = vote >= 150
        ...     agent.tell(duel, Outcome.FIRST if (duel.first == 1) != is_lie else Outcome.SECOND)
        >>> [(burst.begin, burst.end) for burst in agent.conclude().bursts]
        [(150, 200)]
        """
        told = self._estimator.told
        if self._reason_for_own_estimate():
            return None
        if self._conclusion is None or self._conclusion.votes != len(told.votes):
            self._conclusion = conclude(told, ridge=rcdb_ridge(self.norm_bound), link=self._link)
        return self._conclusion

    def explain_recommendation(self) -> str:
        """Say in one sentence which votes :meth:`recommend` rests on, and why."""
        conclusion = self.conclude()
        if conclusion is None:
            return f"The recommendation rests on the agent's own estimate, because {self._reason_for_own_estimate()}."
        if not conclusion.bursts:
            return (
                f"The recommendation rests on all {conclusion.votes:,} votes: no stretch of them differs from the rest "
                "by more than chance."
            )
        windows = " and ".join(
            f"votes {burst.begin + 1:,} to {burst.end:,} (log-likelihood gain {burst.gain:.1f}; chance explains up to "
            f"{burst.bar:.1f})"
            for burst in conclusion.bursts
        )
        return (
            f"Of {conclusion.votes:,} votes, the recommendation sets aside {windows}, because they contradict the "
            "rest; lies are one possible reason, a release or a new audience another."
        )

    def _reason_for_own_estimate(self) -> str:
        """Why the votes are not scanned for bursts; empty if they are."""
        votes = len(self._estimator.told.votes)
        if self.recommend_by == "estimate":
            return "recommend_by is 'estimate'"
        if self.estimator == "one-pass":
            return "one-pass estimates store no votes"
        if votes != self._estimator.outcomes:
            return "it was loaded from a file that lacks the order of votes"
        if not can_scan(votes, self.dimension):
            return f"bursts are only looked for with at least {FEWEST_VOTES} votes and fewer than 64 features"
        return ""

    def _table(self, actions: ArrayLike | None) -> Matrix:
        if actions is None and self.items is not None:
            return np.eye(self.items)
        if actions is None:
            raise BadInputError(f"{type(self).__name__} needs the features of the actions, one row each.")
        return checked_actions(actions, self.dimension, single=True)

    def _check_dimension(self, actions: ActionSet) -> None:
        if actions.dimension != self.dimension:
            raise BadInputError(
                f"the agent has {self.dimension} features but the set's actions have {actions.dimension}."
            )

    @property
    def estimate(self) -> Vector:
        """The current estimate θ, shape (d,): the solution of eq. (MLE) if ``estimator`` is ``"exact"``."""
        return self._refit().copy()

    @property
    def information(self) -> Information:
        """Σ of all duels asked so far."""
        return self._information

    @property
    def current_radius(self) -> float:
        """β of the next duel, including ``radius_scale``."""
        return self.radius_at(self._asked + 1)

    def radius_at(self, round_number: int) -> float:
        """β of round t = 1, 2, …, including ``radius_scale``."""
        if not isinstance(self.radius, str):
            return self.radius_scale * self.radius
        if self.radius == "practical":
            return self.radius_scale * self._practical_radius(round_number)
        return self.radius_scale * self._theory_radius(round_number)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, plus resolved values, ready for JSON."""
        return super().settings | {"link": str(self._link), "kappa": self._kappa, "ridge": self._ridge}

    # ------------------------------------------------------------------ saving and loading

    def state(self) -> dict[str, Any]:
        """Return the agent's complete state as nested dictionaries of JSON values and arrays."""
        state = super().state()
        matrices = {"information": self._information.state()}
        if self._has_local_information:
            matrices["local_information"] = self._local_information.state()
        return state | matrices | {"estimator": self._estimator.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._information = Information.from_state(state["information"], self.dimension)
        if self._has_local_information:
            self._local_information = Information.from_state(state["local_information"], self.dimension)
        self._estimator.restore(state["estimator"], most=self._asked - len(self._pending))

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure(
            integer("_self_duel_streak", self._self_duel_streak) <= self._asked, "there are more self-duels than duels"
        )

    def _check_pending(self, asked: Duel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self.dimension)
        ensure(not math.isnan(asked.slope), f"the slope of {asked} is NaN")

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _theory_radius(self, round_number: int) -> float:
        """The theorem's radius in round t."""

    @abstractmethod
    def _practical_radius(self, round_number: int) -> float:
        """The practical radius in round t."""

    def _default_kappa(self) -> float:
        return self._link.kappa(self.norm_bound)

    def _default_ridge(self) -> float:
        return rcdb_ridge(self.norm_bound)

    def _numbers_at(self, round_number: int) -> tuple[float, ...]:
        """The parameters of round t that ``_choose`` and ``_weigh`` need, the radius first."""
        return (self.radius_at(round_number),)

    @property
    def _random_rounds(self) -> int:
        """How many duels come first that are between random distinct actions."""
        return self.warmup

    @property
    def _trust(self) -> float:
        return math.inf

    @property
    def _design_slope(self) -> float:
        """The coefficient of a duel in Σ, before its weight."""
        return 1.0

    # ------------------------------------------------------------------ the round

    @property
    def _plan(self) -> Plan:
        return Plan(
            chooser=0,
            weigher=0,
            trust=self._trust,
            design_slope=self._design_slope,
            kappa=self._kappa,
            self_duels=self.self_duels,
            counts_upsets=self._counts_upsets,
            by_hessian=self._by_hessian,
            estimator=self._estimator.plan,
        )

    @property
    def _steps(self) -> Steps:
        return steps(self._choose, self._weigh)

    def _now(self, round_number: int | None = None) -> tuple[Any, ...]:
        """The first arguments of every step of a round, by default the next."""
        numbers = np.array(self._numbers_at(round_number or self._asked + 1), dtype=np.float64)
        return self._plan, numbers, self._information.arrays, self._local_information.arrays, self._estimator.theta

    def plan_run(self, horizon: int) -> RunPlan | None:
        """Return what a compiled run needs, or ``None`` if the agent has already asked something.

        All round parameters are monotone in t, so if the first and last are equal, all are.
        """
        if self._asked:
            return None
        first, last = self._numbers_at(1), self._numbers_at(horizon)
        rounds = range(1, horizon + 1) if first != last else (1,)
        schedule = np.array([self._numbers_at(t) for t in rounds], dtype=np.float64)
        return RunPlan(self._plan, np.tile(schedule, (horizon // len(schedule), 1)), self._random_rounds)

    def new_arrays(self, room: int) -> tuple[Known, EstimatorArrays]:
        """Return the arrays of a new agent with these settings, with room for ``room`` distinct duels."""
        local = self.dimension if self._has_local_information else 0
        estimator = self._new_estimator(room).arrays
        return Known(
            Information(self.dimension, self._ridge).arrays, Information(local, self._ridge).arrays, estimator.theta
        ), estimator

    def learn_run(self, estimator: EstimatorArrays) -> None:
        """Take over what a compiled run learned, for :meth:`recommend`; this agent has still asked nothing."""
        self._estimator.take(estimator)

    def _refit(self) -> Vector:
        return self._estimator.fitted(self._information.log_determinant)

    # ------------------------------------------------------------------ bookkeeping

    def _horizon_or(self, round_number: int) -> int:
        return self.horizon if self.horizon is not None else max(round_number, 2)

    def _watch_for_lock_in(self, duel: Duel) -> None:
        self._self_duel_streak = self._self_duel_streak + 1 if duel.is_self_duel else 0
        if self._self_duel_streak == _LOCK_IN_STREAK and not self._warned_of_lock_in:
            self._warned_of_lock_in = True
            warnings.warn(
                f"the last {_LOCK_IN_STREAK} duels of {type(self).__name__} compared an action with itself (now action "
                f"{duel.first}), so it learns nothing; if that action may not be the best, use self_duels=False, a "
                "larger radius or a warm-up.",
                LockInWarning,
                stacklevel=4,
            )

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
        if self.estimator not in get_args(EstimatorName):
            raise unknown_name("estimator", str(self.estimator), get_args(EstimatorName))
        if self.recommend_by not in get_args(RecommendBy):
            raise unknown_name("recommend_by", str(self.recommend_by), get_args(RecommendBy))
        if self.constrained and self.estimator == "one-pass":
            raise BadInputError("estimator='one-pass' always keeps ‖θ‖ ≤ B; omit constrained.")
        self.radius = number_or_name("radius", self.radius, self._radius_names())

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical", "theory")
