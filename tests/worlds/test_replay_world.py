"""Recorded votes as a world, against counting by hand."""

import gzip
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special

from fairduel.adversaries import NoAttack
from fairduel.errors import BadInputError
from fairduel.simulation import Cell, play
from fairduel.worlds import Replay
from fairduel.worlds.replay import load

TEN = [  # topic, first, second, winner: topic 0 has items 0, 1, 2, topic 1 has items 3, 4
    (0, 0, 1, "a"),
    (0, 1, 0, "b"),
    (0, 0, 1, "tie"),
    (0, 0, 2, "b"),
    (0, 2, 0, "tie"),
    (0, 1, 2, "a"),
    (0, 1, 2, "b"),
    (1, 4, 3, "a"),
    (1, 3, 4, "tie"),
    (1, 3, 4, "b"),
]
FEATURES = np.array([[0.6, 0.0], [0.0, 0.5], [0.3, 0.3], [0.1, 0.2], [-0.6, 0.8]])


def write(folder, votes=TEN, phi=FEATURES, name="votes.csv"):
    folder.mkdir(exist_ok=True)
    text = "topic,arg_a,arg_b,winner\n" + "".join(",".join(map(str, vote)) + "\n" for vote in votes)
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    (folder / name).write_bytes(content)
    np.savez(folder / "features.npz", phi=phi, phi_names=np.array(["x", "y"]))
    return str(folder)


def world(path, seed=0, **settings):
    return Replay(path=path, rng=np.random.default_rng(seed), **settings)


def slow_share(votes, topic, item, other, ties="half"):
    """Vote by vote: the share that ``item`` won of those on the pair."""
    won = count = 0.0
    for place, first, second, winner in votes:
        if place != topic or {first, second} != {item, other} or (winner == "tie" and ties == "drop"):
            continue
        count += 1
        won += 0.5 if winner == "tie" else (first if winner == "a" else second) == item
    return won / count


def test_shares_and_borda_scores_by_hand(tmp_path):
    one, two = world(write(tmp_path / "votes")).contexts
    assert (one.name, one.items, two.items) == ("0", ("0", "1", "2"), ("3", "4"))
    np.testing.assert_allclose(one.shares, [[1 / 2, 5 / 6, 1 / 4], [1 / 6, 1 / 2, 1 / 2], [3 / 4, 1 / 2, 1 / 2]])
    np.testing.assert_allclose(one.rewards, [(5 / 6 + 1 / 4) / 2, (1 / 6 + 1 / 2) / 2, (3 / 4 + 1 / 2) / 2])
    np.testing.assert_allclose(two.shares, [[1 / 2, 1 / 6], [5 / 6, 1 / 2]])
    np.testing.assert_allclose(two.rewards, [1 / 6, 5 / 6])
    np.testing.assert_array_equal(one.actions, FEATURES[:3])
    np.testing.assert_array_equal(two.actions, FEATURES[3:])


def test_dropped_ties_were_never_cast(tmp_path):
    one, two = world(write(tmp_path / "votes"), ties="drop").contexts
    np.testing.assert_allclose(one.shares, [[1 / 2, 1, 0], [0, 1 / 2, 1 / 2], [1, 1 / 2, 1 / 2]])
    np.testing.assert_allclose(two.shares, [[1 / 2, 0], [1, 1 / 2]])


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_random_votes_against_counting_vote_by_vote(tmp_path, ties):
    rng = np.random.default_rng(5)
    votes = []
    for topic, items in ((0, range(5)), (1, range(5, 9)), (2, range(9, 12))):
        pairs = [(i, j) for i in items for j in items if i < j]
        votes += [(topic, i, j, "a") for i, j in pairs]
        drawn = rng.integers(len(pairs), size=60)
        votes += [(topic, *pairs[k][:: rng.choice([1, -1])], str(rng.choice(["a", "b", "tie"]))) for k in drawn]
    phi = rng.uniform(-0.5, 0.5, (12, 2))
    for context in world(write(tmp_path / "votes", votes, phi), ties=ties).contexts:
        names = [int(item) for item in context.items]
        for k, item in enumerate(names):
            shares = [slow_share(votes, int(context.name), item, other, ties) for other in names if other != item]
            np.testing.assert_allclose(np.delete(context.shares[k], k), shares, atol=1e-12)
            assert context.rewards[k] == pytest.approx(np.mean(shares))


def test_features_for_each_context(tmp_path):
    phi = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 3, 2))
    phi[1, 2, 0] = 4.0  # the longest
    votes = [(0, 0, 1, "a"), (0, 0, 2, "a"), (0, 1, 2, "tie"), (1, 2, 0, "b")]
    replayed = world(write(tmp_path / "votes", votes, phi))
    one, two = replayed.contexts
    longest = np.linalg.norm(phi, axis=2).max()
    pairs = [phi[0, 0] - phi[0, 1], phi[0, 0] - phi[0, 2], phi[0, 1] - phi[0, 2], phi[1, 0] - phi[1, 2]]
    np.testing.assert_allclose(replayed.recording.pairs.difference, np.array(pairs) / longest)
    np.testing.assert_allclose(one.actions, phi[0] / longest)
    np.testing.assert_allclose(two.actions, phi[1][[0, 2]] / longest)  # item 1 was never shown there
    np.testing.assert_allclose(two.rewards, [1.0, 0.0])


def test_votes_without_a_context_have_one(tmp_path):
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\n0,1,model_a\n1,2,tie\n2,0,model_a\n")
    np.savez(tmp_path / "features.npz", phi=FEATURES)
    [only] = world(str(tmp_path)).contexts
    assert only.items == ("0", "1", "2")


def test_the_fitted_parameter_solves_its_equation_and_bounds_the_norm(tmp_path):
    path = write(tmp_path / "votes")
    recording = load(path)

    def loss(theta):
        total = 0.005 * theta @ theta
        for _, first, second, winner in TEN:
            margin = (FEATURES[first] - FEATURES[second]) @ theta
            result = {"a": 1.0, "b": 0.0, "tie": 0.5}[winner]
            total -= result * np.log(special.expit(margin)) + (1 - result) * np.log(special.expit(-margin))
        return total

    slow = optimize.minimize(loss, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(recording.parameter, slow, atol=1e-4)
    assert world(path).norm_bound == np.ceil(np.linalg.norm(slow))
    assert world(path, norm_bound=3).norm_bound == 3.0


def test_one_context_a_round_and_the_votes_of_that_one_answer(tmp_path):
    replayed = world(write(tmp_path / "votes"))
    seen = Counter()
    for t in range(1, 401):
        offer = replayed.offer(t)
        seen[len(offer.actions)] += 1
        context = replayed.contexts[0 if len(offer.actions) == 3 else 1]
        assert offer.rewards is context.rewards
        assert replayed.win_probability(offer.rewards, 0, 1) == context.shares[0, 1]
    assert set(seen) == {2, 3}
    assert abs(seen[3] - 200) < 50  # five standard deviations


def test_contexts_can_be_chosen(tmp_path):
    path = write(tmp_path / "votes")
    assert [c.name for c in world(path, contexts=1).contexts] == ["1"]
    assert [c.name for c in world(path, contexts="1, 0").contexts] == ["1", "0"]
    assert all(len(world(path, contexts=1, seed=s).offer(1).actions) == 2 for s in range(9))


def test_pairs_without_votes_are_refused_or_answered_by_the_model(tmp_path):
    votes = [vote for vote in TEN if {vote[1], vote[2]} != {1, 2}]
    path = write(tmp_path / "votes", votes)
    with pytest.raises(BadInputError, match=r"no votes on '1' against '2' in context '0'.*missing='model'"):
        world(path)
    replayed = world(path, missing="model")
    one = replayed.contexts[0]
    theta = replayed.recording.parameter
    assert replayed.recording.filled == 1
    assert one.shares[1, 2] == pytest.approx(special.expit((FEATURES[1] - FEATURES[2]) @ theta))
    assert one.shares[1, 2] + one.shares[2, 1] == pytest.approx(1.0)
    assert one.shares[0, 1] == pytest.approx(5 / 6)  # recorded pairs stay as they are
    assert one.rewards[1] == pytest.approx((1 / 6 + one.shares[1, 2]) / 2)


def test_a_pair_of_nothing_but_ties_is_missing_where_ties_are_dropped(tmp_path):
    path = write(tmp_path / "votes", [vote for vote in TEN if vote[0] == 0] + [(1, 3, 4, "tie")])
    with pytest.raises(BadInputError, match=r"no decided votes on '3' against '4'"):
        world(path, ties="drop")
    assert world(path).contexts[1].rewards.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ties": "coin"}, "unknown treatment of ties 'coin'"),
        ({"missing": "guess"}, "unknown treatment of missing pairs 'guess'"),
        ({"contexts": "0,7"}, "unknown context '7'"),
        ({"norm_bound": -1}, "norm_bound"),
    ],
)
def test_unknown_settings_are_refused(tmp_path, settings, words):
    with pytest.raises(BadInputError, match=words):
        world(write(tmp_path / "votes"), **settings)


def test_what_is_wrong_with_a_folder_is_one_sentence(tmp_path):
    with pytest.raises(BadInputError, match="is not a folder; a replay needs one with"):
        world(str(tmp_path / "nowhere"))
    with pytest.raises(BadInputError, match=r"needs exactly one votes file in .* which has none"):
        world(str(tmp_path))
    path = Path(write(tmp_path / "two"))
    (path / "votes.csv.gz").write_bytes(b"")
    with pytest.raises(BadInputError, match=r"which has votes\.csv and votes\.csv\.gz\."):
        world(str(path))
    (path / "votes.csv.gz").unlink()
    (path / "features.npz").unlink()
    with pytest.raises(BadInputError, match=r"exactly one features file in .* which has none"):
        world(str(path))
    (path / "features.npz").write_bytes(b"PK\x03\x04torn")
    with pytest.raises(BadInputError, match="features"):
        world(str(path))


@pytest.mark.parametrize(
    ("votes", "phi", "words"),
    [
        ([*TEN, (0, 1, 1, "a")], FEATURES, "row 12 is unusable .item compared with itself"),
        ([*TEN, (0, 1, 2, "maybe")], FEATURES, "row 12 is unusable .unknown winner"),
        ([*TEN, (0, 1, "", "a")], FEATURES, "no second item"),
        ([*TEN, (0, 1, 9, "a")], FEATURES, "features.npz"),
        (TEN, np.where(FEATURES == 0.5, np.nan, FEATURES), "no finite features for the item '1'"),
        (TEN, np.zeros((5, 2)), "all features"),
        (TEN, np.zeros((3, 5, 2, 2)), "array"),
        (TEN, np.zeros((1, 5, 2)), "contexts"),
    ],
)
def test_dirty_files_are_refused_with_the_reason(tmp_path, votes, phi, words):
    with pytest.raises(BadInputError, match=words):
        world(write(tmp_path / "votes", votes, phi))


def cell(path, **settings):
    return Cell(
        agent="rcdb", attack="greedy", budget=3, horizon=40, world="replay", world_settings={"path": path, **settings}
    )


def test_runs_are_repeatable_and_regret_is_by_borda_score(tmp_path):
    path = write(tmp_path / "votes")
    runs = [cell(path).run(seed).trace for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    np.testing.assert_array_equal(runs[0].first, runs[1].first)
    assert (runs[0].regret != runs[2].regret).any()
    _, replayed, _, _ = cell(path).start(1)
    for t in range(40):
        rewards = replayed.offer(t + 1).rewards
        first, second = runs[0].first[t], runs[0].second[t]
        assert runs[0].regret[t] == pytest.approx(2 * rewards.max() - rewards[first] - rewards[second])


def test_answers_follow_the_recorded_shares(tmp_path):
    """A fixed pair, asked again and again, wins as often as it did when people were asked."""

    class Fixed:
        def __init__(self):
            self.won = 0

        def ask(self, _):
            return 0, 1

        def tell(self, _, outcome):
            self.won += outcome.name == "FIRST"

    agent = Fixed()
    replayed = world(write(tmp_path / "votes"), contexts=0)
    play(agent, replayed, NoAttack(), horizon=3000, labels=np.random.default_rng(0))
    assert abs(agent.won / 3000 - 5 / 6) < 4 * np.sqrt(5 / 36 / 3000)


def test_the_key_changes_with_every_file_of_the_folder(tmp_path):
    path = write(tmp_path / "votes")
    keys = [cell(path).key]
    (tmp_path / "votes" / "README.md").write_text("where from")
    keys.append(cell(path).key)
    assert cell(path).key == keys[-1]
    write(tmp_path / "votes", TEN[::-1])
    keys.append(cell(path).key)
    write(tmp_path / "votes", TEN[::-1], FEATURES / 2)
    keys.append(cell(path).key)
    (tmp_path / "votes" / "README.md").rename(tmp_path / "votes" / "LICENCE")
    keys.append(cell(path).key)
    assert len(set(keys)) == 5


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(tmp_path):
    path = write(tmp_path / "votes")
    assert load(path) is load(path)
    before = load(path)
    write(tmp_path / "votes", [(t, a, b, {"a": "b", "b": "a"}.get(w, w)) for t, a, b, w in TEN])
    os.utime(tmp_path / "votes" / "votes.csv", ns=(1, 1))  # a clock too coarse to see it otherwise
    after = load(path)
    np.testing.assert_allclose(after.contexts[0].rewards, 1.0 - before.contexts[0].rewards)


def test_compressed_votes_are_the_same(tmp_path):
    plain, packed = load(write(tmp_path / "plain")), load(write(tmp_path / "packed", name="votes.csv.gz"))
    np.testing.assert_array_equal(plain.contexts[0].shares, packed.contexts[0].shares)


def test_every_pair_of_ukpconvarg1_is_covered(data):
    recording = load(data / "ukpconvarg1")
    assert recording.filled == 0
    assert len(recording.contexts) == 32
    sizes = [len(context.items) for context in recording.contexts]
    assert set(sizes) <= set(range(25, 36))
    assert sum(size * (size - 1) // 2 for size in sizes) == len(recording.pairs.count) == 16927
    assert np.mean([c.rewards.max() for c in recording.contexts]) == pytest.approx(0.836, abs=0.001)
    decided = load(data / "ukpconvarg1", ties="drop", missing="model")
    assert np.linalg.norm(decided.parameter) == pytest.approx(21, abs=0.5)


@pytest.mark.parametrize(("name", "filled", "dimension"), [("mtbench_human", 586, 28), ("llmfao", None, 38)])
def test_other_votes_have_gaps_that_the_model_fills(data, name, filled, dimension):
    with pytest.raises(BadInputError, match="missing='model'"):
        load(data / name)
    recording = load(data / name, missing="model")
    assert len(recording.parameter) == dimension
    assert recording.filled == filled or filled is None
    run = replace(cell(str(data / name), missing="model"), horizon=20).run(0)
    assert np.isfinite(run.trace.regret).all()
