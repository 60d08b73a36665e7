"""The mixture of voters against obvious twins: brute force, numeric gradients, and a likelihood that never falls."""

import numpy as np
import pytest
from scipy import optimize, special

from fairduel.votes import Votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing import mixture
from fairduel.votes.auditing.mixture import (
    ABILITIES,
    ALIKE,
    CAMP_RIDGE,
    PUSHES,
    RIDGE,
    Ballots,
    Model,
    first_model,
    fit_mixture,
    improved,
    log_likelihoods,
    log_prior,
    margins,
    members,
    moderated,
    objective,
    shared_taste,
    without_own_votes,
)

SIDED = 0.95


def few_votes(*, items=4, voters=7, size=90, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(items, size=size)
    second = (first + rng.integers(1, items, size)) % items
    voter = np.concatenate(
        [rng.permutation(np.arange(3, voters)), rng.integers(3, size=size - voters + 3)]
    )  # a few busy
    return Votes.from_arrays(
        [f"i{k}" for k in range(items)], first, second, rng.choice([0.0, 0.5, 1.0], size), voter=voter,
        voters=[f"v{k}" for k in range(voters)], weight=rng.integers(1, 3, size),
    )  # fmt: skip


def some_model(ballots, camps=1, seed=1):
    rng = np.random.default_rng(seed)
    classes = len(ABILITIES) + 2 + camps
    shares = rng.dirichlet(np.ones(classes + 4 * ballots.items))
    odds = 0.4 * rng.dirichlet(np.ones(4 * ballots.items))
    shape = len(PUSHES), 2, ballots.items
    scores = rng.standard_normal((1 + camps, ballots.items))
    return Model(scores, shares[:classes], shares[classes:].reshape(shape), odds.reshape(shape))


def prepared(seed=0, camps=1):
    votes = few_votes(seed=seed)
    ballots, _ = Ballots.of(votes, votes.counts("half"))
    return ballots, ballots.counts * shared_taste(ballots, 0.3), some_model(ballots, camps, seed + 1)


def logits(ballots, model):
    return np.stack([margins(ballots, scores) for scores in model.scores])


def by_brute_force(ballots, weight, model, voter):
    """Return π_c L_c of a voter's classes, vote by vote: abilities, sides and camps; pushes by (h, way, item)."""
    mine = np.flatnonzero(ballots.voter == voter)

    def likelihood(chance_of):
        total = 1.0
        for vote in mine:
            chance, won = chance_of(ballots.first[vote], ballots.second[vote]), ballots.result[vote]
            total *= (chance**won * (1.0 - chance) ** (1.0 - won)) ** weight[vote]
        return total

    def by(scores, ability=1.0):
        return lambda i, j: special.expit(ability * (scores[i] - scores[j]))

    def push(item, often, up):
        def chance(i, j):
            honest = by(model.scores[0])(i, j)
            if item not in (i, j):
                return honest
            return often * float((item == i) == up) + (1.0 - often) * honest

        return chance

    occasional = ballots.occasional[voter]
    classes = [likelihood(by(model.scores[0], ability)) for ability in ABILITIES]
    classes += [likelihood(lambda *_: SIDED), likelihood(lambda *_: 1.0 - SIDED)]
    classes += [likelihood(by(scores)) for scores in model.scores[1:]]
    shares = model.shares.copy()
    pushes, met = model.pushes, {*ballots.first[mine].tolist(), *ballots.second[mine].tolist()}
    if occasional:
        total = 1.0 + sum(
            model.crowd_odds[h, way, item] for h in range(len(PUSHES)) for way in range(2) for item in met
        )
        pushes = model.crowd_odds / total
        shares[:] = 0.0
        shares[ALIKE] = 1.0 / total
    pushing = {
        (h, way, item): pushes[h, way, item] * likelihood(push(item, PUSHES[h], way == 0))
        for h in range(len(PUSHES)) for way in range(2) for item in met
    }  # fmt: skip
    return shares * np.array(classes), pushing


@pytest.mark.parametrize("seed", range(3))
def test_memberships_are_those_of_brute_force(seed):
    ballots, weight, model = prepared(seed)
    assert ballots.occasional.any()
    assert not ballots.occasional.all()
    found, each = members(ballots, model, mixture._relative(ballots, weight, logits(ballots, model)))
    for voter in range(ballots.voters):
        classes, pushing = by_brute_force(ballots, weight, model, voter)
        total = classes.sum() + sum(pushing.values())
        assert each[voter] == pytest.approx(np.log(total))
        np.testing.assert_allclose(found.classes[voter], classes / total, atol=1e-12)
        for (h, way, item), value in pushing.items():
            cell = np.flatnonzero((ballots.cell_voter == voter) & (ballots.cell_item == item))[0]
            assert found.pushes[h, way, cell] == pytest.approx(value / total)


@pytest.mark.parametrize("camp", [0, 1])
def test_newton_steps_follow_the_gradient_of_the_objective(camp):
    """By Fisher's identity, the gradient of the expected log-likelihood is that of the log-likelihood."""
    ballots, weight, model = prepared()
    found, _ = members(ballots, model, mixture._relative(ballots, weight, logits(ballots, model)))
    ridge = CAMP_RIDGE if camp else RIDGE
    if camp:
        own = margins(ballots, model.scores[camp])
        expected = mixture.Expected(ballots.result - special.expit(own), mixture.variance_of(own))
        share = weight * found.classes[ballots.voter, -1]
    else:
        z = margins(ballots, model.scores[0])
        wins = mixture.honest_share(ballots, found, special.expit(z))
        expected, share = mixture._everyone(ballots, found, z, wins), weight
    step = mixture.newton_step(ballots, model.scores[camp], expected, share, ridge)
    gradient = mixture.hessian_of_order(ballots, share * expected.slope, ridge) @ step

    def moved(scores):
        changed = model.scores.copy()
        changed[camp] = scores
        return objective(ballots, weight, model._replace(scores=changed))

    numeric = optimize.approx_fprime(model.scores[camp], moved, 1e-6)
    assert np.abs(step).max() < 1.0  # not cut off
    np.testing.assert_allclose(gradient, numeric, atol=1e-3)


def test_shares_are_the_best_for_the_memberships():
    ballots, weight, model = prepared()
    found, _ = members(ballots, model, mixture._relative(ballots, weight, logits(ballots, model)))
    best = mixture.fitted_shares(ballots, model, found)
    assert best.shares.sum() + best.pushes.sum() == pytest.approx(1.0)

    counted = np.bincount(ballots.voter, ballots.counts, ballots.voters) > 0

    def expected(candidate):
        regular = counted & ~ballots.occasional
        value = (found.classes[regular] @ np.log(candidate.shares)).sum() + log_prior(ballots, candidate)
        inside = regular[ballots.cell_voter]
        return value + (found.pushes * np.log(candidate.pushes[..., ballots.cell_item]))[..., inside].sum()

    rng = np.random.default_rng(0)
    for _ in range(50):
        shares = np.concatenate([best.shares, best.pushes.ravel()]) * np.exp(
            0.05 * rng.standard_normal(len(best.shares) + best.pushes.size)
        )
        shares /= shares.sum()
        count = len(best.shares)
        other = best._replace(shares=shares[:count], pushes=shares[count:].reshape(best.pushes.shape))
        assert expected(other) < expected(best)


def test_odds_of_the_crowd_approach_the_best_for_the_memberships():
    ballots, weight, model = prepared()
    found, _ = members(ballots, model, mixture._relative(ballots, weight, logits(ballots, model)))
    counted = np.bincount(ballots.voter, ballots.counts, ballots.voters) > 0
    occasional = counted & ballots.occasional
    pushes = np.where(occasional[ballots.cell_voter], found.pushes, 0.0)

    def expected(odds):
        value = (
            log_prior(ballots, model._replace(crowd_odds=odds)) + (pushes * np.log(odds[..., ballots.cell_item])).sum()
        )
        for voter in np.flatnonzero(occasional):
            met = ballots.cell_item[ballots.cell_voter == voter]
            value -= np.log1p(odds[..., met].sum())
        return value

    values, best = [expected(model.crowd_odds)], model
    for _ in range(400):
        best = mixture.fitted_shares(ballots, best, found)
        values.append(expected(best.crowd_odds))
    assert np.diff(values).min() > -1e-9
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert expected(best.crowd_odds * np.exp(0.05 * rng.standard_normal(best.pushes.shape))) < values[-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("camps", [0, 1, 2])
def test_given_all_votes_the_objective_never_falls(seed, camps):
    ballots, weight, model = prepared(seed, camps)
    values = []
    for _ in range(40):
        found, each = members(ballots, model, mixture._relative(ballots, weight, logits(ballots, model)))
        values.append(each.sum() + log_prior(ballots, model))
        assert objective(ballots, weight, model) == pytest.approx(values[-1])
        model = improved(ballots, weight, model, found)
    assert np.diff(values).min() > -1e-9


def test_the_end_is_a_fixed_point():
    votes, _ = arena(liars={"inverters": 8}, voters=40, seed=3)
    ballots, _ = Ballots.of(votes, votes.counts("half"))
    weight = ballots.counts * shared_taste(ballots, 0.25)
    fitted = fit_mixture(ballots, weight, first_model(ballots), rounds=300, small_gain=1e-9)
    again = improved(ballots, weight, fitted.model, fitted.members)
    np.testing.assert_allclose(again.shares, fitted.model.shares, atol=1e-4)
    np.testing.assert_allclose(again.scores, fitted.model.scores, atol=1e-3)
    judged_again = mixture.fit_of(ballots, weight, fitted.model, fitted.members)
    np.testing.assert_allclose(judged_again.members.classes, fitted.members.classes, atol=1e-3)


def test_margins_without_own_votes_are_close_to_a_refit_without_the_voter():
    votes, _ = arena(liars={}, seed=2)
    ballots, _ = Ballots.of(votes, votes.counts("half"))
    fitted = fit_mixture(ballots, ballots.counts, first_model(ballots))
    order = next(mixture._orders(ballots, ballots.counts, fitted.model, fitted.members))
    z, _ = without_own_votes(ballots, ballots.counts, order)
    busiest = int(np.bincount(votes.cast_by).argmax())
    own = ballots.voter == busiest
    rest = votes.without(votes.cast_by == busiest)
    others, _ = Ballots.of(rest, rest.counts("half"))
    without = fit_mixture(others, others.counts, first_model(others)).model.scores[0]
    exact = without[ballots.first] - without[ballots.second]
    moved, right = (z - order.margins)[own], (exact - order.margins)[own]
    assert np.corrcoef(moved, right)[0, 1] > 0.9
    assert np.polyfit(right, moved, 1)[0] == pytest.approx(1.0, abs=0.35)


def test_moderated_log_odds_are_those_of_the_expected_chance():
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    for mean in (-3.0, 0.5, 2.0):
        for variance in (0.0, 0.3, 2.0):
            chance = weights @ special.expit(mean + np.sqrt(variance) * points) / weights.sum()
            found = special.expit(moderated(np.array(mean), np.array(variance)))
            assert found == pytest.approx(chance, abs=0.02)


def test_many_items_take_the_same_step(monkeypatch):
    ballots, weight, model = prepared()
    z = margins(ballots, model.scores[0])
    expected = mixture.Expected(ballots.result - special.expit(z), mixture.variance_of(z))
    dense = mixture.newton_step(ballots, model.scores[0], expected, weight, RIDGE)
    monkeypatch.setattr(mixture, "_DENSE_ITEMS", 1)
    sparse = mixture.newton_step(ballots, model.scores[0], expected, weight, RIDGE)
    np.testing.assert_allclose(sparse, dense, atol=2e-3)


def test_some_voters_keep_their_likelihood():
    ballots, weight, model = prepared()
    chosen = np.arange(ballots.voters) % 2 == 0
    some = ballots.of_voters(chosen)
    classes, _ = log_likelihoods(ballots, weight, logits(ballots, model))
    theirs, _ = log_likelihoods(some, weight[chosen[ballots.voter]], logits(some, model))
    np.testing.assert_allclose(theirs[chosen], classes[chosen])
    assert not theirs[~chosen].any()


def test_half_of_the_voters_have_less_taste_than_estimated():
    rng = np.random.default_rng(0)
    for taste in (0.0, 0.7):
        own = taste * rng.standard_normal((200, 8))
        voter = np.repeat(np.arange(200), 120)
        first = rng.integers(8, size=len(voter))
        second = (first + rng.integers(1, 8, len(voter))) % 8
        won = rng.random(len(voter)) < special.expit(own[voter, first] - own[voter, second])
        votes = Votes.from_arrays(
            "abcdefgh", first, second, won.astype(float), voter=voter, voters=[str(v) for v in range(200)]
        )
        ballots, _ = Ballots.of(votes, votes.counts("half"))
        found = mixture.taste_variance(ballots, np.zeros(len(voter)))
        assert abs(found - taste**2) < 0.25 * taste**2 + 0.03
