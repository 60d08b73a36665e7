"""Liars who see the duel and the truth vote live; ``benchmarks/live_liars.py`` runs 20 seeds, and rivals next to it."""

import pytest
from benchmarks.live_liars import study


@pytest.mark.parametrize("seed", [0, 1])
def test_liars_who_see_the_duel_do_not_change_who_is_first(seed):
    found = study("sceptic", "liars", 1.2, seed, votes=1000)
    assert found.results
    assert found.flagged_others == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_honest_voters_with_another_taste_are_not_flagged(seed):
    found = study("sceptic", "tastes", 1.2, seed, votes=1000)
    assert found.results
    assert (found.flagged_minority, found.flagged_others) == (0, 0)
