"""Figure 1: RCDB against tuned baselines under the paper's attacks."""

from fairduel.experiments.experiment import Curves, Entry, Experiment
from fairduel.experiments.paper_setup import (
    BASELINES,
    BUDGET,
    FIGURE1_PANELS,
    HORIZON,
    UNTOLD,
    WARMUP,
    Attack,
    paper_cell,
)
from fairduel.experiments.tuning import published, tuned_cell, tuning_problem


def figure1() -> Experiment:
    """Declare Figure 1."""
    return Experiment(
        name="figure1",
        title="Figure 1: regret under four attacks",
        question=f"Which agent has the lowest regret when {BUDGET} of {HORIZON} outcomes are flipped?",
        entries=[entry for attack in FIGURE1_PANELS for entry in _panel(attack)],
        views=[
            Curves("Cumulative regret (mean ± one standard error)."),
            Curves(f"The same with warm-up: {WARMUP} random duels come first where the legend says so."),
        ],
        notes=[
            f"RCDB and RCDB-S use one setting for all panels, derived only from the flip budget C = {BUDGET}, which "
            "they are told even in the panel without an attack.",
            "The baselines are tuned for each panel on separate tuning seeds, as in the paper; the table also lists "
            "their untuned defaults, random pairs, and RCDB and Sceptic without knowing C.",
            f"'with warm-up': {WARMUP} random duels (d·K) come first, both in tuning and in the report. RCDB is shown "
            "with a warm-up too, untuned and tuned for the panel, for a fair comparison.",
        ],
    )


def _panel(attack: Attack) -> list[Entry]:
    warm = {"warmup": WARMUP}
    entries = [
        Entry(paper_cell("rcdb", attack), "practical", attack.panel, is_reference=True),
        Entry(paper_cell("rcdb-s", attack), "practical", attack.panel),
        Entry(paper_cell("rcdb", attack, warm), "practical with warm-up", attack.panel, drawn_in=(1,)),
        _tuned_entry("rcdb", attack, WARMUP, drawn_in=(1,)),
        Entry(paper_cell("rcdb", attack, UNTOLD), "C unknown", attack.panel, drawn_in=()),
        Entry(paper_cell("sceptic", attack, UNTOLD), "C unknown", attack.panel, drawn_in=()),
        Entry(paper_cell("random-pairs", attack), "untuned", attack.panel, drawn_in=()),
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
    setting, best = "tuned with warm-up" if warmup else "tuned", tuning.winner.settings
    return Entry(tuned_cell(problem), setting, attack.panel, tuned_to=best, tuning=tuning, drawn_in=drawn_in)
