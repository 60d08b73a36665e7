"""Base class of contextual dueling agents: a belief, a rule, a trust and a radius."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import ActionSet, checked_actions
from fairduel.action_sets.listed import Pair
from fairduel.agents.parts.agent import Actions, check_difference, like
from fairduel.agents.parts.belief import Belief, LinearBelief, Turn
from fairduel.agents.parts.learned import LearnedBelief
from fairduel.agents.parts.round import BelievedStanding, Known, Memory, Now, Plan, RunPlan, nothing, schedule_of
from fairduel.agents.parts.rules import by_uncertainty, growing, symmetric
from fairduel.agents.parts.settings import ContextualSettings
from fairduel.checks import ensure, integer
from fairduel.core.concluding import FEWEST_VOTES, Conclusion, can_scan, conclude
from fairduel.core.estimators import EstimatorArrays
from fairduel.core.information import Information
from fairduel.core.likelihood import Comparisons
from fairduel.core.links import Link
from fairduel.core.radius import rcdb_ridge
from fairduel.core.selection import leader_and_settling
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError, LockInWarning
from fairduel.features import FeatureMap


class Recommending:
    """The votes of a belief, weighed alike.

    Args:
        belief: The belief whose votes count.
        ridge: λ.
        link: σ.
        by_estimate: Whether to trust the belief's own estimate instead.
        outgrows_lies: Whether the belief trusts later votes more, and so recovers from earlier lies.
    """

    def __init__(self, belief: Belief, *, ridge: float, link: Link, by_estimate: bool, outgrows_lies: bool) -> None:
        self._belief, self._ridge, self._link, self._by_estimate = belief, ridge, link, by_estimate
        self._outgrows_lies = outgrows_lies
        self._conclusion: Conclusion | None = None  # of all votes when it was last asked for

    def conclude(self, answered: int, pending: Collection[Duel]) -> Conclusion | None:
        """Estimate θ from the votes without bursts of lies; ``None`` if the belief's own estimate counts.

        ``answered`` counts all duels, self-duels included; ``pending`` were asked but not answered.
        """
        return None if self._reason_for_own_estimate(answered, pending) else self._concluded()

    def explanation(self, answered: int, pending: Collection[Duel]) -> str:
        """Say in one sentence which votes the recommendation rests on, and why."""
        reason = self._reason_for_own_estimate(answered, pending)
        if reason:
            return f"The recommendation rests on the agent's own estimate, because {reason}."
        conclusion = self._concluded()
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
        after = "" if conclusion.since is None else " (between its action and the agent's, the votes since then decide)"
        return (
            f"Of {conclusion.votes:,} votes, the recommendation sets aside {windows}, because they contradict the "
            f"rest{after}; lies are one possible reason, a release or a new audience another."
        )

    def _concluded(self) -> Conclusion:
        told = cast("Comparisons", self._belief.votes)
        if self._conclusion is None or self._conclusion.votes != len(told.votes):
            self._conclusion = conclude(told, ridge=self._ridge, link=self._link)
        return self._conclusion

    def _reason_for_own_estimate(self, answered: int, pending: Collection[Duel]) -> str:
        """Why the votes are not scanned for bursts, or what was found does not count; empty if it does."""
        told = self._belief.votes
        if self._by_estimate:
            return "recommend_by is 'estimate'"
        if told is None:
            return "one-pass estimates store no votes"
        if 2 * len(told.votes) < answered:  # those from before it settled may be lies for the most part
            return "most of its duels compare an action with itself, so it has settled on what to show"
        if not can_scan(len(told.votes), told.differences.shape[1]):
            return f"bursts are only looked for with at least {FEWEST_VOTES} votes and fewer than 64 features"
        return self._leads_since(told, pending)

    def _leads_since(self, told: Comparisons, pending: Collection[Duel]) -> str:
        """Say if, without bursts that are over, another item would lead than the one believed to lead.

        Lies for an item may come first, and the honest votes that put it behind, right after them. Either stretch
        contradicts the other, and little is asked about the item from then on, so the wrong one may be set aside. With
        features, votes on other actions tell about an action too, so that this does not happen.
        """
        bursts, differences = self._concluded().bursts, told.differences
        if not (self._outgrows_lies and bursts) or max(burst.end for burst in bursts) > _RECENT * len(told.votes):
            return ""
        of_items = (np.count_nonzero(differences, axis=1) == 2) & (np.abs(differences).max(axis=1) == 1.0)
        if not (of_items & (differences.sum(axis=1) == 0.0)).all():
            return ""
        leader = int(np.argmax(self._concluded().theta))
        with self._belief.looked_at(pending) as belief:
            believed = int(np.argmax(belief.rewards(np.eye(differences.shape[1]))))
        if leader == believed:
            return ""
        windows = " and ".join(f"{burst.begin + 1:,} to {burst.end:,}" for burst in bursts)
        return (
            f"item {leader} would lead without votes {windows}, which contradict the rest, but with the votes since "
            f"then the agent believes in item {believed}"
        )


_RECENT = 0.9  # share of the votes; from stretches that ended before, an agent has recovered
_LOCK_IN_STREAK = 100


@dataclass(kw_only=True, eq=False)
class ContextualAgent(ContextualSettings):
    """Base class of contextual dueling agents.

    A subclass implements :meth:`_theory_radius` and :meth:`_practical_radius`, and says what it

    - believes: ``_belief_kind``, a :class:`~fairduel.agents.parts.belief.Belief`;
    - asks next: ``_rule``, one of :mod:`~fairduel.agents.parts.rules` or like it, and :meth:`_pair_in` for implicit
      action sets;
    - trusts: ``_trust_rule``, one of :mod:`~fairduel.agents.parts.rules` or like it;
    - remembers: ``_remember`` is called with each answer, and :meth:`_new_memory` makes what it changes.

    :meth:`_now_at` returns what these need to know of a round.

    A belief takes in a duel when it is asked: Σ does not depend on outcomes. With immediate feedback that is exactly
    the paper's order; with late feedback it keeps the agent from repeating itself while it waits.
    """

    _belief_kind: ClassVar[Callable[..., Belief]] = LinearBelief
    _rule: ClassVar[Any] = staticmethod(symmetric)
    _trust_rule: ClassVar[Any] = staticmethod(by_uncertainty)
    _remember: ClassVar[Any] = staticmethod(nothing)
    _memory = ("_self_duel_streak", "_warned_of_lock_in")
    _parts = ("_belief",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._belief = self._new_belief()
        self._remembered = self._new_memory()
        self._recommending = Recommending(
            self._belief,
            ridge=rcdb_ridge(self._norm),
            link=self._link,
            by_estimate=self.recommend_by == "estimate",
            outgrows_lies=self._trust_rule is growing,
        )
        self._self_duel_streak = 0
        self._warned_of_lock_in = False

    def _new_belief(self, room: int = 64) -> Belief:
        is_bounded = self.constrained or self.estimator == "one-pass"
        settings: dict[str, Any] = {
            "ridge": self._ridge,
            "link": self._link,
            "design_slope": self._design_slope,
            "estimator": self.estimator,
            "ball": self._norm if is_bounded else math.inf,
            "room": room,
        }
        made = self._feature_map
        if made is not None and made.learns:
            if self._belief_kind is not LinearBelief:
                raise BadInputError(
                    f"{type(self).__name__} cannot learn its features; use another map, or RCDB, Sceptic, MaxPairUCB, "
                    "MaxInP or CoLSTIM."
                )
            return LearnedBelief(made, trust=self._trust, **settings)
        return self._belief_kind(self._size, **settings)

    # ------------------------------------------------------------------ public methods

    def _ask(self, actions: Actions) -> Duel:
        if isinstance(actions, ActionSet):
            duel = self._duel_in(actions)
        else:
            table = self._table(actions)
            self._belief.renew(self._pending.values())
            duel = self._belief.ask(self._turn(self._asked), table)
        self._watch_for_lock_in(duel)
        return duel

    def _duel_in(self, actions: ActionSet) -> Duel:
        """Choose the next duel in an implicit action set."""
        self._check_dimension(actions)
        if self.map is not None:
            raise BadInputError(
                f"{type(self).__name__} has a feature map, which needs listed actions; list them, or omit the map."
            )
        has_own_search = type(self)._pair_in is not ContextualAgent._pair_in  # noqa: SLF001
        if not isinstance(self._belief, LinearBelief) or not (self._rule is symmetric or has_own_search):
            raise BadInputError(
                f"{type(self).__name__} needs listed actions; list them, or use Sceptic, RCDB, RCDB-S, MaxPairUCB, "
                "GINOP or HCW."
            )
        self._belief.renew(self._pending.values())
        if self._asked < self._random_rounds:
            first, second, gap = actions.random(self._rng), actions.random(self._rng), 0.0
            while np.array_equal(first, second):
                second = actions.random(self._rng)
        else:
            best = self._pair_in(actions)
            first, second, gap = best.first, best.second, best.gap
        if self._rng.random() < 0.5:
            first, second = second, first
        features = np.array([first, second])
        duel = Duel(self._asked, *actions.indices(first, second), first - second, features=features, gap=gap)
        return self._belief.weighed(self._turn(self._asked), duel)

    def _pair_in(self, actions: ActionSet) -> Pair:
        """Line 6 for an implicit action set."""
        belief = self._linear
        return actions.best_pair(
            belief.theta, belief.steering.inverse, self.current_radius, self._rng, self_duels=self.self_duels
        )

    def _tell(self, asked: Duel, answer: Outcome) -> None:
        share = answer.first_share
        if self._remember is not nothing and not asked.is_self_duel:
            self._remember(self._remembered, self._belief.lead(asked), share)
        self._belief.tell(asked, share)

    def _cancel(self, asked: Duel) -> None:
        if not asked.is_self_duel:
            self._belief.withdraw(asked)

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
        table = self.features_of(table)
        difference = table[0] - table[1]
        if duel.is_self_duel and difference.any():
            raise BadInputError(f"{duel} compares an action with itself, but its two features differ.")
        kept = self._release(duel)
        self._cancel(kept)
        served = self._belief.weighed(
            self._turn(kept.number),
            dataclasses.replace(kept, difference=difference, features=table if kept.features.size else kept.features),
        )
        self._pending[served.number] = served
        return served.copied()

    def recommend(self, actions: Actions = None) -> int:
        """Return the index of the action with the highest estimated reward, the lowest among ties.

        The estimate is that of :meth:`conclude`, or the agent's own where that is ``None``. If votes are set aside and
        both lead to different actions, the votes after these decide between them.
        """
        conclusion = self.conclude()
        if isinstance(actions, ActionSet):
            self._check_dimension(actions)
            if conclusion is None:
                return actions.index(actions.best(self.estimate))
            best = actions.best(conclusion.theta)
            if conclusion.since is not None:
                own = actions.best(self.estimate)
                best = own if (own - best) @ conclusion.since > 0.0 else best
            return actions.index(best)
        table = self._table(actions)
        if conclusion is not None and conclusion.since is None:
            return int(np.argmax(self._belief.features_of(table) @ conclusion.theta))
        with self._belief.looked_at(self._pending.values()) as belief:
            believed = int(np.argmax(belief.rewards(table)))
        if conclusion is None:
            return believed
        features = self._belief.features_of(table)
        leader = int(np.argmax(features @ conclusion.theta))
        return believed if (features[believed] - features[leader]) @ conclusion.since > 0.0 else leader

    def conclude(self) -> Conclusion | None:
        """Estimate θ from the recorded votes, without those in a burst of lies.

        Weights that help to ask well let the last votes, or the first, decide. Here all votes count alike, but up to
        two stretches of at most a quarter of them are set aside if they contradict the rest by more than chance (5%
        level). Evenly spread lies are not found.

        Returns:
            The estimate and the stretches set aside; ``None`` if the agent recommends by its own estimate: if
            ``recommend_by`` says so, if it has fewer than 40 votes or more than 63 features, if the estimator is
            one-pass, if most duels compared an action with itself, or if an agent whose trust grows, without features,
            believes in another item than the votes left do, and no such stretch reaches into the last tenth of them.

        >>> from fairduel import MaxPairUCB, Outcome
        >>> agent = MaxPairUCB(dimension=1, norm_bound=1.0, horizon=200, self_duels=False)
        >>> for vote in range(200):
        ...     duel = agent.ask([[0.0], [1.0]])
        ...     is_lie = vote >= 150
        ...     agent.tell(duel, Outcome.FIRST if (duel.first == 1) != is_lie else Outcome.SECOND)
        >>> [(burst.begin, burst.end) for burst in agent.conclude().bursts]
        [(150, 200)]
        """
        return self._recommending.conclude(self._asked - len(self._pending), self._pending.values())

    def explain_recommendation(self) -> str:
        """Say in one sentence which votes :meth:`recommend` rests on, and why."""
        return self._recommending.explanation(self._asked - len(self._pending), self._pending.values())

    def standing(self, duel: Duel, actions: ArrayLike) -> BelievedStanding:
        """What the agent believes of ``actions`` (K, d), right after it asked ``duel`` about them."""
        now = self._now_at(self._asked)
        leader, settling = leader_and_settling(self._belief.view(self._table(actions)), now.radius, now.margin)
        return BelievedStanding(self._belief.lead(duel), leader, settling)

    def _table(self, actions: ArrayLike | None) -> Matrix:
        if actions is None and self.items is not None:
            return np.eye(self.items)
        if actions is None:
            raise BadInputError(f"{type(self).__name__} needs the features of the actions, one row each.")
        return self.features_of(checked_actions(actions, self.dimension, single=True))

    @property
    def size(self) -> int:
        """The number of features in which rewards are linear: d, or m if there is a map."""
        return self._size

    def features_of(self, actions: Matrix) -> Matrix:
        """The features (K, m) of checked actions (K, d) in which rewards are linear."""
        made = self._feature_map
        return actions if made is None or made.learns else checked_actions(made(actions), self._size)

    def _check_dimension(self, actions: ActionSet) -> None:
        if actions.dimension != self.dimension:
            raise BadInputError(
                f"the agent has {self.dimension} features but the set's actions have {actions.dimension}."
            )

    @property
    def belief(self) -> Belief:
        """What the agent knows about rewards."""
        return self._belief

    @property
    def _linear(self) -> LinearBelief:
        if not isinstance(self._belief, LinearBelief):
            raise AttributeError(f"{type(self).__name__} has no linear estimate; see its belief.")  # noqa: TRY004
        return self._belief

    @property
    def estimate(self) -> Vector:
        """The current estimate θ, shape (d,): the solution of eq. (MLE) if ``estimator`` is ``"exact"``.

        Reading it changes no later duel.
        """
        with self._linear.looked_at(self._pending.values()) as belief:
            return belief.theta.copy()

    @property
    def information(self) -> Information:
        """Σ of all duels asked so far."""
        return self._linear.information

    @property
    def steering(self) -> Information:
        """The matrix by which the agent explores: Σ, Λ of RCDB-S, or the Hessian of GINOP and HCW."""
        with self._linear.looked_at(self._pending.values()) as belief:
            return belief.steering

    # ------------------------------------------------------------------ saving and loading

    def state(self) -> dict[str, Any]:
        """Return the agent's complete state as nested dictionaries of JSON values and arrays."""
        remembered = {name: array.copy() for name, array in self._remembered._asdict().items()}
        state = super().state() | {"remembered": remembered}
        if self._feature_map is not None:
            state["settings"]["map"] = self._feature_map.state()
        return state

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        saved = settings.get("map")
        return super()._from_settings(settings | ({"map": FeatureMap.from_state(saved)} if saved else {}))

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        saved, new = state["remembered"], self._remembered._asdict()
        self._remembered = self._remembered._make(like(new[name], saved[name], name) for name in new)

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure(
            integer("_self_duel_streak", self._self_duel_streak) <= self._asked, "there are more self-duels than duels"
        )

    def _check_pending(self, asked: Duel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self._size)
        ensure(not math.isnan(asked.slope), f"the slope of {asked} is NaN")

    # ------------------------------------------------------------------ for subclasses

    def _now_at(self, round_number: int) -> Any:
        """What the rule and the trust need to know of round t: a :class:`Now`, or a named tuple of the agent's own."""
        return Now(self.radius_at(round_number))

    def _new_memory(self) -> Any:
        """What the agent remembers at first: a :class:`Memory`, or a named tuple of arrays of the agent's own."""
        return Memory(np.zeros(1))

    @property
    def _random_rounds(self) -> int:
        """The number of initial duels between random distinct actions."""
        return self.warmup

    @property
    def _trust(self) -> float:
        """α."""
        return math.inf

    @property
    def _design_slope(self) -> float:
        """The coefficient of a duel in Σ, before its weight."""
        return 1.0

    # ------------------------------------------------------------------ the round

    @functools.cached_property
    def _plan(self) -> Plan:
        return Plan(
            rule=0,
            trust_rule=0,
            remembers=self._remember is not nothing,
            trust=self._trust,
            design_slope=self._design_slope,
            kappa=self._kappa,
            self_duels=self.self_duels,
            by_hessian=isinstance(self._belief, LinearBelief) and self._belief.by_hessian,
            link=self._link.numbers,
        )

    def _turn(self, number: int) -> Turn:
        """Everything but the belief that decides what the duel with this number is."""
        plan = self._plan
        if plan.self_duels is not self.self_duels:
            plan = self._plan = plan._replace(self_duels=self.self_duels)
        known = plan, self._now_at(number + 1), self._remembered
        return Turn(number, self._rule, self._trust_rule, known, number < self._random_rounds, self._rng)

    def plan_run(self, horizon: int) -> RunPlan | None:
        """Return what a compiled run needs, or ``None`` if there is none or the agent has already asked something."""
        if self._asked or not isinstance(self._belief, LinearBelief):
            return None
        rounds = [self._now_at(t) for t in range(1, 2 if self._is_steady(horizon) else horizon + 1)]
        schedule = schedule_of(rounds, horizon)
        return RunPlan(self._turn(0).known[0], self._belief.estimator.plan, schedule, self._random_rounds)

    def _is_steady(self, horizon: int) -> bool:
        """Whether what is known of a round is the same in all; it is monotone in t, so the first and last decide."""
        return bool(self._now_at(1) == self._now_at(horizon))

    def new_arrays(self, room: int) -> tuple[Known, EstimatorArrays, Any]:
        """Return the arrays of a new agent with these settings, with room for ``room`` distinct duels."""
        belief = self._new_belief(room)
        assert isinstance(belief, LinearBelief)
        return belief.known, belief.estimator.arrays, self._new_memory()

    def learn_run(self, estimator: EstimatorArrays) -> None:
        """Take over what a compiled run learned, for :meth:`recommend`; this agent has still asked nothing."""
        self._linear.take(estimator)

    # ------------------------------------------------------------------ bookkeeping

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
