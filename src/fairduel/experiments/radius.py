"""The theorems' confidence radii compared with scaled-down and practical ones."""

from fairduel.agents import AGENTS
from fairduel.experiments.experiment import Curves, Entry, Experiment
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, NO_ATTACK, paper_cell

SCALES = {"rcdb": (1.0, 0.1, 0.03), "rcdb-s": (1.0, 0.01, 0.003)}


def radius() -> Experiment:
    """Declare the comparison of radii."""
    entries = []
    for attack in (GREEDY, ADVERSARIAL, NO_ATTACK):
        for agent, scales in SCALES.items():
            is_reference = agent == "rcdb"
            entries.append(Entry(paper_cell(agent, attack), "practical", attack.panel, is_reference=is_reference))
            for scale in scales:
                settings = {**AGENTS[agent].published_settings, "radius_scale": scale}
                name = "theory" if scale == 1.0 else f"theory × {scale:g}"
                entries.append(Entry(paper_cell(agent, attack, settings), name, attack.panel))
        determinant = paper_cell("rcdb", attack, {"radius": "determinant"})
        entries.append(Entry(determinant, "determinant", attack.panel, drawn_in=()))
    return Experiment(
        name="radius",
        title="Theoretical and practical confidence radii",
        question="How much regret does the theorem's radius cost on the paper's own problem?",
        entries=entries,
        views=[Curves("Cumulative regret by radius.")],
        notes=[
            "With the theory radius, every duel within this horizon explores, so regret grows linearly. Over a longer "
            "horizon it slows: without an attack, regret per round falls after about 10,000 rounds (RCDB, T = 10⁶)."
        ],
    )
