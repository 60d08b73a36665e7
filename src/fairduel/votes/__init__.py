"""Recorded votes: read them, rank the items, audit the voters, plan the next votes, and export what is left.

Names are imported on first use, so scikit-learn and polars are only required by what needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairduel.checks import needs_extra
from fairduel.votes.votes import Votes

if TYPE_CHECKING:
    from fairduel.votes.auditing import Audit, audit
    from fairduel.votes.care import trusted_weights
    from fairduel.votes.certificates import Certificate, certify
    from fairduel.votes.cleaning import Cleaned, clean
    from fairduel.votes.exporting import Exported, export
    from fairduel.votes.features import Features, read_features
    from fairduel.votes.fragile import Fragility, fragility
    from fairduel.votes.influence import Explanation, explain
    from fairduel.votes.manipulation import Limits, Manipulation, cost_of_manipulation
    from fairduel.votes.model import RobustPreferenceModel
    from fairduel.votes.preference_data import Preferences, preferences
    from fairduel.votes.ranking import Ranking, Standing, rank
    from fairduel.votes.reading import Reading, read_votes
    from fairduel.votes.reviewing import Review, review
    from fairduel.votes.stopping_rule import Stopping, stopping
    from fairduel.votes.stress_tests import stress
    from fairduel.votes.voters import Evidence, audit_voters

_MODULE_OF = {
    "Audit": "auditing",
    "Certificate": "certificates",
    "Cleaned": "cleaning",
    "Evidence": "voters",
    "Explanation": "influence",
    "Exported": "exporting",
    "Features": "features",
    "Fragility": "fragile",
    "Limits": "manipulation",
    "Manipulation": "manipulation",
    "Preferences": "preference_data",
    "Ranking": "ranking",
    "Reading": "reading",
    "Review": "reviewing",
    "RobustPreferenceModel": "model",
    "Standing": "ranking",
    "Stopping": "stopping_rule",
    "audit": "auditing",
    "audit_voters": "voters",
    "certify": "certificates",
    "clean": "cleaning",
    "cost_of_manipulation": "manipulation",
    "explain": "influence",
    "export": "exporting",
    "fragility": "fragile",
    "preferences": "preference_data",
    "rank": "ranking",
    "read_features": "features",
    "read_votes": "reading",
    "review": "reviewing",
    "stopping": "stopping_rule",
    "stress": "stress_tests",
    "trusted_weights": "care",
}

__all__ = [
    "Audit",
    "Certificate",
    "Cleaned",
    "Evidence",
    "Explanation",
    "Exported",
    "Features",
    "Fragility",
    "Limits",
    "Manipulation",
    "Preferences",
    "Ranking",
    "Reading",
    "Review",
    "RobustPreferenceModel",
    "Standing",
    "Stopping",
    "Votes",
    "audit",
    "audit_voters",
    "certify",
    "clean",
    "cost_of_manipulation",
    "explain",
    "export",
    "fragility",
    "preferences",
    "rank",
    "read_features",
    "read_votes",
    "review",
    "stopping",
    "stress",
    "trusted_weights",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra("votes"):
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
