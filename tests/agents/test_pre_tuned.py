"""Constants found by search, in the units in which they were searched."""

import math

import numpy as np
import pytest

from fairduel import MaxPairUCB, Outcome, Sceptic
from fairduel.agents import AGENTS
from fairduel.agents.parts.flip_tolerance import Constants
from fairduel.errors import BadInputError

SEARCHED = ("rcdb", "rcdb-s", "hcw")
UNIT = Constants(radius=0.3, clean_radius=0.7, trust=3.0, ridge=5.0, tolerance=2.5, slope_radius=0.2)


@pytest.fixture(params=SEARCHED)
def kind(request, monkeypatch):
    monkeypatch.setattr(AGENTS[request.param], "pre_tuned", UNIT)
    return AGENTS[request.param]


def made(kind, **settings):
    return kind(**{"dimension": 4, "norm_bound": 3.0, "horizon": 900, "seed": 0} | settings)


def test_each_constant_is_in_its_own_unit(kind):
    plain, searched = made(kind, flip_budget=20), made(kind, flip_budget=20, radius="pre-tuned")
    assert searched.radius_at(1) == pytest.approx(0.3 * 2.0)
    assert searched.settings["trust"] == pytest.approx(3.0 * plain.settings["trust"])
    assert searched.settings["ridge"] == pytest.approx(5.0 / 9.0)
    if hasattr(searched, "slope_radius_at"):
        assert searched.slope_radius_at(1) == pytest.approx(0.2 * 2.0)


def test_without_flips_every_vote_counts_and_the_radius_is_another(kind):
    agent = made(kind, flip_budget=0, radius="pre-tuned")
    assert agent.settings["trust"] == math.inf
    assert agent.radius_at(1) == pytest.approx(0.7 * 2.0)


def test_if_c_is_unknown_it_is_assumed(kind):
    agent, told = made(kind, radius="pre-tuned"), made(kind, radius="pre-tuned", flip_budget=75)
    assert agent.settings["flip_budget"] == 2.5 * math.sqrt(900)
    assert agent.settings["trust"] == told.settings["trust"]


def test_a_setting_of_ones_own_is_kept(kind):
    agent = made(kind, flip_budget=20, radius="pre-tuned", trust=0.5, ridge=0.25)
    assert (agent.settings["trust"], agent.settings["ridge"]) == (0.5, 0.25)


def test_it_asks_as_with_these_numbers(kind):
    searched = made(kind, flip_budget=20, radius="pre-tuned")
    numbers = {name: searched.settings[name] for name in ("trust", "ridge")}
    if hasattr(searched, "slope_radius_at"):
        numbers["slope_radius"] = searched.slope_radius_at(1)
    spelled_out = made(kind, flip_budget=20, radius=searched.radius_at(1), **numbers)
    actions = np.random.default_rng(0).uniform(-0.5, 0.5, (9, 4))
    for _ in range(30):
        one, other = searched.ask(actions), spelled_out.ask(actions)
        assert (one.first, one.second, one.weight) == (other.first, other.second, other.weight)
        for agent, duel in ((searched, one), (spelled_out, other)):
            agent.tell(duel, Outcome.FIRST)


@pytest.mark.parametrize("kind", [Sceptic, MaxPairUCB])
def test_other_agents_have_no_such_constants(kind):
    with pytest.raises(BadInputError, match="unknown radius 'pre-tuned'"):
        made(kind, radius="pre-tuned")
