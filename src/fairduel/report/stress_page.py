"""What an attack would do to recorded votes, as a part of a page."""

import polars as pl

from fairduel.report.audit_figures import draw_stress
from fairduel.report.page import Drawn
from fairduel.report.votes_page import Section
from fairduel.report.votes_tables import stress_table


def stress_section(frame: pl.DataFrame, *, attack: str) -> Section:
    """The rank of the target by the size of the attack, from the frame of :func:`fairduel.votes.stress.stress`."""
    return Section(
        "Rank of the target under attack",
        ["Where a line stays flat, the false votes achieve nothing; where it moves, they win."],
        [stress_table(frame)],
        [Drawn(f"Attack: {attack}. Rank 1 is the best.", draw_stress(frame, attack=attack))],
    )
