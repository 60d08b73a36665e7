import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from fairduel import MaxPairUCB
from fairduel.adversaries import NoAttack
from fairduel.errors import BadInputError
from fairduel.simulation import Cell, play
from fairduel.simulation.compiled_run import can_compile
from fairduel.worlds import WORLDS, PreferenceWorld
from fairduel.worlds.preferences import borda_scores, condorcet_winner, copeland_scores

FAMILIES = ["utilities", "condorcet", "condorcet-cycle", "cyclic", "arithmetic", "geometric", "one-good"]
ROCK_PAPER_SCISSORS = [[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]]


def rng(seed=0):
    return np.random.default_rng(seed)


def drawn(family, seed=0, **settings):
    regret = "borda" if family == "cyclic" else "condorcet"
    return PreferenceWorld.draw(rng=rng(seed), family=family, **{"regret": regret} | settings)


@st.composite
def matrices(draw):
    count = draw(st.integers(2, 6))
    matrix = np.full((count, count), 0.5)
    for i, j in itertools.combinations(range(count), 2):
        matrix[i, j] = draw(st.sampled_from([0.0, 0.2, 0.5, 0.55, 0.9, 1.0]))
        matrix[j, i] = 1 - matrix[i, j]
    return matrix


@given(matrices())
def test_winners_and_scores_are_those_of_counting(matrix):
    count = len(matrix)
    winners = [i for i in range(count) if all(matrix[i, j] > 0.5 for j in range(count) if j != i)]
    assert condorcet_winner(matrix) == (winners[0] if winners else None)
    for i in range(count):
        others = [matrix[i, j] for j in range(count) if j != i]
        assert borda_scores(matrix)[i] == pytest.approx(sum(others) / len(others))
        points = sum(1.0 if p > 0.5 else 0.5 if p == 0.5 else 0.0 for p in others)
        assert copeland_scores(matrix)[i] == pytest.approx(points / len(others))


@given(matrices())
def test_the_rewards_make_the_regret_that_was_asked_for(matrix):
    for regret, scores in (("borda", borda_scores(matrix)), ("copeland", copeland_scores(matrix))):
        np.testing.assert_allclose(PreferenceWorld(matrix=matrix, regret=regret).offer(1).rewards, scores)
    winner = condorcet_winner(matrix)
    if winner is None:
        with pytest.raises(BadInputError, match="Condorcet regret is undefined; use regret='borda' or 'copeland'"):
            PreferenceWorld(matrix=matrix)
        return
    rewards = PreferenceWorld(matrix=matrix).offer(1).rewards
    for a, b in itertools.product(range(len(matrix)), repeat=2):
        gaps = [matrix[winner, a] - 0.5, matrix[winner, b] - 0.5]
        assert 2 * rewards.max() - rewards[a] - rewards[b] == pytest.approx(sum(gaps))
        assert rewards.max() - max(rewards[a], rewards[b]) == pytest.approx(min(gaps))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("arms", [4, 5, 10])
def test_every_family_is_a_preference_matrix_with_the_gap_asked_for(family, arms):
    world = drawn(family, arms=arms, gap=0.3)
    assert world.matrix.shape == (arms, arms)
    np.testing.assert_allclose(world.matrix + world.matrix.T, 1.0, atol=1e-12)
    assert world.matrix.max() == pytest.approx(0.8)
    assert (world.arms, world.dimension, world.parameter, str(world.link)) == (arms, arms, None, "logistic")
    np.testing.assert_array_equal(world.offer(3).actions, np.eye(arms))
    assert world.link.kappa(world.norm_bound) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_arms_come_in_random_order_from_the_seed(family):
    best = {int(np.argmax(borda_scores(drawn(family, seed, arms=5).matrix))) for seed in range(60)}
    assert best == set(range(5))
    np.testing.assert_array_equal(drawn(family, 3).matrix, drawn(family, 3).matrix)


def is_transitive(matrix):
    beats = matrix > 0.5
    return not any(
        beats[i, j] and beats[j, k] and not beats[i, k] for i, j, k in itertools.permutations(range(len(matrix)), 3)
    )


@pytest.mark.parametrize("family", ["utilities", "arithmetic", "geometric"])
def test_utilities_give_a_total_order(family):
    matrix = drawn(family, 1).matrix
    assert is_transitive(matrix)
    assert sorted(copeland_scores(matrix)) == pytest.approx(np.arange(10) / 9)


@pytest.mark.parametrize("family", ["condorcet", "condorcet-cycle"])
def test_a_winner_has_its_gap_over_arms_that_have_no_order(family):
    matrix = drawn(family, 2, gap=0.1).matrix
    winner = condorcet_winner(matrix)
    np.testing.assert_allclose(np.delete(matrix[winner], winner), 0.6)
    assert not is_transitive(matrix)


@pytest.mark.parametrize("arms", [4, 7])
def test_a_cycle_at_the_top_has_no_condorcet_winner(arms):
    matrix = drawn("cyclic", arms=arms, gap=0.2).matrix
    assert condorcet_winner(matrix) is None
    top = np.flatnonzero(borda_scores(matrix) == borda_scores(matrix).max())
    assert len(top) == 3
    assert copeland_scores(matrix)[top] == pytest.approx((arms - 3 + 1) / (arms - 1))
    assert sorted(matrix[np.ix_(top, top)].ravel()) == pytest.approx([0.3] * 3 + [0.5] * 3 + [0.7] * 3)
    with pytest.raises(BadInputError, match="use regret='borda' or 'copeland'"):
        drawn("cyclic", arms=arms, regret="condorcet")


def test_the_published_arithmetic_matrix_is_one_of_the_family():
    arms = 8
    world = drawn("arithmetic", arms=arms, gap=(arms - 1) / (2 * arms))
    order = np.argsort(-borda_scores(world.matrix))
    i, j = np.indices((arms, arms))
    np.testing.assert_allclose(world.matrix[np.ix_(order, order)], 0.5 + (j - i) / (2 * arms))


def test_geometric_gaps_halve():
    matrix = drawn("geometric", arms=6).matrix
    scores = np.sort(borda_scores(matrix))
    np.testing.assert_allclose(np.diff(scores)[1:] / np.diff(scores)[:-1], 2.0)


def test_random_utilities_are_a_logistic_world_whose_norm_is_told():
    world = drawn("utilities", 4, gap=0.3)
    utilities = logit(world.matrix[:, 0])
    np.testing.assert_allclose(expit(utilities[:, None] - utilities), world.matrix)
    assert world.norm_bound == pytest.approx(np.linalg.norm(utilities - utilities.mean()))


def test_agents_with_features_are_told_a_norm_where_no_parameter_exists():
    assert PreferenceWorld(matrix=ROCK_PAPER_SCISSORS, regret="borda").norm_bound == 0.1
    sure = PreferenceWorld(matrix=[[0.5, 1.0], [0.0, 0.5]])
    assert sure.norm_bound == pytest.approx(math.sqrt(2) * math.log(3))


def test_duels_are_drawn_from_the_matrix():
    world = PreferenceWorld(matrix=[[0.5, 0.9], [0.1, 0.5]])

    class Fixed:
        def ask(self, actions):  # noqa: ARG002
            return 1, 0

        def tell(self, pair, outcome):  # noqa: ARG002
            won.append(outcome.value == "second")

    won = []
    trace = play(Fixed(), world, NoAttack(), horizon=4000, labels=rng())
    assert np.mean(won) == pytest.approx(0.9, abs=0.02)
    np.testing.assert_allclose(trace.regret, 0.4)
    np.testing.assert_allclose(trace.weak_regret, 0.0)


def test_contextual_agents_run_whole_in_these_worlds():
    world = drawn("condorcet")
    assert can_compile(MaxPairUCB(dimension=10, norm_bound=1.0), world, NoAttack())
    assert WORLDS["preferences"] == PreferenceWorld.draw


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_an_agent_with_features_learns_here_too():
    cell = Cell(
        agent="maxpairucb", attack="none", budget=0, horizon=300, world="preferences", world_settings={"arms": 4}
    )
    run = cell.run(1)
    assert run.trace.regret[-50:].mean() < 0.5 * run.trace.regret[:50].mean()


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[0.5, 0.6], [0.6, 0.5]], "P.i beats j. . P.j beats i. = 1"),
        ([[0.4, 0.6], [0.4, 0.5]], "P.i beats j. . P.j beats i. = 1"),
        ([[0.5, 1.2], [-0.2, 0.5]], "between 0 and 1"),
        ([[0.5, math.nan], [0.5, 0.5]], "between 0 and 1"),
        ([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]], "shape"),
        ([[0.5]], "shape"),
        ([], "shape"),
        ([[0.5, 0.6], [0.4]], "same length"),
        ([["a", "b"], ["c", "d"]], "numbers"),
    ],
)
def test_what_is_no_preference_matrix_is_refused(matrix, reason):
    with pytest.raises(BadInputError, match=reason):
        PreferenceWorld(matrix=matrix)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"family": "utility"}, "did you mean 'utilities'"),
        ({"regret": "nobody"}, "unknown regret"),
        ({"gap": 0.0}, "gap"),
        ({"gap": 0.5}, "gap"),
        ({"gap": "0.2"}, "gap"),
        ({"gap": math.nan}, "gap"),
        ({"arms": 1}, "arms"),
        ({"arms": 3, "family": "cyclic", "regret": "borda"}, "arms must be a whole number ≥ 4"),
    ],
)
def test_bad_settings_are_refused(settings, reason):
    with pytest.raises(BadInputError, match=reason):
        PreferenceWorld.draw(rng=rng(), **settings)


def test_a_hair_on_the_diagonal_makes_no_winner():
    matrix = np.array([[0.5 + 4e-10, 0.6, 0.6], [0.4, 0.5, 0.9], [0.4, 0.1, 0.5]])
    world = PreferenceWorld(matrix=matrix)
    assert np.diag(world.matrix).tolist() == [0.5] * 3
    assert int(np.argmax(world.offer(1).rewards)) == 0
