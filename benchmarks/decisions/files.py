"""How what is said of a vote file compares with the truth, and means of that over many files."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.decisions.adapter import STATES, Said, decided, ranked
from benchmarks.decisions.populations import Population, population
from fairduel.duel import Matrix, Vector
from fairduel.stats import NOT_A_NUMBER, exact_share, mean
from fairduel.votes import Ranking, Votes
from fairduel.votes.verdict import CONFIDENCE

BINS = 10
"""Bins of P(best), of equal width."""
_SAME = 1e-9  # truths that differ by less are equal

Ranker = Callable[[Votes], Ranking]
Decider = Callable[[Votes, Ranking], Sequence[Said]]
Row = dict[str, Any]

SCHEMA = {
    "seed": pl.Int64,
    "covered": pl.Boolean,
    "width": pl.Float64,
    "scores": pl.Float64,
    "tau": pl.Float64,
    "tau_plain": pl.Float64,
    "first": pl.Float64,
    "first_plain": pl.Float64,
    "said": pl.Float64,
    "brier": pl.Float64,
    "claims": pl.Int64,
    "wrong_claims": pl.Int64,
    **{f"{state}": pl.Int64 for state in STATES},
    **{f"wrong {state}": pl.Int64 for state in STATES},
    "bin_items": pl.List(pl.Float64),
    "bin_said": pl.List(pl.Float64),
    "bin_best": pl.List(pl.Float64),
}
"""What is measured in a file:

- ``covered``: whether all true ranks are in their ranges; ``width``: mean length of a range as a share of all ranks;
- ``scores``: share of the items whose true score is in its interval;
- ``tau``, ``tau_plain``: Kendall's τ of the order, and of that by plain Bradley–Terry, with the truth;
- ``first``, ``first_plain``: how often the first item is best; of m equally good items each is best 1/m times;
- ``said``: P(best) of the first item; ``brier``: sum over items of (P(best) − whether best)²;
- ``claims``: items whose range says that they are first; ``wrong_claims``: those that are not better than all others;
- a column per verdict: how many groups have it, and (``wrong``) in how many the named leader is not better than all
  others, or, if several are named, whether the best is not among them;
- ``bin_…``: by P(best), the number of items, the sums of P(best) and of whether they are best.
"""


def measure(
    names: Iterable[str], seeds: Iterable[int], ranker: Ranker = ranked, decider: Decider | None = decided
) -> pl.DataFrame:
    """Measure files of the populations called ``names`` (see :mod:`benchmarks.decisions.populations`).

    Returns one row per file: ``name``, and the columns of :data:`SCHEMA`.

    >>> found = measure(["clean, 5 items, 300 votes, 30 voters"], range(3))
    >>> found["covered"].to_list()
    [True, True, True]
    """
    rows = [
        {"name": name} | measure_file(population(name, seed), seed, ranker, decider)
        for name, seed in itertools.product(names, seeds)
    ]
    return pl.DataFrame(rows, {"name": pl.String, **SCHEMA})


def measure_file(drawn: Population, seed: int, ranker: Ranker = ranked, decider: Decider | None = decided) -> Row:
    """Rank one file and compare what is said of it with the truth."""
    ranking = ranker(drawn.votes)
    found: Sequence[Said] = () if decider is None else decider(drawn.votes, ranking)
    return {"seed": seed} | compare(ranking, drawn) | compare_verdicts(found, drawn)


def compare(ranking: Ranking, drawn: Population) -> Row:
    """Compare a ranking with the truth; items without votes are left out."""
    place = {item: number for number, item in enumerate(drawn.votes.items)}
    covered, widths, scores = True, list[float](), list[bool]()
    orders, leaders, bins = list[Vector](), list[list[float]](), np.zeros((3, BINS))
    claims = wrong_claims = 0
    for group in ranking.components():
        if len(group) < 2:
            continue
        at = [place[standing.item] for standing in group]
        above = better(drawn.truth[at])
        true_rank, best = 1 + above.sum(axis=0), shared(above)
        target = drawn.scores[at] - drawn.scores[at].mean()
        for standing, right, score in zip(group, true_rank, target, strict=True):
            covered &= bool(standing.rank_low <= right <= standing.rank_high)
            widths.append((standing.rank_high - standing.rank_low) / (len(group) - 1))
            scores.append(standing.score_low <= score <= standing.score_high)
            if standing.rank_high == 1:
                claims += 1
                wrong_claims += not is_best(place[standing.item], at, drawn.truth)
        said = np.array([standing.best for standing in group])
        ours = np.array([standing.score for standing in group])
        plain = np.array([standing.plain_score for standing in group])
        top = plain == plain.max()
        orders.append(np.array([concordance(above, ours), concordance(above, plain), above.sum()]))
        leaders.append([best[0], best[top].mean(), said[0], ((said - best) ** 2).sum()])
        where = np.minimum((said * BINS).astype(np.int64), BINS - 1)
        bins += [np.bincount(where, values, BINS) for values in (np.ones(len(said)), said, best)]
    ours, plain, pairs = np.sum(orders, axis=0)
    first, first_plain, said_first, brier = np.mean(leaders, axis=0)
    return {
        "covered": covered,
        "width": float(np.mean(widths)),
        "scores": float(np.mean(scores)),
        "tau": float(ours / pairs) if pairs else None,
        "tau_plain": float(plain / pairs) if pairs else None,
        "first": float(first),
        "first_plain": float(first_plain),
        "said": float(said_first),
        "brier": float(brier),
        "claims": claims,
        "wrong_claims": wrong_claims,
        **{f"bin_{name}": row.tolist() for name, row in zip(("items", "said", "best"), bins, strict=True)},
    }


def better(truth: Vector) -> Matrix:
    """Return whether item i is truly better than j, shape ``(K, K)``, from the truth ``(K,)``."""
    return truth[:, None] > truth + _SAME


def shared(above: Matrix) -> Vector:
    """Return how often each item is the best if m equally good ones share it, shape ``(K,)``."""
    best = ~above.any(axis=0)
    return best / best.sum()


def is_best(item: int, among: Sequence[int], truth: Vector) -> bool:
    """Return whether an item is truly better than all others ``among`` which it is."""
    others = [other for other in among if other != item]
    return bool((truth[item] > truth[others] + _SAME).all())


def concordance(above: Matrix, scores: Vector) -> float:
    """Return over all pairs of which one is better: those in the right order minus those in the wrong one."""
    better_first = (scores[:, None] > scores + _SAME) & above
    worse_first = (scores[:, None] < scores - _SAME) & above
    return float(better_first.sum() - worse_first.sum())


def compare_verdicts(found: Sequence[Said], drawn: Population) -> Row:
    """Count verdicts, and those that name wrong items."""
    place = {item: number for number, item in enumerate(drawn.votes.items)}
    component = drawn.votes.components()
    counts = dict.fromkeys([*STATES, *(f"wrong {state}" for state in STATES)], 0)
    for said in found:
        counts[said.state] += 1
        named = place[said.leader if said.leader is not None else said.items[0]] if said.items or said.leader else None
        if named is not None:
            members = np.flatnonzero(component == component[named]).tolist()
            counts[f"wrong {said.state}"] += is_wrong(said, place, members, drawn.truth)
    return counts


def is_wrong(said: Said, place: Mapping[str, int], members: Sequence[int], truth: Vector) -> bool:
    """Return whether a verdict names wrong items of a group: a leader who is not best, or ties without the best."""
    if said.leader is not None:
        return not is_best(place[said.leader], members, truth)
    if said.state == "too early":
        return False
    highest = truth[list(members)].max()
    return not any(truth[place[item]] >= highest - _SAME for item in said.items)


# ---------------------------------------------------------------------- over files


class Share(NamedTuple):
    """How many of some trials succeeded."""

    successes: int
    trials: int

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.successes / self.trials if self.trials else math.nan

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the exact interval of the share; everything of nothing.

        >>> Share(20, 20).interval()[0].__round__(3)
        0.832
        """
        if not self.trials:
            return 0.0, 1.0
        found = exact_share(self.successes, self.trials, confidence)
        return found.low, found.high

    def __str__(self) -> str:
        """Return the share with its interval, in percent.

        >>> str(Share(19, 20)), str(Share(0, 0))
        ('95% [75, 100]', '–')
        """
        low, high = self.interval()
        return f"{self.value:.0%} [{100 * low:.0f}, {100 * high:.0f}]" if self.trials else "–"


def summary(files: pl.DataFrame, confidence: float = CONFIDENCE) -> Row:
    """Return what was found in files with the columns of :data:`SCHEMA`.

    Counts are :class:`Share`, and means have intervals with this ``confidence``. ``lead`` and ``first_lead`` are ours
    minus plain Bradley–Terry's, ``gap`` is P(best) of the first item minus how often it is best, ``bins`` are as
    :func:`pooled` returns them.
    """
    tau = files.drop_nulls("tau")
    return {
        "files": len(files),
        "covered": Share(int(files["covered"].sum()), len(files)),
        **{
            name: mean(files[name].to_numpy(), confidence)
            for name in ("width", "scores", "first", "first_plain", "said", "brier")
        },
        "first_lead": mean((files["first"] - files["first_plain"]).to_numpy(), confidence),
        "gap": mean((files["said"] - files["first"]).to_numpy(), confidence),
        "tau": mean(tau["tau"].to_numpy(), confidence) if len(tau) else NOT_A_NUMBER,
        "tau_plain": mean(tau["tau_plain"].to_numpy(), confidence) if len(tau) else NOT_A_NUMBER,
        "lead": mean((tau["tau"] - tau["tau_plain"]).to_numpy(), confidence) if len(tau) else NOT_A_NUMBER,
        "wrong_claims": Share(int(files["wrong_claims"].sum()), int(files["claims"].sum())),
        "verdicts": int(files.select(STATES).sum_horizontal().sum()),
        **{state: Share(int(files[f"wrong {state}"].sum()), int(files[state].sum())) for state in STATES},
        "bins": pooled(files),
    }


class Bin(NamedTuple):
    """Items whose P(best) is about the same."""

    low: float
    """Lower end of the bin."""
    items: int
    said: float
    """Mean P(best)."""
    best: float
    """How many of them are the best."""
    error: float
    """Standard error of their difference, over files."""


def pooled(files: pl.DataFrame) -> list[Bin]:
    """Return the bins with items; the items of a file depend on each other, so errors are over files."""
    items, said, best = (
        np.array(files[f"bin_{name}"].to_list()).reshape(-1, BINS) for name in ("items", "said", "best")
    )
    totals = items.sum(axis=0)
    found = []
    for place in np.flatnonzero(totals):
        total, difference = totals[place], said[:, place] - best[:, place]
        gap = difference.sum() / total
        error = math.sqrt(((difference - gap * items[:, place]) ** 2).sum()) / total
        found.append(Bin(place / BINS, int(total), said[:, place].sum() / total, best[:, place].sum() / total, error))
    return found
