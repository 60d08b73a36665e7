"""The benchmark of reward models: rivals' losses are what they claim, and attacks have the size that is asked for."""

import numpy as np
import pytest
from benchmarks.preferences.asking import SIMPLE, Pool, collected
from benchmarks.preferences.problems import attacked, synthetic
from benchmarks.preferences.rivals import LOSSES, by_loss, dawid_skene, oracle, plain, repo

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
    ours, clean = model.score(problem.test_x, problem.test_y), oracle(problem)
    chosen, best, _ = repo(problem)
    fooled = by_loss(problem, plain)
    assert fooled < clean - 0.1
    assert dawid_skene(problem) < clean - 0.1  # no pair repeats
    assert ours > clean - 0.02
    assert best >= chosen > fooled
    assert best > clean - 0.02


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
