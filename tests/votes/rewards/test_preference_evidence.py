"""Evidence against voters in preference data: exact against brute force, and an e-value for honest voters."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, special

from fairduel.votes.auditing.campaign import pushing
from fairduel.votes.auditing.null_model import SLOPES, best_with_taste
from fairduel.votes.auditing.voters import INVERTED
from fairduel.votes.rewards.evidence import Traits, _inverts, _tastes, preference_evidence

TASTE = np.array([0.8, 0.4])


def honest(rng, voters, votes):
    """Honest voters with a taste of their own for one of two things; returns voter, z and x of what they chose."""
    voter = np.repeat(np.arange(voters), votes)
    first = rng.normal(0.0, 1.5, voters * votes)  # log-odds of the first text
    along = rng.integers(-1, 2, (voters * votes, 2)).astype(float)
    care, which = rng.choice([0.5, 1.0, 2.0], voters), rng.integers(2, size=voters)
    taste = rng.normal(0.0, TASTE[which])
    odds = care[voter] * first + taste[voter] * along[np.arange(len(voter)), which[voter]]
    sign = np.where(rng.random(len(voter)) < special.expit(odds), 1.0, -1.0)
    return voter, sign * first, along * sign[:, None]


def traits(along):
    names = ("more a", "more b", "less a", "less b")
    return Traits(names, sparse.csc_array(along), TASTE, np.ones(along.shape[1], bool))


def test_the_best_taste_is_that_of_a_fine_grid():
    rng = np.random.default_rng(0)
    voter, z, along = honest(rng, 6, 9)
    grid = np.linspace(-4.0, 4.0, 8001)
    found = best_with_taste(voter, 6, z, along[:, 0], 0.8)
    for number in range(6):
        mine = voter == number
        each = [
            (special.log_expit(slope * z[mine] + np.outer(grid, along[mine, 0])).sum(axis=1) - grid**2 / 1.28).max()
            for slope in SLOPES
        ]
        assert found[number] == pytest.approx(max(each), abs=1e-5)


def test_inverting_is_measured_against_the_best_honest_voter():
    """A slow twin that tries every care and thing for everyone."""
    rng = np.random.default_rng(1)
    voter, z, along = honest(rng, 40, 6)
    found = _inverts(voter, 40, z, traits(along))
    lying = [np.bincount(voter, special.log_expit(-slope * z)) for slope in INVERTED]
    best = np.max([best_with_taste(voter, 40, z, along[:, k], TASTE[k]) for k in range(2)], axis=0)
    expected = special.logsumexp(lying, axis=0) - np.log(3.0) - best
    doubted = expected > 0.0
    np.testing.assert_allclose(found[doubted], expected[doubted])
    assert (found[~doubted] <= np.log(3.0)).all()


@pytest.mark.parametrize("votes", [5, 25])
def test_evidence_against_honest_voters_is_at_most_1_on_average(votes):
    """20,000 voters; evidence twice as large would be far above 1 for the patterns that reach it."""
    rng = np.random.default_rng(votes)
    voter, z, along = honest(rng, 20_000, votes)
    for log_evidence in (_inverts(voter, 20_000, z, traits(along)), _tastes(voter, 20_000, z, traits(along))[0]):
        evidence = np.exp(log_evidence)
        assert evidence.mean() <= 1.0 + 3.0 * evidence.std() / np.sqrt(len(evidence))
        for bar in (5.0, 20.0, 100.0):
            assert (evidence >= bar).mean() <= 1.0 / bar


def test_taste_evidence_is_what_its_equation_says():
    """One voter who always chooses more of one thing, of two."""
    voter, z, along = np.zeros(12, int), np.full(12, -0.3), np.column_stack([np.ones(12), np.zeros(12)])
    total, strongest, pushed, met = _tastes(voter, 1, z, traits(along))
    one_way = np.logaddexp(pushing(np.array([12.0]), np.array([12.0])), pushing(np.array([0.0]), np.array([12.0])))
    expected = one_way - best_with_taste(voter, 1, z, along[:, 0], 0.8) - np.log(4.0)
    assert total[0] == pytest.approx(expected[0])
    assert (strongest[0], pushed[0], met[0]) == (0, 12.0, 12.0)


def test_flags_say_what_the_voter_did():
    rng = np.random.default_rng(3)
    voter, z, along = honest(rng, 30, 120)
    z[voter == 0] = -np.abs(z[voter == 0]) * 2.0
    along[voter == 1] = [1.0, 0.0]
    z[voter == 1] = rng.normal(0.0, 1.0, 120)
    pairs = SimpleNamespace(voter=voter, voters=tuple(f"v{n}" for n in range(30)), first_won=None)
    found = preference_evidence(pairs, z, traits=traits(along))
    assert found.why[0].startswith("agrees with everyone else in only 0% of 120 votes")
    assert found.why[1].startswith("chose more a in ")
    assert found.flagged[2:].sum() == 0
