"""Known answers: evidence at the promised level, and enough of it to flag those who fail them all."""

import math

import numpy as np
import pytest

from fairduel.errors import BadInputError
from fairduel.votes import Votes, audit, audit_voters
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.known_answers import HONEST, RightAnswers, evidence_against, split_known


def answers(votes, chance, each, seed=0):
    """Return known answers of every voter, right with ``chance`` (V,)."""
    right = np.random.default_rng(seed).binomial(each, chance)
    return {name: RightAnswers(int(r), each) for name, r in zip(votes.voters, right, strict=True)}


def test_who_fails_every_known_answer_is_flagged_with_that_reason():
    votes, _ = arena(liars={}, seed=0)
    chance = np.where(np.arange(150) < 30, 0.0, 0.95)
    evidence = audit_voters(votes, known=answers(votes, chance, 6))
    assert np.flatnonzero(evidence.flagged).tolist() == list(range(30))
    assert set(evidence.why[:30]) == {"answered 0 of 6 duels with a known answer right"}
    assert not audit_voters(votes).flagged.any()
    table = evidence.to_frame()
    assert table.filter("flagged")["known_right"].to_list() == [0] * 30
    assert "known_of" not in audit_voters(votes).to_frame().columns


def test_honest_voters_at_the_limit_are_flagged_at_most_at_the_level():
    """With a level of 60%, a fifth for voters; twice as many flags as promised would show in 60 files."""
    votes, _ = arena(liars={}, voters=60, votes_each=5, seed=1)
    flagged = 0
    for seed in range(60):
        known = answers(votes, np.full(60, float(HONEST)), 12, seed)
        flagged += audit_voters(votes, level=0.6, known=known).flagged.any()
    assert flagged <= 60 * 0.2 + 2.0 * np.sqrt(60 * 0.2 * 0.8)


def test_the_evidence_of_an_honest_voter_is_one_on_average():
    for of in (1, 4, 9):
        total = sum(
            math.comb(of, right) * HONEST**right * (1 - HONEST) ** (of - right) * evidence_against(right, of)
            for right in range(of + 1)
        )
        assert total == 1


def test_voters_who_cannot_be_compared_can_still_fail_known_answers():
    votes, _ = arena(liars={}, seed=0)
    few = votes.select(np.arange(len(votes)) < 30)
    known = answers(few, np.where(np.arange(150) < 60, 0.0, 1.0), 8)
    evidence = audit_voters(few, known=known)
    assert evidence.settings["voters_tested"] == 150
    assert evidence.flagged[:60].all()


def test_known_answers_are_not_ranked_and_count_in_their_context():
    given = {"voter": [0, 0, 1, 1], "voters": ["Ann", "Bob"], "context": [0, 1, 0, 0], "contexts": ["day", "night"]}
    votes = Votes.from_arrays(["tea", "mud"], [0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 0.5], **given)
    answers = Votes.from_arrays(["mud", "tea"], [1], [0], [1], context=[0], contexts=["day"])
    left, known = split_known(votes, answers)
    assert left.row.tolist() == [3]
    assert known == {"Ann": (1, 1), "Bob": (0, 1)}
    always, known = split_known(votes, Votes.from_arrays(["mud", "tea"], [1], [0], [1]))
    assert (len(always), known["Ann"]) == (0, (1, 2))
    for bad in ([0.5], [1.0, 0.0]):
        wrong = Votes.from_arrays(["mud", "tea"], [1] * len(bad), [0] * len(bad), bad)
        with pytest.raises(BadInputError, match="the known answer to mud against tea must be one item"):
            split_known(votes, wrong)
    with pytest.raises(BadInputError, match="say who voted"):
        split_known(answers, answers)


def test_failing_too_few_known_answers_for_a_flag_is_said():
    votes, _ = arena(liars={}, seed=0)
    chance = np.where(np.arange(150) < 3, 0.0, 1.0)
    summary = audit(votes, top=1, known=answers(votes, chance, 4)).summary()
    said = "3 voters failed most duels with a known answer, but answered too few of them for a flag."
    assert said in summary
    assert summary[summary.index(said) - 1].startswith("No voter stands out enough to be flagged (level 5%), but")


def test_the_audit_leaves_out_whom_known_answers_flag():
    votes, liars = arena(liars={"promote": 30}, seed=3)
    chance = np.array([0.0 if name in liars else 0.95 for name in votes.voters])
    found = audit(votes, top=1, known=answers(votes, chance, 6))
    assert {name for name, flag in zip(votes.voters, found.evidence.flagged, strict=True) if flag} >= set(liars)
    assert found.shown is not found.everyone
    assert "30 of 150 voters are flagged" in " ".join(found.summary())
