"""The study of decisions finds planted errors, keeps its results, and says what it found."""

import csv
import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
from benchmarks.decisions import __main__ as command
from benchmarks.decisions import adapter, files, polls, tables
from benchmarks.decisions.adapter import Said
from benchmarks.decisions.files import Share, compare, compare_verdicts, measure, summary
from benchmarks.decisions.polls import POLLS, Poll, Stop, drawn, held, looks, stop_of, study
from benchmarks.decisions.populations import Population, named
from benchmarks.decisions.tables import Findings, conclusions

from benchmarks import running
from fairduel.errors import BadInputError
from fairduel.stats import Mean
from fairduel.votes.ranking.rank import rank
from fairduel.votes.votes import Votes

CLEAN, CLOSE = "clean, 20 items, 3,000 votes, 300 voters", "clean, close scores, 5 items, 300 votes, 300 voters"


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
    return votes, replace(ranked, standings=standings)


def compared(*ranges, truth, **fields):
    votes, ranked = ranking(*ranges, **fields)
    truth = np.array(truth, dtype=np.float64)
    return compare(ranked, Population(votes, truth, truth))


# ---------------------------------------------------------------------- one file


def test_a_file_is_covered_if_all_true_ranks_are_in_their_ranges():
    truth = [1.0, 2.0, 0.0]  # b is best, then a, then c
    assert compared((1, 2), (1, 2), (3, 3), truth=truth)["covered"]
    assert compared((2, 2), (1, 1), (3, 3), truth=truth)["covered"]
    assert not compared((1, 1), (1, 2), (3, 3), truth=truth)["covered"]
    assert not compared((1, 2), (1, 2), (1, 2), truth=truth)["covered"]


def test_equal_items_are_all_first_so_any_item_told_apart_is_an_error():
    assert compared((1, 3), (1, 3), (1, 3), truth=[0.0, 0.0, 0.0])["covered"]
    assert not compared((1, 2), (1, 3), (2, 3), truth=[0.0, 0.0, 0.0])["covered"]
    found = compared((1, 1), (2, 3), (2, 3), truth=[0.0, 0.0, -1.0], best=(0.5, 0.5, 0.0))
    assert (found["claims"], found["wrong_claims"], found["first"], found["brier"]) == (1, 1, 0.5, 0.0)
    assert compared((1, 1), (2, 3), (2, 3), truth=[1.0, 0.0, 0.0])["wrong_claims"] == 0


def test_numbers_are_those_of_the_definition():
    found = compared(
        *((1, 2), (1, 3), (3, 3)),
        truth=[6.0, 5.0, 4.0],  # centred: 1, 0, −1
        score_low=(0.7, 0.1, -1.1),
        score_high=(1.1, 0.3, -0.9),
        best=(0.6, 0.3, 0.1),
        plain_score=(0.0, 1.0, 0.0),
    )
    assert found["width"] == pytest.approx((1 / 2 + 2 / 2 + 0) / 3)
    assert found["scores"] == pytest.approx(2 / 3)
    assert (found["first"], found["said"]) == (1.0, 0.6)
    assert found["brier"] == pytest.approx(0.4**2 + 0.3**2 + 0.1**2)
    assert found["tau"] == 1.0
    assert found["tau_plain"] == pytest.approx((1 - 1 + 0) / 3)  # right, wrong and undecided
    assert found["first_plain"] == 0.0
    assert found["bin_items"] == [0, 1, 0, 1, 0, 0, 1, 0, 0, 0]
    assert found["bin_best"] == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_infinite_plain_scores_are_compared():
    found = compared((1, 2), (1, 2), (3, 3), truth=[2.0, 1.0, 0.0], plain_score=(math.inf, math.inf, -math.inf))
    assert found["tau_plain"] == pytest.approx(2 / 3)
    assert found["first_plain"] == 0.5


def test_every_component_counts_and_single_items_do_not():
    votes = Votes.from_arrays(
        "abcde", [0] * 40 + [2] * 40, [1] * 40 + [3] * 40, [1] * 38 + [0] * 2 + [1] * 20 + [0] * 20
    )
    ranked = rank(votes, draws=100)

    def covered(*truth):
        return compare(ranked, Population(votes, np.array(truth), np.array(truth)))["covered"]

    assert covered(1.0, 0.0, 3.0, 2.0, 9.0)
    assert covered(1.0, 0.0, 2.0, 3.0, 9.0)  # c and d cannot be told apart
    assert not covered(0.0, 1.0, 3.0, 2.0, 9.0)


def test_verdicts_that_name_wrong_items_are_counted():
    votes = Votes.from_arrays("abc", [0, 1], [1, 2], [1, 1])
    population = Population(votes, np.array([2.0, 1.0, 0.0]), np.zeros(3))
    for said, state, wrong in (
        (Said("won", "a", ("a",), None), "won", 0),
        (Said("won", "b", ("b",), None), "won", 1),
        (Said("leads", "b", ("a", "b"), None), "leads", 1),
        (Said("tie", None, ("a", "b"), None), "tie", 0),
        (Said("tie", None, ("b", "c"), None), "tie", 1),
        (Said("too early", None, ("b", "c"), None), "too early", 0),
    ):
        counts = compare_verdicts([said], population)
        assert (counts[state], counts[f"wrong {state}"]) == (1, wrong)
        assert sum(counts.values()) == 1 + wrong
    equal = replace(population, truth=np.array([1.0, 1.0, 0.0]))
    assert compare_verdicts([Said("won", "a", ("a",), None)], equal)["wrong won"] == 1
    assert compare_verdicts([Said("tie", None, ("a",), None)], equal)["wrong tie"] == 0


# ---------------------------------------------------------------------- planted errors


def changed(change):
    """Rank, and change each standing."""

    def ranker(votes):
        ranked = rank(votes, draws=200)
        return replace(ranked, standings=tuple(change(s) for s in ranked.standings))

    return ranker


def test_ranges_of_half_the_width_are_found_out():
    halved = changed(
        lambda s: replace(
            s, rank_low=s.rank - (s.rank - s.rank_low) // 2, rank_high=s.rank + (s.rank_high - s.rank) // 2
        )
    )
    honest, narrow = (summary(measure([CLEAN], range(30), ranker, None)) for ranker in (changed(lambda s: s), halved))
    assert honest["covered"].value >= 0.9
    assert narrow["covered"].interval()[1] < 0.95
    assert narrow["width"].value == pytest.approx(honest["width"].value / 2, rel=0.25)


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
    assert summary(measure([CLOSE], range(60), with_errors_times(1.0), None))["covered"].interval()[1] >= 0.95
    assert summary(measure([CLOSE], range(60), with_errors_times(0.5), None))["covered"].interval()[1] < 0.95


def test_score_intervals_of_half_the_width_are_found_out():
    halved = changed(
        lambda s: replace(s, score_low=(s.score + s.score_low) / 2, score_high=(s.score + s.score_high) / 2)
    )
    honest, narrow = (summary(measure([CLEAN], range(20), ranker, None)) for ranker in (changed(lambda s: s), halved))
    assert honest["scores"].value > 0.9
    assert narrow["scores"].high < 0.8


def test_flattering_probabilities_are_found_out():
    flattering = changed(lambda s: replace(s, best=float(s.rank == 1)))
    found = summary(measure([CLOSE], range(40), flattering, None))
    assert found["gap"].low > 0.2
    assert found["bins"][-1].said == 1.0
    assert found["bins"][-1].best + 3 * found["bins"][-1].error < 0.9


def test_a_worse_order_is_found_out():
    def swapped(votes):
        ranked = rank(votes, draws=100)
        number, score = {1: 3, 3: 1}, [s.score for s in ranked.standings]
        standings = [
            replace(s, rank=number.get(s.rank, s.rank), score=score[number.get(s.rank, s.rank) - 1])
            for s in ranked.standings
        ]
        return replace(ranked, standings=tuple(sorted(standings, key=lambda s: s.rank)))

    found = summary(measure([CLEAN], range(20), swapped, None))
    assert found["lead"].high < -0.005
    assert found["first_lead"].high < 0.0


def hasty(votes, ranking):  # noqa: ARG001
    """Say at once that the first item has won."""
    first = ranking.standings[0].item
    return [Said("won", first, (first,), (0.0, 0.0))]


def test_hasty_winners_are_found_out():
    found = summary(measure([CLOSE], range(40), decider=hasty))
    assert found["won"].trials == 40
    assert found["won"].interval()[0] > 0.05


# ---------------------------------------------------------------------- live polls

SHORT = Poll("short", 4, votes=60)


def test_voters_come_one_after_another_with_their_quotas():
    found = drawn(POLLS["random pairs, 12 items"], 0).votes
    assert (np.diff(found.voter) >= 0).all()
    quotas = np.bincount(found.voter)[:-1]
    assert (quotas.min(), quotas.max()) == (10, 50)
    assert quotas.mean() == pytest.approx(30, abs=3)
    alone = drawn(POLLS["one casts the first 100, 5 items"], 0).votes
    assert np.flatnonzero(alone.voter != 0)[0] == 100
    assert set(drawn(POLLS["two voters, 5 items"], 0).votes.voter[:60]) == {0, 1}


def test_polls_that_differ_in_who_asks_have_the_same_items_and_voters():
    random, sceptic = (
        drawn(replace(POLLS[f"{kind}, 12 items"], votes=100), 3) for kind in ("random pairs", "Sceptic asks")
    )
    np.testing.assert_array_equal(random.truth, sceptic.truth)
    np.testing.assert_array_equal(random.votes.voter, sceptic.votes.voter)
    assert (random.votes.first != sceptic.votes.first).any()


@pytest.mark.parametrize("name", POLLS)
def test_polls_are_as_named(name):
    found = drawn(replace(POLLS[name], votes=100), 0)
    again = drawn(replace(POLLS[name], votes=100), 0)
    assert found.votes.result.tolist() == again.votes.result.tolist()
    ordered = np.sort(found.truth)[::-1]
    if "two equal best" in name:
        assert ordered[0] - ordered[1] < 1e-12 < ordered[1] - ordered[2]
    elif "clear best" in name:
        assert ordered[0] - ordered[1] > 0.5
    else:
        assert (np.ptp(ordered) == 0.0) == ("equal items" in name)


def test_looks_include_those_that_are_reported():
    assert set(polls.LOOKS) <= set(looks(6400))
    assert max(after / before for before, after in itertools.pairwise(looks(6400))) < 1.25
    assert looks(60)[-1] <= 60


def test_a_study_ends_when_it_stops_but_is_still_reported_later():
    rows = study(replace(SHORT, votes=200), 0, adapter.ranked, hasty)
    assert [row["votes"] for row in rows] == [23, 50, 100, 200]
    assert all(row["state"] == "won" and row["whole"] for row in rows)
    patient = study(SHORT, 0, adapter.ranked, lambda *_: [Said("tie", None, ("item 1", "item 2"), (10.0, 40.0))])
    assert [row["votes"] for row in patient] == looks(60)
    assert (patient[0]["low"], patient[0]["high"]) == (33.0, 63.0)


def test_hasty_stops_are_found_out():
    rows = itertools.chain.from_iterable(study(SHORT, seed, adapter.ranked, hasty) for seed in range(30))
    found = polls.summary(pl.DataFrame(list(rows), polls.SCHEMA))
    assert found["stopped"] == Share(30, 30)
    assert found["median"] == 23
    assert found["false"].interval()[0] > 0.05


def test_a_winner_of_some_items_does_not_stop_a_poll():
    frame = pl.DataFrame(
        {
            "votes": [23, 27, 33],
            "state": ["won", "tie", "won"],
            "whole": [False, True, True],
            "wrong": [True, False, False],
        }
    )
    assert stop_of(frame) == Stop(33.0, 27, wrong=False)
    assert stop_of(frame[:2]) == Stop(math.inf, 27, wrong=False)


def test_a_forecast_holds_if_it_includes_a_time_at_which_the_poll_may_have_stopped():
    stop = Stop(120.0, 100, wrong=False)  # it stopped after 101 to 120 votes
    assert held(stop, 110, 115)
    assert held(stop, 50, 101)
    assert held(stop, 120, math.inf)
    assert not held(stop, 50, 100)
    assert not held(stop, 121, 300)
    never = Stop(math.inf, 6400, wrong=False)
    assert held(never, 100, math.inf)
    assert held(never, 7000, 8000)
    assert not held(never, 100, 6400)


def made_up_rows(forecasts):
    """Studies that stop at 50 votes, with these forecasts at 23 votes."""
    rows = []
    for seed, (low, high) in enumerate(forecasts):
        common = {"seed": seed, "voters": 2, "whole": True, "named": False, "wrong": False, "first": True, "said": 0.5}
        rows.append({**common, "votes": 23, "state": "tie", "low": low, "high": high})
        rows.append({**common, "votes": 50, "state": "won", "named": True, "low": 50.0, "high": 50.0})
    return pl.DataFrame(rows, polls.SCHEMA)


def test_forecasts_are_counted_at_each_look_of_running_studies():
    found = polls.summary(made_up_rows([(33.0, 53.0), (63.0, 103.0), (None, None), (43.0, math.inf)]))
    first, second = found["looks"]
    assert (first["running"], second["running"]) == (4, 0)
    assert first["held"] == Share(2, 3)
    assert first["open"] == 1
    assert first["width"] == 3.0
    assert (first["tie"], second["won"]) == (Share(0, 4), Share(0, 4))


# ---------------------------------------------------------------------- runs are kept


def work(name="clean, 5 items, 50 votes, 3 voters"):
    return running.Work(name, partial(command.measured, [name]), files.SCHEMA, ("benchmarks.decisions.files",))


def test_results_are_reused_and_do_not_depend_on_how_they_were_made(tmp_path, monkeypatch):
    done = []
    works = [work(), work("separate groups, 5 items, 50 votes, 30 voters")]
    first = running.run(works, tmp_path, range(3), progress=done.append)
    assert sum(done) == 6
    assert not any(running.missing(works, tmp_path, range(3)).values())
    monkeypatch.setattr(running, "_BATCH_SECONDS", 0.0)  # one seed per batch
    more = running.run(works, tmp_path, range(5), progress=done.append)
    assert sum(done) == 10
    again = running.run(works, tmp_path, range(3), progress=done.append)
    assert sum(done) == 10
    assert all(again[name].equals(first[name]) for name in first)
    elsewhere = running.run(works, tmp_path / "other", range(5), jobs=2)
    assert all(elsewhere[name].equals(more[name]) for name in more)
    measured = measure([works[0].name], range(3)).drop("name")
    assert measured.equals(first[works[0].name])


def test_results_of_other_code_are_not_reused(tmp_path, monkeypatch):
    running.run([work()], tmp_path, range(2))
    monkeypatch.setattr(running, "_digest", lambda _: "other")
    assert list(running.missing([work()], tmp_path, range(2)).values()) == [[0, 1]]


def test_tuning_seeds_are_refused(tmp_path):
    with pytest.raises(BadInputError, match="tuning"):
        running.run([work()], tmp_path, range(999_999, 1_000_001))


def test_the_command_prints_and_writes_every_table(tmp_path, capsys):
    arguments = ["--quick", "--only", "sparse", "winner stays", "--out", str(tmp_path)]
    command.main(arguments)
    printed = capsys.readouterr().out
    assert printed.startswith("Rank ranges: coverage is clearly below 95% in 0 of 1 populations.")
    assert "Where a condition of rankings is not met" in printed
    for name in tables.TABLES:
        if name != "looks":  # there is no poll that meets the conditions
            with (tmp_path / f"decisions-{name}.csv").open(encoding="utf-8") as file:
                assert len(list(csv.reader(file))) >= 2
    assert (tmp_path / "decisions.txt").read_text(encoding="utf-8").startswith("- Rank ranges: ")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    command.main(arguments)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    assert capsys.readouterr().out == printed


# ---------------------------------------------------------------------- what is concluded


def kind(covered=200, lead=0.0, gap=0.0, wrong=0, count=200):
    """The summary of a kind of population."""

    def near(value):
        return Mean(value, 0.001, value - 0.002, value + 0.002)

    return {
        "files": count,
        "covered": Share(covered, count),
        "lead": near(lead),
        "gap": near(gap),
        "won": Share(wrong, 100),
        "leads": Share(20, 100),
        "tie": Share(0, 50),
        "verdicts": 200,
    }


def poll(false=0, held=90):
    look = {"votes": 100, "held": Share(held, 100)}
    return {"false": Share(false, 100), "stopped": Share(80, 100), "looks": [look]}


def concluded(kinds, polls=None):
    return conclusions(Findings(kinds, polls or {}, {}))


def test_conclusions_follow_the_numbers():
    good = concluded({"clean": kind(), "sparse": kind(190, lead=-0.009, gap=0.04)}, {"equal items, 2 items": poll()})
    assert [sentence.split(":")[0] for sentence in good] == [
        *("Rank ranges", "Order", "P(best) of the first item is clearly more than 0.05 from the truth in 0 of 2 "
          "populations. Furthest", "Verdicts", "Stopping", "Forecasts"),
    ]  # fmt: skip
    assert "below 95% in 0 of 2 populations. Lowest: 95% [91, 98] (sparse)." in good[0]
    assert "in 0 of 2" in good[1]
    assert "0 of them a wrong one (0% [0, 2]), clearly more than 5% nowhere; " in good[3]
    assert good[4].endswith("clearly more than 5% in no poll.")
    assert "Fewer than 80% do at 0 of 1 looks" in good[5]
    bad = concluded(
        {"clean": kind(), "sparse": kind(150, lead=-0.02, gap=0.1, wrong=20)},
        {"equal items, 2 items": poll(false=20, held=50)},
    )
    for sentence, words in zip(
        bad,
        (
            "below 95% in 1 of 2 populations (sparse)",
            "in 1 of 2 populations: sparse. Furthest behind: −0.020 ± 0.001 (sparse)",
            "in 1 of 2 populations: sparse. Furthest: +0.100 ± 0.001 (sparse)",
            "200 have a winner, 20 of them a wrong one (10% [6, 15]), clearly more than 5% in sparse; 200 a",
            "20 of them with a wrong winner (20% [13, 29] of all), clearly more than 5% in equal items, 2 items",
            "Fewer than 80% do at 1 of 1 looks, clearly in 1 (equal items, 2 items after 100 votes)",
        ),
        strict=True,
    ):
        assert words in sentence


def test_calibration_is_not_asked_of_equal_items():
    found = concluded({"clean": kind(), "equal items": kind(gap=0.25)})
    assert "from the truth in 0 of 1 populations. Furthest: +0.000" in found[2]
    only = concluded({"equal items": {**kind(), "lead": Mean(*[math.nan] * 4)}})
    assert only[1:3] == ["Order: all items are equal.", "P(best): no population has one best item."]


def test_what_does_not_meet_the_conditions_is_told_apart():
    found = concluded({"clean": kind(), "households": kind(100)}, {"one voter, 5 items": poll(false=30)})
    assert "in 0 of 1 populations" in found[0]
    assert found[-1] == (
        "Where a condition of rankings is not met, coverage is clearly below 95% in 1 of 1 populations (households), "
        "and 30 of 100 studies stop with a wrong winner."
    )


def test_the_sizes_of_a_kind_take_turns():
    names = named("sparse")
    frames = [measure([names[place]], [seed]).drop("name") for place, seed in ((0, 4), (1, 5))]
    for seed, frame in zip((4, 5), frames, strict=True):
        assert command.measured(names, seed) == frame.to_dicts()


def test_files_are_summarised_and_the_tables_have_a_row_for_each_kind():
    kinds = {
        **{kind: named(kind)[:1] for kind in ("sparse", "one voter")},
        "two equal items": named("two equal items")[:2],
        "clean, close scores": [CLOSE],
    }
    found = Findings.of({kind: measure(names, range(2)).drop("name") for kind, names in kinds.items()}, {})
    assert {name: row["files"] for name, row in found.kinds.items()} == {
        "sparse": 2,
        "two equal items": 4,
        "one voter": 2,
        "clean, close scores": 2,
    }
    assert [row[0] for row in tables.ranking_table(found).rows] == [
        *("sparse", "two equal items", "clean, close scores", "one voter"),
    ]
    assert sum(each.items for each in found.bins["all"]) == 2 * 60 + 2 * 5
    assert sum(each.items for each in found.bins["close"]) == 2 * 5
    for table in (tables.winner_table(found), tables.calibration_table(found)):
        assert all(len(row) == len(table.columns) for row in table.rows)
