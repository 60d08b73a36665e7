"""A grid of cells declared in one TOML file, and its record beside the results."""

import functools
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fairduel.checks import boolean, integer
from fairduel.errors import BadInputError, unknown_name
from fairduel.files import versions, write_atomically
from fairduel.simulation.cell import Cell, takes_budget

_KEYS = ("runs", "seed", "horizon", "budget", "known_budget", "agent", "attack", "world", "delay")
_KINDS = ("agent", "attack", "world", "delay")
_COLUMNS = ("agent", "attack", "budget", "world", "horizon", "dimension")
_RECORD = "sweep.json"


class Setting(NamedTuple):
    """A setting of an agent, attack, world or delay (its ``kind``), with its value in each cell that has it."""

    kind: str
    name: str
    values: list[Any]


@dataclass(frozen=True)
class Grid:
    """Every cell of a sweep, and the seeds to run it with.

    Args:
        cells: The cells by key. A loaded grid keeps the keys of the code that ran.
        seeds: The seeds of every cell.
    """

    cells: dict[str, Cell]
    seeds: range

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell cells apart, besides their settings; ``delay`` only if a cell has one."""
        return (*_COLUMNS, *(["delay"] if any(cell.is_delayed for cell in self.cells.values()) else []))

    @functools.cached_property
    def settings(self) -> dict[str, Setting]:
        """Every setting that the grid names, by column (``agent_radius``, ``attack_target``, …)."""
        settings: dict[str, Setting] = {}
        for cell in self.cells.values():
            for kind in _KINDS:
                for name, value in getattr(cell, f"{kind}_settings").items():
                    settings.setdefault(f"{kind}_{name}", Setting(kind, name, [])).values.append(value)
        return settings

    def save(self, folder: Path | str, command: str) -> None:
        """Record in ``folder`` what is being swept into it."""
        record = {
            "command": command,
            "versions": versions(),
            "seeds": {"first": self.seeds.start, "runs": len(self.seeds)},
            "cells": {key: asdict(cell) for key, cell in self.cells.items()},
        }
        write_atomically(Path(folder) / _RECORD, (json.dumps(record, indent=1) + "\n").encode())

    @classmethod
    def load(cls, folder: Path | str) -> "Grid":
        """Read what was last swept into ``folder``."""
        path = Path(folder) / _RECORD
        try:
            record = json.loads(path.read_bytes())
            first = record["seeds"]["first"]
            cells = {key: Cell(**values) for key, values in record["cells"].items()}
            return cls(cells, range(first, first + record["seeds"]["runs"]))
        except OSError as error:
            raise BadInputError(
                f"{folder} holds no sweep ({path.name}: {error.strerror}); run one with "
                f"fairduel sweep GRID --out {folder}"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise BadInputError(f"{path} is not a sweep record; rerun the sweep.") from error


def read_grid(path: Path | str) -> Grid:
    """Read a grid from a TOML file and check every cell.

    Raises:
        BadInputError: The file cannot be read, is not TOML, or declares a cell that cannot run.
    """
    try:
        return declare(tomllib.loads(Path(path).read_bytes().decode()))
    except OSError as error:
        raise BadInputError(f"cannot read the grid {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is not valid TOML: {error}.") from error
    except BadInputError as error:
        raise BadInputError(f"{path}: {error}") from error


def declare(table: Mapping[str, Any]) -> Grid:
    """Return every combination of what the table lists.

    ``known_budget`` says whether agents are told C: for the whole grid, or in an agent's entry, which takes
    precedence. It does not multiply agents without a setting for C.

    >>> grid = declare({
    ...     "runs": 5, "horizon": [10, 20], "budget": "sqrt",
    ...     "agent": [{"name": "rcdb"}, {"name": "maxinp", "radius": [2.0, 4.0]}],
    ...     "attack": [{"name": "greedy"}],
    ... })
    >>> [(cell.agent, dict(cell.agent_settings), cell.budget) for cell in grid.cells.values()]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('rcdb', {}, 4), ('maxinp', {'radius': 2.0}, 4), ('maxinp', {'radius': 4.0}, 4),
     ('rcdb', {}, 5), ('maxinp', {'radius': 2.0}, 5), ('maxinp', {'radius': 4.0}, 5)]
    """
    for name in table:
        if name not in _KEYS:
            raise unknown_name("key", name, _KEYS, where="in the grid")
    runs, seed = integer("runs", _given(table, "runs"), least=1), integer("seed", table.get("seed", 0))
    horizons = [integer("horizon", value, least=1) for value in _values("horizon", _given(table, "horizon"))]
    budgets = _values("budget", _given(table, "budget"))
    worlds = _players("world", table) if "world" in table else [(Cell.world, {})]
    delays = _players("delay", table) if "delay" in table else [(Cell.delay, {})]
    cells = [
        Cell(
            agent=agent,
            attack=attack,
            budget=_budget(budget, horizon),
            horizon=horizon,
            world=world,
            agent_settings=agent_settings,
            attack_settings=attack_settings,
            world_settings=world_settings,
            delay=delay,
            delay_settings=delay_settings,
        )
        for (world, world_settings), (delay, delay_settings), horizon, budget, (attack, attack_settings), (
            agent,
            agent_settings,
        ) in itertools.product(worlds, delays, horizons, budgets, _players("attack", table), _agents(table))
    ]
    for cell in cells:
        _try(cell)
    return Grid({cell.key: cell for cell in cells}, range(seed, seed + runs))


def _given(table: Mapping[str, Any], name: str) -> Any:
    if name not in table:
        raise BadInputError(f"the grid needs {name}.")
    return table[name]


def _agents(table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every agent with its settings, which include the grid's ``known_budget`` unless the entry has its own."""
    agents = _players("agent", table)
    if "known_budget" not in table:
        return agents
    known = [boolean("known_budget", value) for value in _values("known_budget", table["known_budget"])]
    return [
        (name, settings)
        if "known_budget" in settings or not takes_budget(name)
        else (name, settings | {"known_budget": value})
        for name, settings in agents
        for value in known
    ]


def _players(kind: str, table: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every declared agent (attack, world) with every combination of its settings."""
    declared = _given(table, kind)
    if not isinstance(declared, list) or not declared or not all(isinstance(one, dict) for one in declared):
        raise BadInputError(f"declare each {kind} in a [[{kind}]] table with its name and settings.")
    players = []
    for one in declared:
        if "name" not in one:
            raise BadInputError(f"every [[{kind}]] needs a name.")
        for name in one:
            if not name.isidentifier():
                raise BadInputError(f"{name!r} is not a valid setting name in [[{kind}]].")
        for point in itertools.product(*(_values(f"{name} of [[{kind}]]", value) for name, value in one.items())):
            settings: dict[str, Any] = dict(zip(one, point, strict=True))
            name = settings.pop("name")
            if not isinstance(name, str):
                raise BadInputError(f"{kind} name must be a string, not {name!r}.")
            players.append((name, settings))
    return players


def _values(name: str, value: Any) -> list[Any]:
    """Return the values of a list, which spans the grid, or a single value as a list."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, (bool, int, float, str)) for one in values):
        raise BadInputError(f"{name} must be a number, a string, true, false or a list of these, not {value!r}.")
    return values


def _budget(value: Any, horizon: int) -> int:
    """Return C; "sqrt" means the paper's ⌈√T⌉."""
    return math.ceil(math.sqrt(horizon)) if value == "sqrt" else integer('budget, if not "sqrt",', value)


def _try(cell: Cell) -> None:
    """Report a wrong setting before the first run."""
    try:
        cell.check()
    except (ValueError, TypeError, AttributeError) as error:
        what = f"{cell.agent} × {cell.attack} × {cell.world}"
        raise BadInputError(f"{what} cannot run: {error}") from error
