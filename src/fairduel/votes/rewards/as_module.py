"""A learned reward as a PyTorch module. PyTorch is imported when one is made, never with this file."""

from typing import Any

import numpy as np

from fairduel.duel import Vector
from fairduel.features.network import pytorch
from fairduel.votes.rewards.heads import RewardHead


def reward_module(head: RewardHead, theta: Vector) -> Any:
    """Return a ``torch.nn.Module`` that maps features of answers (…, d) to their rewards (…).

    Its numbers are buffers: they move with ``.to(device)`` and are saved with ``state_dict()``, but are not trained.
    """
    torch = pytorch()
    linear = not len(head.landmarks)
    weight = theta / head.scale if linear else head.whitening @ theta

    class Reward(torch.nn.Module):  # type: ignore[misc, name-defined]  # PyTorch need not be installed
        """A reward that is linear in an answer's features, or in its kernel with other answers."""

        def __init__(self) -> None:
            super().__init__()
            numbers = {"weight": weight, "scale": head.scale, "landmarks": head.landmarks}
            for name, values in numbers.items():
                self.register_buffer(name, torch.tensor(np.asarray(values), dtype=torch.get_default_dtype()))

        def forward(self, answers: Any) -> Any:
            if linear:
                return answers @ self.weight
            apart = torch.cdist(answers / self.scale, self.landmarks, compute_mode="donot_use_mm_for_euclid_dist")
            return torch.exp(-head.gamma * apart**2) @ self.weight

    return Reward().eval()
