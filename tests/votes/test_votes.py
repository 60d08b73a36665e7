import re
from pathlib import Path

import numpy as np
import pytest

import fairduel
from fairduel import BadInputError
from fairduel.votes import Votes


def made(**changes):
    arrays = {"items": "abc", "first": [0, 1, 2], "second": [1, 2, 0], "result": [1, 0.5, 0]}
    return Votes.from_arrays(**arrays | changes)


def test_votes_know_their_rows_and_count_once():
    votes = made()
    assert len(votes) == 3
    assert votes.row.tolist() == [2, 3, 4]
    assert votes.weight.tolist() == [1, 1, 1]
    assert (votes.voter, votes.context, votes.time) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"items": "aab"}, "item names must be unique"),
        ({"first": [0, 1]}, "3 whole numbers, one per vote"),
        ({"first": [0, 1, 3]}, "between 0 and 2"),
        ({"first": [0, 1, -1]}, "between 0 and 2"),
        ({"first": [0.0, 1.0, 2.0]}, "whole numbers"),
        ({"first": [1, 1, 2]}, "vote 0 compares an item with itself"),
        ({"result": [1, 0.7, 0]}, "every result must be"),
        ({"result": [1, np.nan, 0]}, "every result must be"),
        ({"result": "abc"}, "numbers"),
        ({"weight": [1, -1, 1]}, "≥ 0"),
        ({"weight": [1, np.nan, 1]}, "≥ 0"),
        ({"weight": [1, np.inf, 1]}, "≥ 0"),
        ({"voter": [0, 0, 1], "voters": ["Ann"]}, "voter must be between 0 and 0"),
        ({"voter": [0, 0], "voters": ["Ann"]}, "voter must be 3 whole numbers"),
        ({"time": [1.0, 2.0]}, "time must be numbers"),
    ],
)
def test_bad_arrays_are_refused(changes, reason):
    with pytest.raises(BadInputError, match=reason):
        made(**changes)


def test_selecting_keeps_order_and_codes():
    votes = made(voter=[0, 1, 0], voters=["Ann", "Bob"], context=[2, 0, 1], contexts="xyz", time=[5, 6, 7])
    chosen = votes.select(np.array([True, False, True]))
    assert chosen.row.tolist() == [2, 4]
    assert (chosen.first.tolist(), chosen.second.tolist(), chosen.result.tolist()) == ([0, 2], [1, 0], [1, 0])
    assert (chosen.voter.tolist(), chosen.context.tolist(), chosen.time.tolist()) == ([0, 0], [2, 1], [5, 7])
    assert chosen.items == votes.items
    left = votes.without(np.array([True, False, True]))
    assert left.row.tolist() == [3]


@pytest.mark.parametrize("mask", [[True], [0, 1, 2], [1.0, 0.0, 1.0]])
def test_a_selection_needs_one_boolean_per_vote(mask):
    with pytest.raises(BadInputError, match="one boolean for each of the 3 votes"):
        made().select(np.array(mask))


def test_components_are_numbered_by_size_and_ignore_votes_of_no_weight():
    votes = Votes.from_arrays("abcdef", [0, 2, 3, 5], [1, 3, 4, 0], [1, 1, 0, 1], weight=[1, 1, 1, 0])
    assert votes.components().tolist() == [1, 1, 0, 0, 0, 2]


def test_no_votes_are_votes_too():
    votes = Votes.from_arrays([], [], [], [])
    assert len(votes) == 0
    assert votes.components().tolist() == []


def test_a_tie_counts_as_it_is_told():
    votes = made(weight=[2, 3, 4])
    assert votes.is_tie.tolist() == [False, True, False]
    assert votes.counts("half").tolist() == [2, 3, 4]
    assert votes.counts("drop").tolist() == [2, 0, 4]
    with pytest.raises(BadInputError, match="unknown treatment of ties 'lose'"):
        votes.counts("lose")


def test_a_dropped_tie_links_no_items():
    votes = Votes.from_arrays("abc", first=[0, 1], second=[1, 2], result=[1, 0.5])
    assert votes.components().tolist() == [0, 0, 0]
    assert votes.components("drop").tolist() == [0, 0, 1]


def test_who_voted_must_be_known_to_be_asked():
    assert made(voter=[0, 1, 0], voters="uv").cast_by.tolist() == [0, 1, 0]
    with pytest.raises(BadInputError, match="do not say who voted"):
        _ = made().cast_by


def test_votes_need_only_the_mathematics():
    below = {"core", "checks", "duel", "errors", "features", "files", "votes", "words"}
    files = (Path(fairduel.__file__).parent / "votes").rglob("*.py")
    imported = {
        name for file in files for name in re.findall(r"from fairduel\.(\w+)", file.read_text(encoding="utf-8"))
    }
    assert imported <= below
