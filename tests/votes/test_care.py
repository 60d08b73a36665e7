"""Care weights: never negative, indifferent to names and order, and small for those who deserve it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairduel.votes import Votes
from fairduel.votes.bradley_terry import TINY_RIDGE, fit_scores, wins
from fairduel.votes.care import MOST_WEIGHT, voter_reliability
from fairduel.votes.care import _Cast as Cast
from fairduel.votes.care import _own_influence as own_influence
from fairduel.votes.stress_tests import inject
from fairduel.votes.synthetic import ITEMS, arena

VOTES, _ = arena(liars={}, seed=2)


@pytest.mark.parametrize(
    ("attack", "voters", "most"),
    [
        ("promote", 15, 0.05),
        ("demote", 15, 0.05),
        ("promote", 450, 0.05),  # one vote each
        ("omnipresent", 15, 0.05),
        ("inverters", 15, 0.05),
        ("random votes", 15, 0.4),
        ("half-honest", 15, 0.1),
    ],
)
def test_false_votes_count_little_compared_with_others(attack, voters, most):
    attacked = inject(VOTES, attack, "Maple", size=450, voters=voters, seed=3)
    weight = voter_reliability(attacked.votes).vote
    assert weight[attacked.fake].mean() < most * weight[~attacked.fake].mean()
    assert weight[~attacked.fake].mean() > 0.4


def test_honest_voters_lose_little():
    weight = voter_reliability(VOTES).voter
    assert np.median(weight) > 0.85
    assert (weight > 0.3).mean() > 0.95


def test_a_minority_that_dislikes_one_item_keeps_its_other_votes():
    votes, target = VOTES, ITEMS.index("Maple")
    minority = votes.cast_by < 8
    against = minority & ((votes.first == target) | (votes.second == target))
    result = np.where(against, (votes.second == target).astype(float), votes.result)
    changed = Votes.from_arrays(votes.items, votes.first, votes.second, result, voter=votes.voter, voters=votes.voters)
    before, after = voter_reliability(votes).vote, voter_reliability(changed).vote
    assert after[minority & ~against].mean() > 0.8 * before[minority & ~against].mean()


def test_few_votes_say_little():
    weight = {}
    for size in (8, 40):
        attacked = inject(VOTES, "inverters", size=size, voters=1, seed=3)
        weight[size] = voter_reliability(attacked.votes).vote[attacked.fake].mean()
    assert weight[8] > 0.2
    assert weight[40] < 0.02


def test_a_misfit_that_all_voters_share_makes_nobody_a_team():
    rng = np.random.default_rng(0)
    first, second = rng.integers(6, size=6000), rng.integers(1, 6, size=6000)
    second = (first + second) % 6
    # rock, paper, scissors: no scores fit
    result = (rng.random(6000) < np.where((second - first) % 6 <= 2, 0.85, 0.15)).astype(float)
    result = np.where((second - first) % 6 == 3, rng.random(6000) < 0.5, result)
    voter = rng.integers(60, size=6000)
    votes = Votes.from_arrays("abcdef", first, second, result, voter=voter, voters=[str(v) for v in range(60)])
    assert voter_reliability(votes).voter.min() > 0.5


def test_frequencies_count_like_repeated_votes():
    twice = Votes.from_arrays(
        VOTES.items, VOTES.first, VOTES.second, VOTES.result, weight=np.full(len(VOTES), 2.0),
        voter=VOTES.voter, voters=VOTES.voters,
    )  # fmt: skip
    rows = np.repeat(np.arange(len(VOTES)), 2)
    repeated = Votes.from_arrays(
        VOTES.items, VOTES.first[rows], VOTES.second[rows], VOTES.result[rows],
        voter=VOTES.cast_by[rows], voters=VOTES.voters,
    )  # fmt: skip
    np.testing.assert_allclose(voter_reliability(twice).vote[rows], voter_reliability(repeated).vote, atol=1e-9)


def test_without_voters_all_votes_count_fully():
    nameless = Votes.from_arrays("ab", [0, 0], [1, 1], [1, 0.5])
    assert voter_reliability(nameless, ties="drop").vote.tolist() == [1.0, 1.0]


def test_a_single_voter_keeps_an_average_weight():
    alone = Votes.from_arrays("abc", [0, 1, 0] * 9, [1, 2, 2] * 9, [1, 1, 0] * 9, voter=[0] * 27, voters=["Ann"])
    assert voter_reliability(alone).voter[0] == pytest.approx(1.0, abs=0.1)


def test_without_a_consensus_all_votes_count_fully():
    first, second = np.tile([0, 0, 1], 200), np.tile([1, 2, 2], 200)
    voter = np.repeat([0, 1], 300)
    opposed = Votes.from_arrays("abc", first, second, (voter == 0).astype(float), voter=voter, voters=["Ann", "Bob"])
    assert voter_reliability(opposed).voter.tolist() == [1.0, 1.0]


def test_own_influence_is_close_to_a_refit_without_the_voter():
    counts, order = VOTES.counts("half"), np.argsort(VOTES.cast_by, kind="stable")
    cast = Cast.of(VOTES, counts, order)
    scores = fit_scores(wins(VOTES), ridge=TINY_RIDGE).scores
    margin = scores[cast.first] - scores[cast.second]
    chance = 1.0 / (1.0 + np.exp(-margin))
    influence = own_influence(cast, cast.counts * (cast.result - chance), cast.counts * chance * (1.0 - chance))
    busiest = int(np.bincount(VOTES.cast_by).argmax())
    without = fit_scores(wins(VOTES.without(VOTES.cast_by == busiest)), ridge=TINY_RIDGE).scores
    own = cast.voter == busiest
    exact = margin[own] - (without[cast.first[own]] - without[cast.second[own]])
    assert np.corrcoef(influence[own], exact)[0, 1] > 0.95
    assert np.polyfit(exact, influence[own], 1)[0] == pytest.approx(1.0, abs=0.3)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 6))
def test_weights_are_within_bounds_and_do_not_depend_on_order_or_sides(seed, voters, items):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    first = rng.integers(items, size=size)
    second = (first + rng.integers(1, items, size)) % items
    result, voter, weight = rng.choice([0.0, 0.5, 1.0], size), rng.integers(voters, size=size), rng.integers(1, 4, size)
    names, people = [f"i{k}" for k in range(items)], [f"v{k}" for k in range(voters)]
    votes = Votes.from_arrays(names, first, second, result, weight=weight, voter=voter, voters=people)
    found = voter_reliability(votes)
    assert ((found.vote >= 0.0) & (found.vote <= MOST_WEIGHT)).all()
    order, swapped = rng.permutation(size), rng.random(size) < 0.5
    other = Votes.from_arrays(
        names, np.where(swapped, second, first)[order], np.where(swapped, first, second)[order],
        np.where(swapped, 1.0 - result, result)[order], weight=weight[order], voter=voter[order], voters=people,
    )  # fmt: skip
    np.testing.assert_allclose(voter_reliability(other).vote, found.vote[order], atol=1e-5)
