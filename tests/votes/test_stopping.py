import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from fairduel.errors import BadInputError
from fairduel.votes import Votes, rank
from fairduel.votes.bradley_terry import fit_scores
from fairduel.votes.fragile import PLAIN, prepared
from fairduel.votes.lower_bound import Proof
from fairduel.votes.stopping_rule import log_evidence, stopping


def poll(seed: int, scores: list[float], count: int) -> Votes:
    rng, items = np.random.default_rng(seed), len(scores)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    chance = 1.0 / (1.0 + np.exp(np.array(scores)[second] - np.array(scores)[first]))
    return Votes.from_arrays([f"i{k}" for k in range(items)], first, second, (rng.random(count) < chance).astype(float))


@pytest.mark.parametrize(("gap", "variance"), [(0.0, 0.3), (0.5, 0.01), (1.2, 2.0), (-0.4, 0.1)])
def test_evidence_is_the_average_over_gaps(gap, variance):
    def integrand(delta):
        return 2.0 * stats.norm.pdf(delta) * math.exp(delta * gap / variance - delta**2 / (2.0 * variance))

    expected = integrate.quad(integrand, 0.0, 20.0, points=[max(gap, 0.01)])[0]
    assert log_evidence(gap, variance) == pytest.approx(math.log(expected), rel=1e-8, abs=1e-8)


def test_five_percent_of_leads_without_a_difference_are_ever_announced():
    """Looking at 600 times while the information grows 10⁷-fold; a bar too high or too low by two would fail."""
    rng, runs = np.random.default_rng(0), 4000
    information = np.geomspace(1e-3, 1e4, 600)
    steps = np.sqrt(np.diff(information, prepend=0.0)) * rng.normal(size=(runs, len(information)))
    gaps = np.cumsum(steps, axis=1) / information
    announced = (log_evidence(gaps, 1.0 / information) >= math.log(1.0 / 0.05)).any(axis=1)
    assert 0.034 < announced.mean() < 0.058


def test_no_flips_leave_less_than_the_least_gap():
    votes = poll(2, [0.9, 0.0, -0.5], 60)
    _, kinds, fitted = prepared(votes, PLAIN)
    leader, *others = np.argsort(-fitted.scores).tolist()
    for rival in others:
        bounds = [Proof(kinds, fitted, "false").least_gap(size, (leader, rival)) for size in range(3)]
        assert bounds[0] == pytest.approx(fitted.scores[leader] - fitted.scores[rival])
        assert np.isfinite(bounds).all()
        for size in (1, 2):
            takings = itertools.combinations_with_replacement(range(len(kinds.count)), size)
            counts = (np.bincount(kind, minlength=len(kinds.count)) for kind in takings)
            fits = [
                fit_scores(kinds.after(taken, "flipped")).scores for taken in counts if (taken <= kinds.count).all()
            ]
            least = min(scores[leader] - scores[rival] for scores in fits)
            assert bounds[size] <= least
            assert bounds[0] - bounds[size] < 2.0 * (bounds[0] - least)  # not far below it


def test_a_clear_poll_can_stop_and_false_votes_make_it_harder():
    votes = poll(3, [1.2, 0.0, -0.3, -0.6], 600)
    answers = [stopping(votes, rank(votes), false_votes=count)[0] for count in (0, 5, 10, 60)]
    assert [answer.can_stop for answer in answers] == [True, True, True, False]
    evidence = [answer.evidence for answer in answers]
    assert evidence == sorted(evidence, reverse=True)
    assert answers[0].bar == pytest.approx(math.log(3 / 0.05))
    assert answers[0].leader == "i0"
    assert answers[3].needed > 60


@pytest.mark.parametrize("false_votes", [0, 4])
def test_as_many_more_votes_as_forecast_are_enough(false_votes):
    votes = poll(1, [0.7, 0.3, -0.4], 200)
    times = 1.0 + stopping(votes, rank(votes), false_votes=false_votes)[0].needed / len(votes)
    assert times > 2.0
    for factor, enough in ((0.85, False), (1.15, True)):
        more = replace(votes, weight=np.full(len(votes), factor * times))
        assert stopping(more, rank(more), false_votes=false_votes)[0].can_stop == enough


def test_equal_items_have_no_forecast():
    votes = Votes.from_arrays("ab", [0] * 40, [1] * 40, [1, 0] * 20)
    answer = stopping(votes, rank(votes))[0]
    assert answer.needed is None
    assert "no reasonable number of votes" in answer.sentence
    assert answer.false_votes == 6


def test_groups_share_the_level():
    votes = Votes.from_arrays("abcde", [0] * 60 + [2] * 60, [1] * 60 + [3] * 60, [1] * 55 + [0] * 5 + [1, 0] * 30)
    one, other = stopping(votes, rank(votes), false_votes=1)
    assert one.bar == other.bar == pytest.approx(math.log(2 / 0.05))
    assert one.sentence.startswith("Group 1: You can stop: a is the best of 2 items")
    assert "even if 1 vote is false" in one.sentence
    assert other.sentence.startswith("Group 2: Do not stop yet: ")


def test_a_ranking_with_features_is_refused():
    votes = poll(0, [0.5, 0.0], 60)
    votes = replace(votes, features=np.random.default_rng(0).normal(size=(60, 1)), feature_names=("length",))
    with pytest.raises(BadInputError, match="uses features"):
        stopping(votes, rank(votes))


def test_a_negative_number_of_false_votes_is_refused():
    votes = poll(0, [0.5, 0.0], 20)
    with pytest.raises(BadInputError, match="false_votes"):
        stopping(votes, rank(votes), false_votes=-1)
