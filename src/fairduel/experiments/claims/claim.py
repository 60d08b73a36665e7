"""A claim, the runs it needs, and the verdict on it."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.experiments.claims.inequalities import Inequalities
from fairduel.experiments.comparing import gap
from fairduel.simulation import Cell, Storage
from fairduel.stats import Mean, corrected

Status = Literal["holds", "does not hold", "undecided", "cannot fail"]
"""``"cannot fail"``: true of any run, so it says nothing about the algorithm."""
Key = TypeVar("Key", bound=Hashable)
BEYOND = "beyond the paper"
"""The source of claims that the paper does not make, but its readers will ask about."""
OURS = "fairduel"
"""The source of claims that we make, about our own agent and in our README."""
PUBLISHED: Mapping[str, str] = {
    "Lemma MLE": "Lemma 5.1",
    "Theorem main": "Theorem 5.3",
    "Theorem kappa": "Theorem 5.4",
    "Theorem unknown": "Theorem 5.5",
    "Theorem new": "Theorem 6.1",
    "Lemma r": "Lemma A.1",
    "Lemma cE": "Lemma C.1",
    "Lemma abbasi": "Lemma F.3",
}
"""Numbers by label: the order of the paper's source, one counter per section for all lemmas, theorems and remarks."""


@dataclass(frozen=True)
class Judgement:
    """A claim, the measurement and the conclusion."""

    claim: str
    source: str
    """Where the paper makes the claim."""
    measured: str
    """The numbers in words, with their intervals and settings."""
    status: Status
    numbers: dict[str, Any]
    """The same for programs: the measured value with its interval, and the limits it was compared with."""


@dataclass(frozen=True)
class StoredRuns:
    """The stored runs of each cell, all in the same order of seeds."""

    store: Storage
    seeds: Sequence[int]
    checked: Mapping[str, Sequence[Inequalities]]
    """By the cell's key."""

    def regret(self, cell: Cell) -> Vector:
        """Return the final regret of each run, shape (n,)."""
        return np.asarray(self._column(cell, "regret"))

    def late_regret(self, cell: Cell) -> Vector:
        """Return the regret per round over the last quarter of each run, shape (n,)."""
        return np.asarray(self._column(cell, "late_regret"))

    def locked_in(self, cell: Cell) -> NDArray[np.bool_]:
        """Return whether each run locked in, shape (n,)."""
        return np.asarray(self._column(cell, "locked_in"))

    def inequalities(self, cell: Cell) -> Sequence[Inequalities]:
        """Return the proof's inequalities in each run."""
        return self.checked[cell.key][: len(self.seeds)]

    def _column(self, cell: Cell, name: str) -> pl.Series:
        return self.store.records(cell, self.seeds)[name]


@dataclass(frozen=True)
class Claim:
    """The runs that are needed to judge one or more claims, and the judge."""

    judge: Callable[[StoredRuns], Iterable[Judgement]]
    cells: Sequence[Cell] = ()
    """Cells whose records are needed."""
    checked: Sequence[Cell] = ()
    """Cells whose runs are checked against the proof, round by round."""
    one_in: int = 1
    """Use only one in this many seeds, because runs take long."""

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Return the seeds that this claim is judged on, at least two."""
        return seeds[: max(2, len(seeds) // self.one_in)]


def judged(
    claim: str,
    source: str,
    measured: str,
    found: Mean,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    can_fail: bool = True,
    **numbers: Any,
) -> Judgement:
    """Return the verdict on the claim that ``found`` lies above one limit and below another.

    A ``source`` is named by the paper's label, and gets its number.

    The claim holds if the whole interval is within the limits, does not hold if none of it is, and is undecided
    otherwise. A claim that no run can break never holds, but is reported if it is broken, which means a bug here.

    >>> judged("x > 0", "", "", Mean(2.0, 0.5, 1.0, 3.0), above=0.0).status
    'holds'
    >>> judged("x > 0", "", "", Mean(-2.0, 0.5, -3.0, -1.0), above=0.0).status
    'does not hold'
    """
    status: Status
    if found.high < above or found.low > below:
        status = "does not hold"
    elif not can_fail:
        status = "cannot fail"
    elif found.low > above and found.high < below:
        status = "holds"
    else:
        status = "undecided"
    for label, number in PUBLISHED.items():
        source = re.sub(rf"{label}\b", f"{number} ({label.split()[1]})", source)
    limits = {name: limit for name, limit in (("above", above), ("below", below)) if math.isfinite(limit)}
    return Judgement(claim, source, measured, status, found.as_json() | limits | numbers)


def gaps(evidence: StoredRuns, pairs: Mapping[Key, tuple[Cell, Cell]]) -> dict[Key, Mean]:
    """Return the gaps of several pairs (cell, reference), with simultaneous 95% intervals (Bonferroni)."""
    return {key: gap(evidence, *pair, corrected(pairs)) for key, pair in pairs.items()}


def smallest_gap(evidence: StoredRuns, pairs: Mapping[Key, tuple[Cell, Cell]]) -> tuple[dict[Key, Mean], Key, Mean]:
    """Return all gaps, the key of the decisive one, and the interval of the smallest."""
    found = gaps(evidence, pairs)
    return found, *smallest(found)


def smallest(found: Mapping[Key, Mean], threshold: float = 0.0) -> tuple[Key, Mean]:
    """Return the decisive key and the interval of the minimum.

    All values are above the threshold if the lowest end is; some value is not if one whole interval lies below it.
    """
    by_low, by_high = min(found, key=lambda key: found[key].low), min(found, key=lambda key: found[key].high)
    decisive = by_high if found[by_high].high < threshold else by_low
    lowest = min(found.values(), key=lambda each: each.value)
    return decisive, Mean(lowest.value, lowest.error, found[by_low].low, found[by_high].high)


def interval(found: Mean, form: str = "+.0f") -> str:
    """Return a value with its interval.

    >>> interval(Mean(2.0, 0.5, 1.0, 3.0))
    '+2 [+1, +3]'
    """
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def factor(logarithm: Mean) -> str:
    """Return a factor with its interval, given its logarithm.

    >>> factor(Mean(0.0, 0.1, -0.1, 0.1))
    '1.00 [0.90, 1.11]'
    """
    return f"{math.exp(logarithm.value):.2f} [{math.exp(logarithm.low):.2f}, {math.exp(logarithm.high):.2f}]"
