"""An agent learns from its own duels only, as it asked them."""

import dataclasses
import math
import warnings
from collections import Counter

import numpy as np
import pytest

from fairduel import RCDB, CoLSTIM, Duel, FairduelError, LockInWarning, MaxPairUCB, Outcome, UnknownDuelError
from fairduel.agents import FGTS, VACDB

ACTIONS = np.array([[0.9, 0.0], [0.0, 0.9], [-0.5, 0.5]])


def made(kind=RCDB, **settings):
    return kind(**{"dimension": 2, "norm_bound": 2.0, "horizon": 100} | settings)


def test_a_duel_of_another_agent_is_refused_though_all_its_numbers_agree():
    mine, other = made(), made()
    table = ACTIONS[:2]
    ours, theirs = mine.ask(table), other.ask(table[:, ::-1].copy())
    assert ours == theirs
    with pytest.raises(UnknownDuelError, match="never asked"):
        mine.tell(theirs, Outcome.FIRST)
    mine.tell(ours, Outcome.FIRST)


def test_the_difference_of_a_duel_cannot_be_changed():
    duel = made().ask(ACTIONS)
    with pytest.raises(ValueError, match="read-only"):
        duel.difference[:] = 0.01


def test_a_duel_whose_own_fields_were_changed_or_left_out_is_refused():
    agent = made(VACDB)
    duel = agent.ask(ACTIONS)
    shared = {field.name: getattr(duel, field.name) for field in dataclasses.fields(Duel)}
    for wrong in (dataclasses.replace(duel, level=duel.level + 1), Duel(**shared)):
        with pytest.raises(UnknownDuelError, match="never asked"):
            agent.tell(wrong, Outcome.FIRST)
    agent.tell(dataclasses.replace(duel), Outcome.FIRST)


def test_a_duel_may_not_change_the_arrays_that_the_agent_keeps():
    agent = made(FGTS)
    duel = agent.ask(ACTIONS)
    with pytest.raises(ValueError, match="read-only"):
        duel.first_features[:] = 0.01
    turned = dataclasses.replace(duel, first_features=-duel.first_features)
    with pytest.raises(UnknownDuelError, match="never asked"):
        agent.tell(turned, Outcome.FIRST)


def test_something_that_is_no_duel_is_refused():
    with pytest.raises(FairduelError):
        made().tell(None, Outcome.FIRST)


def test_a_warning_made_an_error_leaves_no_duel_that_nobody_has():
    agent = made(MaxPairUCB, radius=0.0, warmup=20)
    for _ in range(20):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    got = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(105):
            try:
                got.append(agent.ask(ACTIONS))
            except LockInWarning:
                continue
    assert len(got) == 104
    assert len(agent.pending) == len(got)


def test_colstim_breaks_the_leaders_and_the_rivals_ties_apart():
    side = math.sqrt(0.75)
    triangle = 0.9 * np.array([[1.0, 0.0], [-0.5, side], [-0.5, -side]])
    first_duels = (made(CoLSTIM, seed=seed, coupling="vacdb").ask(triangle) for seed in range(300))
    pairs = Counter(frozenset((duel.first, duel.second)) for duel in first_duels)
    assert len(pairs) == 3
    assert min(pairs.values()) > 60
