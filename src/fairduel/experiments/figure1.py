"""Figure 1: RCDB against tuned baselines under the paper's attacks."""

from fairduel.experiments.experiment import Curves, Entry, Experiment, settings_text
from fairduel.experiments.paper_setup import ATTACKS, BASELINES, BUDGET, HORIZON, WARMUP, Attack, paper_cell
from fairduel.experiments.tuning import baseline_problem, published, variants


def figure1() -> Experiment:
    """Declare Figure 1."""
    return Experiment(
        name="figure1",
        title="Figure 1: four attacks",
        question=f"Who has the lowest regret when {BUDGET} of {HORIZON} outcomes are flipped?",
        entries=[entry for attack in ATTACKS for entry in _panel(attack)],
        views=[
            Curves("Cumulative regret; the band is ± one standard error over the runs."),
            Curves(f"The same with baselines that start with {WARMUP} random duels."),
        ],
        notes=[
            f"RCDB and RCDB-S have one setting for every panel, from the flip budget C = {BUDGET} alone, and are told "
            "that budget also where nobody attacks.",
            "The baselines are tuned for each panel on tuning seeds, as in the paper; their untuned defaults stand "
            "beside them in the table.",
            f"'warm-up' baselines start with {WARMUP} random duels (d·K) and are tuned with that start.",
        ],
    )


def _panel(attack: Attack) -> list[Entry]:
    entries = [
        Entry(paper_cell("rcdb", attack), "practical", attack.panel, is_reference=True),
        Entry(paper_cell("rcdb-s", attack), "practical", attack.panel),
    ]
    for agent in BASELINES:
        entries.append(Entry(paper_cell(agent, attack), "practical", attack.panel, drawn_in=()))
        for warmup in (0, WARMUP):
            problem = baseline_problem(agent, attack, warmup)
            tuning = published(problem)
            best = tuning.winner.settings
            [cell] = variants(problem, [best])
            start = "tuned with warm-up" if warmup else "tuned"
            entries.append(
                Entry(
                    cell,
                    f"{start}: {settings_text(best)}",
                    attack.panel,
                    tuning=tuning,
                    drawn_in=(1,) if warmup else (0,),
                )
            )
    return entries
