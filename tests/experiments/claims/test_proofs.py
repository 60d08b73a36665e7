import pytest

from fairduel.experiments.claims import proofs
from fairduel.experiments.claims.inequalities import Inequality, check_proof
from helpers.planted import Planted, statuses

CLAIMS = [proofs.linear_link, proofs.sigmoid_link, proofs.tolerance_is_enough, proofs.sigmoid_agent]


def audited(ratio=0.5, reach=2.0, **broken):
    return Planted(1.0, inequality=Inequality(ratio, reach), **broken)


@pytest.mark.parametrize("claim", CLAIMS)
def test_inequalities_hold_fail_or_cannot_fail(claim):
    assert set(statuses(claim(), audited())) == {"holds"}
    assert set(statuses(claim(), audited(broken=0.5))) == {"does not hold"}
    assert set(statuses(claim(), audited(broken=0.05))) == {"undecided"}
    assert set(statuses(claim(), audited(reach=0.9))) == {"cannot fail"}


@pytest.mark.parametrize(
    ("claim", "name", "source"),
    [
        (proofs.linear_link, "confidence", "Lemma 5.1 (MLE)"),
        (proofs.linear_link, "round_regret", "Lemma A.1 (r)"),
        (proofs.linear_link, "potential", "Lemma F.3 (abbasi)"),
        (proofs.linear_link, "corruption", "eq. I20"),
        (proofs.linear_link, "regret", "Theorem 5.3 (main)"),
        (proofs.sigmoid_link, "regret", "Theorem 5.3 (main)"),
        (proofs.tolerance_is_enough, "regret", "Theorem 5.5 (unknown), C ≤ C̄"),
        (proofs.sigmoid_agent, "confidence", "Lemma C.1 (cE)"),
        (proofs.sigmoid_agent, "local_confidence", "Lemma C.1 (cE)"),
        (proofs.sigmoid_agent, "slope", "proof of Theorem 6.1 (new)"),
    ],
)
def test_each_verdict_looks_at_its_own_inequality(claim, name, source):
    verdicts = claim().judge(audited(broken=0.5, broken_name=name))
    assert [verdict.source for verdict in verdicts if verdict.status == "does not hold"] == [source]


def test_a_seed_fails_if_one_of_its_attacks_does():
    """The cells of a seed share their world: they are one observation, not five."""
    evidence = audited(broken=0.5, broken_name="regret", broken_in=lambda cell: cell.attack == "misleading")
    [verdict] = [v for v in proofs.linear_link().judge(evidence) if v.source == "Theorem 5.3 (main)"]
    assert verdict.status == "does not hold"
    assert verdict.numbers["seeds"] == 100
    assert verdict.numbers["value"] == 0.5


def test_only_seeds_on_which_it_could_fail_count():
    class Half(Planted):
        def inequalities(self, cell):
            done = super().inequalities(cell)
            return [dict.fromkeys(each, Inequality(0.5, 0.9)) if seed % 2 else each for seed, each in enumerate(done)]

    [verdict] = proofs.sigmoid_link().judge(Half(1.0, inequality=Inequality(0.5, 2.0), broken=0.6))
    assert verdict.numbers["seeds"] == 50
    assert verdict.numbers["value"] == pytest.approx(0.4)


def test_a_few_runs_do_not_show_95_percent():
    assert statuses(proofs.sigmoid_link(), Planted(1.0, seeds=71)) == ["undecided"]
    assert statuses(proofs.sigmoid_link(), Planted(1.0, seeds=72)) == ["holds"]


def test_the_published_parameters_are_used_unscaled():
    for claim in CLAIMS:
        for cell in claim().checked:
            agent = cell.start(seed=0)[0]
            assert agent.failure_probability == 0.05
            assert (agent.radius, agent.radius_scale) == ("theory", 1.0)
            assert agent.settings["design"] == "kappa"
    flips = [(cell.budget, cell.start(0)[0].settings["flip_budget"]) for cell in proofs.tolerance_is_enough().checked]
    assert flips == [(0, 50), (25, 50), (50, 50)]


def test_what_is_true_of_any_run_is_said_to_be():
    """With real audits, the two deterministic lemmas cannot fail, and the others can."""
    short = check_proof(proofs.theory_cell("rcdb", proofs.ADVERSARIAL, proofs.LINEAR, 20, horizon=3000), seed=0)
    assert {name for name, each in short.items() if each.reach <= 1} == {"potential", "corruption", "regret"}
    long = check_proof(proofs.theory_cell("rcdb", proofs.NO_ATTACK, proofs.LINEAR, 0, horizon=100_000), seed=0)
    assert long["regret"].reach > 1 > long["regret"].ratio
