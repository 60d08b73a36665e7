"""Neural dueling bandits (Verma 2024): NDB-UCB and NDB-TS. They need PyTorch, the ``neural`` extra."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairduel.agents.parts.belief import Belief
from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.learned import LearnedBelief
from fairduel.agents.parts.round import Memory, Now, Plan
from fairduel.agents.parts.rules import greedy_and_rival
from fairduel.agents.parts.settings import RecommendBy
from fairduel.core.compiling import inlined
from fairduel.core.likelihood import Comparisons
from fairduel.core.selection import View, pick, sampled_rival
from fairduel.duel import Duel, Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.features import Network


@inlined
def greedy_and_sampled(
    plan: Plan,
    now: Now,
    memory: Memory,  # noqa: ARG001
    seen: View,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Return the action with the highest estimated reward, and the best of one posterior sample of each rival."""
    first = pick(seen.rewards, rng.random())
    draws = rng.standard_normal(seen.rewards.size)
    return first, sampled_rival(seen, now.radius, first, draws, plan.self_duels, rng.random())


class NetworkBelief(LearnedBelief):
    """Rewards of a trained network; widths in the tangent features that it had at the start."""

    def __init__(self, features: Network, **settings: Any) -> None:
        super().__init__(features, **settings)
        self.network = features
        """The trained network; ``features`` stay those of the start."""

    @property
    def votes(self) -> Comparisons | None:
        """None: the rewards are linear in no features."""
        return None

    def renew(self, pending: Iterable[Duel]) -> None:  # noqa: ARG002
        """Train the network if that is due."""
        if self._told >= self._next_refit:
            self._learn()

    @contextmanager
    def looked_at(self, pending: Iterable[Duel]) -> Iterator[Self]:  # noqa: ARG002
        """Yield the belief as it is: the network waits for the next duel."""
        yield self

    def view(self, actions: Matrix) -> View:
        """What a rule sees of ``actions`` (K, d)."""
        return super().view(actions)._replace(rewards=self.rewards(actions))

    def lead(self, duel: Duel) -> float:
        """How far the network has the first action ahead."""
        first, second = self.rewards(duel.features)
        return float(first - second)

    def rewards(self, actions: Matrix) -> Vector:
        """The network's rewards of ``actions`` (K, d), shape (K,)."""
        return self.network.rewards(actions)

    def _learn(self) -> None:
        self._schedule()
        self.network = self.network.trained(self._ballots(), link=self._link, ridge=self._ridge)

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`restore` needs, as nested dictionaries of JSON values and arrays."""
        return super().state() | {"network": self.network.state()}

    def restore(self, state: dict[str, Any], most: int) -> None:
        """Load what :meth:`state` returned, after checking it."""
        super().restore(state, most)
        loaded = self._checked(state["network"])
        assert isinstance(loaded, Network)
        self.network = loaded


@dataclass(kw_only=True, eq=False)
class NDBUCB(ContextualAgent):
    """Ask the action that a neural network likes best, and its toughest rival by an upper confidence bound.

    Verma 2024, with a network of 2 × 50 ReLU units, λ = ν = 1, and h its output minus that before training::

        every 20 votes: train the network on all of them, with the ridge λ/2 ‖W − W₀‖²
        a ← argmax h(x_i)
        b ← argmax h(x_i) − h(x_a) + ν‖g(x_i) − g(x_a)‖_V⁻¹
        ask a against b; V ← V + (g_a − g_b)(g_a − g_b)ᵀ

    This is our port; no code was published. Departures: g are the gradients at the start along their 200 largest
    principal components among random actions, scaled to a mean squared distance of 1; from 200 votes on the network is
    trained again when a tenth are new.

    Args:
        radius: ν: 1, or a number.
        map: A :class:`~fairduel.features.Network` with tangent features; ``None`` uses the one above.
        ridge: λ; ``None`` uses 1.
    """

    title = "NDB-UCB"
    colour = "#44AA99"

    recommend_by: RecommendBy = "estimate"

    _rule = staticmethod(greedy_and_rival)

    def __post_init__(self) -> None:
        if self.map is None:
            self.map = Network(features="tangent", components=200, pull=1.0, every=20)
        super().__post_init__()

    def _new_belief(self, room: int = 64) -> Belief:
        if not isinstance(self.map, Network):
            raise BadInputError(f"{self.title} needs a network as its map, not {self.map}; omit map.")
        return NetworkBelief(self.map, ridge=self._ridge, link=self._link, room=room)

    def _default_ridge(self) -> float:
        return 1.0

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return 1.0

    _theory_radius = _practical_radius

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical",)


@dataclass(kw_only=True, eq=False)
class NDBTS(NDBUCB):
    """Ask the action that a neural network likes best, and the best of one posterior sample of each rival.

    :class:`NDBUCB` with b ← argmax of draws from N(h(x_i) − h(x_a), ν²‖g(x_i) − g(x_a)‖²_V⁻¹).
    """

    title = "NDB-TS"
    colour = "#999933"

    _rule = staticmethod(greedy_and_sampled)
