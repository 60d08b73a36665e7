"""What a class says of itself, and what the reports make of it."""

import re

import pytest

from fairduel.agents import AGENTS, RCDB, loaded_class
from fairduel.experiments.sentences import title_of
from fairduel.report.research.curves import _styles

PAPERS = {  # as figures have always shown them
    "rcdb": ("RCDB", "#D55E00"),
    "rcdb-s": ("RCDB-S", "#CC79A7"),
    "maxpairucb": ("MaxPairUCB", "#0072B2"),
    "maxinp": ("MaxInP", "#009E73"),
    "colstim": ("CoLSTIM", "#E69F00"),
    "fgts": ("FGTS.CDB", None),
    "cw-oful": ("CW-OFUL", None),
}


def test_every_agent_has_a_title_of_its_own():
    titles = {kind.title for kind in AGENTS.values()}
    assert len(titles) == len(AGENTS)
    assert not any(":" in title for title in titles)
    colours = [kind.colour for kind in AGENTS.values() if kind.colour]
    assert len(set(colours)) == len(colours)
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours)


@pytest.mark.parametrize("name", PAPERS)
def test_figures_show_what_the_class_says(name):
    title, colour = PAPERS[name]
    assert title_of(name) == title
    [style, _] = _styles([name, "mine:Unknown"])
    assert style["color"] == (colour or "#000000")


def test_a_users_class_is_shown_by_the_name_it_is_run_by_unless_it_says_otherwise():
    class Mine(RCDB):
        pass

    class Named(RCDB):
        title = "My agent"
        colour = "#123456"

    name = f"{__name__}:{Mine.__qualname__}"
    assert loaded_class(name) is Mine
    assert (title_of(name), Mine.colour) == (name, None)
    named = f"{__name__}:{Named.__qualname__}"
    assert title_of(named) == "My agent"
    assert [style["color"] for style in _styles(["rcdb", named])] == ["#D55E00", "#123456"]
    assert title_of("nowhere:Agent") == "nowhere:Agent"


@pytest.mark.parametrize("name", AGENTS)
def test_settings_that_a_class_names_are_settings_that_it_takes(name):
    kind = AGENTS[name]
    assert {*kind.published_settings, *kind.tuned_choices} <= set(kind.__dataclass_fields__)
