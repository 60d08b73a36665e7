"""Recorded votes: read them, rank the items, audit the voters, plan the next votes, and export what is left.

Names are imported on first use, so scikit-learn and polars are only required by what needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairduel.checks import needs_extra
from fairduel.votes.votes import Votes

if TYPE_CHECKING:
    from fairduel.votes.attacking.manipulation import CampaignLimits, Manipulation, cost_of_manipulation
    from fairduel.votes.attacking.stress import stress
    from fairduel.votes.auditing.audit import Audit, audit
    from fairduel.votes.auditing.camps import Camp, Camps, find_camps, trusted_weights
    from fairduel.votes.auditing.cleaning import Cleaned, clean
    from fairduel.votes.auditing.voters import Evidence, audit_voters
    from fairduel.votes.certifying.certificates import certify
    from fairduel.votes.certifying.explain import Explanation, explain
    from fairduel.votes.certifying.search import Fragility, fragility
    from fairduel.votes.deciding import decide
    from fairduel.votes.exporting import Exported, Preferences, export, preferences
    from fairduel.votes.ranking.preference_model import RobustPreferenceModel
    from fairduel.votes.ranking.rank import Ranking, rank
    from fairduel.votes.ranking.standings import Certificate, Standing
    from fairduel.votes.reading.features import Features, read_features
    from fairduel.votes.reading.read import Reading, read_votes
    from fairduel.votes.reviewing.review import Review, review
    from fairduel.votes.rewards.certified import CertifiedRewards
    from fairduel.votes.rewards.model import RobustRewardModel
    from fairduel.votes.verdict import Verdict

_MODULE_OF = {
    "Audit": "auditing.audit",
    "Camp": "auditing.camps",
    "Camps": "auditing.camps",
    "Certificate": "ranking.standings",
    "CertifiedRewards": "rewards.certified",
    "Cleaned": "auditing.cleaning",
    "Evidence": "auditing.voters",
    "Explanation": "certifying.explain",
    "Exported": "exporting",
    "Features": "reading.features",
    "Fragility": "certifying.search",
    "CampaignLimits": "attacking.manipulation",
    "Manipulation": "attacking.manipulation",
    "Preferences": "exporting",
    "Ranking": "ranking.rank",
    "Reading": "reading.read",
    "Review": "reviewing.review",
    "RobustPreferenceModel": "ranking.preference_model",
    "RobustRewardModel": "rewards.model",
    "Standing": "ranking.standings",
    "Verdict": "verdict",
    "audit": "auditing.audit",
    "audit_voters": "auditing.voters",
    "certify": "certifying.certificates",
    "clean": "auditing.cleaning",
    "cost_of_manipulation": "attacking.manipulation",
    "explain": "certifying.explain",
    "export": "exporting",
    "find_camps": "auditing.camps",
    "fragility": "certifying.search",
    "preferences": "exporting",
    "rank": "ranking.rank",
    "read_features": "reading.features",
    "read_votes": "reading.read",
    "review": "reviewing.review",
    "decide": "deciding",
    "stress": "attacking.stress",
    "trusted_weights": "auditing.camps",
}

__all__ = [
    "Audit",
    "Camp",
    "CampaignLimits",
    "Camps",
    "Certificate",
    "CertifiedRewards",
    "Cleaned",
    "Evidence",
    "Explanation",
    "Exported",
    "Features",
    "Fragility",
    "Manipulation",
    "Preferences",
    "Ranking",
    "Reading",
    "Review",
    "RobustPreferenceModel",
    "RobustRewardModel",
    "Standing",
    "Verdict",
    "Votes",
    "audit",
    "audit_voters",
    "certify",
    "clean",
    "cost_of_manipulation",
    "decide",
    "explain",
    "export",
    "find_camps",
    "fragility",
    "preferences",
    "rank",
    "read_features",
    "read_votes",
    "review",
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
