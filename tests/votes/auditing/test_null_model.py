"""The honest voter: leave-one-out consensus against a real refit, and the bound that makes evidence valid."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.votes import Votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing import null_model
from fairduel.votes.auditing.null_model import (
    CONSENSUS_RIDGE,
    SLOPES,
    Decisive,
    best_honest,
    best_honest_slope,
    consensus,
    consensus_variance,
    taste_size,
)
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

NOBODY = np.zeros(150, dtype=bool)


def refit_without(votes: Votes, voter: int) -> np.ndarray:
    return fit_scores(wins(votes.select(votes.voter != voter), ties="drop"), ridge=CONSENSUS_RIDGE).scores


@pytest.mark.parametrize("votes_each", [4, 30])  # fewer and more votes than items
def test_consensus_is_a_refit_without_the_voter(votes_each):
    votes, _ = arena(votes_each=votes_each, seed=5)
    decisive = Decisive.of(votes)
    z = consensus(decisive, NOBODY)
    everybody = fit_scores(wins(votes, ties="drop"), ridge=CONSENSUS_RIDGE).scores
    for voter in (0, 1, 2, 77):
        mine = decisive.voter == voter
        first, second = decisive.first[mine], decisive.second[mine]
        scores = refit_without(votes, voter)
        exact = scores[first] - scores[second]
        naive = everybody[first] - everybody[second]
        assert np.abs(z[mine] - exact).max() < 0.1 * np.abs(naive - exact).max() + 1e-6
        assert np.abs(z[mine] - exact).max() < 0.01


def test_of_many_items_consensus_is_a_refit_without_a_tenth_of_the_voters(monkeypatch):
    votes, liars = arena(seed=5)
    decisive, out = Decisive.of(votes), np.array([name in liars for name in votes.voters])
    few = consensus_variance(decisive, ~out[decisive.voter], 0.5)
    monkeypatch.setattr(null_model, "MOST_DENSE", 5)
    z, part = consensus(decisive, out), null_model._parts(decisive)
    assert np.bincount(part).tolist() == [15] * 10
    for number, others in ((0, ~out & (part != 0)), (7, ~out & (part != 7)), (None, ~out)):
        mine = (out if number is None else ~out & (part == number))[decisive.voter]
        scores = fit_scores(wins(votes.select(others[votes.voter]), ties="drop"), ridge=CONSENSUS_RIDGE).scores
        np.testing.assert_allclose(z[mine], scores[decisive.first[mine]] - scores[decisive.second[mine]], atol=1e-5)
    cells, _ = decisive.cells
    many = consensus_variance(decisive, ~out[decisive.voter], 0.5)
    theirs = out[cells // decisive.items]
    np.testing.assert_allclose(many[theirs], few[theirs])
    assert 1.05 < (many[~theirs] / few[~theirs]).mean() < 1.2  # a tenth of the votes is missing


@pytest.mark.parametrize("votes_each", [4, 40])
def test_consensus_is_one_exact_newton_step(votes_each):
    votes, _ = arena(voters=6, votes_each=votes_each, liars={}, seed=7)  # few voters: each of them weighs much
    decisive = Decisive.of(votes)
    z = consensus(decisive, np.zeros(6, dtype=bool))
    scores = fit_scores(wins(votes, ties="drop"), ridge=CONSENSUS_RIDGE).scores
    rows = np.eye(12)[decisive.first] - np.eye(12)[decisive.second]
    p = expit(rows @ scores)
    for voter in range(6):
        mine = decisive.voter == voter
        others, slope = rows[~mine], (p * (1 - p))[~mine]
        hessian = others.T @ (slope[:, None] * others) + CONSENSUS_RIDGE * np.eye(12)
        gradient = others.T @ (p - (decisive.sign > 0))[~mine] + CONSENSUS_RIDGE * scores
        stepped = scores - np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose(z[mine], rows[mine] @ stepped, atol=1e-6)


@pytest.mark.parametrize("contexts", [0, 3])
def test_voters_who_are_left_out_do_not_move_the_consensus(contexts):
    votes, liars = arena(seed=5)
    if contexts:
        context = np.random.default_rng(0).integers(contexts, size=len(votes)).astype(np.int32)
        votes = replace(votes, context=context, contexts=tuple("uvw"))
    out = np.array([name in liars for name in votes.voters])
    z = consensus(Decisive.of(votes), out)
    turned = Votes.from_arrays(
        votes.items,
        votes.first,
        votes.second,
        np.where(out[votes.voter], 1 - votes.result, votes.result),
        voter=votes.voter,
        voters=votes.voters,
        context=votes.context,
        contexts=votes.contexts,
    )
    np.testing.assert_allclose(consensus(Decisive.of(turned), out), z, atol=1e-9)
    left = out[Decisive.of(votes).voter]
    only = consensus(Decisive.of(votes), out, only_left_out=True)
    np.testing.assert_allclose(only[left], z[left], atol=0.02)


def test_contexts_are_learnt_from_other_voters_only():
    rng = np.random.default_rng(0)
    count, voters = 4000, 40
    first = rng.integers(5, size=count)
    second = (first + rng.integers(1, 5, count)) % 5
    context = rng.integers(6, size=count)
    taste_of_context = rng.standard_normal((6, 5))
    chance = expit(taste_of_context[context, first] - taste_of_context[context, second])
    result = (rng.random(count) < chance).astype(float)
    voter = rng.integers(voters, size=count)
    names = [str(v) for v in range(voters)]

    def made(results, contexts):
        return Votes.from_arrays(
            "abcde", first, second, results, voter=voter, voters=names, context=contexts, contexts=list("uvwxyz")
        )

    nobody = np.zeros(voters, dtype=bool)
    with_contexts = Decisive.of(made(result, context))
    without = Decisive.of(Votes.from_arrays("abcde", first, second, result, voter=voter, voters=names))
    loss = [np.logaddexp(0, -v.sign * consensus(v, nobody)).mean() for v in (with_contexts, without)]
    assert loss[0] < loss[1] - 0.02
    z = consensus(with_contexts, nobody)
    own = voter == 7  # flipping a voter's own votes changes the others' consensus on them only through their residuals
    turned = Decisive.of(made(np.where(own, 1 - result, result), context))
    moved = np.abs(consensus(turned, nobody) - z)
    assert moved[own].mean() < 0.04
    assert moved[~own].mean() > 0.04  # while it does change this voter's share of the consensus on other votes
    without_him = np.arange(voters) == 7
    np.testing.assert_allclose(consensus(turned, without_him), consensus(with_contexts, without_him), atol=1e-9)


@pytest.mark.parametrize("taste", [0.3, 1.0, 2.0])
def test_the_honest_maximum_bounds_the_honest_probability(taste):
    rng = np.random.default_rng(1)
    for _ in range(20):
        logit = rng.normal(size=6)
        sign = rng.choice([-1.0, 1.0], 6)
        bound = best_honest(np.zeros(6, dtype=int), 1, logit, sign, taste)[0]
        for slope in SLOPES:

            def density(u, slope=slope, logit=logit, sign=sign):
                return np.prod(expit(sign * (slope * logit + u))) * np.exp(-(u**2) / (2 * taste**2))

            probability = integrate.quad(density, -12 * taste, 12 * taste)[0] / np.sqrt(2 * np.pi * taste**2)
            assert np.log(probability) <= bound + 1e-9


def test_each_group_has_its_own_taste():
    group = np.array([0, 0, 1, 1])
    logit, sign = np.zeros(4), np.ones(4)
    narrow, wide = best_honest(group, 2, logit, sign, np.array([0.01, 3.0]))
    assert narrow == pytest.approx(2 * np.log(0.5), abs=1e-3)
    assert wide > narrow + 0.5


def test_taste_is_unknown_where_everybody_votes_once_and_is_found_in_a_sample():
    assert taste_size(np.arange(5), np.zeros(5), np.ones(5)) == 3.0
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(20_000), 5)
    sign = np.where(rng.random(100_000) < expit(1.2 * rng.standard_normal(20_000)[group]), 1.0, -1.0)
    assert 1.1 < taste_size(group, np.zeros(100_000), sign) < 1.2  # the liars that are allowed for take the extremes


def test_a_few_liars_do_not_make_everybodys_tastes_strong():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(150), 40)
    sign = rng.choice([-1.0, 1.0], 6000)
    honest = taste_size(group, np.zeros(6000), sign)
    assert taste_size(group, np.zeros(6000), np.where(group < 3, 1.0, sign)) < honest + 0.1


def test_tastes_excuse_a_negative_slope_and_care_is_free():
    votes, _ = arena(liars={}, seed=2)
    decisive = Decisive.of(votes)
    z = consensus(decisive, NOBODY)
    turned = replace(decisive, sign=-decisive.sign)
    honest, strict, lenient = (
        best_honest_slope(who, z, np.full(len(who.cells[0]), taste**2))
        for who, taste in ((decisive, 0.5), (turned, 0.1), (turned, 2.0))
    )
    assert honest.sum() > strict.sum() + 100
    assert (lenient >= strict - 1e-12).all()
    assert lenient.sum() > strict.sum() + 10


def test_votes_without_voters_are_refused():
    with pytest.raises(BadInputError, match="who voted"):
        Decisive.of(Votes.from_arrays("ab", [0], [1], [1]))


def test_few_groups_leave_much_taste_possible():
    rng = np.random.default_rng(0)
    sizes = []
    for groups in (3, 30, 1000):
        group = np.repeat(np.arange(groups), 20)
        sign = np.where(rng.random(len(group)) < expit(0.7 * rng.normal(size=groups)[group]), 1.0, -1.0)
        sizes.append(taste_size(group, np.zeros(len(group)), sign))
    assert sizes[0] > sizes[1] > sizes[2] > 0.65


def test_the_consensus_varies_by_who_made_it():
    votes = Votes.from_arrays(
        "abc", [0] * 10, [1] * 8 + [2] * 2, [1] * 10, voter=[0] * 4 + [1] * 4 + [2, 2], voters=["u", "v", "w"]
    )
    decisive = Decisive.of(votes)
    cells, _ = decisive.cells
    found = dict(zip(cells.tolist(), consensus_variance(decisive, decisive.voter != 1, 2.0), strict=True))
    # u on a: only w counts, with 2 votes; v on a: u with 4 and w with 2; u on b: nobody else counts
    assert found[0] == pytest.approx(4.0 + 1 / (2 / 4 + 0.1))
    assert found[3] == pytest.approx(4.0 * 20 / 36 + 1 / (6 / 4 + 0.1))
    assert found[1] == pytest.approx(1 / 0.1)


@pytest.mark.parametrize(("groups", "each"), [(1, 50_000), (10, 400), (30, 2000), (1500, 60)])
def test_the_bound_of_tastes_holds_where_groups_have_many_votes(groups, each):
    below = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        group, taste = np.repeat(np.arange(groups), each), rng.normal(size=groups)
        sign = np.where(rng.random(len(group)) < expit(taste[group]), 1.0, -1.0)
        below += taste_size(group, np.zeros(len(group)), sign) < (0.9 if groups > 1 else abs(taste[0]) / 2)
    assert below <= 2
