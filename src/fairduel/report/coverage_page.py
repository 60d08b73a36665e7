"""The report of the coverage experiment."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fairduel.experiments.coverage import CLOSE, DRAWS, Coverage, Setting, before
from fairduel.experiments.inference import Mean
from fairduel.experiments.votes_conclusions import coverage_conclusions
from fairduel.files import write_atomically
from fairduel.report.page import Page, Section, write_page
from fairduel.report.tables import interval_text, share_text
from fairduel.report.text_table import TextTable
from fairduel.simulation import versions
from fairduel.votes.intervals import CONFIDENCE
from fairduel.votes.populations import KINDS

Found = Mapping[Setting, Coverage]
_LEADER = ("P(best)", "is best")


def write_coverage(folder: Path, found: Found, seeds: Sequence[int], command: str) -> Path:
    """Write the report, ``coverage.csv`` and ``coverage.json`` to ``folder``; return the page."""
    cells = [_record(setting, cell) for setting, cell in found.items()]
    record = {"command": command, "seeds": [seeds[0], seeds[-1]], "versions": versions(), "cells": cells}
    write_atomically(folder / "coverage.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomically(folder / "coverage.csv", pl.DataFrame([_flat(cell) for cell in cells]).write_csv().encode())
    page = Page(
        title="Coverage of the rank ranges",
        question="Do the intervals of fairduel rank contain the truth as often as they say?",
        conclusions=coverage_conclusions(found),
        sections=[_kinds(found), _cells(found), _limits()],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def kinds_table(found: Found) -> TextTable:
    """Return one row per kind of population."""
    rows = []
    for name in dict.fromkeys(setting.population for setting in found):
        chosen = {setting: cell for setting, cell in found.items() if setting.population == name}
        enough = sum(cell.ranks.value >= CONFIDENCE for cell in chosen.values())
        lowest = min((cell.ranks for cell in chosen.values()), key=lambda ranks: ranks.value)
        means = [
            np.mean([cell.width.value for cell in chosen.values()]),
            np.mean([before()[setting].width for setting in chosen]),
            np.mean([cell.leader_best.value for cell in chosen.values()]),
            np.mean([cell.leader_is_best.value for cell in chosen.values()]),
        ]
        texts = [f"{enough} of {len(chosen)}", share_text(lowest), *(f"{value:.2f}" for value in means)]
        rows.append([name, KINDS[next(iter(chosen)).kind], *texts])
    columns = ["votes", "what they are", "cells with at least 95%", "lowest coverage", "width", "before", *_LEADER]
    return TextTable(columns, rows, "By population", text=2)


def _kinds(found: Found) -> Section:
    files = [before()[setting].files for setting in found]
    return Section(
        "Populations",
        [
            "Coverage is the share of vote files in which the true ranks of all items are in their ranges, for all "
            "groups together. Width is the length of a range divided by that of all ranks; before is that of the "
            "ranges that did not allow for prompts and several groups, "
            f"on {min(files)} to {max(files)} files per cell.",
            f"The standard deviation of the scores is 1, or {CLOSE} where they are called close: then all items are "
            "about equally good, and ranges that are too narrow fail most often.",
            "P(best) is the mean of the leader's, and beside it is how often the leader truly is best.",
        ],
        [kinds_table(found)],
    )


def _cells(found: Found) -> Section:
    columns = ["items", "votes", "voters", "coverage", "before", "width", "before", "scores", *_LEADER]
    tables = []
    for name in dict.fromkeys(setting.population for setting in found):
        rows = [
            [
                f"{setting.items}",
                f"{setting.votes:,}",
                f"{setting.voters}",
                share_text(cell.ranks),
                f"{before()[setting].coverage:.0%}",
                interval_text(cell.width),
                f"{before()[setting].width:.2f}",
                share_text(cell.scores) if setting.kind == "clean" else "–",
                f"{cell.leader_best.value:.2f}",
                f"{cell.leader_is_best.value:.2f}",
            ]
            for setting, cell in found.items()
            if setting.population == name
        ]
        tables.append(TextTable(columns, rows, name.capitalize(), text=0))
    return Section(
        "All cells",
        [
            "Scores: share of the items whose true score is in its own 95% interval; the scores of other populations "
            "are not on the scale of the truth.",
        ],
        tables,
    )


def _limits() -> Section:
    return Section(
        "What it does not say",
        [
            "All voters are honest. True ranks are those by the average chance to win, over all voters and prompts "
            "that could have been drawn, not only those in the file.",
            f"Ranked with {DRAWS:,} draws; fairduel rank uses 10,000.",
        ],
    )


def _record(setting: Setting, cell: Coverage) -> dict[str, Any]:
    measured = {name: value.as_json() for name, value in cell._asdict().items() if isinstance(value, Mean)}
    old = {f"{name}_before": value for name, value in before()[setting]._asdict().items()}
    return {**setting._asdict(), "files": cell.files, "covered": cell.covered, **measured, **old}


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with one entry per number, such as ``width`` and ``width_error``."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        parts = value if isinstance(value, Mapping) else {"value": value}
        flat |= {name if part == "value" else f"{name}_{part}": number for part, number in parts.items()}
    return flat
