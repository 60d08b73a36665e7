import csv
import importlib.util
import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairduel.experiments import coverage
from fairduel.experiments.coverage import GRID, Measured, Setting, compare, measure, measure_grid, summarise
from fairduel.experiments.inference import share
from fairduel.experiments.votes_conclusions import coverage_conclusions
from fairduel.report.coverage_page import write_coverage
from fairduel.votes.ranking import rank
from fairduel.votes.votes import Votes

DOCS = Path(__file__).parents[2] / "docs"
SMALL = (Setting("clean", 5, 50, 3), Setting("groups", 5, 50, 30))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(coverage, "GRID", SMALL)


def ranking(*ranges, **fields):
    """A ranking of items a, b, … in this order, all in one component, with these rank ranges."""
    names = "abcdefgh"[: len(ranges)]
    votes = Votes.from_arrays(names, np.arange(len(names) - 1), np.arange(1, len(names)), np.ones(len(names) - 1))
    ranked = rank(votes, draws=100)
    assert [standing.item for standing in ranked.standings] == list(names)
    standings = tuple(
        replace(standing, rank_low=low, rank_high=high, **{name: values[place] for name, values in fields.items()})
        for place, (standing, (low, high)) in enumerate(zip(ranked.standings, ranges, strict=True))
    )
    return replace(ranked, standings=standings)


# ---------------------------------------------------------------------- one vote file


def test_a_file_is_covered_if_all_true_ranks_are_in_their_ranges():
    truth = np.array([1.0, 2.0, 0.0])  # b is best, then a, then c
    assert compare(ranking((1, 2), (1, 2), (3, 3)), truth).covered
    assert compare(ranking((2, 2), (1, 1), (3, 3)), truth).covered
    assert not compare(ranking((1, 1), (1, 2), (3, 3)), truth).covered
    assert not compare(ranking((1, 2), (1, 2), (1, 2)), truth).covered


def test_width_scores_and_probabilities_are_those_of_the_definition():
    ranked = ranking((1, 2), (1, 3), (3, 3), score=(0.9, 0.1, -1.0), error=(0.1, 0.1, 0.05), best=(0.6, 0.3, 0.1))
    if hasattr(ranked.standings[0], "score_low"):
        ends = [(0.7, 1.1), (-0.1, 0.3), (-1.1, -0.9)]
        standings = [replace(s, score_low=a, score_high=b) for s, (a, b) in zip(ranked.standings, ends, strict=True)]
        ranked = replace(ranked, standings=tuple(standings))
    found = compare(ranked, np.array([6.0, 5.0, 4.0]))  # centred: 1, 0, −1
    assert found.covered
    assert found.width == pytest.approx((1 / 2 + 2 / 2 + 0) / 3)
    assert found.scores_covered == 1.0
    assert (found.leader_best, found.leader_is_best) == (0.6, 1.0)
    assert found.brier == pytest.approx(0.4**2 + 0.3**2 + 0.1**2)
    wrong = compare(ranked, np.array([5.0, 6.2, 3.0]))
    assert (wrong.scores_covered, wrong.leader_is_best) == (0.0, 0.0)


def test_every_component_counts_and_single_items_do_not():
    votes = Votes.from_arrays(
        "abcde", [0] * 40 + [2] * 40, [1] * 40 + [3] * 40, [1] * 38 + [0] * 2 + [1] * 20 + [0] * 20
    )
    ranked = rank(votes, draws=100)
    in_order = np.array([1.0, 0.0, 3.0, 2.0, 9.0])
    assert compare(ranked, in_order).covered
    assert compare(ranked, in_order[[0, 1, 3, 2, 4]]).covered  # c and d cannot be told apart
    assert not compare(ranked, in_order[[1, 0, 2, 3, 4]]).covered
    assert compare(ranked, in_order).width == pytest.approx(0.5)


def test_a_summary_has_the_means_and_an_exact_interval():
    files = [Measured(covered, 0.5, 1.0, 0.7, 1.0, 0.1) for covered in (True, True, False, True)]
    found = summarise(files)
    assert (found.files, found.covered) == (4, 3)
    assert found.ranks == share(3, 4)
    assert (found.width.value, found.leader_best.value) == (0.5, pytest.approx(0.7))


def narrowed(votes):
    """Ranges of half the width."""
    ranked = rank(votes, draws=200)
    standings = tuple(
        replace(s, rank_low=s.rank - (s.rank - s.rank_low) // 2, rank_high=s.rank + (s.rank_high - s.rank) // 2)
        for s in ranked.standings
    )
    return replace(ranked, standings=standings)


def test_ranges_of_half_the_width_are_found_out():
    setting = Setting("clean", 20, 3000, 300)
    honest = measure(setting, range(30), lambda votes: rank(votes, draws=200))
    too_narrow = measure(setting, range(30), narrowed)
    assert honest.ranks.value >= 0.9
    assert too_narrow.ranks.high < 0.95
    assert too_narrow.width.value == pytest.approx(honest.width.value / 2, rel=0.25)


def with_errors_times(factor):
    """Rank with the textbook's simultaneous ranges, their standard errors times this factor."""

    def ranker(votes):
        ranked = rank(votes, draws=100)
        noise = np.random.default_rng(0).multivariate_normal(np.zeros(len(ranked.items)), ranked.covariance, 2000)
        variance = np.diag(ranked.covariance)
        errors = np.sqrt(np.maximum(variance[:, None] + variance - 2.0 * ranked.covariance, 1e-12))
        quantile = np.quantile((np.abs(noise[:, :, None] - noise[:, None]) / errors).max(axis=(1, 2)), 0.95)
        above = ranked.scores[:, None] - ranked.scores > factor * quantile * errors
        low, high = 1 + above.sum(axis=0), len(above) - above.sum(axis=1)
        place = {item: number for number, item in enumerate(ranked.items)}
        standings = (
            replace(s, rank_low=int(low[place[s.item]]), rank_high=int(high[place[s.item]])) for s in ranked.standings
        )
        return replace(ranked, standings=tuple(standings))

    return ranker


def test_standard_errors_of_half_the_size_are_found_out_among_close_items():
    """Items that differ clearly do not show it: two items told apart are then seldom in the wrong order."""
    setting, seeds = Setting("clean", 5, 300, 300, coverage.CLOSE), range(60)
    assert measure(setting, seeds, with_errors_times(1.0)).ranks.high >= 0.95
    assert measure(setting, seeds, with_errors_times(0.5)).ranks.high < 0.85
    assert measure(setting._replace(spread=1.0), seeds, with_errors_times(0.5)).ranks.high >= 0.9


# ---------------------------------------------------------------------- all cells


def test_the_grid_is_the_table_that_was_asked_for():
    kinds = ("clean", "tastes", "prompts", "groups", "separation", "misspecified")
    asked = itertools.product(kinds, (5, 20, 60), (50, 300, 3000), (3, 30, 300))
    assert {Setting(*cell) for cell in asked} <= set(GRID)
    assert len(set(GRID)) == len(GRID)


def test_every_cell_has_a_width_from_before():
    assert set(coverage.before()) == set(GRID)
    assert all(0.0 <= old.width <= 1.0 and 0.0 <= old.coverage <= 1.0 for old in coverage.before().values())


@pytest.mark.usefixtures("small")
def test_results_are_reused_and_do_not_depend_on_how_they_were_made(tmp_path, monkeypatch):
    done = []
    first = measure_grid(tmp_path, range(3), progress=done.append)
    assert sum(done) == 6
    assert coverage.count_missing(tmp_path, range(3)) == 0
    monkeypatch.setattr(coverage, "_BATCH", 1)
    more = measure_grid(tmp_path, range(5), progress=done.append)
    assert sum(done) == 10
    assert measure_grid(tmp_path, range(3), progress=done.append) == first
    assert sum(done) == 10
    assert measure_grid(tmp_path / "other", range(5), jobs=2) == more
    assert first == {setting: measure(setting, range(3)) for setting in SMALL}


@pytest.mark.usefixtures("small")
def test_results_of_other_code_are_not_reused(tmp_path, monkeypatch):
    measure_grid(tmp_path, range(2))
    monkeypatch.setattr(coverage, "_digest", lambda: "other")
    assert coverage.count_missing(tmp_path, range(2)) == 4


# ---------------------------------------------------------------------- what is concluded


def made_up(covered, files=200, width=0.5, settings=SMALL):
    rest = [Measured(True, width, 0.94, 0.7, 0.6, 0.1)] * files
    return {
        setting: summarise(rest)._replace(covered=count, ranks=share(count, files))
        for setting, count in zip(settings, covered, strict=True)
    }


def test_the_verdict_follows_the_numbers():
    holds, widths, scores, best, basis = coverage_conclusions(made_up([200, 190]))
    assert holds.startswith(
        "Rank ranges hold: coverage is at least 95% in all 2 cells. Lowest: 0.95 [0.91, 0.98] (groups"
    )
    assert "0.50 of all ranks" in widths
    assert "94%" in scores
    assert "averages 0.70; leaders are best in 0.60" in best
    assert basis.startswith("200 runs per cell; brackets are 95% intervals. Clearly below, corrected")
    assert basis.endswith(" is 91% or less.")
    assert coverage_conclusions(made_up([200, 183]))[0].startswith(
        "In no cell is coverage clearly below 95%; in 1 of 2 it is, within noise."
    )
    assert coverage_conclusions(made_up([200, 182]))[0].startswith(
        "Rank ranges do not hold: coverage is clearly below 95% in 1 of 2 cells: groups, 5 items, 50 votes, 30 voters."
    )
    assert coverage_conclusions(made_up([1, 1], files=1))[0].startswith("1 run per cell cannot show")


def test_widths_are_compared_with_those_before():
    old = coverage.before()
    one = SMALL[:1]
    for change, words in {-0.1: "narrower in 1 cells, wider in 0", 0.1: "narrower in 0 cells, wider in 1"}.items():
        assert words in coverage_conclusions(made_up([9], 9, old[one[0]].width + change, one))[1]


def test_the_page_and_the_files_have_every_cell(tmp_path):
    found = made_up([200, 171])
    page = write_coverage(tmp_path, found, range(200), "fairduel reproduce coverage").read_text(encoding="utf-8")
    for sentence in coverage_conclusions(found)[1:]:
        assert sentence.replace("'", "&#39;") in page
    assert page.count("86% [80%, 90%]") == 2  # of its population, and of its cell
    record = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))
    assert [cell["ranks"]["value"] for cell in record["cells"]] == [1.0, 0.855]
    rows = list(csv.DictReader((tmp_path / "coverage.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["kind"], float(row["ranks"]), float(row["width"])) for row in rows] == [
        ("clean", 1.0, 0.5),
        ("groups", 0.855, 0.5),
    ]


def test_the_docs_table_has_one_row_per_population_items_and_votes():
    specification = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    tables = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tables)
    cells = [
        {
            "kind": kind,
            "items": 5,
            "votes": 3000,
            "voters": voters,
            "spread": spread,
            "ranks": {"value": 0.9 + spread / 20},
            "width": {"value": voters / 100},
            "width_before": 0.9,
        }
        for kind, spreads in (("tastes", (1.0, 0.2)), ("separation", (1.0,)))
        for spread in spreads
        for voters in (30, 3)
    ]
    header, rows = tables.coverage({"cells": cells})
    assert header == ["votes are", "items", "votes", "3 voters", "30 voters"]
    assert rows == [
        ["tastes", "5", "3,000", "95% / 91%, 0.03 (0.90)", "95% / 91%, 0.30 (0.90)"],
        ["separation", "5", "3,000", "95%, 0.03 (0.90)", "95%, 0.30 (0.90)"],
    ]
