import dataclasses
import math

import numpy as np
import pytest

from fairduel.agents import AGENTS, DuelingAgent, KArmed
from fairduel.errors import BadInputError
from fairduel.experiments import leaderboard as board
from fairduel.experiments.leaderboard import Contender, Scenario
from fairduel.experiments.tuning import FIRST_TUNING_SEED
from fairduel.simulation import Store

SEEDS = range(4)
FRESH = next(scenario for scenario in board.SCENARIOS if scenario.world == "fresh")


@pytest.fixture
def tiny(monkeypatch):
    """Two scenarios, three contenders, four trials each."""
    monkeypatch.setattr(board, "HORIZON", 60)
    monkeypatch.setattr(board, "TUNING_SEEDS", range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 3))
    cube = Scenario("cube", "greedy", budget=6, dimension=3)
    monkeypatch.setattr(board, "SCENARIOS", (cube, Scenario("new", "none", budget=0, dimension=3, world="fresh")))
    monkeypatch.setattr(board, "CONTENDERS", tuple(map(Contender, ("rcdb", "maxpairucb", "versatile-db"))))
    monkeypatch.setattr(board, "TUNED", (Contender("rcdb"), Contender("maxpairucb")))
    monkeypatch.setattr(board, "_GRID", [{"radius": 0.5}, {"radius": 4.0}])


# ---------------------------------------------------------------------- what is declared


def test_every_dueling_agent_stands_on_the_board_as_a_user_gets_it():
    dueling = {name for name, kind in AGENTS.items() if issubclass(kind, DuelingAgent)}
    assert {contender.agent for contender in board.CONTENDERS} == dueling
    assert dueling <= {contender.agent for contender in board.CONTENDERS if not contender.settings}
    assert {name for contender in board.CONTENDERS for name in contender.settings} <= {"estimator", "form"}
    titles = [contender.title for contender in board.CONTENDERS]
    assert len(set(titles)) == len(titles)


def test_scenarios_vary_all_that_was_promised():
    scenarios = board.SCENARIOS
    assert len({scenario.title for scenario in scenarios}) == len(scenarios)
    assert {s.attack for s in scenarios} == {"none", "greedy", "random", "adversarial", "misleading"}
    targets = {s.attack_settings["target"] for s in scenarios if s.attack == "misleading"}
    assert targets == {"random", "median", "second", "worst"}
    for name in ("budget", "warmup", "dimension", "norm", "world"):
        assert len({getattr(scenario, name) for scenario in scenarios if scenario.attack == "greedy"}) > 1, name


def test_agents_without_features_sit_out_fresh_actions():
    for contender in board.CONTENDERS:
        assert contender.plays(board.SCENARIOS[0])
        assert contender.plays(FRESH) is not issubclass(AGENTS[contender.agent], KArmed)
    assert not any(cell.world == "fresh" and issubclass(AGENTS[cell.agent], KArmed) for cell in board.report_cells())


def test_a_warm_up_goes_to_all_who_have_one():
    [scenario] = [scenario for scenario in board.SCENARIOS if scenario.title == "greedy, warm-up"]
    for contender in board.CONTENDERS:
        has_one = "warmup" in {field.name for field in dataclasses.fields(AGENTS[contender.agent])}
        settings = scenario.cell(contender.agent, contender.settings).agent_settings
        assert settings == contender.settings | ({"warmup": 160} if has_one else {})


def test_every_cell_can_start():
    for cell in {cell.key: cell for cell in [*board.report_cells(), *board.tuning_cells()]}.values():
        agent, world, adversary, _ = cell.start(seed=0)
        assert (adversary.budget, world.dimension) == (cell.budget, cell.world_settings["dimension"])
        assert getattr(agent, "flip_budget", cell.budget) == cell.budget


def test_tuning_seeds_are_no_report_seeds():
    assert min(board.TUNING_SEEDS) >= FIRST_TUNING_SEED
    assert len(board.tuning_cells()) == len(board.SCENARIOS) * len(board.TUNED) * len(board.RADII)
    tried = {cell.agent_settings["radius"] for cell in board.tuning_cells()}
    assert tried == set(board.RADII)
    assert all("radius" not in cell.agent_settings for cell in board.report_cells())


# ---------------------------------------------------------------------- what is computed


def test_ratios_and_their_errors_are_those_of_pseudo_values():
    rng = np.random.default_rng(0)
    own, theirs = rng.uniform(50, 90, (7, 3)), rng.uniform(20, 60, (7, 3))
    ratios, centre = board._ratios(own, theirs)

    def all_ratios(seeds):
        return [sum(own[s, j] for s in seeds) / sum(theirs[s, j] for s in seeds) for j in range(3)]

    def error(statistic):
        left_out = [statistic([s for s in range(7) if s != i]) for i in range(7)]
        pseudo = [7 * statistic(range(7)) - 6 * value for value in left_out]
        return np.std(pseudo, ddof=1) / math.sqrt(7)

    for j, ratio in enumerate(ratios):
        assert ratio.value == pytest.approx(all_ratios(range(7))[j])
        assert ratio.error == pytest.approx(error(lambda seeds, j=j: all_ratios(seeds)[j]))
        assert (ratio.high - ratio.value) / ratio.error == pytest.approx(2.4469, abs=1e-4)  # Student's t, 6 degrees
        assert ratio.high - ratio.value == pytest.approx(ratio.value - ratio.low)
    assert centre.value == pytest.approx(math.prod(all_ratios(range(7))) ** (1 / 3))
    assert centre.error == pytest.approx(error(lambda seeds: math.prod(all_ratios(seeds)) ** (1 / 3)))


def test_the_error_of_a_ratio_covers_the_truth():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(400):
        shared = rng.normal(0.0, 5.0, (10, 1))  # the same seeds: good and bad worlds for both
        [ratio], _ = board._ratios(60 + shared + rng.normal(0, 4, (10, 1)), 40 + shared + rng.normal(0, 4, (10, 1)))
        inside += ratio.low < 1.5 < ratio.high
    assert 0.91 < inside / 400 < 0.98


def test_one_run_has_ratios_without_errors():
    ratios, centre = board._ratios(np.array([[8.0, 2.0]]), np.array([[2.0, 2.0]]))
    assert [ratio.value for ratio in ratios] == [4.0, 1.0]
    assert centre.value == pytest.approx(2.0)
    assert math.isnan(centre.error)
    assert all(math.isnan(ratio.error) for ratio in ratios)


@pytest.mark.usefixtures("tiny")
def test_a_board_is_what_runs_by_hand_give(tmp_path):
    result = board.compete(Store(tmp_path), SEEDS)

    def regret(scenario, agent, settings, seeds):
        return np.mean([scenario.cell(agent, settings).run(seed).trace.regret.sum() for seed in seeds])

    best = {}
    for scenario in board.SCENARIOS:
        trials = {
            (agent, radius): regret(scenario, agent, {"radius": radius}, board.TUNING_SEEDS)
            for agent in ("rcdb", "maxpairucb")
            for radius in (0.5, 4.0)
        }
        agent, radius = min(trials, key=trials.get)
        named = result.best[scenario.title]
        assert (named.contender.agent, named.tuning.winner.settings) == (agent, {"radius": radius})
        assert named.tuning.winner.mean == pytest.approx(trials[agent, radius])
        assert named.tuning.seeds == (FIRST_TUNING_SEED, FIRST_TUNING_SEED + 2)
        best[scenario.title] = regret(scenario, agent, {"radius": radius}, SEEDS)
        assert named.regret.mean() == pytest.approx(best[scenario.title])
    worst = []
    for standing in result.standings:
        agent = standing.contender.agent
        played = [s for s in board.SCENARIOS if agent != "versatile-db" or s.title == "cube"]
        expected = {s.title: regret(s, agent, {}, SEEDS) / best[s.title] for s in played}
        assert {title: ratio.value for title, ratio in standing.ratios.items()} == pytest.approx(expected)
        assert standing.geometric_mean.value == pytest.approx(math.prod(expected.values()) ** (1 / len(expected)))
        title, ratio = standing.worst
        assert (title, ratio.value) == pytest.approx((max(expected, key=expected.get), max(expected.values())))
        worst.append(ratio.value)
    assert len(worst) == 3
    assert worst == sorted(worst)


@pytest.mark.usefixtures("tiny")
def test_a_second_call_runs_nothing(tmp_path):
    store, done = Store(tmp_path), []
    announced = board.count_runs(store, SEEDS)
    assert announced == 8 * 3 + 5 * 4 + 2 * 4  # tuning, report, winners
    first = board.compete(store, SEEDS, progress=done.append)
    assert sum(done) == announced
    assert board.count_runs(store, SEEDS) == 0
    again = board.compete(Store(tmp_path), SEEDS, progress=done.append)
    assert sum(done) == announced
    assert again.standings == first.standings
    assert board.count_runs(store, range(5)) == 5 + 2  # tuning is done, so the winners are known
    board.compete(store, range(5), progress=done.append)
    assert sum(done) == announced + 7


COIN = """
class Coin:
    def ask(self, actions):
        return 0, 1

    def tell(self, pair, outcome):
        pass
"""


@pytest.fixture
def coin(tmp_path, monkeypatch):
    """A user's agent in the current folder."""
    (tmp_path / "coin_agent.py").write_text(COIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return Contender("coin_agent:Coin")


@pytest.mark.usefixtures("tiny")
def test_a_users_agent_competes_beside_the_others(tmp_path, coin):
    store = Store(tmp_path / "results")
    without = board.compete(store, SEEDS)
    assert board.count_runs(store, SEEDS, [coin]) == 2 * 4
    result = board.compete(store, SEEDS, [coin, coin, Contender("rcdb")])
    assert [standing for standing in result.standings if standing.contender != coin] == without.standings
    [own] = [standing for standing in result.standings if standing.contender == coin]
    regret = np.mean([board.SCENARIOS[0].cell(coin.agent, {}).run(seed).trace.regret.sum() for seed in SEEDS])
    assert own.ratios["cube"].value == pytest.approx(regret / result.best["cube"].regret.mean())
    assert own.contender.title == "coin_agent:Coin"


def test_a_contender_is_titled_by_its_settings():
    assert Contender("rcdb", {"estimator": "one-pass", "radius": 8.0}).title == "RCDB, one-pass, radius 8"


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("agent", ["nobody", "no_such_module:Agent", "barbar"])
def test_an_agent_that_cannot_play_is_refused_before_anything_runs(tmp_path, agent):
    with pytest.raises(BadInputError):
        board.compete(Store(tmp_path), SEEDS, [Contender(agent)])
    assert board.count_runs(Store(tmp_path), SEEDS) == 8 * 3 + 5 * 4 + 2 * 4


@pytest.mark.usefixtures("tiny")
def test_the_estimate_is_the_time_of_one_run_of_each_kind_times_the_runs_left(tmp_path, coin, monkeypatch):
    store, timed = Store(tmp_path / "results"), []

    def one_second(_store, group):
        timed.append((group.cell.agent, group.cell.world))
        return 1.0

    monkeypatch.setattr(board, "_seconds_per_run", one_second)
    runs = board.count_runs(store, SEEDS, [coin])
    assert board.estimate(store, SEEDS, [coin], jobs=2) == (runs, pytest.approx(runs / 2 / 60))
    kinds = {(agent, world) for agent in ("rcdb", "maxpairucb", coin.agent) for world in ("hypercube", "fresh")}
    assert set(timed) == kinds | {("versatile-db", "hypercube")}


@pytest.mark.usefixtures("tiny")
def test_runs_made_for_the_estimate_are_not_made_again(tmp_path):
    store, done = Store(tmp_path), []
    before = board.count_runs(store, SEEDS)
    work = board.estimate(store, SEEDS)
    assert work.runs == board.count_runs(store, SEEDS) < before
    assert work.minutes > 0
    board.compete(store, SEEDS, progress=done.append)
    assert sum(done) == work.runs
    assert all(store.seeds(cell) == set(SEEDS) for cell in board.report_cells())
    assert all(store.seeds(cell) >= set(board.TUNING_SEEDS) for cell in board.tuning_cells())
    assert sum(len(store.seeds(cell) & set(SEEDS)) for cell in board.tuning_cells()) == len(SEEDS) * 2  # the winners'
    assert board.estimate(store, SEEDS) == (0, 0.0)
