"""What the audit must show on recorded votes: LLMFAO, MT-Bench and UKPConvArg1.

Ties are dropped here, as in the figures on rigging that these numbers are compared with.
"""

import numpy as np
import pytest

from fairduel.votes import rank
from fairduel.votes.attacking.injection import Campaign, Campaigner, inject
from fairduel.votes.attacking.stress import rank_by_score, stress
from fairduel.votes.auditing.audit import audit
from fairduel.votes.auditing.voters import audit_voters
from fairduel.votes.certifying.search import Fitting, fragility
from fairduel.votes.ranking.bradley_terry import fit_scores, wins


def plain_ranks(votes):
    """Names of the items, the best first."""
    return [votes.items[k] for k in np.argsort(-fit_scores(wins(votes, ties="drop")).scores)]


def target_and_size(name, votes):
    """The median of 59 models and 100 votes; alpaca-13b, which is fifth of six, and 10 % of the votes."""
    return (plain_ranks(votes)[29], 100) if name == "llmfao" else (plain_ranks(votes)[4], 286)


@pytest.mark.parametrize("name", ["llmfao", "mtbench_human", "ukpconvarg1"])
def test_nobody_is_flagged_on_clean_votes(recorded, name):
    evidence = audit_voters(recorded(name))
    assert evidence.flagged.sum() == 0
    assert evidence.settings["voters_tested"] > 60


def test_voters_who_choose_their_duels_are_seen_and_not_flagged(recorded):
    evidence = audit_voters(recorded("mtbench_human"))  # three authors judged one model against all others
    assert evidence.settings["voters_who_choose_their_duels"] == 3


@pytest.mark.parametrize("name", ["llmfao", "mtbench_human"])
@pytest.mark.parametrize("voters", [1, 2, 5, 10])
def test_a_campaign_by_few_voters_is_flagged_and_undone(recorded, name, voters):
    votes = recorded(name)
    target, size = target_and_size(name, votes)
    [row] = stress(votes, "promote", target, sizes=[size], voters=voters, ties="drop").to_dicts()
    assert row["rank_plain"] == (1 if name == "llmfao" else 4)
    assert row["liars_flagged"] == voters
    assert row["fake_votes_left"] == 0
    assert row["others_flagged"] <= 1  # on LLMFAO one real voter chose the first answer in 21 of 21 votes
    clean, attacked = votes, inject(votes, "promote", target, size=size, voters=voters).votes
    trusted = attacked.reweighted(audit_voters(attacked).vote_weights(attacked))
    before, during, after = (
        next(standing for standing in rank(each, ties="drop").standings if standing.item == target)
        for each in (clean, attacked, trusted)
    )
    assert during.score > before.score + before.error
    assert abs(after.score - before.score) < 0.2 * before.error


@pytest.mark.parametrize("name", ["llmfao", "mtbench_human"])
def test_weights_alone_hold_back_little_against_one_vote_voters(recorded, name):
    votes = recorded(name)
    target, size = target_and_size(name, votes)
    clean = plain_ranks(votes).index(target) + 1
    rows = stress(votes, "promote", target, sizes=[size // 4, size], voters=size, ties="drop").to_dicts()
    for row in rows:
        assert 0 <= row["rank_weighted"] - row["rank_plain"] <= 2  # never worse, hardly better
    assert rows[1]["rank_weighted"] < clean  # so the attack succeeds against them …
    assert rows[1]["liars_flagged"] == 0  # … and nobody is flagged, …
    assert rows[1]["fake_votes_left"] < 0.1 * size  # … but the one-vote voters differ as a crowd, and count less
    assert abs(rows[1]["rank_ours"] - clean) <= 2


def test_fragility_warns_of_one_vote_voters(recorded):
    votes = recorded("llmfao")
    target, size = target_and_size("llmfao", votes)
    attacked = inject(votes, "promote", target, size=size, voters=size).votes
    for result in fragility(attacked, fitting=Fitting(ties="drop")):
        assert result.loses == target
        assert result.found < 0.01 * result.votes


@pytest.mark.parametrize(
    ("name", "dropped", "flipped"), [("llmfao", (2, 3), (2, 2)), ("mtbench_human", (37, 83), (37, 42))]
)
def test_expert_votes_are_sturdier(recorded, name, dropped, flipped):
    found = {result.how: result for result in fragility(recorded(name), fitting=Fitting(ties="drop"))}
    for how, (least, most) in (("dropped", dropped), ("flipped", flipped)):
        assert (found[how].at_least, found[how].found) == (least, most)


def test_the_set_that_is_found_changes_the_leader_of_recorded_votes(recorded):
    votes = recorded("mtbench_human")
    result = fragility(votes, fitting=Fitting(ties="drop"), hows=["dropped"])[0]
    left = votes.without(np.isin(votes.row, result.rows))
    scores = fit_scores(wins(left, ties="drop")).scores
    assert plain_ranks(votes)[0] == result.loses
    assert rank_by_score(scores, votes.items.index(result.gains)) < rank_by_score(
        scores, votes.items.index(result.loses)
    )


@pytest.mark.parametrize(
    ("name", "item", "campaign", "doubted"),
    [
        ("mtbench_human", "1", Campaign("head-to-head", accounts=3, votes_each=64, false_each=32), True),
        ("llmfao", "34", Campaign("head-to-head", accounts=2, votes_each=64, false_each=8), False),
    ],
)
def test_the_cheapest_campaign_of_cost_passes_a_full_audit(recorded, name, item, campaign, doubted):
    """By reliability another leads on one file; on the other, sixteen false votes win by reliability, too."""
    votes = recorded(name)
    leader = rank(votes).standings[0].item
    cast = Campaigner(votes, votes.items.index(item), votes.items.index(leader)).cast(campaign, seed=0)
    found = audit(cast.votes, top=1)
    assert leader != item == found.everyone.standings[0].item
    assert not found.someone_flagged
    assert found.trusted.standings[0].item == (leader if doubted else item)
    verdict = found.shown.verdicts[0]
    assert verdict.state in {"tie", "too early"}  # the campaign is not noticed, but nobody reads that it succeeded
    assert {leader, item} <= set(verdict.items)
