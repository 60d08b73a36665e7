import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import LOGISTIC, BadInputError
from fairduel.core.links import NO_TIES, tie_model, win_and_tie

rewards = st.floats(-5, 5)


@given(rewards, rewards, st.floats(0.01, 20))
def test_davidson_is_his_formula_of_two_strengths(first, second, size):
    """P(tie) = ν√(ab)/(a + b + ν√(ab)) for strengths a and b, as Davidson (1970) has it."""
    a, b = math.exp(first), math.exp(second)
    total = a + b + size * math.sqrt(a * b)
    win, tie = win_and_tie(tie_model(f"davidson({size!r})"), float(LOGISTIC.probability(first - second)))
    assert win == pytest.approx(a / total, rel=1e-9)
    assert tie == pytest.approx(size * math.sqrt(a * b) / total, rel=1e-9)


@given(rewards, rewards, st.floats(1, 20))
def test_rao_and_kupper_is_their_formula_of_two_strengths(first, second, size):
    """P(first wins) = a/(a + ηb), P(tie) = (η² − 1)ab/((a + ηb)(b + ηa)), as Rao and Kupper (1967) have it."""
    a, b = math.exp(first), math.exp(second)
    win, tie = win_and_tie(tie_model(f"rao-kupper({size!r})"), float(LOGISTIC.probability(first - second)))
    assert win == pytest.approx(a / (a + size * b), rel=1e-9)
    assert tie == pytest.approx((size**2 - 1) * a * b / ((a + size * b) * (b + size * a)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["none", "davidson(0.7)", "rao-kupper(2)"])
@given(p=st.integers(0, 1024).map(lambda k: k / 1024))  # of which 1 − p is exact
def test_either_side_sees_the_same_tie_and_the_better_wins_more_often(name, p):
    model = tie_model(name)
    win, tie = win_and_tie(model, p)
    lose, again = win_and_tie(model, 1.0 - p)
    assert tie == pytest.approx(again, abs=1e-12)
    assert win + tie + lose == pytest.approx(1.0, abs=1e-12)
    assert (win - lose) * (p - 0.5) >= 0.0
    assert tie <= win_and_tie(model, 0.5)[1] + 1e-12


def test_without_ties_there_are_none():
    assert tie_model("none") == NO_TIES
    assert win_and_tie(NO_TIES, 0.3) == (0.3, 0.0)
    assert win_and_tie(tie_model("rao-kupper(1)"), 0.3) == pytest.approx((0.3, 0.0))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("davidsen(1)", "did you mean 'davidson'"),
        ("davidson", "needs a positive number"),
        ("davidson(-1)", "needs a positive number"),
        ("davidson(many)", "needs a positive number"),
        ("rao-kupper(0.5)", "at least 1"),
        (np.nan, "tie model"),
    ],
)
def test_a_wrong_model_is_refused(text, complaint):
    with pytest.raises(BadInputError, match=complaint):
        tie_model(text)
