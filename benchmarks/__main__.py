"""Run benchmarks: ``python -m benchmarks [NAME …]``, all by default; results go to benchmarks/results/."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks import baselines
from benchmarks.measures import seconds
from benchmarks.recorded_votes import recorded_votes
from fairduel import RCDB, LockInWarning, Outcome, Sceptic
from fairduel.action_sets import BallSet, HypercubeSet, hypercube
from fairduel.core.selection import symmetric_pair, view_by
from fairduel.experiments.paper_setup import ADVERSARIAL, BUDGET, GREEDY, HORIZON, RANDOM, RARE_RANDOM, paper_cell
from fairduel.files import versions
from fairduel.simulation import Cell, Store, run_cells
from fairduel.stats import line
from fairduel.worlds.world import random_parameter

RESULTS = Path(__file__).parent / "results"
console = Console(width=120)
Row = dict[str, object]


def unit_rows(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    rows = rng.normal(size=(count, dimension))
    return 0.999 * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def paper_run() -> list[Row]:
    """One run of the paper's experiment; the baseline (for RCDB-S that of RCDB) is the mean of five runs."""
    rules = {
        "rcdb": baselines.best_pair,
        "rcdb-s": baselines.best_pair,
        "maxpairucb": baselines.best_pair,
        "maxinp": baselines.widest_pair,
        "colstim": baselines.perturbed_pair,
    }

    def baseline_runs(name: str) -> None:
        agent = paper_cell(name if name != "rcdb-s" else "rcdb", GREEDY).start(0)[0]
        numbers = {"ridge": agent.settings["ridge"], "trust": agent.settings.get("trust", np.inf)}
        for seed in range(5):
            rng = np.random.default_rng(seed)
            truth = random_parameter(rng, 5, norm=2.0)
            baselines.run(rules[name], hypercube(5), truth, HORIZON, BUDGET, rng, radius=agent.radius_at(1), **numbers)

    rows: list[Row] = []
    for name in rules:
        cell = paper_cell(name, GREEDY)
        cell.run(0)
        one = seconds(lambda cell=cell: [cell.run(seed) for seed in range(10)]) / 10
        twin = seconds(lambda name=name: baseline_runs(name), times=1) / 5
        rows.append({"work": f"paper's run, {name}", "here": one, "twin": twin, "goal": 0.015})
    cell = paper_cell("sceptic", GREEDY)
    cell.run(0)
    one = seconds(lambda: [cell.run(seed) for seed in range(10)]) / 10
    return [*rows, {"work": "paper's run, sceptic", "here": one, "goal": 0.015}]


def figure1() -> list[Row]:
    """All 160 runs of the paper's Figure 1, stored."""
    attacks = (GREEDY, RANDOM, RARE_RANDOM, ADVERSARIAL)
    cells = [paper_cell(name, attack) for name in ("rcdb", "maxpairucb", "maxinp", "colstim") for attack in attacks]

    def whole() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_cells(cells, range(10), Store(Path(folder)), jobs=os.cpu_count() or 1)

    whole()
    return [{"work": "Figure 1, 160 runs, stored", "here": seconds(whole), "goal": 1.5}]


def end_to_end() -> list[Row]:
    """The whole command, report included, once compiled; and 10,000 runs of one cell, stored."""
    command = [str(Path(sys.executable).with_name("fairduel")), "reproduce", "figure1", "--out"]

    def reproduce() -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*command, folder], check=True, capture_output=True)

    reproduce()
    rows: list[Row] = [{"work": "fairduel reproduce figure1, 780 runs", "here": seconds(reproduce), "goal": 8.0}]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _TEN_THOUSAND, folder], check=True, capture_output=True, text=True
        ).stdout.split()
    rows.append(
        {
            "work": f"10,000 runs of RCDB/greedy, peak {float(done[1]):.2f} GiB",
            "here": float(done[0]),
            "goal": 120.0,
        }
    )
    return rows


_TEN_THOUSAND = """
import os, sys, time
from pathlib import Path
from benchmarks.measures import peak_memory
from fairduel.experiments.paper_setup import GREEDY, paper_cell
from fairduel.simulation import Store, run_cells
began = time.perf_counter()
run_cells([paper_cell("rcdb", GREEDY)], range(10_000), Store(Path(sys.argv[1])), jobs=os.cpu_count())
print(time.perf_counter() - began, peak_memory())
"""


def fresh_contexts() -> list[Row]:
    """Fresh actions in every round, d = 10, K = 32: exact MLE and one-pass."""
    world = {"dimension": 10, "count": 32}
    exact = Cell("rcdb", "greedy", BUDGET, HORIZON, world="fresh", world_settings=world)
    exact.run(0)
    rows: list[Row] = [{"work": "fresh contexts, T = 2000, exact", "here": seconds(lambda: exact.run(1)), "goal": 0.3}]
    rounds = 200_000
    long = Cell("rcdb", "greedy", BUDGET, rounds, "fresh", {"estimator": "one-pass"}, {}, world)
    rows.append(
        {"work": "fresh contexts, one-pass, per round", "here": seconds(lambda: long.run(1), 1) / rounds, "goal": 2e-5}
    )
    return rows


def best_pair() -> list[Row]:
    """The exact best pair of 100,000 actions after 10,000 duels; the baseline scores all pairs of 1,000."""
    rng = np.random.default_rng(0)
    actions, theta = unit_rows(rng, 100_000, 32), rng.normal(size=32)
    theta *= 2 / np.linalg.norm(theta)
    asked = actions[rng.integers(len(actions), size=10_000)] - actions[rng.integers(len(actions), size=10_000)]
    inverse = np.linalg.inv(0.25 * np.eye(32) + asked.T @ asked)
    radius = np.sqrt(32)
    symmetric_pair(view_by(inverse, actions[:200], theta), radius, True, 0.5)
    here = seconds(lambda: symmetric_pair(view_by(inverse, actions, theta), radius, True, 0.5), 5)
    few = actions[:1000]
    twin = seconds(lambda: baselines.best_pair(few, theta, inverse, radius))
    fast = seconds(lambda: symmetric_pair(view_by(inverse, few, theta), radius, True, 0.5))
    assert set(symmetric_pair(view_by(inverse, few, theta), radius, True, 0.5)) == set(
        baselines.best_pair(few, theta, inverse, radius)
    )
    return [
        {"work": "exact best pair, K = 100,000, d = 32", "here": here, "goal": 0.06},
        {"work": "exact best pair, K = 1,000, d = 32", "here": fast, "twin": twin},
    ]


def action_sets() -> list[Row]:
    """The best pair of implicit action sets after 200 random duels; the baseline lists a hypercube of 1,024."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for actions in (HypercubeSet(10), HypercubeSet(20), HypercubeSet(30), BallSet(30)):
        d = actions.dimension
        past = np.array([actions.random(rng) - actions.random(rng) for _ in range(200)])
        inverse = np.linalg.inv(0.25 * np.eye(d) + 0.3 * past.T @ past)
        theta = random_parameter(rng, d, norm=2.0)
        pair = actions.best_pair(theta, inverse, np.sqrt(d), rng)
        assert pair.gap == 0.0
        here = seconds(lambda a=actions, t=theta, m=inverse: a.best_pair(t, m, np.sqrt(a.dimension), rng))
        row: Row = {"work": f"exact best pair, {type(actions).__name__}({d})", "here": here}
        if d == 10:
            row["twin"] = seconds(
                lambda t=theta, m=inverse: baselines.best_pair(hypercube(10), t, m, np.sqrt(10)), times=1
            )
        rows.append(row)
    return rows


def ask_and_tell() -> list[Row]:
    """Latency of one ask and tell, median and 99th percentile; one BLAS thread, as on a busy server."""
    settings = [
        ("K = 1,000, d = 32, after 100,000 votes", 1000, 32, True, "one-pass", 100_000, 3000, 1e-3, 5e-3),
        ("K = 200, d = 1,024, fixed", 200, 1024, True, "lazy", 200, 300, 3e-3, None),
        ("K = 200, d = 1,024, fresh", 200, 1024, False, "one-pass", 3, 40, 4e-2, None),
        ("K = 200, d = 4,096, fixed", 200, 4096, True, "lazy", 100, 100, None, None),
        ("K = 200, d = 4,096, fresh", 200, 4096, False, "one-pass", 3, 10, None, None),
        ("K = 200, d = 4,096, fresh, single precision", 200, 4096, False, "one-pass", 3, 10, None, None),
        ("Sceptic, K = 1,000, d = 32", 1000, 32, True, "exact", 50, 300, 5e-3, None),
        ("Sceptic, K = 200, d = 1,024, fixed", 200, 1024, True, "lazy", 50, 100, 2e-2, None),
        ("Sceptic, K = 200, d = 1,024, fresh", 200, 1024, False, "one-pass", 3, 40, 2e-2, None),
    ]
    rows: list[Row] = []
    for name, count, dimension, fixed, estimator, before, measured, median, tail in settings:
        rng = np.random.default_rng(0)
        theta = rng.normal(size=dimension)
        theta *= 2 / np.linalg.norm(theta)
        kind = Sceptic if name.startswith("Sceptic") else RCDB
        agent = kind(dimension=dimension, norm_bound=2.0, flip_budget=50, horizon=200_000, estimator=estimator)
        precision = np.float32 if "single" in name else np.float64
        actions, taken = unit_rows(rng, count, dimension).astype(precision), []
        limit = threadpool_limits(1)
        for step in range(before + measured):
            if not fixed:
                actions = unit_rows(rng, count, dimension).astype(precision)
            coin = rng.random()
            began = time.perf_counter()
            duel = agent.ask(actions)
            won = coin < 1 / (1 + np.exp(-duel.difference @ theta))
            agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
            if step >= before:
                taken.append(time.perf_counter() - began)
        limit.restore_original_limits()
        rows.append({"work": f"ask + tell, {name}, p50", "here": float(np.percentile(taken, 50)), "goal": median})
        rows.append({"work": f"ask + tell, {name}, p99", "here": float(np.percentile(taken, 99)), "goal": tail})
    return rows


def growth() -> list[Row]:
    """Growth of time with T, K and d: fitted exponents and a figure."""

    def rounds(value: int) -> Callable[[], object]:
        cell = Cell("rcdb", "greedy", 20, value)
        return lambda: cell.run(0)

    def contexts(value: int) -> Callable[[], object]:
        cell = Cell("rcdb", "greedy", 20, value, world="fresh")
        return lambda: cell.run(0)

    def actions(value: int) -> Callable[[], object]:
        rng = np.random.default_rng(0)
        table, theta = unit_rows(rng, value, 16), rng.normal(size=16)
        return lambda: symmetric_pair(view_by(np.eye(16) / 5000.0, table, theta), 4.0, True, 0.5)

    def features(value: int) -> Callable[[], object]:
        cell = Cell("rcdb", "greedy", 20, 300, world="fresh", world_settings={"dimension": value})
        return lambda: cell.run(0)

    curves = {
        "T, fixed actions": (rounds, (1000, 2000, 4000, 8000, 16000)),
        "T, fresh actions": (contexts, (500, 1000, 2000, 4000)),
        "K, best pair": (actions, (1000, 4000, 16000, 64000)),
        "d, fresh actions": (features, (4, 8, 16, 32, 64)),
    }
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    rows: list[Row] = []
    for axis, (name, (make, values)) in zip(figure.subplots(1, 4), curves.items(), strict=True):
        times = []
        for value in values:
            call = make(value)
            call()
            times.append(seconds(call))
        fitted = line(np.log(np.array(values, dtype=float)), np.log(np.array(times)))
        rows.append({"work": f"growth in {name}", "exponent": fitted.slope, "error": fitted.slope_error})
        axis.loglog(values, times, "o-", color="#D55E00")
        axis.set_title(f"{name}\nexponent {fitted.slope:.2f} ± {fitted.slope_error:.2f}", fontsize=9)
        axis.set_xticks(values, [f"{value:g}" for value in values], rotation=45)
        axis.minorticks_off()
        axis.set_ylabel("seconds")
    figure.savefig(RESULTS / "growth.png", dpi=130)
    return rows


BENCHMARKS = {
    "paper_run": paper_run,
    "figure1": figure1,
    "end_to_end": end_to_end,
    "fresh_contexts": fresh_contexts,
    "best_pair": best_pair,
    "action_sets": action_sets,
    "ask_and_tell": ask_and_tell,
    "growth": growth,
    "recorded_votes": recorded_votes,
}


def show(rows: list[Row]) -> None:
    table = Table(box=None)
    for name in ("benchmark", "fairduel", "goal", "baseline", "speedup"):
        table.add_column(name, justify="left" if name == "benchmark" else "right")
    for row in rows:
        if "exponent" in row:
            table.add_row(str(row["work"]), f"^{row['exponent']:.2f} ± {row['error']:.2f}", "", "", "")
            continue
        here, goal, twin = (row.get(name) for name in ("here", "goal", "twin"))
        table.add_row(
            str(row["work"]),
            _time(here),
            "" if goal is None else _time(goal) + (" ✓" if here <= goal else " ✗"),
            "" if twin is None else _time(twin),
            "" if twin is None else f"{twin / here:,.0f}×",
        )
    console.print(table)


def _time(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.2f} ms" if value >= 1e-3 else f"{1e6 * value:.1f} µs"


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore", LockInWarning)
    RESULTS.mkdir(exist_ok=True)
    for name in names or BENCHMARKS:
        console.print(f"[bold]{name}[/bold]: {BENCHMARKS[name].__doc__}")
        rows = BENCHMARKS[name]()
        show(rows)
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), **versions()}
        text = json.dumps({"benchmark": name, "machine": machine, "rows": rows}, indent=1)
        (RESULTS / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
