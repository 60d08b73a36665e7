"""Attacks do what they say, and leave everything else as it was."""

import numpy as np
import polars as pl
import pytest

from fairduel.errors import BadInputError
from fairduel.votes import Votes
from fairduel.votes.attacking.injection import ATTACKS, inject
from fairduel.votes.attacking.liars import arena
from fairduel.votes.attacking.stress import advise_on_stress, rank_by_score, stress, summarise_stress
from fairduel.votes.auditing.voters import audit_voters
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

VOTES, _ = arena(voters=60, liars={}, seed=0)
OAK = VOTES.items.index("Oak")


@pytest.mark.parametrize("attack", ATTACKS)
def test_recorded_votes_stay_as_they_were(attack):
    attacked = inject(VOTES, attack, "Oak", size=37, voters=4, seed=1)
    assert attacked.fake.sum() == 37
    before = ~attacked.fake[: len(VOTES)]
    for name in ("first", "second", "result", "voter", "row", "weight"):
        kept = getattr(attacked.votes, name)[: len(VOTES)]
        np.testing.assert_array_equal(kept[before], getattr(VOTES, name)[before])
        assert kept.dtype == getattr(VOTES, name).dtype
    assert len(np.unique(attacked.votes.row)) == len(attacked.votes)


@pytest.mark.parametrize(("attack", "wins_of_target"), [("promote", 1.0), ("demote", 0.0)])
def test_promote_and_demote(attack, wins_of_target):
    attacked = inject(VOTES, attack, "Oak", size=400, voters=8, seed=2)
    fake = attacked.votes.select(attacked.fake)
    assert ((fake.first == OAK) ^ (fake.second == OAK)).all()
    assert (np.where(fake.first == OAK, fake.result, 1 - fake.result) == wins_of_target).all()
    assert np.bincount(fake.voter)[-8:].tolist() == [50] * 8
    opponents = np.bincount(np.where(fake.first == OAK, fake.second, fake.first), minlength=12)
    real = np.bincount(np.concatenate([VOTES.first, VOTES.second]), minlength=12)
    expected = 400 * np.delete(real, OAK) / np.delete(real, OAK).sum()
    assert ((np.delete(opponents, OAK) - expected) ** 2 / expected).sum() < 30  # χ² with 10 degrees of freedom


def test_omnipresent_lifts_the_target_without_it():
    scores = fit_scores(wins(VOTES)).scores
    target = VOTES.items[int(np.argsort(scores)[4])]
    place = VOTES.items.index(target)
    attacked = inject(VOTES, "omnipresent", target, size=300, voters=3, seed=0)
    fake = attacked.votes.select(attacked.fake)
    assert (fake.first != place).all()
    assert (fake.second != place).all()
    assert rank_by_score(fit_scores(wins(attacked.votes)).scores, place) < rank_by_score(scores, place)


def test_flips():
    early = inject(VOTES, "early-flips", size=10)
    decisive = np.flatnonzero(VOTES.result != 0.5)
    assert np.flatnonzero(early.fake).tolist() == decisive[:10].tolist()
    assert (early.votes.result[early.fake] == 1 - VOTES.result[early.fake]).all()
    assert early.liars == ()
    some = inject(VOTES, "random-flips", size=100, seed=3)
    assert some.fake.sum() == 100
    assert (VOTES.result[some.fake] != 0.5).all()
    assert np.flatnonzero(some.fake).mean() > decisive[:100].mean()


def test_names_of_liars_are_new():
    votes = Votes.from_arrays("ab", [0], [1], [1], voter=[0], voters=["liar 1"])
    assert inject(votes, "promote", "a", size=1).liars == ("new liar 1",)


def test_contexts_come_from_recorded_votes_and_times_are_unknown():
    votes = Votes.from_arrays(
        "abc", [0, 1], [1, 2], [1, 1], voter=[0, 0], voters=["u"], context=[1, 1], contexts=["x", "y"], time=[3.0, 4.0]
    )
    fake = inject(votes, "promote", "c", size=6).votes
    assert (fake.context == 1).all()
    assert np.isnan(fake.time[2:]).all()


def test_stress_follows_the_target_and_counts_the_flagged():
    frame = stress(VOTES, "promote", "Oak", sizes=[0, 40, 300], voters=4, seed=5)
    assert frame["voters"].to_list() == [0, 4, 4]
    assert frame["rank_plain"].to_list()[0] == rank_by_score(fit_scores(wins(VOTES)).scores, OAK)
    assert frame["rank_plain"][2] < frame["rank_plain"][0]
    assert frame["liars_flagged"].to_list() == [0, 4, 4]
    assert frame["fake_votes_left"].to_list() == [0, 0, 0]
    assert frame["rank_ours"][2] == frame["rank_ours"][0]


def test_stress_shows_medians_and_extremes_and_no_voter_who_was_flagged_before():
    votes, _ = arena(seed=4)
    frame = stress(votes, "promote", "Oak", sizes=[0, 60], voters=4, seed=5, runs=3)
    alone = [stress(votes, "promote", "Oak", sizes=[60], voters=4, seed=5 + run).to_dicts()[0] for run in range(3)]
    ranks = sorted(row["rank_plain"] for row in alone)
    row = frame.row(1, named=True)
    assert [row["rank_plain_best"], row["rank_plain"], row["rank_plain_worst"]] == ranks
    assert frame["others_flagged"][0] == 0
    assert audit_voters(votes).flagged.sum() > 0


def test_advice_depends_on_what_the_audit_keeps():
    frame = pl.DataFrame({"size": [0, 10, 20], "target": ["a"] * 3, "rank_plain": [3, 3, 1], "rank_ours": [3, 3, 3]})
    held, moved = frame, frame.with_columns(rank_ours=pl.Series([3, 2, 2]))
    assert "keeps its rank" in advise_on_stress(held)[1]
    assert advise_on_stress(moved)[0] == "Without an audit, 20 false votes can move a. After the audit, 10 still can."
    assert "who votes" in advise_on_stress(frame.drop("rank_ours"))[1]
    assert "does not move a" in advise_on_stress(frame.with_columns(rank_plain=3))[0]


def test_stress_without_voters_has_no_flags():
    nameless = Votes.from_arrays(VOTES.items, VOTES.first, VOTES.second, VOTES.result)
    frame = stress(nameless, "promote", "Oak", sizes=[10])
    assert "rank_ours" not in frame.columns
    assert frame["rank_plain"].len() == 1


def test_ranks_are_those_of_the_targets_component():
    # x beats y by far in a component of its own, so its score is above those of a, b and c
    first, second = [0, 1, 0, 1, 2, 0] * 5 + [3] * 20, [1, 2, 2, 0, 1, 1] * 5 + [4] * 20
    votes = Votes.from_arrays("abcxy", first, second, [1, 1, 1, 1, 1, 1] * 5 + [1] * 19 + [0])
    assert fit_scores(wins(votes)).scores.argmax() == 3
    frame = stress(votes, "random-flips", "a", sizes=[0])
    assert frame.select("rank_plain", "rank_weighted", "leader_plain").row(0) == (1, 1, "a")
    assert stress(votes, "random-flips", sizes=[0])["target"].to_list() == ["a"]


def test_a_target_that_is_left_alone_has_no_rank():
    items = (*VOTES.items, "Newcomer")
    alone = Votes.from_arrays(items, VOTES.first, VOTES.second, VOTES.result, voter=VOTES.voter, voters=VOTES.voters)
    frame = stress(alone, "promote", "Newcomer", sizes=[0, 100])
    assert frame["rank_plain"].to_list() == [None, 1]
    assert frame["rank_ours"][0] is None


def test_flips_without_a_target_follow_the_leader():
    frame = stress(VOTES, "random-flips", sizes=[0])
    assert frame["rank_plain"].to_list() == [1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("promot", "Oak", 5, 1), "did you mean 'promote'"),
        (("promote", None, 5, 1), "needs a target"),
        (("promote", "Oka", 5, 1), "did you mean 'Oak'"),
        (("promote", "Oak", -1, 1), "whole number ≥ 0"),
        (("promote", "Oak", 5, 0), "whole number ≥ 1"),
        (("early-flips", None, 10**6, 1), "have a winner"),
    ],
)
def test_refusals(arguments, words):
    attack, target, size, voters = arguments
    with pytest.raises(BadInputError, match=words):
        inject(VOTES, attack, target, size=size, voters=voters)


def test_an_omnipresent_attack_needs_duels_without_its_target():
    votes = Votes.from_arrays("abc", [0, 0], [1, 2], [1, 0])
    with pytest.raises(BadInputError, match="without its target"):
        inject(votes, "omnipresent", "a", size=1)


def test_the_summary_says_how_far_the_target_moves_and_who_is_flagged():
    frame = stress(VOTES, "promote", "Oak", sizes=[0, 300], voters=4, seed=5)
    clean, worst = frame.to_dicts()
    moved, flagged = summarise_stress(frame, "promote")
    assert clean["rank_plain"] > worst["rank_plain"]
    assert (clean["rank_weighted"], worst["rank_weighted"]) == (clean["rank_plain"], worst["rank_plain"])
    change = f"moves from rank {clean['rank_plain']} to {worst['rank_plain']}, both under plain Bradley–Terry and with"
    assert moved.startswith(f"With 300 false votes (promote), Oak {change}")
    assert flagged.startswith("The attack gets 4 of 4 simulated liars and ")
    assert flagged.endswith(f"after the audit, Oak has rank {worst['rank_ours']}.")
    [unmoved, unflagged] = summarise_stress(stress(VOTES, "random-flips", "Oak", sizes=[0]), "random-flips")
    assert "Oak stays at rank" in unmoved
    assert unflagged == "The attack gets no voter flagged."


def test_the_summary_names_a_smaller_attack_that_moves_the_target_more():
    frame = stress(VOTES, "random-flips", "Oak", sizes=[0, 1, 2]).with_columns(
        rank_plain=pl.Series([3, 5, 3]), rank_weighted=pl.Series([3, None, 2])
    )
    moved, _ = summarise_stress(frame, "random-flips")
    assert "stays at rank 3 (but has rank 5 with 1) under plain Bradley–Terry and moves from rank 3 to 2 with" in moved
