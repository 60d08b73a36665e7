import importlib
import json
import math
import sys

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.files import versions
from fairduel.simulation import Cell, play, run_cells
from fairduel.simulation.cell import RECORD_LAYOUT

CELLS = [
    Cell(agent="rcdb", attack="greedy", budget=5, horizon=30),
    Cell(agent="colstim", attack="misleading", budget=5, horizon=30, world="fresh"),
    Cell(agent="rcdb", attack="random", budget=3, horizon=20, agent_settings={"constrained": True}),
]


def test_a_run_is_repeatable_and_seeds_differ():
    for cell in CELLS:
        one, again, other = cell.run(1), cell.run(1), cell.run(2)
        assert {k: v for k, v in one.record().items() if k != "seconds"} == {
            k: v for k, v in again.record().items() if k != "seconds"
        }
        assert one.trace.first.tolist() == again.trace.first.tolist() != other.trace.first.tolist()


def test_agents_of_a_seed_meet_the_same_world_labels_and_attack():
    worlds, labels, attackers = [], [], []
    for agent in ("rcdb", "maxinp"):
        _, world, adversary, streams = Cell(agent=agent, attack="random", budget=5, horizon=30).start(3)
        worlds.append(world.parameter.tolist())
        labels.append(streams.labels.random())
        attackers.append(adversary.rng.random())
    for both in (worlds, labels, attackers):
        assert both[0] == both[1]


def test_an_agent_gets_what_the_world_and_the_cell_know():
    cell = Cell(
        agent="rcdb", attack="none", budget=7, horizon=123, world="hard-corrupted", world_settings={"kappa": 0.5}
    )
    agent, world, adversary, streams = cell.start(0)
    assert (agent.dimension, agent.horizon, agent.flip_budget) == (5, 123, 7)
    assert (agent.norm_bound, agent.link) == (world.norm_bound, world.link) == (0.5, world.link)
    assert agent.seed == streams.agent_seed
    assert adversary.budget == 7


def test_without_c_an_agent_assumes_its_default_and_says_so():
    base = {"attack": "greedy", "budget": 7, "horizon": 100}
    without_c = {"agent_settings": {"known_budget": False}}
    for name in ("rcdb", "rcdb-s"):
        cell = Cell(name, **base, **without_c)
        agent, _, adversary, _ = cell.start(0)
        assert (agent.flip_budget, agent.settings["flip_budget"], adversary.budget) == (None, 10, 7)
        assert cell.is_compiled
        assert cell.run(1).trace.flipped.sum() == 7
        [sentence] = cell.assumptions
        assert sentence.startswith("Without knowing C, ")
        assert sentence.endswith(" assumes C = ⌈√T⌉.")
        assert Cell(name, **base).assumptions == []
        assert Cell(name, **base, agent_settings={"known_budget": True}).start(0)[0].flip_budget == 7
    guessed = Cell("rcdb", **base, agent_settings={"known_budget": False, "flip_budget": 20})
    assert (guessed.start(0)[0].flip_budget, guessed.assumptions) == (20, [])
    rewards = base | {"attack": "bury", "world": "linear"}
    for name, assumed in (
        ("cw-oful", "C = √T"),
        ("weighted-oful", "C = √T"),
        ("phased-elimination", "its authors' guess of C"),
    ):
        cell = Cell(name, **rewards, **without_c)
        assert cell.start(0)[0].corruption_budget is None
        assert cell.assumptions[0].endswith(f" assumes {assumed}.")
    assert Cell("cobe", **rewards).assumptions[0].startswith("COBE assumes a weak adversary")
    for name, setting in (("maxinp", False), ("maxinp", True), ("vacdb", False)):
        with pytest.raises(BadInputError, match=f"{name} has no setting for C; omit known_budget"):
            Cell(name, **base, agent_settings={"known_budget": setting}).start(0)


def test_settings_of_the_cell_go_before_what_is_offered():
    cell = Cell(
        agent="rcdb",
        attack="random",
        budget=5,
        horizon=30,
        agent_settings={"flip_budget": 9, "norm_bound": 3.0},
        attack_settings={"probability": 0.25},
        world_settings={"dimension": 2, "norm": 1.5},
    )
    agent, world, adversary, _ = cell.start(0)
    assert (agent.flip_budget, agent.norm_bound, agent.dimension) == (9, 3.0, 2)
    assert adversary.probability == 0.25
    assert np.linalg.norm(world.parameter) == pytest.approx(1.5)


def test_a_record_is_complete():
    cell = Cell(agent="rcdb", attack="greedy", budget=5, horizon=30, world_settings={"dimension": 3})
    run = cell.run(4)
    record, trace = run.record(), run.trace
    expected = {
        "agent": "rcdb",
        "attack": "greedy",
        "budget": 5,
        "world": "hypercube",
        "horizon": 30,
        "dimension": 3,
        "seed": 4,
        "regret": trace.regret.sum(),
        "weak_regret": trace.weak_regret.sum(),
        "late_regret": trace.regret[22:].mean(),
        "flips": 5,
        "self_duel_share": (trace.first == trace.second).mean(),
        "locked_in": trace.locked_in,
        "recommended_best": float(run.advice.regret <= 1e-12),
        "recommendation_regret": run.advice.regret,
        "norm_exceeded_share": (trace.estimate_norm > 2.0).mean(),
        "mean_slope": 1.0,
        "epoch": 0,
        "seconds": trace.seconds,
    }
    assert {name: record[name] for name in expected} == expected
    assert json.loads(record["agent_settings"])["trust"] == pytest.approx(math.sqrt(3) / 5)
    assert json.loads(record["world_settings"]) == {"dimension": 3}
    assert json.loads(record["attack_settings"]) == {}
    assert json.loads(record["versions"]) == versions()
    assert set(versions()) == {"fairduel", "numpy", "numba", "python"}


def test_a_recommendation_is_compared_with_the_best_action():
    """The true reward of what the agent recommends; over 20 further rounds where actions change."""
    shares = {}
    for world in ("hypercube", "fresh"):
        cell = Cell("rcdb", "none", 5, 400, world=world, agent_settings={"self_duels": False})
        run = cell.run(3)
        agent, place, adversary, streams = cell.start(3)
        play(agent, place, adversary, horizon=400, labels=streams.labels)
        offers = [place.offer(401 + later) for later in range(1 if world == "hypercube" else 20)]
        losses = [o.rewards.max() - o.rewards[agent.recommend(o.actions)] for o in offers]
        assert run.advice.regret == pytest.approx(np.mean(losses), abs=1e-12)
        assert run.advice.is_best == np.mean(np.array(losses) <= 1e-12)
        shares[world] = run.advice.is_best
    assert shares["hypercube"] == 1.0
    assert 0.0 < shares["fresh"] < 1.0


def test_the_key_names_every_setting():
    base = {"agent": "rcdb", "attack": "greedy", "budget": 5, "horizon": 30}
    variants = [
        base,
        base | {"agent": "rcdb-s"},
        base | {"attack": "random"},
        base | {"budget": 6},
        base | {"horizon": 31},
        base | {"world": "fresh"},
        base | {"agent_settings": {"radius": 1.0}},
        base | {"agent_settings": {"radius": 2.0}},
        base | {"agent_settings": {"known_budget": False}},
        base | {"attack_settings": {"rng": None}},
        base | {"world_settings": {"dimension": 3}},
    ]
    assert len({Cell(**variant).key for variant in variants}) == len(variants)
    one, other = {"radius": 1.0, "trust": 0.2}, {"trust": 0.2, "radius": 1.0}
    assert Cell(**base, agent_settings=one).key == Cell(**base, agent_settings=other).key


def test_the_key_changes_with_the_layout_of_records(monkeypatch):
    before = Cell("rcdb", "greedy", 5, 30).key
    monkeypatch.setattr("fairduel.simulation.cell.RECORD_LAYOUT", RECORD_LAYOUT + 1)
    assert Cell("rcdb", "greedy", 5, 30).key != before


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ({"agent": "rcbd"}, "rcdb"),
        ({"attack": "greeedy"}, "greedy"),
        ({"world": "hypercub"}, "hypercube"),
        ({"agent_settings": {"raduis": 1.0}}, "radius"),
        ({"attack_settings": {"buget": 1}}, "budget"),
        ({"world_settings": {"dimensions": 3}}, "dimension"),
    ],
)
def test_a_wrong_name_in_a_cell_is_answered_with_the_nearest(wrong, meant):
    cell = Cell(**{"agent": "rcdb", "attack": "greedy", "budget": 5, "horizon": 30} | wrong)
    with pytest.raises(BadInputError, match=f"did you mean '{meant}'"):
        cell.run(0)
    if wrong.keys() <= {"agent", "attack", "world"}:
        with pytest.raises(BadInputError, match=f"did you mean '{meant}'"):
            _ = cell.key


def test_a_wrong_setting_is_named_before_whose_it_is():
    cell = Cell("rcdb", "greedy", budget=5, horizon=30, agent_settings={"raduis": 1.0})
    with pytest.raises(BadInputError, match="unknown setting 'raduis' of agent RCDB: did you mean 'radius'"):
        cell.check()


def test_a_setting_that_is_needed_is_asked_for():
    with pytest.raises(BadInputError, match="norm_bound"):
        Cell(agent="rcdb", attack="none", budget=0, horizon=9, world="table", world_settings={"path": "x"}).run(0)


USER_AGENT = """
class Pairs:
    def __init__(self, dimension, favourite=0):
        self.favourite = favourite

    def ask(self, actions):
        return self.favourite, len(actions) - 1

    def tell(self, duel, outcome):
        pass


class Mute:
    pass


NUMBER = 3
"""


@pytest.fixture
def users_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"module_of_{tmp_path.name}"
    path = tmp_path / f"{name}.py"
    path.write_text(USER_AGENT)
    return path


def test_a_users_agent_runs_and_is_stored(users_module, store):
    name = f"{users_module.stem}:Pairs"
    cell = Cell(agent=name, attack="greedy", budget=2, horizon=25, agent_settings={"favourite": 4})
    assert run_cells([cell], range(3), store) == 3
    records, traces = store.records(cell, range(3)), store.traces(cell, range(3))
    assert records["agent"].to_list() == [name] * 3
    assert records["recommended_best"].is_nan().all()  # it cannot recommend
    assert json.loads(records["agent_settings"][0]) == {"dimension": 5, "favourite": 4}
    assert traces["first"].to_list() == [4] * 75
    assert traces["second"].to_list() == [31] * 75


def test_the_key_changes_with_the_code_of_a_users_agent(users_module):
    settings = {"agent": f"{users_module.stem}:Pairs", "attack": "greedy", "budget": 2, "horizon": 25}
    before = Cell(**settings).key
    assert Cell(**settings).key == before
    users_module.write_text(USER_AGENT.replace("return self.favourite", "return 1 + self.favourite"))
    assert Cell(**settings).key != before


def test_code_that_was_edited_after_it_was_loaded_is_not_run(users_module, store):
    settings = {"agent": f"{users_module.stem}:Pairs", "attack": "greedy", "budget": 2, "horizon": 25}
    assert run_cells([Cell(**settings)], range(2), store) == 2
    users_module.write_text(USER_AGENT.replace("return self.favourite", "return 1 + self.favourite"))
    edited = Cell(**settings)
    with pytest.raises(BadInputError, match=r"differs from the local code; .* restart"):
        run_cells([edited], range(2), store)
    assert store.seeds(edited) == set()
    importlib.reload(sys.modules[users_module.stem])
    assert run_cells([edited], range(2), store) == 2
    assert store.traces(edited, range(2))["first"].unique().to_list() == [1]


def test_a_users_class_that_cannot_be_used_is_refused(users_module):
    common = {"attack": "greedy", "budget": 2, "horizon": 25}
    for name, reason in [
        (f"{users_module.stem}:Mute", "no ask and tell"),
        (f"{users_module.stem}:Nobody", "no class 'Nobody'"),
        (f"{users_module.stem}:NUMBER", "no class 'NUMBER'"),
        ("no_such_module:Agent", "cannot import"),
    ]:
        with pytest.raises(BadInputError, match=reason):
            Cell(agent=name, **common).run(0)
