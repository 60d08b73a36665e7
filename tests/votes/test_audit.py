import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.report.audit_page import audit_sections
from fairduel.votes import Votes, rank
from fairduel.votes.auditing import audit, tops
from fairduel.votes.ranking import summarise, verdicts
from fairduel.votes.synthetic import arena


def test_an_honest_arena_has_one_ranking_and_no_flag():
    votes, _ = arena(liars={}, seed=0)
    found = audit(votes, top=2)
    assert found.shown is found.everyone
    assert "no voter is flagged" in found.summary()[0]
    assert not any("flagged voters" in sentence for sentence in found.advice())
    assert [(r.top, r.how) for r in found.fragility] == [(1, "dropped"), (1, "flipped"), (2, "dropped"), (2, "flipped")]


def test_liars_change_the_advice_to_the_ranking_without_them():
    votes, _ = arena(seed=4)
    found = audit(votes, top=1)
    before, after = (next(ranking.components())[0].item for ranking in (found.everyone, found.trusted))
    assert (before, after) == ("Maple", "Birch")
    assert found.summary()[0] == "Without the 8 flagged voters, Birch is first; with all votes, Maple is."
    advice = " ".join(found.advice())
    assert "Do not announce Birch" in advice
    best = [standing.item for standing in found.trusted.standings if standing.rank_low == 1]
    assert len(best) == 6
    assert f"Call it a tie between {', '.join(best[:-1])} and {best[-1]}, or collect" in advice
    assert {result.loses for result in found.trusted_fragility} == {"Birch"}


def test_the_advice_asks_who_chose_the_duels_if_a_flag_rests_on_that():
    doubt = "If voters chose their own, rerun with --voters-choose-duels."
    promoted = arena(seed=4)[0]
    assert doubt in " ".join(audit(promoted, top=1).advice())
    assert doubt not in " ".join(audit(promoted, top=1, duels_assigned=False).advice())
    one_sided = audit(arena(liars={"one side": 1}, seed=1)[0], top=1)
    assert "A flag is statistical evidence" in " ".join(one_sided.advice())
    assert doubt not in " ".join(one_sided.advice())
    assert "the flagged voter" in one_sided.summary()[0]
    assert "After the audit: dropping" in " ".join(one_sided.summary())


def test_single_votes_hide_fake_accounts_and_the_summary_says_so():
    votes, _ = arena(liars={}, seed=0)
    hidden = "Most voters cast a single vote"
    assert hidden not in " ".join(audit(votes, top=1).summary())
    some = votes.select(np.arange(len(votes)) < 1500)
    single = replace(some, voter=np.arange(1500, dtype=np.int32), voters=tuple(map(str, range(1500))))
    assert hidden in " ".join(audit(single, top=1).summary())


def test_a_clear_winner_can_be_announced():
    rng = np.random.default_rng(0)
    first, second = np.zeros(300, dtype=int), rng.integers(1, 3, 300)
    votes = Votes.from_arrays("abc", first, second, (rng.random(300) < 0.9).astype(float))
    found = audit(votes, top=1)
    assert found.advice()[-1].startswith("a can be announced as the winner (95% confidence). Putting ")
    assert "no other item is as good (95% confidence)" in found.summary()[1]
    assert "Record who votes" in found.advice()[0]
    assert found.record()["fragility"][0]["loses"] == "a"


def test_the_record_is_plain_json_and_counts_every_step():
    votes, liars = arena(seed=4)
    steps = []
    record = audit(votes, top=2, progress=steps.append).record()
    assert sum(steps) == 3 + tops(votes, ties="half", top=2) == 5
    again = json.loads(json.dumps(record, default=str))
    assert {row["voter"] for row in again["flagged"]} <= set(liars)
    maple = next(row for row in again["ranks"] if row["item"] == "Maple")
    assert (maple["all_votes"], maple["without_flagged"]) == (1, 7)


@pytest.mark.parametrize("top", [0, -1, 1.5])
def test_top_is_a_whole_number(top):
    with pytest.raises(BadInputError, match="top"):
        audit(arena(liars={}, seed=0)[0], top=top)


def test_two_items_have_a_leader_only():
    votes = Votes.from_arrays("ab", [0] * 9, [1] * 9, [1] * 6 + [0] * 3, voter=range(9), voters="uvwxyzklm")
    found = audit(votes, top=5)
    assert {result.top for result in found.fragility} == {1}


def test_small_files_have_no_clear_winner():
    differing = [1] * 31 + [0] * 2 + [1] * 22 + [0] * 11 + [1] * 13 + [0] * 20
    for votes in (
        Votes.from_arrays("ab", [0, 0], [1, 1], [1, 1]),
        Votes.from_arrays("ab", [0] * 9, [1] * 9, [1] * 6 + [0] * 3),
        Votes.from_arrays("ab", [0] * 99, [1] * 99, differing, voter=np.arange(99) // 33, voters="uvw"),
    ):
        found = audit(votes, top=1)
        assert "Do not announce a as the winner: its true rank may be 1 to 2." in found.advice()[-1]
        assert "a is first of 2 items, but not clearly: b may be as good or better." in found.summary()[1]


@pytest.mark.parametrize("seed", range(4))
def test_ranking_and_audit_say_the_same_of_who_won(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(6, size=150)
    second = (first + rng.integers(1, 6, size=150)) % 6
    scores = np.array([seed, 0.4, 0.2, 0.0, -0.2, -0.4])
    result = (rng.random(150) < expit(scores[first] - scores[second])).astype(float)
    voter, names = rng.integers(20, size=150), [str(voter) for voter in range(20)]
    votes = Votes.from_arrays("abcdef", first, second, result, voter=voter, voters=names)
    ranking, found = rank(votes), audit(votes, top=1)
    assert not found.someone_flagged
    assert verdicts(ranking)[0] == summarise(ranking)[0] == found.summary()[1]
    leader = ranking.standings[0].item
    assert {result.loses for result in (*found.fragility, *found.challengers)} == {leader}
    assert ("can be announced" in found.advice()[-1]) == (ranking.standings[0].rank_high == 1)
    fewest = min(result.found for result in found.challengers if result.found)
    assert next(result.found for result in found.fragility if result.how == "dropped") <= fewest


def test_a_poll_with_a_runaway_winner_can_be_announced():
    """Twelve items, 300 votes, and a leader that wins nearly all of its votes."""
    announced = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        first = rng.integers(12, size=300)
        second = (first + rng.integers(1, 12, size=300)) % 12
        scores = np.append(4.0, 0.5 * rng.normal(size=11))
        result = (rng.random(300) < expit(scores[first] - scores[second])).astype(float)
        votes = Votes.from_arrays("abcdefghijkl", first, second, result)
        announced += "a can be announced" in audit(votes, top=1).advice()[-1]
    assert announced >= 5


def test_every_group_is_examined_and_named_by_its_context():
    rng = np.random.default_rng(0)
    context = rng.integers(3, size=600)
    first = 2 * context + rng.integers(2, size=600)
    second = 4 * context + 1 - first
    votes = Votes.from_arrays(
        "abcdef", first, second, (first < second).astype(float), context=context, contexts=["tea", "milk", "juice"]
    )
    found = audit(votes)
    assert {result.group for result in found.fragility} == {"tea", "milk", "juice"}
    assert {standing.group for standing in found.everyone.standings} == {"tea", "milk", "juice"}
    assert found.advice()[-1].startswith("3 of 3 winners can be announced: ")
    assert "Group tea: a is first of 2 items" in " ".join(found.summary())


def test_an_item_that_only_flagged_voters_met_has_no_rank_without_them():
    votes, liars = arena(seed=4)
    liar = votes.voters.index(next(iter(liars)))
    row = votes.row.max() + 1 + np.arange(3)
    added = {
        "first": [12] * 3,
        "second": [0] * 3,
        "result": [1.0] * 3,
        "voter": [liar] * 3,
        "weight": [1.0] * 3,
        "row": row,
    }
    joined = {
        name: np.concatenate([getattr(votes, name), values]).astype(getattr(votes, name).dtype)
        for name, values in added.items()
    }
    found = audit(replace(votes, items=(*votes.items, "Newcomer"), **joined), top=1)
    assert found.left_alone == {"Newcomer"}
    newcomer = next(each for each in found.record()["ranks"] if each["item"] == "Newcomer")
    assert newcomer["without_flagged"] is None
    assert newcomer["group"] == "2"
    assert "Only flagged voters compared Newcomer with other items" in " ".join(found.summary())
    table = audit_sections(found)[2].tables[0]
    assert "group" in table.columns
    assert ["Newcomer", "2", "not compared", "–"] in [row[:4] for row in table.rows]


def test_the_summary_says_that_pairs_were_not_compared(monkeypatch):
    votes, _ = arena(liars={}, seed=0)
    assert "Pairs of voters" not in " ".join(audit(votes, top=1).summary())
    monkeypatch.setattr("fairduel.votes.collusion._MOST_COINCIDENCES", 10)
    assert "Pairs of voters were not compared" in " ".join(audit(votes, top=1).summary())


def test_there_is_no_other_ranking_if_every_voter_is_flagged():
    found = audit(arena(voters=30, liars={}, seed=0)[0], top=1)
    evidence = replace(found.evidence, flagged=np.ones(30, dtype=bool))
    everyone = replace(found, evidence=evidence, trusted=found.everyone)
    assert "every vote was cast by one of the 30 flagged voters" in everyone.summary()[0]


def test_voters_who_could_not_be_tested_are_mentioned():
    votes = Votes.from_arrays("abc", [0] * 10, [1, 2] * 5, [1] * 10, voter=[0] * 9 + [1], voters="uv")
    assert "1 voter was not tested individually" in " ".join(audit(votes, top=1).summary())
