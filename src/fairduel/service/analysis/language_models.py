"""Votes of language models, kept apart from people's or counted with them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairduel.errors import FairduelError
from fairduel.service.events.log import Json
from fairduel.stats import exact_share
from fairduel.votes.columns import shown_table
from fairduel.votes.ranking.rank import rank
from fairduel.votes.ranking.standings import RANKING
from fairduel.votes.verdict import headlines
from fairduel.votes.votes import Votes
from fairduel.words import counted_noun, listed


def counted_sentence(votes: Votes, models: Sequence[str]) -> str:
    """Say how many of the votes came from these language models."""
    cast = np.isin(votes.cast_by, [votes.voters.index(model) for model in models])
    number = f"{int(cast.sum()):,} of {counted_noun(len(votes), 'vote')}"
    return f"{number} came from {counted_noun(len(models), 'language model')}: {listed(models)}."


def apart(votes: Votes, people: Votes, standings: Sequence[Mapping[str, Any]]) -> Json:
    """Rank by models' votes alone, and compare them with people's ranking, whose standings may be empty."""
    try:
        ranking = rank(votes)
        sentence, rows = f"By language models alone: {' '.join(headlines(ranking.verdicts))}", ranking.records()
    except FairduelError as error:
        sentence, rows = f"Language models have no ranking yet: {error}", []
    agreed, decided = agreement(people, standings)
    usual = f"; people's own votes do in {agreed.sum() / decided.sum():.0%}" if decided.any() else ""
    return {
        "votes": len(votes),
        "voters": len(set(votes.cast_by.tolist())),
        "sentence": sentence,
        "ranking": rows,
        "table": shown_table(RANKING, rows),
        "agreement": [
            _in_words(votes.voters[voter], int(won), int(of), usual)
            for voter, (won, of) in enumerate(zip(*agreement(votes, standings), strict=True))
            if voter in set(votes.cast_by.tolist())
        ],
    }


def agreement(votes: Votes, standings: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Count how many of each voter's votes prefer the item that a ranking puts higher, and of how many.

    Votes for a tie, and between items that the ranking does not tell apart or cannot compare, say nothing.

    Returns:
        Two arrays of shape (V,).
    """
    place = {row["item"]: (row["component"], row["score"]) for row in standings}
    component, score = np.array([place.get(item, (np.nan, np.nan)) for item in votes.items]).T
    ahead = score[votes.first] - score[votes.second]
    is_decided = (component[votes.first] == component[votes.second]) & (ahead != 0.0) & ~votes.is_tie
    is_agreed = is_decided & ((ahead > 0.0) == (votes.result == 1.0))
    agreed, decided = (
        np.bincount(votes.cast_by[chosen], minlength=len(votes.voters)) for chosen in (is_agreed, is_decided)
    )
    return agreed, decided


def _in_words(voter: str, agreed: int, of: int, usual: str) -> Json:
    if not of:
        return {
            "voter": voter,
            "agreed": 0,
            "of": 0,
            "low": None,
            "high": None,
            "sentence": f"{voter}: no comparison yet.",
        }
    found = exact_share(agreed, of)
    interval = f"{found.value:.0%}, 95% interval {found.low:.0%} to {found.high:.0%}"
    sentence = f"{voter}: {agreed:,} of {counted_noun(of, 'vote')} agree with people's ranking ({interval}){usual}."
    return {"voter": voter, "agreed": agreed, "of": of, "low": found.low, "high": found.high, "sentence": sentence}
