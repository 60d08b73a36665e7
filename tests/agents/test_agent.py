import json
import math
import os
import pickle
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fairduel import (
    LOGISTIC,
    PROBIT,
    RCDB,
    RCDBS,
    Agent,
    BadInputError,
    CoLSTIM,
    Duel,
    LockInWarning,
    MaxInP,
    MaxPairUCB,
    Outcome,
    UnknownDuelError,
    clipped_linear,
)
from fairduel.agents import AGENTS

FIVE = ["rcdb", "rcdb-s", "maxpairucb", "maxinp", "colstim"]

TRUTH = np.array([1.5, -1.0, 0.6])
ACTIONS = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9], [-0.6, 0.3, 0.5]])


@pytest.fixture(params=[AGENTS[name] for name in FIVE], ids=FIVE)
def kind(request):
    return request.param


def made(kind, **settings):
    return kind(**{"dimension": 3, "norm_bound": 2.0, "horizon": 400, "seed": 7} | settings)


def sphere(rng, count=6, dimension=3):
    normal = rng.standard_normal((count, dimension))
    return 0.99 * normal / np.linalg.norm(normal, axis=1, keepdims=True)


def answer(duel, uniform):
    return Outcome.FIRST if uniform < LOGISTIC.probability(duel.difference @ TRUTH) else Outcome.SECOND


def played(agent, count, seed=0):
    """Play rounds with fresh actions; return the duels and what was told."""
    rng = np.random.default_rng(seed)
    history = []
    for _ in range(count):
        duel = agent.ask(sphere(rng))
        outcome = answer(duel, rng.random())
        agent.tell(duel, outcome)
        history.append((duel, outcome))
    return history


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and one == other


def sums(history):
    differences = np.array([duel.difference for duel, _ in history]).reshape(-1, 3)
    weights = np.array([duel.weight for duel, _ in history])
    outcomes = np.array([float(outcome is Outcome.FIRST) for _, outcome in history])
    return differences, weights, outcomes


# ---------------------------------------------------------------------- ask, tell, estimate


def test_a_duel_names_two_of_the_actions_and_their_difference(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    for number in range(30):
        actions = sphere(rng)
        duel = agent.ask(actions)
        assert duel.number == number
        np.testing.assert_array_equal(duel.difference, actions[duel.first] - actions[duel.second])
        assert 0 < duel.weight <= 1
        agent.tell(duel, answer(duel, rng.random()))


def test_the_width_is_taken_before_the_duel_is_counted(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    for _ in range(30):
        before = agent.information.matrix.copy()
        duel = agent.ask(sphere(rng))
        phi = duel.difference
        assert duel.width == pytest.approx(math.sqrt(phi @ np.linalg.solve(before, phi)), rel=1e-9, abs=1e-12)
        agent.tell(duel, answer(duel, rng.random()))


@pytest.mark.parametrize(("link", "norm_bound"), [(LOGISTIC, 2.0), (PROBIT, 1.0), (clipped_linear(0.2), 1.25)], ids=str)
def test_the_estimate_solves_equation_mle_on_the_whole_history(kind, link, norm_bound, score_equation, slow_estimate):
    if kind is RCDBS and link is not LOGISTIC:
        with pytest.raises(BadInputError, match="sigmoid"):
            made(kind, link=link, norm_bound=norm_bound)
        return
    agent = made(kind, link=link, norm_bound=norm_bound)
    history = sums(played(agent, 120))
    ridge = agent.settings["ridge"]
    residual = score_equation(agent.estimate, *history, ridge, link)
    assert np.abs(residual).max() <= 1e-8 * (1 + history[1].sum())
    np.testing.assert_allclose(agent.estimate, slow_estimate(*history, ridge, link), atol=1e-5)


def test_no_outcome_no_opinion(kind):
    agent = made(kind)
    agent.ask_many(ACTIONS, 5)
    assert agent.estimate.tolist() == [0, 0, 0]


def test_the_estimate_is_a_copy(kind):
    agent = made(kind)
    played(agent, 10)
    estimate = agent.estimate
    estimate[:] = 99.0
    assert not (agent.estimate == 99.0).any()


def test_the_agent_keeps_no_hold_of_the_actions(kind):
    agent, other = made(kind), made(kind)
    table = ACTIONS.copy()
    duel, twin = agent.ask(table), other.ask(ACTIONS)
    assert (table == ACTIONS).all()
    table[:] = 0.0
    agent.tell(duel, Outcome.FIRST)
    other.tell(twin, Outcome.FIRST)
    np.testing.assert_array_equal(agent.estimate, other.estimate)


def test_it_learns_the_best_action(kind):
    agent = made(kind, horizon=600)
    history = played(agent, 600)
    best = ACTIONS @ TRUTH
    assert agent.recommend(ACTIONS) == np.argmax(best)
    cosine = agent.estimate @ TRUTH / np.linalg.norm(agent.estimate) / np.linalg.norm(TRUTH)
    assert cosine > 0.9
    assert len(history) == agent.asked


def test_recommend_takes_the_lowest_of_equals_and_asks_nothing(kind):
    agent = made(kind)
    before = agent.state()
    assert agent.recommend([[0.1, 0.1, 0.1]] * 3) == 0
    assert same(agent.state(), before)
    with pytest.raises(BadInputError):
        agent.recommend([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def test_a_self_duel_teaches_nothing():
    agent = made(MaxPairUCB, radius=0.0, warmup=10)
    played(agent, 10)
    estimate, matrix = agent.estimate, agent.information.matrix.copy()
    duel = agent.ask(ACTIONS)
    assert duel.is_self_duel
    assert duel.weight == 1.0
    assert duel.width == 0.0
    agent.tell(duel, Outcome.FIRST)
    np.testing.assert_array_equal(agent.estimate, estimate)
    np.testing.assert_array_equal(agent.information.matrix, matrix)
    assert not agent.pending


def test_an_outcome_that_is_none_is_refused_and_the_duel_still_waits(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    for wrong in (1, True, "first", None):
        with pytest.raises(BadInputError, match="Outcome"):
            agent.tell(duel, wrong)
    assert agent.pending == (duel,)
    agent.tell(duel, Outcome.SECOND)
    assert agent.pending == ()


@pytest.mark.parametrize(
    "actions",
    [
        [[math.nan, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[0.9, 0.9, 0.0], [0.0, 0.0, 0.0]],
        [[0.5, 0.5], [0.1, 0.2]],
        [0.1, 0.2, 0.3],
        [],
        np.empty((0, 3)),
        [[0.1, 0.2, 0.3]],
        [["a", "b", "c"], ["d", "e", "f"]],
        "actions",
        None,
        [[0.1, 0.2, 0.3], [0.1]],
    ],
    ids=[
        "nan",
        "infinite",
        "long",
        "dimension",
        "one-dimensional",
        "empty",
        "no rows",
        "single",
        "strings",
        "text",
        "none",
        "ragged",
    ],
)
def test_bad_actions_are_refused_and_change_nothing(kind, actions):
    agent = made(kind, warmup=10)
    told, _ = agent.ask_many(ACTIONS, 2)
    agent.tell(told, Outcome.FIRST)
    before = agent.state()
    assert before["memory"]["_stale"]
    for ask in (agent.ask, lambda table: agent.ask_many(table, 3)):
        with pytest.raises(BadInputError):
            ask(actions)
        assert same(agent.state(), before)


# ---------------------------------------------------------------------- late, lost and foreign feedback


def test_late_feedback_in_any_order_gives_the_same_estimate(kind):
    in_order, shuffled = made(kind, warmup=30), made(kind, warmup=30)
    rng = np.random.default_rng(3)
    tables = [sphere(rng) for _ in range(60)]
    duels = [in_order.ask(table) for table in tables]
    assert [shuffled.ask(table) for table in tables] == duels
    outcomes = [answer(duel, rng.random()) for duel in duels]
    for duel, outcome in zip(duels, outcomes, strict=True):
        in_order.tell(duel, outcome)
        assert np.isfinite(in_order.estimate).all()
    for index in rng.permutation(60):
        shuffled.tell(duels[index], outcomes[index])
    assert np.linalg.norm(in_order.estimate) > 0.1
    np.testing.assert_allclose(shuffled.estimate, in_order.estimate, atol=1e-6)


def test_telling_twice_is_refused(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    agent.tell(duel, Outcome.FIRST)
    before = agent.state()
    for act in (lambda: agent.tell(duel, Outcome.FIRST), lambda: agent.cancel(duel)):
        with pytest.raises(UnknownDuelError, match=r"duel 0 \(. against .\) was told already"):
            act()
        assert same(agent.state(), before)


def test_a_cancelled_duel_cannot_be_told_or_cancelled_again(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    agent.cancel(duel)
    before = agent.state()
    for act in (lambda: agent.tell(duel, Outcome.FIRST), lambda: agent.cancel(duel)):
        with pytest.raises(UnknownDuelError, match=r"duel 0 \(. against .\) was cancelled"):
            act()
        assert same(agent.state(), before)


@pytest.mark.parametrize("number", [1, 99, -1])
def test_a_duel_that_was_never_asked_is_refused(kind, number):
    agent = made(kind)
    agent.ask(ACTIONS)
    before = agent.state()
    invented = Duel(number, 2, 1, ACTIONS[2] - ACTIONS[1], weight=1.0, width=1.0, slope=1.0)
    with pytest.raises(UnknownDuelError, match=rf"duel {number} \(2 against 1\) was never asked here"):
        agent.tell(invented, Outcome.FIRST)
    assert same(agent.state(), before)


def test_a_duel_of_another_agent_is_refused(kind):
    agent, stranger = made(kind), made(kind, seed=8)
    rng = np.random.default_rng(0)
    mine, foreign = agent.ask(sphere(rng)), stranger.ask(sphere(rng))
    with pytest.raises(UnknownDuelError, match="never asked here"):
        agent.tell(foreign, Outcome.FIRST)
    assert agent.pending == (mine,)


def test_cancel_takes_the_duel_out_of_the_information(kind):
    agent = made(kind)
    played(agent, 20)
    duels = agent.ask_many(ACTIONS, 3)
    reference = made(kind)
    played(reference, 20)
    for duel in (duels[1], duels[0], duels[2]):
        agent.cancel(duel)
    np.testing.assert_allclose(agent.information.matrix, reference.information.matrix, atol=1e-10)
    np.testing.assert_allclose(agent.information.inverse, reference.information.inverse, atol=1e-10)
    determinant = reference.information.log_determinant
    assert agent.information.log_determinant == pytest.approx(determinant, abs=1e-10)
    np.testing.assert_array_equal(agent.estimate, reference.estimate)
    assert agent.asked == 23
    assert agent.pending == ()


def test_ask_many_is_ask_many_times(kind):
    together, one_by_one = made(kind), made(kind)
    played(together, 10)
    played(one_by_one, 10)
    duels = together.ask_many(ACTIONS, 5)
    assert duels == [one_by_one.ask(ACTIONS) for _ in range(5)]
    assert [duel.number for duel in duels] == list(range(10, 15))
    assert together.pending == tuple(duels)


@pytest.mark.parametrize("kind", [RCDB, RCDBS, MaxPairUCB, MaxInP])
def test_ask_many_does_not_ask_the_same_again_while_it_waits(kind):
    square = np.array([[-0.7, -0.7], [-0.7, 0.7], [0.7, -0.7], [0.7, 0.7]])
    one, two = kind(dimension=2, norm_bound=2.0, horizon=400).ask_many(square, 2)
    assert {frozenset((one.first, one.second)), frozenset((two.first, two.second))} == {
        frozenset((0, 3)),
        frozenset((1, 2)),
    }


@pytest.mark.parametrize("count", [0, -1])
def test_ask_many_needs_a_count(kind, count):
    with pytest.raises(BadInputError, match="count must be a whole number ≥ 1"):
        made(kind).ask_many(ACTIONS, count)


# ---------------------------------------------------------------------- save and resume


@pytest.mark.parametrize("stale", [True, False])
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(kind, stale, tmp_path):
    agent = made(kind, warmup=5)
    played(agent, 40)
    waiting = agent.ask_many(ACTIONS, 5)
    agent.tell(waiting[0], Outcome.FIRST)
    agent.cancel(waiting[1])
    if not stale:
        _ = agent.estimate
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")

    assert type(again) is kind
    assert again.state()["memory"]["_stale"] is (stale and not waiting[0].is_self_duel)
    assert same(again.state(), agent.state())
    assert again.settings == agent.settings
    assert again.pending == agent.pending == tuple(waiting[2:])
    for both in (agent, again):
        both.tell(waiting[3], Outcome.SECOND)
        with pytest.raises(UnknownDuelError, match="cancelled"):
            both.tell(waiting[1], Outcome.FIRST)
        with pytest.raises(UnknownDuelError, match="told already"):
            both.tell(waiting[0], Outcome.FIRST)
    assert played(again, 300, seed=5) == played(agent, 300, seed=5)
    for both in (agent, again):
        both.tell(waiting[2], Outcome.FIRST)
    assert same(again.state(), agent.state())
    np.testing.assert_array_equal(again.estimate, agent.estimate)


def test_saving_changes_nothing(kind, tmp_path):
    agent, unsaved = made(kind), made(kind)
    for seed in range(3):
        assert played(agent, 20, seed) == played(unsaved, 20, seed)
        agent.save(tmp_path / "agent.npz")


def test_the_state_shares_nothing_with_the_agent(kind):
    agent = made(kind)
    played(agent, 10)
    state = agent.state()
    twin = Agent.from_state(agent.state())
    played(agent, 10, seed=1)
    assert same(twin.state(), state)


def test_a_torn_file_is_refused_wherever_it_was_cut(kind, tmp_path):
    agent = made(kind)
    played(agent, 10)
    agent.ask(ACTIONS)
    path = tmp_path / "agent.npz"
    agent.save(path)
    whole = path.read_bytes()
    for end in [*range(0, len(whole), len(whole) // 80), len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(BadInputError, match="torn"):
            Agent.load(path)


def test_a_changed_byte_in_the_content_is_noticed(tmp_path):
    agent = made(RCDB)
    played(agent, 10)
    path = tmp_path / "agent.npz"
    agent.save(path)
    whole = path.read_bytes()
    place = whole.index(b"n\0\0\0o\0\0\0r\0\0\0m\0\0\0")  # within the JSON text
    path.write_bytes(whole[:place] + b"N" + whole[place + 1 :])
    with pytest.raises(BadInputError, match="torn"):
        Agent.load(path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bare").write_bytes(pickle.dumps(Bomb()))
    np.savez("inside.npz", json=np.array(Bomb(), dtype=object))
    for name in ("bare", "inside.npz"):
        with pytest.raises(BadInputError, match="not a saved agent"):
            Agent.load(name)
    assert not Path("exploded").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"no saved agent at .*nothing\.npz"):
        Agent.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("version", [0, 1, None, "2"])
def test_another_format_is_refused(version):
    state = made(RCDB).state() | {"version": version}
    with pytest.raises(BadInputError, match=f"format {version!r}"):
        Agent.from_state(state)


@pytest.mark.parametrize("part", ["random", "asked", "memory", "information", "told", "pending", "settings"])
def test_a_file_with_a_part_missing_is_refused(part, tmp_path):
    agent = made(RCDB)
    played(agent, 5)
    state = agent.state()
    del state[part]
    agent.state = lambda: state
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(BadInputError, match="no usable agent"):
        Agent.load(tmp_path / "agent.npz")


def test_an_agent_is_loaded_only_as_what_it_is(tmp_path):
    made(MaxInP).save(tmp_path / "agent.npz")
    assert type(MaxInP.load(tmp_path / "agent.npz")) is MaxInP
    with pytest.raises(BadInputError, match="unknown saved agent 'MaxInP'"):
        RCDB.load(tmp_path / "agent.npz")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    agent = made(RCDB)
    path = tmp_path / "agent.npz"
    agent.save(path)
    before = path.read_bytes()
    played(agent, 5)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInputError, match="No space left"):
        agent.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInputError, match="cannot write"):
        made(RCDB).save(tmp_path / "nowhere" / "agent.npz")


def test_a_subclass_of_a_user_is_saved_and_loaded(tmp_path):
    class Stubborn(MaxPairUCB):
        def _choose(self, actions):
            return 0, len(actions) - 1

    agent = made(Stubborn)
    duel = agent.ask(ACTIONS)
    assert {duel.first, duel.second} == {0, 3}
    agent.save(tmp_path / "agent.npz")
    assert type(Agent.load(tmp_path / "agent.npz")) is Stubborn


# ---------------------------------------------------------------------- other estimators


def test_the_lazy_estimate_waits_until_the_determinant_has_doubled(kind, score_equation):
    agent, rng = made(kind, estimator="lazy"), np.random.default_rng(0)
    history, fits, fitted_at = [], 0, -math.inf
    for _ in range(150):
        volume = agent.information.log_determinant
        before = agent.estimate
        if history and volume >= fitted_at + math.log(2):
            residual = score_equation(before, *sums(history), agent.settings["ridge"], LOGISTIC)
            assert np.abs(residual).max() <= 1e-8 * (1 + len(history))
            fits, fitted_at, fitted = fits + 1, volume, before
        elif history:
            np.testing.assert_array_equal(before, fitted)
        duel = agent.ask(sphere(rng))
        outcome = answer(duel, rng.random())
        agent.tell(duel, outcome)
        history += [] if duel.is_self_duel else [(duel, outcome)]
    assert 5 < fits < 75


def test_the_one_pass_estimate_keeps_no_outcomes_and_stays_within_the_bound(kind):
    agent = made(kind, estimator="one-pass", horizon=600)
    played(agent, 300)
    assert len(agent.state()["told"]["weights"]) == 0
    played(agent, 300, seed=1)
    assert np.linalg.norm(agent.estimate) <= 2.0 * (1 + 1e-9)
    cosine = agent.estimate @ TRUTH / np.linalg.norm(agent.estimate) / np.linalg.norm(TRUTH)
    assert cosine > 0.8


@pytest.mark.parametrize("estimator", ["lazy", "one-pass"])
def test_a_saved_agent_goes_on_with_its_estimator(kind, estimator, tmp_path):
    agent = made(kind, estimator=estimator)
    played(agent, 40)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    assert same(again.state(), agent.state())
    assert played(again, 100, seed=5) == played(agent, 100, seed=5)
    assert same(again.state(), agent.state())


def test_an_unknown_estimator_is_answered_with_the_nearest(kind):
    with pytest.raises(BadInputError, match="did you mean 'lazy'"):
        made(kind, estimator="lasy")


# ---------------------------------------------------------------------- high dimension


def test_in_high_dimension_the_books_are_the_same(kind):
    rng = np.random.default_rng(0)
    agent = made(kind, dimension=80, norm_bound=1.0)
    actions = sphere(rng, count=9, dimension=80)
    truth = actions[4]
    explicit = agent.settings["ridge"] * np.eye(80)
    for round_number in range(60):
        duel = agent.ask(actions)
        phi = duel.difference
        width = math.sqrt(phi @ np.linalg.solve(explicit, phi))
        assert duel.width == pytest.approx(width, rel=1e-8, abs=1e-7)
        explicit += duel.weight * (1.0 if kind is RCDBS else duel.slope) * np.outer(phi, phi)
        if round_number % 20 == 7:
            agent.cancel(duel)
            explicit -= duel.weight * (1.0 if kind is RCDBS else duel.slope) * np.outer(phi, phi)
        else:
            agent.tell(duel, Outcome.FIRST if phi @ truth > 0 else Outcome.SECOND)
    np.testing.assert_allclose(agent.information.matrix, explicit, atol=1e-10)
    assert agent.recommend(actions) == 4


# ---------------------------------------------------------------------- randomness


def test_the_seed_decides_everything(kind):
    one, other = played(made(kind, seed=3), 80), played(made(kind, seed=3), 80)
    assert one == other
    assert one != played(made(kind, seed=4), 80)


def test_both_orders_are_asked_equally_often(kind):
    agent, rng = made(kind), np.random.default_rng(0)
    duels = [agent.ask(sphere(rng)) for _ in range(500)]
    real = [duel for duel in duels if not duel.is_self_duel]
    lower_first = sum(duel.first < duel.second for duel in real)
    assert len(real) > 400
    assert stats.binomtest(lower_first, len(real)).pvalue > 0.01


def test_the_warm_up_asks_every_pair_of_distinct_actions_equally(kind):
    agent, rng = made(kind, warmup=1200, radius=0.0), np.random.default_rng(0)
    pairs = Counter()
    for _ in range(1200):
        duel = agent.ask(ACTIONS)
        pairs[duel.first, duel.second] += 1
        agent.tell(duel, answer(duel, rng.random()))
    assert len(pairs) == 12
    assert all(first != second for first, second in pairs)
    assert stats.chisquare(list(pairs.values())).pvalue > 0.01
    assert agent.ask(ACTIONS).is_self_duel  # radius 0: it is over


# ---------------------------------------------------------------------- self-duels


def locked(kind, **settings):
    """An agent that knows the best action and has no curiosity left."""
    agent = made(kind, radius=0.0, warmup=20, **settings)
    for _ in range(20):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    return agent


def interrupted(agent):
    """Let an agent that duels itself ask one real duel."""
    agent.self_duels = False
    assert not agent.ask(ACTIONS).is_self_duel
    agent.self_duels = True


def test_a_lock_in_is_said_once_and_not_before_a_hundred_rounds(kind):
    agent = locked(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(agent.ask(ACTIONS).is_self_duel for _ in range(99))
    with pytest.warns(LockInWarning, match=rf"100 .*{kind.__name__}.*action 0") as said:
        duel = agent.ask(ACTIONS)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert duel.is_self_duel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(agent.ask(ACTIONS).is_self_duel for _ in range(300))


def test_a_lock_in_is_not_said_again_after_a_reload(tmp_path):
    agent = locked(RCDB)
    with pytest.warns(LockInWarning):
        agent.ask_many(ACTIONS, 100)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    again.ask_many(ACTIONS, 150)
    interrupted(again)
    again.ask_many(ACTIONS, 150)


def test_a_real_duel_in_between_starts_the_count_again():
    agent = locked(MaxPairUCB)
    agent.ask_many(ACTIONS, 99)
    interrupted(agent)
    agent.ask_many(ACTIONS, 99)
    with pytest.warns(LockInWarning):
        agent.ask(ACTIONS)


def test_a_second_lock_in_is_not_said():
    agent = locked(MaxPairUCB)
    with pytest.warns(LockInWarning):
        agent.ask_many(ACTIONS, 100)
    interrupted(agent)
    agent.ask_many(ACTIONS, 150)


def test_self_duels_can_be_forbidden(kind):
    agent = locked(kind, self_duels=False)
    rng = np.random.default_rng(0)
    for _ in range(150):
        duel = agent.ask(ACTIONS)
        assert not duel.is_self_duel
        agent.tell(duel, answer(duel, rng.random()))


# ---------------------------------------------------------------------- settings


def test_without_a_horizon_the_round_takes_its_place(kind):
    budget = {"flip_budget": 5} if kind in (RCDB, RCDBS) else {}
    agent = made(kind, horizon=None, radius="theory", **budget)
    first = agent.current_radius
    assert math.isfinite(first)
    played(agent, 60)
    assert agent.current_radius > first


@pytest.mark.parametrize("radius", ["practical", "theory", 2.5])
def test_the_scale_multiplies_the_radius(kind, radius):
    assert made(kind, radius=radius, radius_scale=0.1).current_radius == pytest.approx(
        0.1 * made(kind, radius=radius).current_radius, rel=1e-14
    )


def test_a_number_is_the_radius(kind):
    assert made(kind, radius=2.5).current_radius == 2.5


def test_the_constrained_estimate_stays_within_the_bound(kind):
    budget = {"flip_budget": 0} if kind in (RCDB, RCDBS) else {}
    free, kept = (made(kind, warmup=60, constrained=constrained, **budget) for constrained in (False, True))
    rng = np.random.default_rng(0)
    for _ in range(60):
        table = sphere(rng)
        for agent in (free, kept):
            duel = agent.ask(table)
            agent.tell(duel, Outcome.FIRST if duel.difference @ TRUTH > 0 else Outcome.SECOND)
        assert np.linalg.norm(kept.estimate) <= 2.0 * (1 + 1e-9)
    assert np.linalg.norm(free.estimate) > 2.0
    assert np.linalg.norm(kept.estimate) == pytest.approx(2.0, rel=1e-6)


def test_settings_say_what_was_resolved_and_fit_into_json(kind):
    settings = made(kind, link="logistic").settings
    assert json.loads(json.dumps(settings)) == settings
    assert settings["kappa"] == LOGISTIC.kappa(2.0)
    assert settings["ridge"] == 0.25
    assert settings["link"] == "logistic"
    assert settings["horizon"] == 400


def test_a_link_may_be_given_by_name():
    one, other = made(MaxPairUCB, link="probit", norm_bound=1.0), made(MaxPairUCB, link=PROBIT, norm_bound=1.0)
    assert one.settings == other.settings
    assert played(one, 30) == played(other, 30)


def test_a_kappa_may_be_given():
    assert made(RCDB, kappa=0.25).settings["kappa"] == 0.25


def test_settings_are_keywords_only(kind):
    with pytest.raises(TypeError):
        kind(3, 2.0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("dimension", 0),
        ("dimension", -3),
        ("dimension", 2.5),
        ("norm_bound", 0.0),
        ("norm_bound", -1.0),
        ("norm_bound", math.nan),
        ("norm_bound", math.inf),
        ("horizon", 0),
        ("horizon", -5),
        ("horizon", 10.5),
        ("seed", -1),
        ("seed", 0.5),
        ("kappa", 0.0),
        ("kappa", -0.1),
        ("kappa", 0.2501),
        ("kappa", math.nan),
        ("ridge", 0.0),
        ("ridge", -1.0),
        ("ridge", math.inf),
        ("radius", -1.0),
        ("radius", math.nan),
        ("radius", math.inf),
        ("radius_scale", 0.0),
        ("radius_scale", -1.0),
        ("radius_scale", math.nan),
        ("failure_probability", 0.0),
        ("failure_probability", 1.0),
        ("failure_probability", math.nan),
        ("warmup", -1),
        ("warmup", 1.5),
    ],
)
def test_a_bad_setting_is_refused_by_name(kind, setting, value):
    budget = {"flip_budget": 5} if kind in (RCDB, RCDBS) else {}
    with pytest.raises(BadInputError, match=f"{setting} must be"):
        made(kind, **{setting: value}, **budget)


@pytest.mark.parametrize(
    ("kind", "setting", "value", "meant"),
    [
        (RCDB, "radius", "teory", "theory"),
        (MaxInP, "radius", "practica", "practical"),
        (RCDB, "design", "kapa", "kappa"),
        (RCDBS, "design", "plane", "plain"),
        (RCDBS, "slope_radius", "theori", "theory"),
        (CoLSTIM, "coupling", "vcdb", "vacdb"),
        (CoLSTIM, "coupling", "Paper", "paper"),
        (MaxPairUCB, "link", "logistik", "logistic"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind, setting, value, meant):
    with pytest.raises(BadInputError, match=f"{value}.*did you mean '{meant}'"):
        made(kind, **{setting: value})


def test_a_link_that_is_flat_within_the_bound_is_refused():
    with pytest.raises(BadInputError, match="κ = 0"):
        made(MaxPairUCB, link=clipped_linear(), norm_bound=1.0)
