import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from fairduel import LOGISTIC, RCDB, BadInputError, MaxPairUCB, Outcome
from fairduel.adversaries import Adversarial, Greedy, NoAttack, Random, WeakAdversary
from fairduel.simulation import Cell, Streams, Trace, play
from fairduel.worlds import Fresh, Hypercube, Table

FEATURES = np.array([[0.9, 0.0], [0.0, 0.9], [0.5, 0.5]])
REWARDS = [0.3, 0.7, 0.1]


class Scripted:
    """A user's agent: asks what it was told to ask, and writes down the answers."""

    def __init__(self, *script):
        self.script = script
        self.seen = []
        self.told = []

    def ask(self, actions):
        self.seen.append(actions)
        return self.script[len(self.told) % len(self.script)]

    def tell(self, duel, outcome):
        self.told.append((duel, outcome))

    @property
    def winners(self):
        return [first if outcome is Outcome.FIRST else second for (first, second), outcome in self.told]


def table():
    return Table(features=FEATURES, rewards=REWARDS, norm_bound=1.0)


def labels(seed=0):
    return np.random.default_rng(seed)


def run_of(seed, attack=Greedy, **settings):
    streams = Streams.of(seed)
    world = Hypercube(rng=streams.world)
    agent = RCDB(dimension=5, norm_bound=2.0, flip_budget=5, horizon=60, seed=streams.agent_seed, **settings)
    adversary = attack(budget=5, rng=streams.adversary)
    return play(agent, world, adversary, horizon=60, labels=streams.labels)


def same_but_for_the_seconds(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for name in Trace.__slots__
        if name != "seconds"
    )


def test_regret_by_hand():
    agent = Scripted((0, 2), (1, 1), (1, 0), (2, 1))
    trace = play(agent, table(), NoAttack(), horizon=4, labels=labels())
    np.testing.assert_allclose(trace.regret, [2 * 0.7 - 0.3 - 0.1, 0.0, 0.4, 0.6], atol=1e-15)
    np.testing.assert_allclose(trace.weak_regret, [0.4, 0.0, 0.0, 0.0], atol=1e-15)
    assert trace.first.tolist() == [0, 1, 1, 2]
    assert trace.second.tolist() == [2, 1, 0, 1]
    assert trace.self_duels.tolist() == [False, True, False, False]


def test_regret_compares_with_the_best_action_of_the_same_round():
    world, twin = Fresh(rng=np.random.default_rng(4)), Fresh(rng=np.random.default_rng(4))
    trace = play(Scripted((0, 1)), world, NoAttack(), horizon=20, labels=labels())
    rewards = [twin.offer(t).rewards for t in range(1, 21)]
    np.testing.assert_allclose(trace.regret, [2 * r.max() - r[0] - r[1] for r in rewards], rtol=1e-12)
    np.testing.assert_allclose(trace.weak_regret, [r.max() - max(r[0], r[1]) for r in rewards], rtol=1e-12)


def test_an_agent_that_returns_bare_pairs_gets_them_back_with_the_outcome():
    agent = Scripted((0, 2), (2, 1))
    trace = play(agent, table(), NoAttack(), horizon=4, labels=labels())
    assert [duel for duel, _ in agent.told] == [(0, 2), (2, 1), (0, 2), (2, 1)]
    assert all(isinstance(outcome, Outcome) for _, outcome in agent.told)
    assert all(np.array_equal(seen, FEATURES) for seen in agent.seen)
    assert trace.weight.tolist() == [1.0] * 4
    for column in (trace.width, trace.slope, trace.estimate_norm):
        assert np.isnan(column).all()
    assert trace.estimates.shape == (4, 0)


def test_an_agent_may_return_anything_with_first_and_second():
    class Choice(NamedTuple):
        label: str
        first: np.int64
        second: np.int64
        weight: float

    trace = play(Scripted(Choice("a", np.int64(2), np.int64(0), 0.5)), table(), NoAttack(), horizon=2, labels=labels())
    assert (trace.first.tolist(), trace.second.tolist()) == ([2, 2], [0, 0])
    assert trace.weight.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("answer", [(0, 3), (-1, 0), (0, 1, 2), (0,), 7, None, "ab", (0, "x")])
def test_a_bad_answer_of_an_agent_is_refused(answer):
    with pytest.raises(BadInputError, match="pair of indices below 3"):
        play(Scripted(answer), table(), NoAttack(), horizon=1, labels=labels())


@pytest.mark.parametrize("horizon", [0, -1])
def test_a_run_needs_a_round(horizon):
    with pytest.raises(BadInputError, match="at least 1"):
        play(Scripted((0, 1)), table(), NoAttack(), horizon=horizon, labels=labels())


def test_the_same_seed_is_the_same_run():
    for attack in (Greedy, Random):
        one, other = run_of(3, attack), run_of(3, attack)
        assert same_but_for_the_seconds(one, other)
        assert not np.array_equal(one.first, run_of(4, attack).first)


def test_the_same_pair_gets_the_same_winner_on_either_side():
    one, other = Scripted((0, 1), (2, 1)), Scripted((1, 0), (1, 2))
    for agent in (one, other):
        play(agent, table(), NoAttack(), horizon=400, labels=labels(3))
    assert one.winners == other.winners
    assert len(set(one.winners)) == 3


def test_labels_do_not_depend_on_what_was_asked_before():
    one, other = Scripted((0, 1)), Scripted((0, 1), (1, 2), (0, 0))
    for agent in (one, other):
        play(agent, table(), NoAttack(), horizon=300, labels=labels(3))
    assert one.winners[::3] == other.winners[::3]


def test_attacks_that_flip_the_same_round_turn_the_same_label():
    honest, attacked = Scripted((0, 1)), Scripted((0, 1))
    play(honest, table(), NoAttack(), horizon=50, labels=labels(3))
    trace = play(attacked, table(), Greedy(budget=20), horizon=50, labels=labels(3))
    assert trace.flipped.tolist() == [True] * 20 + [False] * 30
    turned = [one != other for one, other in zip(honest.winners, attacked.winners, strict=True)]
    assert turned == trace.flipped.tolist()


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (1, 2), (0, 0)])
def test_winning_has_the_probability_of_the_model(pair):
    agent = Scripted(pair)
    play(agent, table(), NoAttack(), horizon=4000, labels=labels())
    wins = sum(outcome is Outcome.FIRST for _, outcome in agent.told)
    probability = float(LOGISTIC.probability(REWARDS[pair[0]] - REWARDS[pair[1]]))
    assert stats.binomtest(wins, 4000, probability).pvalue > 0.01


def test_the_adversary_sees_the_true_outcome_and_its_probability():
    seen = []

    class Watching(Adversarial):
        def wants_flip(self, sight):
            seen.append(sight)
            return super().wants_flip(sight)

    agent = Scripted((0, 1), (1, 2), (2, 2))
    trace = play(agent, table(), Watching(budget=1000), horizon=300, labels=labels())
    assert [sight.round_number for sight in seen] == list(range(1, 301))
    for sight, flip, (pair, outcome) in zip(seen, trace.flipped, agent.told, strict=True):
        assert (sight.first, sight.second) == pair
        gap = REWARDS[sight.winner] - REWARDS[sight.loser]
        assert sight.probability == pytest.approx(1 / (1 + math.exp(-gap)))
        assert outcome is (sight.outcome.flipped if flip else sight.outcome)
        assert flip == (gap > 0)


def test_a_users_attack_runs():
    class EveryThird(WeakAdversary):
        def wants_flip(self, round_number):
            return round_number % 3 == 0

    trace = play(Scripted((0, 1)), table(), EveryThird(budget=4), horizon=20, labels=labels())
    assert (np.flatnonzero(trace.flipped) + 1).tolist() == [3, 6, 9, 12]


def test_a_trace_has_the_values_of_the_duels():
    streams = Streams.of(1)
    agent = RCDB(dimension=5, norm_bound=2.0, flip_budget=45, horizon=50)
    duels, estimates = [], []
    tell = agent.tell

    def listening(duel, outcome):
        duels.append(duel)
        tell(duel, outcome)
        estimates.append(agent.estimate)

    agent.tell = listening
    trace = play(agent, Hypercube(rng=streams.world), Greedy(budget=5), horizon=50, labels=streams.labels)
    assert trace.weight.tolist() == [duel.weight for duel in duels]
    assert trace.width.tolist() == [duel.width for duel in duels]
    assert trace.slope.tolist() == [duel.slope for duel in duels]
    np.testing.assert_array_equal(trace.estimates, estimates)
    np.testing.assert_allclose(trace.estimate_norm, np.linalg.norm(estimates, axis=1), rtol=1e-12)
    assert trace.seconds > 0


@pytest.mark.parametrize(("costly", "cheap", "locked"), [(25, 0, True), (23, 2, True), (22, 3, False), (0, 25, False)])
def test_a_run_is_locked_in_if_its_last_quarter_is_costly_self_duels(costly, cheap, locked):
    script = [(0, 1)] * 75 + [(0, 0)] * costly + [(1, 1)] * cheap  # action 1 is the best
    trace = play(Scripted(*script), table(), NoAttack(), horizon=100, labels=labels())
    assert trace.locked_in is locked


def test_streams_of_a_seed_are_reproducible_and_apart():
    one, again, other = Streams.of(1), Streams.of(1), Streams.of(2)
    draws = [stream.random() for stream in one[:3]]
    assert draws == [stream.random() for stream in again[:3]]
    assert len(set(draws)) == 3
    assert one.agent_seed == again.agent_seed != other.agent_seed
    assert draws != [stream.random() for stream in other[:3]]


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_rcdb_withstands_the_greedy_attack_better_than_an_agent_that_trusts_everyone():
    robust = Cell(agent="rcdb", attack="greedy", budget=45, horizon=2000)
    trusting = Cell(agent="maxpairucb", attack="greedy", budget=45, horizon=2000, agent_settings={"radius": 4.0})
    regret = {
        cell.agent: np.mean([cell.run(seed).trace.regret.sum() for seed in range(5)]) for cell in (robust, trusting)
    }
    assert 600 < regret["rcdb"] < 950
    assert regret["rcdb"] < regret["maxpairucb"]


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_the_statistical_test_speaks_of_the_agents_that_users_ask():
    streams = Streams.of(0)
    world = Hypercube(rng=streams.world)
    agent = MaxPairUCB(dimension=5, norm_bound=2.0, horizon=2000, seed=streams.agent_seed, radius=4.0)
    trace = play(agent, world, Greedy(budget=45, rng=streams.adversary), horizon=2000, labels=streams.labels)
    cell = Cell(agent="maxpairucb", attack="greedy", budget=45, horizon=2000, agent_settings={"radius": 4.0})
    assert cell.run(0).trace.regret.tolist() == trace.regret.tolist()


def test_of_many_features_only_the_norm_of_the_estimate_is_kept():
    actions = np.eye(64)[:3]
    world = Table(features=actions, rewards=np.array([1.0, 0.0, -1.0]), norm_bound=2.0)
    agent = RCDB(dimension=64, norm_bound=2.0, flip_budget=5, horizon=10)
    trace = play(agent, world, NoAttack(), horizon=10, labels=labels())
    assert trace.estimates.shape == (10, 0)
    assert (trace.estimate_norm >= 0).all()
