"""Put the figures of a run into the table of its page.

$ python docs/tables.py results/table1/table1.json
$ python docs/tables.py results/leaderboard/leaderboard.json
"""
# ruff: noqa: INP001  # a script

import json
import sys
from pathlib import Path
from typing import Any

from fairduel.agents import AGENTS
from fairduel.experiments.inference import Mean
from fairduel.report.tables import with_error

TABLE1 = "| algorithm | adversary | is told | bound | in T | in C | a unit of C | regret | as published |"
LEADERBOARD = "| agent, untuned | worst ratio | where | geometric mean |"


def table1(record: dict[str, Any]) -> list[str]:
    """One line an algorithm."""
    lines = []
    for row in record["rows"]:
        published = "the same" if row["regret_as_published"] is None else _text(row["regret_as_published"])
        if row["published_is_uniform"]:
            published = "uniform"
        elif row["last_epoch_as_published"] == 1:
            published += ", first epoch"
        measured = [
            _text(row["exponent_in_horizon"], 2),
            "noise" if row["exponent_in_budget"]["value"] is None else _text(row["exponent_in_budget"], 2),
            _text(row["regret_per_corruption"], 2),
            _text(row["regret_at_reference"]),
            published,
        ]
        name = f"{row['algorithm']} ({row['source']})"
        lines.append(_line([name, row["adversary"], row["needs"], row["bound"], *measured]))
    return lines


def leaderboard(record: dict[str, Any]) -> list[str]:
    """One line an agent."""
    lines = []
    for standing in record["standings"]:
        name = ", ".join([AGENTS[standing["agent"]].title, *standing["settings"].values()])
        worst = {field: standing["worst"][field] for field in Mean._fields}
        mean = _text(standing["geometric_mean"], 2)
        lines.append(_line([name, _text(worst, 2), standing["worst"]["scenario"], mean]))
    return lines


def put(page: Path, header: str, lines: list[str]) -> None:
    """Replace the table under ``header``."""
    before, after = page.read_text(encoding="utf-8").split(header + "\n")
    rest = after.splitlines(keepends=True)
    while rest and rest[0].startswith("|"):
        rest.pop(0)
    rule = "|" + "---|" * (header.count("|") - 1)
    page.write_text(before + "\n".join([header, rule, *lines]) + "\n" + "".join(rest), encoding="utf-8")


def _text(mean: dict[str, float | None], digits: int = 0) -> str:
    return with_error(Mean(*(float("nan") if value is None else value for value in mean.values())), digits)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if "standings" in record:
        put(Path("docs/leaderboard.md"), LEADERBOARD, leaderboard(record))
    else:
        put(Path("docs/table1.md"), TABLE1, table1(record))
