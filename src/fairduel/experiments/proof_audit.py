"""The inequalities of the proof, checked in every round of a run of RCDB at its theory radius."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.agents import RCDB
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError
from fairduel.information import Information
from fairduel.radius import corruption_term, rcdb_regret_bound
from fairduel.simulation import Cell, Trace, play
from fairduel.worlds import DuelingWorld


@dataclass(frozen=True, slots=True)
class ProofAudit:
    """How close one run came to each inequality: the left side over the right; up to 1 it held."""

    confidence: float
    """max over t of ‖θ_t − θ*‖_Σ_t / β (Lemma MLE)."""
    round_regret: float
    """max over t of r_t / min(4B, 2β‖φ_t‖_Σ_t⁻¹) (Lemma r, with 4B where the paper's 4 assumes B ≤ 1)."""
    potential: float
    """Σ min(1, ‖√(w_t κ) φ_t‖²_Σ_t⁻¹) / (2d log(1 + TL²/(dλ))), L² = 4κ (Lemma abbasi)."""
    corruption: float
    """max over t of ‖Σ_{i<t, flipped} w_i φ_i‖_Σ_t⁻¹ / (αC) (eq. I20); 0 where nothing was flipped."""
    regret: float
    """Regret(T) over the bound that the proof of Theorem main ends in."""
    bound: float
    """That bound."""


class _Watched:
    """An agent that measures itself against θ* before each duel, and otherwise plays as it would."""

    def __init__(self, agent: RCDB, parameter: Vector) -> None:
        self.agent = agent
        self.parameter = parameter
        self.confidence = 0.0
        self.duels: list[Duel] = []

    def ask(self, actions: Matrix) -> Duel:
        error = self.agent.information.norm(self.agent.estimate - self.parameter)
        self.confidence = max(self.confidence, error / self.agent.current_radius)
        self.duels.append(self.agent.ask(actions))
        return self.duels[-1]

    def tell(self, duel: Duel, outcome: Outcome) -> None:
        self.agent.tell(duel, outcome)


def audit(cell: Cell, seed: int) -> ProofAudit:
    """Play one run and check every inequality in it."""
    agent, world, adversary, streams = cell.start(seed)
    if not isinstance(agent, RCDB) or not isinstance(world, DuelingWorld) or world.parameter is None:
        raise BadInputError("the proof's inequalities are about RCDB in a world with a known θ*.")
    watched = _Watched(agent, world.parameter)
    trace = play(watched, world, adversary, horizon=cell.horizon, labels=streams.labels)
    settings = agent.settings
    radius = agent.current_radius
    width = np.maximum(trace.width, 1e-300)
    largest_regret = np.minimum(4.0 * agent.norm_bound, 2.0 * radius * width)
    active = trace.regret > 1e-9  # a self-duel of the best action has 0 on both sides
    bound = rcdb_regret_bound(
        dimension=agent.dimension,
        horizon=cell.horizon,
        ridge=settings["ridge"],
        trust=settings["trust"],
        kappa=settings["kappa"],
        radius=radius,
    )
    return ProofAudit(
        confidence=watched.confidence,
        round_regret=float(np.max(trace.regret[active] / largest_regret[active], initial=0.0)),
        potential=_potential(trace, settings),
        corruption=_corruption(trace, watched.duels, settings),
        regret=float(trace.regret.sum()) / bound,
        bound=bound,
    )


def _potential(trace: Trace, settings: dict[str, Any]) -> float:
    d: int = settings["dimension"]
    kappa: float = settings["kappa"]
    ridge: float = settings["ridge"]
    total = float(np.minimum(1.0, trace.weight * kappa * trace.width**2).sum())
    return total / (2.0 * d * math.log(1.0 + len(trace.width) * 4.0 * kappa / (d * ridge)))


def _corruption(trace: Trace, duels: list[Duel], settings: dict[str, Any]) -> float:
    allowed = corruption_term(settings["trust"], settings["flip_budget"])
    if not trace.flipped.any():
        return 0.0
    information = Information(settings["dimension"], settings["ridge"])
    flipped = np.zeros(settings["dimension"])
    largest = 0.0
    for duel, was_flipped in zip(duels, trace.flipped, strict=True):
        largest = max(largest, information.width(flipped))
        information.add(duel.difference, duel.weight * duel.slope)
        if was_flipped:
            flipped += duel.weight * duel.difference
    return float(max(largest, information.width(flipped)) / allowed)
