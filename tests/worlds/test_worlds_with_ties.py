"""Worlds in which people say "they are equal"."""

import numpy as np
import pytest
from scipy import stats

from fairduel import BadInputError, Outcome
from fairduel.adversaries import Adversarial, Greedy, Random, Sight
from fairduel.simulation import Cell
from fairduel.worlds import Hypercube, Replay

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")

WORLDS = {
    "hypercube": {"dimension": 3},
    "fresh": {"dimension": 3, "count": 5},
    "preferences": {"family": "condorcet-cycle", "arms": 5},
    "mesh": {"side": 5},
    "curved": {"dimension": 3, "count": 5},
}


@pytest.mark.parametrize("ties", ["davidson(1.5)", "rao-kupper(2)"])
@pytest.mark.parametrize("world", WORLDS)
def test_ties_come_as_often_as_they_should(world, ties):
    """Of all duels asked, by the sum of their own chances; twice as many would be noticed."""
    cell = Cell("maxpairucb", "none", 0, 1500, world, world_settings={**WORLDS[world], "ties": ties})
    trace = cell.run(seed=3).trace
    _, played, _, _ = cell.start(seed=3)
    expected = []
    for t in range(1500):
        offer = played.offer(t + 1)
        pair = sorted((int(trace.first[t]), int(trace.second[t])))
        expected.append(played.chances(offer.rewards, *pair)[1])
    mean, spread = np.sum(expected), np.sqrt(np.sum(np.multiply(expected, np.subtract(1, expected))))
    assert abs(trace.tied.sum() - mean) < 3.5 * spread
    assert mean > 100


def test_who_wins_among_the_decided_is_left_alone_by_davidson():
    cell = Cell("maxinp", "none", 0, 3000, "hypercube", world_settings={"dimension": 2, "ties": "davidson(1)"})
    agent, world, _, streams = cell.start(seed=0)
    offer, uniform = world.offer(1), streams.labels.random(20000)
    win, tie = world.chances(offer.rewards, 0, 3)
    won, decided = (uniform < win).sum(), ((uniform < win) | (uniform >= win + tie)).sum()
    assert stats.binomtest(int(won), int(decided), world.win_probability(offer.rewards, 0, 3)).pvalue > 0.001
    assert agent.dimension == 2


def test_a_tie_is_neither_flipped_nor_paid_for():
    world = Hypercube(rng=np.random.default_rng(0), ties="davidson(5)")
    offer = world.offer(1)
    for adversary in (Greedy(budget=3), Random(budget=3, probability=0.99), Adversarial(budget=3)):
        for outcome in (Outcome.TIE, Outcome.FIRST):
            sight = Sight(1, offer.actions, offer.rewards, 0, 1, outcome, 0.9)
            assert adversary.flips(sight) is (outcome is Outcome.FIRST)
        assert adversary.spent == 1


def test_an_attack_spends_its_budget_on_decided_duels():
    cell = Cell("rcdb", "greedy", 30, 400, "hypercube", world_settings={"ties": "davidson(2)"})
    trace = cell.run(seed=1).trace
    assert trace.flipped.sum() == 30
    assert not (trace.flipped & trace.tied).any()
    assert trace.flipped[: int(np.flatnonzero(trace.flipped)[-1]) + 1].sum() == 30
    assert cell.run(seed=1).record()["tie_share"] == trace.tied.mean() > 0.2


@pytest.fixture
def recording(tmp_path):
    """On each pair of three items two votes for the earlier one, and one tie."""
    pairs = [("gin", "rum"), ("gin", "tea"), ("rum", "tea")]
    lines = [f"{a},{b},{winner}" for a, b in pairs for winner in ("a", "a", "tie")]
    (tmp_path / "votes.csv").write_text("\n".join(["a,b,winner", *lines]) + "\n")
    np.savez(tmp_path / "features.npz", features=[[1.0], [0.5], [0.0]], items=["gin", "rum", "tea"])
    return str(tmp_path)


def test_recorded_ties_can_be_kept(recording):
    kept, half, drop = (
        Replay(path=recording, rng=np.random.default_rng(0), ties=ties) for ties in ("keep", "half", "drop")
    )
    offer = kept.offer(1)
    assert kept.chances(offer.rewards, 0, 1) == pytest.approx((2 / 3, 1 / 3))
    assert kept.chances(offer.rewards, 1, 0) == pytest.approx((0.0, 1 / 3))
    assert half.chances(half.offer(1).rewards, 0, 1) == pytest.approx((5 / 6, 0.0))
    assert drop.chances(drop.offer(1).rewards, 0, 1) == pytest.approx((1.0, 0.0))
    np.testing.assert_array_equal(offer.rewards, half.offer(1).rewards)
    with pytest.raises(BadInputError, match="keep"):
        Replay(path=recording, rng=np.random.default_rng(0), ties="kept")


def test_kept_ties_are_told_as_ties(recording):
    cell = Cell("maxpairucb", "none", 0, 600, "replay", world_settings={"path": recording, "ties": "keep"})
    trace = cell.run(seed=0).trace
    real = ~trace.self_duels
    assert stats.binomtest(int(trace.tied[real].sum()), int(real.sum()), 1 / 3).pvalue > 0.001
