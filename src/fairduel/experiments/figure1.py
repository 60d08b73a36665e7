"""Figure 1: RCDB against tuned baselines under the paper's attacks."""

from fairduel.experiments.experiment import Curves, Entry, Experiment
from fairduel.experiments.paper_setup import BASELINES, BUDGET, FIGURE1_PANELS, HORIZON, WARMUP, Attack, paper_cell
from fairduel.experiments.tuning import published, tuning_problem, variants


def figure1() -> Experiment:
    """Declare Figure 1."""
    return Experiment(
        name="figure1",
        title="Figure 1: four attacks",
        question=f"Who has the lowest regret when {BUDGET} of {HORIZON} outcomes are flipped?",
        entries=[entry for attack in FIGURE1_PANELS for entry in _panel(attack)],
        views=[
            Curves("Cumulative regret; the band is ± one standard error over the runs."),
            Curves(f"The same, with {WARMUP} random duels first where the legend says warm-up."),
        ],
        notes=[
            f"RCDB and RCDB-S have one setting for every panel, from the flip budget C = {BUDGET} alone, and are told "
            "that budget also where nobody attacks.",
            "The baselines are tuned for each panel on tuning seeds, as in the paper; their untuned defaults stand "
            "beside them in the table.",
            f"'with warm-up': {WARMUP} random duels (d·K) come first; tuned settings are tuned with that start. RCDB "
            "is shown with it too, at its one setting and tuned for the panel, because everyone may start so.",
        ],
    )


def _panel(attack: Attack) -> list[Entry]:
    with_start = {"warmup": WARMUP}
    entries = [
        Entry(paper_cell("rcdb", attack), "practical", attack.panel, is_reference=True),
        Entry(paper_cell("rcdb-s", attack), "practical", attack.panel),
        Entry(paper_cell("rcdb", attack, with_start), "practical with warm-up", attack.panel, drawn_in=(1,)),
        _tuned_entry("rcdb", attack, WARMUP, drawn_in=(1,)),
    ]
    for agent in BASELINES:
        entries += [
            Entry(paper_cell(agent, attack), "practical", attack.panel, drawn_in=()),
            _tuned_entry(agent, attack, 0, drawn_in=(0,)),
            _tuned_entry(agent, attack, WARMUP, drawn_in=(1,)),
        ]
    return entries


def _tuned_entry(agent: str, attack: Attack, warmup: int, drawn_in: tuple[int, ...]) -> Entry:
    problem = tuning_problem(agent, attack, warmup)
    tuning = published(problem)
    best = tuning.winner.settings
    [cell] = variants(problem, [best])
    setting = "tuned with warm-up" if warmup else "tuned"
    return Entry(cell, setting, attack.panel, tuned_to=best, tuning=tuning, drawn_in=drawn_in)
