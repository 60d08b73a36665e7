import dataclasses
import json

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.experiments.attack_search import (
    FINALISTS,
    POPULATION,
    SEARCH_RUNS,
    _measured,
    attacked,
    find_worst_attack,
)
from fairduel.simulation import Cell
from fairduel.stats import mean

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")

PROBLEM = Cell("sceptic", "none", 8, 60, agent_settings={"known_budget": False})
ROUGH = {"runs": 2 * POPULATION * SEARCH_RUNS, "horizons": (30, 60)}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("search") / "search.json"
    return find_worst_attack(PROBLEM, range(5), path=path, **ROUGH), path


def same(one, other):
    np.testing.assert_array_equal(one.regret, other.regret)
    return dataclasses.replace(one, regret=0, scripted=0, growth=0) == dataclasses.replace(
        other, regret=0, scripted=0, growth=0
    )


def test_what_is_reported_is_measured_on_the_reports_seeds(found):
    worst, _ = found
    for seed in range(5):
        assert worst.problem.run(seed).trace.regret.sum() == worst.regret[seed]
    assert worst.growth[60].tolist() == worst.regret.tolist()
    assert worst.scripted["no attack"].mean() < worst.regret.mean()


def test_it_resumes_and_does_not_measure_again(found):
    worst, path = found
    kept = json.loads(path.read_bytes())
    assert len(kept["regrets"]["generation 0"]) == 2 * POPULATION
    assert len(kept["regrets"]["finalists"]) == FINALISTS
    counted = []
    assert same(find_worst_attack(PROBLEM, range(5), path=path, progress=counted.append, **ROUGH), worst)
    assert sum(counted) == worst.searched + (1 + len(worst.scripted) + 2) * 5 - 5  # the growth repeats one of them


def test_a_damaged_file_or_one_of_another_search_is_measured_again(found, tmp_path):
    worst, path = found
    other = json.loads(path.read_bytes()) | {"key": "another"}
    for content in ("{", json.dumps(other)):
        (tmp_path / "search.json").write_text(content)
        assert same(find_worst_attack(PROBLEM, range(5), path=tmp_path / "search.json", **ROUGH), worst)


def test_the_number_of_workers_changes_nothing(found):
    assert same(find_worst_attack(PROBLEM, range(5), jobs=2, **ROUGH), found[0])


def test_its_words_and_its_record_are_its_numbers(found):
    worst, _ = found
    record = worst.as_json()
    assert record["regret"]["value"] == mean(worst.regret).value
    assert record["words"] in worst.conclusions[0]
    assert f"{worst.regret.mean():,.0f}" in worst.conclusions[1]
    assert f"{worst.exponent.value:.2f}" in worst.conclusions[2]


def test_an_agent_of_your_own_can_be_attacked(tmp_path, monkeypatch):
    (tmp_path / "first_two.py").write_text(
        "class FirstTwo:\n    def ask(self, actions): return 0, 1\n    def tell(self, pair, outcome): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    own = Cell("first_two:FirstTwo", "none", 3, 20)
    settings = {"settling": 0.5, "misled": "wait"}  # it shows nothing, so these are met
    regrets = _measured([attacked(own, settings), attacked(own, {})], range(3))
    np.testing.assert_array_equal(regrets[0], regrets[1])


def test_bad_input_is_refused():
    with pytest.raises(BadInputError, match="budget"):
        find_worst_attack(dataclasses.replace(PROBLEM, budget=0), range(2))
    with pytest.raises(BadInputError, match="reserved for tuning"):
        find_worst_attack(PROBLEM, range(1_000_000, 1_000_002))
    rewarded = dataclasses.replace(PROBLEM, agent="cw-oful", agent_settings={}, world="linear")
    for world in ("linear", "hypercube"):
        with pytest.raises(BadInputError, match="learns from rewards"):
            find_worst_attack(dataclasses.replace(rewarded, world=world), range(2))
    with pytest.raises(BadInputError, match="needs duels"):
        find_worst_attack(dataclasses.replace(PROBLEM, world="linear"), range(2))
