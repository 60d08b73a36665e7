import dataclasses
import math

import numpy as np
import pytest

from fairduel.adversaries import Watching
from fairduel.adversaries.searching import worst_found
from fairduel.agents import AGENTS, DuelingAgent, KArmed
from fairduel.core.links import LOGISTIC, as_link
from fairduel.errors import BadInputError
from fairduel.experiments import competition
from fairduel.experiments.competition import Best, Board, Contender, Rung, Scenario
from fairduel.experiments.paper_setup import BUDGET_UNKNOWN
from fairduel.experiments.tuning import PRE_TUNED, tuning_seeds
from fairduel.simulation import Store
from fairduel.simulation.cell import takes_budget
from fairduel.stats import mean

SEEDS = range(4)
FRESH = next(scenario for scenario in competition.SCENARIOS if scenario.world == "fresh")
SETTINGS = [("rcdb", 0.5), ("rcdb", 4.0), ("maxpairucb", 0.5), ("maxpairucb", 4.0)]


@pytest.fixture
def tiny(monkeypatch):
    """Two scenarios, three contenders, four candidates, two of which reach the second rung."""
    cube = Scenario("cube", "tuning", "greedy", budget=6, dimension=3, horizon=60)
    new = Scenario("new", "held-out", "none", budget=0, dimension=3, horizon=50, world="fresh")
    monkeypatch.setattr(competition, "SCENARIOS", (cube, new))
    monkeypatch.setattr(competition, "CONTENDERS", tuple(map(Contender, ("rcdb", "random-pairs", "versatile-db"))))
    monkeypatch.setattr(
        competition, "CANDIDATES", tuple(Contender(agent, {"radius": radius}) for agent, radius in SETTINGS)
    )
    monkeypatch.setattr(competition, "RUNGS", (Rung(2, 4), Rung(5, 2)))
    monkeypatch.setattr(competition, "worst_found", dict)


def regret_of(scenario, contender, seeds):
    return np.mean([contender.cell(scenario).run(seed).trace.regret.sum() for seed in seeds])


# ---------------------------------------------------------------------- what is declared


def test_the_board_has_every_dueling_agent_with_its_defaults():
    dueling = {name for name, kind in AGENTS.items() if issubclass(kind, DuelingAgent)}
    assert {contender.agent for contender in competition.CONTENDERS if not contender.settings} == dueling
    assert competition.RANDOM in competition.CONTENDERS
    titles = [contender.title for contender in competition.CONTENDERS]
    assert len(set(titles)) == len(titles)


def test_who_takes_a_flip_budget_plays_with_and_without_it():
    uninformed = [c for c in competition.CONTENDERS if c.settings in (BUDGET_UNKNOWN, PRE_TUNED | BUDGET_UNKNOWN)]
    assert {contender.agent for contender in uninformed} == {
        c.agent for c in competition.CONTENDERS if takes_budget(c.agent)
    }
    scenario = dataclasses.replace(competition.SCENARIOS[0], budget=7)
    for contender in uninformed:
        assert contender.title.endswith(", C unknown")
        told = Contender(contender.agent, {k: v for k, v in contender.settings.items() if k != "known_budget"})
        assert told.title.endswith(", C known")
        assert told.is_told
        assert not contender.is_told
        [told_agent, agent] = [each.cell(scenario).start(seed=0)[0] for each in (told, contender)]
        assert (told_agent.flip_budget, agent.flip_budget) == (7, None)


def test_scenarios_vary_all_that_was_promised():
    scenarios = competition.SCENARIOS
    assert len({scenario.title for scenario in scenarios}) == len(scenarios)
    assert {s.attack for s in scenarios} == {"none", "greedy", "random", "adversarial", "misleading"}
    targets = {s.attack_settings.get("target", "random") for s in scenarios if s.attack == "misleading"}
    assert targets == {"random", "median", "second", "worst"}
    assert {1001, 136} <= {s.attack_settings.get("start") for s in scenarios}
    assert {s.attack_settings.get("every") for s in scenarios} == {None, 10}
    assert {min(s.budget for s in scenarios), max(s.budget for s in scenarios)} == {0, 200}
    assert {min(s.dimension for s in scenarios), max(s.dimension for s in scenarios)} == {3, 32}
    assert {500, 2000, 8000} <= {s.horizon for s in scenarios}
    assert {name for s in scenarios for name in s.world_settings} == {"ties", "link", "count"}
    assert {s.delay for s in scenarios} == {"none", "fixed", "stochastic"}


def test_half_of_the_scenarios_are_unlike_those_that_constants_were_chosen_on():
    held_out = [scenario for scenario in competition.SCENARIOS if scenario.half == "held-out"]
    assert abs(2 * len(held_out) - len(competition.SCENARIOS)) <= 1
    for scenario in held_out:
        is_another_problem = (
            scenario.world == "fresh" and scenario.dimension not in (10, 20),
            scenario.delay != "none",
            bool(scenario.world_settings),
            scenario.norm not in (1.0, 2.0, 2.5, 4.0),
            scenario.budget not in (0, 10, 25, 30, 45, 60, 80, 90, 100, 120),
        )
        assert any(is_another_problem), scenario.title


def test_agents_without_features_sit_out_fresh_actions():
    for contender in competition.CONTENDERS:
        assert contender.plays(competition.SCENARIOS[0])
        assert contender.plays(FRESH) is not issubclass(AGENTS[contender.agent], KArmed)
    assert not any(
        cell.world == "fresh" and issubclass(AGENTS[cell.agent], KArmed) for cell in competition.report_cells()
    )


def tuning_cells():
    return [candidate.cell(scenario) for scenario in competition.SCENARIOS for candidate in competition.CANDIDATES]


def test_every_cell_can_start():
    for cell in {cell.key: cell for cell in [*competition.report_cells(), *tuning_cells()]}.values():
        agent, world, adversary, _ = cell.start(seed=0)
        assert (adversary.budget, world.dimension) == (cell.budget, cell.world_settings["dimension"])
        if cell.agent_settings.get("known_budget", True):
            assert getattr(agent, "flip_budget", cell.budget) == cell.budget
        if hasattr(agent, "link"):
            assert as_link(agent.link) == LOGISTIC


def test_what_is_tuned():
    tried = {(c.agent, c.settings["radius"], c.settings.get("warmup", 0)) for c in competition.CANDIDATES}
    for agent in ("maxinp", "maxpairucb"):
        assert {warmup for name, _, warmup in tried if name == agent} == {0, 40, 80, 160, 320}
    assert "random-pairs" not in {contender.agent for contender in competition.CANDIDATES}
    assert len({(c.agent, str(c.settings)) for c in competition.CANDIDATES}) == len(competition.CANDIDATES)
    runs, kept = zip(*competition.RUNGS, strict=True)
    assert kept[0] == len(competition.CANDIDATES)
    assert list(kept) == sorted(kept, reverse=True)
    assert list(runs) == sorted(runs)
    reported = [cell.agent_settings for cell in competition.report_cells()]
    assert {settings.get("radius") for settings in reported} == {None, "pre-tuned"}
    assert not any("warmup" in settings for settings in reported)


# ---------------------------------------------------------------------- what is computed


def standing(own, theirs):
    """The standing of an agent with these regrets, (seeds, scenarios), the last scenario held out; and its board."""
    titles = [f"s{j}" for j in range(own.shape[1])]
    halves = ["tuning"] * (len(titles) - 1) + ["held-out"]
    scenarios = [Scenario(title, half, "greedy") for title, half in zip(titles, halves, strict=True)]
    best = {title: Best(Contender("rcdb"), mean(theirs[:, j]), theirs[:, j]) for j, title in enumerate(titles)}
    advice = dict.fromkeys(("recommended_best", "recommendation_regret"), mean(np.ones(2)))
    regret = {title: own[:, j] for j, title in enumerate(titles)}
    found = competition.standing_of(Contender("rcdb"), scenarios, regret, best, advice)
    return found, Board(scenarios, [found], best)


def jackknife_error(statistic, count):
    left_out = [statistic([s for s in range(count) if s != i]) for i in range(count)]
    pseudo = [count * statistic(range(count)) - (count - 1) * value for value in left_out]
    return np.std(pseudo, ddof=1) / math.sqrt(count)


def test_ratios_and_their_errors_are_those_of_pseudo_values():
    rng = np.random.default_rng(0)
    own, theirs = rng.uniform(50, 90, (7, 3)), rng.uniform(20, 60, (7, 3))
    found, _ = standing(own, theirs)

    def all_ratios(seeds):
        return [sum(own[s, j] for s in seeds) / sum(theirs[s, j] for s in seeds) for j in range(3)]

    for j, ratio in enumerate(found.ratios.values()):
        assert ratio.value == pytest.approx(all_ratios(range(7))[j])
        error = jackknife_error(lambda seeds, j=j: math.log(all_ratios(seeds)[j]), 7)
        assert ratio.error == pytest.approx(ratio.value * error)
        assert math.log(ratio.high / ratio.value) / error == pytest.approx(2.4469, abs=1e-4)  # Student's t, 6 degrees
        assert ratio.high / ratio.value == pytest.approx(ratio.value / ratio.low)
    summaries = {(0, 1, 2): found.overall, (0, 1): found.halves["tuning"], (2,): found.halves["held-out"]}
    for places, summary in summaries.items():

        def of_these(seeds, places=places):
            return [all_ratios(seeds)[j] for j in places]

        def geometric(seeds):
            return math.prod(of_these(seeds)) ** (1 / len(of_these(seeds)))

        assert summary.worst.value == pytest.approx(max(of_these(range(7))))
        error = jackknife_error(lambda seeds: math.log(max(of_these(seeds))), 7)
        assert summary.worst.error == pytest.approx(summary.worst.value * error)
        assert found.ratios[summary.where].value == summary.worst.value
        assert summary.geometric_mean.value == pytest.approx(geometric(range(7)))
        error = jackknife_error(lambda seeds: math.log(geometric(seeds)), 7)
        assert summary.geometric_mean.error == pytest.approx(summary.geometric_mean.value * error)


def test_the_interval_of_a_worst_ratio_covers_the_truth():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        shared = rng.normal(0.0, 5.0, (10, 1))  # the same seeds: good and bad worlds for both
        own = np.array([60.0, 50.0]) + shared + rng.normal(0, 4, (10, 2))
        found, _ = standing(own, 40.0 + shared + rng.normal(0, 4, (10, 2)))
        inside += found.overall.worst.low < 1.5 < found.overall.worst.high
    assert 0.91 < inside / 300 < 0.98


def test_agents_are_compared_seed_by_seed():
    rng = np.random.default_rng(2)
    world, theirs = rng.lognormal(0.0, 0.8, (8, 2)), np.full((8, 2), 10.0)
    slow, result = standing(40.0 * world * np.array([1.0, 2.0]), theirs)
    fast, _ = standing(30.0 * world * np.array([1.0, 2.0]), theirs)
    gap = result.compare(fast, slow, ["s0", "s1"])
    assert gap.value == pytest.approx(math.log(0.75))
    assert gap.error == pytest.approx(0.0, abs=1e-12)  # the worlds cancel, though each mean is far from exact
    assert fast.overall.worst.high > slow.overall.worst.low
    risk = result.compare_worst(fast, slow)
    assert (risk.value, risk.high) == pytest.approx((math.log(0.75), math.log(0.75)))
    assert result.compare(slow, fast, ["s1"]).low == pytest.approx(math.log(4 / 3))


def test_a_clear_difference_is_rarely_found_where_there_is_none():
    rng = np.random.default_rng(3)
    theirs = np.full((10, 2), 10.0)
    found = 0
    for _ in range(300):
        worlds = rng.lognormal(0.0, 0.3, (10, 2))
        first, result = standing(worlds * rng.lognormal(0.0, 0.2, (10, 2)), theirs)
        second, _ = standing(worlds * rng.lognormal(0.0, 0.2, (10, 2)), theirs)
        gap = result.compare(first, second, ["s0", "s1"])
        found += not gap.low < 0.0 < gap.high
    assert 0.02 < found / 300 < 0.09


def test_one_run_has_ratios_without_errors():
    found, _ = standing(np.array([[8.0, 2.0]]), np.array([[2.0, 2.0]]))
    assert [ratio.value for ratio in found.ratios.values()] == pytest.approx([4.0, 1.0])
    assert found.overall.geometric_mean.value == pytest.approx(2.0)
    assert math.isnan(found.overall.geometric_mean.error)
    assert math.isnan(found.overall.worst.error)


@pytest.mark.usefixtures("tiny")
def test_a_board_is_what_runs_by_hand_give(tmp_path):
    result = competition.compete(Store(tmp_path), SEEDS)
    best = {}
    for scenario in competition.SCENARIOS:
        first = sorted(competition.CANDIDATES, key=lambda c: regret_of(scenario, c, tuning_seeds(2)))[:2]
        winner = min(first, key=lambda c: regret_of(scenario, c, tuning_seeds(5)))
        named = result.best[scenario.title]
        assert named.contender == winner
        assert named.tuning.value == pytest.approx(regret_of(scenario, winner, tuning_seeds(5)))
        best[scenario.title] = regret_of(scenario, winner, SEEDS)
        assert named.regret.mean() == pytest.approx(best[scenario.title])
    worst = []
    for found in result.standings:
        played = [s for s in competition.SCENARIOS if found.contender.agent != "versatile-db" or s.title == "cube"]
        expected = {s.title: regret_of(s, found.contender, SEEDS) / best[s.title] for s in played}
        assert {title: ratio.value for title, ratio in found.ratios.items()} == pytest.approx(expected)
        assert found.overall.where == max(expected, key=expected.get)
        assert found.overall.worst.value == pytest.approx(max(expected.values()))
        assert set(found.halves) == {s.half for s in played}
        worst.append(found.overall.worst.value)
        advice = [[found.contender.cell(s).run(seed).record() for s in played] for seed in SEEDS]
        for name in ("recommended_best", "recommendation_regret"):
            by_seed = np.mean([[record[name] for record in records] for records in advice], axis=1)
            assert getattr(found, name) == pytest.approx(mean(by_seed))
    assert len(worst) == 3
    assert worst == sorted(worst)


@pytest.mark.usefixtures("tiny")
def test_an_agent_with_a_known_worst_attack_plays_under_it(tmp_path, monkeypatch):
    settings = {"settling": 0.3, "chance": 0.5}
    monkeypatch.setattr(competition, "worst_found", lambda: {"RCDB, C known": settings, "RCDB, C unknown": {}})
    known, others = Contender("rcdb"), Contender("random-pairs")
    assert others.attacked() is None
    cell = known.attacked()
    assert (cell.attack, cell.attack_settings, cell.budget, cell.horizon) == ("watching", settings, 45, 2000)
    counted = []
    missing = competition.count_board_runs(Store(tmp_path), SEEDS)
    board = competition.compete(Store(tmp_path), SEEDS, progress=counted.append)
    assert sum(counted) == missing
    found = {standing.contender.agent: standing.attacked for standing in board.standings}
    assert found["random-pairs"] is None
    assert found["rcdb"] == mean(np.array([cell.run(seed).trace.regret.sum() for seed in SEEDS]))


def test_the_attacks_kept_are_on_agents_of_the_board():
    titles = {contender.title for contender in (*competition.CONTENDERS, competition.ROBUST)}
    assert all(any(name.startswith(title) for title in titles) for name in worst_found())
    for settings in worst_found().values():
        Watching(budget=45, **settings)


@pytest.mark.usefixtures("tiny")
def test_a_second_call_runs_nothing(tmp_path):
    store, done = Store(tmp_path), []
    announced = competition.count_board_runs(store, SEEDS)
    assert announced == 2 * (4 * 2 + 2 * 3) + 5 * 4 + 2 * 4  # two rungs, report, winners
    first = competition.compete(store, SEEDS, progress=done.append)
    assert sum(done) == announced
    assert competition.count_board_runs(store, SEEDS) == 0
    again = competition.compete(Store(tmp_path), SEEDS, progress=done.append)
    assert sum(done) == announced
    assert [found.overall for found in again.standings] == [found.overall for found in first.standings]
    assert competition.count_board_runs(store, range(5)) == 5 + 2  # tuning is done, so the winners are known
    competition.compete(store, range(5), progress=done.append)
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
    without = competition.compete(store, SEEDS)
    assert competition.count_board_runs(store, SEEDS, [coin]) == 2 * 4
    result = competition.compete(store, SEEDS, [coin, coin, Contender("random-pairs")])
    others = [found.overall for found in result.standings if found.contender != coin]
    assert others == [found.overall for found in without.standings]
    [own] = [found for found in result.standings if found.contender == coin]
    regret = regret_of(competition.SCENARIOS[0], coin, SEEDS)
    assert own.ratios["cube"].value == pytest.approx(regret / result.best["cube"].regret.mean())
    assert own.contender.title == "coin_agent:Coin"
    assert math.isnan(own.recommended_best.value)  # it cannot recommend


@pytest.mark.usefixtures("tiny")
def test_an_added_agent_that_takes_a_flip_budget_is_added_twice():
    added = competition.lineup([Contender("rcdb-s", {"radius": 8.0}), Contender("hcw", {"known_budget": False})])[3:]
    assert [each.title for each in added] == [
        "RCDB-S, radius 8, C known",
        "RCDB-S, radius 8, C unknown",
        "HCW (adapted), C unknown",
    ]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("agent", ["nobody", "no_such_module:Agent", "barbar"])
def test_an_agent_that_cannot_play_is_refused_before_anything_runs(tmp_path, agent):
    store = Store(tmp_path)
    before = competition.count_board_runs(store, SEEDS)
    with pytest.raises(BadInputError):
        competition.compete(store, SEEDS, [Contender(agent)])
    assert competition.count_board_runs(store, SEEDS) == before
