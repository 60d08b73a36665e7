"""Certificates hold against every lie of every few voters."""

from itertools import product

import numpy as np
import pytest

from fairduel.errors import BadInputError
from fairduel.votes import CertifiedRewards


def small(seed):
    """Two votes of each of seven voters on answers with two features."""
    rng = np.random.default_rng(seed)
    answers, voter = rng.normal(size=(14, 2, 2)), np.repeat(np.arange(7), 2)
    return answers, (answers[:, 0, 0] > answers[:, 1, 0]).astype(float), voter


def test_no_lies_of_fewer_voters_change_a_certified_preference():
    answers, result, voter = small(0)
    test = np.random.default_rng(9).normal(size=(40, 2, 2))
    honest = CertifiedRewards.fit(answers, result, voter, groups=3)
    side, least = np.sign(honest.margins(test)), honest.least_liars(test)
    reached = np.zeros(len(test), dtype=bool)
    for liar, lies in product(range(7), product((0.0, 1.0), repeat=2)):
        told = result.copy()
        told[voter == liar] = lies
        changed = np.sign(CertifiedRewards.fit(answers, told, voter, groups=3).margins(test)) != side
        assert not changed[least > 1].any()
        reached |= changed
    assert (least > 1).any()
    assert reached[least == 1].mean() > 0.5  # the number is not much too small either


def test_the_median_has_the_side_of_the_majority_and_a_unanimous_vote_the_most_liars():
    answers, result, voter = small(0)
    certified = CertifiedRewards.fit(answers, result, voter, groups=5)
    each = np.array([model.margins(answers)[0] for model in certified.models])
    assert (np.sign(certified.margins(answers)) == np.sign(np.sign(each).sum(axis=0))).all()
    unanimous = np.abs(np.sign(each).sum(axis=0)) == 5
    assert (certified.least_liars(answers)[unanimous] == 3).all()


def test_wrong_groups_are_refused():
    answers, result, voter = small(0)
    for groups in (4, 9, 0):
        with pytest.raises(BadInputError, match="groups"):
            CertifiedRewards.fit(answers, result, voter, groups=groups)
    with pytest.raises(BadInputError, match="same length"):
        CertifiedRewards.fit(answers, result[:3], voter)


def test_most_pairs_of_recorded_votes_withstand_two_percent_of_the_voters(data):
    table = np.load(data / "mtbench_human" / "features.npz")
    rows = np.genfromtxt(data / "mtbench_human" / "votes.csv", delimiter=",", dtype=str, skip_header=1)
    rows = rows[rows[:, 5] != "tie"]
    prompt, one, other, judge = (rows[:, column].astype(int) for column in range(4))
    answers = table["phi"].astype(float)
    pairs = np.stack([answers[prompt, one], answers[prompt, other]], axis=1)
    certified = CertifiedRewards.fit(pairs, (rows[:, 5] == "a").astype(float), judge)
    share = (certified.least_liars(pairs) >= 0.02 * certified.voters).mean()
    assert share > 0.9  # 0.975
