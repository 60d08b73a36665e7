"""``fairduel demo``: a synthetic arena with planted liars."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fairduel.cli.audit import audit_command
from fairduel.cli.folders import claim
from fairduel.cli.output import PANEL, Record, record, say, say_report
from fairduel.cli.rank import rank_command
from fairduel.cli.recorded_votes import write_csv
from fairduel.cli.stress import AttackOption, stress_command
from fairduel.votes.bradley_terry import fit_scores, wins
from fairduel.votes.synthetic import arena

_TARGET = "Maple"


def demo(
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the arena.")] = 4,
    out: Annotated[Path, typer.Option(metavar="DIR", rich_help_panel=PANEL, help="Output folder.")] = Path(
        "results/demo"
    ),
) -> Record:
    """Rank, audit and stress a synthetic arena with planted liars.

    Takes about 20 seconds. The votes are in DIR/votes.csv, so you can
    repeat each step by hand.
    """
    votes, liars = arena(seed=seed, target=_TARGET)
    claim(out, "demo")
    file = out / "votes.csv"
    write_csv(file, votes.to_frame())
    planted = ", ".join(f"{name} ({kind})" for name, kind in sorted(liars.items(), key=lambda pair: pair[1]))
    say(
        f"{file} has {len(votes):,} synthetic votes by {len(votes.voters)} voters on {len(votes.items)} items. "
        f"Planted liars: {planted}. The promoters push {_TARGET}."
    )
    _say_step(f"fairduel rank {file}", "Who is best? No voter has been checked yet.")
    ranked = rank_command(file, out=out / "rank")
    _say_step(f"fairduel audit {file} --top 3", "Which voters are unusual, and how fragile is the result?")
    audited = audit_command(file, top=3, out=out / "audit")
    flagged = {row["voter"] for row in audited["flagged"]}
    honest = len(votes.voters) - len(liars)
    say(
        f"We know who lies here: the audit flagged {len(flagged & set(liars))} of {len(liars)} liars and "
        f"{len(flagged - set(liars))} of {honest} honest voters.",
        style="bold",
    )
    middle = votes.items[int(np.argsort(-fit_scores(wins(votes)).scores)[len(votes.items) // 2])]
    _say_step(
        f"fairduel stress {file} --attack promote --target {middle} --votes 200 --voters 5",
        f"What could five more liars do for {middle}?",
    )
    stressed = stress_command(
        file, attack=AttackOption.PROMOTE, target=middle, fake_votes=200, voters=5, out=out / "stress"
    )
    say_report(out / "audit" / "report.html", "Start with the audit report:")
    return record(votes=str(file), liars=liars, rank=ranked, audit=audited, stress=stressed)


def _say_step(command: str, question: str) -> None:
    say("", f"$ {command}", style="bold")
    say(question, "")
