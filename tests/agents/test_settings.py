"""What an agent can be given, and what is refused."""

import json
import math

import numpy as np
import pytest

from fairduel import (
    LOGISTIC,
    PROBIT,
    RCDB,
    RCDBS,
    Agent,
    BadInputError,
    CoLSTIM,
    MaxInP,
    MaxPairUCB,
    Outcome,
    clipped_linear,
)
from fairduel.agents import AGENTS, ContextualAgent
from helpers.agents import TRUTH, made, played, sphere


def test_without_a_horizon_the_round_takes_its_place(kind):
    budget = {"flip_budget": 5} if kind in (RCDB, RCDBS) else {}
    agent = made(kind, horizon=None, radius="theory", **budget)
    first = agent.current_radius
    assert math.isfinite(first)
    played(agent, 60)
    assert agent.current_radius > first


@pytest.mark.parametrize("radius", ["practical", "theory", 2.5])
def test_the_scale_multiplies_the_radius(kind, radius):
    assert made(kind, radius=radius, radius_scale=0.1).current_radius == pytest.approx(
        0.1 * made(kind, radius=radius).current_radius, rel=1e-14
    )


def test_a_number_is_the_radius(kind):
    assert made(kind, radius=2.5).current_radius == 2.5


def test_the_constrained_estimate_stays_within_the_bound(kind):
    budget = {"flip_budget": 0} if kind in (RCDB, RCDBS) else {}
    free, kept = (made(kind, warmup=60, constrained=constrained, **budget) for constrained in (False, True))
    rng = np.random.default_rng(0)
    for _ in range(60):
        table = sphere(rng)
        for agent in (free, kept):
            duel = agent.ask(table)
            agent.tell(duel, Outcome.FIRST if duel.difference @ TRUTH > 0 else Outcome.SECOND)
        assert np.linalg.norm(kept.estimate) <= 2.0 * (1 + 1e-9)
    assert np.linalg.norm(free.estimate) > 2.0
    assert np.linalg.norm(kept.estimate) == pytest.approx(2.0, rel=1e-6)


def test_settings_say_what_was_resolved_and_fit_into_json(kind):
    settings = made(kind, link="logistic").settings
    assert json.loads(json.dumps(settings)) == settings
    assert settings["kappa"] == LOGISTIC.kappa(2.0)
    assert settings["ridge"] == 0.25
    assert settings["link"] == "logistic"
    assert settings["horizon"] == 400


def test_a_link_may_be_given_by_name():
    one, other = made(MaxPairUCB, link="probit", norm_bound=1.0), made(MaxPairUCB, link=PROBIT, norm_bound=1.0)
    assert one.settings == other.settings
    assert played(one, 30) == played(other, 30)


def test_a_kappa_may_be_given():
    assert made(RCDB, kappa=0.25).settings["kappa"] == 0.25


def test_settings_are_keywords_only(kind):
    with pytest.raises(TypeError):
        kind(3, 2.0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("dimension", 0),
        ("dimension", -3),
        ("dimension", 2.5),
        ("norm_bound", 0.0),
        ("norm_bound", -1.0),
        ("norm_bound", math.nan),
        ("norm_bound", math.inf),
        ("horizon", 0),
        ("horizon", -5),
        ("horizon", 10.5),
        ("seed", -1),
        ("seed", 0.5),
        ("kappa", 0.0),
        ("kappa", -0.1),
        ("kappa", 0.2501),
        ("kappa", math.nan),
        ("ridge", 0.0),
        ("ridge", -1.0),
        ("ridge", math.inf),
        ("radius", -1.0),
        ("radius", math.nan),
        ("radius", math.inf),
        ("radius_scale", 0.0),
        ("radius_scale", -1.0),
        ("radius_scale", math.nan),
        ("failure_probability", 0.0),
        ("failure_probability", 1.0),
        ("failure_probability", math.nan),
        ("warmup", -1),
        ("warmup", 1.5),
    ],
)
def test_a_bad_setting_is_refused_by_name(kind, setting, value):
    budget = {"flip_budget": 5} if kind in (RCDB, RCDBS) else {}
    with pytest.raises(BadInputError, match=f"{setting} must be"):
        made(kind, **{setting: value}, **budget)


@pytest.mark.parametrize(
    ("kind", "setting", "value", "meant"),
    [
        (RCDB, "radius", "teory", "theory"),
        (MaxInP, "radius", "practica", "practical"),
        (RCDB, "design", "kapa", "kappa"),
        (RCDBS, "design", "plane", "plain"),
        (RCDBS, "slope_radius", "theori", "theory"),
        (CoLSTIM, "coupling", "vcdb", "vacdb"),
        (CoLSTIM, "coupling", "Paper", "paper"),
        (MaxPairUCB, "link", "logistik", "logistic"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind, setting, value, meant):
    with pytest.raises(BadInputError, match=f"{value}.*did you mean '{meant}'"):
        made(kind, **{setting: value})


def test_a_link_that_is_flat_within_the_bound_is_refused():
    with pytest.raises(BadInputError, match="κ = 0"):
        made(MaxPairUCB, link=clipped_linear(), norm_bound=1.0)


@pytest.mark.parametrize("name", [name for name, kind in AGENTS.items() if issubclass(kind, ContextualAgent)])
def test_a_poll_without_features_needs_only_the_number_of_items(name, tmp_path):
    agent = AGENTS[name](items=5, horizon=50, seed=1)
    for _ in range(30):
        duel = agent.ask()
        assert not duel.is_self_duel
        agent.tell(duel, Outcome.FIRST if duel.first > duel.second else Outcome.SECOND)
    assert agent.recommend() == agent.recommend(np.eye(5)) == 4
    agent.save(tmp_path / "poll.npz")
    assert Agent.load(tmp_path / "poll.npz").ask().same_as(agent.ask())
    featured = AGENTS[name](dimension=5, norm_bound=5**0.5, self_duels=False, horizon=50, seed=1)
    assert featured.ask(np.eye(5)).same_as(AGENTS[name](items=5, horizon=50, seed=1).ask())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "set dimension and norm_bound or, for a poll without features, items"),
        ({"dimension": 3}, "set dimension and norm_bound"),
        ({"items": 1}, "items must be a whole number ≥ 2"),
        ({"items": 4, "dimension": 3, "norm_bound": 1.0}, "items or dimension, not both"),
    ],
)
def test_a_poll_with_too_little_or_too_much_is_refused(settings, message):
    with pytest.raises(BadInputError, match=message):
        RCDB(**settings, horizon=10)
