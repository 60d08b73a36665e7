"""The whole review, and how votes are spread."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from fairduel.errors import BadInputError
from fairduel.votes import Votes, rank
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.reviewing.review import gini, review, review_coverage, steps
from helpers.boards import board


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=12).map(np.array))
def test_the_gini_index_is_the_mean_difference(values):
    mean = values.mean()
    expected = np.abs(values[:, None] - values[None, :]).mean() / (2 * mean) if mean > 0.0 else 0.0
    assert gini(values) == pytest.approx(expected, abs=1e-9)


def test_coverage_counts_pairs_groups_and_weights():
    votes = Votes.from_arrays("abcdef", [0, 1, 0, 3, 4], [1, 0, 2, 4, 5], [1, 1, 0, 0.5, 1], weight=[2, 1, 1, 9, 1])
    half, drop = (review_coverage(votes, rank(votes, ties=ties), ties) for ties in ("half", "drop"))
    assert (half.votes, half.pairs, half.possible_pairs, half.groups, half.fewest) == (14.0, 4, 6, 2, ("c", 1.0))
    assert (drop.votes, drop.pairs, drop.possible_pairs, drop.groups, drop.fewest) == (5.0, 3, 4, 2, ("d", 0.0))
    assert half.gini_items == pytest.approx(gini(np.array([4.0, 3.0, 1.0, 9.0, 10.0, 1.0])))
    assert half.gini_pairs == pytest.approx(gini(np.array([3.0, 1.0, 9.0, 1.0, 0.0, 0.0])))
    assert "too few to place it" in half.sentence


def spread_of_gaps(voters, each, **people):
    """Return the variance over files of the difference of two items' scores."""
    gaps = []
    for seed in range(100):
        votes = board(np.random.default_rng(seed), [0.3, 0.0, -0.3], voters=voters, each=each, **people)
        scores = fit_scores(wins(votes)).scores
        gaps.append(scores[0] - scores[1])
    return np.var(gaps)


@pytest.mark.parametrize("taste", [0.0, 1.0])
def test_the_design_effect_is_that_of_independent_files(taste):
    """The variance over many files is the effect times that of as many votes by as many voters."""
    people = {"taste": taste, "model": "davidson", "tie": 0.0}
    measured = spread_of_gaps(30, 40, **people) / spread_of_gaps(1200, 1, **people)
    effects = []
    for seed in range(25):
        votes = board(np.random.default_rng(seed), [0.3, 0.0, -0.3], voters=30, each=40, **people)
        effects.append(review_coverage(votes, rank(votes, draws=100)).design_effects["voters"])
    assert np.mean(effects) == pytest.approx(measured, rel=0.5)  # the ratio has a standard error of 20%
    assert (np.mean(effects) > 2.0) == (taste > 0.0)


def test_a_design_effect_below_1_is_not_said_to_widen_errors():
    votes = board(np.random.default_rng(0), [0.3, 0.0, -0.3], voters=10, each=40, taste=0.5, model="davidson", tie=0.0)
    found = review_coverage(votes, rank(votes, draws=100))
    assert "widen errors by a factor of 1.20 (voters)" in replace(found, design_effects={"voters": 1.44}).sentence
    assert "widen" not in replace(found, design_effects={"voters": 0.58}).sentence


def test_contexts_that_were_never_compared_have_no_design_effect():
    votes = Votes.from_arrays("abcd", [0, 2] * 9, [1, 3] * 9, [1, 0, 0] * 6, context=[0, 1] * 9, contexts="xy")
    assert review_coverage(votes, rank(votes)).design_effects == {}


def test_a_review_is_complete_and_repeatable():
    votes = board(np.random.default_rng(1), [0.5, 0.2, 0.0, -0.4], voters=20, each=20, model="davidson", tie=0.0)
    done = []
    found = review(votes, seed=3, progress=done.append)
    assert sum(done) == steps(votes)
    record = found.record()
    assert json.dumps(record, default=str) == json.dumps(review(votes, seed=3).record(), default=str)
    assert found.cycles.predicted != review(votes, seed=4).cycles.predicted
    assert record["summary"][0] == found.ranking.verdicts[0].headline
    starts = [sentence.split(":")[0] for sentence in record["summary"][-4:]]
    assert starts == ["Position", "Ties", "Cycles", "Coverage"]
    needs = found.to_frame()
    assert needs.shape[0] == 3
    assert needs["rank"].to_list() == [1, 2, 3]
    ranks = found.tie_ranks_frame()
    assert ranks.columns == [
        "item",
        *(f"{what}_{m}" for m in ("half", "drop", "davidson", "rao-kupper") for what in ("rank", "score")),
    ]


def test_the_smallest_files_have_a_review():
    for votes in (
        Votes.from_arrays("ab", [0], [1], [1]),
        Votes.from_arrays("ab", [0], [1], [0.5]),
        Votes.from_arrays("abc", [0, 0], [1, 1], [1, 0], voter=[0, 0], voters=["v"]),
        Votes.from_arrays("abcd", [0, 2], [1, 3], [1, 0.5], weight=[1e6, 0.25]),
    ):
        found = review(votes)
        assert len(found.summary()) >= 5
        assert found.plan.separated in (0, 1)


def test_votes_that_do_not_count_are_refused():
    with pytest.raises(BadInputError, match="no vote counts"):
        review(Votes.from_arrays("ab", [0], [1], [0.5]), ties="drop")


@pytest.mark.parametrize(
    ("name", "advantage", "theta", "cycles", "gini_items", "separated"),
    [("llmfao", 0.0908, 2.565, 510, 0.3729, 0), ("mtbench_human", 0.0044, 1.991, 0, 0.0678, 4)],
)
def test_recorded_votes_agree_with_arenakit(recorded, name, advantage, theta, cycles, gini_items, separated):
    """Numbers by arenakit 0.1.1 on the same files."""
    found = review(recorded(name))
    assert special.logit(found.position.share) == pytest.approx(advantage, abs=2e-4)
    assert found.ties.rules[-1].parameter == pytest.approx(theta, abs=2e-3)
    assert found.cycles.found == cycles
    assert found.coverage.gini_items == pytest.approx(gini_items, abs=1e-4)
    assert found.plan.separated == separated
    assert (found.position.verdict, found.cycles.more_than_predicted) == (
        ("biased", True) if name == "llmfao" else ("unclear", False)
    )
