"""What an agent knows about rewards: the interface of beliefs, and the belief that rewards are linear in features.

The linear belief has θ, Σ, and Λ for agents that explore by another matrix.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fairduel.agents.parts.round import Known, asking
from fairduel.core.estimators import Estimator, EstimatorArrays, EstimatorName
from fairduel.core.information import Information, dot, fill_gram
from fairduel.core.likelihood import Comparisons
from fairduel.core.links import Link
from fairduel.core.selection import View, random_pair, view
from fairduel.duel import Duel, Matrix, Vector


class Turn(NamedTuple):
    """Everything but the belief that decides what is asked next."""

    number: int
    """The duel's number."""
    rule: Callable[..., tuple[int, int]]
    trust_rule: Callable[..., tuple[float, float]]
    known: tuple[Any, Any, Any]
    """The first arguments of both: the plan, the round, and what is remembered."""
    is_warmup: bool
    """Whether to ask a random pair."""
    rng: np.random.Generator


class Belief(ABC):
    """What is known about rewards, and how uncertain it is.

    A subclass implements the abstract methods. Weights, warm-up, settling, ties, late answers, saving and
    recommendations are then its agent's.
    """

    def ask(self, turn: Turn, actions: Matrix) -> Duel:
        """Choose the next duel among ``actions`` (K, d) and commit to it."""
        if turn.is_warmup:
            first, second = random_pair(len(actions), turn.rng.random())
        else:
            first, second = turn.rule(*turn.known, self.view(actions), turn.rng)
        if turn.rng.random() < 0.5:
            first, second = second, first
        features = actions[[first, second]]
        duel = Duel(turn.number, int(first), int(second), features[0] - features[1], features=features)
        return self.weighed(turn, duel)

    def weighed(self, turn: Turn, duel: Duel) -> Duel:
        """Weigh a chosen duel by what is known without it, and commit to it."""
        width = self.width(duel)
        weight, slope = turn.trust_rule(*turn.known, self.lead(duel), width)
        duel = replace(duel, weight=float(weight), width=width, slope=float(slope))
        if not duel.is_self_duel:
            self.commit(duel)
        return duel

    @abstractmethod
    def renew(self, pending: Iterable[Duel]) -> None:
        """Take in what was told since the last time; ``pending`` duels were asked but not told."""

    @contextmanager
    def looked_at(self, pending: Iterable[Duel]) -> Iterator[Self]:
        """Yield what is believed after :meth:`renew`, with no effect on what follows."""
        seen = deepcopy(self)
        seen.renew(pending)
        yield seen

    @abstractmethod
    def view(self, actions: Matrix) -> View:
        """What a rule sees of ``actions`` (K, d)."""

    @abstractmethod
    def lead(self, duel: Duel) -> float:
        """How far the first action of a duel is believed ahead."""

    @abstractmethod
    def width(self, duel: Duel) -> float:
        """How uncertain that is; 0 for a self-duel."""

    @abstractmethod
    def commit(self, duel: Duel) -> None:
        """Take in that a duel between two different actions was asked."""

    @abstractmethod
    def withdraw(self, duel: Duel) -> None:
        """Undo :meth:`commit`, because the duel will never be answered."""

    @abstractmethod
    def tell(self, duel: Duel, share: float) -> None:
        """Learn the outcome of a duel: ``share`` is 1, 0, or ½ for a tie. Self-duels teach nothing."""

    @abstractmethod
    def rewards(self, actions: Matrix) -> Vector:
        """The estimated rewards of ``actions`` (K, d), up to a constant, shape (K,)."""

    def features_of(self, actions: Matrix) -> Matrix:
        """The features in which :attr:`votes` are, of ``actions`` (K, d)."""
        return actions

    @property
    def votes(self) -> Comparisons | None:
        """All votes in the order of telling, for a linear belief that keeps them."""
        return None

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`restore` needs, as nested dictionaries of JSON values and arrays."""

    @abstractmethod
    def restore(self, state: dict[str, Any], most: int) -> None:
        """Load what :meth:`state` returned, after checking it; at most ``most`` duels were told."""


class LinearBelief(Belief):
    """θ of eq. (MLE), and Σ of all duels asked (Algorithm 1, lines 4 and 3).

    Args:
        dimension: d.
        ridge: λ.
        link: σ.
        design_slope: The coefficient of a duel in Σ, before its weight.
        estimator: How θ is computed.
        ball: A bound on ‖θ‖.
        room: The number of distinct duels to make room for.
    """

    has_local: ClassVar[bool] = False
    """Whether exploration has a matrix of its own, Λ."""
    by_hessian: ClassVar[bool] = False
    """Whether that is the Hessian of the estimate, in whose norm all widths then are."""

    def __init__(
        self,
        dimension: int,
        *,
        ridge: float,
        link: Link,
        design_slope: float = 1.0,
        estimator: EstimatorName = "exact",
        ball: float = math.inf,
        room: int = 64,
    ) -> None:
        self._dimension, self._ridge, self._design_slope = dimension, ridge, design_slope
        self.information = Information(dimension, ridge)
        """Σ."""
        self._local = Information(dimension if self.has_local else 0, ridge)
        self.estimator = Estimator(estimator, dimension, ridge=ridge, link=link, ball=ball, room=room)

    @property
    def steering(self) -> Information:
        """The matrix that steers exploration: Λ if there is one, else Σ."""
        return self._local if self.has_local else self.information

    @property
    def theta(self) -> Vector:
        """θ as of the last fit, shape (d,)."""
        return self.estimator.theta

    @property
    def votes(self) -> Comparisons | None:
        """All votes in the order of telling; ``None`` if the estimator keeps none."""
        return None if self.estimator.is_one_pass else self.estimator.told

    def renew(self, pending: Iterable[Duel]) -> None:  # noqa: ARG002
        """Refit θ if that is due."""
        self.estimator.refit(self.information.log_determinant)

    @contextmanager
    def looked_at(self, pending: Iterable[Duel]) -> Iterator[Self]:  # noqa: ARG002
        """Yield the belief with a new fit, if one is due, and take that back."""
        with self.estimator.looked_at(self.information.log_determinant):
            yield self

    def ask(self, turn: Turn, actions: Matrix) -> Duel:
        """Choose the next duel and commit to it, in one compiled step."""
        self._look_at(actions)
        step = asking(turn.rule, turn.trust_rule)
        actions = np.asarray(actions, dtype=np.float64)
        return Duel(turn.number, *step(*turn.known, *self.known, actions, turn.is_warmup, turn.rng))

    @property
    def known(self) -> Known:
        """The arrays for compiled functions."""
        return Known(self.information.arrays, self._local.arrays, self.estimator.theta)

    def view(self, actions: Matrix) -> View:
        """What a rule sees of ``actions`` (K, d)."""
        self._look_at(actions)
        arrays = self.steering.arrays
        fill_gram(arrays.gram, arrays.marks, arrays.inverse, actions)
        return view(arrays.gram, arrays.inverse, actions, self.theta)

    def _look_at(self, actions: Matrix | None) -> None:
        self.information.set_actions(actions, few=not self.has_local)
        if self.has_local:
            self._local.set_actions(actions)

    def lead(self, duel: Duel) -> float:
        """φᵀθ."""
        return float(dot(duel.difference, self.theta))

    def width(self, duel: Duel) -> float:
        """‖φ‖ in the norm of Σ⁻¹, or of the Hessian's inverse."""
        self._look_at(None)  # the duel's features need not be those of the actions that were asked about
        return (self._local if self.by_hessian else self.information).width(duel.difference)

    def commit(self, duel: Duel) -> None:
        """Add the duel to Σ and Λ (Algorithm 1, line 3; Algorithm 2, lines 4 and 6)."""
        self._add(duel, duel.weight)

    def withdraw(self, duel: Duel) -> None:
        """Subtract the duel from Σ and Λ."""
        self._add(duel, -duel.weight)

    def _add(self, duel: Duel, weight: float) -> None:
        self.information.add(duel.difference, weight * self._design_slope)
        if self.has_local:
            self._local.add(duel.difference, weight * duel.slope)

    def tell(self, duel: Duel, share: float) -> None:
        """Learn the outcome of a duel."""
        self.estimator.tell((duel.first, duel.second), duel.difference, weight=duel.weight, share=share)

    def rewards(self, actions: Matrix) -> Vector:
        """xᵀθ of each action (K, d), shape (K,)."""
        return np.asarray(actions @ self.theta)

    def take(self, estimator: EstimatorArrays) -> None:
        """Take over what a compiled run told an estimator with these settings."""
        self.estimator.take(estimator)

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`restore` needs, as nested dictionaries of JSON values and arrays."""
        matrices = {"information": self.information.state()}
        if self.has_local:
            matrices["local_information"] = self._local.state()
        return matrices | {"estimator": self.estimator.state()}

    def restore(self, state: dict[str, Any], most: int) -> None:
        """Load what :meth:`state` returned, after checking it."""
        self.information = Information.from_state(state["information"], self._dimension)
        if self.has_local:
            self._local = Information.from_state(state["local_information"], self._dimension)
        self.estimator.restore(state["estimator"], most)


class LocalSlopeBelief(LinearBelief):
    """A linear belief with Λ, in which each duel counts by its own slope (Algorithm 2, line 6)."""

    has_local = True


class HessianBelief(LocalSlopeBelief):
    """A linear belief that measures widths by H, the Hessian of the estimate: duels on a flat part of σ count less.

    Whenever θ changes, H = λI + Σ_i w_i σ′(φ_iᵀθ) φ_i φ_iᵀ is computed again over everything told; with the one-pass
    estimator it is mirror descent's own. A pending duel counts too, by its slope when it was asked.
    """

    by_hessian = True

    def renew(self, pending: Iterable[Duel]) -> None:
        """Refit θ if that is due, and H with it."""
        if self.estimator.refit(self.information.log_determinant):
            self._measure(pending)

    @contextmanager
    def looked_at(self, pending: Iterable[Duel]) -> Iterator[Self]:
        """Yield the belief with a new fit and H, if one is due, and take both back."""
        with self.estimator.looked_at(self.information.log_determinant) as is_new:
            kept = self._local
            if is_new:
                self._local = Information(self._dimension, self._ridge)
                self._measure(pending)
            try:
                yield self
            finally:
                self._local = kept

    def _measure(self, pending: Iterable[Duel]) -> None:
        self._local.replace(self.estimator.hessian)
        for duel in pending:
            if not duel.is_self_duel:
                self._local.add(duel.difference, duel.weight * duel.slope)
