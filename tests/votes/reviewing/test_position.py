"""The advantage of being shown first: its interval, its verdicts, and files that do not say who was first."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from fairduel.votes import Votes
from fairduel.votes.reviewing.position import BAND, position_bias
from helpers.boards import board

SCORES = [0.6, 0.3, 0.0, -0.3, -0.6]


@pytest.mark.parametrize(
    "people",
    [
        {"voters": 300, "each": 2},
        {"voters": 12, "each": 30, "lean": 0.8, "taste": 0.8},
        {"voters": 30, "each": 15, "lean": 0.5, "model": "davidson", "tie": 0.0},
    ],
)
def test_the_interval_covers_95_percent(people):
    files = 300
    found = [position_bias(board(np.random.default_rng(seed), SCORES, **people)) for seed in range(files)]
    covered = np.mean([each.low <= 0.5 <= each.high for each in found])
    # errors half or twice as large would cover 67% or 99.99%
    assert stats.binom.cdf(covered * files, files, 0.95) > 0.001
    assert covered <= 0.985


def test_voters_of_different_size_are_allowed_for():
    covered = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        many, few = board(rng, SCORES, voters=3, each=100, lean=0.5), board(rng, SCORES, voters=40, each=5, lean=0.5)
        names = [f"voter {i}" for i in range(43)]
        both = {name: np.concatenate([getattr(many, name), getattr(few, name)]) for name in ("first", "second")}
        voter = np.concatenate([many.voter, few.voter + 3])
        result = np.concatenate([many.result, few.result])
        found = position_bias(Votes.from_arrays(many.items, **both, result=result, voter=voter, voters=names))
        covered.append(found.low <= 0.5 <= found.high)
    assert np.mean(covered) > 0.9  # as if votes were independent: 0.7


def test_ignoring_voters_who_lean_would_be_too_sure():
    votes = board(np.random.default_rng(0), SCORES, voters=20, each=50, lean=1.0)
    known, unknown = position_bias(votes), position_bias(replace(votes, voter=None, voters=()))
    assert known.share == unknown.share
    assert known.high - known.low > 2.0 * (unknown.high - unknown.low)
    assert (known.has_voters, unknown.has_voters) == (True, False)


@pytest.mark.parametrize(
    ("side", "voters", "verdict"), [(0.0, 4000, "immaterial"), (0.3, 200, "biased"), (0.0, 20, "unclear")]
)
def test_verdicts(side, voters, verdict):
    votes = board(np.random.default_rng(6), SCORES, voters=voters, each=15, side=side)
    found = position_bias(votes)
    assert found.verdict == verdict
    assert found.share == pytest.approx(special.expit(side), abs=0.03)
    assert {"immaterial": "no bias that matters", "biased": "biased", "unclear": "unclear"}[verdict] in found.sentence
    assert (found.low >= 0.5 - BAND and found.high <= 0.5 + BAND) == (verdict == "immaterial")


def test_swapping_the_sides_reverses_the_share_and_keeps_the_order():
    votes = board(np.random.default_rng(6), SCORES, voters=30, each=15, side=0.2)
    swapped = replace(votes, first=votes.second, second=votes.first, result=1.0 - votes.result)
    one, other = position_bias(votes), position_bias(swapped)
    assert [other.share, other.low, other.high] == pytest.approx([1 - one.share, 1 - one.high, 1 - one.low])
    assert one.moved == other.moved


def test_an_item_always_shown_first_falls_if_position_is_fitted():
    """b is better than a, but a is always shown first and gains from it; c is shown on both sides."""
    rng = np.random.default_rng(7)
    first, second = np.array([[0, 1], [0, 2], [1, 2], [2, 1]] * 500).T
    scores = np.array([0.0, 0.3, -0.2])
    won = rng.random(2000) < special.expit(scores[first] - scores[second] + 0.8)
    found = position_bias(Votes.from_arrays("abc", first, second, won.astype(float)))
    assert found.verdict == "biased"
    assert found.moved == (("a", 1, 2), ("b", 2, 1))
    assert "changes 2 ranks" in found.sentence
    assert found.most_shown == ("a", 1.0)


@pytest.mark.parametrize("turn", [False, True])
def test_winner_and_loser_do_not_say_who_was_first(turn):
    votes = board(np.random.default_rng(8), SCORES, voters=10, each=10)
    won = votes.result == 1.0
    winner, loser = np.where(won, votes.first, votes.second), np.where(won, votes.second, votes.first)
    first, second = (loser, winner) if turn else (winner, loser)
    found = position_bias(replace(votes, first=first, second=second, result=np.full(100, 0.0 if turn else 1.0)))
    assert found.verdict == "unknown"
    assert "always wins" in found.sentence


def test_pairs_in_alphabetical_order_do_not_say_who_was_first():
    votes = board(np.random.default_rng(9), SCORES, voters=10, each=10)
    turned = votes.first > votes.second
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    result = np.where(turned, 1.0 - votes.result, votes.result)
    assert "same order" in position_bias(replace(votes, first=low, second=high, result=result)).sentence


def test_dropped_ties_do_not_count():
    votes = board(np.random.default_rng(10), SCORES, voters=30, each=20, model="davidson", tie=0.5, side=0.5)
    decisive = votes.select(~votes.is_tie)
    dropped = position_bias(votes, "drop")
    assert dropped.share == position_bias(decisive).share
    assert dropped.share > position_bias(votes).share  # a tie as half a win draws it to ½
