"""The report of the paper's claims."""

from collections.abc import Sequence
from pathlib import Path

from fairduel.experiments.claims import GROUPS, Judgement, verify_conclusions
from fairduel.report.page import Page, Section, write_page
from fairduel.report.text_table import TextTable

_TONES = {"holds": "good", "does not hold": "bad", "undecided": "unsure", "cannot fail": "soft"}
_EXPLAINED = (
    "A claim holds if its 95% interval lies entirely on the claimed side, does not hold if it lies entirely on the "
    "other, and is undecided if it covers both. A claim that cannot fail is true of any run, so it says nothing about "
    "the algorithm. Claims whose runs take long are judged on fewer runs, and say on how many. Theorems and lemmas "
    "have the published numbers, and the label of the paper's source in brackets."
)


def write_verify(folder: Path, verdicts: Sequence[Judgement], seeds: Sequence[int], command: str) -> Path:
    """Write the report to ``folder``; return the page."""
    sections = []
    for group in GROUPS:
        chosen, about = group.chosen(verdicts), [group.about] if group.about else [_EXPLAINED]
        if chosen:
            sections.append(Section(group.title, about, [_table(chosen, group.title)]))
    page = Page(
        title="The paper's claims, measured",
        question="Which claims of the paper hold?",
        conclusions=verify_conclusions(verdicts),
        sections=sections,
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def _table(verdicts: Sequence[Judgement], caption: str) -> TextTable:
    rows = [[verdict.claim, verdict.status, verdict.measured, verdict.source] for verdict in verdicts]
    return TextTable(["claim", "verdict", "measured", "source"], rows, caption, text=4, tones=_TONES)
