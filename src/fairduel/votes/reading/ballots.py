"""Read ballots of several items as votes: one per pair of items that a ballot puts in order.

The pairs of a ballot are not independent of each other, so they share a voter, or a context: errors allow for both.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fairduel.errors import BadInputError
from fairduel.votes.reading.fields import numbers

Pair = tuple[str, str, str]
"""Two items and "first", or "tie"."""
_NAME = re.compile(r"#\s*ALTERNATIVE NAME (\d+):\s*(.*\S)")
_ORDER = re.compile(r"(\d+)\s*:\s*([\d,{}\s]+)")
_GROUP = re.compile(r"\{([^}]*)\}|([^,{}]+)")
_NUMBERED = re.compile(r"(?:item|option|choice|answer)_?(\d+)")


def pairs_of(groups: Sequence[Sequence[str]]) -> Iterator[Pair]:
    """Yield the votes of a ballot, given its items best first, in groups of equals.

    >>> list(pairs_of([["tea"], ["milk", "water"]]))
    [('tea', 'milk', 'first'), ('tea', 'water', 'first'), ('milk', 'water', 'tie')]
    """
    for place, group in enumerate(groups):
        for item, one in enumerate(group):
            yield from ((one, other, "first") for later in groups[place + 1 :] for other in later)
            yield from ((one, other, "tie") for other in group[item + 1 :])


class _Order(NamedTuple):
    """An order of items, and how many ballots have it."""

    ballots: int
    groups: list[list[str]]


def preflib_votes(text: str, name: str) -> pl.DataFrame:
    r"""Return the votes of a file of PrefLib (.soc, .soi, .toc, .toi): first, second, winner, voter.

    Each ballot is a voter. Items that a ballot leaves out are not compared with those that it has.

    >>> text = "# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n2: 1,2\n1: {1,2}"
    >>> preflib_votes(text, "drinks.toc").rows()
    [('tea', 'milk', 'first', '1'), ('tea', 'milk', 'first', '2'), ('tea', 'milk', 'tie', '3')]
    """
    names = dict(_NAME.findall(text))
    orders = [
        _order(line, names, name, number)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not orders:
        raise BadInputError(f"{name} has no ballots, which are lines such as “12: 3,1,2”.")
    columns: list[list[np.ndarray[Any, Any]]] = [[], [], [], []]
    ballots = 0
    for order in orders:
        votes = list(pairs_of(order.groups))
        if votes:
            for column, values in zip(columns, zip(*votes, strict=True), strict=False):
                column.append(np.tile(np.array(values, dtype=object), order.ballots))
            columns[3].append(np.repeat(np.arange(order.ballots) + ballots + 1, len(votes)).astype(str).astype(object))
        ballots += order.ballots
    joined = [np.concatenate(column) if column else np.array([], dtype=object) for column in columns]
    return pl.DataFrame(
        {
            title: pl.Series(column.tolist(), dtype=pl.String)
            for title, column in zip(("first", "second", "winner", "voter"), joined, strict=True)
        }
    )


def _order(line: str, names: Mapping[str, str], file: str, number: int) -> _Order:
    found = _ORDER.fullmatch(line.strip())
    if found is None:
        raise BadInputError(f"line {number} of {file} is no ballot such as “12: 3,1,2”.")
    groups = [
        [names.get(item.strip(), item.strip()) for item in (tied or alone).split(",") if item.strip()]
        for tied, alone in _GROUP.findall(found[2])
    ]
    return _Order(int(found[1]), [group for group in groups if group])


def by_rank(frame: pl.DataFrame, column: Mapping[str, str]) -> list[tuple[int, dict[str, Any]]]:
    """Return the votes of WMT's rankings: up to five systems per row, each with its rank; −1 is no rank."""
    places = sorted(int(found[1]) for name in column if (found := re.fullmatch(r"system(\d+)id", name)))
    known = [place for place in places if f"system{place}rank" in column]
    items = [frame[column[f"system{place}id"]].cast(pl.String).to_list() for place in known]
    ranks = [numbers(frame[column[f"system{place}rank"]]) for place in known]
    votes = []
    for row in range(len(frame)):
        here = [(rank[row], item[row]) for rank, item in zip(ranks, items, strict=True) if item[row] and rank[row] >= 0]
        here.sort(key=lambda each: each[0])
        groups = [[item for _, item in same] for _, same in itertools.groupby(here, key=lambda each: each[0])]
        votes += [(row, {"first": a, "second": b, "winner": word}) for a, b, word in pairs_of(groups) if a != b]
    return votes


def by_best_and_worst(frame: pl.DataFrame, column: Mapping[str, str]) -> list[tuple[int, dict[str, Any]]]:
    """Return the votes of best–worst ballots: the best beats all others, and all others beat the worst."""
    places = [column[name] for name in column if _NUMBERED.fullmatch(name)]
    votes = []
    for row, record in enumerate(frame.select(*places, column["best"], column["worst"]).cast(pl.String).rows()):
        *items, best, worst = record
        between = [item for item in items if item and item not in (best, worst)]
        found = [(best, other) for other in (*between, worst)] + [(other, worst) for other in between]
        votes += [
            (row, {"first": winner, "second": loser, "winner": "first", "ballot": f"{row + 1}"})
            for winner, loser in found
            if best in items and worst in items
        ] or [(row, {"first": None, "second": None, "winner": None, "ballot": f"{row + 1}"})]
    return votes
