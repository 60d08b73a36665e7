"""Likelihoods of ties and position: their derivatives, their maxima, and what they estimate."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from fairduel.votes import Votes
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.outcome_models import OutcomeModel, Outcomes, fit_outcomes, outcome_chances, slopes
from helpers.boards import board

MODELS = get_args(OutcomeModel)
MODELLED = ["davidson", "rao-kupper"]
COUNTS = np.array([[3.0, 2.0, 1.0], [0.0, 4.0, 2.5], [7.0, 0.0, 0.0]])
margins = st.lists(st.floats(-4.0, 4.0), min_size=3, max_size=3).map(np.array)


@pytest.mark.parametrize("model", MODELS)
@given(z=margins, tie=st.floats(0.05, 3.0))
def test_derivatives_are_those_of_finite_differences(model, z, tie):
    step, at = 1e-5, slopes(model, COUNTS, z, tie)
    for duel in range(3):
        bump = step * np.eye(3)[duel]
        up, down = slopes(model, COUNTS, z + bump, tie), slopes(model, COUNTS, z - bump, tie)
        assert (up.log_likelihood - down.log_likelihood) / (2 * step) == pytest.approx(at.z[duel], abs=1e-5)
        assert (up.z[duel] - down.z[duel]) / (2 * step) == pytest.approx(at.zz[duel], abs=1e-5)
        assert (up.t - down.t) / (2 * step) == pytest.approx(at.zt[duel], abs=1e-4)
    up, down = slopes(model, COUNTS, z, tie + step), slopes(model, COUNTS, z, tie - step)
    assert (up.log_likelihood - down.log_likelihood) / (2 * step) == pytest.approx(at.t, abs=1e-4)
    assert (up.t - down.t) / (2 * step) == pytest.approx(at.tt, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("model", MODELLED)
@given(z=margins, tie=st.floats(0.05, 3.0))
def test_the_likelihood_is_that_of_the_chances(model, z, tie):
    chances = outcome_chances(model, z, tie)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert (COUNTS * np.log(chances)).sum() == pytest.approx(slopes(model, COUNTS, z, tie).log_likelihood)
    assert outcome_chances(model, -z, tie) == pytest.approx(chances[:, ::-1])
    assert chances[:, 1].max() <= outcome_chances(model, np.zeros(1), tie)[0, 1] + 1e-12  # most ties between equals


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("side", [False, True])
def test_the_fit_is_the_maximum_that_scipy_finds(model, side):
    votes = board(np.random.default_rng(1), [0.8, 0.0, -0.3, -0.5], voters=10, each=20, model="davidson", tie=-0.2)
    outcomes, count = Outcomes.of(votes), 4
    has_tie = model in MODELLED

    def loss(point):
        z = outcomes.margins(point[:count], point[count] if side else 0.0)
        return 0.005 * point @ point - slopes(model, outcomes.counts, z, point[-1]).log_likelihood

    start = np.full(count + side + has_tie, 0.3)
    bounds = [(-9, 9)] * (count + side) + ([(1e-6, 9)] if model == "rao-kupper" else [(-9, 9)]) * has_tie
    best = optimize.minimize(loss, start, bounds=bounds, tol=1e-12)
    fitted = fit_outcomes(outcomes, model, side=side)
    point = np.concatenate([fitted.scores, [fitted.side] * side, [fitted.tie] * has_tie])
    assert point == pytest.approx(best.x, abs=1e-3)
    assert loss(point) <= best.fun + 1e-9
    numeric = optimize.approx_fprime(point, lambda p: optimize.approx_fprime(p, loss, 1e-4), 1e-4)
    assert fitted.hessian == pytest.approx(numeric, abs=0.05)


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_without_side_or_tie_parameter_it_is_bradley_terry(ties):
    votes = board(np.random.default_rng(2), [0.5, 0.0, -0.5], voters=5, each=20, model="davidson", tie=0.0)
    plain = fit_scores(wins(votes, ties=ties), ridge=0.01)
    assert fit_outcomes(Outcomes.of(votes), ties).scores == pytest.approx(plain.scores, abs=1e-7)


@pytest.mark.parametrize("model", MODELLED)
def test_the_true_parameters_are_recovered(model):
    truth, side, tie = np.array([0.6, 0.1, -0.7]), 0.3, 0.7
    votes = board(np.random.default_rng(3), truth, voters=300, each=100, side=side, model=model, tie=tie)
    fitted = fit_outcomes(Outcomes.of(votes), model, side=True)
    assert [*fitted.scores, fitted.side, fitted.tie] == pytest.approx([*truth, side, tie], abs=0.06)


@pytest.mark.parametrize(("model", "result"), [*((model, 0.5) for model in MODELS), *((m, 1.0) for m in MODELS[:3])])
def test_identical_votes_have_finite_estimates(model, result):
    fitted = fit_outcomes(Outcomes.of(Votes.from_arrays("ab", [0] * 50, [1] * 50, [result] * 50)), model, side=True)
    assert np.isfinite([*fitted.scores, fitted.side, fitted.tie]).all()
