"""Theorem kappa: no agent beats the lower bound on its two hard instances.

It covers every agent, so no agent can break it: a measurement only checks the instances and shows how tight it is.
"""

import math
from collections.abc import Iterator

from fairduel.experiments.claims.claim import Claim, Judgement, StoredRuns, interval, judged, smallest
from fairduel.experiments.sentences import title_of
from fairduel.simulation import Cell
from fairduel.stats import mean

LEARNERS = ("rcdb", "maxpairucb", "maxinp", "colstim")
"""Agents that support the hard instances' link; RCDB-S needs the sigmoid."""
LEARNERS_UNATTACKED = ("rcdb", "maxinp", "colstim")
"""At C = 0, RCDB and MaxPairUCB with the same radius are the same agent."""
KAPPAS = (1.0, 0.25)
HORIZONS = (500, 2000, 8000)
DIMENSION = 5
HIDDEN_DIMENSION, HIDDEN_FLIPS, HIDDEN_HORIZON = 8, 50, 4000


def lower_bound_claims() -> list[Claim]:
    """Return the claims about both instances, for each slope κ."""
    return [first_instance(kappa) for kappa in KAPPAS] + [second_instance(kappa) for kappa in KAPPAS]


def stochastic_bound(dimension: int, horizon: int) -> float:
    """Return the proof's bound on the first instance at κ = 1, with its constants worked out: about d√T/58.

    θ and θ′ differ by 2Δ in one coordinate, while the proof uses Δ. So the factor of I_1 is 2√(16/3) = 8/√3 instead of
    3, and d√T/40 does not follow. With n = T/d, U + U′ ≥ 4n − (8n + 4) · 8Δ/√3 · √(2n + 2) for each coordinate.

    >>> round(5 * math.sqrt(2000) / stochastic_bound(5, 2000), 1)
    57.9
    """
    side = math.sqrt(dimension / horizon) / 20.0  # Δ
    n = horizon / dimension
    spread = 4.0 * n - (8.0 * n + 4.0) * 8.0 * side / math.sqrt(3.0) * math.sqrt(2.0 * n + 2.0)
    return math.sqrt(dimension) * side / 2.0 * dimension / 2.0 * spread


def corrupted_bound(dimension: int, flips: int) -> float:
    """Return the proof's bound on the second instance at κ = 1.

    With probability ½ the best action stays hidden for dC/4 rounds, at most C of which ask it; every other round costs
    ½.
    """
    return 0.5 * 0.5 * (dimension * flips / 4 - flips)


def first_instance(kappa: float) -> Claim:
    """Claim regret of order d√T/κ for θ* ∈ {±Δ}^d."""
    # The default λ = 1/B² is in the thousands here: every agent would play antipodes forever, whatever it is told.
    settings, world = {"ridge": 1.0, "radius": 1.0 / kappa}, {"dimension": DIMENSION, "kappa": kappa}
    cells = {
        (agent, horizon): Cell(agent, "none", 0, horizon, "hard-stochastic", settings, world_settings=world)
        for agent in LEARNERS_UNATTACKED
        for horizon in HORIZONS
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        confidence = 1 - 0.05 / len(cells)
        times = {
            (agent, horizon): mean(evidence.regret(cell) * kappa / stochastic_bound(DIMENSION, horizon), confidence)
            for (agent, horizon), cell in cells.items()
        }
        (agent, horizon), least = smallest(times, threshold=1.0)
        uniform = DIMENSION * math.sqrt(horizon) / 10 / stochastic_bound(DIMENSION, horizon)
        yield judged(
            f"No agent has less regret than about d√T/(58κ) on the first hard instance with κ = {kappa:g}",
            "Theorem kappa",
            f"at least {interval(least, '.2f')} times the bound ({title_of(agent)} at T = {horizon}); uniform play, "
            f"which learns nothing, has {uniform:.2f} times (d = {DIMENSION}, T = "
            f"{', '.join(map(str, HORIZONS))}, ridge 1, radius {1 / kappa:g})",
            least,
            above=1.0,
            can_fail=False,
        )

    return Claim(judge, [*cells.values()], one_in=15)


def second_instance(kappa: float) -> Claim:
    """Claim regret of order dC/κ if the adversary hides the best of d actions."""
    bound = corrupted_bound(HIDDEN_DIMENSION, HIDDEN_FLIPS) / kappa

    world = {"dimension": HIDDEN_DIMENSION, "kappa": kappa}
    cells = {
        (agent, attack): Cell(agent, attack, HIDDEN_FLIPS, HIDDEN_HORIZON, "hard-corrupted", world_settings=world)
        for agent in LEARNERS
        for attack in ("hiding", "none")
    }

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        regret = {key: evidence.regret(cell) for key, cell in cells.items()}
        found = {agent: mean(regret[agent, "hiding"], 1 - 0.05 / len(LEARNERS)) for agent in LEARNERS}
        agent, least = smallest(found, threshold=bound)
        added = {name: mean(regret[name, "hiding"] - regret[name, "none"]).value for name in LEARNERS}
        by_agent = ", ".join(f"{title_of(name)} {value:+.0f}" for name, value in added.items())
        yield judged(
            f"No agent has less regret than about dC/(32κ) on the second hard instance with κ = {kappa:g}",
            "Theorem kappa",
            f"at least {interval(least, '.0f')} ({title_of(agent)}), while the proof gives {bound:.0f}; the adversary "
            f"adds {by_agent} (d = {HIDDEN_DIMENSION}, C = {HIDDEN_FLIPS}, T = {HIDDEN_HORIZON})",
            least,
            above=bound,
            can_fail=False,
            added=added,
        )

    return Claim(judge, [*cells.values()], one_in=15)
