import csv
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairduel.adversaries import ATTACKS, StrongAdversary, StrongRewardAdversary, WeakAdversary, WeakRewardAdversary
from fairduel.experiments import table1_growth
from fairduel.report.page import with_files
from fairduel.report.research import table1_page
from fairduel.simulation import Store, Streams, count_missing, play
from fairduel.stats import Mean
from fairduel.worlds import WORLDS, RewardWorld

DOCS = Path(__file__).parents[2] / "docs"
PAPER = {  # the rows of the paper's Table 1, by our name of the agent
    "arm-race": ("K-armed bandits", "Õ(K¹·⁵C√T)"),
    "barbar": ("K-armed bandits", "Õ(√(KT) + KC)"),
    "sbe": ("linear bandits", "Õ(d²C/Δ + d⁵/Δ²)"),
    "phased-elimination": ("linear bandits", "Õ(√(dT) + d¹·⁵C + C²)"),
    "weighted-oful": ("linear contextual bandits", "Õ(dC√T)"),
    "cw-oful": ("linear contextual bandits", "Õ(d√T + dC)"),
    "wiwr": ("K-armed dueling bandits", "Õ(K²C/Δ_min + Σ K²/Δ_i²)"),
    "versatile-db": ("K-armed dueling bandits", "Õ(C + Σ 1/Δ_i + √K)"),
    "rcdb": ("contextual dueling bandits", "Õ(d√T + dC)"),
}
IDS = [algorithm.title for algorithm in table1_growth.ALGORITHMS]
SEEDS = range(3)


def algorithm(agent):
    return next(each for each in table1_growth.ALGORITHMS if each.agent == agent)


def strict_json(text):
    """Read JSON as other programs do, who know no NaN."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def tiny(monkeypatch):
    """Three algorithms, of each kind of world one, at horizons that take no time."""
    monkeypatch.setattr(table1_growth, "HORIZONS", (20, 40, 60))
    monkeypatch.setattr(table1_growth, "REFERENCE_HORIZON", 40)
    monkeypatch.setattr(table1_growth, "BUDGETS", (4, 8, 16))
    monkeypatch.setattr(table1_growth, "REFERENCE_BUDGET", 8)
    chosen = tuple(algorithm(agent) for agent in ("barbar", "versatile-db", "rcdb"))
    monkeypatch.setattr(table1_growth, "ALGORITHMS", chosen)
    return chosen


class Written:
    """A store with regrets by formula, and seeds in any order as a store has them: ascending."""

    def __init__(self, regret):
        self.regret = regret

    def records(self, cell, seeds):
        rows = [
            {"seed": s, "regret": float(self.regret(cell, s)), "seconds": 0.08 + s, "epoch": 1 + s % 2}
            for s in sorted(seeds)
        ]
        return pl.DataFrame(rows)


# ---------------------------------------------------------------------- what is declared


@pytest.mark.parametrize("agent", PAPER)
def test_each_algorithm_of_the_papers_table_is_there_with_its_bound(agent):
    rows = [each for each in table1_growth.ALGORITHMS if each.agent == agent and each.guarantee.in_paper]
    assert {(row.guarantee.model, row.guarantee.bound) for row in rows} == {PAPER[agent]}


def test_what_is_said_to_be_in_the_paper_has_a_bound_of_the_paper():
    assert len(PAPER) == 9
    bounds = {bound for _, bound in PAPER.values()}
    assert {each.guarantee.bound for each in table1_growth.ALGORITHMS if each.guarantee.in_paper} == bounds
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("row", table1_growth.ALGORITHMS, ids=IDS)
def test_an_agent_is_told_what_the_table_says_that_it_needs(row):
    agent, _, _, _ = row.cells_in_budget[1].start(seed=0)
    told = {getattr(agent, name, None) for name in ("flip_budget", "corruption_budget")} - {None}
    assert told == ({table1_growth.BUDGETS[1]} if "C" in row.guarantee.needs.split(", ") else set())


@pytest.mark.parametrize("row", table1_growth.ALGORITHMS, ids=IDS)
def test_each_one_meets_the_adversary_of_its_bound(row):
    kinds = {
        "weak": (WeakAdversary, WeakRewardAdversary),
        "weak only": (WeakAdversary, WeakRewardAdversary),
        "strong": (StrongAdversary, StrongRewardAdversary),
        "none": (StrongAdversary, StrongRewardAdversary),
    }
    assert issubclass(ATTACKS[row.attack], kinds[row.guarantee.adversary])
    assert [cell.attack for cell in row.cells_in_horizon] == ["none"] * len(table1_growth.HORIZONS)
    assert {cell.budget for cell in row.cells_in_horizon} == {0}
    assert {cell.attack for cell in row.cells_in_budget} == {row.attack}
    assert [cell.horizon for cell in row.cells_in_horizon] == list(table1_growth.HORIZONS)
    assert [cell.budget for cell in row.cells_in_budget] == list(table1_growth.BUDGETS)
    assert {cell.horizon for cell in row.cells_in_budget} == {table1_growth.REFERENCE_HORIZON}


@pytest.mark.parametrize("row", table1_growth.ALGORITHMS, ids=IDS)
def test_every_cell_can_start_and_the_published_constants_are_other_ones(row):
    assert len({cell.key for cell in row.cells}) == len(row.cells)
    for cell in row.cells:
        cell.start(seed=0)
    if row.published is None:
        assert row.published_cell is None
        return
    assert row.published_cell in row.cells
    agent, world, adversary, _ = row.published_cell.start(seed=0)
    assert "theory" in (getattr(agent, "scale", None), getattr(agent, "radius", None))
    assert (row.published_cell.horizon, adversary.budget) == (
        table1_growth.REFERENCE_HORIZON,
        table1_growth.REFERENCE_BUDGET,
    )
    assert world.dimension == row.cells_in_budget[0].start(seed=0)[1].dimension


# ---------------------------------------------------------------------- what is computed


def test_a_row_recovers_the_law_that_made_its_regrets():
    row = algorithm("barbar")

    def regret(cell, seed):
        if cell.agent_settings == row.published:
            return 1000.0 + seed
        return (5.0 + seed) * cell.horizon**0.5 + 3.0 * cell.budget

    filled = table1_growth._filled(row, Written(regret), SEEDS)
    assert filled.in_horizon == pytest.approx((0.5, 0.0, 0.5, 0.5), abs=1e-9)
    assert filled.in_budget == pytest.approx((1.0, 0.0, 1.0, 1.0), abs=1e-6)
    assert filled.per_corruption == pytest.approx((3.0, 0.0, 3.0, 3.0), abs=1e-9)
    values = [regret(row.cell(horizon=8000, budget=100), seed) for seed in SEEDS]
    assert filled.reference.value == pytest.approx(np.mean(values))
    assert filled.reference.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert filled.published_epoch == 2
    assert filled.published == pytest.approx((1001.0, 1 / math.sqrt(3), filled.published.low, filled.published.high))
    assert filled.seconds_a_round == pytest.approx(1.08 / 8000)
    assert filled.by_horizon.shape == filled.by_budget.shape == (3, 5)


def test_growth_in_the_budget_starts_from_the_regret_without_an_attack():
    filled = table1_growth._filled(
        algorithm("rcdb"), Written(lambda cell, seed: 700.0 + 50.0 * seed + 0.01 * cell.budget**2), SEEDS
    )
    assert filled.in_budget.value == pytest.approx(2.0)
    assert filled.in_horizon.value == pytest.approx(0.0, abs=1e-12)
    x, y = np.array([0, *table1_growth.BUDGETS]), 0.01 * np.array([0, *table1_growth.BUDGETS]) ** 2
    assert filled.per_corruption.value == pytest.approx(np.polyfit(x, y, 1)[0])


def test_the_table_is_what_its_stored_runs_say(tiny, tmp_path):
    store, done = Store(tmp_path), []
    assert count_missing(store, table1_growth.all_cells(), SEEDS) == 3 * sum(len(each.cells) for each in tiny)
    rows = table1_growth.measure(store, SEEDS, progress=done.append)
    assert sum(done) == 3 * (7 + 6 + 7)
    for row in rows:
        by_horizon = np.empty((3, 3))
        by_budget = np.empty((3, 3))
        for seed in SEEDS:
            for i, (horizon, budget) in enumerate(zip((20, 40, 60), (4, 8, 16), strict=True)):
                by_horizon[seed, i] = row.algorithm.cell(horizon=horizon, budget=0).run(seed).trace.regret.sum()
                by_budget[seed, i] = row.algorithm.cell(horizon=40, budget=budget).run(seed).trace.regret.sum()
        np.testing.assert_allclose(row.by_horizon, by_horizon)
        np.testing.assert_allclose(row.by_budget, by_budget)
        slopes = [np.polyfit(np.log([20, 40, 60]), np.log(run), 1)[0] for run in by_horizon]
        assert row.in_horizon[:2] == pytest.approx((np.mean(slopes), np.std(slopes, ddof=1) / math.sqrt(3)))
        lines = [np.polyfit([0, 4, 8, 16], [by_horizon[s, 1], *by_budget[s]], 1)[0] for s in SEEDS]
        assert row.per_corruption[:2] == pytest.approx((np.mean(lines), np.std(lines, ddof=1) / math.sqrt(3)))
        assert row.reference.value == pytest.approx(by_budget[:, 1].mean())
    assert [row.published is None for row in rows] == [False, True, False]
    published = [tiny[2].published_cell.run(seed).trace.regret.sum() for seed in SEEDS]
    assert rows[2].published.value == pytest.approx(np.mean(published))


def test_what_is_stored_is_not_run_again(tiny, tmp_path):
    first = table1_growth.measure(Store(tmp_path), SEEDS)
    assert count_missing(Store(tmp_path), table1_growth.all_cells(), SEEDS) == 0
    done = []
    again = table1_growth.measure(Store(tmp_path), SEEDS, progress=done.append)
    assert done == []
    assert [row.in_horizon for row in again] == [row.in_horizon for row in first]
    assert count_missing(Store(tmp_path), table1_growth.all_cells(), range(4)) == sum(len(each.cells) for each in tiny)


class Uniform:
    """Plays uniformly at random."""

    def __init__(self, count, *, duels):
        self.rng, self.shape = np.random.default_rng(5), (count, 2) if duels else (count, None)

    def ask(self, actions):  # noqa: ARG002
        count, size = self.shape
        drawn = self.rng.integers(count, size=size)
        return int(drawn) if size is None else (int(drawn[0]), int(drawn[1]))

    def tell(self, asked, answer):
        pass


@pytest.mark.parametrize("agent", ["barbar", "cw-oful", "wiwr", "rcdb"])
@pytest.mark.parametrize("seed", [0, 7])
def test_uniform_regret_is_the_average_over_all_that_can_be_asked(agent, seed):
    cell = algorithm(agent).cell(horizon=3000, budget=100)
    name, settings = algorithm(agent).world
    world = WORLDS[name](rng=Streams.of(seed).world, **settings)
    rewards = world.offer(1).rewards
    duels = not isinstance(world, RewardWorld)
    costs = [rewards.max() - a for a in rewards]
    if duels:
        costs = [2 * rewards.max() - a - b for a in rewards for b in rewards]
    expected = 3000 * np.mean(costs)
    assert table1_growth._uniform_regret(cell, seed) == pytest.approx(expected)
    _, _, adversary, streams = cell.start(seed)
    player = Uniform(len(rewards), duels=duels)
    played = play(player, world, adversary, horizon=3000, labels=streams.labels).regret.sum()
    assert played == pytest.approx(expected, rel=0.1)


# ---------------------------------------------------------------------- what is shown


def filled(**changed):
    one = Mean(1.0, 0.1, 0.8, 1.2)
    values = {
        "algorithm": algorithm("barbar"),
        "by_horizon": np.ones((3, 5)),
        "by_budget": np.ones((3, 5)),
        "in_horizon": one,
        "in_budget": one,
        "per_corruption": one,
        "reference": Mean(1234.0, 10.0, 0.0, 0.0),
        "published": Mean(2000.0, 20.0, 0.0, 0.0),
        "published_epoch": 0,
        "uniform": 4000.0,
        "seconds_a_round": 2.5e-5,
    }
    return table1_growth.Measured(**(values | changed))


@pytest.mark.parametrize(
    ("published", "is_uniform"), [(None, False), (3590.0, False), (3601.0, True), (4000.0, True), (5000.0, True)]
)
def test_published_constants_that_only_explore_are_said_to(published, is_uniform):
    row = filled(published=published and Mean(published, 1.0, 0.0, 0.0))
    assert row.published_is_uniform is is_uniform
    assert ("as uniform play" in table1_page.texts(row)["published"]) is is_uniform
    assert table1_page.texts(filled(published=None))["published"] == "the same"


@pytest.mark.parametrize(("epoch", "is_said"), [(0, False), (1, True), (2, False)])
def test_an_algorithm_that_never_left_its_first_epoch_is_said_to(epoch, is_said):
    assert ("first epoch" in table1_page.texts(filled(published_epoch=epoch))["published"]) is is_said


def test_wiwr_as_published_never_leaves_its_first_epoch():
    [row] = [row for row in table1_growth.ALGORITHMS if row.agent == "wiwr"]
    assert row.published_cell.run(0).epoch == 1
    assert row.cells_in_horizon[0].run(0).epoch > 1


def test_words_of_a_row():
    words = table1_page.texts(filled())
    assert words["reference"] == "1,234 ± 10"
    assert words["in_horizon"] == "1.00 ± 0.10"
    assert words["microseconds"] == "25"
    noise = Mean(math.nan, math.nan, math.nan, math.nan)
    assert table1_page.texts(filled(in_budget=noise))["in_budget"] == "within the noise"
    alone = Mean(0.7, math.nan, math.nan, math.nan)
    assert table1_page.texts(filled(in_budget=alone))["in_budget"] == "0.70 (one run)"


@pytest.mark.parametrize("runs", [1, 3])
def test_the_page_has_every_row_and_the_record_is_json(tiny, tmp_path, runs):
    rows = table1_growth.measure(Store(tmp_path), range(runs))
    with with_files():
        page = table1_page.write_table1(tmp_path, rows, range(runs), "fairduel reproduce table1").read_text()
    record = strict_json((tmp_path / "table1.json").read_text())
    for row, written in zip(rows, record["rows"], strict=True):
        assert row.algorithm.title in page
        assert row.algorithm.guarantee.bound in page
        assert written["regret_at_reference"]["value"] == row.reference.value
        assert (written["regret_at_reference"]["error"] is None) == (runs == 1)
        assert written["uniform_play"] == row.uniform
        assert (written["regret_as_published"] is None) == (row.algorithm.published is None)
    assert (tmp_path / "table1.svg").read_text().count('id="axes_') == 2 * len(tiny)
    assert record["horizons"] == [20, 40, 60]
    assert "https://" not in page


def test_the_documents_table_can_be_made_anew(tiny, tmp_path):
    specification = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    tables = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tables)
    rows = table1_growth.measure(Store(tmp_path), SEEDS)
    table1_page.write_table1(tmp_path, rows, SEEDS, "fairduel reproduce table1")
    lines = tables.table1(strict_json((tmp_path / "table1.json").read_text()))
    assert [line[0] for line in lines] == [f"{each.title} ({each.guarantee.source})" for each in tiny]
    tables.write(tmp_path / "table1.csv", tables.TABLE1, lines)
    assert _read_csv(tmp_path / "table1.csv") == [tables.TABLE1, *lines]
    for name, header in (("table1", tables.TABLE1), ("leaderboard", tables.LEADERBOARD)):
        table = _read_csv(DOCS / "data" / f"{name}.csv")
        assert table[0] == header
        assert {len(row) for row in table} == {len(header)}
        assert f"data/{name}.csv" in (DOCS / "results.md").read_text(encoding="utf-8")


def _read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
