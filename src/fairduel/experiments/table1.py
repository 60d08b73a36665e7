"""The paper's Table 1, running: every algorithm in its own setting, its bound beside its measured growth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairduel.duel import Matrix, Vector
from fairduel.experiments.inference import Mean, excess_exponent, exponent, mean
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Cell, Store, run_cells
from fairduel.worlds import RewardWorld

HORIZONS = (1000, 2000, 4000, 8000, 16000)
REFERENCE_HORIZON = 8000
BUDGETS = (25, 50, 100, 200, 400)
REFERENCE_BUDGET = 100

ARMS = ("arms", {"arms": 10, "gap": 0.2})
LINEAR = ("linear", {"dimension": 5, "arms": 20, "norm": 1.0, "noise": 0.1})
PREFERENCES = ("preferences", {"family": "condorcet", "arms": 10, "gap": 0.2})
HYPERCUBE = ("hypercube", {"dimension": 5, "norm": 2.0})


@dataclass(frozen=True)
class Algorithm:
    """One row of the table: what is claimed of an algorithm, and where it is run."""

    title: str
    source: str
    model: str
    """The setting that it is made for."""
    adversary: str
    """Against whom its bound is claimed: weak adversaries commit before they could see the action."""
    bound: str
    needs: str
    """What it must be told."""
    agent: str
    world: tuple[str, Mapping[str, Any]]
    attack: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] | None = None
    """The settings with the constants as published, where they differ from the practical ones."""
    in_paper: bool = True
    """Whether the paper's Table 1 has it."""

    def cell(self, *, horizon: int, budget: int, settings: Mapping[str, Any] | None = None) -> Cell:
        """Its runs at this horizon, under attack if there is a budget."""
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
        """One a horizon, without an attack."""
        return [self.cell(horizon=horizon, budget=0) for horizon in HORIZONS]

    @property
    def cells_in_budget(self) -> list[Cell]:
        """One a budget, at the reference horizon."""
        return [self.cell(horizon=REFERENCE_HORIZON, budget=budget) for budget in BUDGETS]

    @property
    def published_cell(self) -> Cell | None:
        """The reference point with the constants as published."""
        if self.published is None:
            return None
        return self.cell(horizon=REFERENCE_HORIZON, budget=REFERENCE_BUDGET, settings=self.published)

    @property
    def cells(self) -> list[Cell]:
        """All that it takes to fill its row."""
        extra = [self.published_cell] if self.published_cell else []
        return [*self.cells_in_horizon, *self.cells_in_budget, *extra]


_THEORY = {"scale": "theory"}
ALGORITHMS = (
    Algorithm(
        "Multi-layer Active Arm Elimination Race", "Lykouris 2018", "K-armed bandits", "weak", "Õ(K¹·⁵C√T)", "T",
        "arm-race", ARMS, "swap", published=_THEORY,
    ),
    Algorithm(
        "BARBAR", "Gupta 2019", "K-armed bandits", "weak", "Õ(√(KT) + KC)", "T",
        "barbar", ARMS, "swap", published=_THEORY,
    ),
    Algorithm(
        "SBE (our reading)", "Li 2019", "linear bandits", "weak", "Õ(d²C/Δ + d⁵/Δ²)", "T",
        "sbe", LINEAR, "swap", published=_THEORY,
    ),
    Algorithm(
        "Robust Phased Elimination", "Bogunovic 2021", "linear bandits", "strong", "Õ(√(dT) + d¹·⁵C + C²)", "T, C",
        "phased-elimination", LINEAR, "bury", published=_THEORY,
    ),
    Algorithm(
        "Robust Phased Elimination, C unknown", "Bogunovic 2021", "linear bandits", "strong",
        "Õ(√(dT) + d¹·⁵C + C²)", "T",
        "phased-elimination", LINEAR, "bury", settings={"corruption_budget": None},
        published={**_THEORY, "corruption_budget": None},
    ),
    Algorithm(
        "Robust weighted OFUL", "Zhao 2021", "linear contextual bandits", "weak", "Õ(dC√T)", "B, R, C",
        "weighted-oful", LINEAR, "swap", published=_THEORY,
    ),
    Algorithm(
        "Multi-level weighted OFUL", "Zhao 2021", "linear contextual bandits", "weak", "Õ(dC²√T)", "B, R, T",
        "multilevel-oful", LINEAR, "swap", published=_THEORY, in_paper=False,
    ),
    Algorithm(
        "CW-OFUL", "He 2022", "linear contextual bandits", "strong", "Õ(d√T + dC)", "B, R, T, C",
        "cw-oful", LINEAR, "bury", published=_THEORY,
    ),
    Algorithm(
        "COBE over CW-OFUL", "Wei 2022", "linear contextual bandits", "weak only", "Õ(d√T + dC)", "B, R, T",
        "cobe", LINEAR, "swap", published=_THEORY, in_paper=False,
    ),
    Algorithm(
        "WIWR", "Agarwal 2021", "K-armed dueling bandits", "weak", "Õ(K²C/Δ_min + Σ K²/Δ_i²)", "T",
        "wiwr", PREFERENCES, "greedy", published=_THEORY,
    ),
    Algorithm(
        "Versatile-DB", "Saha & Gaillard 2022", "K-armed dueling bandits", "weak", "Õ(C + Σ 1/Δ_i + √K)", "nothing",
        "versatile-db", PREFERENCES, "greedy",
    ),
    Algorithm(
        "Versatile-DB, one learner", "Saha & Gaillard 2022", "K-armed dueling bandits", "weak",
        "Õ(C + Σ 1/Δ_i + √K)", "nothing",
        "versatile-db", PREFERENCES, "greedy", settings={"form": "one-learner"}, in_paper=False,
    ),
    Algorithm(
        "RCDB", "the paper", "contextual dueling bandits", "strong", "Õ(d√T + dC)", "B, T, C",
        "rcdb", HYPERCUBE, "adversarial", published={"radius": "theory"},
    ),
    Algorithm(
        "RCDB-S", "the paper", "contextual dueling bandits", "strong", "Õ(dB¹·⁵√T + dBC/κ)", "B, T, C",
        "rcdb-s", HYPERCUBE, "adversarial", published={"radius": "theory", "slope_radius": "theory"}, in_paper=False,
    ),
    Algorithm(
        "VACDB", "Di 2023", "contextual dueling bandits", "none", "Õ(d√(Σσ_t²) + d); no claim for C > 0", "B, T",
        "vacdb", HYPERCUBE, "adversarial", published={"radius": "theory"}, in_paper=False,
    ),
    Algorithm(
        "FGTS.CDB", "Li 2024", "contextual dueling bandits", "none", "Õ(d√T); no claim for C > 0", "B, T",
        "fgts", HYPERCUBE, "adversarial", in_paper=False,
    ),
)  # fmt: skip
"""Every algorithm of the paper's Table 1, and those near it."""


@dataclass(frozen=True)
class Measured:
    """A row of the table, filled."""

    algorithm: Algorithm
    by_horizon: Matrix
    """Regret without attack, shape (seeds, horizons)."""
    by_budget: Matrix
    """Regret at the reference horizon, shape (seeds, budgets)."""
    in_horizon: Mean
    """Exponent of regret in T without attack."""
    in_budget: Mean
    """Exponent in C of what an attack adds; NaN where that is within the noise."""
    per_corruption: Mean
    """Regret that a unit of C adds: the slope of a straight line, fitted to each run."""
    reference: Mean
    """Regret at the reference point."""
    published: Mean | None
    """The same with the constants as published, where they differ."""
    published_epoch: int
    """The last epoch that any run with these came to, from 1; 0 for an algorithm without epochs."""
    uniform: float
    """What playing uniformly at random would cost at the reference horizon, mean over the seeds."""
    seconds_a_round: float

    @property
    def published_is_uniform(self) -> bool:
        """Whether the published constants leave it exploring for the whole reference horizon."""
        return self.published is not None and self.published.value >= 0.9 * self.uniform


def count_runs(store: Store, seeds: Sequence[int]) -> int:
    """How many runs the table still needs."""
    cells = {cell.key: cell for algorithm in ALGORITHMS for cell in algorithm.cells}
    return sum(len(set(seeds) - store.seeds(cell)) for cell in cells.values())


def measure(
    store: Store, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> list[Measured]:
    """Run what is missing and fill the table."""
    refuse_tuning_seeds(seeds)
    run_cells([cell for each in ALGORITHMS for cell in each.cells], seeds, store, jobs=jobs, progress=progress)
    return [_filled(algorithm, store, seeds) for algorithm in ALGORITHMS]


def _filled(algorithm: Algorithm, store: Store, seeds: Sequence[int]) -> Measured:
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
    """What uniform play costs on average in this world; its actions are the same in every round."""
    _, world, _, _ = replace(cell, attack="none", budget=0).start(seed)
    rewards = world.offer(1).rewards
    shown = 1 if isinstance(world, RewardWorld) else 2
    return float(shown * cell.horizon * (rewards.max() - rewards.mean()))
