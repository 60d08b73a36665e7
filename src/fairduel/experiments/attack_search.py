"""The worst attack on an agent that a search can find, measured on seeds that the search has not seen."""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fairduel.adversaries.searching import GENES, Generation, Settings, in_words, search, settings_at
from fairduel.agents import RewardAgent, loaded_class
from fairduel.checks import integer
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, LockInWarning
from fairduel.experiments.sentences import title_of, with_interval
from fairduel.experiments.tuning import FIRST_TUNING_SEED, refuse_tuning_seeds
from fairduel.files import write_atomically
from fairduel.simulation import Cell
from fairduel.simulation.parallel import Batch, Local
from fairduel.stats import Mean, jackknife, mean

POPULATION = 24
SEARCH_RUNS = 8
"""Runs of each attack in its generation."""
FINALISTS = 8
"""How many of the worst attacks are measured again."""
FINAL_RUNS = 48
"""Runs of each finalist."""
HORIZONS = (500, 2000, 8000, 32_000)
"""Where the growth of regret is measured."""
SCRIPTED: Mapping[str, tuple[str, Settings]] = {
    "no attack": ("none", {}),
    "greedy": ("greedy", {}),
    "random": ("random", {}),
    "adversarial": ("adversarial", {}),
    "adversarial from T/2": ("adversarial", {}),
    "misleading": ("misleading", {}),
    "half-settled": ("watching", {"settling": 0.5, "chance": 0.5}),
}
"""Attacks that the worst one is compared with."""
_FINAL_SEEDS = FIRST_TUNING_SEED + 10**7  # far from the seeds of any generation


@dataclass(frozen=True)
class WorstAttack:
    """The worst attack that a search found on an agent.

    Args:
        problem: What was attacked, with the attack.
        searched: How many runs the search made.
        regret: Under the attack, by seed of the report, shape (n,).
        scripted: The same under attacks that the search did not make, by name.
        growth: The same at other horizons with C ~ √T, by horizon.
    """

    problem: Cell
    searched: int
    regret: Vector
    scripted: Mapping[str, Vector]
    growth: Mapping[int, Vector]

    @property
    def exponent(self) -> Mean:
        """The power of T with which mean regret grows at C ~ √T; that of the typical run would hide rare disasters."""
        log_x = np.log(list(self.growth)) - np.log(list(self.growth)).mean()
        regrets = np.stack(list(self.growth.values()))  # (m, n)
        return jackknife(lambda runs: float(np.log(runs.mean(axis=-1)) @ log_x / (log_x @ log_x)), regrets)

    @property
    def conclusions(self) -> list[str]:
        """What was found, in sentences."""
        agent, name = title_of(self.problem.agent), max(self.scripted, key=lambda each: self.scripted[each].mean())
        found = [
            f"The worst attack found on {agent} {in_words(self.problem.attack_settings)}.",
            f"Its regret is then {_regret(self.regret)} (T = {self.problem.horizon:,}, C = {self.problem.budget}, "
            f"{len(self.regret)} runs that the search has not seen); the worst scripted attack, {name}, costs "
            f"{_regret(self.scripted[name])}.",
        ]
        if len(self.growth) > 1:
            horizons = ", ".join(f"{horizon:,}" for horizon in self.growth)
            found.append(
                f"With C ~ √T, regret under this attack grows as T^{with_interval(self.exponent)} (T = {horizons}); "
                "a search at each T could find worse."
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        return {
            "problem": asdict(self.problem),
            "words": in_words(self.problem.attack_settings),
            "searched": self.searched,
            "regret": mean(self.regret)._asdict(),
            "scripted": {name: mean(regret)._asdict() for name, regret in self.scripted.items()},
            "growth": {str(horizon): mean(regret)._asdict() for horizon, regret in self.growth.items()},
            "exponent": self.exponent._asdict() if len(self.growth) > 1 else None,
        }


def _regret(runs: Vector) -> str:
    found = mean(runs)
    return f"{found.value:,.0f} ± {found.error:,.0f}"


@dataclass
class Measurements:
    """Regrets that a search has measured, kept in a file so that it resumes; a file of another search is replaced.

    Args:
        path: The file; ``None`` keeps nothing.
        key: What the search is of.
    """

    path: Path | None
    key: str

    def __post_init__(self) -> None:
        self._known: dict[str, list[float]] = {}
        try:
            kept = json.loads(self.path.read_bytes()) if self.path else {}
            if kept.get("key") == self.key:
                self._known = {name: [float(value) for value in values] for name, values in kept["regrets"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # measured again

    def recall(self, name: str, measure: Callable[[], list[float]]) -> tuple[list[float], bool]:
        """Return what is known by this name, or measure and keep it; and whether it was known."""
        if name in self._known:
            return self._known[name], True
        self._known[name] = measure()
        if self.path:
            kept = {"key": self.key, "regrets": self._known}
            write_atomically(self.path, (json.dumps(kept) + "\n").encode())
        return self._known[name], False


def count_search_runs(runs: int) -> int:
    """Return how many generations a search of about this many runs has.

    >>> count_search_runs(10_000)
    51
    """
    return max(1, runs // (POPULATION * SEARCH_RUNS) - 1)


def find_worst_attack(
    problem: Cell,
    seeds: Sequence[int],
    *,
    runs: int = 10_000,
    seed: int = 0,
    jobs: int = 1,
    horizons: Sequence[int] = HORIZONS,
    path: Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> WorstAttack:
    """Search for the worst attack on an agent.

    The search and the choice among its finalists use tuning seeds; what is reported comes from ``seeds``.

    Args:
        problem: The agent, the world, T and C; its attack is replaced.
        seeds: Seeds of the report.
        runs: About how many runs the search makes.
        seed: Seed of the search.
        jobs: Number of runs at a time; the result is the same for any number.
        horizons: Where the growth is measured, with C ~ √T; empty for nowhere.
        path: File in which the search is kept, so that it resumes.
        progress: Called with the number of runs just finished.

    >>> from fairduel.simulation import Cell
    >>> found = find_worst_attack(Cell("rcdb", "none", 3, 20), range(2), runs=1, horizons=())
    >>> found.problem.attack
    'watching'
    """
    refuse_tuning_seeds(seeds)
    integer("runs", runs, least=1)
    check_attackable(problem)
    generations = count_search_runs(runs)
    names = [gene.name for gene in GENES]
    memory = Measurements(path, json.dumps([replace(problem, attack="watching").key, generations, seed, names]))
    searched = 0

    def under(name: str, tried: Sequence[Settings], own: Sequence[int]) -> list[float]:
        nonlocal searched
        cells = [attacked(problem, settings) for settings in tried]
        regrets, is_known = memory.recall(name, lambda: list(_measured(cells, own, jobs, progress).mean(axis=1)))
        searched += len(cells) * len(own)
        if is_known:
            progress(len(cells) * len(own))
        return regrets

    def measure(tried: Sequence[Settings], number: int) -> list[float]:
        first = FIRST_TUNING_SEED + number * SEARCH_RUNS
        return under(f"generation {number}", tried, range(first, first + SEARCH_RUNS))

    found = list(search(measure, horizon=problem.horizon, generations=generations, population=POPULATION, seed=seed))
    finalists = _finalists(found)
    chosen = [settings_at(point, problem.horizon) for point in finalists]
    again = under("finalists", chosen, range(_FINAL_SEEDS, _FINAL_SEEDS + FINAL_RUNS))
    worst = finalists[int(np.argmax(again))]
    settings = settings_at(worst, problem.horizon)
    return measure_attack(problem, settings, seeds, searched=searched, horizons=horizons, jobs=jobs, progress=progress)


def _finalists(found: Sequence[Generation]) -> list[Vector]:
    tried = [
        (regret, point)
        for generation in found
        for regret, point in zip(generation.regrets, generation.points, strict=True)
    ]
    tried.sort(key=lambda one: -one[0])
    return [point for _, point in tried[:FINALISTS]]


def measure_attack(
    problem: Cell,
    settings: Settings,
    seeds: Sequence[int],
    *,
    searched: int = 0,
    horizons: Sequence[int] = HORIZONS,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> WorstAttack:
    """Measure an attack that watches the agent, next to the scripted ones and at other horizons.

    Args:
        problem: The agent, the world, T and C; its attack is replaced.
        settings: Settings of the attack; at other horizons it starts at the same share of T.
        seeds: Seeds of the report.
        searched: How many runs found it.
        horizons: Where the growth is measured, with C ~ √T.
        jobs: Number of runs at a time.
        progress: Called with the number of runs just finished.
    """
    refuse_tuning_seeds(seeds)
    scripted = {}
    for name, (attack, own) in SCRIPTED.items():
        late = {"start": problem.horizon // 2 + 1} if name.endswith("T/2") else {}
        scripted[name] = replace(problem, attack=attack, attack_settings={**own, **late})
    longer = []
    for horizon in horizons:
        ratio, start = horizon / problem.horizon, settings.get("start", 1)
        budget = max(1, math.ceil(problem.budget * math.sqrt(ratio) - 1e-9))
        scaled = {**settings, "start": max(1, round(start * ratio)) if start > 1 else 1}
        longer.append(attacked(replace(problem, horizon=horizon, budget=budget), scaled))
    cell = attacked(problem, settings)
    regrets = _measured([cell, *scripted.values(), *longer], seeds, jobs, progress)
    others = regrets[1 : 1 + len(scripted)]
    return WorstAttack(
        cell,
        searched,
        regrets[0],
        dict(zip(scripted, others, strict=True)),
        dict(zip(horizons, regrets[1 + len(scripted) :], strict=True)),
    )


def check_attackable(problem: Cell) -> None:
    """Raise :class:`~fairduel.BadInputError` if an attack that watches the agent cannot play this problem."""
    if problem.budget < 1:
        raise BadInputError("an attack needs a budget of at least 1.")
    if issubclass(loaded_class(problem.agent) or object, RewardAgent):
        raise BadInputError(f"{problem.agent} learns from rewards, but the search is for attacks on duels.")
    attacked(problem, {}).check()


def attacked(problem: Cell, settings: Settings) -> Cell:
    """The same problem under an attack that watches the agent."""
    return replace(problem, attack="watching", attack_settings=settings)


def _measured(
    cells: Sequence[Cell], seeds: Sequence[int], jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> Matrix:
    """Run every cell with every seed and return the regrets, shape (cells, seeds); nothing is stored."""
    by_key = {cell.key: cell for cell in cells}
    found: dict[str, dict[int, float]] = {key: {} for key in by_key}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LockInWarning)
        while left := [
            Batch(key, cell, missing)
            for key, cell in by_key.items()
            if (missing := [seed for seed in seeds if seed not in found[key]])
        ]:
            with closing(Local(jobs).run(left)) as finished:
                for key, runs in finished:
                    found[key] |= {run.seed: float(run.trace.regret.sum()) for run in runs}
                    progress(len(runs))
    return np.array([[found[cell.key][seed] for seed in seeds] for cell in cells])
