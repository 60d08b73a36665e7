"""Means with errors, drawn from what a sweep kept."""

import math

import numpy as np
import polars as pl
import pytest

from fairduel import BadInputError
from fairduel.report.drawing import image
from fairduel.report.research.curves import draw_means, sweep_means
from helpers.sweeps import kept


def test_points_are_means_with_standard_errors(swept):
    means = sweep_means(
        swept,
        x="budget",
        y="regret",
        by=["agent", "agent_radius"],
        panel=["attack", "attack_target"],
        where="horizon=30",
    )
    points = means.points
    assert means.mixed == []
    assert (means.x_label, means.y_label) == ("budget", "final regret (mean ± standard error)")
    assert {point.line for point in points} == {"RCDB", "MaxPairUCB, radius 2", "MaxPairUCB, radius 4"}
    assert {point.panel for point in points} == {"greedy", "misleading, target random", "misleading, target worst"}
    [point] = [p for p in points if (p.panel, p.line, p.x) == ("greedy", "RCDB", 4.0)]
    frame = pl.concat(kept(swept).values()).filter(agent="rcdb", attack="greedy", horizon=30, budget=4)
    regret = frame["regret"].to_numpy()
    assert point.runs == 3
    assert point.mean == pytest.approx(regret.mean(), rel=1e-12)
    assert point.error == pytest.approx(regret.std(ddof=1) / np.sqrt(3), rel=1e-12)
    assert point.agent == "rcdb"


def test_columns_mixed_in_a_mean_are_reported(swept):
    means = sweep_means(swept, x="agent_radius", y="flips", by=["agent"], panel=["attack"])
    assert means.mixed == ["budget", "horizon", "attack_target"]
    assert (means.x_label, means.y_label) == ("radius", "flips (mean ± standard error)")
    means = sweep_means(swept, x="budget", y="regret", by=["agent"], panel=["attack"])
    assert means.mixed == ["horizon", "agent_radius", "attack_target"]


def test_one_run_has_no_error_and_words_stand_on_the_axis(swept):
    means = sweep_means(
        swept, x="attack", y="locked_in", by=["horizon"], panel=[], where="seed = 10 AND agent = 'rcdb' AND budget = 2"
    )
    points = means.points
    assert {point.x for point in points} == {"greedy", "misleading"}
    assert {point.line for point in points} == {"horizon 20", "horizon 30"}
    assert all(math.isnan(point.error) for point in points if point.x == "greedy")
    figure = draw_means(means)
    assert image(figure, "png").startswith(b"\x89PNG")
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["greedy", "misleading"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": "bugdet"}, "did you mean 'budget'"),
        ({"by": ["agnet"]}, "did you mean 'agent'"),
        ({"y": "agent"}, "not numeric"),
        ({"where": "horizon = 1"}, "nothing to plot"),
        ({"where": "horizn = 1"}, "horizn"),
        ({"where": "true) --"}, "syntax"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused(swept, changes, words):
    wanted = {"x": "budget", "y": "regret", "by": ["agent"], "panel": ["attack"]} | changes
    with pytest.raises(BadInputError, match=words):
        sweep_means(swept, **wanted)
