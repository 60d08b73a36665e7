import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.report.votes.audit_page import audit_sections
from fairduel.votes import Votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.audit import audit, tops
from fairduel.votes.deciding import decide


def test_an_audit_that_finds_nobody_shows_the_ranking_by_all_votes():
    votes, _ = arena(liars={}, seed=0)
    found = audit(votes, top=2)
    assert found.camps.found == ()
    orders = [[standing.item for standing in ranking.standings] for ranking in (found.everyone, found.trusted)]
    assert orders[0] != orders[1]
    assert found.shown is found.everyone
    assert found.summary()[: len(found.verdicts[0].sentences)] == found.verdicts[0].sentences
    assert any(each.startswith("None of the ") for each in found.summary())
    assert not any("flagged voters" in sentence for sentence in found.advice())
    assert [(r.top, r.how) for r in found.fragility] == [(1, "dropped"), (1, "flipped"), (2, "dropped"), (2, "flipped")]


def test_liars_change_the_advice_to_the_ranking_without_them():
    votes, _ = arena(seed=4)
    found = audit(votes, top=1)
    before, after = (next(ranking.components())[0].item for ranking in (found.everyone, found.trusted))
    assert (before, after) == ("Maple", "Rowan")
    without, with_all = found.headlines()
    assert without == f"Without the 8 flagged voters: {found.trusted.verdicts[0].headline}"
    assert with_all == f"With all votes: {found.everyone.verdicts[0].headline}"
    assert found.everyone.verdicts[0].headline != found.trusted.verdicts[0].headline
    assert found.summary()[: len(found.verdicts[0].sentences) + 1] == [without, *found.verdicts[0].details, with_all]
    assert found.verdicts[0].leader is None
    tie = "Announce a tie between Rowan, Birch, Elm, Hazel and Fir, or collect more votes on them."
    assert found.advice()[-1] == tie
    assert {result.loses for result in found.trusted_fragility} == {"Rowan"}


def test_no_tie_is_announced_with_an_item_that_a_stretch_of_votes_puts_first():
    """The last voters are asked about one item only, and vote for it."""
    rng = np.random.default_rng(0)
    scores = np.array([0.9, 0.5, 0.3, 0.0, 0.0, -0.3, -0.6, -0.9])
    first = rng.integers(8, size=800)
    second = (first + rng.integers(1, 8, size=800)) % 8
    late = np.arange(800) >= 640
    first[late], second[late & (second == 2)] = 2, 0
    won = np.where(late, 1.0, rng.random(800) < 1.0 / (1.0 + np.exp(scores[second] - scores[first])))
    voter = np.arange(800) // 12
    names = [f"i{k}" for k in range(8)]
    found = audit(Votes.from_arrays(names, first, second, won, voter=voter, voters=[f"v{k}" for k in range(67)]), top=1)
    assert found.burst.changes_leader
    assert found.verdicts[0].state == "tie"
    assert "Announce nothing yet." in found.advice()
    assert not any("Announce a tie" in each for each in found.advice())


def test_the_advice_asks_who_chose_the_duels_if_a_flag_rests_on_that():
    doubt = "If voters chose their own, rerun with --voters-choose-duels."
    promoted = arena(seed=4)[0]
    assert doubt in " ".join(audit(promoted, top=1).advice())
    assert doubt not in " ".join(audit(promoted, top=1, duels_assigned=False).advice())
    one_sided = audit(arena(liars={"one-side": 1}, seed=1)[0], top=1)
    assert "A flag is statistical evidence" in " ".join(one_sided.advice())
    assert doubt not in " ".join(one_sided.advice())
    assert one_sided.summary()[0].startswith("Without the flagged voter: ")
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
    assert found.advice()[-1] == "Announce a as the winner, and say how many false votes that survives."
    assert found.summary()[0] == "a has won against 2 other items, so you can stop."
    assert found.verdicts[0].certificate.sentence in found.summary()
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
        assert found.verdicts[0].state in ("too early", "leads")
        assert "do not announce a winner yet" in found.advice()[-1] or found.advice()[-1].startswith("Announce nothing")


@pytest.mark.parametrize("seed", range(4))
def test_fragility_is_that_of_the_first_item(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(6, size=150)
    second = (first + rng.integers(1, 6, size=150)) % 6
    scores = np.array([seed, 0.4, 0.2, 0.0, -0.2, -0.4])
    result = (rng.random(150) < expit(scores[first] - scores[second])).astype(float)
    voter, names = rng.integers(20, size=150), [str(voter) for voter in range(20)]
    votes = Votes.from_arrays("abcdef", first, second, result, voter=voter, voters=names)
    found = audit(votes, top=1)
    assert not found.someone_flagged
    leader = found.everyone.standings[0].item
    assert {result.loses for result in (*found.fragility, *found.challengers)} == {leader}
    fewest = min(result.found for result in found.challengers if result.found)
    assert next(result.found for result in found.fragility if result.how == "dropped") <= fewest


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
    assert "Group tea: a has won against 1 other item, so you can stop." in found.summary()


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
    monkeypatch.setattr("fairduel.votes.auditing.collusion._MOST_COINCIDENCES", 10)
    assert "Pairs of voters were not compared" in " ".join(audit(votes, top=1).summary())


def test_there_is_no_other_ranking_if_every_voter_is_flagged():
    found = audit(arena(voters=30, liars={}, seed=0)[0], top=1)
    evidence = replace(found.evidence, flagged=np.ones(30, dtype=bool))
    everyone = replace(found, evidence=evidence, trusted=found.everyone)
    assert everyone.headlines() == [everyone.everyone.verdicts[0].headline]
    assert "No votes are left without them, so nobody is left out." in everyone.summary()


def test_voters_who_could_not_be_tested_are_mentioned():
    votes = Votes.from_arrays("abc", [0] * 10, [1, 2] * 5, [1] * 10, voter=[0] * 9 + [1], voters="uv")
    assert "1 voter was not tested individually" in " ".join(audit(votes, top=1).summary())


def test_an_audit_of_thousands_of_items_leaves_out_what_would_take_hours():
    rng, items, count = np.random.default_rng(0), 1200, 6000
    scores, voter = rng.normal(size=items), rng.integers(300, size=count)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    won = rng.random(count) < expit(scores[first] - scores[second])
    names, people = [f"i{k}" for k in range(items)], [f"v{k}" for k in range(300)]
    votes = Votes.from_arrays(names, first, second, won.astype(float), voter=voter, voters=people)
    found = audit(votes)
    assert (list(found.fragility), list(found.challengers), list(found.trusted_fragility)) == ([], [], [])
    assert found.summary()[-1].startswith("With more than 1,000 items, nobody examined how few votes")
    assert not found.evidence.flagged.any()
    assert found.evidence.settings["voters_tested"] == 300
    assert "How fragile is the result?" not in [section.title for section in audit_sections(found)]
    with pytest.raises(BadInputError, match="more than 1,000 items"):
        decide(votes, found.everyone, lies=1)
