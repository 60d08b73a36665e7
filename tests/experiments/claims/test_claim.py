import json
import math

import numpy as np
import pytest

from fairduel.experiments.claims.claim import Claim, gaps, judged, smallest
from fairduel.experiments.comparing import gap
from fairduel.experiments.paper_setup import GREEDY, NO_ATTACK, paper_cell
from fairduel.stats import Mean
from helpers.planted import Planted

RCDB, CLEAN = paper_cell("rcdb", GREEDY), paper_cell("rcdb", NO_ATTACK)


@pytest.mark.parametrize(
    ("low", "high", "status"), [(0.1, 0.2, "holds"), (-0.2, -0.1, "does not hold"), (-0.1, 0.1, "undecided")]
)
def test_a_verdict_follows_from_the_interval(low, high, status):
    found = Mean((low + high) / 2, 0.01, low, high)
    assert judged("", "", "", found, above=0.0).status == status
    mirrored = Mean(-(low + high) / 2, 0.01, -high, -low)
    assert judged("", "", "", mirrored, below=0.0).status == status


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [(0.95, 1.05, "holds"), (1.2, 1.3, "does not hold"), (0.7, 0.8, "does not hold"), (0.8, 1.0, "undecided")],
)
def test_a_value_between_two_limits(low, high, status):
    found = Mean((low + high) / 2, 0.01, low, high)
    assert judged("", "", "", found, above=0.9, below=1.1).status == status


def test_what_cannot_fail_never_holds():
    assert judged("", "", "", Mean(1.0, 0.0, 1.0, 1.0), above=0.0, can_fail=False).status == "cannot fail"
    assert judged("", "", "", Mean(-1.0, 0.0, -1.0, -1.0), above=0.0, can_fail=False).status == "does not hold"


def test_a_label_of_the_paper_gets_its_number():
    found = Mean(1.0, 0.0, 1.0, 1.0)
    assert judged("", "proof of Theorem new, Lemma r", "", found).source == "proof of Theorem 6.1 (new), Lemma A.1 (r)"
    assert judged("", "Figure 1", "", found).source == "Figure 1"


def test_one_run_decides_nothing():
    assert judged("", "", "", Mean(5.0, math.nan, math.nan, math.nan), above=0.0).status == "undecided"


def test_numbers_are_there_for_programs():
    numbers = judged("", "", "", Mean(2.0, 0.5, 1.0, 3.0), above=0.0, rival="colstim").numbers
    assert numbers == {"value": 2.0, "error": 0.5, "low": 1.0, "high": 3.0, "above": 0.0, "rival": "colstim"}
    json.dumps(numbers, allow_nan=False)


def test_a_gap_is_of_the_first_over_the_second():
    evidence = Planted(lambda cell: 900.0 if cell == RCDB else 400.0)
    assert gap(evidence, RCDB, CLEAN).low > 490
    assert gap(evidence, CLEAN, RCDB).high < -490


def test_several_gaps_have_wider_intervals_than_one():
    evidence = Planted(lambda cell: 900.0 if cell == RCDB else 400.0)
    one = gap(evidence, RCDB, CLEAN)
    three = gaps(evidence, dict.fromkeys("abc", (RCDB, CLEAN)))["a"]
    assert three.low < one.low < one.high < three.high


def test_the_smallest_is_below_all_others_at_both_ends():
    found = {"near": Mean(3.0, 0.1, 2.8, 3.2), "noisy": Mean(5.0, 3.0, -1.0, 11.0)}
    key, least = smallest(found)
    assert key == "noisy"  # the lowest end decides, not the lowest mean
    assert (least.value, least.low, least.high) == (3.0, -1.0, 3.2)


def test_the_one_that_breaks_a_claim_is_named():
    found = {"noisy": Mean(1.0, 3.0, -5.0, 7.0), "broken": Mean(-2.0, 0.5, -3.0, -1.0)}
    key, least = smallest(found)
    assert key == "broken"
    assert (least.low, least.high) == (-5.0, -1.0)


def test_claims_with_long_runs_are_judged_on_fewer():
    seeds = range(100)
    assert list(Claim(lambda _: [], one_in=20).seeds(seeds)) == [0, 1, 2, 3, 4]
    assert list(Claim(lambda _: []).seeds(seeds)) == list(seeds)
    assert list(Claim(lambda _: [], one_in=20).seeds(range(10))) == [0, 1]  # one run would have no error


def test_lock_ins_widen_the_gap():
    """Two locked-in runs of 100: a Student's interval of the same numbers would be far too narrow."""
    cost = np.where(np.arange(100) < 2, 14_000.0, 0.0)
    evidence = Planted(lambda cell: 500.0 + (cost if cell == RCDB else 0.0), runs_locked_in=2)
    found = gap(evidence, RCDB, CLEAN)
    assert found.value == pytest.approx(280, abs=20)
    assert found.high > 0.07 * 14_000  # 2 of 100 may be 7 %
