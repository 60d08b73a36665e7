"""What the meaning of a tie changes."""

import numpy as np
import pytest

from fairduel.votes import Votes
from fairduel.votes.reviewing.position import review_ties
from helpers.boards import board


def test_without_ties_there_is_nothing_to_compare():
    found = review_ties(board(np.random.default_rng(0), [0.5, -0.5], voters=5, each=10))
    assert (found.rules, found.better) == ((), None)
    assert found.sentence == "Ties: there are none."


@pytest.mark.parametrize("model", ["davidson", "rao-kupper"])
def test_the_model_that_made_the_votes_fits_better(model):
    scores = np.linspace(-2.0, 2.0, 6)
    votes = board(np.random.default_rng(1), scores, voters=100, each=200, model=model, tie=0.8)
    found = review_ties(votes)
    assert found.better.model == model
    assert found.share == pytest.approx(votes.is_tie.mean())
    assert f"{found.share:.1%}" in found.sentence
    expected = np.exp(0.8)
    assert next(rule for rule in found.rules if rule.model == model).parameter == pytest.approx(expected, rel=0.06)


def test_an_item_that_ties_with_better_ones_falls_if_ties_are_dropped():
    """a beats c 6 of 10 times and b 5 of 10; b ties with a half of the time more, and loses to nobody else often."""
    duels = [(0, 2, 1.0)] * 60 + [(0, 2, 0.0)] * 40  # a beats c 60:40
    duels += [(1, 0, 0.5)] * 200 + [(1, 0, 0.0)] * 12 + [(1, 0, 1.0)] * 4  # b: mostly ties with a, otherwise loses
    duels += [(1, 2, 1.0)] * 55 + [(1, 2, 0.0)] * 50
    first, second, result = zip(*duels, strict=True)
    found = review_ties(Votes.from_arrays("abc", first, second, result))
    half, drop = found.rules[:2]
    assert drop.scores[0] - drop.scores[1] > half.scores[0] - half.scores[1] + 0.1
    assert half.leader == drop.leader == "a"
    assert "a has the highest score no matter how ties are counted" in found.sentence


def test_another_leader_is_named():
    """a has more half points, b more decisive wins."""
    duels = [(0, 1, 0.5)] * 20 + [(1, 0, 1.0)] * 2 + [(0, 2, 1.0)] * 30 + [(0, 2, 0.0)] * 10
    duels += [(1, 2, 1.0)] * 30 + [(1, 2, 0.5)] * 60 + [(1, 2, 0.0)] * 10
    first, second, result = zip(*duels, strict=True)
    found = review_ties(Votes.from_arrays("abc", first, second, result))
    leaders = {rule.model: rule.leader for rule in found.rules}
    assert (leaders["half"], leaders["drop"]) == ("a", "b")
    assert "which item has the highest score depends on how ties are counted, a (half a win each" in found.sentence
    assert " or b (dropped" in found.sentence
    assert (found.rules[1].moved, found.rules[1].largest_move) == (2, 1)


def test_an_item_with_ties_only_keeps_a_rank():
    found = review_ties(Votes.from_arrays("abc", [0, 0, 1] * 5, [1, 1, 2] * 5, [1, 0, 0.5] * 5))
    assert all(sorted(rule.ranks) == [1, 2, 3] for rule in found.rules)


def test_equal_scores_do_not_change_order_by_rounding():
    """a and c have the same votes."""
    found = review_ties(Votes.from_arrays("abc", [0, 1, 2] * 8, [1, 2, 0] * 8, [1, 0, 0.5] * 8))
    assert [(rule.leader, rule.moved) for rule in found.rules] == [("a", 0)] * 4
