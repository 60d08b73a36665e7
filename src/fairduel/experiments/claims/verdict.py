"""A claim, the runs that it needs, and the verdict that follows from them."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.experiments.inference import Mean, mixed_mean
from fairduel.experiments.proof_audit import Audit
from fairduel.simulation import Cell, Storage

Status = Literal["holds", "does not hold", "undecided", "cannot fail"]
"""``"cannot fail"``: no run whatever could have broken it, so that it says nothing about the algorithm."""
Key = TypeVar("Key", bound=Hashable)
BEYOND = "beyond the paper"
"""The source of what the paper does not claim, but its reader will ask."""


@dataclass(frozen=True)
class Verdict:
    """One claim, what was measured, and what follows."""

    claim: str
    source: str
    """Where the paper says it."""
    measured: str
    """The figures in words, with their intervals and settings."""
    status: Status
    numbers: dict[str, Any]
    """The same for programs: what was measured with its interval, and what it was compared with."""


@dataclass(frozen=True)
class Evidence:
    """What judges look at: the stored runs of each cell, in the same order of seeds."""

    store: Storage
    seeds: Sequence[int]
    audited: Mapping[str, Sequence[Audit]]
    """By the cell's key."""

    def regret(self, cell: Cell) -> Vector:
        """Final regret of each run, shape (n,)."""
        return np.asarray(self._column(cell, "regret"))

    def late_regret(self, cell: Cell) -> Vector:
        """Regret per round over the last quarter of each run, shape (n,)."""
        return np.asarray(self._column(cell, "late_regret"))

    def locked_in(self, cell: Cell) -> NDArray[np.bool_]:
        """Whether each run ended locked in, shape (n,)."""
        return np.asarray(self._column(cell, "locked_in"))

    def audits(self, cell: Cell) -> Sequence[Audit]:
        """The inequalities of the proof in each run."""
        return self.audited[cell.key][: len(self.seeds)]

    def _column(self, cell: Cell, name: str) -> pl.Series:
        return self.store.records(cell, self.seeds)[name]


@dataclass(frozen=True)
class Claim:
    """Which runs are needed to judge a claim, and how it is judged."""

    judge: Callable[[Evidence], Iterable[Verdict]]
    cells: Sequence[Cell] = ()
    """Cells whose runs are looked at."""
    audited: Sequence[Cell] = ()
    """Cells whose runs are checked round by round against the proof."""
    one_in: int = 1
    """Only one in so many of the seeds is run, where runs take long."""

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Those of the seeds that this claim is judged on."""
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
) -> Verdict:
    """Return the verdict on a claim that ``found`` lies above one number and below another.

    It holds where the whole interval does, does not hold where none of it does, and is undecided in between. What no
    agent could break is not called so, unless it is broken, which then is a mistake of ours.

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
    limits = {name: limit for name, limit in (("above", above), ("below", below)) if math.isfinite(limit)}
    return Verdict(claim, source, measured, status, found.as_json() | limits | numbers)


def tally(verdicts: Iterable[Verdict]) -> list[str]:
    """How often each verdict was given, in words: for the paper's claims, and beyond them."""
    counts = {False: Counter[Status](), True: Counter[Status]()}
    for verdict in verdicts:
        counts[verdict.source == BEYOND][verdict.status] += 1
    return [
        f"{name} ({count.total()}): {', '.join(f'{count[s]} × {s}' for s in get_args(Status) if count[s])}."
        for name, count in zip(("The paper's claims", "Beyond the paper"), counts.values(), strict=True)
    ]


def gap(evidence: Evidence, cell: Cell, reference: Cell, confidence: float = 0.95) -> Mean:
    """How much more regret ``cell`` has than ``reference``, seed by seed; valid where some runs lock in."""
    kinds = evidence.locked_in(cell) + 2 * evidence.locked_in(reference)  # which of the two locked in
    return mixed_mean(evidence.regret(cell) - evidence.regret(reference), kinds, confidence)


def gaps(evidence: Evidence, pairs: Mapping[Key, tuple[Cell, Cell]]) -> dict[Key, Mean]:
    """The gaps of several pairs (cell, reference), whose intervals cover all at once with 95 % (Bonferroni)."""
    confidence = 1.0 - 0.05 / len(pairs)
    return {key: gap(evidence, *pair, confidence) for key, pair in pairs.items()}


def smallest(found: Mapping[Key, Mean], threshold: float = 0.0) -> tuple[Key, Mean]:
    """Return the interval of the smallest of all, and the key of the one that decides.

    All are above the threshold where the lowest end is; some is not where one whole interval lies below it.
    """
    by_low, by_high = min(found, key=lambda key: found[key].low), min(found, key=lambda key: found[key].high)
    decisive = by_high if found[by_high].high < threshold else by_low
    lowest = min(found.values(), key=lambda each: each.value)
    return decisive, Mean(lowest.value, lowest.error, found[by_low].low, found[by_high].high)


def interval(found: Mean, form: str = "+.0f") -> str:
    """A value with its interval, in words.

    >>> interval(Mean(2.0, 0.5, 1.0, 3.0))
    '+2 [+1, +3]'
    """
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"
