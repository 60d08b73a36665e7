"""A small report of every kind, from made-up results where real ones would be slow."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl

from fairduel.experiments import EXPERIMENTS, competition, table1_growth
from fairduel.experiments.attack_search import WorstAttack
from fairduel.experiments.claims import Judgement
from fairduel.experiments.claims.claim import BEYOND, OURS
from fairduel.experiments.comparing import comparison
from fairduel.experiments.competition import Best, Board
from fairduel.experiments.experiment import Results
from fairduel.experiments.tuning import Trial, Tuned
from fairduel.report.page import with_files
from fairduel.report.research.attack_page import write_attack
from fairduel.report.research.experiment_page import write_experiments
from fairduel.report.research.leaderboard_page import write_leaderboard
from fairduel.report.research.table1_page import write_table1
from fairduel.report.research.tune_page import write_tuning
from fairduel.report.research.verify_page import write_verify
from fairduel.report.votes.audit_page import audit_sections, stress_sections
from fairduel.report.votes.cost_page import cost_section
from fairduel.report.votes.explain_page import explain_sections
from fairduel.report.votes.ranking_page import ranking_sections, write_votes_report
from fairduel.report.votes.review_page import review_sections
from fairduel.simulation import Cell
from fairduel.stats import Mean, mean
from fairduel.votes.attacking.injection import Campaign
from fairduel.votes.attacking.liars import arena
from fairduel.votes.attacking.manipulation import CampaignLimits, Found, Manipulation
from fairduel.votes.attacking.stress import stress, summarise_stress
from fairduel.votes.auditing.audit import audit
from fairduel.votes.certifying.certificates import with_certificates
from fairduel.votes.certifying.explain import explain
from fairduel.votes.ranking.rank import rank, summarise
from fairduel.votes.reading.read import read_votes
from fairduel.votes.reviewing.review import review
from helpers.boards import board

ROUNDS = 30


def made_up(experiment, runs):
    """Return results in which regret grows with x, and some diagnostics are missing."""
    rng = np.random.default_rng(0)
    rows, traces = [], []
    for index, entry in enumerate(experiment.entries):
        final = (400.0 + 30.0 * (entry.x or 1.0)) * rng.lognormal(0.0, 0.3, runs)
        for seed in range(runs):
            rows.append(
                {
                    "entry": index,
                    "seed": seed,
                    "regret": final[seed],
                    "weak_regret": final[seed] / 3,
                    "locked_in": bool(rng.random() < 0.2),
                    "recommended_best": float(rng.random() < 0.8),
                    "recommendation_regret": float(rng.random()),
                    "self_duel_share": rng.random(),
                    "norm_exceeded_share": math.nan,
                    "mean_slope": math.nan,
                    "flips": 45.0,
                    "seconds": 0.006,
                    "agent_settings": json.dumps({"radius": 2.0 + index, "horizon": 2000, "estimator": "exact"}),
                }
            )
            curve = final[seed] * np.linspace(0.0, 1.0, ROUNDS) ** 0.5
            traces.append(pl.DataFrame({"entry": index, "seed": seed, "round": range(1, ROUNDS + 1), "regret": curve}))
    return Results(experiment, list(range(runs)), pl.DataFrame(rows), pl.concat(traces))


def experiments(*names, runs=3):
    return lambda folder: write_experiments(
        folder, [made_up(EXPERIMENTS[name](), runs) for name in names], "fairduel reproduce " + " ".join(names)
    )


def simulated(folder):
    agents = ("rcdb", "colstim", "a_module_of_mine.with_a_rather_long_name:AndAnAgentWithAVeryLongNameToo")
    cells = [Cell(agent, "greedy", budget=45, horizon=2000, agent_settings={"radius": 2.0}) for agent in agents]
    return write_experiments(folder, [made_up(comparison(cells), 1)], "fairduel simulate")


def tuned(folder):
    cell = Cell("colstim", "misleading", budget=45, horizon=2000, attack_settings={"target": "random"})
    trials = [Trial({"radius": 2.0**i, "coupling": "vacdb"}, 500.0 + 50.0 * abs(i - 3), 12.0) for i in range(-3, 6)]
    return write_tuning(folder, [Tuned(cell, (1_000_000, 1_000_019), trials)] * 2, "fairduel tune colstim")


def attacked(folder):
    regret = {T: np.array([2.9, 3.0, 3.1]) * T for T in (500, 2000, 8000)}
    settings = {"start": 36, "settling": 0.36, "chance": 0.66, "misled": "protect", "harm": 0.4}
    problem = Cell("sceptic", "watching", 45, 2000, agent_settings={"robust": True}, attack_settings=settings)
    found = WorstAttack(problem, 4800, regret[2000], {"no attack": regret[500], "half-settled": regret[8000]}, regret)
    return write_attack(folder, found, range(3), "fairduel attack sceptic,robust=true")


def verified(folder):
    claim = "RCDB has less regret than MaxInP (tuned: radius 8, at the edge of its grid), CoLSTIM and MaxPairUCB"
    measured = "−1,234.5 [−2,345.6, −123.4] at d = 5, ‖θ*‖ = 2, T = 2000, C = 45; 3 runs per cell"
    verdicts = [
        Judgement(f"{claim} under the {attack} attack", source, measured, status, {})
        for attack in ("greedy", "adversarial")
        for source in ("Theorem 5.3 (main), Lemma C.1 (cE)", BEYOND, OURS)
        for status in ("holds", "does not hold", "undecided", "cannot fail")
    ]
    return write_verify(folder, verdicts, range(100), "fairduel verify")


def measured(folder):
    rng = np.random.default_rng(0)
    within_noise = Mean(math.nan, math.nan, math.nan, math.nan)
    rows = [
        table1_growth.Measured(
            algorithm=algorithm,
            by_horizon=rng.uniform(100.0, 9000.0, (3, len(table1_growth.HORIZONS))),
            by_budget=rng.uniform(100.0, 9000.0, (3, len(table1_growth.BUDGETS))),
            in_horizon=mean(rng.uniform(0.0, 1.0, 3)),
            in_budget=within_noise if place % 3 == 0 else mean(rng.uniform(0.0, 2.0, 3)),
            per_corruption=mean(rng.uniform(0.0, 9.0, 3)),
            reference=mean(rng.uniform(1000.0, 9000.0, 3)),
            published=mean(rng.uniform(1000.0, 9000.0, 3)) if algorithm.published else None,
            published_epoch=1,
            uniform=16_000.0,
            seconds_a_round=3e-6,
        )
        for place, algorithm in enumerate(table1_growth.ALGORITHMS[::3])
    ]
    return write_table1(folder, rows, range(3), "fairduel reproduce table1")


def competed(folder):
    rng = np.random.default_rng(0)

    def regret(scenarios):
        return {scenario.title: rng.lognormal(6.0, 0.6, 3) for scenario in scenarios}

    best = {
        title: Best(competition.CANDIDATES[-1], mean(runs), runs)
        for title, runs in regret(competition.SCENARIOS).items()
    }
    advice = {"recommended_best": mean(np.array([0.8, 0.9, 1.0])), "recommendation_regret": mean(rng.random(3))}
    standings = []
    for contender in competition.CONTENDERS:
        played = [scenario for scenario in competition.SCENARIOS if contender.plays(scenario)]
        standings.append(competition.standing_of(contender, competition.SCENARIOS, regret(played), best, advice))
    standings.sort(key=lambda standing: standing.overall.worst.value)
    result = Board(competition.SCENARIOS, standings, best)
    return write_leaderboard(folder, result, range(3), "fairduel leaderboard")


def ranked(folder):
    """Rank more items than a figure shows, with short, long and numeric names."""
    rng = np.random.default_rng(0)
    names = [
        *(str(100 + i) for i in range(64)),
        "An_item_whose_name_is_far_too_long_for_any_table_or_figure_" + "x" * 40,
    ]
    pairs = [rng.choice(len(names), 2, replace=False) for _ in range(900)]
    lines = [f"{names[i]},{names[j]},{names[min(i, j)] if rng.random() < 0.7 else 'tie'}" for i, j in pairs]
    file = folder / "votes.csv"
    file.write_text("first,second,winner\n" + "\n".join(lines) + "\n")
    votes = read_votes(file).votes
    ranking = with_certificates(votes, rank(votes))
    return write_votes_report(
        folder,
        title="Ranking of votes.csv",
        summary=summarise(ranking),
        sections=ranking_sections(ranking, votes),
        settings={"file": "a/rather/long/path/" * 8 + "votes.csv", **ranking.settings},
        command="fairduel rank " + "a/rather/long/path/" * 8 + "votes.csv",
    )


def written(folder, command, title, found, sections):
    """Write the page of a command that says what it ``found``."""
    said = {"summary": found.summary(), "settings": found.settings, "sections": sections}
    return write_votes_report(folder, title=title, command=f"fairduel {command} votes.csv", **said)


def audited(folder, **people):
    votes, _ = arena(**{"seed": 4, "voters": 60, "votes_each": 20} | people)
    found = audit(replace(votes, voter=None, voters=()) if people.get("voters") == 1 else votes, top=2)
    return written(folder, "audit", "Audit of votes.csv", found, audit_sections(found))


def explained(folder):
    found = explain(arena(seed=4, voters=60, votes_each=20)[0])
    return written(folder, "explain", "Why one item is above another", found, explain_sections(found))


def stressed(folder):
    votes, _ = arena(voters=40, votes_each=15, seed=4)
    frame = stress(votes, "promote", "Oak", sizes=[0, 40, 80], voters=2)
    return write_votes_report(
        folder,
        title="Stress test of votes.csv",
        summary=summarise_stress(frame, "promote"),
        sections=stress_sections(frame, attack="promote"),
        settings={"attack": "promote", "seed": 0},
        command="fairduel stress votes.csv",
    )


def reviewed(folder):
    """Review items with short and long names, in two groups; some tie, and voters lean to one side."""
    rng = np.random.default_rng(0)
    long = "An_item_whose_name_is_far_too_long_for_any_table_or_figure_" + "x" * 40
    votes = board(rng, np.linspace(0.8, -0.8, 40), voters=60, each=30, lean=0.5, taste=0.5, model="davidson", tie=0.0)
    apart = (votes.first < 35) == (votes.second < 35)
    found = review(replace(votes.select(apart), items=(long, *votes.items[1:])))
    return written(folder, "review", "Review of votes.csv", found, review_sections(found))


def priced(folder):
    sizes = [(95, 4, 4, "omnipresent"), (21, 17, 8, "head-to-head"), (6, 64, 16, "promote")]
    cost = Manipulation(
        item="An item whose name is rather long",
        leader="Oak",
        found=[Found(Campaign(tactic, accounts, each, false), 2) for accounts, each, false, tactic in sizes],
        plain_votes=90,
        limits=CampaignLimits(),
        voters_known=True,
        settings={"seeds": [0, 1, 2], "seeds_needed": 2, "votes_each_tried": [1, 2, 4, 8, 17, 32, 64]},
    )
    return written(folder, "cost", "Cost of manipulating votes.csv", cost, [cost_section(cost)])


REPORTS = {
    "figure1": experiments("figure1"),
    "figure2": experiments("figure2", runs=1),
    "several": experiments("dimension", "unknown-budget"),
    "simulate": simulated,
    "tune": tuned,
    "attack": attacked,
    "verify": verified,
    "table1": measured,
    "leaderboard": competed,
    "rank": ranked,
    "audit": audited,
    "audit without liars": lambda folder: audited(folder, liars={}),
    "stress": stressed,
    "review": reviewed,
    "cost": priced,
    "explain": explained,
}
REPORTS = {name: with_files()(write) for name, write in REPORTS.items()}
"""What writes a report of each kind to a folder and returns its page."""
