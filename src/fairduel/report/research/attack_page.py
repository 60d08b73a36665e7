"""The report of a search for the worst attack on an agent."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from fairduel.experiments.attack_search import WorstAttack
from fairduel.experiments.sentences import title_of
from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.research.curves import scale_to_logarithms
from fairduel.report.research.research_tables import error_text
from fairduel.report.research.tune_page import problem_terms
from fairduel.report.text_table import TextTable
from fairduel.stats import mean


def write_attack(folder: Path, found: WorstAttack, seeds: Sequence[int], command: str) -> Path:
    """Write the report to ``folder``; return the page."""
    title = title_of(found.problem.agent)
    table, sections = attack_table(found), []
    if found.growth:
        grown = ", ".join(f"{horizon:,}: {mean(regret).value:,.0f}" for horizon, regret in found.growth.items())
        drawn = Drawn(
            "Regret under the attack found against T, C ~ √T (log-log). Bars are ± one standard error.",
            growth_figure({title: found}, WIDTH),
            alt=f"Regret by T: {grown}.",
            name="growth",
        )
        sections = [Section("Growth", figures=[drawn])]
    page = Page(
        title=f"The worst attack found on {title}",
        question=f"What is the worst that {found.problem.budget:,} flips can do?",
        conclusions=found.conclusions,
        sections=[
            Section("Attacks", ["Mean regret ± one standard error, worst first; then at other T."], [table]),
            *sections,
            Section("Settings", terms=problem_terms([found.problem])),
        ],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def attack_table(found: WorstAttack) -> TextTable:
    """Regret under the worst attack and the scripted ones, worst first, and at other horizons."""
    attacks = {"the worst found": found.regret, **found.scripted}
    ranked = sorted(attacks.items(), key=lambda one: -one[1].mean())
    longer = {f"the worst found, T = {horizon:,}": regret for horizon, regret in found.growth.items()}
    rows = [[name, error_text(mean(regret))] for name, regret in (*ranked, *longer.items())]
    return TextTable(("attack", "regret"), rows, marked=[name for name, _ in ranked].index("the worst found"))


def growth_figure(found: Mapping[str, WorstAttack], width: float) -> Figure:
    """Draw regret under the worst attack on each agent against T, the agent that ends highest first."""
    with mpl.rc_context({**STYLE, "text.parse_math": True, "font.size": 8}):
        figure = Figure(figsize=(width, 0.6 * width), layout="constrained")
        axis = figure.subplots()
        ranked = sorted(found.items(), key=lambda one: -float(one[1].growth[max(one[1].growth)].mean()))
        for place, (title, worst) in enumerate(ranked):
            regrets = [mean(each) for each in worst.growth.values()]
            power = f": $T^{{{worst.exponent.value:.2f}}}$" if len(regrets) > 1 else ""
            axis.errorbar(
                list(worst.growth),
                [each.value for each in regrets],
                [each.error for each in regrets],
                label=title + power,
                linestyle=("-", "--", ":")[place // 7 % 3],
                marker="o",
                markersize=3,
            )
        scale_to_logarithms(axis, {float(each): f"{each:,}" for worst in found.values() for each in worst.growth})
        axis.set(xlabel="T (C ~ √T)", ylabel="regret under the worst attack found")
        if len(found) > 1:
            figure.legend(loc="outside right upper", fontsize=7)
        return figure
