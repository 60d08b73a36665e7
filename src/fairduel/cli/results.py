"""``fairduel results``: what a sweep found, as tables and figures."""

import csv
import itertools
import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairduel.cli.options import console
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.report.sweep_means import sweep_means
from fairduel.simulation.query import Answer, query

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
Folder = Annotated[Path, typer.Argument(help="The folder that  fairduel sweep  wrote to.", metavar="OUT")]
_MOST_ROWS = 200


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


@app.callback()
def results() -> None:
    """Ask a sweep's results in SQL, or draw them.

    Both see the grid that was last swept into OUT, as far as it is
    finished; neither can change it.
    """


@app.command("query")
def query_command(
    out: Folder,
    sql: Annotated[str, typer.Argument(help="One SELECT statement of DuckDB.", metavar="SQL")],
    format_: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.TABLE,
) -> None:
    """Answer a question in SQL.

    [bold]runs[/bold] has one row a run: agent, attack, budget, world, horizon,
    dimension, seed, regret, weak_regret, flips, self_duel_share, locked_in,
    …; and a column for every setting that the grid names, like
    agent_radius or attack_target.

    [bold]traces[/bold] has one row a run and round: the same cell and seed, with
    round, the regret and weak_regret summed up to it, first, second,
    flipped, weight, width and slope.

    For example:

      "SELECT agent, attack, avg(regret) FROM runs GROUP BY ALL"
      "SELECT agent, avg(regret) FROM traces WHERE round = 500 GROUP BY ALL"
      "SELECT agent_settings->>'trust', regret FROM runs LIMIT 5"
      "DESCRIBE runs"
    """
    answer = query(out, sql)
    if format_ is Format.TABLE:
        _print_table(answer)
    elif format_ is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        _print_json(answer)


@app.command()
def plot(
    out: Folder,
    x: Annotated[str, typer.Option(help="The column along the x axis: budget, horizon, agent_radius, …")],
    y: Annotated[str, typer.Option(help="The column whose mean is drawn.")] = "regret",
    by: Annotated[
        list[str],
        typer.Option(help="One line for each value of this column; again for a second column.", show_default="agent"),
    ] = ["agent"],  # noqa: B006  # typer copies it
    panel: Annotated[
        list[str],
        typer.Option(help="One panel for each value of this column; again for more.", show_default="attack"),
    ] = ["attack"],  # noqa: B006
    where: Annotated[
        str, typer.Option(help='Only the runs that meet this SQL condition: "horizon = 2000".', show_default="all")
    ] = "true",
    to: Annotated[
        Path | None, typer.Option(help="The PNG, SVG or PDF file to write.", show_default="OUT/plot.png")
    ] = None,
) -> None:
    """Draw means with their standard errors, as PNG or SVG.

    Columns are those of  runs  in  fairduel results query. Runs without a
    value of --x are left out.

    Example:  fairduel results plot OUT --x agent_radius --by agent --by budget
    """
    path = to or out / "plot.png"
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise BadInputError(f"a figure is written as .png, .svg or .pdf, not as {path.name}.")
    means = sweep_means(out, x=x, y=y, by=by, panel=panel, where=where)
    from fairduel.report.figures import draw_means, image  # noqa: PLC0415  # matplotlib loads only where it draws

    write_atomically(path, image(draw_means(means), cast("Literal['png', 'svg', 'pdf']", kind)))
    if means.mixed:
        console.print(
            f"Each point is a mean over different {', '.join(means.mixed)}: tell them apart with --by or --panel, "
            "or choose with --where.",
            soft_wrap=True,
        )
    runs = sorted({point.runs for point in means.points})
    count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    console.print(f"Figure, {count} runs a point: [bold]{path}[/bold]", soft_wrap=True)


def _print_table(answer: Answer) -> None:
    table = Table(box=SIMPLE_HEAD)
    rows = list(itertools.islice(answer.rows, _MOST_ROWS))
    for place, name in enumerate(answer.columns):
        are_numbers = all(isinstance(row[place], (int, float, type(None))) for row in rows)
        table.add_column(Text(name), justify="right" if are_numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    console.print(table)
    if next(answer.rows, None) is not None:
        console.print(f"Only the first {_MOST_ROWS} rows are shown: --format csv or json writes all.")


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_json(answer: Answer) -> None:
    """Write a list with one object a row, row by row."""
    start = "[\n"
    for row in answer.rows:
        record = {name: _plain(value) for name, value in zip(answer.columns, row, strict=True)}
        sys.stdout.write(start + json.dumps(record, default=str, ensure_ascii=False))
        start = ",\n"
    sys.stdout.write("\n]\n" if start != "[\n" else "[]\n")


def _plain(value: Any) -> Any:
    """JSON knows no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
