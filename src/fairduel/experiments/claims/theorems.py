"""The rates of the theorems: with the published parameters, unscaled; of RCDB-S in C at its practical ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairduel.agents import RCDB
from fairduel.duel import Vector
from fairduel.experiments.claims.figures import growth_in_flips
from fairduel.experiments.claims.proofs import LINEAR, theory_cell
from fairduel.experiments.claims.verdict import Claim, Evidence, Verdict, judged
from fairduel.experiments.inference import excess_exponent, exponent, jackknife, line
from fairduel.experiments.paper_setup import ADVERSARIAL, NO_ATTACK
from fairduel.experiments.proof_audit import regret_bound
from fairduel.simulation import Cell

FLIPS = (50, 100, 200, 400, 800)
HORIZONS = (10_000, 30_000, 100_000, 300_000)
DIMENSIONS = (2, 3, 4, 5)
NORMS = (1 / 4, 1 / 8, 1 / 16, 1 / 32)


def theorem_claims() -> list[Claim]:
    """Every rate that a theorem states."""
    return [
        linear_in_flips_by_theory(),
        rate_in_horizon(),
        rate_in_dimension(),
        growth_in_flips("rcdb-s", ADVERSARIAL, "RCDB-S's regret is at most linear in C", "rate of Theorem new"),
    ]


def linear_in_flips_by_theory() -> Claim:
    """The term dC/κ of Theorem main."""
    clean = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=100_000)
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, flips, horizon=100_000) for flips in FLIPS]

    def judge(evidence: Evidence) -> Iterator[Verdict]:
        regret, flips = _table(evidence, cells), np.array(FLIPS, dtype=float)
        found, fit = excess_exponent(flips, regret, evidence.regret(clean)), line(flips, regret.mean(axis=0))
        yield judged(
            "what C flips add to the regret is at most linear in C",
            "rate of Theorem main",
            f"grows as C^{found.value:.3f} [{found.low:.3f}, {found.high:.3f}] over C = {FLIPS[0]} … {FLIPS[-1]}, "
            f"{fit.slope:.1f} ± {fit.slope_error:.1f} regret per flip (adversarial attack, d = 2, B = 1/4, κ = 1, "
            "T = 100,000); an exponent up to 1.1 counts",
            found,
            below=1.1,
            regret_per_flip=fit.slope,
        )

    return Claim(judge, [clean, *cells], one_in=5)


def rate_in_horizon() -> Claim:
    """√T, with C = ⌈√T⌉ flips."""
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, math.ceil(math.sqrt(horizon)), horizon) for horizon in HORIZONS]

    def judge(evidence: Evidence) -> Iterator[Verdict]:
        horizons = np.array(HORIZONS, dtype=float)
        allowed = exponent(horizons, np.array([[_bound(cell) for cell in cells]])).value
        found = exponent(horizons, _table(evidence, cells))
        yield judged(
            "regret grows no faster in T than the bound, Õ(d√T + dC), for C = ⌈√T⌉",
            "rate of Theorem main",
            f"grows as T^{found.value:.3f} [{found.low:.3f}, {found.high:.3f}], the bound as T^{allowed:.3f} "
            f"(T = {HORIZONS[0]:,} … {HORIZONS[-1]:,}, adversarial attack, d = 2, B = 1/4, κ = 1)",
            found,
            below=allowed,
        )

    return Claim(judge, cells, one_in=5)


def rate_in_dimension() -> Claim:
    """The factor d, for the worst ‖θ*‖ of each dimension: at one norm the gaps between actions would change with d."""

    def cell(dimension: int, norm: float) -> Cell:
        base = theory_cell("rcdb", NO_ATTACK, LINEAR | {"dimension": dimension, "norm": norm}, 0, horizon=30_000)
        return replace(base, agent_settings={**base.agent_settings, "norm_bound": LINEAR["norm"]})

    def judge(evidence: Evidence) -> Iterator[Verdict]:
        dimensions = np.array(DIMENSIONS, dtype=float)
        regret = np.stack([[evidence.regret(cell(d, norm)) for norm in NORMS] for d in DIMENSIONS])  # (d, norms, seeds)

        def grown(sample: Vector) -> float:
            return exponent(dimensions, sample.mean(axis=2).max(axis=1)[None]).value

        found = jackknife(grown, regret)
        allowed = exponent(dimensions, np.array([[_bound(cell(d, NORMS[0])) for d in DIMENSIONS]])).value
        worst = ", ".join(f"{value:,.0f}" for value in regret.mean(axis=2).max(axis=1))
        yield judged(
            "regret at the worst ‖θ*‖ grows no faster in d than the bound, Õ(d√T)",
            "rate of Theorem main",
            f"{worst} at d = {', '.join(map(str, DIMENSIONS))}: grows as d^{found.value:.3f} [{found.low:.3f}, "
            f"{found.high:.3f}], the bound as d^{allowed:.3f} (the largest over ‖θ*‖ = 1/4, 1/8, 1/16, 1/32; "
            "hypercube, no attack, B = 1/4, κ = 1, T = 30,000)",
            found,
            below=allowed,
        )

    return Claim(judge, [cell(d, norm) for d in DIMENSIONS for norm in NORMS], one_in=2)


def _bound(cell: Cell) -> float:
    agent, *_ = cell.start(seed=0)
    assert isinstance(agent, RCDB)
    return regret_bound(agent, cell.horizon)


def _table(evidence: Evidence, cells: Sequence[Cell]) -> Vector:
    """Regret, shape (seeds, cells)."""
    return np.stack([evidence.regret(cell) for cell in cells], axis=1)
