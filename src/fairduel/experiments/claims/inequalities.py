"""The inequalities of the proofs, checked in every round of RCDB or RCDB-S at their theory radii."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.agents import RCDB, RCDBS
from fairduel.core.links import LOGISTIC
from fairduel.core.radius import corruption_term, rcdb_regret_bound
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.simulation import Cell, Trace
from fairduel.worlds import FixedWorld


@dataclass(frozen=True, slots=True)
class Inequality:
    """How close a run came to violating an inequality."""

    ratio: float
    """The largest ratio of the left side to the right over all rounds; the inequality held if it is at most 1."""
    reach: float
    """The largest ratio possible in this world; if it is at most 1, the inequality could not have failed."""


Inequalities = Mapping[str, Inequality]
"""Inequalities by name. For RCDB:

- ``confidence``: ‖θ_t − θ*‖_Σ_t ≤ β (Lemma MLE);
- ``round_regret``: r_t ≤ min(4B, 2β‖φ_t‖_Σ_t⁻¹) (Lemma r, with 4B where the paper's 4 assumes B ≤ 1);
- ``potential``: Σ min(1, ‖√(w_t κ) φ_t‖²_Σ_t⁻¹) ≤ 2d log(1 + TL²/(dλ)), L² = 4κ (Lemma abbasi);
- ``corruption``: ‖Σ_{i<t, flipped} w_i φ_i‖_Σ_t⁻¹ ≤ αC (eq. I20);
- ``regret``: Regret(T) is at most the bound at the end of the proof of Theorem main.

For RCDB-S:

- ``confidence``: ‖θ_t − θ*‖_Σ_t ≤ β_t (event E_1 of Lemma cE);
- ``local_confidence``: ‖θ_t − θ*‖_Λ_t ≤ β̃_t (event E_2);
- ``slope``: v_t ≤ σ′(φ_tᵀθ*) (proof of Theorem new).
"""


@dataclass(frozen=True)
class _Watched:
    """A finished run together with θ*, which the agent does not know."""

    agent: RCDB | RCDBS
    settings: dict[str, Any]
    trace: Trace
    parameter: Vector
    """θ*, shape (d,)."""
    differences: Matrix
    """φ_t, shape (T, d)."""
    largest_regret: float
    """Regret of the worst duel in this world."""

    @property
    def errors(self) -> Matrix:
        """θ_t − θ*, shape (T, d), where θ_1 = 0."""
        before = np.vstack([np.zeros_like(self.parameter), self.trace.estimates[:-1]])
        return before - self.parameter

    def information(self, slopes: Vector | float) -> Matrix:
        """λI + Σ_{i<t} w_i s_i φ_i φ_iᵀ for t = 1 … T + 1, shape (T + 1, d, d); Σ for s = κ, Λ for s = v."""
        gains = (
            (self.trace.weight * slopes)[:, None, None] * self.differences[:, :, None] * self.differences[:, None, :]
        )
        start = self.settings["ridge"] * np.eye(len(self.parameter))
        return np.asarray(start + np.concatenate([np.zeros_like(gains[:1]), np.cumsum(gains, axis=0)]))

    def confidence(self, information: Matrix, radii: Vector) -> Inequality:
        """Compare ‖θ_t − θ*‖, in the norm of ``information``, with ``radii`` (T,)."""
        errors = self.errors
        norms = np.sqrt(np.einsum("ti,tij,tj->t", errors, information[:-1], errors))
        # The farthest estimate within ‖θ‖ ≤ B is −θ*. The matrix grows with t, and so does the radius, more slowly.
        farthest = 2.0 * np.linalg.norm(self.parameter) * math.sqrt(np.linalg.eigvalsh(information[-2])[-1])
        return Inequality(float(np.max(norms / radii)), float(farthest / radii[-1]))


def check_proof(cell: Cell, seed: int) -> Inequalities:
    """Play one run and check every inequality in every round."""
    agent, world, _, _ = cell.start(seed)
    if not isinstance(agent, RCDB | RCDBS) or not isinstance(world, FixedWorld) or world.parameter is None:
        raise BadInputError("only RCDB and RCDB-S can be checked, in a world with known θ* and fixed actions.")
    trace, offer = cell.run(seed).trace, world.offer(1)
    worst = 2.0 * float(np.ptp(offer.rewards))
    differences = offer.actions[trace.first] - offer.actions[trace.second]
    watched = _Watched(agent, agent.settings, trace, world.parameter, differences, worst)
    return _check_rcdbs(watched, agent) if isinstance(agent, RCDBS) else _check_rcdb(watched, agent, cell.horizon)


def _check_rcdb(watched: _Watched, agent: RCDB, horizon: int) -> Inequalities:
    trace, settings = watched.trace, watched.settings
    radius = agent.radius_at(horizon)
    information = watched.information(settings["kappa"])
    allowed = np.minimum(4.0 * agent.norm_bound, 2.0 * radius * np.maximum(trace.width, 1e-300))
    costs = trace.regret > 1e-9  # a self-duel of the best action is 0 on both sides
    bound = regret_bound(agent, horizon)
    return {
        "confidence": watched.confidence(information, np.full(horizon, radius)),
        "round_regret": Inequality(
            float(np.max(trace.regret[costs] / allowed[costs], initial=0.0)),
            float(np.max(watched.largest_regret / allowed[~trace.self_duels], initial=0.0)),
        ),
        # The next two hold for any duels and flips: they check the implementation, not the algorithm.
        "potential": Inequality(_potential(trace, settings), 1.0),
        "corruption": Inequality(_corruption(watched, information), 1.0),
        "regret": Inequality(float(trace.regret.sum()) / bound, watched.largest_regret * horizon / bound),
    }


def _check_rcdbs(watched: _Watched, agent: RCDBS) -> Inequalities:
    trace, kappa = watched.trace, watched.settings["kappa"]
    rounds = range(1, len(trace.regret) + 1)
    radii = np.array([agent.slope_radius_at(t) for t in rounds])
    local_radii = np.array([agent.radius_at(t) for t in rounds])
    true_slopes = LOGISTIC.slope(watched.differences @ watched.parameter)
    duels = ~trace.self_duels
    return {
        "confidence": watched.confidence(watched.information(kappa), radii),
        "local_confidence": watched.confidence(watched.information(trace.slope), local_radii),
        "slope": Inequality(
            float(np.max(trace.slope[duels] / true_slopes[duels], initial=0.0)),
            float(np.max(trace.slope[duels] / kappa, initial=0.0)),
        ),
    }


def regret_bound(agent: RCDB, horizon: int) -> float:
    """Return the bound on Regret(T) at the end of the proof of Theorem main, for the agent's settings."""
    settings = agent.settings
    return rcdb_regret_bound(
        dimension=agent.dimension,
        horizon=horizon,
        ridge=settings["ridge"],
        trust=settings["trust"],
        kappa=settings["kappa"],
        radius=agent.radius_at(horizon),
    )


def _potential(trace: Trace, settings: dict[str, Any]) -> float:
    d: int = settings["dimension"]
    kappa: float = settings["kappa"]
    ridge: float = settings["ridge"]
    total = float(np.minimum(1.0, trace.weight * kappa * trace.width**2).sum())
    return total / (2.0 * d * math.log(1.0 + len(trace.width) * 4.0 * kappa / (d * ridge)))


def _corruption(watched: _Watched, information: Matrix) -> float:
    trace, settings = watched.trace, watched.settings
    if not trace.flipped.any():
        return 0.0
    flipped = np.cumsum((trace.flipped * trace.weight)[:, None] * watched.differences, axis=0)
    norms = np.sqrt(np.sum(flipped * np.linalg.solve(information[1:], flipped[..., None])[..., 0], axis=1))
    return float(norms.max() / corruption_term(settings["trust"], settings["flip_budget"]))
