"""Which pair to ask next: one pure function for each selection rule.

``actions`` is (K, d), θ is (d,), ``inverse`` is Σ⁻¹ (d, d). Scores within ``TIE`` of the best count as
equal; ``tie`` is one uniform number in [0, 1) that picks among them, so that the caller owns all randomness.
"""

import math

import numpy as np

from fairduel._compiled import compiled
from fairduel.duel import Matrix, Vector

TIE = 1e-9


@compiled
def pair_widths(actions: Matrix, inverse: Matrix) -> Matrix:
    """‖x_i − x_j‖_Σ⁻¹ for all pairs, shape (K, K), from one Gram matrix."""
    gram = (actions @ inverse) @ actions.T
    count = len(actions)
    widths = np.empty((count, count))
    for i in range(count):
        for j in range(i + 1):
            squared = gram[i, i] + gram[j, j] - 2.0 * gram[i, j]
            widths[i, j] = widths[j, i] = math.sqrt(max(squared, 0.0)) if i != j else 0.0
    return widths


@compiled
def pick(scores: Vector, tie: float) -> int:
    """Index of the largest score; ties are broken by ``tie``. −∞ marks what may not be picked."""
    best = np.max(scores)
    level = 0
    for i in range(scores.size):
        level += scores[i] >= best - TIE
    chosen = int(tie * level)
    for i in range(scores.size):
        if scores[i] >= best - TIE:
            if chosen == 0:
                return i
            chosen -= 1
    return 0


@compiled
def symmetric_pair(
    actions: Matrix, theta: Vector, inverse: Matrix, radius: float, self_duels: bool, tie: float
) -> tuple[int, int]:
    """argmax over (a, b) of (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹ (Algorithm 1, line 6)."""
    rewards = actions @ theta
    widths = pair_widths(actions, inverse)
    count = rewards.size
    scores = np.empty(count * (count + 1) // 2)
    k = 0
    for a in range(count):
        for b in range(a + 1):
            scores[k] = rewards[a] + rewards[b] + radius * widths[a, b]
            if a == b and not self_duels:
                scores[k] = -np.inf
            k += 1
    chosen = pick(scores, tie)
    first = int((math.sqrt(8.0 * chosen + 1.0) - 1.0) / 2.0)
    return first, chosen - first * (first + 1) // 2


@compiled
def promising(rewards: Vector, widths: Matrix, radius: float) -> Vector:
    """Whether (x_i − x_j)ᵀθ + η‖x_i − x_j‖_Σ⁻¹ > 0 for all x_j ≠ x_i, as 0.0 or 1.0, shape (K,)."""
    count = rewards.size
    result = np.ones(count)
    for i in range(count):
        for j in range(count):
            if widths[i, j] > 0.0 and rewards[i] - rewards[j] + radius * widths[i, j] <= 0.0:
                result[i] = 0.0
                break
    return result


@compiled
def toughest_rival(rewards: Vector, widths: Matrix, radius: float, first: int, self_duels: bool, tie: float) -> int:
    """argmax over i of (x_i − x_first)ᵀθ + c‖x_i − x_first‖_Σ⁻¹; ``first`` itself scores 0."""
    scores = rewards - rewards[first] + radius * widths[first]
    if not self_duels:
        scores[first] = -np.inf
    return pick(scores, tie)


@compiled
def informative_pair(
    actions: Matrix, theta: Vector, inverse: Matrix, radius: float, self_duels: bool, tie: float
) -> tuple[int, int]:
    """Choose the pair of promising actions with the largest ‖x_a − x_b‖_Σ⁻¹ (MaxInP).

    One promising action alone duels itself, as does the greedy one where none is promising; where
    self-duels are not allowed, each meets its toughest rival instead.
    """
    rewards = actions @ theta
    widths = pair_widths(actions, inverse)
    candidates = np.flatnonzero(promising(rewards, widths, radius))
    if candidates.size < 2:
        first = candidates[0] if candidates.size == 1 else pick(rewards, tie)
        if self_duels:
            return first, first
        return first, toughest_rival(rewards, widths, radius, first, False, tie)
    count = candidates.size
    scores = np.empty(count * (count - 1) // 2)
    k = 0
    for i in range(count):
        for j in range(i):
            scores[k] = widths[candidates[i], candidates[j]]
            k += 1
    chosen = pick(scores, tie)
    i = int((math.sqrt(8.0 * chosen + 1.0) + 1.0) / 2.0)
    return candidates[i], candidates[chosen - i * (i - 1) // 2]


@compiled
def perturbations(draws: Vector, own: bool, gaussian: bool, threshold: float) -> Vector:
    """Make CoLSTIM's noise of K draws: uniform ones become Gumbel(0, 1), ``gaussian`` ones stay; clipped to ±threshold.

    Without ``own`` noise all actions share the first.
    """
    noise = np.empty_like(draws)
    for i in range(draws.size):
        draw = draws[i] if own else draws[0]
        value = draw if gaussian else -np.log(-np.log(draw))
        noise[i] = min(max(value, -threshold), threshold)
    return noise


@compiled
def perturbed_pair(
    actions: Matrix,
    theta: Vector,
    inverse: Matrix,
    radius: float,
    noise: Vector,
    self_duels: bool,
    tie: float,
) -> tuple[int, int]:
    """Choose the leader under ``noise`` (K,), then its toughest rival (CoLSTIM).

    a = argmax x_iᵀθ + ε_i‖x_i‖_Σ⁻¹, b = argmax (x_i − x_a)ᵀθ + c‖x_i − x_a‖_Σ⁻¹.
    """
    rewards = actions @ theta
    gram = actions @ inverse
    perturbed = np.empty_like(rewards)
    for i in range(rewards.size):
        perturbed[i] = rewards[i] + noise[i] * math.sqrt(max(np.dot(gram[i], actions[i]), 0.0))
    first = pick(perturbed, tie)
    return first, toughest_rival(rewards, pair_widths(actions, inverse), radius, first, self_duels, tie)


@compiled
def random_pair(count: int, uniform: float) -> tuple[int, int]:
    """One of the K(K − 1) ordered pairs of distinct actions, by one uniform number in [0, 1)."""
    index = int(uniform * count * (count - 1))
    first, second = index // (count - 1), index % (count - 1)
    return first, second + (second >= first)


@compiled
def uncertainty_weight(trust: float, width: float) -> float:
    """w = min(1, α/‖φ‖_Σ⁻¹), eq. (weight); 1 for a self-duel, whose width is 0."""
    return 1.0 if width <= trust else trust / width
