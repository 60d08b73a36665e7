import numpy as np
import pytest

from fairduel.errors import BadInputError
from fairduel.votes.attacking.liars import ITEMS, LIARS, arena


def test_the_same_seed_makes_the_same_arena_and_another_seed_another():
    (one, liars), (twin, twins), (other, _) = arena(seed=3), arena(seed=3), arena(seed=4)
    assert liars == twins
    for name in ("first", "second", "result", "voter"):
        np.testing.assert_array_equal(getattr(one, name), getattr(twin, name))
    assert len(one) != len(other) or (one.first != other.first).any()


def test_liars_do_what_they_are_said_to_do():
    votes, liars = arena(liars={"promote": 2, "demote": 2, "one-side": 1}, target="Pine", seed=0)
    pine = ITEMS.index("Pine")
    for name, kind in liars.items():
        mine = votes.select(votes.voter == votes.voters.index(name))
        pine_won = np.where(mine.first == pine, mine.result, 1 - mine.result)
        if kind == "one-side":
            assert (mine.result == 1).all()
        else:
            assert ((mine.first == pine) | (mine.second == pine)).all()
            assert (pine_won == (kind == "promote")).all()
            assert 0.2 < (mine.first == pine).mean() < 0.8


def test_who_inverts_agrees_less_than_chance():
    votes, liars = arena(liars={"inverters": 30}, spread=2.0, taste=0.0, seed=1)
    lies = np.isin(np.array(votes.voters)[votes.voter], list(liars))
    honest = votes.without(lies)
    scores = np.bincount(honest.first, honest.result - 0.5, 12) - np.bincount(honest.second, honest.result - 0.5, 12)
    agrees = (scores[votes.first] > scores[votes.second]) == (votes.result == 1)
    assert agrees[lies].mean() < 0.4
    assert agrees[~lies & (votes.result != 0.5)].mean() > 0.6


def test_numbers_of_liars_and_voters():
    votes, liars = arena(seed=0)
    assert len(liars) == sum(LIARS.values())
    assert len(arena(liars={}, seed=0)[1]) == 0
    assert np.bincount(votes.voter).min() >= 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"liars": {"lies": 1}}, "unknown tactic"),
        ({"target": "Palm"}, "unknown item 'Palm'"),
        ({"voters": 2, "liars": {"inverters": 3}}, "use more voters or fewer liars"),
        ({"voters": 0, "liars": {}}, "whole number ≥ 1"),
        ({"liars": {"inverters": -1}}, "whole number ≥ 0"),
    ],
)
def test_refusals(settings, words):
    with pytest.raises(BadInputError, match=words):
        arena(**settings)
