"""What an audit makes of votes: the rankings by all votes and by those that can be trusted, and the verdict on them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairduel.duel import Vector
from fairduel.votes.auditing.bursts import BurstScan, scan_bursts
from fairduel.votes.auditing.camps import Camps, find_camps, trusted_weights
from fairduel.votes.auditing.known_answers import KnownAnswers
from fairduel.votes.auditing.voters import Evidence, audit_voters
from fairduel.votes.certifying.certificates import certify, searchable_groups, with_survival
from fairduel.votes.certifying.search import Group
from fairduel.votes.deciding import decide
from fairduel.votes.ranking.rank import Ranking, rank
from fairduel.votes.ranking.robust_fit import Weights
from fairduel.votes.reading.features import Features
from fairduel.votes.votes import Ties, Votes

_LEVEL = 0.05
_ALL_ALIKE = "all votes count the same"


class Judged(NamedTuple):
    """The rankings of an audit, with its verdict."""

    everyone: Ranking
    trusted: Ranking
    shown: Ranking
    """The one of both to go by, which has the verdict."""
    evidence: Evidence | None
    reliability: Vector
    """How much each vote counts in ``shown``, shape ``(n,)``."""
    burst: BurstScan
    camps: Camps
    groups: Callable[[int], Group]
    """The votes as ``shown`` counts them; see :func:`~fairduel.votes.certifying.certificates.searchable_groups`."""


def judge(
    votes: Votes,
    *,
    level: float,
    duels_assigned: bool,
    ties: Ties,
    lies: int = 0,
    votes_per_voter: float | None = None,
    known: KnownAnswers | None = None,
    progress: Callable[[int], None],
) -> Judged:
    """Check the voters, rank with and without the flagged ones, and decide, as :func:`audit` and ``clean`` do.

    ``progress`` is called with 1 after each of three steps.
    """
    everyone = rank(votes, ties=ties)
    progress(1)
    evidence, trusted, reliability = None, everyone, np.ones(len(votes))
    camps = find_camps(votes, ties=ties)
    if votes.voter is not None:
        evidence = audit_voters(votes, level=level, duels_assigned=duels_assigned, known=known)
        evidence = replace(evidence, camps=camps)
        weights = trusted_weights(votes, evidence, ties, camps)
        if (votes.counts(ties)[weights > 0.0] > 0.0).any():
            trusted, reliability = rank(votes, ties=ties, reliability=weights), weights
    shown = ranking_to_show(everyone, trusted, evidence)
    progress(1)
    uses_weights = None if shown is everyone else reliability
    burst = scan_bursts(votes, ties=ties, level=level, ranking=shown, reliability=uses_weights)
    progress(1)
    doubts = _doubts(everyone, trusted, shown, burst, evidence)
    reservations = [] if shown is everyone else camps.reservations
    verdicts = decide(
        votes, shown, lies=lies, votes_per_voter=votes_per_voter, doubts=doubts, reservations=reservations
    )
    groups = searchable_groups(votes, shown)
    decided = replace(shown, verdicts=with_survival(verdicts, certify(votes, shown, ranks=1, groups=groups)))
    everyone, trusted = (decided if each is shown else each for each in (everyone, trusted))
    reliability = np.ones(len(votes)) if uses_weights is None else reliability
    return Judged(everyone, trusted, decided, evidence, reliability, burst, camps, groups)


def ranking_after_audit(
    votes: Votes,
    *,
    features: Features | None = None,
    weights: Weights = "none",
    lies: float | None = None,
    ties: Ties = "half",
) -> Ranking:
    """Return the ranking that an audit shows, with its verdict, or the like with features or the paper's weights.

    If the audit finds nobody, all votes count the same.
    """
    plain = features is None and weights == "none" and not votes.feature_names
    judged = judge(
        votes.without_features(),
        level=_LEVEL,
        duels_assigned=True,
        ties=ties,
        lies=math.ceil(lies or 0.0) if plain else 0,
        progress=lambda _: None,
    )
    if not plain:
        return rank(votes, features=features, weights=weights, lies=lies, ties=ties, reliability=judged.reliability)
    return replace(judged.shown, notes=(*judged.shown.notes, *why_unchanged(judged.evidence)))


def why_unchanged(evidence: Evidence | None) -> list[str]:
    """Say why there is no other ranking than that by all votes, if the audit finds nobody."""
    if evidence is None or evidence.finds_anyone:
        return []
    return [f"The audit finds nobody whose votes should count less, so {_ALL_ALIKE}."]


def ranking_to_show(everyone: Ranking, trusted: Ranking, evidence: Evidence | None) -> Ranking:
    """Return ``trusted`` if the audit finds anyone; otherwise ``everyone``, so that it says what :func:`rank` says."""
    return trusted if evidence is not None and evidence.finds_anyone else everyone


def _doubts(
    everyone: Ranking, trusted: Ranking, shown: Ranking, burst: BurstScan, evidence: Evidence | None
) -> dict[str, str]:
    """Name the items that are first by another count of the same votes, with the reason."""
    leader, found = shown.standings[0].item, dict[str, str]()
    instead, count = (trusted, "votes count by reliability") if shown is everyone else (everyone, _ALL_ALIKE)
    others = [] if evidence is not None and evidence.someone_differs else [(instead, f"If {count}")]
    if burst.without is not None:
        others.append((burst.without, "Without the stretch of votes that differs"))
    for ranking, condition in others:
        other = ranking.standings[0].item
        if other != leader:
            found.setdefault(other, f"{condition}, {other} has the highest score instead of {leader}.")
    return found
