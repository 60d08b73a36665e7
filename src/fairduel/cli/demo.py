"""``fairduel demo``: an arena with liars, to see everything without any file."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from fairduel.cli.audit import audit_command
from fairduel.cli.options import console
from fairduel.cli.rank import rank_command
from fairduel.cli.recorded_votes import Out, make_folder, write_csv
from fairduel.cli.stress import AttackOption, stress_command
from fairduel.votes.bradley_terry import fit_scores, wins
from fairduel.votes.reading import as_table
from fairduel.votes.synthetic import arena

_TARGET = "Maple"


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Makes the arena.")] = 4,
    out: Out = Path("results/demo"),
) -> None:
    """Make votes of honest people and of liars, then rank, audit and stress them.

    Takes some seconds. OUT/votes.csv holds the votes, so that each step can
    be tried again by hand.
    """
    votes, liars = arena(seed=seed, target=_TARGET)
    make_folder(out)
    file = out / "votes.csv"
    write_csv(file, as_table(votes))
    told = ", ".join(f"{name} ({kind})" for name, kind in sorted(liars.items(), key=lambda pair: pair[1]))
    console.print(
        f"{len(votes):,} made-up votes of {len(votes.voters)} voters between {len(votes.items)} items are in {file}. "
        f"Liars: {told}. The promoters push {_TARGET}.",
        soft_wrap=True,
        highlight=False,
    )
    _step(f"fairduel rank {file}", "Who is best? Nobody has been checked yet.")
    rank_command(file, out=out / "rank")
    _step(f"fairduel audit {file} --top 3", "Whom not to trust, and how far to trust the rest.")
    audit_command(file, top=3, out=out / "audit")
    flagged = set(pl.read_csv(out / "audit" / "voters.csv").filter(pl.col("flagged"))["voter"])
    console.print(
        f"[bold]Here it is known who lies: {len(flagged & set(liars))} of {len(liars)} liars are flagged, and "
        f"{len(flagged - set(liars))} of {len(votes.voters) - len(liars)} honest voters.[/bold]",
        soft_wrap=True,
        highlight=False,
    )
    middle = votes.items[int(np.argsort(-fit_scores(wins(votes)).scores)[len(votes.items) // 2])]
    _step(
        f"fairduel stress {file} --attack promote --target {middle} --votes 200 --voters 5",
        f"What would five more liars do for {middle}?",
    )
    stress_command(
        file, attack=AttackOption.PROMOTE, target=middle, fake_votes=200, voters=5, seed=seed, out=out / "stress"
    )
    console.print(f"\nOpen first: [bold]{out / 'audit' / 'report.html'}[/bold]", soft_wrap=True)


def _step(command: str, why: str) -> None:
    console.rule()
    console.print(f"[bold]$ {command}[/bold]\n{why}", soft_wrap=True, highlight=False)
