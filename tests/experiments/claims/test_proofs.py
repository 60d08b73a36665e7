import pytest

from fairduel.experiments.claims import proofs
from fairduel.experiments.proof_audit import Inequality, audit
from helpers.planted import Planted, statuses


def audited(ratio=0.5, reach=2.0, broken=0.0):
    return Planted(1.0, inequality=Inequality(ratio, reach), broken=broken)


@pytest.mark.parametrize(
    "claim", [proofs.linear_link, proofs.sigmoid_link, proofs.tolerance_is_enough, proofs.sigmoid_agent]
)
def test_inequalities_hold_fail_or_cannot_fail(claim):
    assert set(statuses(claim(), audited())) == {"holds"}
    assert set(statuses(claim(), audited(broken=0.5))) == {"does not hold"}
    assert set(statuses(claim(), audited(broken=0.05))) == {"undecided"}
    assert set(statuses(claim(), audited(reach=0.9))) == {"cannot fail"}


def test_a_few_runs_do_not_show_95_percent():
    evidence = audited()
    evidence.seeds = 5
    assert statuses(proofs.sigmoid_link(), evidence) == ["undecided"]


def test_what_is_true_of_any_run_is_said_to_be():
    """With real audits, the two deterministic lemmas cannot fail, and the others can."""
    cell = proofs.theory_cell("rcdb", proofs.PAPER_ATTACKS[2], proofs.LINEAR, 20, horizon=3000)
    found = audit(cell, seed=0)
    assert {name for name, each in found.items() if each.reach <= 1} == {"potential", "corruption", "regret"}
    long = audit(proofs.theory_cell("rcdb", proofs.NO_ATTACK, proofs.LINEAR, 0, horizon=100_000), seed=0)
    assert long["regret"].reach > 1 > long["regret"].ratio
