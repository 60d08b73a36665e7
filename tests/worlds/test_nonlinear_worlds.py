"""Worlds whose rewards are not linear, against formulas written out anew."""

import math

import numpy as np
import pytest

from fairduel import BadInputError, Outcome
from fairduel.action_sets import checked_actions
from fairduel.features import random_frequencies
from fairduel.simulation import Cell
from fairduel.worlds import Curved, Mesh, Replay
from fairduel.worlds.mesh import FOR_TUNING, REPORTED, SURFACES


def rng(seed=0):
    return np.random.default_rng(seed)


SLOW = {  # f at one point, in plain Python
    "ackley": lambda x, y: (
        20 * math.exp(-0.2 * math.sqrt((x * x + y * y) / 2))
        + math.exp((math.cos(2 * math.pi * x) + math.cos(2 * math.pi * y)) / 2)
    ),
    "branin": lambda x, y: (
        -((y - 5.1 * x * x / (4 * math.pi**2) + 5 * x / math.pi - 6) ** 2)
        - 10 * (1 - 1 / (8 * math.pi)) * math.cos(x)
        - 10
    ),
    "matyas": lambda x, y: -0.26 * (x * x + y * y) + 0.48 * x * y,
    "rosenbrock": lambda x, y: -(100 * (y - x * x) ** 2 + (1 - x) ** 2),
    "hoelder": lambda x, y: abs(math.sin(x) * math.cos(y) * math.exp(abs(1 - math.sqrt(x * x + y * y) / math.pi))),
    "michalewicz": lambda x, y: sum(math.sin(z) * math.sin(i * z * z / math.pi) ** 10 for i, z in ((1, x), (2, y))),
    "eggholder": lambda x, y: (
        (y + 47) * math.sin(math.sqrt(abs(y + x / 2 + 47))) + x * math.sin(math.sqrt(abs(x - y - 47)))
    ),
}
OPTIMA = {  # where f is largest, and its value, from the literature
    "ackley": (0.0, 0.0, 20 + math.e),
    "branin": (math.pi, 2.275, 10 - 0.397887),
    "hoelder": (8.05502, 9.66459, 19.2085),
    "matyas": (0.0, 0.0, 0.0),
    "rosenbrock": (1.0, 1.0, 0.0),
    "himmelblau": (3.0, 2.0, 0.0),
    "camel": (0.0898, -0.7126, 1.0316),
    "levy": (1.0, 1.0, 0.0),
    "rastrigin": (0.0, 0.0, 20.0),
    "styblinski": (-2.903534, -2.903534, 78.33233),
}


@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_is_the_published_function(name):
    surface = SURFACES[name]
    if name in SLOW:
        points = rng(1).uniform(*zip(surface.across, surface.along, strict=True), (50, 2))
        slow = np.array([SLOW[name](x, y) for x, y in points])
        fast = surface.value(points[:, 0], points[:, 1])
        np.testing.assert_allclose(fast - fast[0], slow - slow[0], rtol=1e-9, atol=1e-9)
    if name in OPTIMA:
        x, y, height = OPTIMA[name]
        at_best = surface.value(np.array([x]), np.array([y]))[0]
        around = surface.value(x + np.array([0.01, -0.01, 0, 0]), y + np.array([0, 0, 0.01, -0.01]))
        assert (around < at_best).all()
        assert at_best == pytest.approx(height, abs=1e-3)


@pytest.mark.parametrize("name", [*REPORTED, *FOR_TUNING])
def test_a_mesh_has_a_hundred_actions_and_rewards_from_minus_three_to_three(name):
    world = Mesh(function=name)
    actions, rewards = world.offer(1)
    checked_actions(actions, 2)
    assert actions.shape == (100, 2)
    assert len(np.unique(actions, axis=0)) == 100
    assert (rewards.min(), rewards.max()) == pytest.approx((-3.0, 3.0))
    surface, corner = SURFACES[name], 1 / math.sqrt(2)
    points = np.column_stack(
        [np.interp(actions[:, i], (-corner, corner), side) for i, side in enumerate((surface.across, surface.along))]
    )
    values = surface.value(points[:, 0], points[:, 1])
    np.testing.assert_allclose(np.corrcoef(values, rewards)[0, 1], 1.0)
    assert (world.norm_bound, world.parameter) == (3.0, None)


def test_constants_are_tuned_on_other_functions_than_those_reported():
    assert len(REPORTED) == 7
    assert len(FOR_TUNING) >= 4
    assert not set(REPORTED) & set(FOR_TUNING)
    for name in FOR_TUNING:
        tuned = Mesh(function=name).offer(1).rewards
        assert all(abs(np.corrcoef(tuned, Mesh(function=other).offer(1).rewards)[0, 1]) < 0.999 for other in REPORTED)


def test_the_regret_of_a_mesh_in_preferences_is_twice_the_published_one():
    one, other = Mesh(function="branin"), Mesh(function="branin", regret="preference")
    utilities, rewards = one.offer(1).rewards, other.offer(1).rewards
    best = utilities.max()
    for a, b in ((3, 77), (50, 50), (int(np.argmax(utilities)), 4)):
        chances = [1 / (1 + math.exp(-(best - utilities[arm]))) for arm in (a, b)]
        published = 0.5 * (sum(chances) - 1)
        assert 2 * rewards.max() - rewards[a] - rewards[b] == pytest.approx(2 * published)
        assert other.win_probability(rewards, a, b) == pytest.approx(one.win_probability(utilities, a, b))
    runs = [
        Cell("maxinp", "none", 0, 200, "mesh", world_settings={"regret": unit}).run(3).trace
        for unit in ("utility", "preference")
    ]
    np.testing.assert_array_equal(runs[0].first, runs[1].first)
    assert runs[1].regret.max() <= 1.0 < runs[0].regret.max()


CURVES = {
    "quadratic": lambda x, curve: 10 * float(x @ curve.directions[0]) ** 2,
    "cosine": lambda x, curve: 3 * math.cos(float(x @ curve.directions[0])),
}


@pytest.mark.parametrize("shape", ["quadratic", "cosine", "rbf", "matern52"])
def test_curved_rewards_are_the_formula(shape):
    world = Curved(rng=rng(2), shape=shape, dimension=4, count=6)
    for t in range(1, 20):
        actions, rewards = world.offer(t)
        checked_actions(actions, 4)
        np.testing.assert_allclose(np.linalg.norm(actions, axis=1), 1.0, rtol=1e-11)
        if shape in CURVES:
            slow = [CURVES[shape](x, world.curve) for x in actions]
        else:
            _, omega, shifts, heights = world.curve
            slow = [sum(heights * np.cos(omega @ x + shifts)) for x in actions]
        np.testing.assert_allclose(rewards, slow, rtol=1e-9, atol=1e-9)
        assert np.ptp(rewards) <= 2 * world.norm_bound + 4.0 * (shape not in CURVES)
    assert np.linalg.norm(world.curve.directions[0]) == pytest.approx(
        {"quadratic": 1.0, "cosine": 3.0}.get(shape, np.linalg.norm(world.curve.directions[0]))
    )


def matern52(distance, scale):
    root = math.sqrt(5) * distance / scale
    return (1 + root + root**2 / 3) * math.exp(-root)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_random_functions_have_their_kernel(kernel):
    """Over many draws, values at two points at distance δ have covariance size²·k(δ)."""
    points = np.array([[0.6, 0.8], [0.8, 0.6], [-0.6, 0.8]])
    drawn = [Curved(rng=rng(seed), shape=kernel, dimension=2, scale=0.5, size=2.0).curve for seed in range(3000)]
    values = np.array([np.cos(points @ c.directions.T + c.shifts) @ c.heights for c in drawn])
    found = values.T @ values / len(values)
    for i in range(3):
        for j in range(3):
            distance = float(np.linalg.norm(points[i] - points[j]))
            kernel_value = math.exp(-2 * distance**2) if kernel == "rbf" else matern52(distance, 0.5)
            assert found[i, j] == pytest.approx(4 * kernel_value, abs=0.35)
    omega = random_frequencies(rng(3), kernel, (40_000, 2), 0.5)
    for distance in (0.2, 0.5, 1.0):
        expected = math.exp(-2 * distance**2) if kernel == "rbf" else matern52(distance, 0.5)
        assert np.cos(omega @ [distance, 0.0]).mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("shape", ["quadratic", "rbf"])
def test_the_same_seed_is_the_same_world_and_actions_are_new_each_round(shape):
    one, same, other = (Curved(rng=rng(seed), shape=shape) for seed in (1, 1, 2))
    offers = one.offer(1), same.offer(1), other.offer(1), one.offer(2)
    np.testing.assert_array_equal(offers[0].actions, offers[1].actions)
    np.testing.assert_array_equal(offers[0].rewards, offers[1].rewards)
    assert not (offers[0].actions == offers[2].actions).any()
    assert not (offers[0].actions == offers[3].actions).any()


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Mesh, {"function": "akley"}, "did you mean 'ackley'"),
        (Mesh, {"regret": "borda"}, "regret"),
        (Mesh, {"side": 1}, "side must be a whole number ≥ 2"),
        (Curved, {"shape": "cos", "rng": rng()}, "did you mean 'cosine'"),
        (Curved, {"scale": 0.0, "rng": rng()}, "scale"),
        (Curved, {"count": 1, "rng": rng()}, "count must be a whole number ≥ 2"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises(BadInputError, match=message):
        kind(**settings)


def test_contexts_in_turn_come_once_each_for_as_many_rounds(tmp_path):
    pairs = [(f"i{c}{a}", f"i{c}{b}", f"c{c}") for c in range(3) for a, b in ((0, 1), (0, 2), (1, 2))]
    (tmp_path / "votes.csv").write_text("a,b,winner,context\n" + "".join(f"{a},{b},a,{c}\n" for a, b, c in pairs))
    items = sorted({name for a, b, _ in pairs for name in (a, b)})
    np.savez(
        tmp_path / "features.npz", raw=rng(0).uniform(-0.5, 0.5, (9, 4)), phi=np.eye(9)[:, :2], items=np.array(items)
    )
    settings = {"path": str(tmp_path), "order": "in-turn", "array": "raw"}
    world = Replay(rng=rng(4), horizon=30, **settings)
    assert world.dimension == 4
    shown = world.places(30)
    assert sorted(set(shown)) == [0, 1, 2]
    assert (np.diff(shown) != 0).sum() == 2
    assert np.bincount(shown).tolist() == [10, 10, 10]
    again = Replay(rng=rng(4), horizon=30, **settings)
    for t in range(1, 31):
        again.offer(t)
        assert again._current is again.contexts[shown[t - 1]]
    with pytest.raises(BadInputError, match="needs the horizon"):
        Replay(rng=rng(), **settings)
    with pytest.raises(BadInputError, match="did you mean 'mixed'"):
        Replay(rng=rng(), path=str(tmp_path), order="mixd")
    trace = Cell("maxinp", "none", 0, 30, "replay", world_settings=settings).run(0).trace
    assert len(trace.regret) == 30


def test_an_agent_with_the_right_features_finds_the_top_of_a_curve():
    """The quadratic world is linear in the products of features."""
    from fairduel import MaxPairUCB  # noqa: PLC0415

    world, draws = Curved(rng=rng(0), shape="quadratic", dimension=3, count=5), rng(1)
    agent = MaxPairUCB(dimension=9, norm_bound=10.0, horizon=400, self_duels=False, radius=1.0)
    late = []
    for t in range(1, 401):
        actions, rewards = world.offer(t)
        duel = agent.ask(np.einsum("ki,kj->kij", actions, actions).reshape(5, 9))
        won = draws.random() < world.win_probability(rewards, duel.first, duel.second)
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        late.append(rewards.max() - max(rewards[duel.first], rewards[duel.second]))
    assert np.mean(late[300:]) < 0.2 * np.mean(late[:20])
