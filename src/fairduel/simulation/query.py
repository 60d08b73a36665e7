"""Read-only SQL over the results of a sweep."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError
from fairduel.simulation.storage import TRACE_COLUMNS, Store
from fairduel.simulation.sweep import Grid, Setting

_SETTINGS = ("agent_settings", "agent_given", "attack_settings", "world_settings", "delay_settings")
_ROWS_AT_ONCE = 10_000


class Answer(NamedTuple):
    """The result of a query."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


def query(folder: Path | str, sql: str) -> Answer:
    """Run a SELECT over two views of the latest sweep in ``folder``.

    ``runs`` has one row per run; ``traces`` one row per run and round, with cumulative regrets. Both have a column for
    every setting that the grid names, such as ``agent_radius``.

    Args:
        folder: Output folder of the sweep.
        sql: One SELECT statement (or FROM, DESCRIBE, SUMMARIZE).

    Raises:
        BadInputError: ``folder`` holds no finished sweep, or the statement is refused or fails.
    """
    with needs_extra("results"):
        duckdb: Any = importlib.import_module("duckdb")
    grid = Grid.load(folder)
    connection = duckdb.connect()
    try:
        _make_views(duckdb, connection, Path(folder), grid)
        [*others, statement] = connection.extract_statements(sql) or [None]
        # Only SELECT is harmless: COPY could write to the folders that the views must read.
        if others or statement is None or statement.type != duckdb.StatementType.SELECT:
            raise BadInputError("a query must be one SELECT statement (or FROM, DESCRIBE, SUMMARIZE).")
        answer = connection.execute(statement)
        return Answer([column[0] for column in answer.description], _rows(duckdb, connection))
    except duckdb.IOException as error:
        raise _refused(error, " If the sweep is still running, try again.") from error
    except duckdb.Error as error:
        raise _refused(error) from error


def _make_views(duckdb: Any, connection: Any, folder: Path, grid: Grid) -> None:
    try:
        for statement in _views(folder.resolve(), grid):
            connection.execute(statement)
    except duckdb.BinderException as error:
        raise BadInputError(
            f"the runs in {folder} have the columns of another version of fairduel; rerun the sweep."
        ) from error


def _rows(duckdb: Any, connection: Any) -> Iterator[tuple[Any, ...]]:
    try:
        while rows := connection.fetchmany(_ROWS_AT_ONCE):
            yield from rows
    except duckdb.Error as error:
        raise _refused(error) from error


def _refused(error: Exception, advice: str = "") -> BadInputError:
    """Keep the database's own sentence, without its drawing of the error's position."""
    return BadInputError(" ".join(str(error).split("\n\n")[0].split()) + advice)


def _views(folder: Path, grid: Grid) -> Iterator[str]:
    """Yield the statements that create the views, after locking everything but the cells' folder."""
    store = Store(folder)
    files = [path for key, cell in grid.cells.items() for path in store.parts(cell, key)]
    if not files:
        raise BadInputError(f"the sweep in {folder} has no finished runs yet.")
    yield "SET temp_directory = ''"
    yield f"SET allowed_directories = {_list([str(files[0].parent)])}"
    yield "SET enable_external_access = false"
    yield "SET python_enable_replacements = false"
    yield "SET lock_configuration = true"

    typed = [f"{_typed(setting)} AS {column}" for column, setting in grid.settings.items()]
    named = ", ".join([*grid.columns, *typed])
    names = ", ".join([*grid.columns, *grid.settings])
    traces = ", ".join(f"trace_{name}" for name in TRACE_COLUMNS)
    rounds = ", ".join(f"unnest(trace_{name}) AS {name}" for name in TRACE_COLUMNS)
    # Only identifiers from the grid and quoted file names are put into these statements.
    yield f"""
        CREATE VIEW kept AS
        SELECT {named}, * EXCLUDE ({", ".join(grid.columns)}, filename),
            split_part(parse_filename(filename, true), '-', 1) AS cell
        FROM read_parquet({_list(map(str, files))}, filename = true)
        WHERE seed BETWEEN {grid.seeds[0]} AND {grid.seeds[-1]}
    """  # noqa: S608
    yield f"""
        CREATE VIEW runs AS
        SELECT * EXCLUDE ({traces}) REPLACE ({", ".join(f"{name}::JSON AS {name}" for name in _SETTINGS)}) FROM kept
    """  # noqa: S608
    yield f"""
        CREATE VIEW traces AS
        SELECT * REPLACE (sum(regret) OVER upto AS regret, sum(weak_regret) OVER upto AS weak_regret)
        FROM (SELECT {names}, seed, unnest(range(1, len(trace_regret) + 1)) AS round, {rounds}, cell FROM kept)
        WINDOW upto AS (PARTITION BY {names}, cell, seed ORDER BY round ROWS UNBOUNDED PRECEDING)
    """  # noqa: S608


def _typed(setting: Setting) -> str:
    """Return the SQL that reads a setting from its JSON, typed by the grid's values."""
    types = {type(value) for value in setting.values}
    if types == {bool}:
        sql = "BOOLEAN"
    elif types == {int}:
        sql = "BIGINT"
    else:
        sql = "DOUBLE" if types <= {int, float} else "VARCHAR"
    # agent_settings holds resolved values, not what the grid named
    given = "agent_given" if setting.kind == "agent" else f"{setting.kind}_settings"
    return f"TRY_CAST({given}::JSON ->> '{setting.name}' AS {sql})"


def _list(texts: Iterable[str]) -> str:
    """Return texts as an SQL list."""
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"
