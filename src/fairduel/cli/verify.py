"""``fairduel verify``: the paper's claims, measured."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from fairduel.cli import options
from fairduel.experiments import claims
from fairduel.simulation import Store

_STATUS_STYLES: dict[claims.Status, str] = {
    "holds": "green",
    "does not hold": "red",
    "undecided": "yellow",
    "cannot fail": "dim",
}


def verify(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    runs: options.Runs = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/verify"),
) -> None:
    """Measure each claim of the paper, and say whether it holds.

    A claim [green]holds[/green] where its 95 % interval lies on the claimed side,
    [red]does not hold[/red] where it lies on the other, and is [yellow]undecided[/yellow] where
    it covers both: more --runs may decide it. What no run could break is
    said to be so ([dim]cannot fail[/dim]) and counts for nothing. A claim that does
    not hold is a result, not an error; the exit code is 0. Claims whose runs
    take long are judged on fewer of them, and say on how many.
    """
    options.console.quiet = as_json
    store = Store(out, traces=False)
    seeds = options.report_seeds(seed, runs)
    options.compile_first(cell for claim in claims.all_claims() for cell in claim.cells)
    with options.progress_bar("Measuring", claims.count_runs(store, seeds)) as progress:
        verdicts = claims.verify(store, seeds, jobs=jobs, progress=progress)
    record = out / "verify.json"
    options.write_record(
        record, {"seeds": [seeds[0], seeds[-1]], "verdicts": [asdict(verdict) for verdict in verdicts]}
    )
    from fairduel.report.verify_page import write_verify  # noqa: PLC0415  # matplotlib loads only where it draws

    page = write_verify(out, verdicts, seeds, options.typed_command())
    if as_json:
        typer.echo(record.read_text(encoding="utf-8"), nl=False)
        return
    for verdict in verdicts:
        status = Text(verdict.status, style=_STATUS_STYLES[verdict.status])
        options.console.print(Text.assemble(status, ": ", (verdict.claim, "bold"), f" ({verdict.source})"))
        options.console.print(Padding(Text(verdict.measured), (0, 0, 1, 4)))
    options.console.print(f"Up to {runs} runs per claim, 95 % intervals.")
    for sentence in claims.tally(verdicts):
        options.console.print(sentence)
    options.console.print(f"Report: [bold]{page}[/bold]", soft_wrap=True)
