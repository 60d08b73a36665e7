import math

import numpy as np
import pytest

from fairduel import LOGISTIC, BadInputError, Outcome, Sceptic
from fairduel.action_sets import HypercubeSet, hypercube
from fairduel.core.selection import thrifty_pair, view_by
from fairduel.simulation import Cell
from helpers.agents import TRUTH, answer, sphere

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


def made(**settings):
    return Sceptic(**{"dimension": 3, "norm_bound": 2.0, "horizon": 400, "seed": 7} | settings)


@pytest.mark.parametrize("self_duels", [True, False])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("radius", [0.05, 0.8])
def test_a_hundred_rounds_under_flips_are_the_algorithm_box(radius, self_duels, robust, slow_estimate):
    """Every line of the docstring, computed the obvious way; fresh actions in every round."""
    agent = made(radius=radius, flip_budget=5, self_duels=self_duels, patience=3, robust=robust)
    flips, scale = (0.9 * math.sqrt(5 * 20), 2) if robust else (5, 16)
    ridge, trust, rng = 320 / (3 * 4), scale * math.sqrt(3) / flips, np.random.default_rng(1)
    allowance = 0.002 if self_duels else 4 * 5 / 400
    phis, weights, outcomes, alone, upsets, doubted = np.empty((0, 3)), [], [], 0, 0, 0
    for t in range(1, 101):
        information = ridge * np.eye(3) + 0.25 * (phis.T * weights) @ phis
        inverse = np.linalg.inv(information)
        theta = slow_estimate(phis, np.array(weights), outcomes, ridge, LOGISTIC)
        np.testing.assert_allclose(agent.estimate, theta, atol=1e-6)
        actions = sphere(rng)
        rewards = actions @ theta
        leader = int(np.argmax(rewards))
        width = np.array([[math.sqrt((x - y) @ inverse @ (x - y)) for y in actions] for x in actions])
        grown = (min(1 + (t - 1) / (flips + 1), 8) / 8) ** 2
        votes = max(flips * math.log(t / flips) / 40, 0.0) if robust else 0.0
        needed = np.maximum(radius * width[leader], votes * grown * width[leader] ** 2)
        margins = np.delete(rewards[leader] - rewards - needed, leader)

        duel = agent.ask(actions)

        pair = duel.first, duel.second
        in_doubt = 3 <= upsets < 3 + flips
        may_settle = self_duels and not in_doubt
        if may_settle and (margins > 1e-9).all():
            assert pair == (leader, leader)
            alone += 1
        elif not may_settle or (margins < -1e-9).any():
            cost = 2 * rewards[leader] - rewards[:, None] - rewards[None, :] + allowance
            assert (width / cost)[pair] >= (width / cost).max() - 1e-6
        expected = grown * min(1.0, trust / width[pair]) if width[pair] else grown
        assert duel.weight == pytest.approx(0.0 if in_doubt else expected, rel=1e-9)
        told = answer(duel, rng.random()) if t > 5 else answer(duel, rng.random()).flipped
        agent.tell(duel, told)
        if duel.first != duel.second:
            phis, weights = np.vstack([phis, duel.difference]), [*weights, duel.weight]
            outcomes.append(float(told is Outcome.FIRST))
            is_upset = duel.difference @ theta * (told.first_share - 0.5) < 0
            upsets, doubted = (upsets + 1 if is_upset else 0), doubted + in_doubt
    assert (alone > 5) == (self_duels and radius < 0.1)
    assert doubted > 0


def test_the_first_votes_count_a_sixty_fourth_and_trust_is_full_after_seven_times_the_flips():
    agent = made(flip_budget=10)
    assert agent.grown_trust(1) == 1 / 64
    assert agent.grown_trust(1 + 77) == 1.0
    assert agent.grown_trust(1 + 76) < 1.0
    assert agent.grown_trust(10**6) == 1.0
    assert made(growth=0).grown_trust(1) == 1.0


def test_its_guesses_without_a_budget_or_a_horizon():
    assert made(flip_budget=7).settings["flip_budget"] == 7
    assert made(horizon=100).settings["flip_budget"] == 20
    assert made(horizon=None).settings["flip_budget"] == made(horizon=2000).settings["flip_budget"]
    assert made(flip_budget=0).settings["trust"] == math.inf
    assert Cell("sceptic", "greedy", 5, 50, agent_settings={"known_budget": False}).assumptions == [
        "Without knowing C, Sceptic assumes C = 2√T, or √T if robust."
    ]


BAD = [
    {"flip_budget": -1},
    {"flip_budget": 1.5},
    {"growth": -1.0},
    {"trust": 0.0},
    {"patience": -1},
    {"robust": 2},
    {"allowance": 0.0},
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_setting_is_refused(bad):
    with pytest.raises(BadInputError, match=next(iter(bad))):
        made(**bad)


# ---------------------------------------------------------------------- the robust form


def test_the_margin_is_how_many_late_votes_reverse_a_clear_lead():
    """One feature: about so many votes against the leader, each of full weight, make the other action lead."""
    agent = made(dimension=1, robust=True, horizon=4096, radius=0.0, growth=0.0, trust=1e9)
    actions, asked = np.array([[0.1], [-0.1]]), 0
    while not (duel := agent.ask(actions)).is_self_duel:
        agent.tell(duel, Outcome.FIRST if duel.difference[0] > 0 else Outcome.SECOND)
        asked += 1
    votes = agent.margin_at(asked + 1)
    assert votes == pytest.approx(max(64 * math.log((asked + 1) / 64) / 40, 0.0))
    lead, squared = 0.2 * agent.estimate[0], agent.information.width(actions[0] - actions[1]) ** 2
    assert votes <= lead / squared < votes + 0.6  # each vote adds about half its weight times the squared width


def test_nothing_is_suspected_if_nobody_lies():
    assert made(robust=True, flip_budget=0).margin_at(100) == 0.0
    assert made(robust=True, flip_budget=0).settings["trust"] == math.inf
    assert made().margin_at(100) == 0.0


def test_the_robust_form_refuses_an_implicit_set():
    with pytest.raises(BadInputError, match="listed"):
        made(dimension=4, robust=True).ask(HypercubeSet(4))


def test_a_wrong_leader_is_deposed():
    """64 lies just before it settles leave Sceptic with a wrong action for ever, but not its robust form."""

    def late(settings):
        attack = {"settling": 0.5, "chance": 0.5}
        cell = Cell("sceptic", "watching", 64, 4096, agent_settings=settings, attack_settings=attack)
        return np.mean([cell.run(seed).trace.regret[3072:].mean() for seed in range(6)])

    assert late({}) > 1.0
    assert late({"robust": True}) < 0.3


# ---------------------------------------------------------------------- doubt


def judged(agent, judge, votes, actions=((1.0, 0.0, 0.0), (0.0, 0.0, 0.0))):
    """Ask and tell so often whether the estimate is right, by ``judge`` (None: a tie); return the weights."""
    weights = []
    for _ in range(votes):
        duel = agent.ask(np.array(actions))
        weights.append(duel.weight)
        favourite = Outcome.FIRST if duel.difference @ agent.estimate > 0 else Outcome.SECOND
        agent.tell(duel, Outcome.TIE if judge is None else favourite if judge else favourite.flipped)
    return np.array(weights)


def settled(**settings):
    """An agent that has been told twenty times that the first action is better."""
    agent = made(**{"flip_budget": 6, "self_duels": False, "patience": 3} | settings)
    for _ in range(20):
        duel = agent.ask(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        agent.tell(duel, Outcome.FIRST if duel.difference[0] > 0 else Outcome.SECOND)
    return agent


def test_after_three_upsets_votes_do_not_count_until_one_agrees_or_as_many_as_may_be_lies_did_not():
    agent = settled()
    assert (judged(agent, False, 12) > 0).tolist() == [True] * 3 + [False] * 6 + [True] * 3
    assert (judged(settled(), False, 5) > 0).tolist() == [True] * 3 + [False] * 2
    agent = settled()
    judged(agent, False, 4)
    assert judged(agent, True, 2).astype(bool).tolist() == [False, True]


def test_a_tie_neither_ends_nor_prolongs_a_run_of_upsets():
    agent = settled()
    judged(agent, False, 2)
    assert (judged(agent, None, 3) > 0).all()
    assert (judged(agent, False, 2) > 0).tolist() == [True, False]
    assert (judged(agent, None, 9) == 0).all()


@pytest.mark.parametrize("settings", [{"patience": 0}, {"patience": 30}])
def test_patience_can_be_endless(settings):
    assert (judged(settled(**settings), False, 12) > 0).all()


def test_doubt_survives_saving(tmp_path):
    agent = settled()
    judged(agent, False, 3)
    agent.save(tmp_path / "agent.zip")
    assert judged(Sceptic.load(tmp_path / "agent.zip"), False, 1) == 0


def test_at_most_one_honest_vote_in_eight_is_doubted_if_the_estimate_is_right_and_far_more_than_one_in_sixteen():
    """Close pairs, so that the favourite wins about half of its duels: the worst case."""
    agent, rng, doubted = made(flip_budget=50, self_duels=False, patience=3), np.random.default_rng(5), 0
    for vote in range(4500):
        duel = agent.ask(np.array([[0.03, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        doubted += vote >= 500 and duel.weight == 0.0
        wins = rng.random() < LOGISTIC.probability(2.0 * duel.difference[0])
        agent.tell(duel, Outcome.FIRST if wins else Outcome.SECOND)
    assert 0.09 < doubted / 4000 < 0.14


def test_doubt_saves_most_of_the_regret_of_an_attack_that_starts_before_it_settles():
    """Tuning seeds; measured on seeds 100 to 139: 419 against 2,527."""

    def regret(**settings):
        cell = Cell("sceptic", "adversarial", 45, 2000, attack_settings={"start": 500}, agent_settings=settings)
        return np.mean([cell.run(seed).trace.regret.sum() for seed in range(1_000_000, 1_000_016)])

    assert regret(known_budget=False, patience=3) < 0.4 * regret(known_budget=False)


def test_people_are_asked_pairs_that_lies_at_the_known_rate_cannot_reverse():
    """A tenth of all votes are lies: share of runs with the right recommendation, and what asking close pairs gives."""

    def right(**settings):
        cell = Cell(
            "sceptic",
            "adversarial",
            200,
            2000,
            attack_settings={"every": 10},
            agent_settings={"self_duels": False, **settings},
        )
        return np.mean([cell.run(seed).advice.is_best for seed in range(1_000_000, 1_000_100)])

    assert right() >= right(allowance=0.002) + 0.12  # about 0.3 is expected, with a standard error of 0.06


def test_the_allowance_grows_only_for_people_and_a_known_number_of_lies():
    assert made(flip_budget=40, self_duels=False)._allowance == 4 * 40 / 400
    assert made(flip_budget=40, self_duels=False, horizon=None)._allowance == 4 * 40 / 2000
    assert made(flip_budget=0, self_duels=False)._allowance == 0.002
    assert made(self_duels=False)._allowance == made(flip_budget=40)._allowance == 0.002
    assert made(allowance=0.5)._allowance == 0.5


# ---------------------------------------------------------------------- what is proved


def error_and_bound(agent, flips, noise):
    """‖θ − θ*‖_Σ of a played agent, and (s/κ)(√λ B + noise + α·Σ of the trust in the flipped votes)."""
    trust = sum(agent.grown_trust(t) for t in flips)
    gap = agent.estimate - TRUTH
    ridge, kappa = agent.settings["ridge"], agent.settings["kappa"]
    bound = math.sqrt(ridge) * np.linalg.norm(TRUTH) + noise + agent.settings["trust"] * trust
    return math.sqrt(gap @ agent.information.matrix @ gap), 0.25 / kappa * bound


@pytest.mark.parametrize("flips", [range(1, 31), range(171, 201), range(1, 201, 7)])
@pytest.mark.parametrize("seed", range(5))
def test_the_estimation_error_obeys_its_decomposition(flips, seed):
    """The proposition of the page, with the noise of this very run in place of its bound."""
    agent, rng, noise = made(flip_budget=30, constrained=True, self_duels=False), np.random.default_rng(seed), 0.0
    for t in range(1, 201):
        duel = agent.ask(sphere(rng))
        told = answer(duel, rng.random())
        noise = (
            noise + duel.weight * (told.first_share - LOGISTIC.probability(duel.difference @ TRUTH)) * duel.difference
        )
        agent.tell(duel, told.flipped if t in flips else told)
    error, bound = error_and_bound(agent, flips, math.sqrt(noise @ agent.information.inverse @ noise))
    assert error <= bound


@pytest.mark.parametrize("excess", [1.001, 0.999])
def test_a_wrong_leader_is_clear_only_below_the_margin_of_the_proof(excess):
    """Step 1, in one dimension, where it is tight: the wrong action may lead by Rw − Δ, and w = 2Δ/R."""
    gap, reach, actions = 0.3, 5.0, np.array([[0.5], [-0.5]])
    deviation = 2.0 * gap / reach  # √Σ⁻¹, and w, because x_1 − x_2 = 1
    theta = np.array([gap - reach * deviation])
    view = view_by(np.array([[deviation**2]]), actions, theta)
    pair = thrifty_pair(view, 0.0, 0.01, True, 0.5, excess * reach**2 / (4.0 * gap))
    assert (pair == (1, 1)) == (excess < 1.0)


@pytest.mark.parametrize("seed", range(100))
def test_above_that_margin_the_best_action_is_played_or_the_pair_is_informative(seed):
    """Steps 1 and 2 of the proof, for any θ with ‖θ − θ*‖_Σ ≤ R."""
    rng, norm, allowance = np.random.default_rng(seed), 2.0, 0.002
    actions, root = sphere(rng), rng.standard_normal((3, 3)) * 10.0 ** rng.uniform(0, 2)
    information = root @ root.T + np.eye(3)
    truth = rng.standard_normal(3)
    truth *= norm / np.linalg.norm(truth)
    rewards = actions @ truth
    gap, reach, radius = np.diff(np.sort(rewards)[-2:])[0], 10.0 ** rng.uniform(-1, 1), rng.uniform(0, 1)
    margin = reach**2 / (4.0 * gap) * (1.001 + rng.exponential())
    error = rng.standard_normal(3)
    theta = truth + reach * error / math.sqrt(error @ information @ error)
    inverse = np.linalg.inv(information)
    pair = thrifty_pair(view_by(inverse, actions, theta), radius, allowance, True, rng.random(), margin)
    if pair[0] == pair[1]:
        assert pair[0] == np.argmax(rewards)
    else:
        least = min(math.sqrt(gap / (2.0 * margin)), gap / (2.0 * (radius + reach)))
        phi = actions[pair[0]] - actions[pair[1]]
        assert math.sqrt(phi @ inverse @ phi) >= allowance * least / (2.0 * norm + reach * least + allowance)


@pytest.mark.parametrize("settings", [{"growth": 0.0}, {}])
def test_the_flips_share_of_the_error_is_at_most_alpha_times_their_trust_and_not_half_of_it(settings):
    """All votes flipped, one feature, small α: each flip then weighs α√Σ_t, and Σ hardly grows."""
    agent = made(dimension=1, flip_budget=40, trust=1e-3, **settings)
    pushed = 0.0
    for _ in range(40):
        duel = agent.ask([[1.0], [-1.0]])
        pushed += duel.weight * abs(duel.difference[0])
        agent.tell(duel, Outcome.FIRST)
    share = pushed * math.sqrt(agent.information.inverse[0, 0])
    bound = agent.settings["trust"] * sum(agent.grown_trust(t) for t in range(1, 41))
    assert 0.6 * bound < share <= bound


def test_as_many_early_flips_as_suspected_move_the_estimate_by_at_most_root_d():
    """α·Ĉ·(1 + 1)²/64 = √d: the page's example."""
    agent = made(flip_budget=50)
    trust = sum(agent.grown_trust(t) for t in range(1, 51))
    assert agent.settings["trust"] * trust <= math.sqrt(3)


def test_the_theory_radius_bounds_the_noise_and_the_flips():
    agent = made(radius="theory", flip_budget=30, horizon=200)
    slope, kappa, ridge = 0.25, agent.settings["kappa"], agent.settings["ridge"]
    determinant = 3 * math.log(1 + 4 * slope * 200 / (3 * ridge))
    noise = math.sqrt((determinant + 2 * math.log(20)) / (4 * slope))
    bound = slope / kappa * (math.sqrt(ridge) * 2.0 + 16 * math.sqrt(3) + noise)
    assert agent.current_radius == pytest.approx(bound, rel=1e-12)


# ---------------------------------------------------------------------- large and implicit sets


@pytest.mark.parametrize("self_duels", [True, False])
def test_an_implicit_hypercube_is_searched_like_a_listed_one(self_duels):
    agent = made(dimension=4, self_duels=self_duels, radius=0.05, flip_budget=2, patience=3)
    actions, truth, rng, alone = hypercube(4), np.array([2.0, -1.0, 0.5, 1.0]), np.random.default_rng(3), 0
    upsets = 0
    for _ in range(80):
        theta, inverse, radius = agent.estimate, agent.information.inverse.copy(), agent.current_radius
        rewards = actions @ theta
        width = np.array([[math.sqrt((x - y) @ inverse @ (x - y)) for y in actions] for x in actions])
        ahead = np.delete(rewards.max() - rewards - radius * width[rewards.argmax()], rewards.argmax())
        allowance = 0.002 if self_duels else 0.02
        thrift = width / (2 * rewards.max() - rewards[:, None] - rewards[None, :] + allowance)
        in_doubt = 3 <= upsets < 3 + 2
        duel = agent.ask(HypercubeSet(4))
        assert (duel.weight == 0) == in_doubt
        if self_duels and not in_doubt and ahead.min() > 1e-9:
            alone += 1
            assert duel.is_self_duel
            assert duel.first == rewards.argmax()
        else:
            assert thrift[duel.first, duel.second] >= thrift.max() * (1 - 1e-6)
            assert duel.gap < 1e-6
        wins = rng.random() < LOGISTIC.probability(duel.difference @ truth)
        if not duel.is_self_duel:
            upsets = upsets + 1 if duel.difference @ theta * (wins - 0.5) < 0 else 0
        agent.tell(duel, Outcome.FIRST if wins else Outcome.SECOND)
    assert (alone > 0) == self_duels
