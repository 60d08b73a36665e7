"""Rules: which pair of the actions to ask next. Trusts: how much a duel counts, and how much it informs.

Both are compiled functions of the agent's settings, of the round and of what is remembered. A rule also sees a
:class:`~fairduel.core.selection.View` of the actions: estimated rewards and pairwise widths. A trust sees how far the
first action of the chosen duel is believed ahead (``lead``, φᵀθ of a linear belief) and how uncertain that is
(``width``). It returns the weight w and the slope by which the duel counts in Λ.
"""

# ruff: noqa: ARG001  # all rules have one signature, and all trusts another

import numpy as np

from fairduel.agents.parts.round import Memory, Now, Plan
from fairduel.core.compiling import inlined
from fairduel.core.links import slope
from fairduel.core.selection import (
    View,
    informative_pair,
    perturbations,
    perturbed_pair,
    pick,
    symmetric_pair,
    thrifty_pair,
    toughest_rival,
    uncertainty_weight,
)


@inlined
def by_uncertainty(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> tuple[float, float]:
    """Return w = min(1, α/‖φ‖), eq. (weight), and 1 or κ; with α = ∞ every duel counts fully."""
    return uncertainty_weight(plan.trust, width), plan.design_slope


@inlined
def by_local_slope(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> tuple[float, float]:
    """Return w of Algorithm 2, line 12, and v_t, a lower bound on the slope at this duel (lines 14 and 15)."""
    largest = abs(lead) + now.slope_radius * width  # Δ̂_t
    link = plan.link
    return uncertainty_weight(plan.trust, width), max(plan.kappa, slope(link.kind, link.scale, largest))


@inlined
def by_curvature(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> tuple[float, float]:
    """Return w = min(1, α/‖φ‖) and the slope σ′(φᵀθ) by which a duel counts in H until it is told."""
    link = plan.link
    return uncertainty_weight(plan.trust, width), slope(link.kind, link.scale, lead)


@inlined
def is_doubted(now: Now, memory: Memory) -> bool:
    """Whether the next vote is ignored, because the last votes were m to m + Ĉ − 1 upsets in a row."""
    return 0.0 <= memory.upsets[0] - now.patience < now.tolerated  # type: ignore[no-any-return]


@inlined
def growing(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> tuple[float, float]:
    """Return eq. (weight) times the trust that has grown by this round, 0 after a run of upsets; and σ′(0)."""
    grown = 0.0 if is_doubted(now, memory) else now.grown
    return grown * uncertainty_weight(plan.trust, width), plan.design_slope


TRUSTS = (by_uncertainty, by_local_slope, by_curvature, growing)
"""Every trust that compiled runs share."""


@inlined
def symmetric(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """argmax over pairs of (x_a + x_b)ᵀθ + β‖x_a − x_b‖ (Algorithm 1, line 6)."""
    return symmetric_pair(seen, now.radius, plan.self_duels, rng.random())


@inlined
def most_informative(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Return the least known pair of promising actions."""
    return informative_pair(seen, now.radius, plan.self_duels, rng.random())


@inlined
def greedy_and_rival(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Return the action with the highest estimated reward, and its toughest rival."""
    first = pick(seen.rewards, rng.random())
    return first, toughest_rival(seen, now.radius, first, plan.self_duels, rng.random())


@inlined
def perturbed_leader(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Return the leader under random perturbation, and its toughest rival."""
    count = seen.rewards.size
    own = (rng.random() < now.mixing) == now.is_mixing_separate
    draws = rng.standard_normal(count) if now.is_gaussian else rng.random(count)
    noise = perturbations(draws, own, now.is_gaussian, now.threshold)
    return perturbed_pair(seen, now.radius, noise, plan.self_duels, (rng.random(), rng.random()))


@inlined
def thrifty(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Return the most informative pair for its squared regret, or the leader alone once it is clearly ahead."""
    may_settle = plan.self_duels and not is_doubted(now, memory)
    return thrifty_pair(seen, now.radius, now.allowance, may_settle, rng.random(), now.margin)


RULES = (symmetric, most_informative, greedy_and_rival, perturbed_leader, thrifty)
"""Every rule that compiled runs share."""
