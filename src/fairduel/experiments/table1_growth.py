"""The paper's Table 1, measured: every algorithm in its own setting, its bound next to its measured growth."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fairduel.agents import AGENTS
from fairduel.agents.parts.agent import Guarantee, Model
from fairduel.duel import Matrix, Vector
from fairduel.experiments.comparing import group
from fairduel.experiments.sentences import capitalized, listed_few, with_error
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell, Storage, run_cells
from fairduel.stats import Mean, excess_exponent, exponent, mean
from fairduel.words import counted_noun
from fairduel.worlds import RewardWorld

HORIZONS = (1000, 2000, 4000, 8000, 16000)
REFERENCE_HORIZON = 8000
BUDGETS = (25, 50, 100, 200, 400)
REFERENCE_BUDGET = 100


class _Setup(NamedTuple):
    """Where the algorithms of a model run: a world with its settings, a weak attack and a strong one."""

    world: tuple[str, Mapping[str, Any]]
    weak: str
    strong: str


_LINEAR = _Setup(("linear", {"dimension": 5, "arms": 20, "norm": 1.0, "noise": 0.1}), "swap", "bury")
_SETUPS: dict[Model, _Setup] = {
    "K-armed bandits": _Setup(("arms", {"arms": 10, "gap": 0.2}), "swap", "bury"),
    "linear bandits": _LINEAR,
    "linear contextual bandits": _LINEAR,
    "K-armed dueling bandits": _Setup(
        ("preferences", {"family": "condorcet", "arms": 10, "gap": 0.2}), "greedy", "adversarial"
    ),
    "contextual dueling bandits": _Setup(("hypercube", {"dimension": 5, "norm": 2.0}), "greedy", "adversarial"),
}


@dataclass(frozen=True)
class Algorithm:
    """One row of the table: an agent, its guarantee, and where it runs."""

    agent: str
    title: str
    guarantee: Guarantee
    settings: Mapping[str, Any]
    published: Mapping[str, Any] | None
    """The settings with the published constants; ``None`` if they are the practical ones."""

    @property
    def world(self) -> tuple[str, Mapping[str, Any]]:
        """The world it is made for, with its settings."""
        return _SETUPS[self.guarantee.model].world

    @property
    def attack(self) -> str:
        """A weak attack if its bound covers weak ones only; else a strong attack, even if the bound covers none."""
        setup = _SETUPS[self.guarantee.model]
        return setup.weak if self.guarantee.adversary in ("weak", "weak only") else setup.strong

    def cell(self, *, horizon: int, budget: int, settings: Mapping[str, Any] | None = None) -> Cell:
        """Return the cell for a horizon, under attack if the budget is positive."""
        name, world_settings = self.world
        return Cell(
            agent=self.agent,
            attack=self.attack if budget else "none",
            budget=budget,
            horizon=horizon,
            world=name,
            agent_settings=self.settings if settings is None else settings,
            world_settings=world_settings,
        )

    @property
    def cells_in_horizon(self) -> list[Cell]:
        """One cell per horizon, without an attack."""
        return [self.cell(horizon=horizon, budget=0) for horizon in HORIZONS]

    @property
    def cells_in_budget(self) -> list[Cell]:
        """One cell per budget, at the reference horizon."""
        return [self.cell(horizon=REFERENCE_HORIZON, budget=budget) for budget in BUDGETS]

    @property
    def published_cell(self) -> Cell | None:
        """The reference point with the published constants."""
        if self.published is None:
            return None
        return self.cell(horizon=REFERENCE_HORIZON, budget=REFERENCE_BUDGET, settings=self.published)

    @property
    def cells(self) -> list[Cell]:
        """Every cell its row needs."""
        extra = [self.published_cell] if self.published_cell else []
        return [*self.cells_in_horizon, *self.cells_in_budget, *extra]


_SECOND_FORMS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "phased-elimination": ("C unknown", {"corruption_budget": None}, {"needs": "T"}),
    "versatile-db": ("one learner", {"form": "one-learner"}, {"in_paper": False}),
}
"""Agents with a second row: the words added to the title, the settings, and the changes to the guarantee."""


def _rows() -> Iterator[Algorithm]:
    """Every agent with a guarantee, ordered by the paper's models."""
    for model in _SETUPS:
        for name, kind in AGENTS.items():
            guarantee = kind.guarantee
            if guarantee is None or guarantee.model != model:
                continue
            title, published = kind.full_title or kind.title, kind.published_settings
            yield Algorithm(name, title, guarantee, {}, published or None)
            if name in _SECOND_FORMS:
                words, own, changes = _SECOND_FORMS[name]
                constants = {**published, **own} if published else None
                yield Algorithm(name, f"{title}, {words}", guarantee._replace(**changes), own, constants)


ALGORITHMS = tuple(_rows())
"""Every algorithm of the paper's Table 1, and related ones."""


@dataclass(frozen=True)
class Measured:
    """A measured row of the table."""

    algorithm: Algorithm
    by_horizon: Matrix
    """Regret without an attack, shape (seeds, horizons)."""
    by_budget: Matrix
    """Regret at the reference horizon, shape (seeds, budgets)."""
    in_horizon: Mean
    """Exponent of regret in T without an attack."""
    in_budget: Mean
    """Exponent in C of the regret that an attack adds; NaN if that is within the noise."""
    per_corruption: Mean
    """Regret per unit of C: the slope of a straight line fitted to each run."""
    reference: Mean
    """Regret at the reference point."""
    published: Mean | None
    """The same with the published constants; ``None`` if they are the practical ones."""
    published_epoch: int
    """The last epoch that any run with the published constants reached, from 1; 0 without epochs."""
    uniform: float
    """Regret of uniformly random play at the reference horizon, averaged over the seeds."""
    seconds_a_round: float

    @property
    def published_is_uniform(self) -> bool:
        """Whether it explores for the whole reference horizon with the published constants."""
        return self.published is not None and self.published.value >= 0.9 * self.uniform


def all_cells() -> list[Cell]:
    """Return every cell the table needs."""
    return [cell for algorithm in ALGORITHMS for cell in algorithm.cells]


def measure(
    store: Storage, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Measured]:
    """Run what is missing and return the measured rows."""
    refuse_tuning_seeds(seeds)
    run_cells(all_cells(), seeds, store, jobs=jobs, progress=progress)
    return [_filled(algorithm, store, seeds) for algorithm in ALGORITHMS]


def _filled(algorithm: Algorithm, store: Storage, seeds: Sequence[int]) -> Measured:
    def regret(cell: Cell) -> Vector:
        return store.records(cell, seeds)["regret"].to_numpy()

    by_horizon = np.stack([regret(cell) for cell in algorithm.cells_in_horizon], axis=1)
    by_budget = np.stack([regret(cell) for cell in algorithm.cells_in_budget], axis=1)
    clean = by_horizon[:, HORIZONS.index(REFERENCE_HORIZON)]
    budgets = np.array(BUDGETS, dtype=np.float64)
    reference = algorithm.cells_in_budget[BUDGETS.index(REFERENCE_BUDGET)]
    all_budgets = np.array([0.0, *budgets])
    across = all_budgets - all_budgets.mean()
    slopes = np.column_stack([clean, by_budget]) @ across / (across @ across)
    published = algorithm.published_cell
    return Measured(
        algorithm=algorithm,
        by_horizon=by_horizon,
        by_budget=by_budget,
        in_horizon=exponent(np.array(HORIZONS, dtype=np.float64), by_horizon),
        in_budget=excess_exponent(budgets, by_budget, clean),
        per_corruption=mean(slopes),
        reference=mean(regret(reference)),
        published=mean(regret(published)) if published else None,
        published_epoch=int(store.records(published, seeds)["epoch"].to_numpy().max()) if published else 0,
        uniform=float(np.mean([_uniform_regret(reference, seed) for seed in seeds])),
        seconds_a_round=float(store.records(reference, seeds)["seconds"].to_numpy().mean()) / REFERENCE_HORIZON,
    )


def _uniform_regret(cell: Cell, seed: int) -> float:
    """Expected regret of uniform play in this world, whose actions are the same in every round."""
    _, world, _, _ = replace(cell, attack="none", budget=0).start(seed)
    rewards = world.offer(1).rewards
    shown = 1 if isinstance(world, RewardWorld) else 2
    return float(shown * cell.horizon * (rewards.max() - rewards.mean()))


def table1_conclusions(rows: Sequence[Measured]) -> list[str]:
    """State how the measured growth in T and C compares across the algorithms of Table 1."""
    linear = [row.algorithm.title for row in rows if not row.in_horizon.high < 1.0]  # NaN counts as linear
    found = [
        f"Without an attack, regret grows significantly slower than linearly in T for {len(rows) - len(linear)} of "
        f"{len(rows)} algorithms" + (f" (not shown for {listed_few(linear)})." if linear else ".")
    ]
    superlinear = [row.algorithm.title for row in rows if row.in_budget.low > 1.0]
    sublinear = sum(row.in_budget.high < 1.0 for row in rows)
    noise = sum(math.isnan(row.in_budget.value) for row in rows)
    found.append(
        f"The regret added by an attack grows significantly faster than linearly in C for {len(superlinear)} algorithms"
        + (f" ({listed_few(superlinear)})" if superlinear else "")
        + f" and significantly slower for {sublinear}; for {noise} it is within the noise, for the rest undecided."
    )
    for (model, attack), same in group(rows, lambda r: (r.algorithm.guarantee.model, r.algorithm.attack)).items():
        best = min(same, key=lambda row: row.reference.value)
        if len(same) > 1:
            found.append(
                f"{capitalized(model)}, {attack} attack: of {len(same)} algorithms, {best.algorithm.title} has the "
                f"lowest mean regret, {with_error(best.reference)}."
            )
    uniform = [row.algorithm.title for row in rows if row.published_is_uniform]
    if uniform:
        titles = listed_few(uniform)
        found.append(f"At this horizon, the published constants are no better than uniform play for {titles}.")
    return [*found, f"{counted_noun(len(rows[0].by_horizon), 'run')} per cell; ± is one standard error."]
