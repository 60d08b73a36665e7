"""``fairduel verify``: the paper's claims, measured."""

from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.research import options
from fairduel.experiments import claims
from fairduel.experiments.claims import verify_conclusions
from fairduel.simulation import Store

_STATUS_STYLES: dict[claims.Status, str] = {
    "holds": "green",
    "does not hold": "red",
    "undecided": "yellow",
    "cannot fail": "dim",
}


def verify_command(
    runs: options.Runs = 300,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/verify"),
) -> output.Record:
    """Measure each claim of the paper and say whether it holds.

    A claim [green]holds[/green] if its 95% interval lies on the claimed side, [red]does not
    hold[/red] if it lies on the other side, and is [yellow]undecided[/yellow] if it covers both:
    more --runs may decide it. Claims that no run could break are marked
    [dim]cannot fail[/dim]. Expensive claims use fewer runs and say how many. The exit
    code is 0 whatever the verdicts.
    """
    seeds = options.report_seeds(seed, runs)
    claim(out, "verify")
    store = Store(out, traces=False)
    output.compile_first(cell for claim in claims.all_claims() for cell in claim.cells)
    with output.progress_bar("Measuring", claims.count_runs(store, seeds)) as progress:
        verdicts = claims.verify(store, seeds, jobs=jobs, progress=progress)
    concluded = verify_conclusions(verdicts)
    found = output.record(
        seeds=[seeds[0], seeds[-1]], conclusions=concluded, verdicts=[asdict(verdict) for verdict in verdicts]
    )
    output.write_record(out / "verify.json", found)
    from fairduel.report.research.verify_page import write_verify  # noqa: PLC0415  # plotting is slow

    page = write_verify(out, verdicts, seeds, output.typed_command())
    output.say(*concluded, f"Up to {runs} runs per claim, 95% intervals.")
    for verdict in verdicts:
        status = Text(verdict.status, style=_STATUS_STYLES[verdict.status])
        line = Text.assemble("\n", status, ": ", (verdict.claim, "bold"), f" ({verdict.source})")
        output.console.print(line, soft_wrap=not output.console.is_terminal)
        output.say(verdict.measured)
    output.say_report(page)
    return {**found, "report": str(page)}
