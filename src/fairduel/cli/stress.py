"""``fairduel stress``: what an attack would do to recorded votes."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairduel.cli.audit import NOTHING_WRITTEN, Level, VotersChoose
from fairduel.cli.options import console, progress_bar, typed_command, write_record
from fairduel.cli.rank import (
    Context,
    First,
    Second,
    Strict,
    Ties,
    TiesOption,
    Voter,
    VotesFile,
    Weight,
    Winner,
    chosen_columns,
    file_settings,
    problem_sentences,
    read_and_set_aside,
)
from fairduel.files import write_atomically
from fairduel.votes.stress import FLIPS, stress


class AttackOption(StrEnum):
    """What the liars do."""

    PROMOTE = "promote"
    DEMOTE = "demote"
    RANDOM_FLIPS = "random-flips"
    EARLY_FLIPS = "early-flips"
    OMNIPRESENT = "omnipresent"


_POINTS = 8  # sizes of the attack, 0 and the largest among them


def stress_command(
    votes: VotesFile,
    attack: Annotated[AttackOption, typer.Option(help="What the liars do.")] = AttackOption.PROMOTE,
    target: Annotated[str | None, typer.Option(help="The item they push; flips may do without.")] = None,
    fake_votes: Annotated[int, typer.Option("--votes", min=1, help="The largest number of false votes.")] = 100,
    voters: Annotated[int, typer.Option(min=1, help="How many new voters cast them.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Draws the false votes.")] = 0,
    first: First = None,
    second: Second = None,
    winner: Winner = None,
    voter: Voter = None,
    context: Context = None,
    weight: Weight = None,
    ties: Ties = TiesOption.HALF,
    level: Level = 0.05,
    voters_choose_duels: VotersChoose = False,
    strict: Strict = False,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("results/stress"),
) -> None:
    """Attack recorded votes and see how far the ranking moves.

    [bold]promote[/bold], [bold]demote[/bold]  false wins (losses) of the target over opponents as they occur
    [bold]omnipresent[/bold]      votes on duels without the target that lift it in the fit
    [bold]random-flips[/bold]     recorded votes turned round, anywhere
    [bold]early-flips[/bold]      the first votes of the file turned round

    Shows the rank of the target by plain Bradley-Terry, with uncertainty
    weights, and with flagged voters set aside, over a range of sizes.
    Writes stress.csv, stress.json, stress.png, stress.svg and report.html.
    """
    from fairduel.report.audit_figures import draw_stress  # noqa: PLC0415  # plotting is slow
    from fairduel.report.figures import image  # noqa: PLC0415
    from fairduel.report.page import Drawn  # noqa: PLC0415
    from fairduel.report.votes_page import PageTable, Section, write_votes_report  # noqa: PLC0415

    roles = chosen_columns(first=first, second=second, winner=winner, voter=voter, context=context, weight=weight)
    roles["time"] = None  # the attack does without
    reading = read_and_set_aside(votes, roles, strict=strict, out=out)
    sizes = np.unique(np.linspace(0, fake_votes, _POINTS).round().astype(int)).tolist()
    name: Any = attack.value.replace("-", " ")
    with progress_bar("Stress", len(sizes), unit="sizes", left_by_stop=NOTHING_WRITTEN) as done:
        frame = stress(
            reading.votes,
            name,
            target,
            sizes=sizes,
            voters=voters,
            seed=seed,
            ties=ties.value,
            level=level,
            duels_assigned=not voters_choose_duels,
            progress=done,
        )
    settings = {
        **file_settings(votes, reading),
        "attack": name,
        "target": frame["target"][0],
        "sizes": sizes,
        "voters of the attack": "none: recorded votes are flipped" if name in FLIPS else voters,
        "seed": seed,
        "ties": ties.value,
        "level": level,
        "duels assigned": not voters_choose_duels,
    }
    write_atomically(out / "stress.csv", frame.write_csv().encode())
    summary = stress_sentences(frame, name)
    write_record(out / "stress.json", {"settings": settings, "summary": summary, "rows": frame.to_dicts()})
    figure = draw_stress(frame, attack=name)
    write_atomically(out / "stress.png", image(figure, "png"))
    write_atomically(out / "stress.svg", image(figure, "svg"))
    columns = _columns(frame)
    rows = [[_cell(row[key]) for key in columns] for row in frame.to_dicts()]
    page = out / "report.html"
    write_votes_report(
        page,
        title=f"Stress test of {votes.name}",
        summary=[*summary, *problem_sentences(reading)],
        sections=[
            Section(
                "Rank of the target under attack",
                ["Where a line stays flat, the false votes achieve nothing; where it moves, they win."],
                [PageTable(list(columns.values()), rows)],
                [Drawn(f"Attack: {name}. Rank 1 is the best.", figure)],
            )
        ],
        settings=settings,
        command=typed_command(),
    )
    table = Table(box=SIMPLE_HEAD)
    for title in columns.values():
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for sentence in (*summary, *problem_sentences(reading)):
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)
    console.print(f"Also at [bold]{page}[/bold]", soft_wrap=True)


def stress_sentences(frame: pl.DataFrame, attack: str) -> list[str]:
    """What the attack of the largest size did."""
    clean, worst = (
        {key: "none" if value is None else value for key, value in frame.row(place, named=True).items()}
        for place in (0, -1)
    )
    sentences = [
        f"{worst['size']:,} false votes ({attack}) move {worst['target']} from rank {clean['rank_plain']} to "
        f"{worst['rank_plain']} under plain Bradley–Terry, and from {clean['rank_weighted']} to "
        f"{worst['rank_weighted']} with uncertainty weights."
    ]
    if "rank_set_aside" not in worst:
        return [*sentences, "The file does not say who voted, so no voter can be flagged."]
    if attack in FLIPS:
        return [
            *sentences,
            f"{worst['others_flagged']} voters are flagged; without them the rank is {worst['rank_set_aside']}.",
        ]
    return [
        *sentences,
        f"{worst['liars_flagged']} of {worst['voters']} liars are flagged, and {worst['others_flagged']} others; with "
        f"these set aside the rank is {worst['rank_set_aside']}.",
    ]


def _columns(frame: pl.DataFrame) -> dict[str, str]:
    titles = {
        "size": "false votes",
        "voters": "liars",
        "rank_plain": "rank, plain",
        "rank_weighted": "rank, weights",
        "rank_set_aside": "rank, flagged set aside",
        "liars_flagged": "liars flagged",
        "others_flagged": "others flagged",
        "fake_votes_left": "false votes left",
    }
    return {key: title for key, title in titles.items() if key in frame.columns}


def _cell(value: int | None) -> str:
    return "not compared" if value is None else f"{value:,}"
