"""Our own claims can fail, like the paper's."""

import pytest

from fairduel.experiments.claims import ours
from fairduel.experiments.competition import Contender
from fairduel.experiments.paper_setup import BUDGET_UNKNOWN
from helpers.planted import Planted, statuses


def by_agent(high=1000.0, **regret):
    return Planted(lambda cell: regret.get(cell.agent, high))


@pytest.mark.parametrize("known", [{}, BUDGET_UNKNOWN])
@pytest.mark.parametrize("rival", ours.RIVALS)
def test_sceptic_against_a_rival(rival, known):
    claim = ours.sceptic_ahead(rival, known)
    assert statuses(claim, by_agent(sceptic=500.0)) == ["holds"]
    assert statuses(claim, by_agent(sceptic=2000.0)) == ["does not hold"]
    assert statuses(claim, by_agent(sceptic=1000.0)) == ["undecided"]
    for cell in claim.cells:
        cell.check()
    assert {bool(cell.agent_settings.get("known_budget", True)) for cell in claim.cells} == {not known}


def test_one_scenario_counts_as_much_as_another():
    claim = ours.sceptic_ahead(Contender("hcw"), {})

    def regret(cell):
        base = 10_000.0 if cell.horizon == 8000 else 1000.0
        return base * (0.9 if cell.agent == "sceptic" and cell.horizon != 8000 else 1.0)

    [verdict] = claim.judge(Planted(regret))
    assert verdict.status == "holds"  # although the total regret hardly differs
    assert verdict.numbers["value"] == pytest.approx(22 / 23 * -0.10536, abs=0.001)


def test_constants_were_chosen_on_no_scenario_of_our_claims():
    assert {scenario.half for scenario in ours.HELD_OUT} == {"held-out"}


def test_robustness_has_a_price_or_it_has_none():
    claim = ours.robustness_has_a_price()
    assert statuses(claim, by_agent(high=500.0, rcdb=900.0)) == ["holds"]
    assert statuses(claim, by_agent(high=500.0, rcdb=900.0, maxinp=1200.0)) == ["does not hold"]


def test_lazy_estimates():
    def planted(ratio):
        return Planted(lambda cell: 500.0 * (ratio if cell.agent_settings else 1.0))

    claim = ours.lazy_estimates_are_cheap()
    assert statuses(claim, planted(1.03)) == ["holds"]
    assert statuses(claim, planted(1.2)) == ["does not hold"]
