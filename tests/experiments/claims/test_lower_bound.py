import pytest

from fairduel.experiments.claims import lower_bound
from helpers.planted import Planted, statuses


@pytest.mark.parametrize("kappa", lower_bound.KAPPAS)
@pytest.mark.parametrize(("times", "status"), [(1.5, "holds"), (0.7, "does not hold")])
def test_the_lower_bounds(kappa, times, status):
    def first(cell):
        return times * lower_bound.stochastic_bound(5, cell.horizon) / kappa

    second = times * lower_bound.corrupted_bound(8, 50) / kappa
    tiny = {"noise": 0.01}
    assert statuses(lower_bound.first_instance(kappa), Planted(first, **tiny)) == [status] * 3
    assert statuses(lower_bound.second_instance(kappa), Planted(second, **tiny)) == [status] * 4


def test_one_horizon_below_the_bound_is_enough():
    def low_at_one(cell):
        return (0.5 if cell.horizon == 2000 else 3.0) * lower_bound.stochastic_bound(5, cell.horizon)

    evidence = Planted(low_at_one, noise=0.01)
    assert statuses(lower_bound.first_instance(1.0), evidence) == ["does not hold"] * 3
