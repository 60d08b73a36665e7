"""What the theorems and the lemmas of their proofs promise, with the published parameters, unscaled.

Each is measured where it can fail. On the paper's own experiment (B = 2, T = 2000) it cannot: there the bound of
Theorem main is 3.0 million, and no regret exceeds 16,000.
"""

from collections.abc import Sequence

import numpy as np

from fairduel.experiments.claims.figures import PAPER_ATTACKS
from fairduel.experiments.claims.verdict import Claim, Evidence, Verdict, judged
from fairduel.experiments.paper_setup import NO_ATTACK, Attack
from fairduel.experiments.proof_audit import Inequality
from fairduel.experiments.tuning import theory_settings
from fairduel.inference import Mean, share
from fairduel.simulation import Cell

FAILURE = 0.05
"""δ."""
LINEAR, SIGMOID = ({"link": "clipped-linear", "norm": 0.25}, {"link": "logistic", "norm": 0.5})
"""Links and norm bounds B at which the bounds say something: κ = 1 and κ = 0.197."""
FLIPS = 50


def theory_cell(agent: str, attack: Attack, model: dict[str, object], flips: int, horizon: int) -> Cell:
    """An agent with its theorem's parameters on the square {±1/√2}²."""
    return Cell(
        agent,
        attack.name,
        budget=flips,
        horizon=horizon,
        agent_settings=theory_settings(agent) | {"failure_probability": FAILURE},
        attack_settings=attack.settings,
        world_settings={"dimension": 2, **model},
    )


def proof_claims() -> list[Claim]:
    """Every inequality that a theorem or its proof states, in the paper's order."""
    return [linear_link(), sigmoid_link(), tolerance_is_enough(), sigmoid_agent()]


def linear_link() -> Claim:
    """RCDB on the link of the lower bound, under every attack."""
    attacks = [(attack, FLIPS) for attack in PAPER_ATTACKS] + [(NO_ATTACK, 0)]
    cells = [theory_cell("rcdb", attack, LINEAR, flips, horizon=100_000) for attack, flips in attacks]
    setting = f"d = 2, B = 1/4, κ = 1, T = 100,000; four attacks with C = {FLIPS}, and none"

    def judge(evidence: Evidence) -> list[Verdict]:
        found = {name: _all(evidence, cells, name) for name in ("confidence", "round_regret", "regret")}
        given = {name: _all(evidence, cells, name) for name in ("potential", "corruption")}
        return [
            _confidence("‖θ_t − θ*‖_Σ ≤ β in all rounds", "Lemma MLE", setting, found["confidence"]),
            _probable("r_t ≤ min(4B, 2β‖φ_t‖_Σ⁻¹) in all rounds", "Lemma r", setting, found["round_regret"]),
            _probable("Σ min(1, ‖√(wκ)φ‖²_Σ⁻¹) ≤ 2d log(1 + 4κT/(dλ))", "Lemma abbasi", setting, given["potential"]),
            _probable("the flips' weighted sum stays within αC", "eq. I20", setting, given["corruption"]),
            _regret_bound("Theorem main", setting, found["regret"]),
        ]

    return Claim(judge, audited=cells, one_in=5)


def sigmoid_link() -> Claim:
    """RCDB on the sigmoid, where nobody attacks and RCDB knows it."""
    cells = [theory_cell("rcdb", NO_ATTACK, SIGMOID, 0, horizon=100_000)]
    setting = "sigmoid, d = 2, B = 1/2, κ = 0.197, T = 100,000, C = 0"

    def judge(evidence: Evidence) -> list[Verdict]:
        return [_regret_bound("Theorem main", setting, _all(evidence, cells, "regret"))]

    return Claim(judge, audited=cells)


def tolerance_is_enough() -> Claim:
    """RCDB told C̄, with up to C̄ flips."""
    flips = (0, FLIPS // 2, FLIPS)
    adversarial = next(attack for attack in PAPER_ATTACKS if attack.name == "adversarial")
    cells = []
    for spent in flips:
        cell = theory_cell("rcdb", adversarial if spent else NO_ATTACK, LINEAR, spent, horizon=100_000)
        cell.agent_settings["flip_budget"] = FLIPS  # type: ignore[index]
        cells.append(cell)
    setting = (
        f"d = 2, B = 1/4, κ = 1, T = 100,000, tolerance C̄ = {FLIPS}; C = {', '.join(map(str, flips))} flips by the "
        "adversarial attack"
    )

    def judge(evidence: Evidence) -> list[Verdict]:
        return [_regret_bound("Theorem unknown, C ≤ C̄", setting, _all(evidence, cells, "regret"))]

    return Claim(judge, audited=cells, one_in=4)


def sigmoid_agent() -> Claim:
    """The events that Theorem new conditions on, and what v_t promises."""
    attacks = [(NO_ATTACK, 0), (PAPER_ATTACKS[2], FLIPS)]
    cells = [theory_cell("rcdb-s", attack, SIGMOID, flips, horizon=30_000) for attack, flips in attacks]
    setting = f"RCDB-S, d = 2, B = 1/2, T = 30,000; no attack, and the adversarial one with C = {FLIPS}"

    def judge(evidence: Evidence) -> list[Verdict]:
        return [
            _confidence(
                "‖θ_t − θ*‖_Σ ≤ β_t in all rounds", "Lemma cE, E_1", setting, _all(evidence, cells, "confidence")
            ),
            _confidence(
                "‖θ_t − θ*‖_Λ ≤ β̃_t in all rounds", "Lemma cE, E_2", setting, _all(evidence, cells, "local_confidence")
            ),
            _probable("v_t ≤ σ′(φ_tᵀθ*) in all rounds", "Theorem new, proof", setting, _all(evidence, cells, "slope")),
        ]

    return Claim(judge, audited=cells, one_in=2)


def _all(evidence: Evidence, cells: Sequence[Cell], name: str) -> list[Inequality]:
    return [done[name] for cell in cells for done in evidence.audits(cell)]


def _probable(claim: str, source: str, setting: str, found: Sequence[Inequality], words: str = "") -> Verdict:
    """An inequality that must hold in a run with probability 1 − δ."""
    ratios, reach = np.array([each.ratio for each in found]), np.array([each.reach for each in found])
    held = share(int((ratios <= 1.0 + 1e-9).sum()), len(ratios))
    can_fail = bool((reach > 1.0).any())
    return judged(
        f"{claim}, with probability at least {1 - FAILURE:.0%}" if can_fail else f"{claim}: true of any run",
        source,
        f"in {held.value:.0%} [{held.low:.1%}, {held.high:.1%}] of {len(ratios)} runs; left over right side at most "
        f"{ratios.max():.3f}{words} ({setting})",
        held,
        above=1 - FAILURE,
        can_fail=can_fail,
        runs=len(ratios),
        largest_ratio=float(ratios.max()),
        mean_ratio=float(ratios.mean()),
        runs_that_could_fail=int((reach > 1.0).sum()),
    )


def _confidence(claim: str, source: str, setting: str, found: Sequence[Inequality]) -> Verdict:
    """A confidence set, with what it gives away: the radius that would have been long enough."""
    needed = float(np.quantile([each.ratio for each in found], 1 - FAILURE))
    return _probable(claim, source, setting, found, f", so that {needed:.2f} times the radius would have done")


def _regret_bound(source: str, setting: str, found: Sequence[Inequality]) -> Verdict:
    reach = np.array([each.reach for each in found])
    of_trivial = Mean(float((1.0 / reach).mean()), 0.0, 0.0, 0.0)
    return _probable(
        "regret is below the proof's bound, which is below the worst possible regret",
        source,
        setting,
        found,
        f"; the bound is {of_trivial.value:.0%} of the worst possible regret",
    )
