"""The figures of the paper."""

from dataclasses import replace

from fairduel.experiments.comparing import by_panel, growth, placed, placings_text, ratio_of, significant, some_panels
from fairduel.experiments.experiment import Curves, Entry, Experiment, Lines, Results
from fairduel.experiments.paper_setup import (
    BASELINES,
    BUDGET,
    BUDGET_UNKNOWN,
    FIGURE1_PANELS,
    GREEDY,
    HORIZON,
    WARMUP,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import with_interval
from fairduel.experiments.tuning import published, tuned_cell, tuning_problem
from fairduel.words import counted_noun

FLIPS = tuple(range(20, 201, 20))
"""The values of C in Figure 2."""


def figure1() -> Experiment:
    """RCDB against tuned baselines under four attacks (paper)."""
    return Experiment(
        name="figure1",
        title="Figure 1: regret under four attacks, the random one at two rates, and under none",
        question=f"Which agent has the lowest regret when {BUDGET} of {HORIZON} outcomes are flipped?",
        entries=[entry for attack in FIGURE1_PANELS for entry in _panel(attack)],
        conclude=_beats_every_baseline,
        names_lowest=False,
        views=[
            Curves("Cumulative regret (mean ± one standard error)."),
            Curves(f"The same with warm-up: {WARMUP} random duels come first where the legend says so."),
        ],
        notes=[
            f"RCDB and RCDB-S use one setting for all panels, derived only from the flip budget C = {BUDGET}, which "
            "they are given even in the panel without an attack.",
            "The baselines are tuned for each panel on separate tuning seeds, as in the paper; the table also lists "
            f"their untuned defaults, random pairs, and Sceptic without knowing C. Without knowing C, RCDB assumes "
            f"⌈√T⌉ = {BUDGET}, so here it is the same agent.",
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
        Entry(paper_cell("sceptic", attack, BUDGET_UNKNOWN), "C unknown", attack.panel, drawn_in=()),
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


def figure1_in_short() -> Experiment:
    """RCDB, RCDB-S and tuned baselines under four attacks, without warm-up: the first view of Figure 1."""
    whole = figure1()
    entries = [entry for entry in whole.entries if entry.drawn_in is None or 0 in entry.drawn_in]
    return replace(whole, entries=entries, views=whole.views[:1], conclude=_against_best_baseline)


def _against_best_baseline(results: Results) -> list[str]:
    """In how many panels RCDB has less or more regret than the best tuned baseline; and by how much in each."""
    panels, less, more, lines = by_panel(results), [], [], []
    for panel, entries in panels.items():
        [robust] = [entry for entry in entries if entry.is_reference]
        best = min((entry for entry in entries if entry.tuned), key=lambda entry: results.regret(entry).mean())
        ratio = ratio_of(results, robust, best)
        less += [panel] * (ratio.high < 1.0)
        more += [panel] * (ratio.low > 1.0)
        lines.append(f"{panel}: RCDB has {with_interval(ratio)} times the regret of the best baseline, {best.legend}.")
    undecided = len(panels) - len(less) - len(more)
    return [
        f"RCDB, with one setting, has less regret than the best baseline tuned for the attack in "
        f"{some_panels(less, len(panels))}, more in {some_panels(more, len(panels))}, and {undecided} are undecided "
        f"with {counted_noun(len(results.seeds), 'run')}.",
        *lines,
    ]


def _beats_every_baseline(results: Results) -> list[str]:
    """Whether RCDB beats every tuned baseline, and who is lowest with a warm-up."""
    panels = by_panel(results)
    won, lost = [], []
    for panel, entries in panels.items():
        [robust] = [entry for entry in entries if entry.is_reference]
        pairs = [(robust, entry) for entry in entries if entry.tuned]
        less, more = significant(results, pairs)
        if less == len(pairs):
            won.append(panel)
        elif more:
            lost.append(panel)
    undecided = (
        f"{len(panels) - len(won) - len(lost) or 'none'} are undecided with {counted_noun(len(results.seeds), 'run')}"
    )
    warm = [placed(results, entries) for entries in by_panel(results, view=1).values()]
    return [
        f"RCDB has significantly lower regret than every tuned baseline in {some_panels(won, len(panels))}, and "
        f"significantly higher regret than at least one in {some_panels(lost, len(panels))}; {undecided}.",
        "With a warm-up for the baselines, " + placings_text(warm, "in", "panels"),
    ]


def figure2() -> Experiment:
    """Regret against the number of flips (paper)."""
    entries = []
    for budget in FLIPS:
        for agent in ("rcdb", "rcdb-s"):
            cell = paper_cell(agent, GREEDY, budget=budget)
            is_reference = agent == "rcdb"
            entries.append(Entry(cell, "practical", GREEDY.panel, x=float(budget), is_reference=is_reference))
        for agent in BASELINES:
            tuning = published(tuning_problem(agent, GREEDY, warmup=0))
            cell = paper_cell(agent, GREEDY, tuning.winner.settings, budget=budget)
            entries.append(Entry(cell, f"tuned at C = {BUDGET}", GREEDY.panel, tuning=tuning, x=float(budget)))
    return Experiment(
        name="figure2",
        title="Figure 2: regret against the number of flips",
        question="Does regret grow linearly in the number of flips C, and which agent is lowest?",
        entries=entries,
        conclude=growth("C", 1.0, "linear"),
        views=[
            Lines(
                "Final regret against C; the curves are fitted powers of C, with 95% intervals of their exponents.",
                "flips C",
                fit="line",
            )
        ],
        notes=[f"The baselines keep the settings tuned for C = {BUDGET}; RCDB and RCDB-S know each C."],
    )
