import math
from collections import Counter

import numpy as np
import pytest

from fairduel import BadInputError, Outcome
from fairduel.agents import WIWR
from fairduel.agents.table1.wiwr import PRACTICAL_SCALE
from fairduel.simulation import Cell
from fairduel.worlds import PreferenceWorld
from fairduel.worlds.preferences import condorcet_winner


def logarithm(arms, horizon, failure=0.05):
    return math.log(40 * arms**2 * math.log(horizon) / failure)


def challenge(duel):
    """Challenger and candidate of a duel."""
    return (duel.first, duel.second) if duel.challenger_first else (duel.second, duel.first)


def test_lambda_is_the_published_one_scaled():
    assert (
        WIWR(arms=10, horizon=10_000, scale="theory")._due.tolist()
        == [math.ceil(4 * 2304 * logarithm(10, 10_000))] * 10
    )
    assert WIWR(arms=10, horizon=10_000).settings["scale"] == PRACTICAL_SCALE
    assert (
        WIWR(arms=4, horizon=500, scale=0.01, failure_probability=0.2)._due.tolist()
        == [math.ceil(4 * 23.04 * logarithm(4, 500, 0.2))] * 4
    )


def test_the_first_epochs_are_those_of_the_pseudocode_by_hand():
    """Seven arms, two duels each at first; the books are kept here once more, as notes B1 prints them."""
    i, j = np.indices((7, 7))
    ends = Counter()
    for seed in range(8):
        ends += first_epochs(seed, 0.5 + 0.07 * (j - i))
        ends += first_epochs(seed, 0.5 + 0.45 * np.sign(7 - 2 * ((j - i) % 7)) * (i != j))  # in a circle
    assert min(ends["a keeper"], ends["no keeper"]) > 10


def test_a_tie_is_half_a_win_in_the_books_by_hand():
    i, j = np.indices((7, 7))
    circle = 0.5 + 0.45 * np.sign(7 - 2 * ((j - i) % 7)) * (i != j)
    ends = sum((first_epochs(seed, circle, ties=0.3) for seed in range(12)), Counter())
    assert min(ends["a keeper"], ends["no keeper"]) > 3


def first_epochs(seed, matrix, ties=0.0):
    scale = 0.5 / (2304 * logarithm(7, 100))  # λ = ½, so n = 2 and N = 14
    agent, ends = WIWR(arms=7, horizon=100, scale=scale, seed=seed), Counter()
    candidate, tally, gaps = agent.recommend(), np.zeros((7, 7)), np.full(7, 0.5)
    rng = np.random.default_rng(seed)
    for epoch in range(1, 5):
        due = np.ceil(0.5 / gaps**2 - 1e-9)
        np.testing.assert_array_equal(agent._due, due)
        length = int(due.sum())
        held, wins, pair_wins = np.zeros(7), np.zeros(7), np.zeros((7, 7))
        for _ in range(length):
            assert agent.epoch == epoch
            duel = agent.ask()
            u, v = challenge(duel)
            assert v == candidate == agent.recommend()
            held[v] += 1
            first_won = rng.random() < matrix[duel.first, duel.second]
            is_tie = rng.random() < ties
            agent.tell(duel, Outcome.TIE if is_tie else Outcome.FIRST if first_won else Outcome.SECOND)
            z = 0.5 if is_tie else float(first_won == (duel.first == u))
            if u == v:
                wins[u] += 0.5
            else:
                tally[u, v] += 2 * z - 1
                tally[v, u] -= 2 * z - 1
                pair_wins[u, v] += z
                wins[u] += z
            if tally[u, v] > 0:
                candidate = u
        if held.max() >= length / 2:
            j = int(np.argmax(held))
            q = pair_wins[:, j] / (held[j] / length * due)
            q[j] = 0.5
        else:
            q = wins / due
        ends["a keeper" if held.max() >= length / 2 else "no keeper"] += 1
        gaps = np.maximum(2.0**-epoch, 0.5 - q - gaps / 8)
        if gaps.min() > 2.0**-epoch:
            gaps[np.argmin(gaps)] = 2.0**-epoch
        np.testing.assert_allclose(agent.gaps, gaps)
    return ends


def test_if_no_arm_looks_good_one_of_the_best_counts_as_good():
    agent = WIWR(arms=4, horizon=100)
    agent._epoch, agent._reigns = 3, agent._due / 4  # a third epoch that no candidate kept
    agent._wins[2, 1] = 0.1 * agent._due[2]
    agent._end_epoch()
    assert agent.gaps.tolist() == pytest.approx([0.4375, 0.4375, 0.125, 0.4375])


def test_an_arm_takes_over_only_from_the_candidate_that_it_beat():
    agent = WIWR(arms=4, horizon=100, seed=0)
    challenges = {challenge(duel)[0]: duel for duel in agent.ask_many(None, 60) if not duel.is_self_duel}
    for duel in challenges.values():
        agent.tell(duel, Outcome.FIRST if duel.challenger_first else Outcome.SECOND)  # each challenger wins
        assert agent.recommend() == next(iter(challenges))


@pytest.mark.parametrize("family", ["condorcet", "condorcet-cycle", "utilities"])
def test_it_finds_the_condorcet_winner_where_nobody_lies(family):
    for seed in range(3):
        world = PreferenceWorld.draw(rng=np.random.default_rng(seed), family=family, arms=5, gap=0.3)
        labels, agent = np.random.default_rng(100 + seed), WIWR(arms=5, horizon=6000, seed=seed)
        for _ in range(6000):
            duel = agent.ask()
            won = labels.random() < world.matrix[duel.first, duel.second]
            agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        assert agent.recommend() == condorcet_winner(world.matrix)
        assert agent.epoch >= 3


def test_challengers_are_drawn_in_proportion_to_their_due_duels():
    agent = WIWR(arms=3, horizon=100, seed=0)
    agent._due = np.array([1.0, 0.0, 3.0])
    drawn = [challenge(agent.ask())[0] for _ in range(2000)]
    assert np.bincount(drawn, minlength=3) / 2000 == pytest.approx([0.25, 0, 0.75], abs=0.03)


def test_an_outcome_after_its_epoch_counts_in_the_tally_alone():
    agent = WIWR(arms=3, horizon=100, scale=0.5 / (2304 * logarithm(3, 100)), seed=1)
    duels = agent.ask_many(None, 40)
    late = next(duel for duel in duels if not duel.is_self_duel)
    others = [duel for duel in duels if duel is not late][:6]
    for duel in others:
        agent.tell(duel, Outcome.FIRST)
    assert agent.epoch == 2
    before = agent.state()["memory"]
    agent.tell(late, Outcome.FIRST)
    after = agent.state()["memory"]
    assert after["_leads"][late.first, late.second] == before["_leads"][late.first, late.second] + 1
    assert after["_told"] == 0
    assert not after["_wins"].any()
    assert not after["_reigns"].any()
    np.testing.assert_array_equal(after["_gaps"], before["_gaps"])


def test_without_a_horizon_the_round_replaces_it():
    agent = WIWR(arms=3, scale=0.5 / (2304 * logarithm(3, 3)))
    assert agent._due.tolist() == [2, 2, 2]
    for _ in range(6):
        agent.tell(agent.ask(), Outcome.FIRST)
    expected = np.ceil(0.5 * logarithm(3, 6) / logarithm(3, 3) / agent.gaps**2)
    np.testing.assert_array_equal(agent._due, expected)


def regret(budget, seed):
    cell = Cell("wiwr", "greedy" if budget else "none", budget, 8000, "preferences", world_settings={"gap": 0.3})
    return cell.run(seed).trace.regret.sum()


def test_its_regret_is_far_below_that_of_uniform_play_with_flips_and_without():
    """K = 10, gap 0.3: uniform play costs 0.54 a round, 4320 in all."""
    assert np.mean([regret(0, seed) for seed in (1, 2)]) < 0.3 * 4320
    assert np.mean([regret(150, seed) for seed in (1, 2)]) < 0.35 * 4320


@pytest.mark.parametrize(
    "settings", [{"scale": "practise"}, {"scale": 0}, {"failure_probability": 1.0}, {"arms": 1}, {"arms": "two"}]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        WIWR(**{"arms": 3, "horizon": 100} | settings)
