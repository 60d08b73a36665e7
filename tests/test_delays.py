"""Late answers: how late, when they are told, and what a run without them stays."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from fairduel import BadInputError
from fairduel.adversaries import Greedy, NoAttack
from fairduel.delays import DELAYS, Delay, FixedDelay, NoDelay, StochasticDelay, StrategicDelay
from fairduel.simulation import Cell, Streams, play
from fairduel.simulation.compiled_run import play_compiled
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid, declare
from fairduel.worlds import Fresh
from helpers.sweeps import sweep

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
BASE = {"agent": "rcdb", "attack": "adversarial", "budget": 15, "horizon": 200, "world": "fresh"}
LATE = [
    ("fixed", {"rounds": 0}),
    ("fixed", {"rounds": 30}),
    ("stochastic", {"mean": 30.0, "deviation": 30.0}),
    ("strategic", {"budget": 900}),
    ("strategic", {"budget": 900, "flipped_at_once": True}),
    ("stochastic", {"mean": 30.0, "deviation": 30.0, "flipped_at_once": True}),
]


def lateness(delay, rewards, flipped=()):
    return [delay.rounds_late(reward, is_flipped=t in flipped) for t, reward in enumerate(rewards)]


# ------------------------------------------------------------------ how late


def test_stochastic_delays_are_a_rounded_gaussian_cut_off_at_zero():
    mean, deviation, count = 100.0, 80.0, 20_000
    late = np.array(lateness(StochasticDelay(mean=mean, deviation=deviation), np.zeros(count)))
    shift = mean / deviation
    expected = mean * stats.norm.cdf(shift) + deviation * stats.norm.pdf(shift)
    assert late.mean() == pytest.approx(expected, abs=4 * deviation / math.sqrt(count))
    zeros = stats.norm.cdf((0.5 - mean) / deviation)
    assert (late == 0).mean() == pytest.approx(zeros, abs=4 * math.sqrt(zeros / count))
    assert np.quantile(late, 0.9) == pytest.approx(mean + deviation * stats.norm.ppf(0.9), rel=0.02)


@pytest.mark.parametrize("budget", [0, 1, 10, 10_000, 10_001])
def test_strategic_delays_add_up_to_the_budget_and_hit_only_good_news(budget):
    rewards = np.random.default_rng(0).normal(size=500)
    late = np.array(lateness(StrategicDelay(budget=budget), rewards))
    assert late.sum() == budget
    assert (late[rewards <= 0.0] == 0).all()
    spent = np.flatnonzero(late)
    assert (late[spent[:-1]] == math.isqrt(budget)).all()
    assert (rewards[: spent[-1] if budget else 0] > 0.0).sum() == max(len(spent) - 1, 0)  # from the first one on


def test_flipped_answers_may_come_at_once_and_then_spend_nothing():
    flipped = {0, 2}
    assert lateness(FixedDelay(rounds=4, flipped_at_once=True), np.ones(4), flipped) == [0, 4, 0, 4]
    assert lateness(FixedDelay(rounds=4), np.ones(4), flipped) == [4] * 4
    assert lateness(StrategicDelay(budget=9, flipped_at_once=True), np.ones(6), flipped) == [0, 3, 0, 3, 3, 0]
    every = lateness(StochasticDelay(), np.ones(50))
    some = lateness(StochasticDelay(flipped_at_once=True), np.ones(50), flipped)
    assert some == [0 if t in flipped else late for t, late in enumerate(every)]  # the others share the draws


@pytest.mark.parametrize(
    ("delay", "settings", "words"),
    [
        ("fixed", {"rounds": -1}, "the delay's rounds"),
        ("fixed", {"rounds": 2.5}, "the delay's rounds"),
        ("stochastic", {"mean": -1.0}, "the delay's mean"),
        ("stochastic", {"deviation": math.inf}, "the delay's deviation"),
        ("strategic", {"budget": -1}, "the delay's budget"),
        ("none", {"flipped_at_once": 1}, "flipped_at_once must be true or false"),
        ("none", {"rounds": 3}, "unknown setting 'rounds' of delay NoDelay"),
        ("fixd", {}, "did you mean 'fixed'"),
    ],
)
def test_a_wrong_delay_is_one_sentence(delay, settings, words):
    with pytest.raises(BadInputError, match=words):
        Cell(**BASE, delay=delay, delay_settings=settings).check()


def test_delays_longer_than_any_run_never_arrive():
    for delay in (FixedDelay(rounds=10**30), StochasticDelay(mean=1e300)):
        assert delay.rounds_late(1.0, is_flipped=False) == 2**53
    trace = Cell(**BASE, delay="fixed", delay_settings={"rounds": 10**30}).run(0).trace
    assert not trace.estimates.any()


# ------------------------------------------------------------------ when answers are told


class Listener:
    """Asks the same duel in every round, and notes when it is told the answer."""

    def __init__(self):
        self.asked, self.heard = 0, []

    def ask(self, actions):  # noqa: ARG002
        self.asked += 1
        return Pair(self.asked)

    def tell(self, duel, outcome):  # noqa: ARG002
        self.heard.append((duel.number, self.asked))


class Pair:
    first, second = 0, 1

    def __init__(self, number):
        self.number = number


class Given(Delay):
    """Delays of a list, of a user's own."""

    def __init__(self, rounds):
        super().__init__()
        self.left = list(rounds)

    def rounds_late(self, better, *, is_flipped):  # noqa: ARG002
        return self.left.pop(0)


def test_answers_arrive_in_their_round_in_the_order_of_asking_and_not_after_the_end():
    agent, rounds = Listener(), [2, 1, 0, 5, 0, 1, 0]
    play(agent, Fresh(rng=Streams.of(0).world), NoAttack(), horizon=7, labels=Streams.of(0).labels, delay=Given(rounds))
    expected = sorted((t + late, t) for t, late in enumerate(rounds, 1) if t + late <= 7)
    assert agent.heard == [(t, arrival) for arrival, t in expected]


def test_a_delay_of_the_users_own_runs_in_the_plain_driver():
    agent, world, adversary, streams = Cell(**BASE).start(0)
    delay = Given([3] * 200)
    answers = {"horizon": 200, "labels": streams.labels, "delay": delay}
    assert play_compiled(agent, world, adversary, **answers) is None
    own = play(agent, world, adversary, **answers)
    built_in = Cell(**BASE, delay="fixed", delay_settings={"rounds": 3}).run(0).trace
    np.testing.assert_array_equal(own.first, built_in.first)


@pytest.mark.parametrize(("delay", "settings"), LATE, ids=str)
@pytest.mark.parametrize("agent", ["rcdb", "rcdb-s", "rcdp", "maxinp"])
def test_both_drivers_agree(agent, delay, settings):
    cell = Cell(**BASE | {"agent": agent}, delay=delay, delay_settings=settings)
    assert cell.is_compiled
    traces = []
    for driver in (play_compiled, play):
        player, world, adversary, streams = cell.start(3)
        answers = {"horizon": 200, "labels": streams.labels, "delay": cell.make_delay(streams)}
        traces.append(driver(player, world, adversary, **answers))
    for column in ("first", "second", "flipped", "weight", "width"):
        np.testing.assert_array_equal(*(getattr(trace, column) for trace in traces), err_msg=column)
    np.testing.assert_allclose(traces[0].estimates, traces[1].estimates, rtol=1e-12, atol=1e-12)
    at_once = Cell(**BASE | {"agent": agent}).run(3).trace
    assert np.array_equal(at_once.first, traces[0].first) == (settings.get("rounds") == 0)


@pytest.mark.parametrize("estimator", ["lazy", "one-pass"])
def test_both_drivers_agree_on_late_answers_with_other_estimators(estimator):
    cell = Cell(**BASE, agent_settings={"estimator": estimator}, delay="stochastic", delay_settings={"mean": 20.0})
    compiled = cell.run(1).trace
    agent, world, adversary, streams = cell.start(1)
    plain = play(agent, world, adversary, horizon=200, labels=streams.labels, delay=cell.make_delay(streams))
    np.testing.assert_array_equal(compiled.first, plain.first)


@pytest.mark.parametrize(
    ("agent", "attack", "world"),
    [("fgts", "greedy", "hypercube"), ("wiwr", "greedy", "preferences"), ("cw-oful", "bury", "linear")],
)
def test_agents_of_every_kind_take_late_answers(agent, attack, world):
    cell = Cell(agent, attack, 3, 40, world, delay="fixed", delay_settings={"rounds": 7})
    at_once = Cell(agent, attack, 3, 40, world)
    assert not cell.is_compiled
    assert cell.run(0).trace.first.tolist() != at_once.run(0).trace.first.tolist()


# ------------------------------------------------------------------ cells, sweeps and what is stored


def test_no_delay_and_none_late_are_the_run_of_before():
    plain = Cell(**BASE).run(2).trace
    for settings in ({"delay": "none"}, {"delay": "fixed", "delay_settings": {"rounds": 0}}):
        trace = Cell(**BASE, **settings).run(2).trace
        for column in ("first", "second", "flipped", "regret", "estimates"):
            np.testing.assert_array_equal(getattr(trace, column), getattr(plain, column))


def test_the_delay_is_part_of_a_cells_key_and_of_its_records():
    cell, late = Cell(**BASE), Cell(**BASE, delay="fixed", delay_settings={"rounds": 5})
    assert len({cell.key, late.key, Cell(**BASE, delay="fixed").key}) == 3
    for each, expected in ((cell, ("none", {})), (late, ("fixed", {"rounds": 5}))):
        record = each.run(0).record()
        assert (record["delay"], json.loads(record["delay_settings"])) == expected


def test_an_agent_with_a_delay_setting_gets_the_delay():
    sizes = {"none": 0.0, "fixed": 100.0, "stochastic": 100.0, "strategic": 100.0}
    assert sizes.keys() == DELAYS.keys()
    for delay, size in sizes.items():
        assert Cell(**BASE | {"agent": "rcdp"}, delay=delay).start(0)[0].delay == size
    assert NoDelay().size == 0.0


def test_a_sweep_spans_delays_and_its_results_name_them(tmp_path):
    table = {"runs": 2, "horizon": 30, "budget": 3, "agent": [{"name": "rcdb"}], "attack": [{"name": "greedy"}]}
    delays = [{"name": "none"}, {"name": "fixed", "rounds": [5, 10]}]
    grid = declare(table | {"delay": delays})
    assert [(cell.delay, dict(cell.delay_settings)) for cell in grid.cells.values()] == [
        ("none", {}),
        ("fixed", {"rounds": 5}),
        ("fixed", {"rounds": 10}),
    ]
    assert set(declare(table).cells) == {next(iter(grid.cells))}
    sweep(grid, tmp_path)
    assert Grid.load(tmp_path).cells == grid.cells
    found = query(
        tmp_path, "SELECT delay, delay_rounds, count(*), count(delay_settings) FROM runs GROUP BY ALL ORDER BY 2"
    )
    assert list(found.rows) == [("fixed", 5, 2, 2), ("fixed", 10, 2, 2), ("none", None, 2, 2)]
    assert list(query(tmp_path, "SELECT DISTINCT delay FROM traces ORDER BY 1").rows) == [("fixed",), ("none",)]
    with pytest.raises(BadInputError, match=r"declare each delay in a \[\[delay\]\] table"):
        declare(table | {"delay": "fixed"})


def test_a_flip_is_seen_by_the_delay():
    """The first ten answers are flipped and told at once, the others only after the end."""
    agent, world, _, streams = Cell(**BASE).start(0)
    delay = FixedDelay(rounds=50, flipped_at_once=True)
    trace = play(agent, world, Greedy(budget=10), horizon=40, labels=streams.labels, delay=delay)
    assert (np.diff(trace.estimate_norm, prepend=0.0) != 0.0).tolist() == [True] * 10 + [False] * 30
