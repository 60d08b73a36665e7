"""Tuning: the best settings of a declared grid, on seeds that no report uses."""

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any, TypeVar

from fairduel.agents import AGENTS, loaded_class
from fairduel.core.radius import rcdbs_ridge
from fairduel.errors import BadInputError
from fairduel.experiments.paper_setup import (
    BASELINES,
    BUDGET,
    DIMENSION,
    FIGURE1_PANELS,
    GREEDY,
    NO_ATTACK,
    PAPER_ATTACKS,
    WARMUP,
    Attack,
    paper_cell,
)
from fairduel.experiments.sentences import listed_few, settings_text, title_of
from fairduel.simulation import Cell, Storage, run_cells
from fairduel.stats import mean

FIRST_TUNING_SEED = 1_000_000
"""Tuning seeds start here; report seeds stay below."""
TUNING_RUNS = 50
RADII = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
THEORY_SCALES = tuple(float(f"{10 ** (step / 4):.2g}") for step in range(-18, -1))
"""From 3.2e-05 to 0.32, four per decade."""
PRE_TUNED: Mapping[str, Any] = {"radius": "pre-tuned"}
"""Settings of an agent that plays with the constants that a search found for it."""


Found = TypeVar("Found", "Chosen", "Tuned")


def is_searched(agent: str) -> bool:
    """Whether an agent has constants that a search found, besides those it has by default."""
    return getattr(AGENTS[agent], "pre_tuned", None) is not None


def tuning_seeds(runs: int = TUNING_RUNS) -> range:
    """Return the first ``runs`` tuning seeds."""
    return range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + runs)


def refuse_tuning_seeds(seeds: Iterable[int]) -> None:
    """Raise if a report would use seeds on which its settings may have been tuned."""
    if max(seeds, default=0) >= FIRST_TUNING_SEED:
        raise BadInputError(f"seeds from {FIRST_TUNING_SEED} on are reserved for tuning; choose a smaller seed.")


@dataclass(frozen=True)
class Trial:
    """One point of the grid and its regret."""

    settings: dict[str, Any]
    mean: float
    standard_error: float


@dataclass(frozen=True)
class Chosen:
    """What a tuning chose."""

    problem: Cell
    """The cell, without the tuned settings."""
    seeds: tuple[int, int]
    """First and last tuning seed."""
    winner: Trial
    at_edge: bool
    """Whether a wider grid might do better, because the best value of some number is the smallest or largest."""


@dataclass(frozen=True)
class Tuned:
    """A finished tuning: the problem, the seeds and every trial."""

    problem: Cell
    """The cell, without the tuned settings."""
    seeds: tuple[int, int]
    """First and last tuning seed."""
    trials: list[Trial]

    @property
    def winner(self) -> Trial:
        """The trial with the lowest mean regret; of equals, the first in the grid."""
        return min(self.trials, key=lambda trial: trial.mean)

    @property
    def at_edge(self) -> bool:
        """Whether the best value of some number is the smallest or largest of the grid."""
        for name, best in self.winner.settings.items():
            values = {trial.settings.get(name) for trial in self.trials}
            numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
            if len(values) > 1 and len(numbers) == len(values) and best in (min(numbers), max(numbers)):
                return True
        return False

    @property
    def conclusion(self) -> str:
        """Which settings are best, in words."""
        best, problem = self.winner, self.problem
        attack = "no attack" if problem.attack == "none" else f"{problem.attack} attack"
        late = f", {problem.delay} delay" if problem.is_delayed else ""
        regret = f"{best.mean:,.0f} ± {best.standard_error:,.0f}"
        text = (
            f"{title_of(problem.agent)}, {attack}{late}, C = {problem.budget}, T = {problem.horizon:,}: "
            f"{settings_text(best.settings)} has the lowest mean regret, {regret}, of "
            f"{len(self.trials)} settings on {self.seeds[1] - self.seeds[0] + 1} tuning seeds."
        )
        close = [
            settings_text(trial.settings)
            for trial in self.trials
            if trial is not best
            and trial.mean - best.mean <= 2.0 * math.hypot(trial.standard_error, best.standard_error)
        ]
        if close:
            text += f" Within two standard errors of it: {listed_few(close)}."
        if self.at_edge:
            text += " It is at the edge of the grid: a wider grid may find a better one."
        return text

    def as_json(self) -> dict[str, Any]:
        """Return plain values, including the winner."""
        return asdict(self) | {"winner": asdict(self.winner), "at_edge": self.at_edge}


def grid(agent: str) -> list[dict[str, Any]]:
    """Return the default grid of an agent: every radius with every combination of its other choices."""
    kind = loaded_class(agent)
    if kind is not None and not hasattr(kind, "radius"):
        raise BadInputError(f"{agent} has no radius to tune; give the values to try, for example --grid scale=0.1,1.")
    choices = kind.tuned_choices if kind else {}
    points = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    return [{"radius": radius, **point} for point in points for radius in RADII]


def theory_grid() -> list[dict[str, Any]]:
    """Return the grid that scales down the theorems' radii by one constant."""
    return [{"radius": "theory", "radius_scale": scale} for scale in THEORY_SCALES]


def variants(cell: Cell, settings: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return a copy of ``cell`` for each of the settings, which are added to its own."""
    return [replace(cell, agent_settings={**cell.agent_settings, **extra}) for extra in settings]


Problem = tuple[Cell, Sequence[Mapping[str, Any]]]
"""A cell to tune, and the settings to try."""


def trial_cells(problems: Iterable[Problem]) -> list[Cell]:
    """Return every cell that the problems need."""
    return [variant for cell, settings in problems for variant in variants(cell, settings)]


def tune_all(
    problems: Sequence[Problem],
    store: Storage,
    runs: int,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Tuned]:
    """Run what is missing of each problem's grid on ``runs`` tuning seeds, and return the tunings."""
    run_cells(trial_cells(problems), tuning_seeds(runs), store, jobs=jobs, progress=progress)
    return [collect(cell, settings, store, tuning_seeds(runs)) for cell, settings in problems]


def collect(cell: Cell, settings: Sequence[Mapping[str, Any]], store: Storage, seeds: Sequence[int]) -> Tuned:
    """Collect a tuning whose runs are all in the store."""
    if min(seeds) < FIRST_TUNING_SEED:
        raise BadInputError(f"seeds below {FIRST_TUNING_SEED} are reserved for reports; tune on larger ones.")
    trials = []
    for extra, variant in zip(settings, variants(cell, settings), strict=True):
        regret = mean(store.records(variant, seeds)["regret"].to_numpy())
        trials.append(Trial(dict(extra), regret.value, regret.error))
    return Tuned(cell, (min(seeds), max(seeds)), trials)


def paper_problems() -> list[Problem]:
    """Return every tuning that the built-in experiments rely on."""
    problems: list[Problem] = [
        (tuning_problem(agent, attack, warmup), grid(agent))
        for agent, warmup in [*itertools.product(BASELINES, (0, WARMUP)), ("rcdb", WARMUP)]
        for attack in FIGURE1_PANELS
    ]
    problems += [
        (sigmoid_problem(agent, attack, norm), theory_grid())
        for agent in ("rcdb", "rcdb-s")
        for attack in (NO_ATTACK, GREEDY)
        for norm in (1.0, 2.0, 3.0, 4.0, 5.0)
    ]
    return problems


def tuning_problem(agent: str, attack: Attack, warmup: int) -> Cell:
    """Return an agent on the paper's setup, to be tuned for one attack after ``warmup`` random duels."""
    return paper_cell(agent, attack, {"warmup": warmup} if warmup else {})


def sigmoid_problem(agent: str, attack: Attack, norm: float) -> Cell:
    """Return RCDB or RCDB-S with its theorem's radii, to be scaled for one attack and one norm of θ*.

    Both get Theorem new's ridge, λ = d/B, so that they differ only in how they explore. It is also better for RCDB than
    its own, 1/B².
    """
    ridge = rcdbs_ridge(DIMENSION, norm)
    return sigmoid_cell(agent, attack, norm, {**AGENTS[agent].published_settings, "ridge": ridge})


def sigmoid_cell(agent: str, attack: Attack, norm: float, settings: Mapping[str, Any] | None = None) -> Cell:
    """Return a cell of the paper's setup with another norm of θ*; without an attack, agents are told C = 0."""
    budget = 0 if attack is NO_ATTACK else BUDGET
    world = {"dimension": DIMENSION, "norm": norm}
    return paper_cell(agent, attack, settings, world_settings=world, budget=budget)


def best_for_all(tunings: Sequence[Tuned]) -> dict[str, Any]:
    """Return the setting with the lowest worst mean over tunings with the same grid."""
    by_setting = zip(*(tuning.trials for tuning in tunings), strict=True)
    best: tuple[Trial, ...] = min(by_setting, key=lambda trials: max(trial.mean for trial in trials))
    return best[0].settings


def to_ship(tunings: Sequence[Tuned]) -> str:
    """Return what ``chosen.json`` has to contain, given the tunings of :func:`paper_problems`.

    Its first list has the winner of each tuning, its second the best single setting of each baseline for the paper's
    four attacks. One entry per line.
    """
    chosen = [asdict(Chosen(each.problem, each.seeds, each.winner, each.at_edge)) for each in tunings]
    single = [
        {
            "agent": agent,
            "warmup": warmup,
            "settings": best_for_all([_of(tunings, tuning_problem(agent, attack, warmup)) for attack in PAPER_ATTACKS]),
        }
        for agent, warmup in itertools.product(BASELINES, (0, WARMUP))
    ]
    lists = (",\n  ".join(map(json.dumps, entries)) for entries in (chosen, single))
    return "[\n [\n  {}\n ],\n [\n  {}\n ]\n]\n".format(*lists)


def _of(tunings: Iterable[Found], problem: Cell) -> Found:
    for tuning in tunings:
        if tuning.problem == problem:
            return tuning
    raise BadInputError(f"no stored tuning of {problem.agent} under {problem.attack}; run fairduel tune all.")


def published(problem: Cell) -> Chosen:
    """Return what ships with fairduel as the tuning of this problem, made by ``fairduel tune all``."""
    return _of(_shipped()[0], problem)


def tuned_cell(problem: Cell) -> Cell:
    """Return the problem's cell with the winning settings of its stored tuning."""
    [cell] = variants(problem, [published(problem).winner.settings])
    return cell


def best_single_setting(agent: str, warmup: int) -> dict[str, Any]:
    """Return the setting of a baseline with the lowest worst mean over the paper's four attacks on the tuning seeds."""
    return dict(_shipped()[1][agent, warmup])


@functools.cache
def _shipped() -> tuple[list[Chosen], dict[tuple[str, int], dict[str, Any]]]:
    text = files("fairduel.experiments").joinpath("chosen.json").read_text(encoding="utf-8")
    chosen, single = json.loads(text)
    return (
        [
            Chosen(Cell(**each["problem"]), tuple(each["seeds"]), Trial(**each["winner"]), each["at_edge"])
            for each in chosen
        ],
        {(each["agent"], each["warmup"]): each["settings"] for each in single},
    )
