import numpy as np
import pytest

from fairduel import BadInputError, MaxPairUCB
from fairduel.adversaries import Greedy, Hiding, WeakAdversary
from fairduel.simulation import Cell, Streams, play
from fairduel.simulation.compiled_run import can_compile, play_compiled
from fairduel.worlds import FixedWorld, Hypercube

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")

ATTACKS = ["none", "greedy", "random", "adversarial", "misleading", "hiding", "watching"]
AGENTS = ["sceptic", "rcdb", "rcdb-s", "maxpairucb", "maxinp", "colstim", "ginop", "hcw", "random-pairs", "rcdp"]
SETTINGS = [
    ("rcdb", {"radius": "theory"}),
    ("rcdb", {"design": "kappa", "radius": 0.5}),
    ("rcdb", {"trust": 0.05, "ridge": 2.0}),
    ("rcdb", {"flip_budget": 0}),
    ("rcdb", {"horizon": None}),
    ("rcdb", {"warmup": 30, "self_duels": False, "radius": 0.0}),
    ("rcdb-s", {"radius": "theory", "slope_radius": "theory"}),
    ("rcdb-s", {"radius": 0.4, "slope_radius": 0.1, "design": "kappa", "radius_scale": 0.5}),
    ("rcdb-s", {"flip_budget": 0, "horizon": None}),
    ("maxpairucb", {"horizon": None, "radius": "theory"}),
    ("maxpairucb", {"radius": 0.3, "kappa": 0.1}),
    ("maxinp", {"horizon": None}),
    ("maxinp", {"radius": 0.05, "warmup": 10}),
    ("maxinp", {"radius": 0.05, "warmup": 10, "self_duels": False}),
    ("colstim", {"coupling": "vacdb", "horizon": None}),
    ("colstim", {"threshold": 0.5, "warmup": 20, "radius_scale": 0.2}),
    ("colstim", {"radius": "theory", "self_duels": False}),
    ("ginop", {"radius": "theory", "warmup": 20, "horizon": None}),
    ("ginop", {"radius": 0.3, "constrained": True, "norm_bound": 0.5}),
    ("ginop", {"radius": 0.3, "self_duels": False, "link": "probit"}),
    ("hcw", {"estimator": "exact", "trust": 0.05, "ridge": 2.0}),
    ("hcw", {"flip_budget": 0, "horizon": None, "self_duels": False}),
    ("hcw", {"radius": 0.1, "warmup": 10}),
    ("sceptic", {"robust": True, "patience": 3}),
    ("sceptic", {"robust": True, "growth": 0.0, "self_duels": False}),
    ("rcdb", {"constrained": True}),
    ("maxpairucb", {"constrained": True, "norm_bound": 0.5}),
    *((agent, {"estimator": estimator}) for agent in AGENTS for estimator in ("lazy", "one-pass")),
]


def assert_both_drivers_agree(cell, seed=1):
    agent, world, adversary, streams = cell.start(seed)
    compiled = play_compiled(agent, world, adversary, horizon=cell.horizon, labels=streams.labels)
    agent, world, adversary, streams = cell.start(seed)
    plain = play(agent, world, adversary, horizon=cell.horizon, labels=streams.labels)
    for column in ("first", "second", "flipped", "regret", "weak_regret", "weight", "width", "slope"):
        np.testing.assert_array_equal(getattr(compiled, column), getattr(plain, column), err_msg=column)
        assert getattr(compiled, column).dtype == getattr(plain, column).dtype
    np.testing.assert_allclose(compiled.estimates, plain.estimates, rtol=1e-12, atol=1e-12)
    return plain


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("agent", AGENTS)
def test_both_drivers_agree_on_every_agent_and_attack(agent, attack):
    trace = assert_both_drivers_agree(Cell(agent=agent, attack=attack, budget=15, horizon=150))
    if attack in ("greedy", "random", "adversarial"):
        assert trace.flipped.sum() > (5 if agent == "rcdp" else 10)  # RCDP-UCB soon duels one action against itself


@pytest.mark.parametrize("times", [{"start": 40}, {"every": 7}, {"start": 30, "every": 4}])
def test_both_drivers_agree_on_late_and_periodic_attacks(times):
    trace = assert_both_drivers_agree(Cell("rcdb", "adversarial", budget=15, horizon=150, attack_settings=times))
    rounds = 1 + np.flatnonzero(trace.flipped)
    assert len(rounds) > 5
    assert set(rounds) <= set(range(times.get("start", 1), 151, times.get("every", 1)))


WATCHING = [
    {"settling": 0.02, "chance": 0.5},
    {"settling": 0.01, "again": True, "pace": 0.5},
    {"upsets": 1, "spare": 2},
    {"weight": 0.6, "width": 0.9, "misled": "protect", "harm": 0.1},
]


@pytest.mark.parametrize("world", ["hypercube", "fresh"])
@pytest.mark.parametrize("settings", WATCHING, ids=str)
@pytest.mark.parametrize("agent", ["sceptic", "rcdb-s", "hcw"])
def test_both_drivers_agree_on_attacks_that_watch_the_agent(agent, settings, world):
    trace = assert_both_drivers_agree(Cell(agent, "watching", 20, 150, attack_settings=settings, world=world))
    assert trace.flipped.any()


WORLDS = {
    "fresh": {"count": 9, "dimension": 3},
    "hypercube": {"dimension": 2, "norm": 1.0},
    "hard-stochastic": {"dimension": 3, "kappa": 0.5},
    "hard-corrupted": {"dimension": 4},
    "preferences": {"family": "condorcet-cycle", "arms": 6},
    "post-serving": {"dimension": 4, "count": 7},
    "mesh": {"function": "branin", "side": 4, "regret": "preference"},
    "curved": {"shape": "matern52", "dimension": 3, "count": 6},
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("agent", AGENTS)
def test_both_drivers_agree_on_every_agent_and_world(agent, world):
    """The attack takes turns, so that each world also meets each attack."""
    attack = ATTACKS[(AGENTS.index(agent) + list(WORLDS).index(world)) % len(ATTACKS)]
    cell = Cell(agent=agent, attack=attack, budget=10, horizon=150, world=world, world_settings=WORLDS[world])
    if agent == "rcdb-s" and world.startswith("hard"):
        with pytest.raises(BadInputError, match="only the logistic link"):
            cell.start(seed=1)
    else:
        assert_both_drivers_agree(cell)


@pytest.mark.parametrize(("agent", "settings"), SETTINGS, ids=lambda value: str(value).replace("'", ""))
def test_every_setting_means_the_same(agent, settings):
    cell = Cell(agent=agent, attack="adversarial", budget=15, horizon=150, agent_settings=settings)
    assert_both_drivers_agree(cell)


@pytest.mark.parametrize("target", ["second", "median", "worst", 3])
def test_every_misleading_target_is_the_same(target):
    cell = Cell(agent="rcdb", attack="misleading", budget=15, horizon=150, attack_settings={"target": target})
    assert_both_drivers_agree(cell)


def test_both_drivers_agree_on_a_table(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "table.npz", features=rng.uniform(-0.5, 0.5, (6, 3)), rewards=rng.standard_normal(6))
    settings = {"path": str(tmp_path / "table.npz"), "norm_bound": 2.0}
    assert_both_drivers_agree(
        Cell(agent="rcdb", attack="greedy", budget=5, horizon=150, world="table", world_settings=settings)
    )


REPLAYED = """a,b,winner,context
tea,milk,a,noon
tea,milk,tie,noon
milk,rum,a,noon
rum,tea,b,noon
tea,rum,b,night
milk,tea,b,night
milk,rum,b,night
rum,gin,a,night
gin,tea,b,night
gin,milk,b,night
"""


@pytest.fixture
def recording(tmp_path):
    """Recorded votes in two contexts, of three and of four items."""
    (tmp_path / "votes.csv").write_text(REPLAYED)
    features = np.random.default_rng(3).uniform(-0.5, 0.5, (4, 2))
    np.savez(tmp_path / "features.npz", features=features, items=["gin", "milk", "rum", "tea"])
    return {"path": str(tmp_path)}


@pytest.mark.parametrize("agent", AGENTS)
def test_both_drivers_agree_on_recorded_votes(agent, recording):
    attack = ATTACKS[AGENTS.index(agent) % len(ATTACKS)]
    cell = Cell(agent=agent, attack=attack, budget=10, horizon=150, world="replay", world_settings=recording)
    assert cell.is_compiled
    assert_both_drivers_agree(cell)


@pytest.mark.parametrize("target", ["second", "median", "worst", 1])
def test_every_misleading_target_is_the_same_in_sets_of_any_size(target, recording):
    cell = Cell("rcdb", "misleading", 15, 150, "replay", attack_settings={"target": target}, world_settings=recording)
    assert_both_drivers_agree(cell)


@pytest.mark.parametrize("agent", ["rcdb", "sceptic", "maxinp"])
def test_both_drivers_agree_on_new_actions_in_high_dimension(agent):
    """Where actions change, no update of Σ is deferred."""
    cell = Cell(agent, "adversarial", 10, 90, "curved", {"map": "rbf(0, 80)"}, world_settings={"dimension": 3})
    assert cell.is_compiled
    assert assert_both_drivers_agree(cell).estimates.shape == (90, 0)


def test_high_dimension_is_left_to_the_plain_driver_where_actions_come_again(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((6, 70))
    features /= 1.01 * np.linalg.norm(features, axis=1, keepdims=True)
    np.savez(tmp_path / "table.npz", features=features, rewards=rng.standard_normal(6))
    settings = {"path": str(tmp_path / "table.npz"), "norm_bound": 2.0}
    cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=80, world="table", world_settings=settings)
    assert not cell.is_compiled
    assert len(cell.run(0).trace.regret) == 80


def test_both_drivers_agree_on_many_actions():
    cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=80, world="fresh", world_settings={"count": 200})
    assert_both_drivers_agree(cell)


@pytest.mark.parametrize("agent", AGENTS)
def test_both_drivers_agree_on_actions_that_nearly_coincide(agent, tmp_path):
    """Rounding in a Gram matrix must not be taken for a width, nor be another in each driver."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-0.5, 0.5, (8, 3))
    rewards = features @ [1.0, -1.0, 0.5]
    features[(int(np.argmax(rewards)) + 1) % 8] = features[np.argmax(rewards)] + 1e-8
    np.savez(tmp_path / "table.npz", features=features, rewards=features @ [1.0, -1.0, 0.5])
    settings = {"path": str(tmp_path / "table.npz"), "norm_bound": 2.0}
    assert_both_drivers_agree(Cell(agent, "greedy", 5, 500, "table", world_settings=settings))


@pytest.mark.parametrize(("world", "settings"), [("hypercube", {}), ("fresh", {"count": 200})])
def test_both_drivers_agree_on_a_huge_radius(world, settings):
    """With B = 10 the theorem's β is 4e9, so that scores differ by rounding more than ties may."""
    world_settings = {"norm": 10.0, "dimension": 3, **settings}
    cell = Cell("maxpairucb", "greedy", 5, 200, world, {"radius": "theory", "self_duels": False}, {}, world_settings)
    trace = assert_both_drivers_agree(cell)
    assert (trace.first != trace.second).all()


@pytest.mark.parametrize("world", ["fresh", "hypercube"])
def test_both_drivers_agree_after_the_inverse_is_computed_afresh(world):
    cell = Cell("maxpairucb", "greedy", 5, 2500, world, {"self_duels": False})
    assert_both_drivers_agree(cell)


def parts():
    streams = Streams.of(0)
    agent = MaxPairUCB(dimension=5, norm_bound=2.0, horizon=20, seed=streams.agent_seed)
    return {"agent": agent, "world": Hypercube(rng=streams.world), "adversary": Greedy(budget=3)}


def user_agent():
    class Mine(MaxPairUCB):
        pass

    return {"agent": Mine(dimension=5, norm_bound=2.0)}


def asked_agent():
    agent = MaxPairUCB(dimension=5, norm_bound=2.0)
    agent.ask(np.eye(5))
    return {"agent": agent}


def user_attack():
    class Mine(WeakAdversary):
        def wants_flip(self, round_number):
            return round_number == 2

    return {"adversary": Mine(budget=3)}


def spent_attack():
    adversary = Greedy(budget=3)
    adversary._spent = 1
    return {"adversary": adversary}


def user_world():
    class Mine(FixedWorld):
        def offer(self, round_number):
            actions, rewards = super().offer(round_number)
            return actions, rewards * (-1) ** round_number

    world = Hypercube(rng=np.random.default_rng(0))
    return {"world": Mine(*world.offer(1), link=world.link, norm_bound=2.0, parameter=None)}


def test_built_in_parts_run_compiled():
    assert can_compile(**parts())


@pytest.mark.parametrize("other", [user_agent, asked_agent, user_attack, spent_attack, user_world])
def test_the_plain_driver_plays_custom_classes_and_used_agents(other):
    changed = parts() | other()
    assert not can_compile(**changed)
    assert play_compiled(**changed, horizon=20, labels=np.random.default_rng(0)) is None


def test_a_radius_that_cannot_be_planned_is_left_to_the_plain_driver():
    cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=40, agent_settings={"radius": "determinant"})
    assert not cell.is_compiled
    assert len(cell.run(0).trace.regret) == 40


def test_a_compiled_run_leaves_the_adversary_as_it_was():
    world, adversary = Hypercube(rng=np.random.default_rng(0)), Hiding(budget=30)
    traces = []
    for _ in range(2):
        adversary.rng = np.random.default_rng(1)
        agent = MaxPairUCB(dimension=5, norm_bound=2.0, horizon=200)
        traces.append(play_compiled(agent, world, adversary, horizon=200, labels=np.random.default_rng(2)))
    assert traces[0].flipped.any()
    np.testing.assert_array_equal(traces[0].flipped, traces[1].flipped)
