"""Groups: e-BH, weights learnt from others, crowds, pairs that copy."""

import numpy as np
import pytest
from scipy.special import expit

from fairduel.votes import Votes
from fairduel.votes.collusion import _meetings, alike_pairs, e_bh, shared_evidence
from fairduel.votes.null_model import Decisive, consensus
from fairduel.votes.stress import inject
from fairduel.votes.synthetic import arena
from fairduel.votes.voters import audit_voters


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


def test_copies_are_flagged_and_only_they():
    evidence = audit_voters(copied(0, copies=1))
    assert np.flatnonzero(evidence.flagged).tolist() == [0, 29]
    assert evidence.flagged_by[0] == "pair"
    assert "same answer as v29" in evidence.why[0]
    assert evidence.pairs.same[0] == evidence.pairs.shared[0] == 60


@pytest.mark.parametrize("seed", range(5))
def test_people_who_agree_because_it_is_clear_are_no_copies(seed):
    assert not audit_voters(copied(seed, copies=0)).flagged.any()


def test_pairs_are_not_compared_where_that_would_take_too_long(monkeypatch):
    monkeypatch.setattr("fairduel.votes.collusion._MOST_COINCIDENCES", 10)
    votes = Decisive.of(copied(0, copies=1))
    pairs = alike_pairs(votes, consensus(votes, np.zeros(30, dtype=bool)), level=0.05)
    assert not pairs.compared
    assert len(pairs.one) == 0


@pytest.mark.parametrize("each", [1, 3, 8])
def test_a_crowd_of_occasional_voters_is_found(each):
    votes, _ = arena(liars={}, seed=6)
    attacked = inject(votes, "promote", "Oak", size=120, voters=120 // each)
    evidence = audit_voters(attacked.votes)
    flagged = {name for name, flag in zip(evidence.voters, evidence.flagged, strict=True) if flag}
    assert set(attacked.liars) <= flagged
    assert len(flagged - set(attacked.liars)) <= 3  # honest occasional voters who mostly voted for it, if any
    if each <= 4:  # the others are busy enough to be flagged one by one
        assert evidence.crowd_flagged
        assert evidence.crowd.push.item == votes.items.index("Oak")
        assert evidence.crowd.push.up


def test_in_a_crowd_only_those_are_flagged_who_did_little_else():
    votes, _ = arena(voters=400, votes_each=8, liars={}, seed=7)
    attacked = inject(votes, "promote", "Oak", size=400, voters=400)
    evidence = audit_voters(attacked.votes)
    assert evidence.crowd_flagged
    oak = votes.items.index("Oak")
    won = (votes.first == oak) & (votes.result == 1) | (votes.second == oak) & (votes.result == 0)
    wins_of = np.bincount(votes.voter[won], minlength=400)
    share = wins_of / np.bincount(votes.voter, minlength=400)
    honest_flagged = evidence.flagged[:400]
    assert (wins_of > 0).sum() > 100
    assert (share[honest_flagged] > 0.5).all()
    assert evidence.flagged[400:].all()


def test_an_honest_crowd_is_left_alone():
    for seed in range(5):
        votes, _ = arena(voters=400, votes_each=3, liars={}, seed=seed)
        evidence = audit_voters(votes)
        assert evidence.crowd is not None
        assert not evidence.flagged.any()
