"""Which agent to use: every dueling agent, untuned, compared with the best tuned agent on declared scenarios."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fairduel.adversaries.searching import worst_found
from fairduel.agents import AGENTS, DuelingAgent, KArmed, loaded_class
from fairduel.by_name import find, takes
from fairduel.duel import Matrix, Vector
from fairduel.experiments.sentences import settings_text, title_of
from fairduel.experiments.tuning import PRE_TUNED, is_searched, refuse_tuning_seeds, tuning_seeds
from fairduel.simulation import Cell, Storage, count_missing, run_cells
from fairduel.simulation.cell import takes_budget
from fairduel.stats import Mean, jackknife, mean

Half = Literal["held-out", "tuning"]
"""Whether Sceptic's or RCDB's constants were chosen on problems like a scenario."""
HALVES: tuple[Half, ...] = get_args(Half)


@dataclass(frozen=True)
class Scenario:
    """One problem that every agent faces; the defaults are the paper's setup.

    Args:
        half: ``"tuning"`` if constants of Sceptic or RCDB were chosen on such a problem, else ``"held-out"``.
        budget: C, the maximum number of flips.
        dimension: d of the world.
        norm: ‖θ*‖.
        world_settings: Other settings of the world. If they name a link, agents are told that it is logistic.
    """

    title: str
    half: Half
    attack: str
    attack_settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 45
    dimension: int = 5
    norm: float = 2.0
    horizon: int = 2000
    world: str = "hypercube"
    world_settings: Mapping[str, Any] = field(default_factory=dict)
    delay: str = "none"
    delay_settings: Mapping[str, Any] = field(default_factory=dict)


def _tuning_half() -> list[Scenario]:
    """The paper's setup (d = 5, ‖θ*‖ = 2, T = 2000, C = 45) with one thing changed at a time."""

    def scenario(title: str, attack: str, settings: Mapping[str, Any] | None = None, **changes: Any) -> Scenario:
        return Scenario(title, "tuning", attack, settings or {}, **changes)

    both = ("greedy", "adversarial")
    return [
        scenario("no attack", "none", budget=0),
        scenario("greedy", "greedy"),
        scenario("random", "random", {"probability": 0.5}),
        scenario("adversarial", "adversarial"),
        *(
            scenario(f"misleading, {target} target", "misleading", {"target": target})
            for target in ("random", "median", "second", "worst")
        ),
        *(scenario(f"{attack}, C = 120", attack, budget=120) for attack in both),
        scenario("adversarial from round 3C", "adversarial", {"start": 136}),
        scenario("adversarial from round T/2", "adversarial", {"start": 1001}),
        scenario("adversarial, every 10th round", "adversarial", {"every": 10}),
        *(scenario(f"{attack}, d = {d}", attack, dimension=d) for attack in both for d in (3, 6)),
        *(scenario(f"{attack}, ‖θ*‖ = {norm:g}", attack, norm=norm) for attack in both for norm in (1.0, 4.0)),
        scenario("fresh, d = 10, adversarial", "adversarial", dimension=10, world="fresh"),
    ]


def _held_out_half() -> list[Scenario]:
    """Other values of C, ‖θ*‖, d and T, and other worlds, than any constants were chosen on."""

    def scenario(title: str, attack: str, settings: Mapping[str, Any] | None = None, **changes: Any) -> Scenario:
        return Scenario(title, "held-out", attack, settings or {}, **changes)

    ties, late = {"ties": "davidson(0.5)"}, {"rounds": 100}
    return [
        scenario("greedy, C = 15", "greedy", budget=15),
        scenario("adversarial, C = 15", "adversarial", budget=15),
        scenario("adversarial, C = 200", "adversarial", budget=200),
        scenario("adversarial, every 10th round, C = 200", "adversarial", {"every": 10}, budget=200),
        scenario("misleading, second target, C = 200", "misleading", {"target": "second"}, budget=200),
        scenario(
            "misleading from T/2, worst target, C = 20", "misleading", {"target": "worst", "start": 1001}, budget=20
        ),
        scenario("no attack, ‖θ*‖ = 3", "none", budget=0, norm=3.0),
        scenario("greedy, ‖θ*‖ = 6", "greedy", norm=6.0),
        scenario("misleading, median target, ‖θ*‖ = 1.5", "misleading", {"target": "median"}, norm=1.5),
        scenario("ties, no attack", "none", budget=0, world_settings=ties),
        scenario("ties, adversarial", "adversarial", world_settings=ties),
        scenario("100 rounds late, greedy", "greedy", delay="fixed", delay_settings=late),
        scenario("about 100 rounds late, adversarial", "adversarial", delay="stochastic"),
        scenario("probit, adversarial", "adversarial", world_settings={"link": "probit"}),
        scenario("clipped linear, greedy", "greedy", world_settings={"link": "clipped-linear"}),
        scenario("20 vertices of d = 10, no attack", "none", budget=0, dimension=10, world_settings={"count": 20}),
        scenario("40 vertices of d = 8, adversarial", "adversarial", dimension=8, world_settings={"count": 40}),
        scenario("fresh, no attack", "none", budget=0, world="fresh"),
        scenario("fresh, greedy", "greedy", world="fresh"),
        scenario("fresh, d = 16, adversarial", "adversarial", dimension=16, world="fresh"),
        scenario("fresh, d = 32, misleading, T = 1000", "misleading", dimension=32, horizon=1000, world="fresh"),
        scenario("greedy, T = 500, C = 20", "greedy", budget=20, horizon=500),
        scenario("misleading, T = 8000, C = 150", "misleading", budget=150, horizon=8000),
    ]


SCENARIOS = (*_held_out_half(), *_tuning_half())


@dataclass(frozen=True)
class Contender:
    """An agent as a user gets it: none of its settings is chosen for a scenario.

    Args:
        agent: Name of a built-in agent, or ``module:Class`` of your own.
        settings: Settings that it has in every scenario; ``known_budget`` False if C is hidden from it.
    """

    agent: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_told(self) -> bool:
        """Whether it knows C."""
        return takes_budget(self.agent) and bool(self.settings.get("known_budget", True))

    @property
    def title(self) -> str:
        """Its name on the board.

        >>> Contender("rcdb", {"known_budget": False}).title
        'RCDB, C unknown'
        """
        own = {name: value for name, value in self.settings.items() if name != "known_budget"}
        settings = [v if isinstance(v, str) else settings_text({name: v}) for name, v in own.items()]
        told = [f"C {'known' if self.is_told else 'unknown'}"] if takes_budget(self.agent) else []
        return ", ".join([title_of(self.agent), *settings, *told])

    @property
    def forms(self) -> "list[Contender]":
        """Itself with C known and unknown, if it takes a flip budget and its settings do not say which."""
        if not takes_budget(self.agent) or "known_budget" in self.settings:
            return [self]
        return [self, replace(self, settings={**self.settings, "known_budget": False})]

    def plays(self, scenario: Scenario) -> bool:
        """Whether it can play a scenario: K-armed agents need the same actions in every round."""
        kind = loaded_class(self.agent)
        return scenario.world != "fresh" or kind is None or not issubclass(kind, KArmed)

    def cell(self, scenario: Scenario) -> Cell:
        """Return its cell in a scenario."""
        is_misled = "link" in scenario.world_settings and takes(find("agent", self.agent, AGENTS), "link")
        return Cell(
            agent=self.agent,
            attack=scenario.attack,
            attack_settings=scenario.attack_settings,
            budget=scenario.budget,
            horizon=scenario.horizon,
            world=scenario.world,
            agent_settings={**self.settings, **({"link": "logistic"} if is_misled else {})},
            world_settings={"dimension": scenario.dimension, "norm": scenario.norm, **scenario.world_settings},
            delay=scenario.delay,
            delay_settings=scenario.delay_settings,
        )

    def attacked(self) -> Cell | None:
        """Return its cell in the paper's setup under the worst attack found on it; ``None`` if none was searched."""
        settings = worst_found().get(self.title)
        if settings is None:
            return None
        return self.cell(Scenario("the worst attack found", "tuning", "watching", settings))

    def cells(self) -> dict[str, Cell]:
        """Return its cell in each scenario that it plays, by the scenario's title."""
        return {scenario.title: self.cell(scenario) for scenario in SCENARIOS if self.plays(scenario)}


CONTENDERS = tuple(
    form
    for name, kind in AGENTS.items()
    if issubclass(kind, DuelingAgent)
    for settings in ({}, *([PRE_TUNED] if is_searched(name) else []))
    for form in Contender(name, settings).forms
)
"""Every dueling agent as it comes, and those whose constants were searched also with these."""
ROBUST = Contender("sceptic", {"robust": True, "known_budget": False})
"""Sceptic against an attacker who sees it."""
RANDOM = Contender("random-pairs")
"""What every agent should beat."""
RADII = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
WARMUPS = (40, 80, 160, 320)
CANDIDATES = (
    *(
        Contender(agent, {"radius": radius, **settings})
        for agent, settings in (
            *((name, {}) for name in ("maxpairucb", "maxinp", "rcdb", "rcdb-s", "sceptic", "hcw", "ginop", "colstim")),
            ("colstim", {"coupling": "vacdb"}),
        )
        for radius in RADII
    ),
    *(
        Contender(agent, {"radius": radius, "warmup": warmup})
        for agent in ("maxpairucb", "maxinp")
        for warmup in WARMUPS
        for radius in RADII[1:6]
    ),
)
"""The settings tried in each scenario, to find the lowest regret possible there."""


class Rung(NamedTuple):
    """A stage of tuning."""

    runs: int
    """The number of tuning seeds."""
    kept: int
    """How many candidates take part: the best on the seeds of the rung before."""


RUNGS = (Rung(8, len(CANDIDATES)), Rung(24, 16), Rung(64, 5))
"""Successive halving: lock-in is heavy-tailed, so the best few need many seeds."""


@dataclass(frozen=True)
class Best:
    """The candidate that was best on a scenario's tuning seeds, and its regret on the report's seeds."""

    contender: Contender
    tuning: Mean
    """Its regret on the tuning seeds."""
    regret: Vector
    """Shape (seeds,)."""


class Summary(NamedTuple):
    """An agent's ratios in some scenarios."""

    worst: Mean
    where: str
    """The scenario with the largest ratio."""
    geometric_mean: Mean


@dataclass(frozen=True)
class BoardRow:
    """One row of the board."""

    contender: Contender
    regret: dict[str, Vector]
    """Shape (seeds,), by scenario; only the scenarios that it plays."""
    ratios: dict[str, Mean]
    """Its mean regret over that of the best tuned agent."""
    overall: Summary
    halves: dict[Half, Summary]
    recommended_best: Mean
    """How often its final recommendation is the best action, over all scenarios that it plays."""
    recommendation_regret: Mean
    attacked: Mean | None = None
    """Its regret under the worst attack that a search has found on it, in the paper's setup."""


@dataclass(frozen=True)
class Board:
    """All standings, smallest worst ratio first, and the tuned agents they are compared with."""

    scenarios: Sequence[Scenario]
    standings: list[BoardRow]
    best: dict[str, Best]
    """By scenario."""

    def compare(self, first: BoardRow, second: BoardRow, titles: Sequence[str], confidence: float = 0.95) -> Mean:
        """Return the logarithm of the geometric mean of the first's regret over the second's, paired by seed."""
        runs = np.stack([[standing.regret[title] for title in titles] for standing in (first, second)])

        def statistic(sample: Matrix) -> float:
            own, other = np.log(sample.mean(axis=-1))
            return float((own - other).mean())

        return jackknife(statistic, runs, confidence)

    def compare_worst(self, first: BoardRow, second: BoardRow, confidence: float = 0.95) -> Mean:
        """Return the logarithm of the first's worst ratio over the second's, paired by seed."""
        titles = list(first.regret), list(second.regret)
        rows = [first.regret[t] for t in titles[0]] + [second.regret[t] for t in titles[1]]
        best = [self.best[title].regret for title in (*titles[0], *titles[1])]

        def statistic(sample: Matrix) -> float:
            ratios = np.log(sample[0].mean(axis=-1) / sample[1].mean(axis=-1))
            return float(ratios[: len(titles[0])].max() - ratios[len(titles[0]) :].max())

        return jackknife(statistic, np.stack([rows, best]), confidence)


def lineup(extra: Sequence[Contender] = ()) -> list[Contender]:
    """Return all built-in contenders and the ``extra`` ones, each once; who takes a flip budget also without it.

    Raises:
        BadInputError: If an extra agent does not exist or cannot play.
    """
    added: list[Contender] = []
    for contender in extra:
        find("agent", contender.agent, AGENTS)  # imports a user's module
        added += [form for form in contender.forms if form not in (*CONTENDERS, *added)]
    for contender in added:
        for cell in contender.cells().values():
            cell.check()
    return [*CONTENDERS, *added]


def report_cells(extra: Sequence[Contender] = ()) -> list[Cell]:
    """Return the cells of every untuned agent, the ``extra`` ones included: its scenarios and its worst attack."""
    attacked = (contender.attacked() for contender in lineup(extra))
    scenarios = [cell for contender in lineup(extra) for cell in contender.cells().values()]
    return [*scenarios, *(cell for cell in attacked if cell)]


def count_board_runs(store: Storage, seeds: Sequence[int], extra: Sequence[Contender] = ()) -> int:
    """Return how many runs the board still needs."""
    rungs, is_tuned, runs_before = _rungs(store), True, 0
    missing = count_missing(store, report_cells(extra), seeds)
    for rung in RUNGS:
        if is_tuned:
            left = count_missing(store, _cells(next(rungs)), tuning_seeds(rung.runs))
            is_tuned = not left
        else:  # who takes part is not known yet
            left = len(SCENARIOS) * min(rung.kept, len(CANDIDATES)) * (rung.runs - runs_before)
        missing, runs_before = missing + left, rung.runs
    return missing + (count_missing(store, _cells(next(rungs)), seeds) if is_tuned else len(SCENARIOS) * len(seeds))


def compete(
    store: Storage,
    seeds: Sequence[int],
    extra: Sequence[Contender] = (),
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Board:
    """Tune, run and compare the agents; runs that are in the store are not repeated.

    ``extra`` are additional contenders, for instance ``[Contender("my_agents:Coin")]``. All ``seeds`` are below the
    tuning seeds.
    """
    refuse_tuning_seeds(seeds)
    contenders = lineup(extra)
    rungs = _rungs(store)
    for rung, taking_part in zip(RUNGS, rungs, strict=False):
        run_cells(_cells(taking_part), tuning_seeds(rung.runs), store, jobs=jobs, progress=progress)
    winners = [contender for [contender] in next(rungs)]
    winning = [winner.cell(scenario) for winner, scenario in zip(winners, SCENARIOS, strict=True)]
    run_cells([*report_cells(extra), *winning], seeds, store, jobs=jobs, progress=progress)

    def column(cell: Cell, name: str) -> Vector:
        return store.records(cell, seeds)[name].to_numpy()

    best = {
        scenario.title: Best(winner, mean(_tuning_regret(cell, RUNGS[-1], store)), column(cell, "regret"))
        for scenario, winner, cell in zip(SCENARIOS, winners, winning, strict=True)
    }
    standings = []
    for contender in contenders:
        played = contender.cells()
        regret = {title: column(cell, "regret") for title, cell in played.items()}
        advice = {
            name: mean(np.mean([column(cell, name) for cell in played.values()], axis=0))
            for name in ("recommended_best", "recommendation_regret")
        }
        worst = contender.attacked()
        attacked = mean(column(worst, "regret")) if worst else None
        standings.append(replace(standing_of(contender, SCENARIOS, regret, best, advice), attacked=attacked))
    return Board(SCENARIOS, sorted(standings, key=lambda standing: standing.overall.worst.value), best)


def standing_of(
    contender: Contender,
    scenarios: Sequence[Scenario],
    regret: dict[str, Vector],
    best: Mapping[str, Best],
    advice: Mapping[str, Mean],
) -> BoardRow:
    """Summarize an agent's runs.

    ``regret`` is its regret in each scenario that it plays, by title, shape (seeds,); ``best`` is the best tuned agent
    of each scenario on the same seeds; ``advice`` has ``recommended_best`` and ``recommendation_regret``.
    """

    def runs(titles: Sequence[str]) -> Matrix:
        return np.stack([[regret[title] for title in titles], [best[title].regret for title in titles]])

    def summary(titles: Sequence[str]) -> Summary:
        where = max(titles, key=lambda title: ratios[title].value)
        return Summary(_positive(np.max, runs(titles)), where, _positive(np.mean, runs(titles)))

    ratios = {title: _positive(np.max, runs([title])) for title in regret}
    halves = {half: [s.title for s in scenarios if s.half == half and s.title in regret] for half in HALVES}
    by_half = {half: summary(titles) for half, titles in halves.items() if titles}
    return BoardRow(contender, regret, ratios, summary(list(regret)), by_half, **advice)


def _positive(statistic: Callable[[Vector], Any], runs: Matrix) -> Mean:
    """Return exp of a statistic of log ratios, its error and interval, which so stays above 0.

    Args:
        statistic: Of the logarithms of mean regrets of one agent over those of another, shape (scenarios,).
        runs: Both agents' regrets, shape (2, scenarios, seeds).
    """

    def of(sample: Matrix) -> float:
        own, theirs = np.log(sample.mean(axis=-1))
        return float(statistic(own - theirs))

    value, error, low, high = jackknife(of, runs)
    return Mean(math.exp(value), math.exp(value) * error, math.exp(low), math.exp(high))


def _rungs(store: Storage) -> Iterator[list[list[Contender]]]:
    """Yield who takes part in each rung, by scenario, and last the winners; run one before asking for the next."""
    taking_part = [list(CANDIDATES) for _ in SCENARIOS]
    for rung, kept in zip(RUNGS, [*(following.kept for following in RUNGS[1:]), 1], strict=True):
        yield taking_part
        taking_part = [
            sorted(candidates, key=lambda each: float(_tuning_regret(each.cell(scenario), rung, store).mean()))[:kept]
            for scenario, candidates in zip(SCENARIOS, taking_part, strict=True)
        ]
    yield taking_part


def _cells(taking_part: Sequence[Sequence[Contender]]) -> list[Cell]:
    """The cells of these contenders, given by scenario."""
    return [each.cell(scenario) for scenario, same in zip(SCENARIOS, taking_part, strict=True) for each in same]


def _tuning_regret(cell: Cell, rung: Rung, store: Storage) -> Vector:
    return store.records(cell, tuning_seeds(rung.runs))["regret"].to_numpy()
