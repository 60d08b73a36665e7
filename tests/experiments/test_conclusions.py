"""Conclusions follow the measured numbers: made-up results that differ flip the sentence."""

import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fairduel.experiments import EXPERIMENTS, table1_growth
from fairduel.experiments.board_advice import board_conclusions
from fairduel.experiments.claims import Judgement, verify_conclusions
from fairduel.experiments.claims.claim import BEYOND, OURS
from fairduel.experiments.comparing import comparison, lowest_by_panel
from fairduel.experiments.competition import Best, Board, Contender, Scenario, standing_of
from fairduel.experiments.experiment import Results
from fairduel.experiments.tuning import Trial, Tuned
from fairduel.simulation import Cell
from fairduel.stats import Mean, mean


def made_up(experiment, regret, runs=10, noise=1.0, seconds=lambda _: 1.0, is_best=lambda _: True):
    """Results whose mean regret is ``regret(entry)``."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "entry": index,
            "seed": seed,
            "regret": regret(entry) + noise * rng.normal(),
            "locked_in": False,
            "seconds": seconds(entry),
            "recommended_best": float(is_best(entry)),
            "recommendation_regret": 0.1,
        }
        for index, entry in enumerate(experiment.entries)
        for seed in range(runs)
    ]
    return Results(experiment, list(range(runs)), pl.DataFrame(rows), pl.DataFrame())


def compared(*agents):
    return comparison([Cell(agent, "greedy", budget=45, horizon=2000) for agent in agents])


def starting_with(sentences, start):
    return [sentence for sentence in sentences if sentence.startswith(start)]


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("runs", [1, 3])
def test_every_experiment_has_conclusions_without_nan(name, runs):
    found = made_up(EXPERIMENTS[name](), lambda entry: 100.0 + (entry.x or 0.0), runs).conclusions
    assert len(found) > 1
    assert not any("nan" in sentence for sentence in found)
    assert all(sentence.endswith(".") for sentence in found)
    assert found[-1].startswith(f"{runs} run")


@pytest.mark.parametrize(("best", "title", "second"), [("rcdb", "RCDB", "CoLSTIM"), ("colstim", "CoLSTIM", "RCDB")])
def test_the_agent_with_the_lowest_regret_is_named(best, title, second):
    results = made_up(compared("rcdb", "colstim"), lambda entry: 100.0 if entry.cell.agent == best else 200.0)
    answer, basis = results.conclusions
    assert answer.startswith(
        f"Greedy attack: {title} (default) has the lowest regret, 100 ± 0; {second} (default) is next"
    )
    assert basis.startswith("10 runs each (seeds 0–9)")


def test_a_world_without_attack_is_called_so():
    cells = [Cell(agent, "none", budget=0, horizon=2000) for agent in ("rcdb", "colstim")]
    assert made_up(comparison(cells), lambda _: 100.0).conclusions[0].startswith("No attack: ")
    problem = Cell("rcdb", "none", budget=0, horizon=2000)
    found = Tuned(problem, (0, 1), [Trial({}, 1.0, 0.1)]).conclusion
    assert found.startswith("RCDB, no attack, C = 0, T = 2,000: ")


def test_a_difference_within_the_noise_is_not_called_significant():
    [answer, _] = made_up(compared("rcdb", "colstim"), lambda _: 100.0, noise=10.0).conclusions
    assert "but not significantly lower than" in answer


def test_one_run_decides_nothing():
    regret = {"rcdb": 100.0, "colstim": 200.0}
    answer, basis = made_up(compared(*regret), lambda entry: regret[entry.cell.agent], runs=1).conclusions
    assert "RCDB (default) has the lowest mean regret, 100, but not significantly lower than CoLSTIM" in answer
    assert "no difference is significant" in basis


def test_a_rare_lock_in_counts_as_uncertainty():
    results = made_up(compared("rcdb", "colstim"), lambda entry: 100.0 if entry.cell.agent == "rcdb" else 130.0)
    assert "has the lowest regret" in results.conclusions[0]
    once = pl.col("entry").eq(0) & pl.col("seed").eq(0)
    locked = results.runs.with_columns(
        pl.when(once).then(350.0).otherwise(pl.col("regret")).alias("regret"), once.alias("locked_in")
    )
    assert "but not significantly lower" in replace(results, runs=locked).conclusions[0]


@pytest.mark.parametrize(("better", "more", "less"), [("by votes", "2 of", "none of"), ("by its", "none of", "2 of")])
def test_recommendations_by_votes_are_compared_with_those_by_estimates(better, more, less):
    def is_best(entry):
        return "200 lies last" not in entry.panel or entry.setting.startswith(better)

    found = made_up(EXPERIMENTS["recommendation"](), lambda _: 100.0, is_best=is_best).conclusions
    shares = ("100%", "83%") if better == "by votes" else ("83%", "100%")
    assert f"{shares[0]} of all runs by votes and in {shares[1]} by its estimate." in found[0]
    assert f"significantly more often in {more} 12 panels" in found[1]
    assert f"significantly less often in {less} 12 panels" in found[1]
    assert f"{'100%' if better == 'by votes' else '0%'} for RCDB (" in found[2]


def test_the_parts_of_sceptic_are_judged_at_the_best_radius_of_each_form():
    def regret(entry):
        if entry.setting == "prior of RCDB":
            return 100.0
        if entry.setting == "pair of RCDB":
            return 150.0 if entry.x == 1.6 else 1000.0
        return 100.0 if entry.setting == "complete" and entry.x == 0.8 else 300.0

    found = made_up(EXPERIMENTS["sceptic"](), regret, noise=0.1).conclusions
    assert "pair of RCDB 1.50 [1.50, 1.50]; regret not squared 3.00 [3.00, 3.00]" in found[0]
    assert "all votes trusted alike 3.00" in found[0]
    assert found[1] == "Not shown to reduce regret here: “prior of RCDB”."


@pytest.mark.parametrize(("worst", "won", "lost"), [(200.0, "6 of 6", "none of 6"), (50.0, "none of 6", "6 of 6")])
def test_figure1_says_where_rcdb_beats_every_tuned_baseline(worst, won, lost):
    def regret(entry):
        return 100.0 if entry.cell.agent.startswith("rcdb") else worst

    results = made_up(EXPERIMENTS["figure1"](), regret)
    answer, _, _ = results.conclusions
    panels = lowest_by_panel(results)
    assert len(panels) == 6
    assert all(row[1].startswith("RCDB") == (worst > 100.0) for row in panels)
    assert f"lower regret than every tuned baseline in {won} panels" in answer
    assert f"significantly higher regret than at least one in {lost} panels" in answer
    assert "; none are undecided with 10 runs." in answer


@pytest.mark.parametrize(("power", "words"), [(1.0, "close to"), (0.5, "slower than"), (1.5, "faster than")])
def test_figure2_compares_growth_with_linear(power, words):
    growth, others, lowest, _ = made_up(EXPERIMENTS["figure2"](), lambda entry: 100.0 * entry.x**power).conclusions
    assert growth.startswith(f"Greedy: the regret of RCDB (practical) grows as C^{power:.2f} [")
    assert growth.endswith(f"({words} linear).")
    assert f"({words} linear) for RCDB-S (practical)" in others
    assert "has the lowest mean regret at " in lowest
    assert " of 10 values of C (" in lowest


def test_growth_that_noise_hides_is_only_consistent():
    growth, *_ = made_up(EXPERIMENTS["figure2"](), lambda entry: 10.0 * entry.x, runs=3, noise=100.0).conclusions
    assert "consistent with linear" in growth


def test_growth_is_undefined_where_a_run_has_no_regret():
    growth, *_ = made_up(EXPERIMENTS["figure2"](), lambda _: 0.0, noise=0.0).conclusions
    assert "RCDB (practical) grows as C^? (undefined: a run has no regret)." in growth


@pytest.mark.parametrize("name", ["dimension", "horizon"])
def test_growth_names_the_symbol_and_the_lowest(name):
    rate = {"dimension": 1.0, "horizon": 0.5}[name]
    factor = {"rcdb": 100.0, "rcdb-s": 90.0, "maxpairucb": 120.0}
    experiment = EXPERIMENTS[name]()
    found = made_up(experiment, lambda entry: factor[entry.cell.agent] * entry.x**rate, noise=0.01).conclusions
    symbol, rate_name, count = {"dimension": ("d", "linear", 4), "horizon": ("T", "√T", 6)}[name]
    assert f"{symbol}^{rate:.2f} [{rate:.2f}, {rate:.2f}] (close to {rate_name})." in found[0]
    assert (
        f"RCDB-S (practical) has the lowest mean regret at {count} of {count} values of {symbol} ({count} sig"
        in found[2]
    )


def test_radius_states_the_price_of_theory():
    def regret(entry):
        return {"theory": 500.0, "practical": 100.0}.get(entry.setting, 300.0)

    found = made_up(EXPERIMENTS["radius"](), regret, noise=0.01).conclusions
    price = "the theorem's radius multiplies the practical radius's regret by 5.00 [5.00, 5.00] for RCDB and by 5.00"
    assert found[0].startswith(f"Greedy: {price}")


@pytest.mark.parametrize(("local", "lower", "higher"), [(50.0, 5, 0), (200.0, 0, 5)])
def test_sigmoid_says_who_is_ahead_at_how_many_norms(local, lower, higher):
    results = made_up(EXPERIMENTS["sigmoid"](), lambda e: local if e.cell.agent == "rcdb-s" else 100.0, noise=0.01)
    answer = results.conclusions[0]
    assert f"at {lower} of 5 values of B, significantly higher at {higher}." in answer
    ratio = f"{100 / local:.2f}"
    assert f"is {ratio} [{ratio}, {ratio}] at B = 1 and {ratio} [{ratio}, {ratio}] at B = 5." in answer


def test_tolerance_names_the_best_tolerance_of_each_agent_and_its_price():
    def regret(entry):  # nothing is gained beyond 45, and every tolerance costs
        x = 0.0 if entry.x is None else entry.x
        return 100.0 + x if entry.panel == "no attack" else 900.0 - min(x, 45.0) + x / 100

    answers = made_up(EXPERIMENTS["tolerance"](), regret, noise=0.01).conclusions
    assert answers[0].startswith("Adversarial: the lowest regret of any tolerance is 855 ± 0 for Sceptic at C̄ = 45")
    assert answers[1].count("at C̄ = 45, which costs 1.45 [1.45, 1.45] without an attack") == 5


@pytest.mark.parametrize(("sign", "best"), [(1.0, "0.1"), (-1.0, "4")])
def test_unknown_budget_names_the_best_tolerance(sign, best):
    results = made_up(EXPERIMENTS["unknown-budget"](), lambda entry: 100.0 * entry.x**sign, noise=0.01)
    lowest, ratios, *_ = results.conclusions
    assert f"{2**sign:.2f} [{2**sign:.2f}, {2**sign:.2f}] at 2C" in ratios
    assert lowest == f"Greedy: mean regret is lowest at C̄ = {best}C."


def test_estimators_state_regret_and_time_next_to_exact():
    regret = {"exact": 100.0, "lazy": 100.0, "one-pass": 120.0}
    seconds = {"exact": 1.0, "lazy": 0.5, "one-pass": 0.1}
    experiment = EXPERIMENTS["estimators"]()
    results = made_up(experiment, lambda e: regret[e.setting], seconds=lambda e: seconds[e.setting])
    lazy, one_pass, _ = results.conclusions
    assert lazy.endswith("(significantly more in 0, less in 0); the median run takes 0.50 times as long.")
    assert one_pass.endswith("(significantly more in 12, less in 0); the median run takes 0.10 times as long.")


@pytest.mark.parametrize("name", ["rcdp", "post-serving"])
@pytest.mark.parametrize(
    ("robust", "rival", "noise", "words"),
    [
        (80.0, 100.0, 0.01, "RCDB beats RCDP-UCB; the ratio of their regrets is 0.80"),
        (100.0, 80.0, 0.01, "RCDP-UCB beats RCDB; the ratio of their regrets is 1.25"),
        (80.0, 100.0, 99.0, "neither of RCDB and RCDP-UCB beats the other; the ratio of their regrets is "),
    ],
)
def test_rcdp_says_who_beats_whom(name, robust, rival, noise, words):
    regret = {"rcdb": robust, "rcdp": rival}
    results = made_up(EXPERIMENTS[name](), lambda entry: regret.get(entry.cell.agent, 900.0), noise=noise)
    found = results.conclusions
    answers = starting_with(found, "Strategic delay, likely outcomes flipped: ")
    assert words in answers[0]
    panels = {entry.panel for entry in results.experiment.entries}
    assert sum(words in sentence for sentence in found) == len(panels) == {"rcdp": 4, "post-serving": 1}[name]


def test_rcdp_sets_the_published_values_beside_half_the_regret():
    regret = {"rcdp": 1000.0, "rcdb": 800.0, "random-pairs": 3000.0}

    def of(entry):
        return regret.get(entry.cell.agent, 2000.0)

    found = made_up(EXPERIMENTS["rcdp"](), of, noise=0.01).conclusions
    [stochastic, strategic] = [sentence for sentence in found if "halved, as in Oh 2026" in sentence]
    assert stochastic.startswith("Stochastic delay, likely outcomes flipped: ")
    assert strategic.startswith("Strategic delay, likely outcomes flipped: ")
    assert "RCDP-UCB (as published) 500 [500, 500], published ≈ 480;" in strategic
    assert "MaxPairUCB (default) 1,000 [1,000, 1,000], published ≈ 1,315;" in strategic
    assert "Random pairs (default) 1,500 [1,500, 1,500];" in strategic
    assert strategic.endswith("RCDB (C unknown) 400 [400, 400].")  # without a published value


# ---------------------------------------------------------------------- other results


KINDS = {
    "no attack": {"attack": "none", "budget": 0},
    "greedy": {"attack": "greedy"},
    "short": {"attack": "greedy", "horizon": 500, "half": "held-out"},
    "fresh": {"attack": "greedy", "world": "fresh", "half": "held-out"},
}
NOT_TOLD = ", C unknown"


def board_of(ratios, noise=0.02):
    """A board of agents with about these ratios in the scenarios of ``KINDS``; they share nothing but their seeds."""
    rng = np.random.default_rng(0)
    scenarios = [Scenario(**{"title": title, "half": "tuning", **kind}) for title, kind in KINDS.items()]
    best = {title: Best(Contender("rcdb"), mean(np.full(2, 100.0)), np.full(10, 100.0)) for title in KINDS}
    advice = dict.fromkeys(("recommended_best", "recommendation_regret"), mean(np.ones(10)))
    standings = []
    for name, values in ratios.items():
        known = {"known_budget": False} if name.endswith(NOT_TOLD) else {}
        contender = Contender(name.removesuffix(NOT_TOLD), known)
        regret = {
            title: 100.0 * value * rng.lognormal(0.0, noise, 10)
            for title, value in zip(KINDS, values, strict=True)
            if value
        }
        standings.append(standing_of(contender, scenarios, regret, best, advice))
    return Board(scenarios, sorted(standings, key=lambda standing: standing.overall.worst.value), best)


def test_the_leaderboard_recommends_the_smallest_risk():
    ratios = {"maxinp": [1.5, 2.0, 2.0, 2.0], "colstim": [1.0, 1.0, 1.0, 3.0]}
    found = board_conclusions(board_of(ratios))
    assert found[0].startswith("Use MaxInP: its worst ratio, 2.0")
    assert "is the lowest of 2 agents, clearly; its geometric mean is 1.8" in found[0]
    assert found[1].startswith("On held-out scenarios alone its worst ratio is 2.0")
    assert "also the lowest" in found[1]
    assert found[2].startswith("On average CoLSTIM does better, with 0.7")
    assert "but risks a ratio of 3.0" in found[2]
    assert found[-1].startswith("10 runs per agent and scenario")
    ratios["colstim"] = [1.0, 1.0, 1.0, 1.5]
    found = board_conclusions(board_of(ratios))
    assert found[0].startswith("Use CoLSTIM: its worst ratio, 1.5")
    assert not starting_with(found, "On average")
    assert starting_with(found, "No agent is clearly better than CoLSTIM in any of 4 scenarios.")


def test_the_leaderboard_calls_no_lead_clear_that_could_be_chance():
    found = board_conclusions(board_of({"maxinp": [1.0, 2.0, 1.0, 1.0], "colstim": [1.0, 2.1, 1.0, 1.0]}, noise=0.5))
    assert ", though not clearly lower than that of " in found[0]
    one = board_conclusions(board_of({"maxinp": [1.0, 2.0, 1.0, 1.0], "colstim": [1.0, 2.1, 1.0, 1.0]}, noise=0.001))
    assert "MaxInP" in one[0]
    assert ", clearly;" in one[0]


def test_the_leaderboard_says_who_leads_where_no_constants_were_chosen():
    found = board_conclusions(board_of({"maxinp": [1.0, 1.0, 1.0, 2.0], "colstim": [1.0, 3.0, 1.0, 1.5]}))
    assert found[0].startswith("Use MaxInP")
    assert ", that of CoLSTIM is lower, 1.5" in found[1]


def test_the_leaderboard_says_what_knowing_c_is_worth():
    ratios = {"rcdb": [1.0, 1.5, 1.5, 1.5], "rcdb, C unknown": [2.0, 2.0, 2.0, 2.0], "maxinp": [3.0, 3.0, 3.0, 3.0]}
    found = board_conclusions(board_of(ratios))
    assert found[0].startswith("If C is unknown, use RCDB, C unknown: its worst ratio, 2.0")
    assert "the lowest of 2 agents, clearly" in found[0]
    [told] = starting_with(found, "If C is known, RCDB, C known has the lowest worst ratio, 1.5")
    assert "clearly lower than that of RCDB, C unknown; its geometric mean is 1.3" in told
    ratios["rcdb"] = [2.5, 2.5, 2.5, 2.5]
    [told] = starting_with(board_conclusions(board_of(ratios)), "If C is known")
    assert "), clearly higher than that of RCDB, C unknown" in told


def test_the_leaderboard_says_when_another_agent_is_better():
    ratios = {"maxinp": [2.0, 2.0, 2.0, 2.0], "colstim": [1.0, 2.5, 2.0, 2.1], "ginop": [2.0, 2.5, 1.5, 2.1]}
    found = board_conclusions(board_of(ratios))
    assert starting_with(found, "If nobody lies, CoLSTIM is better: 0.5")[0].endswith("times its regret (1 scenario).")
    assert starting_with(found, "If the horizon is short (T ≤ 500), GINOP (adapted) is better: 0.7")
    assert starting_with(found, "No agent is clearly better than MaxInP if actions change every round.")
    [lost] = starting_with(found, "MaxInP is clearly beaten in 2 of 4 scenarios, most in no attack, where CoLSTIM has ")
    assert re.search(r"has 0\.[45]\d \[0\.[45]\d, 0\.5\d\] times its regret\.$", lost)
    ratios["colstim"][0] = 2.2
    found = board_conclusions(board_of(ratios))
    assert starting_with(found, "No agent is clearly better than MaxInP if nobody lies; if actions change every round.")


def test_the_leaderboard_says_who_is_worse_than_random_pairs():
    ratios = {"maxinp": [1.0, 1.0, 1.0, 1.0], "colstim": [1.0, 5.0, 5.0, 2.0], "random-pairs": [3.0, 3.0, 3.0, 3.0]}
    text = "Agents clearly worse than random pairs somewhere (in how many scenarios): "
    [found] = starting_with(board_conclusions(board_of(ratios)), text)
    assert found == f"{text}CoLSTIM (2). MaxInP never is."
    ratios["colstim"] = [2.0, 2.0, 2.0, 2.0]
    [found] = starting_with(board_conclusions(board_of(ratios)), text)
    assert found == f"{text}none. MaxInP never is."
    ratios["maxinp"], ratios["colstim"] = [1.0, 1.0, 1.0, 3.9], [1.0, 1.0, 1.0, 8.0]
    ratios["random-pairs"] = [4.0, 1.0, 3.0, 3.0]
    [found] = starting_with(board_conclusions(board_of(ratios)), text)
    assert found == f"{text}MaxInP (1), CoLSTIM (1)."


def test_the_leaderboard_says_what_to_use_where_the_first_cannot_play():
    ratios = {"versatile-db": [1.5, 1.5, 1.5, None], "maxinp": [2.0, 2.0, 2.0, 2.0]}
    found = board_conclusions(board_of(ratios))
    assert starting_with(found, "Versatile-DB cannot play these scenarios: fresh. Use MaxInP there.")


def row_of(number, in_horizon, in_budget, reference=100.0, published=None):
    regret = np.full((6, 5), 1.0)
    empty = mean(np.array([reference, reference + 1.0]))
    return table1_growth.Measured(
        table1_growth.ALGORITHMS[number],
        regret,
        regret,
        in_horizon,
        in_budget,
        empty,
        empty,
        published,
        0,
        1000.0,
        1e-5,
    )


def test_table1_counts_what_is_significant():
    slow, fast = Mean(0.5, 0.1, 0.3, 0.7), Mean(1.5, 0.1, 1.3, 1.7)
    unknown = Mean(math.nan, math.nan, math.nan, math.nan)
    found = table1_growth.table1_conclusions([row_of(0, slow, slow), row_of(1, slow, unknown), row_of(2, slow, fast)])
    assert found[0].endswith("slower than linearly in T for 3 of 3 algorithms.")
    assert (
        f"for 1 algorithms ({table1_growth.ALGORITHMS[2].title}) and significantly slower for 1; for 1 it is within"
        in found[1]
    )
    assert found[-1].startswith("6 runs per cell")
    found = table1_growth.table1_conclusions(
        [row_of(0, fast, slow), row_of(1, slow, slow, published=Mean(950.0, 1.0, 948.0, 952.0))]
    )
    assert found[0].endswith(f"for 1 of 2 algorithms (not shown for {table1_growth.ALGORITHMS[0].title}).")
    assert table1_growth.ALGORITHMS[1].title in found[-2]
    assert "published constants" in found[-2]


def test_verify_counts_and_names_what_does_not_hold():
    verdicts = [
        Judgement("a is below b", "Figure 1", "", "holds", {}),
        Judgement("b is below c", "Figure 1", "", "does not hold", {}),
        Judgement("c is below d", "Figure 2", "", "cannot fail", {}),
        Judgement("d is below e", BEYOND, "", "undecided", {}),
        Judgement("e is below f", OURS, "", "does not hold", {}),
    ]
    assert verify_conclusions(verdicts) == [
        "1 of 3 claims of the paper hold (does not hold: 1, cannot fail: 1).",
        "Does not hold: b is below c.",
        "0 of 1 claims beyond the paper hold (undecided: 1).",
        "0 of 1 claims of ours hold (does not hold: 1).",
        "Does not hold: e is below f.",
    ]
    assert verify_conclusions(verdicts[:1]) == ["1 of 1 claims of the paper hold."]


def test_tuning_names_the_winner_what_is_close_and_the_edge_of_the_grid():
    problem = Cell("rcdb", "greedy", budget=45, horizon=2000)
    trials = [Trial({"radius": radius}, regret, 1.0) for radius, regret in ((1.0, 200.0), (2.0, 100.0), (4.0, 101.0))]
    found = Tuned(problem, (1_000_000, 1_000_049), trials).conclusion
    assert "radius 2 has the lowest mean regret, 100 ± 1, of 3 settings on 50 tuning seeds." in found
    assert "Within two standard errors of it: radius 4." in found
    assert "edge" not in found
    found = Tuned(problem, (1_000_000, 1_000_049), trials[:2]).conclusion
    assert "Within" not in found
    assert "at the edge of the grid" in found
