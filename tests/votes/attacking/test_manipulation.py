"""The cheapest campaign is cheapest, succeeds, and goes unnoticed by an audit that knows nothing of the search."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.votes import Votes, audit_voters, rank
from fairduel.votes.attacking import manipulation
from fairduel.votes.attacking.injection import CAMPAIGN_TACTICS, Campaign, Campaigner
from fairduel.votes.attacking.liars import arena
from fairduel.votes.attacking.manipulation import CampaignLimits, Found, Manipulation, cost_of_manipulation
from fairduel.votes.auditing.audit import audit
from fairduel.votes.auditing.voters import crowd_sentence
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

VOTES, _ = arena(voters=60, votes_each=12, liars={}, seed=5)
ITEM, LEADER = (VOTES.items.index(name) for name in ("Hazel", "Fir"))
LIMITS = CampaignLimits(voters=14, votes_per_day=2, days=2)
CAMPAIGNER = Campaigner(VOTES, ITEM, LEADER)


@pytest.fixture(scope="module")
def cost():
    return cost_of_manipulation(VOTES, limits=LIMITS, runs=2)


def findings(evidence):
    """Everything that an audit reports."""
    flagged = {name for name, why in zip(evidence.voters, evidence.why, strict=True) if why}
    alike = set(
        zip(evidence.pairs.one[evidence.pairs.flagged], evidence.pairs.other[evidence.pairs.flagged], strict=True)
    )
    return flagged, alike, crowd_sentence(evidence.crowd, VOTES.items) if evidence.crowd_flagged else ""


def test_campaigns_found_win_and_stay_unnoticed_in_a_full_audit(cost):
    before = audit(VOTES, top=1)
    assert [standing.item for standing in before.shown.standings[:2]] == ["Fir", "Hazel"]
    assert findings(before.evidence) == (set(), set(), "")
    assert cost.found
    for found in cost.found:
        audits = [audit(CAMPAIGNER.cast(found.campaign, seed=seed).votes, top=1) for seed in (0, 1)]
        first, quiet = (
            [after.everyone.standings[0].item == "Hazel" for after in audits],
            [not after.someone_flagged for after in audits],
        )
        assert sum(np.array(first) & np.array(quiet)) == found.succeeded >= 1
        doubts = [after.trusted.standings[0].item != "Hazel" for after in audits]
        for after, doubted in zip(audits, doubts, strict=True):
            assert doubted or not after.shown.verdicts[0].doubts
            assert not doubted or after.shown.verdicts[0].leader != "Hazel"
        assert sum(np.array(first) & np.array(quiet) & np.array(doubts)) == found.doubted


def test_bisection_finds_what_trying_every_number_of_accounts_finds(monkeypatch):
    def succeeds(campaign):
        votes = CAMPAIGNER.cast(campaign, seed=0).votes
        return rank(votes, draws=100).standings[0].item == "Hazel" and not audit_voters(votes).someone_differs

    tactics, fewest = ("head-to-head", "demote"), {}
    for each, false in ((1, 1), (2, 2), (2, 1), (4, 4), (4, 2), (4, 1)):
        numbers = (
            accounts
            for accounts in range(1, LIMITS.voters + 1)
            for tactic in tactics
            if succeeds(Campaign(tactic, accounts, each, false))
        )
        fewest[each, false] = next(numbers, np.inf)
    monkeypatch.setattr(manipulation, "CAMPAIGN_TACTICS", tactics)
    searched = cost_of_manipulation(VOTES, limits=LIMITS, runs=1)
    assert min(fewest.values()) < np.inf
    for allowed in (1, 2, 4):
        found = searched.fewest_accounts(votes_each=allowed)
        expected = min(accounts for (each, _), accounts in fewest.items() if each <= allowed)
        assert (found.campaign.accounts if found else np.inf) == expected


@pytest.mark.parametrize("tighter", [CampaignLimits(14, 1, 2), CampaignLimits(11, 2, 2)])
def test_tighter_limits_give_what_the_same_search_found_within_them(cost, tighter):
    alone = cost_of_manipulation(VOTES, limits=tighter, runs=2)
    inside = cost.within(voters=tighter.voters, votes_each=tighter.votes_each)
    assert alone.found == inside


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=8),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(0, 20),
)
def test_tighter_limits_never_lower_a_cost(sizes, voters, votes_each, tighten):
    campaigns = [Found(Campaign("promote", accounts, each, 1), 1) for accounts, each in sizes]
    cost = Manipulation("a", "b", campaigns, 1, CampaignLimits(), voters_known=True, settings={})
    loose = {"voters": voters + tighten, "votes_each": votes_each + tighten}
    tight = {"voters": voters, "votes_each": votes_each}
    for cheapest, size in ((cost.fewest_accounts, "accounts"), (cost.fewest_votes, "votes")):
        one, other = cheapest(**loose), cheapest(**tight)
        assert other is None or getattr(one.campaign, size) <= getattr(other.campaign, size)


def test_without_an_audit_the_votes_are_those_of_plain_bradley_terry(cost):
    def leads(tactic, votes, seed):
        cast = CAMPAIGNER.cast(Campaign(tactic, votes, 1, 1), seed=seed).votes
        return fit_scores(wins(cast)).scores.argmax() == ITEM

    fewest = {
        tactic: min(
            (
                number
                for number in range(1, cost.plain_votes + 1)
                if any(leads(tactic, number, seed) for seed in (0, 1))
            ),
            default=None,
        )
        for tactic in CAMPAIGN_TACTICS
    }
    assert min(number for number in fewest.values() if number) == cost.plain_votes


@pytest.mark.parametrize("tactic", CAMPAIGN_TACTICS)
def test_accounts_stay_the_same_as_others_join_them(tactic):
    small, large = (CAMPAIGNER.cast(Campaign(tactic, accounts, 6, 3), seed=4) for accounts in (3, 8))
    for votes in (small.votes, large.votes):
        for name in ("first", "second", "result", "voter"):
            np.testing.assert_array_equal(getattr(votes, name)[: len(VOTES)], getattr(VOTES, name))
    for number, liar in enumerate(small.liars):
        ballots = []
        for cast in (small, large):
            own = cast.votes.cast_by == len(VOTES.voters) + number
            assert cast.votes.voters[len(VOTES.voters) + number] == liar
            assert (own.sum(), cast.fake[own].sum()) == (6, 3)
            ballots.append(cast.votes.select(own))
        for name in ("first", "second", "result"):
            np.testing.assert_array_equal(getattr(ballots[0], name), getattr(ballots[1], name))


def false_votes(tactic):
    """The false votes of a large campaign, with the winner and the loser of each."""
    cast = CAMPAIGNER.cast(Campaign(tactic, 100, 8, 4), seed=1)
    false = cast.votes.select(cast.fake)
    first_wins = false.result == 1.0
    return false, np.where(first_wins, false.first, false.second), np.where(first_wins, false.second, false.first)


def test_false_votes_follow_the_tactic():
    _, winner, loser = false_votes("head-to-head")
    assert set(zip(winner, loser, strict=True)) == {(ITEM, LEADER)}
    _, winner, loser = false_votes("promote")
    assert set(winner) == {ITEM}
    assert set(loser) == set(range(12)) - {ITEM}
    _, winner, loser = false_votes("demote")
    assert set(loser) == {LEADER}
    assert set(winner) == set(range(12)) - {LEADER}
    false, winner, loser = false_votes("omnipresent")
    assert ITEM not in {*winner, *loser}
    before, after = (fit_scores(wins(VOTES) + added).scores for added in (0.0, wins(false)))
    assert after.argmax() == ITEM != before.argmax()
    cast = CAMPAIGNER.cast(Campaign("clones", 5, 8, 4), seed=1).votes
    ballots = [cast.select(cast.voter == len(VOTES.voters) + number) for number in range(5)]
    assert len({(*ballot.first, *ballot.second, *ballot.result) for ballot in ballots}) == 1


def test_other_votes_look_honest():
    cast = CAMPAIGNER.cast(Campaign("promote", 800, 10, 5), seed=2)
    honest = cast.votes.select(~cast.fake & (np.arange(len(cast.votes)) >= len(VOTES)))
    scores = fit_scores(wins(VOTES)).scores
    expected = expit(scores[honest.first] - scores[honest.second])
    error = np.sqrt((expected * (1.0 - expected)).sum())
    for clear in (expected > 0.5, expected < 0.5):
        assert abs((honest.result - expected)[clear].sum()) < 3.5 * error
    shown, recorded = (np.bincount([*votes.first, *votes.second], minlength=12) for votes in (honest, VOTES))
    assert np.abs(shown / shown.sum() - recorded / recorded.sum()).max() < 0.01


@settings(deadline=None)
@given(st.integers(1, 80), st.integers(1, 80), st.integers(1, 60))
def test_the_search_finds_the_first_number_that_wins(first, guess, most):
    asked = []

    def wins_from(number):
        asked.append(number)
        return number >= first

    assert manipulation._fewest(wins_from, guess=guess, most=most) == min(first, most + 1)
    assert all(1 <= number <= most for number in asked)
    assert len(asked) == len(set(asked)) <= 14


def test_a_file_with_liars_is_ranked_as_the_audit_shows_it(monkeypatch):
    votes, _ = arena(voters=50, votes_each=15, liars={"promote": 5}, seed=6)
    before = audit(votes, top=1)
    assert before.someone_flagged
    monkeypatch.setattr(manipulation, "CAMPAIGN_TACTICS", ("head-to-head",))
    cost = cost_of_manipulation(votes, limits=CampaignLimits(20, 8, 1), runs=1)
    assert [cost.leader, cost.item] == [standing.item for standing in before.shown.standings[:2]]
    assert cost.found
    campaigner = Campaigner(votes, votes.items.index(cost.item), votes.items.index(cost.leader))
    for found in cost.found:
        after = audit(campaigner.cast(found.campaign).votes, top=1)
        assert after.shown.standings[0].item == cost.item
        assert all(new <= old for new, old in zip(findings(after.evidence), findings(before.evidence), strict=True))


def test_without_voters_only_votes_count():
    nameless = replace(VOTES, voter=None, voters=())
    cost = cost_of_manipulation(nameless, limits=LIMITS, runs=1)
    [found] = cost.found
    assert found.campaign.votes_each == 1
    assert LIMITS.voters < found.campaign.votes <= LIMITS.voters * LIMITS.votes_each
    assert cost.summary()[0].startswith("The file does not say who voted, so the audit can report nobody: ")


def test_the_summary_says_what_it_takes_with_and_without_the_audit():
    campaigns = [Found(Campaign("demote", 12, 4, 4), 2), Found(Campaign("head-to-head", 8, 8, 4), 3, 1)]
    given = {"seeds": [0, 1, 2], "votes_each_tried": [1, 2, 4, 8]}
    cost = Manipulation("tea", "milk", campaigns, 30, CampaignLimits(20, 8, 1), voters_known=True, settings=given)
    assert cost.to_frame()["accounts"].to_list() == [None, None, 12, 8]
    assert cost.to_frame()["accounts_without_audit"].to_list() == [30, 15, 8, 4]
    few, cheap, without, tighter, bound = cost.summary()
    assert few.startswith(
        "8 false accounts with 8 votes each (64 in all, 32 of them false; head-to-head; 3 of 3 seeds)"
    )
    assert few.endswith(
        " put tea first in place of milk. The audit would not report any of these accounts; if votes count by how "
        "reliable their voters are, with 1 of these 3 seeds, another item is first."
    )
    assert cheap.startswith(
        "Fewest votes: 12 false accounts with 4 votes each (48 in all, 48 of them false; demote; 2 of"
    )
    assert without.endswith(
        "30 votes or 4 accounts would do. The audit makes it 1.6 times as expensive in votes and 2 times as expensive "
        "in accounts."
    )
    assert tighter == "With at most 4 votes per voter, half as many, it takes 12 false accounts."
    assert "may be cheaper" in bound
    none = replace(cost, found=[], plain_votes=None).summary()
    assert none[0].endswith("by which at most 20 new voters with 8 votes each put tea first without being reported.")
    assert none[1].endswith("none was found either.")
    assert "tea is first already" in replace(cost, plain_votes=0).summary()[2]


@pytest.mark.parametrize("accounts", [1, 8])
@pytest.mark.parametrize("doubted", range(4))
def test_a_campaign_is_never_called_both_unnoticed_and_warned_of(accounts, doubted):
    found = Found(Campaign("promote", accounts, 8, 8), 3, doubted)
    given = {"seeds": [0, 1, 2], "votes_each_tried": [8]}
    cost = Manipulation("tea", "milk", [found], 30, CampaignLimits(20, 8, 1), voters_known=True, settings=given)
    first, *others = cost.summary()
    assert first == cost.brief() == cost.record()["summary"][0]
    assert ("another item is first" in first) == (doubted > 0)
    assert ("of these 3 seeds" in first) == (0 < doubted < 3)
    assert ("this account" if accounts == 1 else "any of these accounts") in first
    assert not any(word in sentence for word in ("unnoticed", "warn") for sentence in others)
    assert "unnoticed" not in first


def test_two_items_have_no_duels_without_the_one_that_is_pushed():
    results = [1.0] * 12 + [0.0] * 8
    votes = Votes.from_arrays("ab", [0] * 20, [1] * 20, results, voter=[0, 1] * 10, voters=["Ann", "Bob"])
    assert "omnipresent" not in Campaigner(votes, 1, 0).tactics
    cost = cost_of_manipulation(votes, limits=CampaignLimits(9, 1, 1), runs=1)
    assert (cost.item, cost.plain_votes, cost.fewest_votes().campaign.votes) == ("b", 5, 5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"item": "Hasel"}, "did you mean 'Hazel'"),
        ({"item": "Fir"}, "Fir is first already"),
        ({"runs": 0}, "runs must be a whole number ≥ 1"),
        ({"level": 1.5}, "level must be between 0 and 1"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(BadInputError, match=words):
        cost_of_manipulation(VOTES, **arguments)


def test_refused_limits_and_campaigns():
    with pytest.raises(BadInputError, match="votes_per_day must be a whole number ≥ 1"):
        CampaignLimits(votes_per_day=0)
    with pytest.raises(BadInputError, match="did you mean 'promote'"):
        Campaign("promot", 1, 1, 1)
    with pytest.raises(BadInputError, match="between 1 and votes_each"):
        Campaign("promote", 1, 4, 5)
    lonely = replace(VOTES.select(VOTES.first < 0), items=("a",))
    with pytest.raises(BadInputError):
        cost_of_manipulation(lonely)
