"""The report of rankings of votes under attack."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from fairduel.experiments.experiment import settings_text
from fairduel.experiments.vote_attacks import ATTACKS, MODELS, OURS, POPULATIONS, Comparison
from fairduel.experiments.votes_conclusions import vote_attacks_conclusions
from fairduel.files import write_atomically
from fairduel.report.page import Page, Section, write_page
from fairduel.report.tables import with_error
from fairduel.report.text_table import TextTable

_KEYS = ("population", "attack", "share")


def write_vote_attacks(
    folder: Path, frame: pl.DataFrame, cells: Sequence[Comparison], seeds: Sequence[int], command: str
) -> Path:
    """Write the report and ``runs.csv``, one row per run and model, to ``folder``; return the page."""
    write_atomically(folder / "runs.csv", frame.write_csv().encode())
    page = Page(
        title="Rankings of votes under attack",
        question="How much of the true order survives false votes, by model?",
        conclusions=vote_attacks_conclusions(cells),
        sections=[
            Section("Summary", [_SUMMARY], [_summary(cells)]),
            Section("Kendall τ", [_TAU], [tau_table(cells)]),
            Section("Places gained", [_GAINED], [_gained_table(cells)]),
            Section("Settings", [_SETTINGS], [_populations(), _attacks()]),
        ],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


_SUMMARY = (
    "Kendall's τ with the true scores, and places gained by the target, averaged over the populations. “Worst lead” is "
    "our τ minus that of the best rival of each population, in the population where that is lowest."
)
_TAU = (
    "Kendall's τ between a model's scores and the true ones, mean ± standard error over seeds; share is that of all "
    "votes cast by attackers. “Lead” is our τ minus that of the best rival of the row, seed by seed."
)
_GAINED = (
    "Places that the target gains in the attackers' direction, from its true rank. Without an attack a model is off by "
    "chance only. Inverters and random voters have no target."
)
_SETTINGS = (
    "20 items with scores from N(0, 1), 150 honest voters and about 4,500 honest votes, one in ten a tie. Attackers "
    "know all honest votes. Ours sets flagged voters aside, then uses care weights and uncertainty weights."
)


def _summary(cells: Sequence[Comparison]) -> TextTable:
    """Average over the populations, one row per attack and share."""
    rows = []
    for attack, share in dict.fromkeys((cell.attack, cell.share) for cell in cells):
        same = [cell for cell in cells if (cell.attack, cell.share) == (attack, share)]
        taus = [f"{np.mean([cell.tau[name].value for cell in same]):.3f}" for name in MODELS]
        places = ["–", "–"]
        if all(cell.gained for cell in same):
            places = [
                f"{np.mean([cell.gained[name].value for cell in same if cell.gained]):+.1f}" for name in (OURS, "plain")
            ]
        worst = min(cell.lead.value for cell in same)
        rows.append([attack, f"{share:.0%}", *taus, *(each.replace("-", "−") for each in (f"{worst:+.3f}", *places))])
    columns = ["attack", "share", *MODELS, "worst lead", "places, ours", "places, plain"]
    return TextTable(columns, rows, "Summary", text=1)


def tau_table(cells: Sequence[Comparison]) -> TextTable:
    """Tabulate τ of every model, one row per cell."""
    rows = [
        [*_key(cell), *(with_error(cell.tau[name], digits=3) for name in MODELS), with_error(cell.lead, digits=3)]
        for cell in cells
    ]
    return TextTable([*_KEYS, *MODELS, "lead"], rows, "Kendall τ", text=2)


def _gained_table(cells: Sequence[Comparison]) -> TextTable:
    rows = [
        [*_key(cell), *(with_error(cell.gained[name], digits=1) for name in MODELS)] for cell in cells if cell.gained
    ]
    return TextTable([*_KEYS, *MODELS], rows, "Places gained", text=2)


def _populations() -> TextTable:
    rows = [[name, settings_text(vars(population))] for name, population in POPULATIONS.items()]
    return TextTable(["population", "settings"], rows, "Populations", text=2)


def _attacks() -> TextTable:
    rows = [[name, ", ".join(plan.attacks), f"{plan.votes_each}"] for name, plan in ATTACKS.items()]
    return TextTable(["attack", "what attackers do", "votes each"], rows, "Attacks", text=2)


def _key(cell: Comparison) -> list[str]:
    return [cell.population, cell.attack, f"{cell.share:.0%}"]
