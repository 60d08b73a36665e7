import pytest

from fairduel.experiments.claims import theorems
from helpers.planted import Planted, statuses


@pytest.mark.parametrize(("power", "status"), [(1.0, "holds"), (0.75, "does not hold"), (1.3, "does not hold")])
def test_linear_in_flips_by_theory(power, status):
    def regret(cell):
        return 300.0 + (20.0 * cell.budget**power if cell.budget else 0.0)

    assert statuses(theorems.linear_in_flips_by_theory(), Planted(regret, noise=2.0)) == [status]


@pytest.mark.parametrize(("power", "status"), [(0.5, "holds"), (1.0, "does not hold")])
def test_rate_in_the_horizon(power, status):
    evidence = Planted(lambda cell: 20.0 * cell.horizon**power, noise=1.0)
    assert statuses(theorems.rate_in_horizon(), evidence) == [status]


@pytest.mark.parametrize(("power", "status"), [(0.5, "holds"), (2.0, "does not hold")])
def test_rate_in_the_dimension(power, status):
    evidence = Planted(lambda cell: 100.0 * cell.world_settings["dimension"] ** power, noise=1.0)
    assert statuses(theorems.rate_in_dimension(), evidence) == [status]
