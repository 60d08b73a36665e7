"""What attacks do to rankings of recorded votes, in sentences and tables."""

from collections.abc import Sequence

import numpy as np

from benchmarks.vote_attacks.attacks import ALLOWED, MODELS, OURS, Comparison
from fairduel.report.research.research_tables import error_text
from fairduel.report.text_table import TextTable

_KEYS = ("population", "attack", "share")


def conclusions(cells: Sequence[Comparison]) -> list[str]:
    """State how our ranking of votes compares with the best rival, cell by cell, and where it loses.

    Args:
        cells: All cells of the table.

    Returns:
        One or two sentences per item.
    """
    behind = sorted((cell for cell in cells if cell.lead.value < 0.0), key=lambda cell: cell.lead.value)
    found = [
        f"In {len(cells) - len(behind)} of {len(cells)} cells our mean τ is at least that of the best of "
        f"{len(cells[0].tau) - 1} rivals in that cell."
    ]
    if behind:
        worst = behind[0]
        too_far = [cell for cell in behind if cell.lead.value < -ALLOWED]
        found.append(
            f"We are furthest behind in {_cell_name(worst)}, by {-worst.lead.value:.3f} ± {worst.lead.error:.3f} "
            f"({worst.best}); {len(too_far)} cells are more than {ALLOWED:g} behind"
            f"{': ' + '; '.join(map(_cell_name, too_far)) if too_far else ''}."
        )
    ahead = max(cells, key=lambda cell: cell.lead.value)
    found.append(
        f"We are furthest ahead in {_cell_name(ahead)}, by {ahead.lead.value:.3f} ± {ahead.lead.error:.3f} (next: "
        f"{ahead.best})."
    )
    return [*found, "The best rival of each cell is chosen on the same runs, which favours the rivals."]


def _cell_name(cell: Comparison) -> str:
    return f"{cell.population} / {cell.attack} {cell.share:.0%}"


def summary(cells: Sequence[Comparison]) -> TextTable:
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
        [*_key(cell), *(error_text(cell.tau[name], digits=3) for name in MODELS), error_text(cell.lead, digits=3)]
        for cell in cells
    ]
    return TextTable([*_KEYS, *MODELS, "lead"], rows, "Kendall τ", text=2)


def gained_table(cells: Sequence[Comparison]) -> TextTable:
    """Tabulate the places that the target gains, one row per cell with a target."""
    rows = [
        [*_key(cell), *(error_text(cell.gained[name], digits=1) for name in MODELS)] for cell in cells if cell.gained
    ]
    return TextTable([*_KEYS, *MODELS], rows, "Places gained", text=2)


def _key(cell: Comparison) -> list[str]:
    return [cell.population, cell.attack, f"{cell.share:.0%}"]


TABLES = {"vote-attacks": summary, "vote-attacks-tau": tau_table, "vote-attacks-places": gained_table}
"""All tables, by the name of their file."""
