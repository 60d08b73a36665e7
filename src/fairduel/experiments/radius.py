"""Theory against practice: what the radius of the theorems does, and what scaling it down does."""

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
        title="The theorems' radii and the practical ones",
        question="What does the radius that the proof needs cost on the paper's own problem?",
        entries=entries,
        views=[Curves("Cumulative regret by radius.")],
        notes=[
            "With the theory radius every duel of this horizon explores, and regret is a straight line. It does not "
            "stay one: without attack, regret per round starts to fall after about 10,000 rounds here (RCDB, T = 10⁶)."
        ],
    )
