"""Recorded votes: read them, rank them, see how far to trust them.

Names are imported when they are first used, so that only what needs scikit-learn or polars asks for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairduel.errors import BadInputError
from fairduel.votes.votes import Votes

if TYPE_CHECKING:
    from fairduel.votes.features import Features, read_features
    from fairduel.votes.model import RobustPreferenceModel
    from fairduel.votes.ranking import Ranking, rank
    from fairduel.votes.reading import Reading, read_votes
    from fairduel.votes.voters import Evidence, audit_voters

_HOMES = {
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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        raise BadInputError(f"this needs {error.name}: install it with  pip install 'fairduel[votes]'") from error
    return getattr(module, name)
