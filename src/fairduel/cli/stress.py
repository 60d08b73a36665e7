"""``fairduel stress``: what an attack would do to recorded votes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import polars as pl
import typer

from fairduel.cli import recorded_votes as recorded
from fairduel.cli.output import (
    Record,
    print_table,
    progress_bar,
    record,
    say,
    say_report,
    typed_command,
    write_record,
)
from fairduel.report.votes_tables import stress_table
from fairduel.votes.stress import FLIPS, Attack, stress, summarise_stress


class AttackOption(StrEnum):
    """What the liars do."""

    PROMOTE = "promote"
    DEMOTE = "demote"
    RANDOM_FLIPS = "random-flips"
    EARLY_FLIPS = "early-flips"
    OMNIPRESENT = "omnipresent"

    @property
    def attack(self) -> Attack:
        """Its name in the library."""
        return cast("Attack", self.value.replace("-", " "))


_SIZES = 8
"""How many attack sizes are tried, from 0 to --votes."""


def stress_command(
    votes: recorded.VotesFile,
    attack: Annotated[AttackOption, typer.Option(metavar="ATTACK", help="What the liars do; see above.")] = (
        AttackOption.PROMOTE
    ),
    target: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Item they push or bury; flips need none.", show_default=False)
    ] = None,
    fake_votes: Annotated[
        int, typer.Option("--votes", min=1, metavar="N", help="Largest number of false votes.")
    ] = 100,
    voters: Annotated[int, typer.Option(min=1, metavar="N", help="Number of new voters who cast them.")] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for drawing the false votes.")] = 0,
    first: recorded.First = None,
    second: recorded.Second = None,
    winner: recorded.Winner = None,
    voter: recorded.Voter = None,
    context: recorded.Context = None,
    weight: recorded.Weight = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    strict: recorded.Strict = False,
    out: recorded.Out = None,
) -> Record:
    """Attack a vote file and see how far the ranking moves.

    [bold]promote[/bold]       false wins of the target
    [bold]demote[/bold]        false losses of the target
    [bold]omnipresent[/bold]   false votes on other pairs, chosen to lift the target
    [bold]random-flips[/bold]  flips recorded votes at random
    [bold]early-flips[/bold]   flips the first recorded votes

    Shows the target's rank under plain Bradley-Terry, with uncertainty
    weights, and without flagged voters, for attacks of increasing size.
    Writes report.html, stress.csv, stress.json and the figure.
    """
    folder = out or recorded.default_folder("stress", votes)
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    # No attack needs times, so an unreadable time column does not matter.
    reading = recorded.read_and_set_aside(votes, "stress", folder, strict=strict, **columns, time="none", weight=weight)
    sizes = np.unique(np.linspace(0, fake_votes, _SIZES).round().astype(int)).tolist()
    with progress_bar("Stress", len(sizes), unit="sizes", on_stop=recorded.NO_REPORT) as done:
        frame = stress(
            reading.votes,
            attack.attack,
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
        **recorded.file_settings(votes, reading),
        "attack": attack.attack,
        "target": frame["target"][0],
        "sizes": sizes,
        "voters of the attack": "none: recorded votes are flipped" if attack.attack in FLIPS else voters,
        "seed": seed,
        "ties": ties.value,
        "level": level,
        "duels assigned": not voters_choose_duels,
    }
    title, problems = f"Stress test of {votes.name}", recorded.problem_sentences(reading)
    return _report(frame, settings, folder, title=title, problems=problems)


def _report(
    frame: pl.DataFrame, settings: Mapping[str, Any], folder: Path, *, title: str, problems: Sequence[str]
) -> Record:
    """Write and print what a stress test found."""
    from fairduel.report.audit_page import stress_section  # noqa: PLC0415  # plotting is slow
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415

    summary, section = summarise_stress(frame, settings["attack"]), stress_section(frame, attack=settings["attack"])
    file = folder / "stress.csv"
    recorded.write_csv(file, frame)
    found = record(settings=settings, summary=summary, rows=frame.to_dicts())
    write_record(folder / "stress.json", found)
    page = folder / "report.html"
    write_votes_report(
        page,
        title=title,
        summary=[*summary, *problems],
        sections=[section],
        settings=settings,
        command=typed_command(),
    )
    say(*summary)
    print_table(stress_table(frame), optional=["liars", "others flagged", "weighted rank"], file=file)
    say_report(page, *problems)
    return {**found, "report": str(page)}
