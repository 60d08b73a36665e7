"""The rates of the theorems, with the published parameters, unscaled; for RCDB-S in C, with its practical ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairduel.agents import RCDB
from fairduel.duel import Vector
from fairduel.experiments.claims.claim import Claim, Judgement, StoredRuns, interval, judged
from fairduel.experiments.claims.inequalities import regret_bound
from fairduel.experiments.claims.paper_figures import growth_in_flips
from fairduel.experiments.claims.proofs import LINEAR, theory_cell
from fairduel.experiments.paper_setup import ADVERSARIAL, NO_ATTACK
from fairduel.simulation import Cell
from fairduel.stats import excess_exponent, exponent, jackknife, line

FLIPS = (50, 100, 200, 400, 800)
HORIZONS = (10_000, 30_000, 100_000, 300_000)
DIMENSIONS = (2, 3, 4, 5)
NORMS = (1 / 4, 1 / 8, 1 / 16, 1 / 32)


def theorem_claims() -> list[Claim]:
    """Return the claims about every rate that a theorem states."""
    return [
        linear_in_flips_by_theory(),
        rate_in_horizon(),
        rate_in_dimension(),
        growth_in_flips("rcdb-s", ADVERSARIAL, "RCDB-S's regret is at most linear in C", "rate of Theorem new"),
    ]


def linear_in_flips_by_theory() -> Claim:
    """Claim the term dC/κ of Theorem main."""
    clean = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=100_000)
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, flips, horizon=100_000) for flips in FLIPS]

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        regret, flips = _table(evidence, cells), np.array(FLIPS, dtype=float)
        found, fit = excess_exponent(flips, regret, evidence.regret(clean)), line(flips, regret.mean(axis=0))
        yield judged(
            "The regret added by C flips is at most linear in C",
            "rate of Theorem main",
            f"grows as C^{interval(found, '.3f')} for C = {FLIPS[0]} … {FLIPS[-1]}, {fit.slope:.1f} ± "
            f"{fit.slope_error:.1f} regret per flip (adversarial attack, d = 2, B = 1/4, κ = 1, T = 100,000); holds if "
            "the exponent is at most 1.1",
            found,
            below=1.1,
            regret_per_flip=fit.slope,
        )

    return Claim(judge, [clean, *cells], one_in=15)


def rate_in_horizon() -> Claim:
    """Claim the rate √T, with C = ⌈√T⌉ flips."""
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, math.ceil(math.sqrt(horizon)), horizon) for horizon in HORIZONS]

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        horizons = np.array(HORIZONS, dtype=float)
        allowed = exponent(horizons, np.array([[_bound(cell) for cell in cells]])).value
        found = exponent(horizons, _table(evidence, cells))
        yield judged(
            "Regret grows no faster in T than the bound, Õ(d√T + dC), for C = ⌈√T⌉",
            "rate of Theorem main",
            f"grows as T^{interval(found, '.3f')}, the bound as T^{allowed:.3f} "
            f"(T = {HORIZONS[0]:,} … {HORIZONS[-1]:,}, adversarial attack, d = 2, B = 1/4, κ = 1)",
            found,
            below=allowed,
        )

    return Claim(judge, cells, one_in=15)


def rate_in_dimension() -> Claim:
    """Claim the factor d, at the worst ‖θ*‖ of each d: at a fixed norm, the gaps between actions change with d."""

    def cell(dimension: int, norm: float) -> Cell:
        base = theory_cell("rcdb", NO_ATTACK, LINEAR | {"dimension": dimension, "norm": norm}, 0, horizon=30_000)
        return replace(base, agent_settings={**base.agent_settings, "norm_bound": LINEAR["norm"]})

    def judge(evidence: StoredRuns) -> Iterator[Judgement]:
        dimensions = np.array(DIMENSIONS, dtype=float)
        regret = np.stack([[evidence.regret(cell(d, norm)) for norm in NORMS] for d in DIMENSIONS])  # (d, norms, seeds)

        def grown(sample: Vector) -> float:
            return exponent(dimensions, sample.mean(axis=2).max(axis=1)[None]).value

        found = jackknife(grown, regret)
        allowed = exponent(dimensions, np.array([[_bound(cell(d, NORMS[0])) for d in DIMENSIONS]])).value
        worst = ", ".join(f"{value:,.0f}" for value in regret.mean(axis=2).max(axis=1))
        yield judged(
            "Regret at the worst ‖θ*‖ grows no faster in d than the bound, Õ(d√T)",
            "rate of Theorem main",
            f"regret {worst} at d = {', '.join(map(str, DIMENSIONS))} grows as d^{interval(found, '.3f')}, the bound "
            f"as d^{allowed:.3f} (the largest over ‖θ*‖ = 1/4, 1/8, 1/16, 1/32; "
            "hypercube, no attack, B = 1/4, κ = 1, T = 30,000)",
            found,
            below=allowed,
        )

    return Claim(judge, [cell(d, norm) for d in DIMENSIONS for norm in NORMS], one_in=6)


def _bound(cell: Cell) -> float:
    agent, *_ = cell.start(seed=0)
    assert isinstance(agent, RCDB)
    return regret_bound(agent, cell.horizon)


def _table(evidence: StoredRuns, cells: Sequence[Cell]) -> Vector:
    """Return the regrets, shape (seeds, cells)."""
    return np.stack([evidence.regret(cell) for cell in cells], axis=1)
