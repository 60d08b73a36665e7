import numpy as np
import pytest

from fairduel.errors import BadInputError
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.votes import pair_sums
from helpers import populations
from helpers.populations import KINDS, population


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_votes_and_another_seed_others(kind):
    one, same, other = (population(kind, items=5, votes=40, voters=3, seed=seed) for seed in (1, 1, 2))
    for name in ("first", "second", "result", "voter"):
        assert getattr(one.votes, name).tolist() == getattr(same.votes, name).tolist()
    assert one.truth.tolist() == same.truth.tolist()
    assert one.truth.tolist() != other.truth.tolist()
    assert one.votes.result.tolist() != other.votes.result.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_the_order_that_ever_more_votes_approach(kind, monkeypatch):
    """With this many votes, voters and prompts only items of nearly equal truth can change places."""
    monkeypatch.setattr(populations, "_PROMPTS", dict.fromkeys(populations._PROMPTS, 2000))
    drawn = population(kind, items=7, votes=300_000, voters=4000, seed=3)
    component, scores = drawn.votes.components(), fit_scores(wins(drawn.votes)).scores
    gaps = drawn.truth[:, None] - drawn.truth
    compared = (component[:, None] == component) & (gaps > 0.15)
    assert compared.sum() >= 5
    assert (scores[:, None] > scores)[compared].all()


def test_a_polarising_item_is_ordered_by_its_average_chance():
    drawn = [population("polarising", items=7, votes=1, voters=10, seed=seed) for seed in range(20)]
    plain = [population("clean", items=7, votes=1, voters=10, seed=seed) for seed in range(20)]
    moved = [(one.truth.argsort() != other.truth.argsort()).any() for one, other in zip(drawn, plain, strict=True)]
    assert any(moved)  # its flatter link pulls it to the middle
    assert not all(moved)


def test_groups_have_two_to_five_items_and_are_never_compared():
    sizes = {
        size
        for seed in range(20)
        for size in np.bincount(population("groups", items=60, votes=20_000, voters=3, seed=seed).votes.components())
    }
    assert sizes == {2, 3, 4, 5}
    assert population("groups", items=5, votes=2000, voters=3, seed=0).votes.components().max() == 1


def test_ties_follow_davidson():
    votes = population("ties", items=4, votes=400_000, voters=3, seed=0).votes
    ties = pair_sums(votes.first[votes.is_tie], votes.second[votes.is_tie], 4)
    won = wins(votes.without(votes.is_tie))
    won = np.asarray(won.toarray() if hasattr(won, "toarray") else won)
    pairs = np.triu_indices(4, 1)
    assert (ties + ties.T)[pairs] / np.sqrt(won * won.T)[pairs] == pytest.approx(0.5, abs=0.02)


def test_voters_with_tastes_are_unevenly_active_and_others_are_not():
    most = {
        kind: np.bincount(population(kind, items=5, votes=20_000, voters=50, seed=0).votes.cast_by).max() / 400
        for kind in ("clean", "tastes")
    }
    assert most["clean"] < 1.3
    assert most["tastes"] > 3.0


def test_popular_items_are_drawn_ten_times_as_often_as_their_opponents():
    votes = population("misspecified", items=6, votes=100_000, voters=3, seed=0).votes
    shown = np.sort(np.bincount(np.concatenate([votes.first, votes.second])))
    # two items of weight 10 and four of weight 1: their games are in proportion to w (24 − w)
    assert shown[-2:].mean() / shown[:4].mean() == pytest.approx(10 * 14 / 23, rel=0.05)


def test_an_item_far_ahead_seldom_loses():
    drawn = population("separation", items=5, votes=3000, voters=3, seed=1)
    assert 6.0 in drawn.truth
    rates = np.sort(fit_scores(wins(drawn.votes)).scores)
    assert np.ptp(rates) > 5.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"kind": "cleen"}, "clean"), ({"items": 3}, "items"), ({"votes": 0}, "votes"), ({"voters": 0}, "voters")],
)
def test_what_cannot_be_drawn_is_refused(wrong, words):
    settings = {"kind": "clean", "items": 5, "votes": 10, "voters": 3, "seed": 0} | wrong
    with pytest.raises(BadInputError, match=words):
        population(settings.pop("kind"), **settings)
