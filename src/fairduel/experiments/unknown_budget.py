"""An unknown flip budget: RCDB with a tolerance C̄ below, at and above the actual number of flips C."""

from fairduel.experiments.experiment import Curves, Entry, Experiment, Lines
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, HORIZON, MISLEADING, paper_cell

FLIPS = 100
TOLERANCES = (10, 25, 50, 100, 200, 400)


def unknown_budget() -> Experiment:
    """Declare the comparison over C̄ (Theorem unknown)."""
    entries = [
        Entry(
            paper_cell("rcdb", attack, {"flip_budget": tolerance}, budget=FLIPS),
            f"tolerance {tolerance}",
            attack.panel,
            x=tolerance / FLIPS,
            is_reference=tolerance == FLIPS,
        )
        for attack in (GREEDY, ADVERSARIAL, MISLEADING)
        for tolerance in TOLERANCES
    ]
    return Experiment(
        name="unknown-budget",
        title="Unknown number of flips",
        question=f"What does a wrong tolerance C̄ cost RCDB when {FLIPS} of {HORIZON} outcomes are flipped?",
        entries=entries,
        views=[
            Curves("Cumulative regret by tolerance; with C̄ < C it may never stop growing."),
            Lines("Final regret against C̄/C.", "tolerance / flips, C̄/C", scale="log"),
        ],
        notes=["Theorem unknown guarantees Õ(d√T + dC̄) for C ≤ C̄, and only O(T) for C > C̄."],
    )
