"""Cycles: counted by brute force, and as many as one score per item predicts."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from fairduel.votes import Votes
from fairduel.votes.reviewing import cycles
from fairduel.votes.reviewing.cycles import clearness, count_cycles, cyclic_triples
from helpers.boards import board


def by_hand(won):
    """Count majority cycles and triples fully compared, triple by triple."""
    triples = [
        t for t in combinations(range(len(won)), 3) if all(won[i, j] + won[j, i] > 0 for i, j in combinations(t, 2))
    ]
    circles = [
        any(won[a, b] > won[b, a] and won[b, c] > won[c, b] and won[c, a] > won[a, c] for a, b, c in permutations(t))
        for t in triples
    ]
    return sum(circles), len(triples)


@given(arrays(np.int64, (6, 6), elements=st.integers(0, 3)))
def test_cycles_are_those_counted_by_hand(won):
    won = won * (1 - np.eye(6, dtype=np.int64))
    assert cyclic_triples(won) == by_hand(won)
    margins = np.maximum(won - won.T, 0) / np.sqrt(np.maximum(won + won.T, 1))
    circles = (margins[a, b] * margins[b, c] * margins[c, a] for a, b, c in permutations(range(6), 3))
    assert clearness(won) == pytest.approx(sum(circles) / 3.0, abs=1e-5)


@pytest.mark.parametrize(("spread", "ties"), [(0.0, {}), (0.5, {"model": "davidson", "tie": 0.0}), (1.5, {})])
def test_honest_votes_rarely_have_too_many_cycles(spread, ties, monkeypatch):
    monkeypatch.setattr(cycles, "SIMULATIONS", 60)
    files, found = 80, []
    for seed in range(files):
        rng = np.random.default_rng(seed)
        votes = board(rng, spread * rng.normal(size=8), voters=20, each=10, **ties)
        found.append(count_cycles(votes, seed=seed))
    alarms = sum(each.more_than_predicted for each in found)
    assert stats.binom.sf(alarms - 1, files, 0.05) > 0.005  # twice the level has a probability below 5%
    mean, predicted = np.mean([each.found for each in found]), np.mean([each.predicted for each in found])
    assert predicted == pytest.approx(mean, rel=0.25, abs=0.3)


def test_items_that_counter_each_other_are_noticed():
    rng = np.random.default_rng(1)
    first, second = rng.integers(9, size=(2, 3000))
    first, second = first[first != second], second[first != second]
    circle = np.array([0.0, 1.0, -1.0])[(second - first) % 3]  # each of three kinds beats the next
    result = (rng.random(len(first)) < special.expit(circle)).astype(float)
    found = count_cycles(Votes.from_arrays([str(i) for i in range(9)], first, second, result))
    assert found.more_than_predicted
    assert found.found > found.high
    assert "does not describe" in found.sentence
    one, two, three = (int(name) for name in found.strongest)
    assert (two - one) % 3 == (three - two) % 3 == (one - three) % 3 == 1


def test_the_result_depends_on_nothing_but_votes_and_seed():
    votes = board(np.random.default_rng(2), [0.2, 0.1, 0.0, -0.1], voters=10, each=10)
    turned = Votes.from_arrays(votes.items, votes.second, votes.first, 1.0 - votes.result)
    assert vars(count_cycles(votes, seed=3)) == vars(count_cycles(turned, seed=3))


def test_votes_without_triples():
    found = count_cycles(Votes.from_arrays("abc", [0, 1], [1, 2], [1, 1]))
    assert (found.triples, found.more_than_predicted) == (0, False)
    assert "cannot be counted" in found.sentence


def test_votes_that_are_all_ties_have_no_cycles():
    found = count_cycles(Votes.from_arrays("abc", [0, 1, 2] * 5, [1, 2, 0] * 5, [0.5] * 15))
    assert (found.found, found.triples, found.more_than_predicted) == (0, 1, False)


def test_of_very_many_items_those_with_most_votes_are_counted(monkeypatch):
    monkeypatch.setattr(cycles, "MOST_ITEMS", 3)
    circle = Votes.from_arrays("abcde", [0, 2, 4, 1] * 9, [2, 4, 0, 3] * 9, [1] * 36)
    found = count_cycles(circle.without(np.arange(36) == 3))
    assert (found.items, found.found, found.triples) == (3, 1, 1)
    assert sorted(found.strongest) == ["a", "c", "e"]
