"""fairduel: find what people prefer, even when some of them lie."""

from fairduel.agents import RCDB, RCDBS, Agent, CoLSTIM, MaxInP, MaxPairUCB, Sceptic
from fairduel.core.links import LOGISTIC, PROBIT, Link, clipped_linear
from fairduel.duel import Duel, Outcome, Pull
from fairduel.errors import (
    BadInputError,
    ConvergenceError,
    FairduelError,
    LockInWarning,
    UnknownDuelError,
)

__version__ = "0.1.0"

__all__ = [
    "LOGISTIC",
    "PROBIT",
    "RCDB",
    "RCDBS",
    "Agent",
    "BadInputError",
    "CoLSTIM",
    "ConvergenceError",
    "Duel",
    "FairduelError",
    "Link",
    "LockInWarning",
    "MaxInP",
    "MaxPairUCB",
    "Outcome",
    "Pull",
    "Sceptic",
    "UnknownDuelError",
    "clipped_linear",
]
