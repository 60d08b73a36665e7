import math

import numpy as np
import pytest

from benchmarks import fair_trial
from fairduel.agents import AGENTS
from fairduel.experiments.tuning import FIRST_TUNING_SEED


def test_no_seed_is_used_in_two_stages_or_in_a_report():
    stages = [fair_trial.seeds(stage, 100) for stage in range(1, 10)]
    assert min(map(min, stages)) >= FIRST_TUNING_SEED
    assert len(set().union(*stages)) == 900


def test_the_worst_problems_count_twice_beyond_half_as_much_regret_again():
    assert fair_trial.score(np.zeros(40)) == pytest.approx(0.5 * math.log(1.5))
    ratios = np.zeros(40)
    ratios[:3] = math.log(8.0)
    assert fair_trial.score(ratios) == pytest.approx(3 * math.log(8.0) / 40 + 0.5 * math.log(8.0))


def test_a_candidate_plays_with_its_constants_and_leaves_no_trace():
    kind, scenario = AGENTS["rcdb"], fair_trial.PROBLEMS[1]
    shipped = kind.pre_tuned
    careless = shipped._replace(radius=1e-6, trust=1e6)
    regrets = [fair_trial.regret("rcdb", each, scenario, range(4), is_told=True) for each in (shipped, careless)]
    assert regrets[1] > 2 * regrets[0]
    assert kind.pre_tuned is shipped


@pytest.mark.parametrize("agent", fair_trial.SPACES)
def test_the_constants_that_ship_are_within_the_space_searched(agent):
    for name, (low, high) in fair_trial.SPACES[agent].items():
        assert 2.0**low < getattr(AGENTS[agent].pre_tuned, name) < 2.0**high
