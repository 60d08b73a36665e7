"""The belief of an agent whose features are learned from the votes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairduel.agents.parts.belief import Belief, LinearBelief
from fairduel.checks import ensure, integer
from fairduel.core.compiling import compiled
from fairduel.core.information import checked_array, rank_one, squared_width
from fairduel.core.likelihood import Comparisons
from fairduel.core.links import Link
from fairduel.core.selection import View, uncertainty_weight
from fairduel.duel import Duel, Matrix, Vector
from fairduel.features import FeatureMap, TrainingVotes


@compiled
def weigh_again(
    differences: Matrix, trusts: Vector, trust: float, slope: float, matrix: Matrix, inverse: Matrix
) -> Vector:
    """Return the weights of duels with these differences (n, m) in the order of asking, and add them to Σ.

    w_i = t_i min(1, α/‖φ_i‖) by Σ of the duels before it, as in Algorithm 1, lines 3 and 8; t_i is what else the agent
    trusted the duel by. Σ (m, m) and its inverse change in place.
    """
    weights = np.empty(len(differences))
    for i in range(len(differences)):
        weights[i] = trusts[i] * uncertainty_weight(trust, np.sqrt(squared_width(inverse, differences[i])))
        rank_one(matrix, inverse, differences[i], weights[i] * slope, i + 1)
    return weights


@dataclass(slots=True)
class StoredDuel:
    """A duel that was asked and not cancelled."""

    features: Matrix
    """Of its two actions, shape (2, d)."""
    trust: float
    """Its weight over min(1, α/‖φ‖)."""
    weight: float
    share: float = np.nan
    """The first action's share of the win; NaN while it is pending."""
    place: int = -1
    """Its place in the order of telling."""


class LearnedBelief(Belief):
    """Rewards that are linear in features which a map learns: a network, or a kernel whose length scale is chosen.

    When there are ``growth`` times as many votes, and at least ``every`` more, the map is refitted to all of them. Then
    Σ, the weights and θ are computed again from the stored duels, in the order of asking, as if the agent had always
    had the new features. So they never mix features of different maps, and a lie weighs little if it was told when
    little was known. Between two refits the belief is linear, and θ is that of eq. (MLE) in every round.

    Args:
        features: The map, fitted.
        ridge: λ.
        link: σ.
        design_slope: The coefficient of a duel in Σ, before its weight.
        trust: α.
        settings: Further settings of the linear belief.
    """

    def __init__(
        self,
        features: FeatureMap,
        *,
        ridge: float,
        link: Link,
        design_slope: float = 1.0,
        trust: float = np.inf,
        **settings: Any,
    ) -> None:
        self.features = features
        self._ridge, self._link, self._design_slope, self._trust = ridge, link, design_slope, trust
        self._settings = settings
        self.linear = self._new_linear()
        """What is believed in the current features."""
        self._asked: dict[int, StoredDuel] = {}
        self._told = 0
        self._next_refit = features.every

    def _new_linear(self) -> LinearBelief:
        return LinearBelief(
            self.features.size, ridge=self._ridge, link=self._link, design_slope=self._design_slope, **self._settings
        )

    # ------------------------------------------------------------------ what agents ask of a belief

    def features_of(self, actions: Matrix) -> Matrix:
        """The current features of ``actions`` (K, d), shape (K, m)."""
        return self.features(actions)

    @property
    def votes(self) -> Comparisons | None:
        """All votes in the order of telling, in the current features."""
        return self.linear.votes

    def renew(self, pending: Iterable[Duel]) -> None:
        """Refit the map if that is due, and θ."""
        if self._told >= self._next_refit:
            self._learn()
        self.linear.renew(pending)

    @contextmanager
    def looked_at(self, pending: Iterable[Duel]) -> Iterator[Self]:
        """Yield the belief with a new θ, if one is due, and take that back; the map waits for the next duel."""
        with self.linear.looked_at(pending):
            yield self

    def view(self, actions: Matrix) -> View:
        """What a rule sees of ``actions`` (K, d)."""
        return self.linear.view(self.features(actions))

    def lead(self, duel: Duel) -> float:
        """φᵀθ, in features."""
        return float(self._difference(duel.features) @ self.linear.theta)

    def width(self, duel: Duel) -> float:
        """‖φ‖_Σ⁻¹, in features."""
        return self.linear.information.width(self._difference(duel.features))

    def commit(self, duel: Duel) -> None:
        """Add the duel to Σ, and remember it."""
        certain = uncertainty_weight(self._trust, duel.width)
        self._asked[duel.number] = StoredDuel(duel.features.copy(), duel.weight / certain, duel.weight)
        self.linear.information.add(self._difference(duel.features), duel.weight * self._design_slope)

    def withdraw(self, duel: Duel) -> None:
        """Subtract the duel from Σ, and forget it."""
        lost = self._asked.pop(duel.number)
        self.linear.information.add(self._difference(lost.features), -lost.weight * self._design_slope)

    def tell(self, duel: Duel, share: float) -> None:
        """Learn the outcome of a duel."""
        if duel.is_self_duel:
            return
        asked = self._asked[duel.number]
        asked.share, asked.place = share, self._told
        self._told += 1
        self._learn_outcome(asked, self._difference(asked.features))

    def rewards(self, actions: Matrix) -> Vector:
        """φ(x)ᵀθ of each action (K, d), shape (K,)."""
        return self.linear.rewards(self.features(actions))

    def _difference(self, features: Matrix) -> Vector:
        first, second = self.features(features)
        return np.asarray(first - second)

    def _learn_outcome(self, asked: StoredDuel, difference: Vector) -> None:
        self.linear.estimator.tell((0, 1), difference, weight=asked.weight, share=asked.share)

    # ------------------------------------------------------------------ refitting

    def _ballots(self) -> TrainingVotes:
        """All votes in the order of telling."""
        told = sorted((asked for asked in self._asked.values() if asked.place >= 0), key=lambda asked: asked.place)
        pairs = np.array([asked.features for asked in told])
        weights, shares = (np.array(part) for part in zip(*((each.weight, each.share) for each in told), strict=True))
        return TrainingVotes(pairs[:, 0], pairs[:, 1], weights, shares)

    def _learn(self) -> None:
        """Refit the map to all votes, and compute Σ, all weights and θ again in its features."""
        self._schedule()
        ballots = self._ballots()
        rows = np.unique(np.concatenate([ballots.first, ballots.second]), axis=0)
        self.features = self.features.trained(ballots, link=self._link, ridge=self._ridge, actions=rows)
        self._replay()

    def _schedule(self) -> None:
        """Decide when the map is refitted next."""
        self._next_refit = max(self._told + self.features.every, int(self.features.growth * self._told))

    def _replay(self) -> None:
        """Compute Σ, all weights and θ again from the stored duels."""
        self.linear = self._new_linear()
        asked = list(self._asked.values())
        mapped = self.features(np.concatenate([each.features for each in asked])).reshape(len(asked), 2, -1)
        differences = mapped[:, 0] - mapped[:, 1]
        matrix = self._ridge * np.eye(self.features.size)
        trusts = np.array([each.trust for each in asked])
        inverse = np.eye(self.features.size) / self._ridge
        weights = weigh_again(differences, trusts, self._trust, self._design_slope, matrix, inverse)
        self.linear.information.replace(matrix)
        for each, weight in zip(asked, weights.tolist(), strict=True):
            each.weight = weight
        told = sorted((i for i, each in enumerate(asked) if each.place >= 0), key=lambda i: asked[i].place)
        for i in told:
            self._learn_outcome(asked[i], differences[i])

    # ------------------------------------------------------------------ saving and loading

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`restore` needs, as nested dictionaries of JSON values and arrays."""
        asked = list(self._asked.values())
        d = self.features.dimension
        return {
            "features": self.features.state(),
            "linear": self.linear.state(),
            "told": self._told,
            "next_refit": self._next_refit,
            "numbers": np.array(list(self._asked), dtype=np.int64),
            "pairs": np.array([each.features for each in asked]).reshape(-1, 2, d),
            "trusts": np.array([each.trust for each in asked]),
            "weights": np.array([each.weight for each in asked]),
            "halves": np.array([-1 if each.place < 0 else int(2 * each.share) for each in asked], dtype=np.int64),
            "places": np.array([each.place for each in asked], dtype=np.int64),
        }

    def restore(self, state: dict[str, Any], most: int) -> None:
        """Load what :meth:`state` returned, after checking it."""
        self.features = self._checked(state["features"])
        self.linear = self._new_linear()
        self.linear.restore(state["linear"], most)
        self._told = integer("told", state["told"])
        self._next_refit = integer("next_refit", state["next_refit"], least=1)
        ensure(self._told <= most, f"there are {self._told} votes but only {most} duels")
        numbers = _integers("the duels' numbers", state["numbers"])
        places = _integers("the votes' places", state["places"], len(numbers))
        halves = _integers("the votes' outcomes", state["halves"], len(numbers))
        pairs = checked_array("the duels' features", state["pairs"], (len(numbers), 2, self.features.dimension))
        trusts = checked_array("the duels' trusts", state["trusts"], (len(numbers),))
        weights = checked_array("the duels' weights", state["weights"], (len(numbers),))
        ensure((np.diff(numbers) > 0).all() and (numbers >= 0).all(), "the duels' numbers do not increase")
        ensure((min(trusts, default=0.0), min(weights, default=0.0)) >= (0.0, 0.0), "a duel's weight is negative")
        is_told = places >= 0
        ensure((np.sort(places[is_told]) == np.arange(self._told)).all(), "the votes' places do not count up")
        ensure(((halves >= 0) == is_told).all() and (halves <= 2).all(), "a vote's outcome is not 0, 1 or 2")
        shares = np.where(is_told, halves / 2.0, np.nan)
        self._asked = {
            int(numbers[i]): StoredDuel(pairs[i], float(trusts[i]), float(weights[i]), float(shares[i]), int(places[i]))
            for i in range(len(numbers))
        }

    def _checked(self, state: dict[str, Any]) -> FeatureMap:
        """Load a map, and check that it is one of this agent's."""
        loaded, own = FeatureMap.from_state(state), self.features
        ensure(type(loaded) is type(own), "the saved map is of another class")
        ensure(loaded.settings == own.settings, "the saved map has other settings")
        ensure(loaded.dimension == own.dimension, f"the saved map does not take {own.dimension} features")
        return loaded


def _integers(name: str, array: Any, count: int | None = None) -> Any:
    ensure(isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1, f"{name} are not integers")
    ensure(count is None or len(array) == count, f"there are {len(array)} of {name}, not {count}")
    return array.copy()
