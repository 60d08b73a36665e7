"""``fairduel stress``: what an attack would do to recorded votes."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import polars as pl
import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.report.votes_tables import stress_table
from fairduel.votes.reading import Reading
from fairduel.votes.stress_tests import FLIPS, Attack, stress, summarise_stress


class AttackOption(StrEnum):
    """What the liars do."""

    PROMOTE = "promote"
    DEMOTE = "demote"
    HALF_HONEST = "half-honest"
    OMNIPRESENT = "omnipresent"
    INVERTERS = "inverters"
    RANDOM_VOTES = "random-votes"
    RANDOM_FLIPS = "random-flips"
    EARLY_FLIPS = "early-flips"

    @property
    def attack(self) -> Attack:
        """Its name in the library."""
        return cast("Attack", self.value if self is self.HALF_HONEST else self.value.replace("-", " "))


Liars = Annotated[AttackOption, typer.Option(metavar="ATTACK", help="What the liars do; see above.")]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="ITEM", help="Item to push or bury (default for attacks without one: the leader).", show_default=False
    ),
]
FakeVotes = Annotated[int, typer.Option("--votes", min=1, metavar="N", help="Largest number of false votes.")]
_LEAST_USEFUL = ("liars", "others flagged", "weighted rank", "reliability", "spectral", "am-ELO", "Crowd-BT")
_SIZES = 8
"""Number of attack sizes to try, from 0 to --votes."""


def stress_command(
    votes: recorded.VotesFile,
    attack: Liars = AttackOption.PROMOTE,
    target: Target = None,
    fake_votes: FakeVotes = 100,
    voters: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of new voters who cast them (ignored by flips).")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for drawing the false votes.")] = 0,
    first: recorded.First = None,
    second: recorded.Second = None,
    winner: recorded.Winner = None,
    voter: recorded.Voter = None,
    context: recorded.Context = None,
    weight: recorded.Weight = None,
    where: recorded.Where = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    strict: recorded.Strict = False,
    out: recorded.Out = None,
) -> output.Record:
    """Attack a vote file and see how far the ranking moves.

    [bold]promote[/bold]       false wins of the target
    [bold]demote[/bold]        false losses of the target
    [bold]half-honest[/bold]   promotes in half of the votes, honest in the others
    [bold]omnipresent[/bold]   false votes on other pairs, chosen to lift the target
    [bold]inverters[/bold]     voters who vote against the consensus
    [bold]random-votes[/bold]  voters who toss a coin
    [bold]random-flips[/bold]  flips recorded votes at random
    [bold]early-flips[/bold]   flips the first recorded votes

    Shows the target's rank under plain Bradley-Terry, with uncertainty
    weights, after the audit, and by four rival models, for attacks of
    increasing size.
    Writes report.html, stress.csv, stress.json and the figure.
    """
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    # No attack needs times, so an unreadable time column does not matter.
    reading, folder = recorded.read_into(
        votes, "stress", out, where, strict=strict, **columns, time="none", weight=weight
    )
    sizes = np.unique(np.linspace(0, fake_votes, _SIZES).round().astype(int)).tolist()
    with output.progress_bar("Stress", len(sizes), unit="sizes", on_stop=recorded.NO_REPORT) as done:
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
        "attack_voters": None if attack.attack in FLIPS else voters,
        "seed": seed,
        "ties": ties.value,
        "level": level,
        "duels_assigned": not voters_choose_duels,
    }
    recorded.claim_for(folder, "stress", votes, reading)
    return _report(frame, settings, folder, f"Stress test of {votes.name}", reading)


def _report(
    frame: pl.DataFrame, settings: Mapping[str, Any], folder: Path, title: str, reading: Reading
) -> output.Record:
    """Write and print what a stress test found."""
    from fairduel.report.audit_page import stress_section  # noqa: PLC0415  # plotting is slow

    file, summary = folder / "stress.csv", summarise_stress(frame, settings["attack"])
    recorded.write_csv(file, frame)
    found = {"settings": settings, "summary": summary, "rows": frame.to_dicts()}
    sections = [stress_section(frame, attack=settings["attack"])]
    written = recorded.write_report(folder, "stress", title, reading, sections, found)
    output.say(*summary)
    output.print_table(stress_table(frame), optional=_LEAST_USEFUL, file=file)
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written
