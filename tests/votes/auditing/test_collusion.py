"""Groups: e-BH, weights learnt from others, crowds, pairs that copy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairduel.votes import Votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import arena
from fairduel.votes.attacking.stress import rank_by_score
from fairduel.votes.auditing.campaign import Push
from fairduel.votes.auditing.collusion import Crowd, _crowd_push, _meetings, alike_pairs, e_bh, shared_evidence
from fairduel.votes.auditing.null_model import Decisive, best_honest, consensus
from fairduel.votes.auditing.voters import audit_voters
from fairduel.votes.ranking.bradley_terry import fit_scores, wins


def test_e_bh_keeps_the_false_discovery_rate_under_dependence():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(2000):
        common = rng.exponential()  # e-values that rise and fall together
        null = np.log(np.full(20, common))
        true = np.log(np.full(5, 400.0))
        flags, _ = e_bh(np.concatenate([null, true]), 0.2)
        shares.append(flags[:20].sum() / max(1, flags.sum()))
    assert np.mean(shares) <= 0.2


def test_e_bh_needs_less_of_each_the_more_there_are():
    assert e_bh(np.log([199.0] + [0.1] * 9), 0.05)[0].sum() == 0
    assert e_bh(np.log([201.0] + [0.1] * 9), 0.05)[0].sum() == 1
    assert e_bh(np.log([101.0] * 2 + [0.1] * 8), 0.05)[0].sum() == 2
    assert e_bh(np.zeros(0), 0.05)[0].shape == (0,)


def test_shared_evidence_uses_the_others_weights_only():
    voter, target = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0])
    evidence = np.log([5.0, 7.0, 100.0, 50.0])
    got = shared_evidence(voter, target, evidence, voters=3, targets=3)

    def product(cells):  # of the other two voters
        return np.mean([np.prod([1 - p + p * e for e in cells]) for p in (0.01, 0.05, 0.2)])

    weights = np.array([product([100.0, 50.0]), product([0.0, 0.0]), product([0.0, 0.0])])
    assert got[0] == pytest.approx(np.log(weights[:2] @ [5.0, 7.0] / weights.sum()))
    doubled = shared_evidence(voter, target, np.log([5.0, 7.0, 100.0, 999.0]), voters=3, targets=3)
    assert doubled[2] - got[2] == pytest.approx(np.log(999.0 / 50.0))  # own evidence changes no own weight


def test_shared_evidence_is_at_most_1_on_average():
    rng = np.random.default_rng(3)
    voters, targets = 30, 5
    voter, target = np.repeat(np.arange(voters), targets), np.tile(np.arange(targets), voters)
    draws = [
        np.exp(shared_evidence(voter, target, np.log(rng.exponential(size=voter.size)), voters=voters, targets=targets))
        for _ in range(300)
    ]
    assert np.mean(draws) == pytest.approx(1.0, abs=0.05)


def test_meetings_are_all_pairs_within_blocks():
    one, other = _meetings(np.array([2, 1, 0, 3]))
    assert sorted(zip(one.tolist(), other.tolist(), strict=True)) == [(0, 1), (3, 4), (3, 5), (4, 5)]


def copied(seed: int, copies: int) -> Votes:
    """30 voters answer the same 60 duels; the last ones copy the first."""
    rng = np.random.default_rng(seed)
    first = rng.integers(8, size=60)
    second = (first + rng.integers(1, 8, 60)) % 8
    scores = rng.standard_normal(8)
    results = (rng.random((30, 60)) < expit(scores[first] - scores[second])).astype(float)
    results[30 - copies :] = results[0]
    turn = rng.random((30, 60)) < 0.5  # every voter sees the two items on random sides
    return Votes.from_arrays(
        "abcdefgh",
        np.where(turn, second, first).ravel(),
        np.where(turn, first, second).ravel(),
        np.where(turn, 1 - results, results).ravel(),
        voter=np.repeat(np.arange(30), 60),
        voters=[f"v{v}" for v in range(30)],
        context=np.tile(np.arange(60), 30),
        contexts=[f"question {c}" for c in range(60)],
    )


@pytest.mark.parametrize("copies", [1, 2])
def test_copies_are_found_and_count_once_without_a_flag(copies):
    votes = copied(0, copies=copies)
    evidence = audit_voters(votes)
    assert not evidence.flagged.any()
    pairs = evidence.pairs
    found = {frozenset(pair) for pair in zip(pairs.one[pairs.flagged], pairs.other[pairs.flagged], strict=True)}
    alike = [0, *range(30 - copies, 30)]
    assert found == {frozenset((one, other)) for one in alike for other in alike if one < other}
    assert pairs.same[0] == pairs.shared[0] == 60
    assert (evidence.vote_weights(votes) == (votes.voter < 30 - copies)).all()


def test_of_two_alike_only_votes_on_shared_duels_are_left_out():
    votes = copied(0, copies=1)
    votes = votes.select((votes.voter != 0) | (votes.context < 50))
    weights = audit_voters(votes).vote_weights(votes)
    assert (weights == ((votes.voter != 29) | (votes.context >= 50))).all()


@pytest.mark.parametrize("seed", range(5))
def test_people_who_agree_because_it_is_clear_are_no_copies(seed):
    assert not audit_voters(copied(seed, copies=0)).pairs.flagged.any()


def test_pairs_are_not_compared_where_that_would_take_too_long(monkeypatch):
    monkeypatch.setattr("fairduel.votes.auditing.collusion._MOST_COINCIDENCES", 10)
    votes = Decisive.of(copied(0, copies=1))
    pairs = alike_pairs(votes, consensus(votes, np.zeros(30, dtype=bool)), level=0.05)
    assert not pairs.compared
    assert len(pairs.one) == 0


@pytest.mark.parametrize("each", [1, 3])
def test_a_crowd_of_occasional_voters_is_found_and_nobody_is_flagged_for_it(each):
    votes, _ = arena(liars={}, seed=6)
    attacked = inject(votes, "promote", "Oak", size=120, voters=120 // each)
    evidence = audit_voters(attacked.votes)
    assert not evidence.flagged.any()
    assert [(votes.items[push.item], push.up) for push in evidence.crowd.differs] == [("Oak", True)]
    weights = evidence.vote_weights(attacked.votes)
    oak = votes.items.index("Oak")
    on_oak = (attacked.votes.first == oak) | (attacked.votes.second == oak)
    theirs = on_oak & evidence.crowd.voters[attacked.votes.voter]
    assert (weights[~theirs] == 1.0).all()
    assert len(np.unique(weights[theirs])) == 1  # for it or against it, or a tie
    others = on_oak & ~theirs
    assert weights[theirs].sum() == pytest.approx(others.sum() / len(np.unique(attacked.votes.voter[others])))


def test_a_crowd_counts_as_one_voter_but_never_more_than_a_standard_error():
    first = np.zeros(140, dtype=int)
    voter = np.concatenate([np.arange(2, 42), np.repeat([0, 1], 50)])
    votes = Votes.from_arrays("abc", first, 1 + first, first, voter=voter, voters=[f"v{v}" for v in range(42)])
    push = Push(0, up=False, duels=40, pushed=40, expected=9.0)
    crowd = Crowd(4, np.arange(42) >= 2, 99.0, push, (push,))
    assert crowd.vote_weights(votes, np.ones(140))[:40].sum() == pytest.approx(5.0)  # of 100 other votes, not 50
    assert (crowd.vote_weights(votes, np.ones(140))[40:] == 1.0).all()


def test_voters_with_more_votes_are_flagged_one_by_one():
    votes, _ = arena(liars={}, seed=6)
    attacked = inject(votes, "promote", "Oak", size=120, voters=15)
    evidence = audit_voters(attacked.votes)
    assert set(np.array(evidence.voters)[evidence.flagged]) == set(attacked.liars)


def with_crowd(seed: int, item: int | None, *, size: int = 350, fans: float = 0.0) -> Votes:
    """120 usual voters, 100 honest occasional ones, and ``size`` one-vote voters who all choose one item.

    With ``item`` None, the last come for item 3 and vote as honestly as the others, who like it less by ``fans``.
    """
    rng = np.random.default_rng([seed, 4])
    cast = np.concatenate([rng.integers(20, 50, 120), rng.integers(1, 5, 100), np.ones(size, dtype=int)])
    voter = np.repeat(np.arange(len(cast)), cast)
    first = rng.integers(10, size=len(voter))
    second = (first + rng.integers(1, 10, len(voter))) % 10
    crowd = voter >= 220
    aim = 3 if item is None else item
    opponent = np.where(first == aim, second, first)
    first, second = np.where(crowd, aim, first), np.where(crowd, opponent, second)
    scores = 0.3 * np.arange(10)[::-1] + 0.3 * rng.standard_normal((len(cast), 10))
    scores[220:, 3] += fans
    won = rng.random(len(voter)) < expit(scores[voter, first] - scores[voter, second])
    won = np.where(crowd & (item is not None), True, won)
    order = rng.permutation(len(voter))
    names = [f"v{v}" for v in range(len(cast))]
    return Votes.from_arrays(
        "abcdefghij", first[order], second[order], won[order].astype(float), voter=voter[order], voters=names
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("item", [0, 8])
def test_fake_accounts_cannot_turn_the_audit_against_the_truth(seed, item):
    votes = with_crowd(seed, item)
    evidence = audit_voters(votes)
    assert not evidence.flagged.any()
    usual = fit_scores(wins(votes.select(votes.voter < 220))).scores
    after = fit_scores(wins(votes.reweighted(evidence.vote_weights(votes)))).scores
    if item == 0:
        assert rank_by_score(after, 0) == rank_by_score(usual, 0) == 1  # whether the crowd is found or not
    else:
        assert rank_by_score(fit_scores(wins(votes)).scores, 8) <= 6
        assert [push.item for push in evidence.crowd.differs] == [8]
        assert rank_by_score(after, 8) >= 8


def test_a_crowd_may_differ_on_two_items():
    one, two = with_crowd(0, 8), with_crowd(0, 7)
    last = two.select(two.voter >= 220)
    joined = {
        name: np.concatenate([getattr(one, name), getattr(last, name)])
        for name in ("first", "second", "result", "weight", "row")
    }
    voter = np.concatenate([one.voter, last.voter + 350])
    names = tuple(f"v{v}" for v in range(len(one.voters) + 350))
    evidence = audit_voters(replace(one, **joined, voter=voter, voters=names))
    assert sorted(push.item for push in evidence.crowd.differs) == [7, 8]


def test_a_launch_crowd_that_votes_like_the_others_is_no_group():
    assert not any(audit_voters(with_crowd(seed, None)).crowd_flagged for seed in range(3))
    fans = audit_voters(with_crowd(0, None, fans=2.0))
    assert [push.item for push in fans.crowd.differs] == [3]
    assert not fans.flagged.any()


def test_an_honest_crowd_is_left_alone():
    evidence = [audit_voters(arena(voters=400, votes_each=3, liars={}, seed=seed)[0]) for seed in range(5)]
    assert not any(each.flagged.any() or each.crowd_flagged for each in evidence)


def test_evidence_on_a_crowd_compares_shifted_with_honest_log_odds():
    votes = Decisive.of(with_crowd(1, 8))
    members = votes.select(votes.voter >= 120)
    z, variance = 0.3 * (members.second - members.first).astype(float), np.full(10, 0.05)
    push, evidence = _crowd_push(members, z, variance)
    each = []
    for item in range(10):
        on = (members.first == item) | (members.second == item)
        side = np.where(members.first[on] == item, 1.0, -1.0)
        sign, logit = members.sign[on] * side, z[on] * side
        honest = np.exp(best_honest(np.zeros(on.sum(), dtype=int), 1, logit, sign, np.sqrt(0.05))[0])
        shifts = [(s, d) for s in (0.0, 1.0) for d in (1.0, 2.0, 4.0)]
        each += [np.mean([np.prod(expit(sign * (s * logit + way * d))) for s, d in shifts]) / honest for way in (1, -1)]
    assert evidence == pytest.approx(np.log(np.mean(each)))
    on = (members.first == 8) | (members.second == 8)
    won = np.where(members.first[on] == 8, members.sign[on], -members.sign[on]) > 0
    chance = expit(np.where(members.first[on] == 8, z[on], -z[on]))
    assert push == (8, True, on.sum(), won.sum(), pytest.approx(chance.sum()))
