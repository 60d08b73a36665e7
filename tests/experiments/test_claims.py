from dataclasses import replace

import numpy as np
import pytest

from fairduel.experiments import claims
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, paper_cell
from fairduel.experiments.proof_audit import audit

SMALL = {"horizon": 300, "world_settings": {"dimension": 3, "norm": 2.0}}


@pytest.mark.parametrize("attack", [GREEDY, ADVERSARIAL])
def test_the_proofs_inequalities_hold_at_the_theory_radius(attack):
    found = audit(paper_cell("rcdb", attack, {"radius": "theory"}, budget=17, **SMALL), seed=0)
    assert 0 < found.confidence <= 1
    assert 0 < found.round_regret <= 1
    assert 0 < found.potential <= 1
    assert 0 < found.corruption <= 1
    assert 0 < found.regret <= 1


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_an_audit_sees_a_radius_that_is_too_small():
    settings = {"radius": "theory", "radius_scale": 0.003}
    found = audit(paper_cell("rcdb", ADVERSARIAL, settings, budget=17, **SMALL), seed=0)
    assert found.confidence > 1


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_an_audit_sees_more_corruption_than_the_trust_allows():
    """Trust ten times too large for the budget: the weights no longer bound the flips by αC of the theorem."""
    cell = paper_cell("rcdb", ADVERSARIAL, {"radius": "theory"}, budget=17, **SMALL)
    honest = audit(cell, seed=0)
    deceived = audit(replace(cell, agent_settings={"radius": "theory", "flip_budget": 1}), seed=0)
    assert deceived.corruption > 1 > honest.corruption


@pytest.mark.parametrize(
    ("low", "high", "status"), [(0.1, 0.2, "holds"), (-0.2, -0.1, "does not hold"), (-0.1, 0.1, "undecided")]
)
def test_a_verdict_follows_from_the_interval(low, high, status):
    assert claims._decide(low, high, 0.0) == status


def test_an_inequality_that_breaks_once_does_not_hold():
    assert claims._inequality("x", "y", [0.5, 0.9]).status == "holds"
    assert claims._inequality("x", "y", [0.5, 1.1]).status == "does not hold"


def test_the_bootstrap_resamples_whole_rows():
    rows = np.arange(12.0).reshape(4, 3)
    means = claims._bootstrap(rows, lambda sample: float(np.ptp(sample[:, 1] - sample[:, 0])), times=20)
    assert (means == 0).all()
