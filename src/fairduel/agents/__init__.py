"""Agents: one algorithm, one file."""

from typing import Any

from fairduel.agents.arm_race import ArmRace
from fairduel.agents.barbar import BARBAR
from fairduel.agents.base import Agent, DuelingAgent, KArmed, RewardAgent
from fairduel.agents.cobe import COBE
from fairduel.agents.colstim import CoLSTIM
from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.cw_oful import CWOFUL
from fairduel.agents.fgts import FGTS
from fairduel.agents.ginop import GINOP
from fairduel.agents.hcw import HCW
from fairduel.agents.maxinp import MaxInP
from fairduel.agents.maxpairucb import MaxPairUCB
from fairduel.agents.phased_elimination import PhasedElimination
from fairduel.agents.random_pairs import RandomPairs
from fairduel.agents.rcdb import RCDB
from fairduel.agents.rcdbs import RCDBS
from fairduel.agents.sbe import SBE
from fairduel.agents.sceptic import Sceptic
from fairduel.agents.vacdb import VACDB
from fairduel.agents.versatile import VersatileDB
from fairduel.agents.weighted_oful import MultiLevelOFUL, WeightedOFUL
from fairduel.agents.wiwr import WIWR

AGENTS: dict[str, type[Agent[Any, Any]]] = {
    "sceptic": Sceptic,
    "rcdb": RCDB,
    "rcdb-s": RCDBS,
    "maxpairucb": MaxPairUCB,
    "maxinp": MaxInP,
    "colstim": CoLSTIM,
    "ginop": GINOP,
    "hcw": HCW,
    "random-pairs": RandomPairs,
    "wiwr": WIWR,
    "versatile-db": VersatileDB,
    "vacdb": VACDB,
    "fgts": FGTS,
    "arm-race": ArmRace,
    "barbar": BARBAR,
    "sbe": SBE,
    "phased-elimination": PhasedElimination,
    "weighted-oful": WeightedOFUL,
    "multilevel-oful": MultiLevelOFUL,
    "cw-oful": CWOFUL,
    "cobe": COBE,
}
"""Every built-in agent, by the name used on the command line and in results."""


def loaded_class(name: str) -> type[Agent[Any, Any]] | None:
    """Return a built-in agent's class, or a user's ``module:Name`` if it derives from Agent and is already imported.

    >>> loaded_class("rcdb-s").title, loaded_class("mine:Agent")
    ('RCDB-S', None)
    """
    return AGENTS.get(name) or Agent._classes.get(name)  # noqa: SLF001


__all__ = [
    "AGENTS",
    "BARBAR",
    "COBE",
    "CWOFUL",
    "FGTS",
    "GINOP",
    "HCW",
    "RCDB",
    "RCDBS",
    "SBE",
    "VACDB",
    "WIWR",
    "Agent",
    "ArmRace",
    "CoLSTIM",
    "ContextualAgent",
    "DuelingAgent",
    "KArmed",
    "MaxInP",
    "MaxPairUCB",
    "MultiLevelOFUL",
    "PhasedElimination",
    "RandomPairs",
    "RewardAgent",
    "Sceptic",
    "VersatileDB",
    "WeightedOFUL",
    "loaded_class",
]
