"""Care weights: never negative, indifferent to names and order, and small for those who deserve it."""

import numpy as np
import pytest
from benchmarks.vote_attacks.attacks import POPULATIONS
from hypothesis import given, settings
from hypothesis import strategies as st

from fairduel.votes import Votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import ITEMS, arena
from fairduel.votes.auditing.camps import find_camps
from fairduel.votes.auditing.reliability import MOST_WEIGHT
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE, fit_scores, wins

VOTES, _ = arena(liars={}, seed=2)


def vote_reliability(votes, ties="half"):
    return find_camps(votes, ties=ties).reliability


def by_voter(votes):
    """Return the average weight of each voter's votes."""
    counts = votes.counts("half")
    return np.bincount(votes.cast_by, counts * vote_reliability(votes)) / np.bincount(votes.cast_by, counts)


@pytest.mark.parametrize(
    ("attack", "voters", "most"),
    [
        ("promote", 15, 0.05),
        ("demote", 15, 0.05),
        ("promote", 450, 0.05),  # one vote each
        ("omnipresent", 15, 0.05),
        ("inverters", 15, 0.05),
    ],
)
def test_false_votes_count_little_compared_with_others(attack, voters, most):
    attacked = inject(VOTES, attack, "Maple", size=450, voters=voters, seed=3)
    weight = vote_reliability(attacked.votes)
    assert weight[attacked.fake].mean() < most * weight[~attacked.fake].mean()
    assert weight[~attacked.fake].mean() > 0.4


def test_what_half_honest_voters_say_beyond_their_opinion_counts_little():
    attacked = inject(VOTES, "half-honest", "Maple", size=450, voters=15, seed=3)
    votes, weight, target = attacked.votes, vote_reliability(attacked.votes), ITEMS.index("Maple")
    scores = fit_scores(wins(VOTES), ridge=TINY_RIDGE).scores
    chance = 1.0 / (1.0 + np.exp(scores[votes.second] - scores[votes.first]))
    sign = np.where(votes.first == target, 1.0, -1.0)
    fake = attacked.fake & ((votes.first == target) | (votes.second == target))
    pull = (sign * (votes.result - chance))[fake]
    assert (weight[fake] * pull).sum() < 0.1 * pull.sum()


def test_random_voters_cost_little_more_than_if_they_were_known():
    """Of the error that they add to the scores, 1 − their correlation with the truth, under 0.4 stays."""
    plain, ours, without = [], [], []
    for seed in range(100, 112):
        votes, truth = POPULATIONS["tastes"].votes(seed)
        attacked = inject(votes, "random-votes", size=3000, voters=100, seed=seed)
        for errors, weight in (
            (plain, np.ones(len(attacked.votes))),
            (ours, vote_reliability(attacked.votes)),
            (without, (~attacked.fake).astype(float)),
        ):
            scores = fit_scores(wins(attacked.votes.reweighted(weight)), ridge=TINY_RIDGE).scores
            errors.append(1.0 - np.corrcoef(scores, truth)[0, 1])
    added, left = np.mean(plain) - np.mean(without), np.mean(ours) - np.mean(without)
    assert left < 0.4 * added, (left, added)


def test_a_crowd_of_new_accounts_counts_nothing_and_votes_against_it_count():
    attacked = inject(VOTES, "promote", "Maple", size=300, voters=300, seed=3)
    against = inject(attacked.votes, "demote", "Maple", size=4, voters=4, seed=4)
    weight = vote_reliability(against.votes)
    assert weight[: len(attacked.votes)][attacked.fake].max() < 0.01
    assert weight[against.fake].min() > 0.5


def test_honest_voters_lose_little():
    weight = by_voter(VOTES)
    assert np.median(weight) > 0.85
    assert (weight > 0.3).mean() > 0.95


def test_a_minority_that_dislikes_one_item_keeps_its_other_votes():
    votes, target = VOTES, ITEMS.index("Maple")
    minority = votes.cast_by < 8
    against = minority & ((votes.first == target) | (votes.second == target))
    result = np.where(against, (votes.second == target).astype(float), votes.result)
    changed = Votes.from_arrays(votes.items, votes.first, votes.second, result, voter=votes.voter, voters=votes.voters)
    before, after = vote_reliability(votes), vote_reliability(changed)
    assert after[minority & ~against].mean() > 0.8 * before[minority & ~against].mean()


def test_few_votes_say_little():
    weight = {}
    for size in (8, 40):
        attacked = inject(VOTES, "inverters", size=size, voters=1, seed=3)
        weight[size] = vote_reliability(attacked.votes)[attacked.fake].mean()
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
    assert by_voter(votes).min() > 0.5


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
    np.testing.assert_allclose(vote_reliability(twice)[rows], vote_reliability(repeated), atol=1e-9)


def test_without_voters_all_votes_count_fully():
    nameless = Votes.from_arrays("ab", [0, 0], [1, 1], [1, 0.5])
    assert vote_reliability(nameless, ties="drop").tolist() == [1.0, 1.0]


def test_a_single_voter_keeps_an_average_weight():
    alone = Votes.from_arrays("abc", [0, 1, 0] * 9, [1, 2, 2] * 9, [1, 1, 0] * 9, voter=[0] * 27, voters=["Ann"])
    assert by_voter(alone)[0] == pytest.approx(1.0, abs=0.1)


def test_without_a_consensus_all_votes_count_the_same():
    first, second = np.tile([0, 0, 1], 200), np.tile([1, 2, 2], 200)
    voter = np.repeat([0, 1], 300)
    opposed = Votes.from_arrays("abc", first, second, (voter == 0).astype(float), voter=voter, voters=["Ann", "Bob"])
    ann, bob = by_voter(opposed)
    assert ann == pytest.approx(bob)
    assert ann > 0.1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 6))
def test_weights_are_within_bounds_and_do_not_depend_on_order_or_sides(seed, voters, items):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    first = rng.integers(items, size=size)
    second = (first + rng.integers(1, items, size)) % items
    result, voter, weight = rng.choice([0.0, 0.5, 1.0], size), rng.integers(voters, size=size), rng.integers(1, 4, size)
    names, people = [f"i{k}" for k in range(items)], [f"v{k}" for k in range(voters)]
    votes = Votes.from_arrays(
        names, first, second, result, weight=weight, voter=voter, voters=people, sides_known=False
    )
    found = vote_reliability(votes)
    assert ((found >= 0.0) & (found <= MOST_WEIGHT)).all()
    order, swapped = rng.permutation(size), rng.random(size) < 0.5
    other = Votes.from_arrays(
        names, np.where(swapped, second, first)[order], np.where(swapped, first, second)[order],
        np.where(swapped, 1.0 - result, result)[order], weight=weight[order], voter=voter[order], voters=people,
        sides_known=False,
    )  # fmt: skip
    np.testing.assert_allclose(vote_reliability(other), found[order], atol=1e-5)
