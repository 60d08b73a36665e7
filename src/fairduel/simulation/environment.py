"""Worlds and attacks as an environment of Gymnasium, for agents that are written for its interface."""

from typing import Any

import numpy as np

from fairduel.by_name import find
from fairduel.checks import needs_extra
from fairduel.duel import Matrix, Outcome
from fairduel.errors import BadInputError
from fairduel.simulation.cell import Cell
from fairduel.simulation.play import referee, true_regrets
from fairduel.worlds import WORLDS
from fairduel.worlds.world import Offer, RewardWorld

with needs_extra("gym"):
    import gymnasium
    from gymnasium import spaces


class DuelingEnv(gymnasium.Env[Matrix, np.ndarray]):
    """A dueling world with an attacker: ``horizon`` rounds of the paper's loop.

    An observation is the actions of the round, shape (K, d), and an action is a pair of their indices. The reward is
    what the agent is told, perhaps falsely: 1 if the first won, 0 if the second did, ½ for a tie. What it must not see
    is in ``info``: the regret of the duel, and whether its outcome was flipped. A seed plays the same world, answers
    and attack as :class:`fairduel.simulation.Cell` does.

    Args:
        world: Name of a dueling world, or ``module:Class`` for your own.
        attack: Name of an attack on duels, or ``module:Class`` for your own.
        budget: C, how many outcomes it may flip.
        horizon: T, the number of rounds.
        world_settings: Settings of the world by name.
        attack_settings: Settings of the attack by name.

    >>> environment = DuelingEnv(attack="greedy", budget=45, horizon=3)
    >>> actions, _ = environment.reset(seed=0)
    >>> actions.shape, environment.action_space
    ((32, 5), MultiDiscrete([32 32]))
    >>> _, told, _, is_over, info = environment.step((0, 31))
    >>> told in (0.0, 1.0), is_over, info["flipped"]
    (True, False, True)
    """

    def __init__(
        self,
        *,
        world: str = "hypercube",
        attack: str = "none",
        budget: int = 0,
        horizon: int = 2000,
        world_settings: dict[str, Any] | None = None,
        attack_settings: dict[str, Any] | None = None,
    ) -> None:
        kind = find("world", world, WORLDS)
        if isinstance(kind, type) and issubclass(kind, RewardWorld):
            raise BadInputError(f"world {world} returns rewards, not duels; use hypercube, for example.")
        self._cell = Cell(
            "random-pairs",  # the agent is outside
            attack,
            budget,
            horizon,
            world,
            world_settings=world_settings or {},
            attack_settings=attack_settings or {},
        )
        _, world_made, adversary, _ = self._cell.start(seed=0)
        if getattr(adversary, "watches", False):
            raise BadInputError(f"attack {attack} watches an agent of fairduel, which an environment has not.")
        shape = world_made.offer(1).actions.shape
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = spaces.MultiDiscrete([shape[0], shape[0]])
        self._offer: Offer | None = None
        self._round = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Matrix, dict[str, Any]]:
        """Begin a run; without a seed, that of the next run is random."""
        super().reset(seed=seed, options=options)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        self._player, world, adversary, streams = self._cell.start(drawn)
        self._world, self._labels, self._answer = world, streams.labels, referee(world, adversary)
        self._round = 1
        self._offer = world.offer(1)
        return self._offer.actions.copy(), {"seed": drawn}

    def step(self, action: Any) -> tuple[Matrix, float, bool, bool, dict[str, Any]]:
        """Duel two actions; the run is truncated after the last round."""
        if self._offer is None:
            raise BadInputError("the run has not begun or is over: call reset.")
        offer, pair = self._offer, tuple(int(index) for index in action)
        first, second, told, corruption = self._answer(self._round, offer, pair, self._labels.random(), self._player)
        regret, weak = true_regrets(offer.rewards, first, second)
        info = {"regret": float(regret), "weak_regret": float(weak), "flipped": bool(corruption)}
        is_over = self._round == self._cell.horizon
        self._round += 1
        self._offer = None if is_over else self._world.offer(self._round)
        seen = offer if self._offer is None else self._offer
        reward = 1.0 if told is Outcome.FIRST else 0.0 if told is Outcome.SECOND else 0.5
        return seen.actions.copy(), reward, False, is_over, info
