"""What the cheaper estimators give up, and what they win: exact, lazy and one-pass side by side."""

from fairduel.experiments.experiment import Curves, Entry, Experiment
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, NO_ATTACK, paper_cell

COMPARED_WORLDS = {
    "hypercube": {"dimension": 5, "norm": 2.0},
    "fresh": {"dimension": 5, "count": 32, "norm": 2.0},
}


def estimators() -> Experiment:
    """Declare the comparison of estimators, on the paper's set-up and on fresh actions."""
    entries = [
        Entry(
            paper_cell(agent, attack, {"estimator": estimator}, world=world, world_settings=settings),
            estimator,
            f"{world}, {attack.panel}",
            is_reference=agent == "rcdb" and estimator == "exact",
        )
        for world, settings in COMPARED_WORLDS.items()
        for attack in (NO_ATTACK, GREEDY, ADVERSARIAL)
        for agent in ("rcdb", "maxpairucb")
        for estimator in ("exact", "lazy", "one-pass")
    ]
    return Experiment(
        name="estimators",
        title="Exact, lazy and one-pass estimates",
        question="What does an estimate cost that is not computed anew in every round?",
        entries=entries,
        views=[Curves("Cumulative regret; the band is ± one standard error over the runs.")],
        notes=[
            "'lazy' computes the same MLE, but only when det Σ has doubled and a tenth more was told. 'one-pass' is "
            "mirror descent: it keeps no outcomes, always stays within ‖θ‖ ≤ B, and no theorem's radius covers it.",
            "All agents have their practical settings, untuned.",
        ],
    )
