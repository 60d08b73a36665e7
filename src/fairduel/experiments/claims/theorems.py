"""The rates of the theorems: with the published parameters, unscaled; of RCDB-S in C at its practical ones."""

import math
from collections.abc import Sequence

import numpy as np

from fairduel.agents import RCDB
from fairduel.duel import Vector
from fairduel.experiments.claims.figures import linear_in_flips
from fairduel.experiments.claims.proofs import FAILURE, LINEAR, theory_cell
from fairduel.experiments.claims.verdict import Claim, Evidence, Verdict, judged
from fairduel.experiments.paper_setup import ADVERSARIAL, NO_ATTACK
from fairduel.experiments.proof_audit import regret_bound
from fairduel.inference import excess_exponent, exponent, line
from fairduel.simulation import Cell

FLIPS = (50, 100, 200, 400, 800)
HORIZONS = (10_000, 30_000, 100_000, 300_000)
DIMENSIONS = (2, 4, 8, 16)


def theorem_claims() -> list[Claim]:
    """Every rate that a theorem states."""
    return [
        linear_in_flips_by_theory(),
        rate_in_horizon(),
        rate_in_dimension(),
        linear_in_flips("rcdb-s", ADVERSARIAL, "Theorem new, C > 0"),
    ]


def linear_in_flips_by_theory() -> Claim:
    """The term dC/κ of Theorem main."""
    clean = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=100_000)
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, flips, horizon=100_000) for flips in FLIPS]

    def judge(evidence: Evidence) -> list[Verdict]:
        regret, flips = _table(evidence, cells), np.array(FLIPS, dtype=float)
        found, fit = excess_exponent(flips, regret, evidence.regret(clean)), line(flips, regret.mean(axis=0))
        return [
            judged(
                "what C flips add to the regret is linear in C",
                "Theorem main",
                f"grows as C^{found.value:.3f} [{found.low:.3f}, {found.high:.3f}] over C = {FLIPS[0]} … {FLIPS[-1]}, "
                f"{fit.slope:.1f} ± {fit.slope_error:.1f} regret per flip (adversarial attack, d = 2, B = 1/4, κ = 1, "
                "T = 100,000); linear means an exponent from 0.9 to 1.1",
                found,
                above=0.9,
                below=1.1,
                regret_per_flip=fit.slope,
            )
        ]

    return Claim(judge, [clean, *cells], one_in=5)


def rate_in_horizon() -> Claim:
    """√T, with C = ⌈√T⌉ flips."""
    cells = [theory_cell("rcdb", ADVERSARIAL, LINEAR, math.ceil(math.sqrt(horizon)), horizon) for horizon in HORIZONS]
    return _rate(
        cells,
        np.array(HORIZONS, dtype=float),
        "regret grows no faster in T than the bound, Õ(d√T + dC), for C = ⌈√T⌉",
        "T",
        f"T = {HORIZONS[0]:,} … {HORIZONS[-1]:,}, adversarial attack, d = 2, B = 1/4, κ = 1",
        one_in=5,
    )


def rate_in_dimension() -> Claim:
    """The factor d, where actions change: on a hypercube the gaps between them would change with d too."""
    cells = [
        Cell(
            "rcdb",
            "none",
            budget=0,
            horizon=4000,
            world="fresh",
            agent_settings={"radius": "theory", "failure_probability": FAILURE},
            world_settings={"dimension": dimension, "count": 16, **LINEAR},
        )
        for dimension in DIMENSIONS
    ]
    return _rate(
        cells,
        np.array(DIMENSIONS, dtype=float),
        "regret grows no faster in d than the bound, Õ(d√T)",
        "d",
        f"d = {DIMENSIONS[0]} … {DIMENSIONS[-1]}, 16 fresh actions per round, no attack, B = 1/4, κ = 1, T = 4000",
        one_in=10,
    )


def _rate(cells: Sequence[Cell], x: Vector, claim: str, symbol: str, setting: str, one_in: int) -> Claim:
    """Growth in ``x`` against that of the bound itself, logarithms included, over the same range."""

    def judge(evidence: Evidence) -> list[Verdict]:
        bounds = np.array([_bound(cell) for cell in cells])
        allowed = exponent(x, bounds[None, :]).value
        found = exponent(x, _table(evidence, cells))
        return [
            judged(
                claim,
                "Theorem main",
                f"grows as {symbol}^{found.value:.3f} [{found.low:.3f}, {found.high:.3f}], the bound as "
                f"{symbol}^{allowed:.3f} ({setting})",
                found,
                below=allowed,
            )
        ]

    return Claim(judge, cells, one_in=one_in)


def _bound(cell: Cell) -> float:
    agent, *_ = cell.start(seed=0)
    assert isinstance(agent, RCDB)
    return regret_bound(agent, cell.horizon)


def _table(evidence: Evidence, cells: Sequence[Cell]) -> Vector:
    """Regret, shape (seeds, cells)."""
    return np.stack([evidence.regret(cell) for cell in cells], axis=1)
