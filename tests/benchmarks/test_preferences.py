"""The benchmark of reward models: rivals' losses are what they claim, and attacks have the size that is asked for."""

import numpy as np
import pytest
from benchmarks.preferences.asking import SIMPLE, Pool, collected
from benchmarks.preferences.problems import attacked, lie, lying_chance, synthetic
from benchmarks.preferences.rivals import (
    LOSSES,
    by_loss,
    by_pair,
    by_voter,
    crowd_bt,
    dawid_skene,
    mace,
    plain,
    without_lies,
)

from fairduel.votes import RobustRewardModel


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"Dr.DPO"}))
def test_a_rival_climbs_down_its_own_loss(name):
    pull, loss = LOSSES[name](0.2)
    z = np.linspace(-3, 3, 13)[:, None]
    slope = (loss(z + 1e-5) - loss(z - 1e-5)) / 2e-5
    assert np.allclose(pull(z), -slope, atol=1e-6)


@pytest.mark.parametrize("one_vote", [False, True])
def test_liars_cast_the_share_of_votes_that_is_asked_for(one_vote):
    honest = synthetic(0, 2000)
    problem = attacked(honest, "short", 0.3, 0, one_vote=one_vote)
    assert problem.lies == pytest.approx(0.3, abs=0.02)
    told = problem.is_liar[problem.voter]
    assert np.array_equal(problem.y[: len(honest.y)][~told[: len(honest.y)]], honest.y[~told[: len(honest.y)]])
    assert (problem.y == (problem.x[:, 0, 0] < problem.x[:, 1, 0]))[told].all()
    assert (np.bincount(problem.voter)[problem.is_liar] == 1).all() == one_vote


def test_models_of_voters_survive_what_others_do_not():
    problem = attacked(synthetic(1, 1500), "short", 0.35, 1)
    model = RobustRewardModel().fit(problem.x, problem.y, voters=problem.voter, prompts=problem.prompt)
    ours, clean = model.score(problem.test_x, problem.test_y), by_loss(without_lies(problem), plain)
    chosen, best, halves, _ = by_voter(problem)
    fooled = by_loss(problem, plain)
    assert fooled < clean - 0.1
    assert by_pair(problem, dawid_skene) < clean - 0.1  # no pair repeats
    assert crowd_bt(problem) > fooled
    assert ours > clean - 0.02
    assert best >= chosen > fooled
    assert best >= halves > fooled
    assert best > clean - 0.02


def test_annotator_models_find_the_truth_of_pairs_that_repeat():
    """40 voters judge 200 pairs: half say the truth in nine of ten votes, half always choose the first answer."""
    rng = np.random.default_rng(0)
    truth, voter = rng.random(200) < 0.5, np.repeat(np.arange(40), 100)
    pair = np.concatenate([rng.choice(200, 100, replace=False) for _ in range(40)])
    y = np.where(voter < 20, truth[pair] ^ (rng.random(4000) < 0.1), rng.random(4000) < 0.97)
    problem = synthetic(0, 4000)._replace(y=y, voter=voter, is_liar=np.arange(40) >= 20)
    majority = (np.bincount(pair, y * 2 - 1) > 0) == truth
    assert majority.mean() < 0.8
    assert ((mace(pair, problem) > 0.5) == truth).mean() > 0.98
    careful = problem.voter < 20
    honest = problem._replace(y=y[careful], voter=voter[careful])
    assert ((dawid_skene(pair[careful], honest) > 0.5) == truth).mean() > 0.98


@pytest.mark.parametrize("how", ["flip", "short", "style", "topic", "careless"])
def test_the_chance_of_a_lie_is_how_often_liars_tell_it(how):
    x, rng = synthetic(0, 50).x, np.random.default_rng(1)
    chance = rng.random(50)
    told = np.mean([lie(how, x, rng.random(50) < chance, rng) for _ in range(4000)], axis=0)
    assert np.allclose(lying_chance(how, x, chance), told, atol=0.04)


def test_every_simple_rule_asks_for_recorded_votes_only():
    rng = np.random.default_rng(0)
    answers = [rng.normal(size=(4, 3)) for _ in range(5)]
    recorded = {(0, 1): [(0, True)], (1, 0): [(0, False)], (2, 3): [(1, True)], (3, 2): [(1, False)]}
    pool = Pool(answers, [recorded] * 5, np.empty(0), np.empty(0), 2)
    for name in SIMPLE:
        pairs, results, voters = collected(pool, name, 30, 0.0, 0)
        assert pairs.shape == (30, 2, 3)
        assert set(zip(results.tolist(), voters.tolist(), strict=True)) <= {
            (won, voter) for won in (True, False) for voter in (0, 1)
        }
