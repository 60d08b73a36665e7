import math

import pytest

from fairduel.experiments.claims import theorems
from helpers.planted import Planted, statuses


@pytest.mark.parametrize(("power", "status"), [(1.0, "holds"), (0.75, "holds"), (1.15, "does not hold")])
def test_flips_add_at_most_linearly(power, status):
    def regret(cell):
        return 300.0 + (20.0 * cell.budget**power if cell.budget else 0.0)

    assert statuses(theorems.linear_in_flips_by_theory(), Planted(regret, noise=2.0)) == [status]


def test_rcdb_s_in_flips():
    claim = theorems.theorem_claims()[-1]
    assert {cell.agent for cell in claim.cells} == {"rcdb-s"}
    assert {cell.attack for cell in claim.cells} == {"adversarial"}
    assert statuses(claim, Planted(lambda cell: 15.0 * cell.budget, noise=1.0)) == ["holds"]
    assert statuses(claim, Planted(lambda cell: 15.0 * cell.budget**1.2, noise=1.0)) == ["does not hold"]


@pytest.mark.parametrize(("power", "status"), [(0.5, "holds"), (0.6, "holds"), (0.66, "does not hold")])
def test_rate_in_the_horizon(power, status):
    """The bound itself grows as T^0.628 over this range."""
    evidence = Planted(lambda cell: 20.0 * cell.horizon**power, noise=0.1)
    assert statuses(theorems.rate_in_horizon(), evidence) == [status]


def test_the_rate_in_the_horizon_is_under_attack():
    cells = theorems.rate_in_horizon().cells
    assert [(cell.attack, cell.budget) for cell in cells] == [
        ("adversarial", math.ceil(math.sqrt(horizon))) for horizon in (10_000, 30_000, 100_000, 300_000)
    ]


@pytest.mark.parametrize(("power", "status"), [(0.5, "holds"), (0.9, "holds"), (1.05, "does not hold")])
def test_rate_in_the_dimension(power, status):
    """The bound itself grows as d^0.94 over this range."""
    evidence = Planted(lambda cell: 1000.0 * cell.world_settings["dimension"] ** power, noise=0.1)
    assert statuses(theorems.rate_in_dimension(), evidence) == [status]


def test_the_worst_norm_of_each_dimension_counts():
    def one_bad_norm(cell):
        return 5000.0 if cell.world_settings == cell.world_settings | {"dimension": 5, "norm": 1 / 8} else 500.0

    assert statuses(theorems.rate_in_dimension(), Planted(one_bad_norm, noise=0.1)) == ["does not hold"]


def test_the_agent_is_told_the_same_bound_at_every_norm():
    assert {cell.start(seed=0)[0].norm_bound for cell in theorems.rate_in_dimension().cells} == {0.25}
