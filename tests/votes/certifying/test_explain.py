"""Explanations against brute force: every vote left out in turn, by another solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fairduel.core.links import LOGISTIC
from fairduel.errors import BadInputError
from fairduel.votes import Votes, rank
from fairduel.votes.attacking.liars import arena
from fairduel.votes.certifying.explain import SHOWN, STEPS, explain

ITEMS = ("tea", "milk", "juice", "cola")


def random_votes(seed, count=60, items=4, *, voters=6):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(items)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, count)) % items
    result = (rng.random(count) < expit(scores[first] - scores[second])).astype(float)
    result[rng.random(count) < 0.1] = 0.5
    weight = rng.choice([1.0, 2.0, 0.5], count)
    voter = rng.integers(voters, size=count)
    names = [f"v{each}" for each in range(voters)]
    return Votes.from_arrays(ITEMS[:items], first, second, result, weight=weight, voter=voter, voters=names)


def refitted_gap(slow_estimate, votes, ranking, found, kept):
    """The gap from the ``kept`` votes (n,), by a root finder, with the ranking's weights and ridge."""
    differences = np.zeros((len(votes), len(votes.items)))
    differences[np.arange(len(votes)), votes.first] += 1.0
    differences[np.arange(len(votes)), votes.second] -= 1.0
    mass = votes.weight * ranking.weights
    theta = slow_estimate(differences[kept], mass[kept], votes.result[kept], ranking.settings["ridge"], LOGISTIC)
    return theta[votes.items.index(found.above)] - theta[votes.items.index(found.below)]


@pytest.mark.parametrize("seed", range(6))
def test_every_vote_and_voter_left_out_by_brute_force(slow_estimate, seed):
    votes = random_votes(seed)
    ranking = rank(votes)
    found = explain(votes, ranking=ranking)

    def gap(kept):
        return refitted_gap(slow_estimate, votes, ranking, found, kept)

    everyone = np.ones(len(votes), dtype=bool)
    assert found.gap == pytest.approx(gap(everyone), abs=1e-7)
    falls = {int(votes.row[each]): found.gap - gap(np.arange(len(votes)) != each) for each in range(len(votes))}
    predicted = dict(zip(found.influence["row"], found.influence["gap_falls_by"], strict=True))
    for row, fall in falls.items():
        assert predicted[row] == pytest.approx(fall, rel=0.15, abs=2e-3)
    for kind in found.most_votes:
        for row in kind.rows:
            assert falls[row] == pytest.approx(kind.falls_by, abs=1e-7)
        assert found.gap - gap(~np.isin(votes.row, kind.rows)) == pytest.approx(kind.falls_by_all, abs=1e-7)
    shown = {row for kind in found.most_votes for row in kind.rows}
    largest = max(falls, key=lambda row: abs(falls[row]))
    assert largest in shown
    by_voter = {name: found.gap - gap(votes.voter != each) for each, name in enumerate(votes.voters)}
    assert {each.voter: each.falls_by for each in found.most_voters} == pytest.approx(by_voter, abs=1e-7)
    assert found.most_voters[0].voter == max(by_voter, key=lambda name: abs(by_voter[name]))


@settings(max_examples=20)  # a ranking each
@given(st.integers(0, 10_000), st.integers(20, 80), st.integers(2, 4), st.sampled_from(["half", "drop"]))
def test_shares_add_up_to_the_gap_of_the_ranking(seed, count, items, ties):
    votes = random_votes(seed, count, items)
    if votes.components(ties).max() > 0:
        return
    ranking = rank(votes, ties=ties, draws=100)
    found = explain(votes, ranking=ranking, ties=ties)
    best, second = ranking.standings[:2]
    assert (found.above, found.below) == (best.item, second.item)
    assert found.gap == pytest.approx(best.score - second.score, abs=1e-7)
    assert found.direct + found.indirect == pytest.approx(found.gap, abs=1e-9)
    assert found.influence["share_of_gap"].sum() == pytest.approx(found.gap, abs=1e-9)
    direct = found.influence.filter(
        (found.influence["first"].is_in([best.item, second.item]))
        & (found.influence["second"].is_in([best.item, second.item]))
    )
    assert direct["share_of_gap"].sum() == pytest.approx(found.direct, abs=1e-9)
    assert len(found.influence) == (votes.counts(ties) > 0.0).sum()
    assert len(found.through) <= items - 2


def test_with_two_items_everything_is_direct():
    votes = Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0.5] * 2 + [0] * 8)
    found = explain(votes)
    assert found.through == ()
    assert found.direct == pytest.approx(found.gap)
    assert (found.won, found.votes) == (31.0, 40.0)
    assert found.summary()[0].endswith("mainly because of their direct duels (tea won 31 of 40).")
    assert found.most_voters == ()


def test_items_never_compared_directly_are_explained_by_a_third():
    first, second = [0] * 20 + [1] * 20, [2] * 40
    votes = Votes.from_arrays(ITEMS[:3], first, second, [1] * 16 + [0] * 4 + [1] * 8 + [0] * 12)
    found = explain(votes, "milk", "tea")  # in either order
    assert (found.above, found.below) == ("tea", "milk")
    assert found.direct == 0.0
    [through] = found.through
    assert (through.item, through.above_won, through.below_won) == ("juice", 16.0, 8.0)
    assert through.share == pytest.approx(found.gap)
    assert "mainly because of how they did against juice." in found.summary()[0]
    signs = {each.says: np.sign(each.falls_by) for each in found.most_votes}
    assert signs == {"tea beat juice": 1, "juice beat tea": -1, "milk beat juice": -1, "juice beat milk": 1}


def test_a_voter_who_alone_compares_the_two():
    votes = Votes.from_arrays(
        ITEMS[:3], [0, 0, 1, 1], [1, 1, 2, 2], [1, 1, 1, 0], voter=[0, 0, 1, 1], voters=["u", "v"]
    )
    found = explain(votes, "tea", "milk")
    [only] = [each for each in found.most_voters if each.voter == "u"]
    assert np.isnan(only.falls_by)
    assert "no votes would compare the two" in found.summary()[2]


def test_liars_have_the_most_influence():
    votes, liars = arena(seed=4)
    steps = []
    found = explain(votes, progress=steps.append)
    assert sum(steps) == STEPS
    assert len(found.most_voters) == len(found.most_votes) == SHOWN
    promoters = {name for name, kind in liars.items() if kind == "promote"}
    assert {each.voter for each in found.most_voters[:5]} <= promoters


def test_the_next_item_is_the_default():
    votes = random_votes(1)
    order = [standing.item for standing in rank(votes).standings]
    assert [explain(votes, order[2]).above, explain(votes, order[2]).below] == order[2:]
    assert [explain(votes, order[3]).above, explain(votes, order[3]).below] == order[2:]


def test_refusals():
    votes = Votes.from_arrays("abcde", [0, 2], [1, 3], [1, 1])
    with pytest.raises(BadInputError, match="unknown item 'z'"):
        explain(votes, "z")
    with pytest.raises(BadInputError, match="no chain of votes connects a and c"):
        explain(votes, "a", "c")
    with pytest.raises(BadInputError, match="itself"):
        explain(votes, "a", "a")
    with pytest.raises(BadInputError, match="e was never compared"):
        explain(votes, "e")
