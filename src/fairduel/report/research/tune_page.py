"""The report of a tuning."""

from collections.abc import Sequence
from pathlib import Path

from fairduel.experiments.sentences import settings_text, title_of
from fairduel.experiments.tuning import Tuned
from fairduel.report.page import Page, Section, write_page
from fairduel.report.text_table import TextTable
from fairduel.simulation import Cell


def write_tuning(folder: Path, tunings: Sequence[Tuned], command: str) -> Path:
    """Write the report to ``folder``; return the page."""
    first, last = tunings[0].seeds
    page = Page(
        title="Tuning",
        question="Which settings have the lowest regret?",
        conclusions=[tuned.conclusion for tuned in tunings],
        sections=[
            Section(
                "Trials",
                ["Mean regret ± one standard error on tuning seeds, which no report uses."],
                [_table(tuned) for tuned in tunings],
            ),
            Section("Settings", terms=problem_terms([tuned.problem for tuned in tunings])),
        ],
        command=command,
        seeds=range(first, last + 1),
    )
    return write_page(folder, page)


def problem_terms(problems: Sequence[Cell]) -> dict[str, str]:
    """Return the setup of the problems, each value once."""
    found = {
        "World": [_named(problem, "world") for problem in problems],
        "Attack": [_named(problem, "attack") for problem in problems],
        "Delay": [_named(problem, "delay") for problem in problems if problem.is_delayed],
        "T": [f"{problem.horizon:,}" for problem in problems],
        "C": [f"{problem.budget:,}" for problem in problems],
    }
    return {name: "; ".join(dict.fromkeys(values)) for name, values in found.items() if values}


def _named(problem: Cell, kind: str) -> str:
    name, settings = getattr(problem, kind), settings_text(getattr(problem, f"{kind}_settings"))
    return f"{name} ({settings})" if settings else str(name)


def _table(tuned: Tuned) -> TextTable:
    problem = tuned.problem
    fixed = settings_text({**problem.agent_settings, **problem.attack_settings})
    attack = "no attack" if problem.attack == "none" else f"{problem.attack} attack"
    caption = f"{title_of(problem.agent)}, {attack}, C = {problem.budget}, T = {problem.horizon:,}"
    rows = [[settings_text(t.settings), f"{t.mean:,.0f} ± {t.standard_error:,.0f}"] for t in tuned.trials]
    best = tuned.trials.index(tuned.winner)
    return TextTable(["settings", "regret"], rows, f"{caption} ({fixed})" if fixed else caption, marked=best)
