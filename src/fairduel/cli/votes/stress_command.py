"""``fairduel stress``: what an attack would do to recorded votes."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.report.votes.votes_tables import stress_table
from fairduel.votes.attacking.injection import ATTACKS, FLIPS
from fairduel.votes.attacking.liars import TACTICS
from fairduel.votes.attacking.stress import advise_on_stress, stress, summarise_stress
from fairduel.votes.reading.read import Reading

_WAYS = {name: f"vote {tactic.how.format(item='the target')}" for name, tactic in TACTICS.items()} | FLIPS
_HELP = "\n".join(f"    [bold]{name}[/bold]{' ' * (14 - len(name))}{way}" for name, way in _WAYS.items())
if TYPE_CHECKING:
    AttackOption = str
else:
    AttackOption = StrEnum("AttackOption", {name: name for name in ATTACKS})
Liars = Annotated[AttackOption, typer.Option(metavar="ATTACK", help="What the liars do; see above.")]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="ITEM", help="Item to push or bury (default for attacks without one: the leader).", show_default=False
    ),
]
FakeVotes = Annotated[int, typer.Option("--votes", min=1, metavar="N", help="Largest number of false votes.")]
_LEAST_USEFUL = ("liars", "others flagged", "weighted rank")
_SIZES = 8
"""Number of attack sizes to try, from 0 to --votes."""


@grouped(time="none")
def stress_command(
    file: recorded.VoteFile,
    attack: Liars = "promote",
    target: Target = None,
    fake_votes: FakeVotes = 100,
    voters: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of new voters who cast them (ignored by flips).")
    ] = 5,
    runs: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often to draw each attack; medians are shown.")
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="First seed for drawing the false votes.")] = 0,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
) -> output.Record:
    """Attack a vote file and see how far the ranking moves.

    ATTACKS

    Shows the target's rank under plain Bradley-Terry, with uncertainty
    weights and after the audit, for attacks of increasing size.
    Writes report.html, stress.csv and stress.json.
    """
    refuse_tuning_seeds(range(seed, seed + runs))
    reading, folder = file.read("stress")
    sizes = np.unique(np.linspace(0, fake_votes, _SIZES).round().astype(int)).tolist()
    with output.progress_bar("Stress", len(sizes), unit="sizes", on_stop=recorded.NO_REPORT) as done:
        frame = stress(
            reading.votes,
            attack,
            target,
            sizes=sizes,
            voters=voters,
            seed=seed,
            runs=runs,
            ties=ties.value,
            level=level,
            duels_assigned=not voters_choose_duels,
            progress=done,
        )
    settings = {
        **recorded.file_settings(file.votes, reading),
        "attack": attack,
        "target": frame["target"][0],
        "sizes": sizes,
        "attack_voters": None if attack in FLIPS else voters,
        "seed": seed,
        "runs": runs,
        "ties": ties.value,
        "level": level,
        "duels_assigned": not voters_choose_duels,
    }
    recorded.claim_for(folder, "stress", file.votes, reading)
    return _report(frame, settings, folder, f"Stress test of {file.votes.name}", reading)


stress_command.__doc__ = (stress_command.__doc__ or "").replace("    ATTACKS", _HELP)


def _report(
    frame: pl.DataFrame, settings: Mapping[str, Any], folder: Path, title: str, reading: Reading
) -> output.Record:
    """Write and print what a stress test found."""
    from fairduel.report.votes.audit_page import stress_sections  # noqa: PLC0415  # plotting is slow

    file, summary = folder / "stress.csv", summarise_stress(frame, settings["attack"])
    advice = advise_on_stress(frame)
    recorded.write_csv(file, frame)
    found = {"settings": settings, "summary": summary, "advice": advice, "rows": frame.to_dicts()}
    sections = stress_sections(frame, attack=settings["attack"])
    written = recorded.write_report(folder, "stress", title, reading, sections, found)
    output.say(*summary)
    output.print_table(stress_table(frame), optional=_LEAST_USEFUL, file=file)
    output.say_report(written["report"], *recorded.problem_sentences(reading), *advice)
    return written
