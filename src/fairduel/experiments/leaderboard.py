"""Which agent to use: every dueling agent, untuned, compared with the best tuned agent on declared scenarios."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fairduel.agents import AGENTS, ContextualAgent, DuelingAgent, KArmed, loaded_class
from fairduel.agents.by_name import find
from fairduel.duel import Matrix, Vector
from fairduel.experiments.experiment import settings_text, title_of
from fairduel.experiments.inference import Mean, jackknife
from fairduel.experiments.tuning import FIRST_TUNING_SEED, Tuned, collect, refuse_tuning_seeds, variants
from fairduel.simulation import Cell, Storage, count_missing, run_cells

HORIZON = 2000
TUNING_SEEDS = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 20)
RADII = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
STORING_SECONDS = 0.004
"""Approximate time per run for starting it and storing its trace."""


@dataclass(frozen=True)
class Scenario:
    """One problem that every agent faces; the defaults are the paper's setup.

    Args:
        title: Its name on the board.
        attack: Name of the attack.
        attack_settings: Settings of the attack.
        budget: C, the maximum number of flips; agents that take a flip budget are told C.
        warmup: Number of random duels that come first, for agents that have a warm-up.
        dimension: d of the world.
        norm: ‖θ*‖.
        world: Name of the world.
    """

    title: str
    attack: str
    attack_settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 45
    warmup: int = 0
    dimension: int = 5
    norm: float = 2.0
    world: str = "hypercube"

    def cell(self, agent: str, settings: Mapping[str, Any]) -> Cell:
        """Return the cell of an agent in this scenario."""
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


_BOTH = ("greedy", "adversarial")
SCENARIOS = (
    Scenario("no attack", "none", budget=0),
    Scenario("greedy", "greedy"),
    Scenario("random", "random", {"probability": 0.5}),
    Scenario("adversarial", "adversarial"),
    *(
        Scenario(f"misleading, {target} target", "misleading", {"target": target})
        for target in ("random", "median", "second", "worst")
    ),
    *(Scenario(f"{attack}, C = {budget}", attack, budget=budget) for attack in _BOTH for budget in (15, 120)),
    *(Scenario(f"{attack}, warm-up", attack, warmup=160) for attack in _BOTH),
    *(Scenario(f"{attack}, d = {d}", attack, dimension=d) for attack in _BOTH for d in (3, 6)),
    *(Scenario(f"{attack}, ‖θ*‖ = {norm:g}", attack, norm=norm) for attack in _BOTH for norm in (1.0, 4.0)),
    Scenario("fresh actions, no attack", "none", budget=0, world="fresh"),
    Scenario("fresh actions, greedy", "greedy", world="fresh"),
)
"""Around the paper's setup (d = 5, ‖θ*‖ = 2, T = 2000, C = 45), with one thing changed at a time."""


@dataclass(frozen=True)
class Contender:
    """An agent as a user gets it: none of its settings is chosen for a scenario.

    Args:
        agent: Name of a built-in agent, or ``module:Class`` of your own.
        settings: Settings that it has in every scenario.
    """

    agent: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name on the board."""
        settings = [v if isinstance(v, str) else settings_text({name: v}) for name, v in self.settings.items()]
        return ", ".join([title_of(self.agent), *settings])

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can play a scenario: K-armed agents need the same actions in every round."""
        kind = loaded_class(self.agent)
        return scenario.world != "fresh" or kind is None or not issubclass(kind, KArmed)

    def cells(self) -> dict[str, Cell]:
        """Return its cell in each scenario that it plays, by the scenario's title."""
        return {s.title: s.cell(self.agent, self.settings) for s in SCENARIOS if self.plays(s)}


_SECOND_FORMS = {
    "rcdb": {"estimator": "one-pass"},
    "maxpairucb": {"estimator": "one-pass"},
    "versatile-db": {"form": "one-learner"},
}
"""Agents listed twice, with the settings of the second form."""


def _contenders(kind: type) -> Iterator[Contender]:
    for name, each in AGENTS.items():
        if issubclass(each, kind):
            yield Contender(name)
            if name in _SECOND_FORMS:
                yield Contender(name, _SECOND_FORMS[name])


CONTENDERS = tuple(_contenders(DuelingAgent))
TUNED = (*_contenders(ContextualAgent), Contender("colstim", {"coupling": "vacdb"}))
"""The agents whose radius is tuned for each scenario, to find the lowest regret possible there."""
_GRID = [{"radius": radius} for radius in RADII]


@dataclass(frozen=True)
class Best:
    """The agent that was best on a scenario's tuning seeds, and its regret on the report's seeds."""

    contender: Contender
    tuning: Tuned
    regret: Vector
    """Shape (seeds,)."""


@dataclass(frozen=True)
class Standing:
    """One row of the board."""

    contender: Contender
    ratios: dict[str, Mean]
    """Its regret over that of the best tuned agent, by scenario; only the scenarios that it plays."""
    geometric_mean: Mean
    """Of the ratios."""

    @property
    def worst(self) -> tuple[str, Mean]:
        """The scenario with the largest ratio."""
        return max(self.ratios.items(), key=lambda item: item[1].value)


@dataclass(frozen=True)
class Board:
    """All standings, smallest worst ratio first, and the tuned agents they are compared with."""

    standings: list[Standing]
    best: dict[str, Best]
    """By scenario."""


class Work(NamedTuple):
    """What a board has yet to run."""

    runs: int
    minutes: float
    """An estimate."""


def lineup(extra: Sequence[Contender] = ()) -> list[Contender]:
    """Return all built-in contenders and the ``extra`` ones, each once.

    Raises:
        BadInputError: If an extra agent does not exist or cannot play.
    """
    added: list[Contender] = []
    for contender in extra:
        find("agent", contender.agent, AGENTS)  # imports a user's module
        if contender not in (*CONTENDERS, *added):
            added.append(contender)
    for contender in added:
        for cell in contender.cells().values():
            cell.check()
    return [*CONTENDERS, *added]


def tuning_cells() -> list[Cell]:
    """Return every trial on the tuning seeds."""
    return [cell for contender in TUNED for cell in _trials(contender)]


def report_cells(extra: Sequence[Contender] = ()) -> list[Cell]:
    """Return the cells of every untuned agent, the ``extra`` ones included, on every scenario that it plays."""
    return [cell for contender in lineup(extra) for cell in contender.cells().values()]


def count_runs(store: Storage, seeds: Sequence[int], extra: Sequence[Contender] = ()) -> int:
    """Return how many runs the board still needs."""
    return sum(group.missing for group in _remaining(store, seeds, extra))


def estimate(store: Storage, seeds: Sequence[int], extra: Sequence[Contender] = (), *, jobs: int = 1) -> Work:
    """Estimate the work that :func:`compete` has left, from the time of one run per agent and kind of world.

    Args:
        store: Where finished runs are kept. A run that has to be timed first is added to it.
        seeds: The report's seeds.
        extra: Additional contenders.
        jobs: Number of runs at a time.
    """
    refuse_tuning_seeds(seeds)
    seconds = sum(group.missing * _seconds_per_run(store, group) for group in _remaining(store, seeds, extra))
    return Work(count_runs(store, seeds, extra), seconds / jobs / 60.0)


def compete(
    store: Storage,
    seeds: Sequence[int],
    extra: Sequence[Contender] = (),
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Board:
    """Tune, run and compare the agents; runs that are in the store are not repeated.

    Args:
        store: Where finished runs are kept.
        seeds: The report's seeds, all below the tuning seeds.
        extra: Additional contenders, for instance ``[Contender("my_agents:Coin")]``.
        jobs: Number of runs at a time.
        progress: Called with the number of runs just finished.
    """
    refuse_tuning_seeds(seeds)
    contenders = lineup(extra)
    run_cells(tuning_cells(), TUNING_SEEDS, store, jobs=jobs, progress=progress)
    winners = _winners(store)
    cells = [*report_cells(extra), *(winner.cell for winner in winners.values())]
    run_cells(cells, seeds, store, jobs=jobs, progress=progress)

    def regret(cell: Cell) -> Vector:
        return store.records(cell, seeds)["regret"].to_numpy()

    best = {title: Best(w.contender, w.tuning, regret(w.cell)) for title, w in winners.items()}
    standings = []
    for contender in contenders:
        played = contender.cells()
        own = np.stack([regret(cell) for cell in played.values()], axis=1)
        theirs = np.stack([best[title].regret for title in played], axis=1)
        ratios, geometric_mean = _ratios(own, theirs)
        standings.append(Standing(contender, dict(zip(played, ratios, strict=True)), geometric_mean))
    return Board(sorted(standings, key=lambda standing: standing.worst[1].value), best)


class _Winner(NamedTuple):
    """The best tuned agent of a scenario, and its cell there."""

    contender: Contender
    tuning: Tuned
    cell: Cell


def _winners(store: Storage) -> dict[str, _Winner]:
    """The winner of each scenario, once tuning is done."""
    return {scenario.title: _winner(scenario, store) for scenario in SCENARIOS}


def _winner(scenario: Scenario, store: Storage) -> _Winner:
    tunings = [(c, collect(scenario.cell(c.agent, c.settings), _GRID, store, TUNING_SEEDS)) for c in TUNED]
    best, tuning = min(tunings, key=lambda item: item[1].winner.mean)
    return _Winner(best, tuning, scenario.cell(best.agent, {**best.settings, **tuning.winner.settings}))


def _trials(contender: Contender) -> list[Cell]:
    return [trial for cell in contender.cells().values() for trial in variants(cell, _GRID)]


class _Group(NamedTuple):
    """Cells whose runs cost about the same: one of them, their seeds, and the number of missing runs."""

    cell: Cell
    seeds: Sequence[int]
    missing: int


def _remaining(store: Storage, seeds: Sequence[int], extra: Sequence[Contender]) -> list[_Group]:
    """All missing runs, by agent and world."""

    def group(cells: Sequence[Cell], seeds: Sequence[int]) -> _Group:
        return _Group(cells[0], seeds, count_missing(store, cells, seeds))

    def by_world(cells: Sequence[Cell], seeds: Sequence[int]) -> list[_Group]:
        worlds = dict.fromkeys(cell.world for cell in cells)
        return [group([cell for cell in cells if cell.world == world], seeds) for world in worlds]

    tuning = [each for contender in TUNED for each in by_world(_trials(contender), TUNING_SEEDS)]
    report = [each for contender in lineup(extra) for each in by_world([*contender.cells().values()], seeds)]
    if any(each.missing for each in tuning):
        # Tuning has yet to name the winners: the first tuned agent stands in for all of them.
        stand_in = SCENARIOS[0].cell(TUNED[0].agent, TUNED[0].settings)
        winners = [_Group(stand_in, seeds, len(SCENARIOS) * len(seeds))]
    else:
        winners = [group([winner.cell], seeds) for winner in _winners(store).values()]
    return [each for each in (*tuning, *report, *winners) if each.missing]


def _seconds_per_run(store: Storage, group: _Group) -> float:
    """The mean time of the stored runs of the group's cell; if there are none, make the first."""
    cell = group.cell
    if not store.seeds(cell):
        replace(cell, horizon=3).run(group.seeds[0])  # compiles
        run_cells([cell], group.seeds[:1], store)
    return STORING_SECONDS + float(store.records(cell, store.seeds(cell))["seconds"].to_numpy().mean())


def _ratios(own: Matrix, theirs: Matrix) -> tuple[list[Mean], Mean]:
    """The ratio of mean regrets in each scenario, and their geometric mean; both arguments are (seeds, scenarios)."""

    def ratios(runs: Vector) -> Vector:
        return np.asarray(runs[0].mean(axis=-1) / runs[1].mean(axis=-1))

    runs = np.stack([own.T, theirs.T])
    each = [jackknife(lambda sample: float(ratios(sample)), runs[:, number]) for number in range(own.shape[1])]
    return each, jackknife(lambda sample: float(np.exp(np.log(ratios(sample)).mean())), runs)
