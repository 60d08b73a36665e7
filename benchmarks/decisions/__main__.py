"""Whether decisions drawn from recorded votes hold: ``python -m benchmarks.decisions``.

Ranks simulated files of honest votes whose truth is known, and looks at simulated polls again and again. Prints what
holds, then the tables, and writes them to ``--out``. Interrupt it at any time: what is finished is kept, and rerunning
resumes. A full run takes about half an hour with ``--jobs 2`` on two cores, ``--quick`` a minute.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import running
from benchmarks.decisions import files, polls, tables
from benchmarks.decisions.populations import CASES, named, population
from benchmarks.decisions.tables import TABLES, Findings
from fairduel.cli import output
from fairduel.errors import FairduelError
from fairduel.report.text_table import TextTable

_MODULES = ("benchmarks.decisions.files", "benchmarks.decisions.polls")
_QUICK_RUNS, _QUICK_VOTES = 4, 200
_OPTIONAL = {
    "ranking": ("width", "scores", "τ, plain", "files"),
    "winner": (
        "Brier",
        "rank 1 only, wrong",
        "too early",
        "tie",
        "leads",
        "won",
        "plain",
        "tie without the best",
        "wrong leader",
    ),
    "calibration": (),
    "stopping": ("studies", "at votes", "lowest"),
    "looks": ("median width", "without upper end", "running", "studies"),
}
"""Columns that a narrow terminal may leave out, the least useful first."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    options = _options(arguments)
    kinds = dict.fromkeys(case.kind for case in CASES.values() if _is_chosen(case.kind, options.only))
    sizes = {kind: named(kind) for kind in kinds}
    chosen = [poll for poll in polls.POLLS.values() if _is_chosen(poll.kind, options.only)]
    runs, studies = options.runs, options.studies
    if options.quick:
        sizes, runs, studies = {kind: [min(sizes[kind], key=_effort)] for kind in kinds}, _QUICK_RUNS, _QUICK_RUNS
        chosen = [replace(poll, votes=_QUICK_VOTES) for poll in chosen]
    of_files = {
        kind: running.Work("; ".join(names), partial(measured, tuple(names)), files.SCHEMA, _MODULES)
        for kind, names in sizes.items()
    }
    of_polls = {
        poll.name: running.Work(
            f"poll, {poll.name}, {poll.votes} votes", partial(polls.study, poll), polls.SCHEMA, _MODULES
        )
        for poll in chosen
    }
    findings = Findings.of(
        running.run_with_progress(of_files, runs, options, title="Decisions", unit="files"),
        running.run_with_progress(of_polls, studies, options, title="Decisions", unit="studies"),
    )
    report(findings, options.out)
    if options.docs:
        write(findings, running.DOCS)


def measured(names: Sequence[str], seed: int) -> list[files.Row]:
    """Measure one file of a kind of population, whose sizes, called ``names``, take turns."""
    return [files.measure_file(population(names[seed % len(names)], seed), seed)]


def report(findings: Findings, folder: Path) -> None:
    """Print the conclusions and all tables, and write them to ``folder``."""
    output.say(*tables.conclusions(findings))
    for name, table in _filled(findings).items():
        output.print_table(table, text=table.columns[:1], optional=_OPTIONAL[name], file=folder / _file(name))
    write(findings, folder)


def write(findings: Findings, folder: Path) -> None:
    """Write the tables as CSV, and the conclusions as a list in Markdown."""
    for name, table in _filled(findings).items():
        running.write_table(table, folder / _file(name))
    lines = "".join(f"- {sentence}\n" for sentence in tables.conclusions(findings))
    (folder / "decisions.txt").write_text(lines, encoding="utf-8")


def _filled(findings: Findings) -> dict[str, TextTable]:
    made = {name: table(findings) for name, table in TABLES.items()}
    return {name: table for name, table in made.items() if table.rows}


def _file(name: str) -> str:
    return f"decisions-{name}.csv"


def _is_chosen(kind: str, only: Sequence[str]) -> bool:
    return not only or kind in only


def _effort(name: str) -> tuple[bool, int, int]:
    """Return what is least for the smallest population of a kind, but not one of fewer than 100 votes."""
    settings = CASES[name].settings
    return settings["votes"] < 100, settings["votes"], settings.get("items", 2)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = running.command_line(
        "benchmarks.decisions", __doc__ or "", runs=200, unit="files per population, whose sizes take turns"
    )
    parser.add_argument("--studies", type=int, default=100, help="studies per poll (default: 100)")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="only these populations and polls")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        main()
    except FairduelError as error:
        sys.exit(f"error: {error}")
