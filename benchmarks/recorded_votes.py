"""Recorded votes: strings to scores (next to evalica), a million votes with features or voters, ten million rows."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import evalica
import numpy as np
import polars as pl

from benchmarks.measures import peak_memory, seconds
from fairduel.votes import RobustPreferenceModel, Votes, rank, read_votes
from fairduel.votes.auditing.audit import audit
from fairduel.votes.certifying.certificates import with_certificates
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.reading.read import votes_of

MILLION = 1_000_000
WINNERS = ("first", "second", "tie")
JUDGED = {"rank": rank, "certify": lambda votes: with_certificates(votes, rank(votes)), "audit": audit}


def table_of_votes(count: int) -> pl.DataFrame:
    """Return votes between 100 items of different strength, a tenth of them ties."""
    rng = np.random.default_rng(0)
    first = rng.integers(100, size=count)
    second = (first + rng.integers(1, 100, size=count)) % 100
    strength = rng.normal(size=100)
    lost = rng.random(count) > 1 / (1 + np.exp(strength[second] - strength[first]))
    winner = np.where(rng.random(count) < 0.1, 2, lost)
    names = pl.Series([f"model-{number:03}" for number in range(100)])
    columns = {
        "first": names.gather(first),
        "second": names.gather(second),
        "winner": pl.Series(WINNERS).gather(winner),
    }
    return pl.DataFrame(columns | {"voter": pl.Series(rng.integers(100_000, size=count)).cast(pl.String)})


def strings_to_scores() -> tuple[float, float]:
    """Return seconds here and with evalica; each starts from strings in the form it expects, and they must agree."""
    table = table_of_votes(MILLION).drop("voter")  # ours: a polars table
    lists = {name: table[name].to_list() for name in table.columns}  # evalica: lists
    winners = dict(zip(WINNERS, (evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw), strict=True))

    def here() -> np.ndarray:
        return fit_scores(wins(votes_of(table).votes)).scores

    def there() -> np.ndarray:
        outcomes = [winners[winner] for winner in lists["winner"]]
        scores = evalica.bradley_terry(lists["first"], lists["second"], outcomes).scores.sort_index()
        return np.log(scores.to_numpy()) - np.log(scores.to_numpy()).mean()

    assert np.abs(here() - there()).max() < 1e-3  # evalica's own tolerance
    return seconds(here, times=5), seconds(there, times=5)


def in_a_process(work: str) -> dict[str, float]:
    """Return the seconds of one piece of work and the peak memory of a process that does nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.recorded_votes", work], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def judge_a_million(work: str) -> dict[str, float]:
    """Rank (with or without certificates) or audit a million votes of 20,000 voters on 1,000 items."""
    rng = np.random.default_rng(0)
    first = rng.integers(1000, size=MILLION)
    second = (first + rng.integers(1, 1000, size=MILLION)) % 1000
    strength = rng.normal(size=1000)
    result = (rng.random(MILLION) < 1 / (1 + np.exp(strength[second] - strength[first]))).astype(float)
    items, voters = ([str(number) for number in range(count)] for count in (1000, 20_000))
    voter = rng.integers(20_000, size=MILLION)
    votes = Votes.from_arrays(items, first, second, result, voter=voter, voters=voters)
    began = time.perf_counter()
    JUDGED[work](votes)
    return {"seconds": time.perf_counter() - began, "peak": peak_memory()}


def rank_many_items(_: str) -> dict[str, float]:
    """Rank 30,000 votes of 4,000 voters on 10,000 items."""
    rng = np.random.default_rng(0)
    first = rng.integers(10_000, size=30_000)
    second = (first + rng.integers(1, 10_000, size=30_000)) % 10_000
    strength = rng.normal(size=10_000)
    result = (rng.random(30_000) < 1 / (1 + np.exp(strength[second] - strength[first]))).astype(float)
    items, voters = ([str(number) for number in range(count)] for count in (10_000, 4000))
    votes = Votes.from_arrays(items, first, second, result, voter=rng.integers(4000, size=30_000), voters=voters)
    began = time.perf_counter()
    rank(votes)
    return {"seconds": time.perf_counter() - began, "peak": peak_memory()}


def fit_a_million(weights: str) -> dict[str, float]:
    rng = np.random.default_rng(0)
    model = RobustPreferenceModel(weights=weights)
    warm = rng.normal(size=(100, 64))
    model.fit(warm, rng.integers(2, size=100))  # compiles
    features = rng.normal(size=(2000, 64))
    features /= np.linalg.norm(features, axis=1).max()
    differences = features[rng.integers(2000, size=MILLION)]
    differences -= features[rng.integers(2000, size=MILLION)]
    theta = 2 * rng.normal(size=64)
    results = (rng.random(MILLION) < 1 / (1 + np.exp(-differences @ theta))).astype(float)
    began = time.perf_counter()
    model.fit(differences, results)
    taken = time.perf_counter() - began
    assert np.abs(model.coef_ - theta).max() < 0.2
    return {"seconds": taken, "peak": peak_memory()}


def recorded_votes() -> list[dict[str, object]]:
    """Recorded votes; the baseline of the first row is evalica."""
    here, evalicas = strings_to_scores()
    work = "1,000,000 votes on 100 named items, strings to scores"
    rows: list[dict[str, object]] = [{"work": work, "here": here, "twin": evalicas, "goal": evalicas / 3}]
    best = min((in_a_process("fixed-point") for _ in range(2)), key=lambda found: found["seconds"])
    work = f"1,000,000 votes, d = 64, fixed-point; peak {best['peak']:.2f} GiB"
    rows.append({"work": work, "here": best["seconds"], "goal": 10.0, "peak_gib": best["peak"]})
    for work, goal in (("rank", 5.0), ("certify", 30.0), ("audit", 60.0)):
        found = in_a_process(work)
        title = f"{work.replace('certify', 'rank and certify')} 1,000,000 votes on 1,000 items"
        title += f"; peak {found['peak']:.2f} GiB"
        rows.append({"work": title, "here": found["seconds"], "goal": goal, "peak_gib": found["peak"]})
    found = in_a_process("many")
    title = f"rank 30,000 votes on 10,000 items; peak {found['peak']:.2f} GiB"
    rows.append({"work": title, "here": found["seconds"], "goal": 20.0, "peak_gib": found["peak"]})
    table = table_of_votes(10 * MILLION)
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (("parquet", table.write_parquet), ("csv", table.write_csv)):
            path = Path(folder) / f"votes.{name}"
            write(path)
            here = seconds(lambda path=path: wins(read_votes(path).votes), times=2)
            rows.append({"work": f"10,000,000 rows of {name}, read and collapsed", "here": here, "goal": 10.0})
            path.unlink()
    return rows


MEASURED = {"many": rank_many_items}

if __name__ == "__main__":
    measure = judge_a_million if sys.argv[1] in JUDGED else MEASURED.get(sys.argv[1], fit_a_million)
    sys.stdout.write(json.dumps(measure(sys.argv[1])))
