"""Ballots of several items are read as votes on their pairs."""

import pytest

from fairduel.errors import BadInputError
from fairduel.votes import rank, read_votes


def said(votes):
    words = {1.0: ">", 0.0: "<", 0.5: "="}
    rows = zip(votes.first, votes.second, votes.result, strict=True)
    return [f"{votes.items[a]} {words[r]} {votes.items[b]}" for a, b, r in rows]


def test_wmt_ranks_systems_per_row(tmp_path):
    (tmp_path / "wmt.csv").write_text(
        "srclang,judgeId,system1Id,system2Id,system3Id,system1rank,system2rank,system3rank\n"
        "ces,anna,x,y,z,2,1,2\nces,ben,x,y,z,1,-1,3\n"
    )
    reading = read_votes(tmp_path / "wmt.csv")
    assert said(reading.votes) == ["y > x", "y > z", "x = z", "x > z"]
    assert [reading.votes.voters[v] for v in reading.votes.voter] == ["anna"] * 3 + ["ben"]
    assert "2 ballots were read as 4 votes" in " ".join(reading.notes(see=""))


def test_best_and_worst_of_each_row(tmp_path):
    (tmp_path / "bws.csv").write_text(
        "worker,item_1,item_2,item_3,item_4,best,worst\nann,a,b,c,d,c,a\nben,a,b,c,d,q,a\n"
    )
    reading = read_votes(tmp_path / "bws.csv")
    assert said(reading.votes) == ["c > b", "c > d", "c > a", "b > a", "d > a"]
    assert list(reading.votes.voters) == ["ann"]
    assert len(reading.set_aside) == 1


def test_preflib_has_counts_groups_of_equals_and_short_ballots(tmp_path):
    text = "# FILE NAME: drinks.toi\n" + "".join(
        f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate(("tea", "milk", "water"), 1)
    )
    (tmp_path / "drinks.toi").write_text(text + "3: 1,2,3\n1: {2,3},1\n1: 2\n")
    votes = read_votes(tmp_path / "drinks.toi").votes
    once = ["tea > milk", "tea > water", "milk > water"]
    assert said(votes) == once * 3 + ["milk > tea", "milk = water", "water > tea"]
    assert len(set(votes.voter.tolist())) == 4
    assert rank(votes).standings[0].item == "tea"
    (tmp_path / "broken.soc").write_text(text + "3; 1,2\n")
    with pytest.raises(BadInputError, match=r"line 5 of broken\.soc is no ballot"):
        read_votes(tmp_path / "broken.soc")
