"""fairduel: find what people prefer, even when some of them lie."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairduel.errors import (
    BadInputError,
    ConvergenceError,
    FairduelError,
    LockInWarning,
    SuspectInputWarning,
    UnknownDuelError,
)

if TYPE_CHECKING:
    from fairduel import agents as agents
    from fairduel import votes as votes
    from fairduel.agents import (
        BARBAR,
        COBE,
        CWOFUL,
        FGTS,
        GINOP,
        HCW,
        NDBTS,
        NDBUCB,
        RCDB,
        RCDBS,
        RCDP,
        SBE,
        VACDB,
        WIWR,
        Agent,
        ArmRace,
        CoLSTIM,
        MaxInP,
        MaxMinLCB,
        MaxPairUCB,
        MultiLevelOFUL,
        PhasedElimination,
        RandomPairs,
        Sceptic,
        VersatileDB,
        WeightedOFUL,
    )
    from fairduel.core.links import LOGISTIC, PROBIT, Link, clipped_linear
    from fairduel.duel import Duel, Outcome, Pull
    from fairduel.votes import RobustPreferenceModel, Votes, audit, rank, read_votes, review

__version__ = "0.1.0"

__all__ = [
    "BARBAR",
    "COBE",
    "CWOFUL",
    "FGTS",
    "GINOP",
    "HCW",
    "LOGISTIC",
    "NDBTS",
    "NDBUCB",
    "PROBIT",
    "RCDB",
    "RCDBS",
    "RCDP",
    "SBE",
    "VACDB",
    "WIWR",
    "Agent",
    "ArmRace",
    "BadInputError",
    "CoLSTIM",
    "ConvergenceError",
    "Duel",
    "FairduelError",
    "Link",
    "LockInWarning",
    "MaxInP",
    "MaxMinLCB",
    "MaxPairUCB",
    "MultiLevelOFUL",
    "Outcome",
    "PhasedElimination",
    "Pull",
    "RandomPairs",
    "RobustPreferenceModel",
    "Sceptic",
    "SuspectInputWarning",
    "UnknownDuelError",
    "VersatileDB",
    "Votes",
    "WeightedOFUL",
    "audit",
    "clipped_linear",
    "rank",
    "read_votes",
    "review",
]


_SOURCES = {
    "core.links": {"LOGISTIC", "PROBIT", "Link", "clipped_linear"},
    "duel": {"Duel", "Outcome", "Pull"},
    "votes": {"RobustPreferenceModel", "Votes", "audit", "rank", "read_votes", "review"},
}


def __getattr__(name: str) -> Any:
    if name in ("agents", "votes"):
        return import_module(f"fairduel.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    source = next((source for source, names in _SOURCES.items() if name in names), "agents")
    return getattr(import_module(f"fairduel.{source}"), name)  # on first use, because numerical libraries are slow


def __dir__() -> list[str]:
    return __all__
