"""The scan for a stretch of votes that differs: its scores, its level, its power, and what it says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from fairduel.core.concluding import PARTS
from fairduel.errors import BadInputError
from fairduel.votes import Votes
from fairduel.votes.auditing import burst_scores
from fairduel.votes.auditing.burst_scores import Stratified, largest_difference
from fairduel.votes.auditing.bursts import scan_bursts
from fairduel.votes.ranking.rank import rank
from helpers.populations import population


def ordered(votes, key):
    """The votes in the order of ``key`` (n,)."""
    order = np.argsort(key, kind="stable")
    arrays = {name: each[order] for name, each in vars(votes).items() if isinstance(each, np.ndarray)}
    return replace(votes, **arrays)


def p_value(votes, seed=0, draws=99):
    told = Stratified.of(votes, "half", np.arange(len(votes.items))[::-1] / 2.0)
    return largest_difference(told, draws, 0.05, np.random.default_rng(seed)).p_value


def false_alarms(files, drawn):
    return sum(p_value(drawn(seed), seed) <= 0.05 for seed in range(files))


def independent(seed, votes=200, items=3, offset=0):
    rng = np.random.default_rng([7, seed + offset])
    scores = rng.standard_normal(items)
    first = rng.integers(items, size=votes)
    second = (first + rng.integers(1, items, votes)) % items
    result = (rng.random(votes) < expit(scores[first] - scores[second])).astype(float)
    return Votes.from_arrays("abcdefgh"[:items], first, second, result)


def test_independent_votes_give_a_false_alarm_in_one_file_of_twenty():
    files = 1000
    found = false_alarms(files, independent)
    assert 33 <= found <= 70  # 50 ± 6.9; half or twice the level would give 25 ± 4.9 or 100 ± 9.5


def visits(seed):
    """Voters with tastes, some of whom vote a lot, each around a time of their own."""
    votes = population("tastes", items=6, votes=800, voters=60, seed=seed).votes
    rng = np.random.default_rng(seed)
    return ordered(votes, rng.random(60)[votes.voter] + 0.03 * rng.standard_normal(len(votes)))


def by_voter(seed):
    votes = population("polarising", items=6, votes=800, voters=60, seed=seed).votes
    return ordered(votes, votes.voter)


def by_context(seed):
    votes = population("prompts", items=6, votes=800, voters=60, seed=seed).votes
    return ordered(votes, votes.context)


def contexts_come_and_go(seed):
    """Contexts with large effects, too many to be strata, each around a time of its own."""
    rng = np.random.default_rng([8, seed])
    first = rng.integers(20, size=2200)
    second = (first + rng.integers(1, 20, 2200)) % 20
    context, effects = rng.integers(13, size=2200), 1.5 * rng.standard_normal((13, 20))
    chance = expit(effects[context, first] - effects[context, second])
    names = [str(each) for each in range(20)]
    votes = Votes.from_arrays(names, first, second, rng.random(2200) < chance, context=context, contexts=names[:13])
    return ordered(votes, rng.random(13)[context] + 0.1 * rng.standard_normal(2200))


def by_pair(seed):
    votes = population("misspecified", items=6, votes=800, voters=60, seed=seed).votes
    return ordered(votes, np.minimum(votes.first, votes.second) * 6 + np.maximum(votes.first, votes.second))


def new_items(seed):
    """Two of six items appear midway, in a population that Bradley–Terry does not describe."""
    votes = population("misspecified", items=6, votes=800, voters=60, seed=seed).votes
    is_new, time = (votes.first < 2) | (votes.second < 2), np.random.default_rng(seed).random(len(votes))
    return ordered(votes, np.where(is_new, 0.5 + 0.5 * time, time))


@pytest.mark.parametrize("drawn", [visits, by_voter, by_context, contexts_come_and_go, by_pair, new_items])
def test_honest_differences_are_no_bursts(drawn):
    assert false_alarms(60, drawn) <= 6  # at a level of 5%, 7 or more have a probability of 3%


@pytest.mark.parametrize(("drawn", "field"), [(visits, "voter"), (contexts_come_and_go, "context")])
def test_without_clusters_there_would_be_false_alarms(drawn, field):
    assert false_alarms(30, lambda seed: replace(drawn(seed), **{field: None, field + "s": ()})) >= 6


def third(drawn):
    return int(np.argsort(-drawn.truth)[2])


def with_burst(seed, share, where, accounts):
    """Honest votes, and ``share`` as many false ones for the third item, all at once, by so many accounts."""
    drawn = population("tastes", items=6, votes=1500, voters=100, seed=seed, spread=0.4)
    votes, target = drawn.votes, third(drawn)
    rng = np.random.default_rng(seed)
    count = int(share * len(votes))
    other = (target + rng.integers(1, 6, count)) % 6
    at = {"first": 0, "last": len(votes), "middle": 700}[where]

    def joined(honest, false):
        return np.insert(honest, at, false)

    attacked = Votes.from_arrays(
        votes.items,
        joined(votes.first, np.full(count, target)),
        joined(votes.second, other),
        joined(votes.result, np.ones(count)),
        voter=joined(votes.voter, 100 + rng.integers(accounts, size=count)),
        voters=[f"v{each}" for each in range(100 + accounts)],
    )
    return attacked, drawn, np.arange(at, at + count)


@pytest.mark.parametrize("where", ["first", "last", "middle"])
@pytest.mark.parametrize("has_voters", [True, False])
def test_a_burst_of_false_votes_is_found_and_the_winner_restored(where, has_voters):
    restored = 0
    for seed in range(3):
        votes, drawn, false = with_burst(seed, 0.3, where, accounts=150)
        votes = votes if has_voters else replace(votes, voter=None, voters=())
        found = scan_bursts(votes)
        target = votes.items[third(drawn)]
        assert found.found
        assert found.item == target == found.gained[0]
        assert found.inside[false].mean() > 0.8
        assert found.rate > found.usual_rate + 0.3
        assert found.everyone.standings[0].item == target
        honest = rank(drawn.votes).standings[0].item
        restored += found.without.standings[0].item == honest
        assert any("do not announce" in each for each in found.advice()) == found.changes_leader
    assert restored >= 2


def test_power_against_small_bursts():
    found = [p_value(with_burst(seed, 0.05, where, 75)[0]) <= 0.05 for seed in range(8) for where in ("first", "last")]
    assert np.mean(found) >= 0.9


def test_few_voters_alone_in_a_stretch_are_not_told_from_a_burst():
    assert [p_value(with_burst(seed, 0.05, "last", 3)[0]) <= 0.05 for seed in range(8)].count(True) <= 1


@given(st.integers(0, 1000), st.booleans(), st.booleans())
def test_totals_are_sums_of_centred_residuals(seed, has_contexts, is_weighted):
    rng = np.random.default_rng(seed)
    votes = independent(seed, votes=60, items=4)
    contexts = {"context": rng.integers(2, size=60).astype(np.int32), "contexts": ("x", "y")} if has_contexts else {}
    votes = replace(votes, weight=rng.choice([0.0, 1.0, 3.0], 60) if is_weighted else votes.weight, **contexts)
    scores = rng.standard_normal(4)
    told = Stratified.of(votes, "half", scores)
    expected = np.zeros((PARTS, 5))
    used = [i for i in range(60) if votes.weight[i] > 0.0]
    for i in used:

        def alike(j, i=i):
            same = {votes.first[i], votes.second[i]} == {votes.first[j], votes.second[j]}
            return same and (not has_contexts or votes.context[i] == votes.context[j])

        def won(j, i=i):
            return votes.result[j] if votes.first[j] == votes.first[i] else 1.0 - votes.result[j]

        stratum = [j for j in used if alike(j)]
        mean = sum(votes.weight[j] * won(j) for j in stratum) / sum(votes.weight[j] for j in stratum)
        residual, part = votes.weight[i] * (votes.result[i] - mean), i * PARTS // 60
        expected[part, votes.first[i]] += residual
        expected[part, votes.second[i]] -= residual
        expected[part, 4] += residual * (scores[votes.first[i]] - scores[votes.second[i]])
    found = told.totals((told.result - told.mean)[:, None])[..., 0]
    assert found == pytest.approx(expected, abs=1e-9)
    assert found.sum(axis=0)[:4] == pytest.approx(np.zeros(4), abs=1e-9)
    drawn = told.totals(np.random.default_rng(0).standard_normal((len(told.place), 3)))
    assert drawn.sum(axis=0) == pytest.approx(np.zeros((5, 3)), abs=1e-9)


def burst_of_two(**more):
    """400 votes for tea in two of three duels, but none among votes 320 to 360."""
    result = np.random.default_rng(0).random(400) < 2 / 3
    result[320:360] = False
    return Votes.from_arrays(["tea", "milk"], [0] * 400, [1] * 400, result, **more)


def test_the_sentence_names_rows_and_rates():
    found = scan_bursts(burst_of_two())
    assert found.rows == tuple(range(322, 362))
    assert (found.gained, found.lost) == (("milk",), ("tea",))
    sentence, change = found.sentences()
    assert sentence.startswith(
        "A stretch of 40 votes (rows 322 to 361) differs from the rest (p = 0.001): tea won 0% of"
    )
    assert change == "tea has the highest score with or without this stretch."
    assert found.rate == 0.0
    outside = np.delete(burst_of_two().result, slice(320, 360))
    assert found.usual_rate == pytest.approx(outside.mean())
    assert found.record()["rows"] == found.rows
    assert np.abs(found.excess[16:18]).min() > 2.0 * found.error[16:18].max()
    assert "a release, a new audience" in found.advice()[0]


def test_votes_are_in_the_order_of_timestamps_not_of_response_times():
    shuffled = np.random.default_rng(1).permutation(400)
    plain = burst_of_two()
    assert not scan_bursts(ordered(plain, np.argsort(shuffled))).found
    stamps = replace(plain, time=1.7e9 + 60.0 * np.arange(400))
    found = scan_bursts(ordered(stamps, np.argsort(shuffled)))
    assert found.is_timed
    assert sorted(found.rows) == list(range(322, 362))
    assert "40 votes from 2023-11-15 03:33 to 2023-11-15 04:12" in found.sentences()[0]
    answers = replace(plain, time=np.random.default_rng(2).random(400) * 10.0)
    assert scan_bursts(answers).rows == scan_bursts(plain).rows


def sorted_by_winner(votes):
    return ordered(votes, np.where(votes.result == 1.0, votes.first, votes.second))


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        (independent(0, votes=39), "fewer than 40 votes"),
        (sorted_by_winner(independent(0)), "sorted by result"),
        (replace(independent(0), weight=np.full(200, 2.0)), "stand for several votes"),
        (by_context(0), "sorted by context"),
        (Votes.from_arrays([str(i) for i in range(45)], np.arange(44), np.arange(1, 45), np.ones(44)), "asked twice"),
    ],
)
def test_what_is_in_no_order_of_time_is_not_scanned(votes, reason):
    found = scan_bursts(votes)
    assert not found.found
    assert found.rows == ()
    assert reason in found.sentences()[0]
    assert found.advice() == []


def test_of_many_votes_only_the_best_items_are_scanned(monkeypatch):
    votes = independent(0, votes=600, items=6)
    scores = rank(votes).scores
    monkeypatch.setattr(burst_scores, "_MOST_VOTES", 400)
    told = Stratified.of(votes, "half", scores)
    best = np.flatnonzero(told.scanned[:-1])
    assert set(best) == set(np.argsort(-scores)[: len(best)])
    shared = np.isin(votes.first, best) | np.isin(votes.second, best)
    assert shared.sum() == len(told.place) <= 400
    found = scan_bursts(votes)
    assert f"votes on the first {len(best)} items" in found.sentences()[0]


def test_the_same_seed_gives_the_same_scan_and_the_level_is_checked():
    votes = independent(3)
    assert scan_bursts(votes, seed=5).p_value == scan_bursts(votes, seed=5).p_value
    with pytest.raises(BadInputError, match="level"):
        scan_bursts(votes, level=1.5)
