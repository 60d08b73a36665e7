"""Coverage of the rank ranges: honest populations with a known order, ranked as ``fairduel rank`` does."""

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import polars as pl
from scipy import special

from fairduel.duel import Vector
from fairduel.experiments.inference import Mean, mean, share
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation.fingerprint import code_digest
from fairduel.simulation.parallel import start_worker
from fairduel.simulation.store import write_parquet
from fairduel.votes.intervals import CONFIDENCE
from fairduel.votes.populations import KINDS, population
from fairduel.votes.ranking import Ranking, Standing, rank
from fairduel.votes.votes import Votes

RUNS = 100
DRAWS = 1000
_BATCH = 25
"""Vote files that a worker ranks before they are saved."""
Ranker = Callable[[Votes], Ranking]


class Setting(NamedTuple):
    """A kind of population and the size of its vote files."""

    kind: str
    items: int
    votes: int
    voters: int
    spread: float = 1.0
    """Standard deviation of the true scores."""

    @property
    def population(self) -> str:
        """The kind in words, with its spread."""
        return f"{self.kind} (close)" if self.spread < 1.0 else self.kind

    def __str__(self) -> str:
        return f"{self.population}, {self.items} items, {self.votes:,} votes, {self.voters} voters"


CLOSE = 0.05
"""A spread at which all items are about equally good; ranges that are too narrow then fail most often."""
GRID = tuple(
    Setting(kind, *sizes, spread)
    for kind in KINDS
    for spread in ((1.0, CLOSE) if kind != "separation" else (1.0,))
    for sizes in itertools.product((5, 20, 60), (50, 300, 3000), (3, 30, 300))
)
"""The cells of the table."""


class Measured(NamedTuple):
    """How the ranking of one vote file compares with the truth; all but ``covered`` are means."""

    covered: bool
    """Whether all true ranks are in their ranges."""
    width: float
    """(high − low) / (size of the component − 1), over the items."""
    scores_covered: float
    """Share of the items whose true score is in its own 95% interval."""
    leader_best: float
    """P(best) of the leader, over the components, as are the others."""
    leader_is_best: float
    brier: float
    """Sum over a component's items of (P(best) − whether it is best)²."""


_SCHEMA = {"seed": pl.Int64, **{name: pl.Boolean if name == "covered" else pl.Float64 for name in Measured._fields}}


class Coverage(NamedTuple):
    """What :func:`measure` found in a number of vote files; means of :class:`Measured`, with 95% intervals."""

    files: int
    covered: int
    """Number of files with all true ranks in their ranges."""
    ranks: Mean
    """Share of the files with all true ranks in their ranges."""
    width: Mean
    scores: Mean
    leader_best: Mean
    leader_is_best: Mean
    brier: Mean


def default_ranker(votes: Votes) -> Ranking:
    """Rank with few draws, for speed."""
    return rank(votes, draws=DRAWS)


def measure(setting: Setting, seeds: Iterable[int], ranker: Ranker = default_ranker) -> Coverage:
    """Rank one vote file per seed and compare the results with the truth.

    >>> found = measure(Setting("clean", items=5, votes=300, voters=30), range(3))
    >>> found.ranks.value
    1.0
    """
    return summarise([measure_file(setting, seed, ranker) for seed in seeds])


def summarise(files: Sequence[Measured]) -> Coverage:
    """Return the means over vote files."""
    covered, *others = (np.array(values) for values in zip(*files, strict=True))
    count = int(covered.sum())
    return Coverage(len(files), count, share(count, len(files)), *map(mean, others))


def measure_file(setting: Setting, seed: int, ranker: Ranker = default_ranker) -> Measured:
    """Rank one vote file and compare the result with the truth."""
    drawn = population(**setting._asdict(), seed=seed)
    return compare(ranker(drawn.votes), drawn.truth)


def compare(ranking: Ranking, truth: Vector) -> Measured:
    """Compare a ranking with the true scores of its items, shape (K,); items without votes are left out."""
    place = {item: number for number, item in enumerate(ranking.items)}
    covered, widths, scores, leaders = True, list[float](), list[bool](), list[tuple[float, float, float]]()
    for group in ranking.components():
        if len(group) < 2:
            continue
        true = truth[[place[standing.item] for standing in group]]
        true_rank = 1 + (true[None, :] > true[:, None]).sum(axis=1)
        for standing, right, score in zip(group, true_rank, true - true.mean(), strict=True):
            covered &= standing.rank_low <= int(right) <= standing.rank_high
            widths.append((standing.rank_high - standing.rank_low) / (len(group) - 1))
            low, high = score_interval(standing)
            scores.append(low <= score <= high)
        best = np.array([standing.best for standing in group])
        leaders.append((float(best[0]), float(true_rank[0] == 1), float(((best - (true_rank == 1)) ** 2).sum())))
    said, is_best, brier = np.mean(leaders, axis=0).tolist()
    return Measured(covered, float(np.mean(widths)), float(np.mean(scores)), said, is_best, brier)


def score_interval(standing: Standing) -> tuple[float, float]:
    """Return the 95% interval of an item's score."""
    reach = float(special.ndtri(0.5 + CONFIDENCE / 2.0)) * standing.error
    low, high = standing.score - reach, standing.score + reach
    return getattr(standing, "score_low", low), getattr(standing, "score_high", high)


class Before(NamedTuple):
    """What was measured before ranges allowed for prompts and for several groups."""

    files: int
    coverage: float
    width: float


@functools.cache
def before() -> Mapping[Setting, Before]:
    """Return each cell as measured at commit 781d86e, on seeds from 0."""
    content = files("fairduel.experiments").joinpath("coverage_before.csv").read_bytes()
    rows = pl.read_csv(content).select(*Setting._fields, *Before._fields).iter_rows()
    return {Setting(*row[:5]): Before(*row[5:]) for row in rows}


def count_missing(folder: Path, seeds: Sequence[int]) -> int:
    """Return how many vote files of the grid are still to be ranked."""
    return sum(len(missing) for missing in _missing(folder, seeds).values())


def measure_grid(
    folder: Path, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> dict[Setting, Coverage]:
    """Measure every cell of the grid; results in ``folder`` that the same code computed are reused.

    Args:
        folder: Where results are kept, a Parquet file per cell.
        seeds: One vote file per seed.
        jobs: How many to rank at a time.
        progress: Called with the number of vote files just ranked.

    Raises:
        BadInputError: A seed is reserved for tuning.
    """
    refuse_tuning_seeds(seeds)
    (folder / "records").mkdir(parents=True, exist_ok=True)
    calls = [
        joblib.delayed(_measure_batch)(setting, missing[start : start + _BATCH])
        for setting, missing in _missing(folder, seeds).items()
        for start in range(0, len(missing), _BATCH)
    ]
    workers = joblib.Parallel(
        n_jobs=jobs,
        return_as="generator_unordered",
        batch_size=1,
        **({"initializer": start_worker, "initargs": (os.getpid(),)} if jobs > 1 else {}),
    )
    for setting, found in workers(calls):
        write_parquet(pl.concat([_stored(folder, setting), found]), _path(folder, setting))
        progress(len(found))
    return {setting: _summary(_stored(folder, setting), seeds) for setting in GRID}


def _measure_batch(setting: Setting, seeds: Sequence[int]) -> tuple[Setting, pl.DataFrame]:
    return setting, pl.DataFrame([{"seed": seed, **measure_file(setting, seed)._asdict()} for seed in seeds], _SCHEMA)


def _missing(folder: Path, seeds: Sequence[int]) -> dict[Setting, list[int]]:
    done = {setting: set(_stored(folder, setting)["seed"]) for setting in GRID}
    return {setting: [seed for seed in seeds if seed not in done[setting]] for setting in GRID}


def _summary(stored: pl.DataFrame, seeds: Sequence[int]) -> Coverage:
    chosen = stored.filter(pl.col("seed").is_in(list(seeds))).sort("seed").select(Measured._fields)
    return summarise([Measured(*row) for row in chosen.iter_rows()])


def _stored(folder: Path, setting: Setting) -> pl.DataFrame:
    path = _path(folder, setting)
    return pl.read_parquet(path) if path.exists() else pl.DataFrame(schema=_SCHEMA)


def _path(folder: Path, setting: Setting) -> Path:
    """Name the code as well, so that results of different code are never mixed."""
    name = "-".join(map(str, setting)).replace(" ", "-")
    return folder / "records" / f"{name}-{_digest()}.parquet"


@functools.cache
def _digest() -> str:
    return code_digest([__name__])[:16]
