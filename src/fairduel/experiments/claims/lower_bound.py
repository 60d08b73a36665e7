"""Theorem kappa: on its two hard instances nobody does better than the lower bound."""

import math

import numpy as np

from fairduel.experiments.claims.verdict import Claim, Evidence, Verdict, interval, judged, smallest
from fairduel.experiments.experiment import agent_title
from fairduel.inference import exponent, mean
from fairduel.simulation import Cell

LEARNERS = ("rcdb", "maxpairucb", "maxinp", "colstim")
"""Agents that take the hard instances' link; RCDB-S takes the sigmoid only."""
LEARNERS_UNATTACKED = ("rcdb", "maxinp", "colstim")
"""Where C = 0, RCDB and MaxPairUCB with one radius are the same agent."""
KAPPAS = (1.0, 0.25)
HORIZONS = (500, 2000, 8000)
DIMENSION = 5
HIDDEN_DIMENSION, HIDDEN_FLIPS, HIDDEN_HORIZON = 8, 50, 4000


def lower_bound_claims() -> list[Claim]:
    """Both instances, for each slope κ."""
    return [first_instance(kappa) for kappa in KAPPAS] + [second_instance(kappa) for kappa in KAPPAS]


def stochastic_bound(dimension: int, horizon: int) -> float:
    """The proof's bound on the first instance at κ = 1, with its constants worked out: about d√T/58.

    θ and θ′ differ by 2Δ in one coordinate, where the proof has Δ; so the factor of I_1 is 2√(16/3) = 8/√3, not 3, and
    d√T/40 does not follow. With n = T/d, U + U′ is at least 4n − (8n + 4) · 8Δ/√3 · √(2n + 2) for each coordinate.

    >>> round(5 * math.sqrt(2000) / stochastic_bound(5, 2000), 1)
    57.9
    """
    side = math.sqrt(dimension / horizon) / 20.0  # Δ
    n = horizon / dimension
    spread = 4.0 * n - (8.0 * n + 4.0) * 8.0 * side / math.sqrt(3.0) * math.sqrt(2.0 * n + 2.0)
    return math.sqrt(dimension) * side / 2.0 * dimension / 2.0 * spread


def corrupted_bound(dimension: int, flips: int) -> float:
    """The second instance at κ = 1: its proof in numbers.

    With probability ½ the best action stays hidden for dC/4 rounds, of which at most C ask it; any other costs ½.
    """
    return 0.5 * 0.5 * (dimension * flips / 4 - flips)


def first_instance(kappa: float) -> Claim:
    """θ* ∈ {±Δ}^d: regret of order d√T/κ."""

    def cell(agent: str, horizon: int) -> Cell:
        # λ = 1/B² is in the thousands here and would let every agent play antipodes for ever, whatever it is told.
        settings = {"ridge": 1.0, "radius": 1.0 / kappa}
        world = {"dimension": DIMENSION, "kappa": kappa}
        return Cell(
            agent,
            "none",
            budget=0,
            horizon=horizon,
            world="hard-stochastic",
            agent_settings=settings,
            world_settings=world,
        )

    def judge(evidence: Evidence) -> list[Verdict]:
        verdicts = []
        for agent in LEARNERS_UNATTACKED:
            regret = np.stack([evidence.regret(cell(agent, horizon)) for horizon in HORIZONS], axis=1)
            bounds = [stochastic_bound(DIMENSION, horizon) / kappa for horizon in HORIZONS]
            times = {
                horizon: mean(regret[:, i] / bounds[i], 1 - 0.05 / len(HORIZONS)) for i, horizon in enumerate(HORIZONS)
            }
            horizon, least = smallest(times, threshold=1.0)
            grown = exponent(np.array(HORIZONS, dtype=float), np.maximum(regret, 1e-9))
            verdicts.append(
                judged(
                    f"{agent_title(agent)} has at least the regret of the lower bound in T, about d√T/(58κ), "
                    f"κ = {kappa:g}",
                    "Theorem kappa",
                    f"{interval(times[horizon], '.2f')} times the bound at T = {horizon}, which decides of "
                    f"{', '.join(map(str, HORIZONS))} (d = {DIMENSION}, ridge 1, radius {1 / kappa:g}); growth "
                    f"T^{grown.value:.2f} [{grown.low:.2f}, {grown.high:.2f}]",
                    least,
                    above=1.0,
                    exponent_in_horizon=grown.value,
                )
            )
        return verdicts

    return Claim(judge, [cell(agent, horizon) for agent in LEARNERS_UNATTACKED for horizon in HORIZONS])


def second_instance(kappa: float) -> Claim:
    """One of d actions is better, and hidden: regret of order dC/κ."""
    bound = corrupted_bound(HIDDEN_DIMENSION, HIDDEN_FLIPS) / kappa

    def cell(agent: str) -> Cell:
        return Cell(
            agent,
            "hiding",
            budget=HIDDEN_FLIPS,
            horizon=HIDDEN_HORIZON,
            world="hard-corrupted",
            world_settings={"dimension": HIDDEN_DIMENSION, "kappa": kappa},
        )

    def judge(evidence: Evidence) -> list[Verdict]:
        verdicts = []
        for agent in LEARNERS:
            found = mean(evidence.regret(cell(agent)))
            verdicts.append(
                judged(
                    f"{agent_title(agent)} has at least the regret of the lower bound in C, about "
                    f"{bound * kappa / (HIDDEN_DIMENSION * HIDDEN_FLIPS):.3f} dC/κ, κ = {kappa:g}",
                    "Theorem kappa",
                    f"{interval(found, '.0f')} where the proof gives at least {bound:.0f} (d = {HIDDEN_DIMENSION}, "
                    f"C = {HIDDEN_FLIPS}, T = {HIDDEN_HORIZON})",
                    found,
                    above=bound,
                )
            )
        return verdicts

    return Claim(judge, [cell(agent) for agent in LEARNERS])
