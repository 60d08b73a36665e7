import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import BadInputError, Outcome
from fairduel.adversaries import Sight, Watching

REWARDS = np.array([0.0, 1.0, 0.4, -1.0])  # best first: 1, 2, 0, 3


def seen(first=1, second=0, *, first_wins=True, number=1, probability=0.8, **believed):
    outcome = Outcome.FIRST if first_wins else Outcome.SECOND
    known = {"weight": 1.0, "width": 1.0, "lead": 0.5, "leader": 1, "settling": 2.0} | believed
    return Sight(number, np.eye(4), REWARDS, first, second, outcome, probability, **known)


def flips(settings, *sights):
    adversary = Watching(budget=100, **settings)
    return [adversary.flips(sight) for sight in sights]


def test_by_default_it_flips_all_but_self_duels():
    assert flips({}, seen(), seen(2, 3, first_wins=False), seen(1, 1), seen(probability=0.1)) == [
        True,
        True,
        False,
        True,
    ]


def test_it_begins_when_the_leader_is_far_enough_ahead_and_then_goes_on():
    near, far = seen(settling=0.6), seen(settling=0.4)
    assert flips({"settling": 0.5}, far, near, far) == [False, True, True]
    assert flips({"settling": 0.5, "again": True}, far, near, far) == [False, True, False]


def test_it_begins_after_a_run_of_upsets():
    upset = seen(lead=-0.5)
    assert flips({"upsets": 2}, upset, upset, upset, upset) == [False, False, True, True]
    assert flips({"upsets": 2}, upset, seen(), upset, upset) == [False] * 4


def test_upsets_are_counted_as_the_agent_hears_them():
    """A flip turns an agreement into an upset; the fourth outcome is let pass, and agrees."""
    assert flips({"spare": 3}, *[seen()] * 6) == [True, True, True, False, True, True]


def test_it_chooses_duels_by_probability_weight_and_width():
    assert flips({"chance": 0.6}, seen(probability=0.6), seen(probability=0.61)) == [False, True]
    assert flips({"weight": 0.5}, *(seen(weight=w) for w in (0.4, 1.0, 0.4, 0.6))) == [True, True, False, True]
    assert flips({"width": 1.0}, seen(width=1.0), seen(width=0.9), seen(width=2.0)) == [True, False, True]


def test_it_favours_one_action():
    lost = [seen(1, loser) for loser in (2, 0, 3)]
    assert flips({"favourite": "second"}, *lost) == [True, False, False]
    assert flips({"favourite": "worst"}, *lost) == [False, False, True]


def test_a_misled_agent_is_left_alone_or_kept_where_it_is():
    wrong = {"leader": 2}  # it loses 0.6 of 2
    sights = seen(2, 0, **wrong), seen(2, 0, first_wins=False, **wrong), seen(2, 0, leader=1)
    assert flips({"misled": "go on"}, *sights) == [True, True, True]
    assert flips({"misled": "wait"}, *sights) == [False, False, True]
    assert flips({"misled": "protect"}, *sights) == [False, True, True]
    assert flips({"misled": "wait", "harm": 0.31}, *sights) == [True, True, True]
    assert flips({"misled": "wait", "harm": 0.29}, *sights) == [False, False, True]


def test_pace_is_the_share_of_flips():
    count = sum(flips({"pace": 0.3}, *[seen()] * 100)) + sum(flips({"pace": 0.3}, *[seen()] * 100))
    assert 20 < count < 100


@given(
    settling=st.floats(0, 2),
    upsets=st.just(0),
    weight=st.floats(0, 1),
    misled=st.sampled_from(["go on", "protect", "wait"]),
)
def test_an_agent_that_shows_nothing_meets_every_condition_on_it(settling, upsets, weight, misled):
    hidden = seen(width=math.nan, lead=math.nan, leader=-1, settling=math.nan)
    settings = {"settling": settling, "upsets": upsets, "weight": weight, "misled": misled, "again": True, "width": 2.0}
    assert flips(settings, hidden, hidden) == [True, True]


BAD = [
    {"settling": -1.0},
    {"again": 1},
    {"upsets": -1},
    {"chance": 1.1},
    {"weight": -0.1},
    {"width": -1.0},
    {"favourite": "first"},
    {"misled": "stop"},
    {"harm": 2.0},
    {"spare": 0.5},
    {"pace": "fast"},
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_setting_is_refused(bad):
    with pytest.raises(BadInputError, match=next(iter(bad))):
        Watching(budget=3, **bad)


def test_every_setting_has_a_bad_value_here():
    own = {field.name for field in fields(Watching)} - {"budget", "rng", "start", "every"}
    assert {name for bad in BAD for name in bad} == own
