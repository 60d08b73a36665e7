import math

import pytest

from fairduel.experiments.claims import lower_bound
from helpers.planted import Planted, statuses


def test_the_bounds_in_numbers():
    assert 5 * math.sqrt(2000) / lower_bound.stochastic_bound(5, 2000) == pytest.approx(57.9, abs=0.05)
    assert 8 * math.sqrt(1e9) / lower_bound.stochastic_bound(8, 10**9) == pytest.approx(57.66, abs=0.01)
    assert lower_bound.corrupted_bound(8, 50) == 12.5


@pytest.mark.parametrize("kappa", lower_bound.KAPPAS)
@pytest.mark.parametrize(("times", "status"), [(1.5, "cannot fail"), (0.7, "does not hold")])
def test_the_lower_bounds_are_checked_though_no_agent_can_break_them(kappa, times, status):
    def first(cell):
        return times * 5 * math.sqrt(cell.horizon) / 57.9 / kappa

    second = times * 12.5 / kappa
    assert statuses(lower_bound.first_instance(kappa), Planted(first, noise=0.01)) == [status]
    assert statuses(lower_bound.second_instance(kappa), Planted(second, noise=0.01)) == [status]


def test_one_horizon_below_the_bound_is_enough():
    def low_at_one(cell):
        return (0.5 if cell.horizon == 2000 else 3.0) * lower_bound.stochastic_bound(5, cell.horizon)

    assert statuses(lower_bound.first_instance(1.0), Planted(low_at_one, noise=0.01)) == ["does not hold"]


@pytest.mark.parametrize("kappa", lower_bound.KAPPAS)
def test_the_instances_are_the_proofs(kappa):
    cells = [*lower_bound.first_instance(kappa).cells, *lower_bound.second_instance(kappa).cells]
    for cell in cells:
        world = cell.start(seed=0)[1]
        assert str(world.link) == ("clipped-linear" if kappa == 1 else f"clipped-linear({kappa})")
    assert {cell.attack for cell in cells if cell.world == "hard-corrupted"} == {"hiding", "none"}
    assert {cell.attack for cell in cells if cell.world == "hard-stochastic"} == {"none"}


def test_what_the_adversary_adds_is_told():
    def hidden(cell):
        return 500.0 + (30.0 if cell.attack == "hiding" else 0.0)

    [verdict] = lower_bound.second_instance(1.0).judge(Planted(hidden, noise=0.01))
    assert verdict.numbers["added"] == pytest.approx(dict.fromkeys(lower_bound.LEARNERS, 30.0), abs=0.1)
