"""Votes of which nobody knows which item was shown first."""

from dataclasses import replace

import numpy as np
import pytest

from fairduel.votes import audit, audit_voters, read_votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.voter_columns import LOG_10


def listed_by_winner(votes):
    """The same votes, with the winner as the first item."""
    swap = votes.result == 0.0
    first, second = np.where(swap, votes.second, votes.first), np.where(swap, votes.first, votes.second)
    result = np.where(swap, 1.0, votes.result)
    return replace(votes, first=first, second=second, result=result, sides_known=False)


@pytest.mark.parametrize("seed", [1, 2])
def test_evidence_does_not_depend_on_how_winners_are_listed(seed):
    votes, _ = arena(voters=60, votes_each=20, liars={"promote": 3, "inverters": 2}, seed=seed)
    known, unknown = audit_voters(votes), audit_voters(listed_by_winner(votes))
    assert "one side" not in unknown.log_evidence
    for kind, evidence in unknown.log_evidence.items():
        np.testing.assert_allclose(evidence, known.log_evidence[kind], atol=1e-6)
    expected = np.log(np.mean([np.exp(each) for each in unknown.log_evidence.values()], axis=0))
    np.testing.assert_allclose(unknown.total, expected, atol=1e-9)
    assert unknown.settings["sides_known"] is False
    assert unknown.settings["taste_for_a_side"] is None
    assert "log10_one_side" not in unknown.to_frame().columns


def test_nobody_is_flagged_for_a_side_that_is_not_known():
    votes, liars = arena(liars={"one-side": 2}, seed=1)
    assert {votes.voters[v] for v in np.flatnonzero(audit_voters(votes).flagged)} == set(liars)
    unknown = audit_voters(listed_by_winner(votes))
    assert not unknown.flagged.any()
    assert unknown.total.max() / LOG_10 < 1.3


def test_the_audit_of_winners_and_losers_says_so(tmp_path):
    votes, _ = arena(voters=40, votes_each=10, seed=3)
    by_winner = listed_by_winner(votes.without(votes.is_tie))
    rows = zip(by_winner.first, by_winner.second, by_winner.voter, strict=True)
    lines = [f"{votes.items[a]},{votes.items[b]},{votes.voters[v]}\n" for a, b, v in rows]
    (tmp_path / "votes.csv").write_text("winner,loser,user\n" + "".join(lines))
    reading = read_votes(tmp_path / "votes.csv")
    assert reading.votes.sides_known is False
    np.testing.assert_array_equal(reading.votes.result, np.ones(len(by_winner)))
    assert audit(reading.votes, top=1).settings["evidence"]["sides_known"] is False
    assert "does not say which item was shown first" in reading.warnings[0]
