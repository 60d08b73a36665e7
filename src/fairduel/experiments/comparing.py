"""What the runs of an experiment say about its agents: who is lowest, by how much, and how regret grows.

Agents are compared seed by seed. A difference is called significant where its 95% interval excludes zero, after a
Bonferroni correction for the number of comparisons in the same panel.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.experiments.experiment import Conclude, Curves, Entry, Experiment, Results
from fairduel.experiments.sentences import capitalized, listed_few, settings_text, with_error, with_interval
from fairduel.simulation.cell import Cell
from fairduel.stats import Mean, corrected, exponent, jackknife, mean, mixed_mean

Key = TypeVar("Key")
Item = TypeVar("Item")
Of = TypeVar("Of")
Of_contra = TypeVar("Of_contra", contravariant=True)
_CLOSE_EXPONENT = 0.1
"""An exponent whose whole interval is this near to a rate is called close to it."""


def comparison(cells: Sequence[Cell]) -> Experiment:
    """Declare a comparison of agents, with one panel per attack and the first agent as the reference in each.

    All cells have the same delay.
    """
    panels = [_attack_text(cell) for cell in cells]
    attacks = panels[0] if len(set(panels)) == 1 else f"{len(set(panels))} attacks"
    return Experiment(
        name="regret",
        title=f"{attacks}, C = {cells[0].budget}, {cells[0].horizon} rounds{_delay_text(cells[0])}",
        question="How much regret does each agent have?",
        entries=[
            Entry(
                cell,
                settings_text(cell.agent_settings) or "default",
                panel,
                is_reference=panels.index(panel) == place,
            )
            for place, (cell, panel) in enumerate(zip(cells, panels, strict=True))
        ],
        conclude=lowest_in_each_panel,
        views=[Curves("Cumulative regret; the band is ± one standard error over the runs.")],
    )


def _attack_text(cell: Cell) -> str:
    settings = settings_text(cell.attack_settings)
    name = "no attack" if cell.attack == "none" else f"{cell.attack} attack"
    return f"{name} ({settings})" if settings else name


def _delay_text(cell: Cell) -> str:
    if not cell.is_delayed:
        return ""
    settings = settings_text(cell.delay_settings)
    return f", {cell.delay} delay ({settings})" if settings else f", {cell.delay} delay"


# ---------------------------------------------------------------------- differences


class Runs(Protocol[Of_contra]):
    """Finished runs of several kinds, all in the same order of seeds."""

    def regret(self, of: Of_contra, /) -> Vector:
        """Return the final regret of each run, shape (n,)."""

    def locked_in(self, of: Of_contra, /) -> NDArray[np.bool_]:
        """Return whether each run locked in, shape (n,)."""


def gap(runs: Runs[Of], one: Of, other: Of, confidence: float = 0.95) -> Mean:
    """Return how much more regret ``one`` has than ``other``, seed by seed, allowing for runs that lock in."""
    kinds = runs.locked_in(one) + 2 * runs.locked_in(other)  # which of the two locked in
    return mixed_mean(runs.regret(one) - runs.regret(other), kinds, confidence)


def significant(results: Results, pairs: Sequence[Sequence[Entry]]) -> tuple[int, int]:
    """In how many pairs the first entry has significantly less regret than the second, and in how many more."""
    gaps = [gap(results, first, second, corrected(pairs)) for first, second in pairs]
    return sum(each.high < 0.0 for each in gaps), sum(each.low > 0.0 for each in gaps)


def ratio_of(results: Results, entry: Entry, reference: Entry) -> Mean:
    """The mean regret of ``entry`` over that of ``reference``."""
    sample = np.stack([results.regret(entry), results.regret(reference)])
    return jackknife(lambda runs: float(runs[0].mean() / runs[1].mean()), sample)


# ---------------------------------------------------------------------- who is lowest


class Placed(NamedTuple):
    """The entry with the lowest mean regret, the next one, and all that are not significantly worse."""

    lowest: Entry
    second: Entry | None
    tied: list[Entry]


def placed(results: Results, entries: Sequence[Entry]) -> Placed:
    """Find the lowest of these entries."""
    lowest, *others = sorted(entries, key=lambda entry: results.regret(entry).mean())
    tied = [entry for entry in others if not gap(results, entry, lowest, corrected(others)).low > 0.0]  # NaN is a tie
    return Placed(lowest, others[0] if others else None, tied)


def lowest_text(results: Results, entries: Sequence[Entry]) -> str:
    """Say which of these entries has the lowest regret."""
    lowest, second, tied = placed(results, entries)
    regret = with_error(mean(results.regret(lowest)))
    if second is None:
        return f"the regret of {lowest.label} is {regret}."
    if tied:
        names = listed_few([entry.label for entry in tied])
        return f"{lowest.label} has the lowest mean regret, {regret}, but not significantly lower than {names}."
    next_regret = with_error(mean(results.regret(second)))
    return f"{lowest.label} has the lowest regret, {regret}; {second.label} is next with {next_regret}."


def placings_text(placings: Collection[Placed], at: str, places: str) -> str:
    """How often each entry had the lowest regret, and how often significantly."""
    won = Counter(each.lowest.legend for each in placings)
    clearly = Counter(each.lowest.legend for each in placings if not each.tied)
    (first, count), *others = won.most_common()
    lead = f"{first} has the lowest mean regret {at} {count} of {len(placings)} {places}"
    counts = [f"{name} {at} {count}" for name, count in others]
    notes = [f" ({clearly[name] or 'none'} significantly)" for name, _ in won.most_common()]
    return ", ".join(text + note for text, note in zip([lead, *counts], notes, strict=True)) + "."


def by_panel(results: Results, view: int = 0) -> dict[str, list[Entry]]:
    """The entries drawn in a view, by panel."""
    drawn = [entry for entry in results.experiment.entries if entry.drawn_in is None or view in entry.drawn_in]
    return group(drawn, lambda entry: entry.panel)


def group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items by a key, in the order of the keys' first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def lowest_by_panel(results: Results) -> list[list[str]]:
    """Tabulate the agent with the lowest regret in each panel.

    Returns:
        Rows of text: the panel, the agent, those that it is not significantly better than, and its regret.
    """
    rows = []
    for panel, entries in by_panel(results).items():
        lowest, _, tied = placed(results, entries)
        names = ", ".join(entry.legend for entry in tied) or "–"
        rows.append([panel, lowest.label, names, with_error(mean(results.regret(lowest)))])
    return rows


# ---------------------------------------------------------------------- conclusions of several experiments


def lowest_in_each_panel(results: Results) -> list[str]:
    """Conclude which entry has the lowest regret in each panel of the first view."""
    return in_each_panel(lambda results, entries: [lowest_text(results, entries)])(results)


def in_each_panel(conclude: Callable[[Results, list[Entry]], list[str]]) -> Conclude:
    """Conclude panel by panel, from the entries in it."""
    return lambda results: [
        f"{_heading(panel)}: {sentence}"
        for panel, entries in by_panel(results).items()
        for sentence in conclude(results, entries)
    ]


def growth(symbol: str, rate: float, rate_name: str) -> Conclude:
    """Conclude how fast regret grows in x, compared with x^rate, and which agent is lowest at each x."""

    def conclude(results: Results, entries: list[Entry]) -> list[str]:
        lines = group(entries, lambda entry: entry.legend)
        paces = {name: f"{symbol}^{_pace(results, line, rate, rate_name)}" for name, line in lines.items()}
        first = next((entry.legend for entry in entries if entry.is_reference), entries[0].legend)
        found = [f"the regret of {first} grows as {paces.pop(first)}."]
        if paces:
            others = ", ".join(f"{pace} for {name}" for name, pace in paces.items())
            found.append(f"the regret of the others grows as {others}.")
        by_x = [placed(results, same_x) for same_x in group(entries, lambda entry: entry.x).values()]
        return [*found, placings_text(by_x, "at", f"values of {symbol}")]

    return in_each_panel(conclude)


def _pace(results: Results, line: Sequence[Entry], rate: float, rate_name: str) -> str:
    x = np.array([entry.x for entry in line])
    found = exponent(x, np.stack([results.regret(entry) for entry in line], axis=1))
    if math.isnan(found.value):
        return "? (undefined: a run has no regret)"
    if math.isnan(found.low):
        words = ""
    elif rate - _CLOSE_EXPONENT <= found.low and found.high <= rate + _CLOSE_EXPONENT:
        words = f" (close to {rate_name})"
    elif found.low > rate or found.high < rate:
        words = f" ({'faster' if found.low > rate else 'slower'} than {rate_name})"
    else:
        words = f" (consistent with {rate_name})"
    return with_interval(found) + words


def _heading(panel: str) -> str:
    """The panel's name as a heading; a user's ``module:Class`` stays as it is.

    >>> _heading("none"), _heading("greedy attack"), _heading("mine:Sneaky attack")
    ('No attack', 'Greedy attack', 'mine:Sneaky attack')
    """
    return panel if ":" in panel else capitalized("no attack" if panel == "none" else panel)


def some_panels(panels: Sequence[str], count: int) -> str:
    """How many of the panels, and which."""
    return f"{len(panels) or 'none'} of {count} panels" + (f" ({'; '.join(panels)})" if panels else "")
