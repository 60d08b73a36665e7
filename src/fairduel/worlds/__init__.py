"""Worlds: where actions and answers come from."""

from collections.abc import Callable

from fairduel.worlds.fresh import Curved, Fresh
from fairduel.worlds.hard import HardCorrupted, HardStochastic
from fairduel.worlds.hypercube import Hypercube
from fairduel.worlds.mesh import Mesh
from fairduel.worlds.post_serving import PostServing
from fairduel.worlds.preferences import PreferenceWorld
from fairduel.worlds.replay import Replay
from fairduel.worlds.rewards import Arms, Linear
from fairduel.worlds.table import Table
from fairduel.worlds.world import DuelingWorld, FixedWorld, Offer, RewardWorld, World

WORLDS: dict[str, Callable[..., World]] = {
    "hypercube": Hypercube,
    "fresh": Fresh,
    "curved": Curved,
    "mesh": Mesh,
    "hard-stochastic": HardStochastic,
    "hard-corrupted": HardCorrupted,
    "table": Table.read,
    "arms": Arms,
    "linear": Linear,
    "preferences": PreferenceWorld.draw,
    "replay": Replay,
    "post-serving": PostServing,
}
"""Every world by name; each takes ``rng`` and its own settings."""

__all__ = [
    "WORLDS",
    "Arms",
    "Curved",
    "DuelingWorld",
    "FixedWorld",
    "Fresh",
    "HardCorrupted",
    "HardStochastic",
    "Hypercube",
    "Linear",
    "Mesh",
    "Offer",
    "PostServing",
    "PreferenceWorld",
    "Replay",
    "RewardWorld",
    "Table",
    "World",
]
