"""Whom a reward model believes, next to slow and obvious versions."""

import numpy as np
import pytest
from scipy import optimize, special

from fairduel.errors import BadInputError
from fairduel.votes import RobustRewardModel
from fairduel.votes.rewards import held_out
from fairduel.votes.rewards.campaigns import Rule
from fairduel.votes.rewards.held_out import GROUPS, best_ridge, groups_of, held_out_margins, predicted
from fairduel.votes.rewards.truthfulness import (
    _CAMPAIGN_VOTERS,
    _OCCASIONAL,
    _PRIOR_VOTERS,
    FAITHFUL,
    TRUTHFULNESS,
    Preferred,
    classes_of,
    information,
    is_occasional,
    learn,
    posterior,
    pull_of,
    relevance,
)


def problem(seed=0, count=1500, voters=30, liars=0, dimension=4, spread=2.0):
    """Answers (n, 2, d), results, voters and prompts; the first ``liars`` voters say the opposite."""
    rng = np.random.default_rng(seed)
    answers = rng.normal(size=(count, 2, dimension))
    theta = np.array([spread, -spread / 2] + [0.0] * (dimension - 2))
    honest = rng.random(count) < special.expit((answers[:, 0] - answers[:, 1]) @ theta)
    voter = rng.integers(voters, size=count)
    return answers, np.where(voter < liars, ~honest, honest).astype(int), voter, rng.integers(50, size=count)


def preferred(answers, result, voter):
    ahead = (answers[:, 0] - answers[:, 1]) * np.where(result == 1, 1.0, -1.0)[:, None]
    return Preferred.by(ahead, voter, int(voter.max()) + 1)


def slow_chances(votes, vote, theta):
    """D of one vote by each class of voters, from the module's docstring."""
    chance = special.expit(votes.ahead[vote] @ theta)
    truthful = TRUTHFULNESS * chance + (1 - TRUTHFULNESS) * (1 - chance)
    by_rule = {1: FAITHFUL, -1: 1 - FAITHFUL, 0: truthful[-1]}
    return np.append(truthful, [by_rule[int(rule)] for rule in votes.rules[vote]])


def slow_objective(theta, shares, votes, weight, ridge):
    """The objective of the module's docstring, vote by vote; ``shares`` (2, J + C) of voters with many votes or few."""
    prior = np.append(_PRIOR_VOTERS, [_CAMPAIGN_VOTERS] * votes.rules.shape[1])
    total = -0.5 * ridge * theta @ theta + (prior * np.log(shares)).sum()
    for voter in range(votes.voters):
        cast = np.flatnonzero(votes.voter == voter)
        classes = np.array(shares[int(weight[cast].sum() <= _OCCASIONAL)], dtype=float)
        for vote in cast:
            classes *= slow_chances(votes, vote, theta) ** weight[vote]
        total += np.log(classes.sum())
    return total


def with_rule(votes):
    """The votes, with the rule to prefer what has less of the last feature, which says nothing about every fifth."""
    rules = -np.sign(votes.ahead[:, [-1]]).astype(np.int8)
    rules[::5] = 0
    return votes._replace(rules=rules)


@pytest.mark.parametrize("change", [lambda votes: votes, with_rule], ids=["plain", "campaign"])
def test_the_fit_is_a_maximum_of_the_slow_objective(change):
    answers, result, voter, _ = problem(count=200, voters=12, liars=3)
    voter[:20] = 12 + np.arange(20) // 2
    votes = change(preferred(answers, result, voter))
    weight = np.random.default_rng(1).integers(1, 3, size=200).astype(float)
    fit = learn(votes, weight[:, None], np.array([2.0]))

    def loss(values):
        shares = special.softmax(values[4:].reshape(2, -1), axis=1)
        return -slow_objective(values[:4], shares, votes, weight, 2.0)

    found = np.append(fit.theta[:, 0], np.log(fit.shares[..., 0]))
    best = optimize.minimize(loss, found, options={"maxiter": 15})
    assert loss(found) - best.fun < 0.05
    assert np.abs(best.x[:4] - fit.theta[:, 0]).max() < 0.03


@pytest.mark.parametrize("change", [lambda votes: votes, with_rule], ids=["plain", "campaign"])
def test_the_pull_is_the_derivative_of_the_log_likelihood(change):
    rng = np.random.default_rng(0)
    votes, one = change(Preferred.by(rng.normal(size=(20, 1)), rng.integers(6, size=20), 6)), np.ones((20, 1))
    z, count = rng.normal(size=(20, 1)), len(TRUTHFULNESS) + votes.rules.shape[1]
    shares = rng.dirichlet(np.ones(count), size=2)[..., None]
    few = is_occasional(votes, one)

    def total(margins):
        return classes_of(votes, one, votes.likelihoods(margins), shares, few)[1].sum()

    pull = pull_of(votes, votes.likelihoods(z), classes_of(votes, one, votes.likelihoods(z), shares, few)[0])
    for vote in range(20):
        step = np.zeros((20, 1))
        step[vote] = 1e-5
        assert pull[vote, 0] == pytest.approx((total(z + step) - total(z - step)) / 2e-5, abs=1e-6)


def test_information_is_the_mean_squared_score():
    z, votes = np.linspace(-2, 2, 7), Preferred.by(np.empty((7, 1)), np.zeros(7, dtype=int), 1)
    for place, r in enumerate(TRUTHFULNESS):
        classes = np.eye(len(TRUTHFULNESS))[:, [place]]
        chance = r * special.expit(z) + (1 - r) * special.expit(-z)
        slope = (2 * r - 1) * special.expit(z) * special.expit(-z)
        expected = chance * (slope / chance) ** 2 + (1 - chance) * (slope / (1 - chance)) ** 2
        assert np.allclose(information(votes, z, classes), expected)


def test_fits_side_by_side_are_the_fits_alone():
    votes = preferred(*problem(count=300, voters=20, liars=4)[:3])
    weight = np.random.default_rng(0).random((300, 3)) < 0.7
    together = learn(votes, weight.astype(float), np.array([1.0, 5.0, 20.0]))
    for column, ridge in enumerate((1.0, 5.0, 20.0)):
        alone = learn(votes, weight[:, [column]].astype(float), np.array([ridge]))
        assert np.allclose(together.theta[:, column], alone.theta[:, 0], atol=0.02)


def test_people_who_say_the_opposite_cost_little_and_are_found():
    answers, result, voters, prompts = problem(count=3000, liars=12)
    test, truth, *_ = problem(seed=1, count=2000)
    clean = RobustRewardModel().fit(*problem(count=3000)[:2]).score(test, truth)
    model = RobustRewardModel().fit(answers, result, voters=voters, prompts=prompts)
    assert model.score(test, truth) > clean - 0.01
    assert (model.truthfulness_[:12] < 0.2).all()
    assert (model.truthfulness_[12:] > 0.8).all()
    assert model.against_ == pytest.approx((voters < 12).mean(), abs=0.03)
    assert model.belief_[voters < 12].mean() < 0.3
    assert model.belief_[voters >= 12].mean() > 0.8


def test_a_campaign_of_accounts_with_one_vote_each_is_found_and_costs_little():
    answers, result, voters, _ = problem(count=4000, dimension=6)
    false = np.random.default_rng(2).normal(size=(1700, 2, 6))  # 30% of the votes
    less = (false[:, 0, 3] < false[:, 1, 3]).astype(int)
    test, truth, *_ = problem(seed=1, count=3000, dimension=6)
    clean = RobustRewardModel(ridge=2.0).fit(answers, result, voters=voters).score(test, truth)
    everybody = {"X": np.concatenate([answers, false]), "y": np.append(result, less)}
    for people in (np.append(voters, 100 + np.arange(1700)), np.arange(5700)):
        model = RobustRewardModel(ridge=2.0).fit(**everybody, voters=people)
        (rule, share), *others = model.campaigns_
        assert (rule, others) == (Rule(3, more=False), [])
        assert share == pytest.approx(0.3, abs=0.06)
        assert model.score(test, truth) > clean - 0.02
        assert "less of feature 3" in model.sentences()[1]


def test_no_campaign_is_found_among_honest_voters():
    for seed in range(20):
        answers, result, voters, _ = problem(seed=seed, count=500, voters=400, spread=6.0)
        assert RobustRewardModel(ridge=1.0).fit(answers, result, voters=voters).campaigns_ == []


def test_what_everybody_prefers_is_no_campaign():
    answers, *_ = problem(count=1000)
    longer = (answers[:, 0, 0] > answers[:, 1, 0]).astype(int)
    model = RobustRewardModel(ridge=1.0).fit(answers, longer, voters=np.arange(1000) % 100)
    assert model.campaigns_ == []
    assert model.score(answers, longer) > 0.95


def test_probabilities_are_calibrated():
    answers, result, voters, prompts = problem(count=600, liars=6, dimension=20, spread=1.0)
    model = RobustRewardModel().fit(answers, result, voters=voters, prompts=prompts)
    test, truth, *_ = problem(seed=5, count=20_000, dimension=20, spread=1.0)
    chance = model.predict_proba(test)[:, 1]
    for low in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8):
        near = (chance >= low) & (chance < low + 0.15)
        assert truth[near].mean() == pytest.approx(chance[near].mean(), abs=0.06)


def test_the_spread_covers_the_true_margin():
    truth, inside = np.array([2.0, -1.0, 0.0, 0.0]), []
    test = np.random.default_rng(9).normal(size=(50, 4))
    for seed in range(40):
        answers, result, voters, _ = problem(seed=seed, count=400, liars=6)
        slips = np.random.default_rng([seed, 1]).random(400) < 1.0 - TRUTHFULNESS[-1]
        model = RobustRewardModel(ridge=0.5).fit(answers, np.where(slips, 1 - result, result), voters=voters)
        mean, spread = model.margins(test)
        inside.append((np.abs(mean - test @ truth) < 1.96 * spread).mean())
    assert 0.92 < np.mean(inside) < 0.98


def test_the_larger_camp_is_believed_unless_gold_labels_disagree():
    answers, result, voters, _ = problem(liars=18)  # 18 of 30 say the opposite
    test, truth, *_ = problem(seed=1)
    gold = np.zeros(len(result), dtype=bool)
    gold[np.flatnonzero(voters >= 18)[:15]] = True
    alone = RobustRewardModel().fit(answers, result, voters=voters)
    told = RobustRewardModel().fit(answers, result, voters=voters, gold=gold)
    assert alone.score(test, truth) < 0.3
    assert told.score(test, truth) > 0.8
    assert alone.camps_of_like_size
    assert "two camps of like size" in alone.sentences()[1]
    assert told.sentences()[1] == "The gold labels decide which camp is believed, clearly."


def test_no_camps_are_reported_where_there_are_none():
    answers, result, voters, prompts = problem()
    model = RobustRewardModel().fit(answers, result, voters=voters, prompts=prompts)
    assert not model.camps_of_like_size
    assert len(model.sentences()) == 1


def test_without_voters_the_loss_is_bounded_and_the_model_says_so():
    answers, result, *_ = problem()
    model = RobustRewardModel().fit(answers, result)
    assert "name the voters" in model.sentences()[0]
    wild = np.concatenate([answers, [[[40.0, 0, 0, 0], [0.0, 0, 0, 0]]] * 20])
    attacked = RobustRewardModel(ridge=model.ridge_).fit(wild, np.append(result, [0] * 20))
    assert attacked.score(answers, result) > model.score(answers, result) - 0.02


def test_held_out_margins_do_not_depend_on_the_voter_nor_the_fit_on_the_prompt(monkeypatch):
    answers, result, voters, prompts = problem(count=400)
    votes, one = preferred(answers, result, voters), np.ones(400)
    before = held_out_margins(votes, one, prompts, 2.0)
    rng = np.random.default_rng(0)
    of_prompt, of_voter = (groups_of(each, one, GROUPS, rng)[each] for each in (prompts, voters))
    vote = 7

    def after(changed):
        flipped = np.where((changed & (np.arange(400) != vote))[:, None], -votes.ahead, votes.ahead)
        return held_out_margins(votes._replace(ahead=flipped), one, prompts, 2.0)

    assert after(of_voter == of_voter[vote])[vote] == pytest.approx(before[vote], rel=0.02)
    assert not np.allclose(after(of_prompt == of_prompt[vote]), before, rtol=0.2)
    monkeypatch.setattr(held_out, "relevance", lambda votes, *_: np.ones(votes.ahead.shape[1]))
    before = held_out_margins(votes, one, prompts, 2.0)
    for group in (of_voter, of_prompt):
        assert after(group == group[vote])[vote] == pytest.approx(before[vote], rel=0.02)


def test_features_that_matter_are_shrunk_less():
    answers, result, voters, prompts = problem(count=400, dimension=60, spread=1.0)
    test, truth, *_ = problem(seed=1, count=4000, dimension=60, spread=1.0)
    votes, one = preferred(answers, result, voters), np.ones(400)
    learned = learn(votes, one[:, None], np.array([240.0]))
    found = relevance(votes, one, learned, 240.0)
    assert (found**2).mean() == pytest.approx(1.0)
    assert found[:2].min() > 2.0 * np.median(found[2:])
    variance = np.diag(posterior(votes, one, learned, 240.0))
    expected = learned.theta[:, 0] ** 2 + variance
    assert np.allclose(found**2 * expected.mean(), expected)
    alike = learn(votes, one[:, None], np.array([best_ridge(votes, one, prompts)])).theta[:, 0]
    plain = (((test[:, 0] - test[:, 1]) @ alike > 0) == truth).mean()
    assert RobustRewardModel().fit(answers, result, voters=voters, prompts=prompts).score(test, truth) > plain + 0.02


def test_neither_the_unit_of_margins_nor_honest_opposites_decide_how_well_they_predict():
    answers, result, voters, _ = problem(count=600, liars=10)
    votes, margins = preferred(answers, result, voters), (answers[:, 0] - answers[:, 1]) @ [2.0, -1.0, 0.0, 0.0]
    margins = np.where(result == 1, margins, -margins)
    right = predicted(votes, np.ones(600), margins)
    assert predicted(votes, np.ones(600), 0.01 * margins) == pytest.approx(right)
    noisy = margins + np.random.default_rng(0).normal(size=600)
    assert right > predicted(votes, np.ones(600), noisy) + 5.0
    liars = np.where(voters < 10, -margins, margins)  # what honest votes of the same people would be
    honest = preferred(answers, np.where(voters < 10, 1 - result, result), voters)
    assert right > predicted(honest, np.ones(600), liars) - 10 * 3.0  # 10 people cost what is needed to know them
    assert special.log_expit(margins).sum() < special.log_expit(liars).sum() - 300.0


def test_a_kernel_learns_what_no_linear_reward_can():
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(3000, 2, 2))
    quality = -(answers**2).sum(axis=2)  # the best answers are in the middle
    result = (rng.random(3000) < special.expit(2 * (quality[:, 0] - quality[:, 1]))).astype(int)
    voters = np.arange(3000) % 40
    told = np.where(voters < 10, 1 - result, result)
    linear, kernel = (
        RobustRewardModel(head=head).fit(answers[:2000], told[:2000], voters=voters[:2000])
        for head in ("linear", "kernel")
    )
    assert linear.score(answers[2000:], result[2000:]) < 0.6
    assert kernel.score(answers[2000:], result[2000:]) > 0.8


@pytest.mark.parametrize("head", ["linear", "kernel"])
def test_a_saved_model_predicts_the_same(tmp_path, head):
    answers, result, voters, _ = problem(count=300, liars=5)
    model = RobustRewardModel(head=head, seed=3).fit(answers, result, voters=voters)
    model.save(tmp_path / "reward.npz")
    loaded = RobustRewardModel.load(tmp_path / "reward.npz")
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict_proba(answers), model.predict_proba(answers))
    assert np.array_equal(loaded.score(answers[:, 0]), model.score(answers[:, 0]))
    assert loaded.sentences() == model.sentences()


@pytest.mark.torch
@pytest.mark.parametrize("head", ["linear", "kernel"])
def test_a_pytorch_module_gives_the_same_rewards(head):
    import torch  # noqa: PLC0415

    answers, result, voter, _ = problem(count=300)
    model = RobustRewardModel(head=head).fit(answers, result, voters=voter)
    module = model.to_torch()
    given = torch.tensor(answers, dtype=torch.float32)
    with torch.no_grad():
        found = module(given).numpy()
    assert found.shape == (300, 2)
    np.testing.assert_allclose(found.ravel(), model.score(answers.reshape(-1, answers.shape[2])), atol=1e-3)
    assert set(module.state_dict()) == {"weight", "scale", "landmarks"}


def test_votes_told_in_parts_are_votes_told_at_once(tmp_path):
    answers, result, voters, prompts = problem(count=300, liars=5)
    once, parts = RobustRewardModel(ridge=1.0), RobustRewardModel(ridge=1.0)
    once.fit(answers, result, voters=voters, prompts=prompts)
    for chosen in (slice(0, 100), slice(100, 300)):
        parts.partial_fit(answers[chosen], result[chosen], voters=voters[chosen], prompts=prompts[chosen])
    assert np.array_equal(parts.coef_, once.coef_)
    before = parts.coef_
    for wrong in ({"X": answers}, {"X": answers[:, :, :2], "voters": voters, "prompts": prompts}):
        with pytest.raises(BadInputError, match=r"with all votes|as before"):
            parts.partial_fit(**wrong)
    assert np.array_equal(parts.coef_, before)
    parts.save(tmp_path / "reward.npz")
    with pytest.raises(BadInputError, match="does not hold the votes"):
        RobustRewardModel.load(tmp_path / "reward.npz").partial_fit(answers)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"nonsense")
    np.savez(tmp_path / "y.npz", a=np.ones(2))
    for name in ("x.npz", "y.npz", "none.npz"):
        with pytest.raises(BadInputError, match="is not a saved reward model"):
            RobustRewardModel.load(tmp_path / name)


def test_rewards_differ_by_margins_and_ties_say_nothing():
    answers, result, voters, _ = problem(count=300)
    model = RobustRewardModel(ridge=1.0).fit(answers, result, voters=voters)
    rewards = model.score(answers.reshape(-1, 4)).reshape(-1, 2)
    assert np.allclose(rewards[:, 0] - rewards[:, 1], model.margins(answers)[0])
    tied = RobustRewardModel(ridge=1.0).fit(
        np.concatenate([answers, answers]), np.append(result, [0.5] * 300), voters=np.append(voters, voters)
    )
    assert np.allclose(tied.coef_, model.coef_)
    chosen = np.where(result[:, None, None] == 1, answers, answers[:, ::-1])
    assert np.allclose(RobustRewardModel(ridge=1.0).fit(chosen, voters=voters).coef_, model.coef_)


def test_the_papers_weights_hold_back_a_few_votes_on_something_new():
    answers, result, voters, _ = problem(count=500)
    strange = np.zeros((5, 2, 4))
    strange[:, 0, 3] = 30.0
    pairs, votes = np.concatenate([answers, strange]), np.append(result, [1] * 5)
    people = np.append(voters, np.arange(5))
    plain, weighted = (
        RobustRewardModel(ridge=0.1, weights=kind).fit(pairs, votes, voters=people) for kind in ("none", "fixed-point")
    )
    assert abs(weighted.coef_[3]) < abs(plain.coef_[3])


@pytest.mark.parametrize(
    ("change", "problem_found"),
    [
        ({"X": np.ones((3, 4, 2))}, "X must have shape"),
        ({"X": [[np.nan, 1.0]] * 3}, "finite"),
        ({"y": [1, 0]}, "y must have shape"),
        ({"y": [1, 0, 2]}, "y must hold"),
        ({"y": [0.5, 0.5, 0.5]}, "no vote counts"),
        ({"voters": ["a", "b"]}, "voters must have shape"),
        ({"gold": [1, 0, 0]}, "gold must hold"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight must hold"),
        ({"head": "cubic"}, "cubic"),
        ({"head": "kernel"}, "both answers"),
        ({"ridge": -1.0}, "ridge"),
    ],
)
def test_bad_input_gets_one_sentence_and_changes_nothing(change, problem_found):
    settings = {name: change.pop(name) for name in ("head", "ridge") if name in change}
    given = {"X": np.eye(3, 2), "y": [1, 0, 1]} | change
    model = RobustRewardModel(**settings)
    before = dict(vars(model))
    with pytest.raises(BadInputError, match=problem_found):
        model.fit(**given)
    assert vars(model) == before
