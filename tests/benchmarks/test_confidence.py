import numpy as np
import pytest

from benchmarks import confidence
from fairduel.experiments.paper_setup import NO_ATTACK, paper_cell


@pytest.mark.parametrize(("agent", "ridge", "radius"), [("rcdb", 0.25, 5**0.5), ("sceptic", 16.0, 0.8)])
def test_at_first_only_the_prior_separates_the_estimate_from_the_truth(agent, ridge, radius):
    """θ_1 = 0 and ‖θ*‖ = 2, so the ratio is 2√λ/β."""
    found = confidence.ratios(paper_cell(agent, NO_ATTACK, horizon=3), seed=0, start=None)
    assert found[0] == pytest.approx(2.0 * ridge**0.5 / radius)


@pytest.mark.parametrize("agent", confidence.WATCHED)
def test_the_attack_pushes_the_estimate_away_and_not_before_its_start(agent):
    cell = paper_cell(agent, NO_ATTACK, horizon=300)
    for seed in range(3):
        honest, attacked = (confidence.ratios(cell, seed, start) for start in (None, 100))
        assert np.array_equal(honest[:100], attacked[:100])
        assert attacked.max() > 1.1 * honest[99:].max()
