"""The report of a tuning."""

from collections.abc import Sequence
from pathlib import Path

from fairduel.experiments.conclusions import tune_conclusions
from fairduel.experiments.experiment import settings_text, title_of
from fairduel.experiments.tuning import Tuned
from fairduel.report.page import Page, Section, write_page
from fairduel.report.text_table import TextTable


def write_tuning(folder: Path, tunings: Sequence[Tuned], command: str) -> Path:
    """Write the report to ``folder``; return the page."""
    first, last = tunings[0].seeds
    page = Page(
        title="Tuning",
        question="Which settings have the lowest regret?",
        conclusions=tune_conclusions(tunings),
        sections=[
            Section(
                "Trials",
                ["Mean regret ± one standard error on tuning seeds, which no report uses."],
                [_table(tuned) for tuned in tunings],
            )
        ],
        command=command,
        seeds=range(first, last + 1),
    )
    return write_page(folder, page)


def _table(tuned: Tuned) -> TextTable:
    problem = tuned.problem
    fixed = settings_text(problem["agent_settings"] | problem["attack_settings"])
    caption = f"{title_of(problem['agent'])}, {problem['attack']} attack, C = {problem['budget']}"
    rows = [[settings_text(t.settings), f"{t.mean:,.0f} ± {t.standard_error:,.0f}"] for t in tuned.trials]
    best = tuned.trials.index(tuned.winner)
    return TextTable(["settings", "regret"], rows, f"{caption} ({fixed})" if fixed else caption, marked=best)
