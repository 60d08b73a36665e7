"""An unknown flip budget: the tolerance C̄ below, at and above the flips C that really come."""

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
        title="More flips than tolerated",
        question=f"What happens to RCDB when {FLIPS} flips come in {HORIZON} rounds, and it tolerates C̄?",
        entries=entries,
        views=[
            Curves("Cumulative regret by tolerance: below C it may never stop growing."),
            Lines("Final regret against C̄/C.", "tolerance over flips, C̄/C", scale="log"),
        ],
        notes=["Theorem unknown promises Õ(d√T + dC̄) for C ≤ C̄, and nothing but O(T) for C > C̄."],
    )
