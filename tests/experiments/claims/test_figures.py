"""Each judge of the figures' claims sees what was planted: the claim, its opposite, and a draw."""

import numpy as np
import pytest

from fairduel.experiments.claims import paper_figures
from fairduel.experiments.claims.paper_figures import ALWAYS_TRUSTED
from fairduel.experiments.paper_setup import GREEDY, paper_cell
from fairduel.experiments.tuning import published, tuning_problem
from helpers.planted import Planted, statuses

LOW, HIGH = 500.0, 1000.0


def by_agent(**regret):
    return Planted(lambda cell: regret.get(cell.agent, HIGH))


def test_rcdb_is_lowest_where_it_is():
    claim = paper_figures.lowest_under_each_attack()
    assert statuses(claim, by_agent(rcdb=LOW)) == ["holds"] * 4
    assert statuses(claim, by_agent(rcdb=2 * HIGH)) == ["does not hold"] * 4
    assert statuses(claim, by_agent(rcdb=HIGH)) == ["undecided"] * 4


@pytest.mark.parametrize("agent", ["maxpairucb", "maxinp", "colstim"])
def test_one_better_baseline_is_enough(agent):
    evidence = Planted(lambda cell: {"rcdb": LOW, agent: LOW - 100}.get(cell.agent, HIGH))
    assert statuses(paper_figures.lowest_under_each_attack(), evidence) == ["does not hold"] * 4


def test_a_noisy_baseline_with_a_large_mean_leaves_it_undecided():
    evidence = Planted(
        lambda cell: {"rcdb": LOW, "maxinp": LOW + 100}.get(cell.agent, HIGH),
        noise=lambda cell: 5000.0 if cell.agent == "colstim" else 10.0,
    )
    assert statuses(paper_figures.lowest_under_each_attack(), evidence) == ["undecided"] * 4


def test_colstim_as_the_strongest_competitor():
    claim = paper_figures.colstim_is_the_strongest_competitor()
    assert statuses(claim, by_agent(colstim=LOW)) == ["holds"] * 2
    assert statuses(claim, by_agent(colstim=2 * HIGH)) == ["does not hold"] * 2
    assert statuses(claim, by_agent(maxinp=LOW)) == ["does not hold"] * 2


def test_the_adversarial_attack_costs_more_for_all_or_it_does_not():
    claim = paper_figures.adversarial_attack_costs_most()
    assert statuses(claim, Planted(lambda cell: HIGH if cell.attack == "adversarial" else LOW)) == ["holds"]
    assert statuses(claim, Planted(lambda cell: LOW if cell.attack == "adversarial" else HIGH)) == ["does not hold"]

    def cheaper_for_one(cell):
        return LOW if (cell.attack == "adversarial") == (cell.agent == "maxinp") else HIGH

    assert statuses(claim, Planted(cheaper_for_one)) == ["does not hold"]


def test_colstim_as_the_most_misled():
    claim = paper_figures.colstim_is_the_most_misled()
    assert statuses(claim, by_agent(colstim=2 * HIGH)) == ["holds"]
    assert statuses(claim, by_agent(colstim=LOW)) == ["does not hold"]


def test_the_weight_lowers_regret_or_it_does_not():
    def planted(weighted, best, same_radius=3 * HIGH):
        def regret(cell):
            is_trusting = cell.agent_settings.get("trust") == ALWAYS_TRUSTED
            return best if cell.agent == "maxpairucb" else same_radius if is_trusting else weighted

        return Planted(regret)

    claim = paper_figures.weight_is_critical()
    assert statuses(claim, planted(LOW, HIGH)) == ["holds"] * 4
    assert statuses(claim, planted(HIGH, LOW)) == ["does not hold"] * 4  # whatever happens at RCDB's own radius
    assert statuses(claim, planted(HIGH, HIGH)) == ["undecided"] * 4
    verdict = next(iter(claim.judge(planted(LOW, HIGH))))
    assert verdict.numbers["value"] == pytest.approx(HIGH - LOW)
    assert verdict.numbers["at_the_same_radius"]["value"] == pytest.approx(3 * HIGH - LOW)


def test_without_weights_rcdb_is_maxpairucb():
    """So the ablation may use MaxPairUCB's tuned radius."""
    plain = paper_cell("maxpairucb", GREEDY, {"radius": 8.0}).run(seed=0).trace
    trusting = paper_cell("rcdb", GREEDY, {"radius": 8.0, "trust": ALWAYS_TRUSTED}).run(seed=0).trace
    assert np.array_equal(plain.first, trusting.first)
    assert np.array_equal(plain.second, trusting.second)


def test_without_weights_all_else_is_rcdb():
    """The ablation really has w ≡ 1, and RCDB's radius."""
    cell = paper_figures.weight_is_critical().cells[1]
    trace = cell.run(seed=0).trace
    assert (trace.weight == 1.0).all()
    agents = [paper_figures.weight_is_critical().cells[i].start(0)[0] for i in (0, 1)]
    assert agents[0].current_radius == agents[1].current_radius
    assert agents[0].settings["ridge"] == agents[1].settings["ridge"]


@pytest.mark.parametrize("warmup", [0, 160])
def test_one_setting_for_all_attacks(warmup):
    claim = paper_figures.one_setting_for_all_attacks(warmup)
    assert statuses(claim, by_agent(rcdb=LOW)) == ["holds"] * 3
    assert statuses(claim, by_agent(rcdb=2 * HIGH)) == ["does not hold"] * 3


def test_the_worst_attack_decides_and_no_other():
    def bad_under_one(cell):
        return (
            3 * HIGH if (cell.agent, cell.attack) == ("rcdb", "misleading") else (LOW if cell.agent == "rcdb" else HIGH)
        )

    assert statuses(paper_figures.one_setting_for_all_attacks(), Planted(bad_under_one)) == ["does not hold"] * 3


@pytest.mark.parametrize(
    ("power", "status"), [(1.0, "holds"), (0.88, "does not hold"), (1.12, "does not hold"), (0.52, "does not hold")]
)
def test_linear_means_an_exponent_of_one(power, status):
    claim = paper_figures.linear_in_flips()
    assert statuses(claim, Planted(lambda cell: 15.0 * cell.budget**power, noise=1.0)) == [status]


def test_lowest_at_every_number_of_flips_and_not_at_most_of_them():
    claim = paper_figures.lowest_at_every_number_of_flips()
    assert statuses(claim, by_agent(rcdb=LOW)) == ["holds"]

    def lost_once(cell):
        return 2 * HIGH if (cell.agent, cell.budget) == ("rcdb", 120) else (LOW if cell.agent == "rcdb" else HIGH)

    [verdict] = claim.judge(Planted(lost_once))
    assert verdict.status == "does not hold"
    assert (verdict.numbers["lowest_at"], verdict.numbers["not_lowest_at"]) == (9, 1)


def test_figure2_tells_rcdb_each_number_of_flips():
    cells = [*paper_figures.linear_in_flips().cells, *paper_figures.lowest_at_every_number_of_flips().cells]
    for cell in cells:
        if cell.agent == "rcdb":
            assert cell.start(seed=0)[0].settings["flip_budget"] == cell.budget
    assert {cell.budget for cell in cells} == set(range(20, 201, 20))


def test_tuned_is_the_setting_that_ships():
    cell = paper_figures.tuned("maxpairucb", GREEDY)
    assert cell.agent_settings == published(tuning_problem("maxpairucb", GREEDY, 0)).winner.settings == {"radius": 8.0}


def test_lock_ins_of_both_sides_widen_the_interval():
    """A few locked-in runs of RCDB, too, make a lead less certain."""
    cost = np.where(np.arange(100) < 2, 14_000.0, 0.0)
    planted = {"regret_of": lambda cell: LOW + cost if cell.agent == "rcdb" else HIGH + 300}
    unaware = Planted(**planted)
    aware = Planted(**planted, runs_locked_in=lambda cell: 2 if cell.agent == "rcdb" else 0)
    for claim in (paper_figures.lowest_under_each_attack(), paper_figures.one_setting_for_all_attacks()):
        for narrow, wide in zip(claim.judge(unaware), claim.judge(aware), strict=True):
            assert wide.numbers["low"] < narrow.numbers["low"]
