"""A cell: runs that differ only in their seed, declared as plain values."""

import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairduel.adversaries import ATTACKS, Adversary
from fairduel.agents import AGENTS, Agent, KArmed, RewardAgent
from fairduel.by_name import find, import_from_here, make, takes
from fairduel.checks import boolean
from fairduel.delays import DELAYS, Delay
from fairduel.errors import BadInputError
from fairduel.features import as_map
from fairduel.files import versions
from fairduel.simulation.compiled_run import can_compile, play_compiled
from fairduel.simulation.fingerprint import code_digest
from fairduel.simulation.play import Player, Streams, Trace, play, referee
from fairduel.worlds import WORLDS, RewardWorld, World

Settings = Mapping[str, Any]

RECORD_LAYOUT = 5
"""Version of a stored run's columns; raise it whenever they change, so that layouts never mix."""
_NEXT_OFFERS = 20
_BUDGETS = ("flip_budget", "corruption_budget")
"""The parameters through which an agent is told C."""


@dataclass(frozen=True)
class Cell:
    """Agent × attack × world, to be run over many seeds.

    Args:
        agent: Name of a built-in agent, or ``module:Class`` for your own.
        attack: Name of a built-in attack, or ``module:Class`` for your own.
        budget: C, which the attack may spend. An agent that takes a ``flip_budget`` or ``corruption_budget`` is told C,
            unless its settings say ``known_budget: False``; then it assumes its own default.
        horizon: T, the number of rounds.
        world: Name of a built-in world, or ``module:Class`` for your own.
        agent_settings: Settings of the agent by name, and ``known_budget``.
        attack_settings: Settings of the attack by name.
        world_settings: Settings of the world by name.
        delay: Name of a built-in delay of the answers, or ``module:Class`` for your own.
        delay_settings: Settings of the delay by name.

    >>> cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=50)
    >>> bool(cell.run(seed=1).trace.regret.sum() == cell.run(seed=1).trace.regret.sum())
    True
    """

    agent: str
    attack: str
    budget: int
    horizon: int
    world: str = "hypercube"
    agent_settings: Settings = field(default_factory=dict)
    attack_settings: Settings = field(default_factory=dict)
    world_settings: Settings = field(default_factory=dict)
    delay: str = "none"
    delay_settings: Settings = field(default_factory=dict)

    def run(self, seed: int) -> "Run":
        """Play the run of this seed."""
        agent, world, adversary, streams = self.start(seed)
        answers: Any = {"horizon": self.horizon, "labels": streams.labels, "delay": self.make_delay(streams)}
        trace = play_compiled(agent, world, adversary, **answers) or play(agent, world, adversary, **answers)
        settings = {"dimension": world.dimension, **(getattr(agent, "settings", None) or self.agent_settings)}
        epoch = getattr(agent, "epoch", 0)
        advice = _advice(agent, world, self.horizon)
        return Run(self, seed, trace, settings, epoch=epoch if isinstance(epoch, int) else 0, advice=advice)

    @functools.cached_property
    def is_compiled(self) -> bool:
        """Whether its runs are compiled from end to end, and so can share a process."""
        agent, world, adversary, streams = self.start(seed=0)
        return can_compile(agent, world, adversary, self.make_delay(streams))

    def check(self) -> None:
        """Raise :class:`~fairduel.BadInputError` for a wrong setting, before any run starts."""
        _ = self.is_compiled

    @property
    def assumptions(self) -> list[str]:
        """What its agent assumes, one sentence each, to be shown before it runs.

        >>> Cell("rcdb", "greedy", budget=5, horizon=50, agent_settings={"known_budget": False}).assumptions
        ['Without knowing C, RCDB assumes C = ⌈√T⌉.']
        """
        maker = find("agent", self.agent, AGENTS)
        title, assumed = getattr(maker, "title", self.agent), getattr(maker, "assumes", "")
        sentences = [f"{title} assumes {assumed}."] if assumed else []
        if not self._budget_is_known and not any(name in self.agent_settings for name in _BUDGETS):
            default = getattr(maker, "assumes_by_default", "its own default")
            sentences.append(f"Without knowing C, {title} assumes {default}.")
        return sentences

    def start(self, seed: int) -> tuple[Player, World, Adversary, Streams]:
        """Make the agent, world, adversary and random streams of a run, without playing it."""
        streams = Streams.of(seed)
        world, adversary = self._make_world(streams), self._make_adversary(streams)
        self._check_kinds(world)
        referee(world, adversary, names=(self.world, self.attack))  # raises if the two do not fit
        return self._make_agent(world, streams), world, adversary, streams

    def make_delay(self, streams: Streams) -> Delay:
        """Make the delay of a run."""
        return make("delay", find("delay", self.delay, DELAYS), self.delay_settings, {"rng": streams.delays})

    def _check_kinds(self, world: World) -> None:
        """Raise if the agent learns from duels and the world returns rewards, or the other way round."""
        maker = find("agent", self.agent, AGENTS)
        if not (isinstance(maker, type) and issubclass(maker, Agent)):
            return
        if issubclass(maker, RewardAgent) and not isinstance(world, RewardWorld):
            place = "arms" if issubclass(maker, KArmed) else "linear"
            needed, returned, instead = "rewards", "duels", f"world {place} with attack swap"
        elif isinstance(world, RewardWorld) and not issubclass(maker, RewardAgent):
            needed, returned, instead = "duels", "rewards", "world hypercube with attack greedy"
        else:
            return
        raise BadInputError(f"{self.agent} needs {needed}, but world {self.world} returns {returned}; try {instead}.")

    def _make_world(self, streams: Streams) -> World:
        offered = {"rng": streams.world, "horizon": self.horizon}
        return make("world", find("world", self.world, WORLDS), self.world_settings, offered)

    def _make_adversary(self, streams: Streams) -> Adversary:
        offered = {"rng": streams.adversary, "budget": self.budget}
        return make("attack", find("attack", self.attack, ATTACKS), self.attack_settings, offered)

    def _make_agent(self, world: World, streams: Streams) -> Player:
        known = ("dimension", "norm_bound", "link", "noise", "arms")
        offered = {name: getattr(world, name) for name in known if hasattr(world, name)} | {
            "horizon": self.horizon,
            "seed": streams.agent_seed,
            "delay": self.make_delay(streams).size,
        }
        maker = find("agent", self.agent, AGENTS)
        if isinstance(maker, type) and issubclass(maker, KArmed) and "arms" not in offered:
            raise BadInputError(f"{self.agent} identifies arms by index, but the actions change in world {self.world}.")
        if self._budget_is_known:
            offered |= dict.fromkeys(_BUDGETS, self.budget)
        chosen = {name: value for name, value in self.agent_settings.items() if name != "known_budget"}
        if len(chosen) < len(self.agent_settings) and not takes_budget(self.agent):
            raise BadInputError(f"{self.agent} has no setting for C; omit known_budget.")
        if takes(maker, "map") and chosen.get("map"):
            chosen["map"] = as_map(chosen["map"]).fit(world.dimension, world.known_actions(), streams.agent_seed)
        agent: Player = make("agent", maker, chosen, offered)
        if not (hasattr(agent, "ask") and hasattr(agent, "tell")):
            raise BadInputError(f"agent {self.agent!r} has no ask and tell methods.")
        return agent

    @property
    def _budget_is_known(self) -> bool:
        return boolean("known_budget", self.agent_settings.get("known_budget", True))

    @functools.cached_property
    def key(self) -> str:
        """A name that changes with any setting, the code that would run, or the content of a world's files."""
        return self.key_with(self.code)

    @property
    def is_delayed(self) -> bool:
        """Whether it names a delay."""
        return self.delay != "none"

    def key_with(self, code: str) -> str:
        """The key for runs of this ``code``."""
        content = [asdict(self), code, RECORD_LAYOUT, _file_digest(self.world_settings.get("path"))]
        return _digest(json.dumps(content, sort_keys=True, default=str))[:24]

    @property
    def code(self) -> str:
        """Fingerprint of the code that a new process would run, including the user's."""
        own = self._own_code()
        code = code_digest(own.modules)
        _loaded.setdefault(own, code)
        return code

    @property
    def loaded_code(self) -> str:
        """Fingerprint of the code that this process runs, which does not reload files edited since."""
        _ = self.code
        return _loaded[self._own_code()]

    def _own_code(self) -> "_OwnCode":
        known: list[tuple[str, str, Mapping[str, Any]]] = [
            ("agent", self.agent, AGENTS),
            ("attack", self.attack, ATTACKS),
            ("world", self.world, WORLDS),
            ("delay", self.delay, DELAYS),
        ]
        own = [(kind, name, names) for kind, name, names in known if name not in names]
        players: list[Callable[..., object]] = [find(*each) for each in own]
        # An agent may wrap another one, named in its settings.
        held = [text for text in self.agent_settings.values() if isinstance(text, str) and _REFERENCE.fullmatch(text)]
        import_from_here()
        modules = [name.partition(":")[0] for name in [*(name for _, name, _ in own), *held]]
        return _OwnCode(tuple(players), tuple(modules))


class _OwnCode(NamedTuple):
    """The user's classes in a run, and the modules that hold them."""

    players: tuple[Callable[..., object], ...]
    modules: tuple[str, ...]


_REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
"""``module:Name``."""

_loaded: dict[_OwnCode, str] = {}
"""Fingerprint of the user's classes when this process first saw them; a reloaded module has new classes."""


class Advice(NamedTuple):
    """How good an agent's recommendation is after the last round."""

    is_best: float
    """1 if it is a best action, 0 if not; where actions change, the share over ``_NEXT_OFFERS`` further rounds."""
    regret: float
    """r* − r of the recommended action, or the mean of it; both are NaN for an agent that cannot recommend."""


def _advice(agent: Any, world: World, horizon: int) -> Advice:
    """Compare an agent's recommendations with the best of the actions that the world offers next."""
    if not hasattr(agent, "recommend"):
        return Advice(math.nan, math.nan)
    offers = [world.offer(horizon + 1)]
    for later in range(2, _NEXT_OFFERS + 1):
        offers.append(world.offer(horizon + later))
        if offers[-1] is offers[0]:  # the actions never change
            offers.pop()
            break
    losses = np.array([offer.rewards.max() - offer.rewards[agent.recommend(offer.actions)] for offer in offers])
    return Advice(float(np.mean(losses <= 1e-12)), float(losses.mean()))


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run.

    Args:
        cell: What was run.
        seed: Which seed.
        trace: What happened in each round.
        settings: The agent's settings, with defaults resolved.
        epoch: The epoch in which the agent ended, from 1; 0 for agents without epochs.
        advice: How good its recommendation is in the end.
    """

    cell: Cell
    seed: int
    trace: Trace
    settings: dict[str, Any]
    epoch: int
    advice: Advice

    def record(self) -> dict[str, Any]:
        """Return one flat row: final values, settings, seed and diagnostics."""
        trace = self.trace
        informative = ~trace.self_duels
        exceeded = trace.estimate_norm > self.settings.get("norm_bound", np.inf)
        return {
            "agent": self.cell.agent,
            "attack": self.cell.attack,
            "budget": self.cell.budget,
            "world": self.cell.world,
            "horizon": self.cell.horizon,
            "dimension": int(self.settings.get("dimension", 0)),
            "seed": self.seed,
            "regret": float(trace.regret.sum()),
            "weak_regret": float(trace.weak_regret.sum()),
            "late_regret": float(trace.regret[3 * len(trace.regret) // 4 :].mean()),
            "flips": int(trace.flipped.sum()),
            "corruption": float(trace.corruption.sum()),
            "tie_share": float(trace.tied.mean()),
            "self_duel_share": float(trace.self_duels.mean()),
            "locked_in": trace.locked_in,
            "recommended_best": self.advice.is_best,
            "recommendation_regret": self.advice.regret,
            "norm_exceeded_share": float(exceeded.mean()),
            "mean_slope": float(np.mean(trace.slope[informative])) if informative.any() else math.nan,
            "epoch": self.epoch,
            "seconds": trace.seconds,
            "agent_settings": json.dumps(self.settings, sort_keys=True, default=str),
            "agent_given": json.dumps(dict(self.cell.agent_settings), sort_keys=True, default=str),
            "world_settings": json.dumps(dict(self.cell.world_settings), sort_keys=True),
            "attack_settings": json.dumps(dict(self.cell.attack_settings), sort_keys=True),
            "delay": self.cell.delay,
            "delay_settings": json.dumps(dict(self.cell.delay_settings), sort_keys=True),
            "versions": json.dumps(versions()),
        }


def takes_budget(agent: str) -> bool:
    """Whether the agent of this name can be told C.

    >>> takes_budget("rcdb"), takes_budget("maxinp")
    (True, False)
    """
    maker = find("agent", agent, AGENTS)
    return any(takes(maker, name) for name in _BUDGETS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _file_digest(path: str | None) -> str:
    """Fingerprint of a file's content, or of the names and contents of a folder's files."""
    if not path:
        return ""
    try:
        if not Path(path).is_dir():
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
        files = sorted(file for file in Path(path).iterdir() if file.is_file())
        return _digest("\n".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.name}" for file in files))
    except OSError:
        return ""  # the world reports what is wrong with it
