"""Agents: one algorithm, one file."""

from typing import Any

from fairduel.agents.base import Agent, DuelingAgent, KArmed, RewardAgent
from fairduel.agents.colstim import CoLSTIM
from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.maxinp import MaxInP
from fairduel.agents.maxpairucb import MaxPairUCB
from fairduel.agents.rcdb import RCDB
from fairduel.agents.rcdbs import RCDBS

AGENTS: dict[str, type[Agent[Any, Any]]] = {
    "rcdb": RCDB,
    "rcdb-s": RCDBS,
    "maxpairucb": MaxPairUCB,
    "maxinp": MaxInP,
    "colstim": CoLSTIM,
}
"""Every agent by the name that the command and the results know it by."""

__all__ = [
    "AGENTS",
    "RCDB",
    "RCDBS",
    "Agent",
    "CoLSTIM",
    "ContextualAgent",
    "DuelingAgent",
    "KArmed",
    "MaxInP",
    "MaxPairUCB",
    "RewardAgent",
]
