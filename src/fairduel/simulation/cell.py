"""A cell: runs that differ in the seed alone, declared as plain values."""

import functools
import hashlib
import json
import math
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import fairduel
from fairduel.adversaries import ATTACKS, Adversary
from fairduel.agents import AGENTS, Agent, KArmed, RewardAgent
from fairduel.agents.by_name import find, look_here, make
from fairduel.errors import BadInputError
from fairduel.simulation.compiled_run import can_compile, play_compiled
from fairduel.simulation.fingerprint import code_digest
from fairduel.simulation.play import Player, Streams, Trace, play, referee
from fairduel.worlds import WORLDS, RewardWorld, World

Settings = Mapping[str, Any]

RECORD_LAYOUT = 3
"""Which columns a stored run has, and what they mean: raise it with every change, so that layouts never mix."""


@dataclass(frozen=True)
class Cell:
    """Agent × attack × world, to be run over many seeds.

    >>> cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=50)
    >>> bool(cell.run(seed=1).trace.regret.sum() == cell.run(seed=1).trace.regret.sum())
    True
    """

    agent: str
    attack: str
    budget: int
    """C: what the attack may spend, and what agents that take a ``flip_budget`` or a ``corruption_budget`` are told."""
    horizon: int
    world: str = "hypercube"
    agent_settings: Settings = field(default_factory=dict)
    attack_settings: Settings = field(default_factory=dict)
    world_settings: Settings = field(default_factory=dict)

    def run(self, seed: int) -> "Run":
        """Play the run of this seed."""
        agent, world, adversary, streams = self.start(seed)
        trace = play_compiled(agent, world, adversary, horizon=self.horizon, labels=streams.labels)
        if trace is None:
            trace = play(agent, world, adversary, horizon=self.horizon, labels=streams.labels)
        settings = {"dimension": world.dimension, **(getattr(agent, "settings", None) or self.agent_settings)}
        epoch = getattr(agent, "epoch", 0)
        return Run(self, seed, trace, settings, epoch=epoch if isinstance(epoch, int) else 0)

    @functools.cached_property
    def is_compiled(self) -> bool:
        """Whether a run of it is compiled from end to end, and so can share its process with others."""
        agent, world, adversary, _ = self.start(seed=0)
        return can_compile(agent, world, adversary)

    def check(self) -> None:
        """Refuse wrong settings now, rather than in the middle of many runs."""
        _ = self.is_compiled

    def start(self, seed: int) -> tuple[Player, World, Adversary, Streams]:
        """Make everything that the run of this seed needs, without playing it."""
        streams = Streams.of(seed)
        world, adversary = self._make_world(streams), self._make_adversary(streams)
        referee(world, adversary)  # refuses two that do not fit
        return self._make_agent(world, streams), world, adversary, streams

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
            "flip_budget": self.budget,
            "corruption_budget": self.budget,
            "seed": streams.agent_seed,
        }
        maker = find("agent", self.agent, AGENTS)
        if isinstance(maker, type) and issubclass(maker, KArmed) and "arms" not in offered:
            raise BadInputError(f"{self.agent} knows arms by their number alone, and in {self.world} actions change.")
        agent: Player = make("agent", maker, self.agent_settings, offered)
        if isinstance(agent, Agent) and isinstance(agent, RewardAgent) != isinstance(world, RewardWorld):
            told = "rewards" if isinstance(agent, RewardAgent) else "outcomes of duels"
            raise BadInputError(f"{self.agent} learns from {told}, and the world {self.world} answers otherwise.")
        if not (hasattr(agent, "ask") and hasattr(agent, "tell")):
            raise BadInputError(f"the agent {self.agent!r} has no ask and tell, so it cannot run.")
        return agent

    @functools.cached_property
    def key(self) -> str:
        """A name that changes with every setting, with the code that would run, and with a table's content."""
        return self.key_with(self.code)

    def key_with(self, code: str) -> str:
        """The key, if ``code`` is what runs."""
        content = [asdict(self), code, RECORD_LAYOUT, _file_digest(self.world_settings.get("path"))]
        return _digest(json.dumps(content, sort_keys=True, default=str))[:24]

    @property
    def code(self) -> str:
        """A fingerprint of the code that a new process would run, the user's own included."""
        own = self._own_code()
        code = code_digest(own.modules)
        _loaded.setdefault(own, code)
        return code

    @property
    def loaded_code(self) -> str:
        """A fingerprint of the code that this process runs: a file edited later is not loaded again."""
        _ = self.code
        return _loaded[self._own_code()]

    def _own_code(self) -> "_OwnCode":
        known: list[tuple[str, str, Mapping[str, Any]]] = [
            ("agent", self.agent, AGENTS),
            ("attack", self.attack, ATTACKS),
            ("world", self.world, WORLDS),
        ]
        own = [(kind, name, names) for kind, name, names in known if name not in names]
        players: list[Callable[..., object]] = [find(*each) for each in own]
        # An agent may hold another one, which is named in its settings.
        held = [text for text in self.agent_settings.values() if isinstance(text, str) and _REFERENCE.fullmatch(text)]
        look_here()
        modules = [name.partition(":")[0] for name in [*(name for _, name, _ in own), *held]]
        return _OwnCode(tuple(players), tuple(modules))


class _OwnCode(NamedTuple):
    """A user's own classes that take part in a run, and the modules that name them."""

    players: tuple[Callable[..., object], ...]
    modules: tuple[str, ...]


_REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
"""``module:Name``."""

_loaded: dict[_OwnCode, str] = {}
"""The code of a user's classes when this process first saw them; a module that is reloaded has new classes."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run: its cell, its seed, what happened, and the settings that the agent came to."""

    cell: Cell
    seed: int
    trace: Trace
    settings: dict[str, Any]
    epoch: int
    """Number of the epoch that the agent ended in, from 1; 0 for one without epochs."""

    def record(self) -> dict[str, Any]:
        """Return one flat row of final values, settings, seeds and diagnostics."""
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
            "norm_exceeded_share": float(exceeded.mean()),
            "mean_slope": float(np.mean(trace.slope[informative])) if informative.any() else math.nan,
            "epoch": self.epoch,
            "seconds": trace.seconds,
            "agent_settings": json.dumps(self.settings, sort_keys=True, default=str),
            "agent_given": json.dumps(dict(self.cell.agent_settings), sort_keys=True, default=str),
            "world_settings": json.dumps(dict(self.cell.world_settings), sort_keys=True),
            "attack_settings": json.dumps(dict(self.cell.attack_settings), sort_keys=True),
            "versions": json.dumps(versions()),
        }


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {
        "fairduel": fairduel.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _file_digest(path: str | None) -> str:
    """A fingerprint of a file's content, or of the names and contents of a folder's files."""
    if not path:
        return ""
    try:
        if not Path(path).is_dir():
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
        files = sorted(file for file in Path(path).iterdir() if file.is_file())
        return _digest("\n".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.name}" for file in files))
    except OSError:
        return ""  # the world itself says what is wrong with it
