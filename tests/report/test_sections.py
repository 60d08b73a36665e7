"""What the sections of a report hold."""

import base64
import csv
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from fairduel.experiments import EXPERIMENTS
from fairduel.report.drawing import image
from fairduel.report.page import Drawn, with_files
from fairduel.report.research.experiment_page import write_experiments
from fairduel.report.votes.audit_page import draw_evidence
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.voters import audit_voters
from helpers.reports import REPORTS, made_up


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_agents_with_the_same_settings_everywhere_have_one_row(tmp_path):
    results = made_up(EXPERIMENTS["figure1"](), 2)
    same = json.dumps({"radius": 2.0})
    rcdb = [i for i, entry in enumerate(results.experiment.entries) if entry.label == "RCDB (practical)"]
    settings = pl.when(pl.col("entry").is_in(rcdb)).then(pl.lit(same)).otherwise(pl.col("agent_settings"))
    changed = replace(results, runs=results.runs.with_columns(agent_settings=settings))
    with with_files():
        write_experiments(tmp_path, [changed], "fairduel")
    rows = read(tmp_path / "table-figure1-settings.csv")
    assert [row["panel"] for row in rows if row["agent (setting)"] == "RCDB (practical)"] == ["all"]
    assert len(read(tmp_path / "table-figure1-by-panel.csv")) == 6


def test_differences_name_the_agent_they_are_from(tmp_path):
    REPORTS["figure2"](tmp_path)
    rows = read(tmp_path / "table-figure2-greedy.csv")
    differences = {row["difference from RCDB (practical)"] for row in rows if "RCDB (" in row["agent (setting)"]}
    assert differences == {"–"}
    assert all("exponent" in row["fit"] for row in read(tmp_path / "table-figure2-fitted-growth.csv"))


@pytest.mark.parametrize(("kind", "flagged"), [("audit", True), ("audit without liars", False)])
def test_an_audit_shows_both_fragilities_only_if_someone_is_flagged(kind, flagged, tmp_path):
    REPORTS[kind](tmp_path)
    assert (tmp_path / "table-after-the-audit.csv").exists() == flagged
    assert (tmp_path / "table-all-votes.csv").exists()
    [voters] = [*tmp_path.glob("table-flagged-voters.csv"), *tmp_path.glob("table-the-five-*.csv")]
    assert ("why" in read(voters)[0]) == flagged


def test_an_embedded_figure_has_its_own_orange_for_dark_pages():
    drawn = Drawn("A caption.", Figure())
    embedded = base64.b64decode(drawn.uri.split(",")[1])
    assert b"prefers-color-scheme: dark" in embedded
    assert b"prefers-color-scheme" not in drawn.svg


def test_the_figure_of_many_voters_is_small():
    few = audit_voters(arena(voters=60, votes_each=15, seed=4)[0])
    many = {
        name: np.repeat(getattr(few, name), 1000) for name in ("votes", "decisive", "flagged", "agreement", "total")
    }
    assert len(image(draw_evidence(replace(few, **many)), "svg")) < 300_000
