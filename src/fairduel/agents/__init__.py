"""Agents: one algorithm, one file; a class is imported when it is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from fairduel.agents.parts.agent import Agent as Agent
from fairduel.agents.parts.agent import DuelingAgent as DuelingAgent
from fairduel.agents.parts.agent import KArmed as KArmed
from fairduel.agents.parts.agent import RewardAgent as RewardAgent

if TYPE_CHECKING:
    from fairduel.agents.colstim import CoLSTIM as CoLSTIM
    from fairduel.agents.fgts import FGTS as FGTS
    from fairduel.agents.ginop import GINOP as GINOP
    from fairduel.agents.hcw import HCW as HCW
    from fairduel.agents.maxinp import MaxInP as MaxInP
    from fairduel.agents.maxminlcb import MaxMinLCB as MaxMinLCB
    from fairduel.agents.maxpairucb import MaxPairUCB as MaxPairUCB
    from fairduel.agents.ndb import NDBTS as NDBTS
    from fairduel.agents.ndb import NDBUCB as NDBUCB
    from fairduel.agents.parts.contextual import ContextualAgent as ContextualAgent
    from fairduel.agents.random_pairs import RandomPairs as RandomPairs
    from fairduel.agents.rcdb import RCDB as RCDB
    from fairduel.agents.rcdbs import RCDBS as RCDBS
    from fairduel.agents.rcdp import RCDP as RCDP
    from fairduel.agents.sceptic import Sceptic as Sceptic
    from fairduel.agents.table1.arm_race import ArmRace as ArmRace
    from fairduel.agents.table1.barbar import BARBAR as BARBAR
    from fairduel.agents.table1.cobe import COBE as COBE
    from fairduel.agents.table1.cw_oful import CWOFUL as CWOFUL
    from fairduel.agents.table1.phased_elimination import PhasedElimination as PhasedElimination
    from fairduel.agents.table1.sbe import SBE as SBE
    from fairduel.agents.table1.versatile import VersatileDB as VersatileDB
    from fairduel.agents.table1.weighted_oful import MultiLevelOFUL as MultiLevelOFUL
    from fairduel.agents.table1.weighted_oful import WeightedOFUL as WeightedOFUL
    from fairduel.agents.table1.wiwr import WIWR as WIWR
    from fairduel.agents.vacdb import VACDB as VACDB


class Registry(Mapping[str, type[Agent[Any, Any]]]):
    """Classes by name, imported when they are looked up."""

    def __init__(self, places: Mapping[str, str], optional: Mapping[str, str] | None = None) -> None:
        """Both are ``module:Class`` by name, below :mod:`fairduel.agents`.

        The optional ones need PyTorch. They are found by name, but are not among the names, so that experiments with
        every agent are the same everywhere.
        """
        self.optional = tuple(optional or {})
        """The names of agents that need PyTorch."""
        self._listed = tuple(places)
        self._places = {name: f"{__name__}.{place}" for name, place in (dict(places) | dict(optional or {})).items()}

    def __getitem__(self, name: str) -> type[Agent[Any, Any]]:
        module, _, kind = self._places[name].partition(":")
        return getattr(import_module(module), kind)  # type: ignore[no-any-return]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def name_of(self, kind: str) -> str | None:
        """The name of a class that is given as in its module, or in full as ``module:Class``; ``None`` if it has none.

        >>> AGENTS.name_of("RCDBS"), AGENTS.name_of("fairduel.agents.rcdb:RCDB"), AGENTS.name_of("mine:RCDB")
        ('rcdb-s', 'rcdb', None)
        """
        return next((name for name, place in self._places.items() if kind in {place, place.partition(":")[2]}), None)

    @property
    def classes(self) -> list[str]:
        """The names of all classes."""
        return [place.partition(":")[2] for place in self._places.values()]

    @property
    def modules(self) -> list[str]:
        """The modules of all classes."""
        return sorted({place.partition(":")[0] for place in self._places.values()})


AGENTS: Final = Registry(
    {
        "sceptic": "sceptic:Sceptic",
        "rcdb": "rcdb:RCDB",
        "rcdb-s": "rcdbs:RCDBS",
        "maxpairucb": "maxpairucb:MaxPairUCB",
        "maxinp": "maxinp:MaxInP",
        "maxminlcb": "maxminlcb:MaxMinLCB",
        "colstim": "colstim:CoLSTIM",
        "ginop": "ginop:GINOP",
        "hcw": "hcw:HCW",
        "random-pairs": "random_pairs:RandomPairs",
        "rcdp": "rcdp:RCDP",
        "wiwr": "table1.wiwr:WIWR",
        "versatile-db": "table1.versatile:VersatileDB",
        "vacdb": "vacdb:VACDB",
        "fgts": "fgts:FGTS",
        "arm-race": "table1.arm_race:ArmRace",
        "barbar": "table1.barbar:BARBAR",
        "sbe": "table1.sbe:SBE",
        "phased-elimination": "table1.phased_elimination:PhasedElimination",
        "weighted-oful": "table1.weighted_oful:WeightedOFUL",
        "multilevel-oful": "table1.weighted_oful:MultiLevelOFUL",
        "cw-oful": "table1.cw_oful:CWOFUL",
        "cobe": "table1.cobe:COBE",
    },
    optional={"ndb-ucb": "ndb:NDBUCB", "ndb-ts": "ndb:NDBTS"},
)
"""Every built-in agent, by the name used on the command line and in results."""


def loaded_class(name: str) -> type[Agent[Any, Any]] | None:
    """Return a built-in agent's class, or a user's ``module:Name`` if it derives from Agent and is already imported.

    >>> loaded_class("rcdb-s").title, loaded_class("mine:Agent")
    ('RCDB-S', None)
    """
    return AGENTS[name] if name in AGENTS else Agent._classes.get(name)  # noqa: SLF001


def __getattr__(name: str) -> Any:
    if name == "ContextualAgent":
        return import_module(f"{__name__}.parts.contextual").ContextualAgent
    known = AGENTS.name_of(name)
    if known is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return AGENTS[known]


def __dir__() -> list[str]:
    return sorted({*globals(), "ContextualAgent", *AGENTS.classes})
