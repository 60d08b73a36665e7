"""Write the results of a run as a table of docs/results.md.

$ python docs/tables.py results/table1/table1.json
$ python docs/tables.py results/leaderboard/leaderboard.json
$ python docs/tables.py results/coverage/coverage.json
$ python docs/tables.py results/nonlinear/runs.parquet
"""
# ruff: noqa: INP001  # a script

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl

from fairduel.experiments.other_papers import NONLINEAR_WORLDS
from fairduel.experiments.sentences import title_of, whole
from fairduel.report.research.research_tables import error_text, interval_text, share_text
from fairduel.stats import Mean, mean

DATA = Path(__file__).parent / "data"
TABLE1 = ["algorithm", "adversary", "told", "bound", "in T", "in C", "per unit of C", "regret", "as published"]
LEADERBOARD = [
    *("agent, untuned", "worst ratio", "where", "geometric mean", "worst, held-out", "mean, held-out"),
    *("best recommended", "loss", "worst attack"),
]
COVERAGE = ["votes are", "items", "votes"]
_LOWERED = str.maketrans("imnt", "ᵢₘₙₜ")


def table1(record: dict[str, Any]) -> list[list[str]]:
    """Return one row per algorithm."""
    rows = []
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
        bound = re.sub(r"_(min|i|t)\b", lambda found: found[1].translate(_LOWERED), row["bound"])
        rows.append([name, row["adversary"], row["needs"], bound, *measured])
    return rows


def leaderboard(record: dict[str, Any]) -> list[list[str]]:
    """Return one row per agent."""
    rows = []
    for standing in record["standings"]:
        held_out = standing["halves"]["held-out"]
        worst, risk = ({name: each["worst"][name] for name in Mean._fields} for each in (standing, held_out))
        ratios = [worst, standing["geometric_mean"], risk, held_out["geometric_mean"]]
        texts = [interval_text(_mean(ratio)) for ratio in ratios]
        advice = [
            share_text(_mean(standing["recommended_best"])),
            interval_text(_mean(standing["recommendation_regret"])),
            whole(_mean(standing["worst_attack"])) if standing["worst_attack"] else "–",
        ]
        rows.append([standing["title"], texts[0], standing["worst"]["scenario"], *texts[1:], *advice])
    return rows


def coverage(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and one row per population, number of items and number of votes; voters are columns."""
    voters = sorted({cell["voters"] for cell in record["cells"]})
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for cell in sorted(record["cells"], key=lambda cell: cell["spread"]):  # close scores first
        row = rows.setdefault((cell["kind"], str(cell["items"]), f"{cell['votes']:,}"), {})
        covered, count = f"{cell['ranks']['value']:.0%}", cell["voters"]
        if cell["spread"] == 1.0:
            width = f"{cell['width']['value']:.2f}"
            covered += f" / {row[count]}, {width}" if count in row else f", {width}"
        row[count] = covered
    header = [*COVERAGE, *(f"{count} voters" for count in voters)]
    order = list(dict.fromkeys(cell["kind"] for cell in record["cells"]))
    places = sorted(rows, key=lambda place: order.index(place[0]))
    return header, [[*place, *(rows[place][count] for count in voters)] for place in places]


def nonlinear(runs: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return one row per world; each agent's regret without attack / with 45 flips."""
    agents = runs.select("agent", linear=~pl.col("agent_given").str.contains("map")).unique(maintain_order=True).rows()
    header = ["world", *(title_of(agent) + (", linear" if linear else "") for agent, linear in agents)]
    rows = []
    for name, (world, settings) in NONLINEAR_WORLDS.items():
        here = runs.filter(world=world, world_settings=json.dumps(dict(settings), sort_keys=True))
        row = [name]
        for agent, linear in agents:
            own = here.filter(pl.col("agent") == agent, ~pl.col("agent_given").str.contains("map") == linear)
            both = (mean(own.filter(attack=attack)["regret"].to_numpy()) for attack in ("none", "adversarial"))
            row.append(" / ".join(error_text(each).replace(" ± ", "±") for each in both))
        rows.append(row)
    return header, rows


def write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Write a table as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def _text(mean: dict[str, float | None], digits: int = 0) -> str:
    return error_text(_mean(mean), digits).replace(" ± ", "±")  # one word, so that no cell breaks there


def _mean(record: dict[str, float | None]) -> Mean:
    return Mean(*(float("nan") if value is None else value for value in record.values()))


if __name__ == "__main__":
    if sys.argv[1].endswith(".parquet"):
        write(DATA / "nonlinear.csv", *nonlinear(pl.read_parquet(sys.argv[1])))
        sys.exit()
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if "standings" in record:
        write(DATA / "leaderboard.csv", LEADERBOARD, leaderboard(record))
    elif "cells" in record:
        write(DATA / "coverage.csv", *coverage(record))
    else:
        write(DATA / "table1.csv", TABLE1, table1(record))
