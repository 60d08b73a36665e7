"""Which agent to use: every dueling agent, untuned, on declared scenarios, against the best one tuned for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairduel.agents import AGENTS, ContextualAgent, DuelingAgent, KArmed, loaded_class
from fairduel.duel import Matrix, Vector
from fairduel.experiments.experiment import title_of
from fairduel.experiments.inference import Mean, jackknifed
from fairduel.experiments.tuning import FIRST_TUNING_SEED, Tuned, collect, refuse_tuning_seeds, variants
from fairduel.simulation import Cell, Storage, count_missing, run_cells

HORIZON = 2000
TUNING_SEEDS = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 20)
RADII = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True)
class Scenario:
    """One problem that every agent faces; what is not said is the paper's set-up."""

    title: str
    attack: str
    attack_settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 45
    warmup: int = 0
    """So many random duels come first, for agents that have a warm-up."""
    dimension: int = 5
    norm: float = 2.0
    world: str = "hypercube"

    def cell(self, agent: str, settings: Mapping[str, Any]) -> Cell:
        """The runs of an agent on it."""
        warm = {"warmup": self.warmup} if self.warmup and hasattr(loaded_class(agent), "warmup") else {}
        return Cell(
            agent=agent,
            attack=self.attack,
            attack_settings=self.attack_settings,
            budget=self.budget,
            horizon=HORIZON,
            world=self.world,
            agent_settings={**settings, **warm},
            world_settings={"dimension": self.dimension, "norm": self.norm},
        )


def _misleading(target: str) -> Scenario:
    return Scenario(f"misleading, {target} target", "misleading", {"target": target})


_BOTH = ("greedy", "adversarial")
SCENARIOS = (
    Scenario("no attack", "none", budget=0),
    Scenario("greedy", "greedy"),
    Scenario("random", "random", {"probability": 0.5}),
    Scenario("adversarial", "adversarial"),
    *(_misleading(target) for target in ("random", "median", "second", "worst")),
    *(Scenario(f"{attack}, C = {budget}", attack, budget=budget) for attack in _BOTH for budget in (15, 120)),
    *(Scenario(f"{attack}, warm-up", attack, warmup=160) for attack in _BOTH),
    *(Scenario(f"{attack}, d = {d}", attack, dimension=d) for attack in _BOTH for d in (3, 6)),
    *(Scenario(f"{attack}, ‖θ*‖ = {norm:g}", attack, norm=norm) for attack in _BOTH for norm in (1.0, 4.0)),
    Scenario("fresh actions, no attack", "none", budget=0, world="fresh"),
    Scenario("fresh actions, greedy", "greedy", world="fresh"),
)
"""Around the paper's set-up (d = 5, ‖θ*‖ = 2, T = 2000, C = 45), one thing changed at a time."""


@dataclass(frozen=True)
class Contender:
    """An agent as a user gets it: no setting is chosen for a scenario."""

    agent: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name on the board."""
        return ", ".join([title_of(self.agent), *map(str, self.settings.values())])

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can: agents of K arms have no use for fresh actions."""
        kind = loaded_class(self.agent)
        return scenario.world != "fresh" or kind is None or not issubclass(kind, KArmed)


_SECOND_FORMS = {
    "rcdb": {"estimator": "one-pass"},
    "maxpairucb": {"estimator": "one-pass"},
    "versatile-db": {"form": "one-learner"},
}
"""Agents that stand on the board twice, and what the second is set to."""


def _contenders(kind: type) -> Iterator[Contender]:
    for name, each in AGENTS.items():
        if issubclass(each, kind):
            yield Contender(name)
            if name in _SECOND_FORMS:
                yield Contender(name, _SECOND_FORMS[name])


CONTENDERS = tuple(_contenders(DuelingAgent))
TUNED = (*_contenders(ContextualAgent), Contender("colstim", {"coupling": "vacdb"}))
"""Those whose radius is tuned for each scenario, to find the best that is possible there."""
_GRID = [{"radius": radius} for radius in RADII]


@dataclass(frozen=True)
class Best:
    """The agent that was best on a scenario's tuning seeds, and its regret on the report's."""

    contender: Contender
    tuning: Tuned
    regret: Vector
    """Shape (seeds,)."""


@dataclass(frozen=True)
class Standing:
    """A line of the board."""

    contender: Contender
    ratios: dict[str, Mean]
    """Its regret over the best tuned agent's, for each scenario that it plays."""
    geometric_mean: Mean
    """Of the ratios."""

    @property
    def worst(self) -> tuple[str, Mean]:
        """The scenario with the largest ratio."""
        return max(self.ratios.items(), key=lambda item: item[1].value)


@dataclass(frozen=True)
class Board:
    """All standings, the smallest worst ratio first, and whom they are measured against."""

    standings: list[Standing]
    best: dict[str, Best]
    """By scenario."""


def tuning_cells() -> list[Cell]:
    """Every trial on the tuning seeds."""
    return [cell for s in SCENARIOS for c in TUNED for cell in variants(s.cell(c.agent, c.settings), _GRID)]


def report_cells() -> list[Cell]:
    """Every untuned agent on every scenario that it plays."""
    return [s.cell(c.agent, c.settings) for s in SCENARIOS for c in CONTENDERS if c.plays(s)]


def count_runs(store: Storage, seeds: Sequence[int]) -> int:
    """How many runs the board still needs; as long as tuning has not named the winners, all of theirs."""
    tuning = count_missing(store, tuning_cells(), TUNING_SEEDS)
    if tuning:
        return tuning + count_missing(store, report_cells(), seeds) + len(SCENARIOS) * len(seeds)
    return count_missing(store, [*report_cells(), *_winning_cells(_winners(store))], seeds)


def compete(
    store: Storage, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> Board:
    """Tune, play and compare; what is in the store is not run again."""
    refuse_tuning_seeds(seeds)
    run_cells(tuning_cells(), TUNING_SEEDS, store, jobs=jobs, progress=progress)
    winners = _winners(store)
    won = _winning_cells(winners)
    run_cells([*report_cells(), *won], seeds, store, jobs=jobs, progress=progress)

    def regret(cell: Cell) -> Vector:
        return store.records(cell, seeds)["regret"].to_numpy()

    best = {s.title: Best(*w, regret(cell)) for s, w, cell in zip(SCENARIOS, winners, won, strict=True)}
    standings = []
    for contender in CONTENDERS:
        played = [s for s in SCENARIOS if contender.plays(s)]
        own = np.stack([regret(s.cell(contender.agent, contender.settings)) for s in played], axis=1)
        theirs = np.stack([best[s.title].regret for s in played], axis=1)
        ratios, geometric_mean = _ratios(own, theirs)
        standings.append(Standing(contender, dict(zip([s.title for s in played], ratios, strict=True)), geometric_mean))
    return Board(sorted(standings, key=lambda standing: standing.worst[1].value), best)


def _winners(store: Storage) -> list[tuple[Contender, Tuned]]:
    """The best tuned agent of each scenario, once tuning is done."""
    return [_tuned_best(scenario, store) for scenario in SCENARIOS]


def _tuned_best(scenario: Scenario, store: Storage) -> tuple[Contender, Tuned]:
    tunings = [(c, collect(scenario.cell(c.agent, c.settings), _GRID, store, TUNING_SEEDS)) for c in TUNED]
    return min(tunings, key=lambda item: item[1].winner.mean)


def _winning_cells(winners: Sequence[tuple[Contender, Tuned]]) -> list[Cell]:
    return [s.cell(c.agent, {**c.settings, **t.winner.settings}) for s, (c, t) in zip(SCENARIOS, winners, strict=True)]


def _ratios(own: Matrix, theirs: Matrix) -> tuple[list[Mean], Mean]:
    """Ratios of mean regrets, for each column, and their geometric mean; errors by leaving out one seed at a time.

    Both are (seeds, scenarios), over the same seeds.
    """
    ratios = own.mean(axis=0) / theirs.mean(axis=0)
    left_out = np.empty((0, len(ratios)))
    if len(own) > 1:
        left_out = np.array([_without(own, i) / _without(theirs, i) for i in range(len(own))])
    geometric_mean = jackknifed(float(np.exp(np.log(ratios).mean())), np.exp(np.log(left_out).mean(axis=1)))
    return [jackknifed(float(r), column) for r, column in zip(ratios, left_out.T, strict=True)], geometric_mean


def _without(regret: Matrix, seed: int) -> Vector:
    return np.asarray(np.delete(regret, seed, axis=0).mean(axis=0))
