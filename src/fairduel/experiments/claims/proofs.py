"""The guarantees of the theorems and of the lemmas in their proofs, with the published parameters, unscaled.

Each is measured where it can fail. In the paper's own experiment (B = 2, T = 2000) it cannot: the bound of Theorem main
is 3.0 million there, and no regret exceeds 16,000.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairduel.agents import AGENTS
from fairduel.experiments.claims.claim import Claim, Judgement, StoredRuns, judged
from fairduel.experiments.claims.inequalities import Inequality
from fairduel.experiments.paper_setup import ADVERSARIAL, NO_ATTACK, PAPER_ATTACKS, Attack
from fairduel.simulation import Cell
from fairduel.stats import exact_share

FAILURE = 0.05
"""δ."""
LINEAR, SIGMOID = ({"link": "clipped-linear", "norm": 0.25}, {"link": "logistic", "norm": 0.5})
"""Links and norm bounds B for which the bounds are meaningful: κ = 1 and κ = 0.197."""
FLIPS = 50


def theory_cell(agent: str, attack: Attack, model: dict[str, object], flips: int, horizon: int) -> Cell:
    """Return an agent with its theorem's parameters on the square {±1/√2}²."""
    return Cell(
        agent,
        attack.name,
        budget=flips,
        horizon=horizon,
        agent_settings={**AGENTS[agent].published_settings, "failure_probability": FAILURE},
        attack_settings=attack.settings,
        world_settings={"dimension": 2, **model},
    )


def proof_claims() -> list[Claim]:
    """Return the claims about every inequality in a theorem or its proof, in the paper's order."""
    return [linear_link(), sigmoid_link(), tolerance_is_enough(), sigmoid_agent()]


def linear_link() -> Claim:
    """Claim every inequality for RCDB on the link of the lower bound, under every attack."""
    attacks = [(attack, FLIPS) for attack in PAPER_ATTACKS] + [(NO_ATTACK, 0)]
    cells = [theory_cell("rcdb", attack, LINEAR, flips, horizon=100_000) for attack, flips in attacks]
    setting = f"d = 2, B = 1/4, κ = 1, T = 100,000; four attacks with C = {FLIPS}, and no attack"

    def judge(evidence: StoredRuns) -> list[Judgement]:
        found = {name: _by_seed(evidence, cells, name) for name in evidence.inequalities(cells[0])[0]}
        return [
            _confidence("‖θ_t − θ*‖_Σ ≤ β in every round", "Lemma MLE", setting, found["confidence"]),
            _probable("r_t ≤ min(4B, 2β‖φ_t‖_Σ⁻¹) in every round", "Lemma r", setting, found["round_regret"]),
            _probable("Σ min(1, ‖√(wκ)φ‖²_Σ⁻¹) ≤ 2d log(1 + 4κT/(dλ))", "Lemma abbasi", setting, found["potential"]),
            _probable("The weighted sum of the flips stays within αC", "eq. I20", setting, found["corruption"]),
            _regret_bound("Theorem main", setting, found["regret"]),
        ]

    return Claim(judge, checked=cells, one_in=3)


def sigmoid_link() -> Claim:
    """Claim the regret bound for RCDB on the sigmoid, without an attack and told so."""
    cells = [theory_cell("rcdb", NO_ATTACK, SIGMOID, 0, horizon=100_000)]
    setting = "sigmoid, d = 2, B = 1/2, κ = 0.197, T = 100,000, C = 0"

    def judge(evidence: StoredRuns) -> list[Judgement]:
        return [_regret_bound("Theorem main", setting, _by_seed(evidence, cells, "regret"))]

    return Claim(judge, checked=cells, one_in=3)


def tolerance_is_enough() -> Claim:
    """Claim the regret bound for RCDB told C̄, with up to C̄ flips."""
    flips = (0, FLIPS // 2, FLIPS)
    cells = [
        replace(cell, agent_settings={**cell.agent_settings, "flip_budget": FLIPS}) if cell.budget < FLIPS else cell
        for spent in flips
        for cell in [theory_cell("rcdb", ADVERSARIAL if spent else NO_ATTACK, LINEAR, spent, horizon=100_000)]
    ]
    setting = (
        f"d = 2, B = 1/4, κ = 1, T = 100,000, tolerance C̄ = {FLIPS}; C = {', '.join(map(str, flips))} flips by the "
        "adversarial attack"
    )

    def judge(evidence: StoredRuns) -> list[Judgement]:
        return [_regret_bound("Theorem unknown, C ≤ C̄", setting, _by_seed(evidence, cells, "regret"))]

    return Claim(judge, checked=cells, one_in=3)


def sigmoid_agent() -> Claim:
    """Claim the events that Theorem new conditions on, and that v_t is a lower bound of the slope."""
    attacks = [(NO_ATTACK, 0), (ADVERSARIAL, FLIPS)]
    cells = [theory_cell("rcdb-s", attack, SIGMOID, flips, horizon=30_000) for attack, flips in attacks]
    setting = f"RCDB-S, d = 2, B = 1/2, T = 30,000; no attack, and the adversarial attack with C = {FLIPS}"

    def judge(evidence: StoredRuns) -> list[Judgement]:
        found = {name: _by_seed(evidence, cells, name) for name in ("confidence", "local_confidence", "slope")}
        both = [_worse(*pair) for pair in zip(found["confidence"], found["local_confidence"], strict=True)]
        return [
            _confidence("‖θ_t − θ*‖_Σ ≤ β_t and ‖θ_t − θ*‖_Λ ≤ β̃_t in every round", "Lemma cE", setting, both),
            _probable("v_t ≤ σ′(φ_tᵀθ*) in every round", "proof of Theorem new", setting, found["slope"]),
        ]

    return Claim(judge, checked=cells, one_in=3)


def _by_seed(evidence: StoredRuns, cells: Sequence[Cell], name: str) -> list[Inequality]:
    """Combine all cells by seed: the cells of a seed share θ* and labels, so they are one observation."""
    return [
        functools.reduce(_worse, (done[name] for done in of_seed))
        for of_seed in zip(*(evidence.inequalities(cell) for cell in cells), strict=True)
    ]


def _worse(first: Inequality, second: Inequality) -> Inequality:
    """Combine two inequalities: the result holds if both do, and can fail if both can."""
    return Inequality(max(first.ratio, second.ratio), min(first.reach, second.reach))


def _probable(claim: str, source: str, setting: str, found: Sequence[Inequality], words: str = "") -> Judgement:
    """Judge an inequality that must hold with probability 1 − δ by the seeds on which it could have failed."""
    open_to_failure = [each for each in found if each.reach > 1.0]
    judged_by = open_to_failure or found
    ratios = np.array([each.ratio for each in judged_by])
    held = exact_share(int((ratios <= 1.0 + 1e-9).sum()), len(ratios))
    can_fail = bool(open_to_failure)
    return judged(
        f"{claim}, with probability at least {1 - FAILURE:.0%}" if can_fail else f"{claim} (true of any run)",
        source,
        f"held on {held.value:.0%} [{held.low:.1%}, {held.high:.1%}] of the {len(ratios)} seeds"
        f"{' on which it could fail' if can_fail else ''}; left side at most {ratios.max():.3f} of the right{words} "
        f"({setting})",
        held,
        above=1 - FAILURE,
        can_fail=can_fail,
        seeds=len(ratios),
        largest_ratio=float(ratios.max()),
        mean_ratio=float(ratios.mean()),
    )


def _confidence(claim: str, source: str, setting: str, found: Sequence[Inequality]) -> Judgement:
    """Judge a confidence set, and report the radius that would have been enough."""
    needed = float(np.quantile([each.ratio for each in found], 1 - FAILURE))
    return _probable(claim, source, setting, found, f"; {needed:.2f} times the radius would have been enough")


def _regret_bound(source: str, setting: str, found: Sequence[Inequality]) -> Judgement:
    """Judge the bound on regret, and report how tight it is."""
    of_worst = float(np.mean([1.0 / each.reach for each in found]))
    words = f"; the bound is {of_worst:.0%} of the worst possible regret"
    return _probable("Regret is below the proof's bound", source, setting, found, words)
