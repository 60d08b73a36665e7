"""Recorded votes: read them, rank the items, and audit the voters.

Names are imported on first use, so scikit-learn and polars are only required by what needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairduel.checks import needs_extra
from fairduel.votes.votes import Votes

if TYPE_CHECKING:
    from fairduel.votes.features import Features, read_features
    from fairduel.votes.model import RobustPreferenceModel
    from fairduel.votes.ranking import Ranking, rank
    from fairduel.votes.reading import Reading, read_votes
    from fairduel.votes.voters import Evidence, audit_voters

_MODULE_OF = {
    "Evidence": "voters",
    "Features": "features",
    "Ranking": "ranking",
    "Reading": "reading",
    "RobustPreferenceModel": "model",
    "audit_voters": "voters",
    "rank": "ranking",
    "read_features": "features",
    "read_votes": "reading",
}

__all__ = [
    "Evidence",
    "Features",
    "Ranking",
    "Reading",
    "RobustPreferenceModel",
    "Votes",
    "audit_voters",
    "rank",
    "read_features",
    "read_votes",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra("votes"):
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
