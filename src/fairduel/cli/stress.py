"""``fairduel stress``: what an attack would do to recorded votes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import polars as pl
import typer

from fairduel.cli import recorded_votes as recorded
from fairduel.cli.options import progress_bar, typed_command, write_record
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


_POINTS = 8  # sizes of the attack, 0 and the largest among them


def stress_command(
    votes: recorded.VotesFile,
    attack: Annotated[AttackOption, typer.Option(help="What the liars do.")] = AttackOption.PROMOTE,
    target: Annotated[str | None, typer.Option(help="The item they push; flips may do without.")] = None,
    fake_votes: Annotated[int, typer.Option("--votes", min=1, help="The largest number of false votes.")] = 100,
    voters: Annotated[int, typer.Option(min=1, help="How many new voters cast them.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Draws the false votes.")] = 0,
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
    out: recorded.Out = Path("results/stress"),
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
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    # An attack does without times, so a column of times that cannot be found or read is no obstacle.
    reading = recorded.read_and_set_aside(votes, strict=strict, out=out, **columns, time="none", weight=weight)
    sizes = np.unique(np.linspace(0, fake_votes, _POINTS).round().astype(int)).tolist()
    with progress_bar("Stress", len(sizes), unit="sizes", left_by_stop=recorded.NOTHING_WRITTEN) as done:
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
    write_stress(frame, settings, out, title=title, problems=problems)


def write_stress(
    frame: pl.DataFrame, settings: Mapping[str, Any], out: Path, *, title: str, problems: Sequence[str]
) -> None:
    """Write the table, the record, the figure and the page of a stress test, and show what they say."""
    from fairduel.report.audit_page import stress_section  # noqa: PLC0415  # plotting is slow
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415

    found, section = summarise_stress(frame, settings["attack"]), stress_section(frame, attack=settings["attack"])
    [table] = section.tables
    recorded.write_csv(out / "stress.csv", frame)
    write_record(out / "stress.json", {"settings": settings, "summary": found, "rows": frame.to_dicts()})
    page, summary, command = out / "report.html", [*found, *problems], typed_command()
    write_votes_report(page, title=title, summary=summary, sections=[section], settings=settings, command=command)
    recorded.print_table(table)
    recorded.print_sentences(summary, page)
