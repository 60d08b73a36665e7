"""Every population keeps its promise, and its truth is what ever more voters would say."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.decisions import populations
from benchmarks.decisions.crowds import DIVIDED, TASTE, Crowd, People
from benchmarks.decisions.populations import ADVANTAGE, CASES, Duels, named, population
from scipy import optimize, special

from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.votes import pair_sums

KINDS = {case.kind: case for case in CASES.values()}  # the last size of each
THETA = np.array([0.8, 0.0, -0.5, 0.3])


def drawn(kind, seed=0, **settings):
    """A population of this kind, with other settings than usual."""
    case = KINDS[kind]
    return case.draw(np.random.default_rng(seed), **{**case.settings, **settings})


# ---------------------------------------------------------------------- the truth


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"taste": TASTE},
        {"divided": (1,)},
        {"divided": (0, 2), "taste": TASTE},
        {"care": 0.5, "mixture": True},
        {"prompt": TASTE, "taste": TASTE},
        {"tie": 0.5},
        {"advantage": ADVANTAGE, "taste": TASTE},
    ],
    ids=lambda settings: ", ".join(settings) or "plain",
)
def test_the_average_is_that_of_many_answers(settings):
    rng, count = np.random.default_rng(0), 400_000
    people = People.drawn(Crowd(theta=THETA, **settings), 20_000, rng, prompts=2000 if "prompt" in settings else 0)
    first = rng.integers(4, size=count)
    second = (first + rng.integers(1, 4, count)) % 4
    result, _ = people.answers(people.who(count, rng), first, second, rng)
    won, shown = pair_sums(first, second, 4, result), pair_sums(first, second, 4)
    lost = pair_sums(first, second, 4, 1.0 - result)
    both_sides = 0.5 * (won / np.maximum(shown, 1) + (lost / np.maximum(shown, 1)).T)
    np.fill_diagonal(both_sides, 0.5)
    expected = people.crowd.average()
    if "advantage" in settings:  # what is true has no sides, and half an advantage on either side hardly changes it
        assert np.abs(both_sides - expected).max() < 0.012
        assert (won / np.maximum(shown, 1))[0, 1] > expected[0, 1] + 0.04
    else:
        assert np.abs(both_sides - expected).max() < 0.008
    assert np.allclose(expected + expected.T, 1.0)


@pytest.mark.parametrize(
    "kind",
    [
        *("clean", "clean, close scores", "tastes, some vote far more", "13 prompts", "separate groups", "ties"),
        *("another link, careless voters", "one divisive item", "two divisive items", "households", "sparse"),
        *("uneven popularity", "better newcomer, 30 votes", "growing arena, tastes", "one casts the first 100"),
    ],
)
def test_scores_are_what_ever_more_votes_approach(kind):
    """Only the number of votes, voters and prompts is other than usual."""
    more = {"votes": 300_000, "voters": 5000, "items": 7}
    more |= {"prompts": 2000} if "prompts" in KINDS[kind].settings else {}
    more |= {"games": 20_000} if "games" in KINDS[kind].settings else {}
    if kind.startswith("tastes"):
        more["active"] = 0.0  # otherwise few voters cast most votes
    found = drawn(kind, **more)
    component, scores = found.votes.components(), fit_scores(wins(found.votes)).scores
    scores = scores - np.array([scores[component == each].mean() for each in component])
    target = found.scores - np.array([found.scores[component == each].mean() for each in component])
    assert np.abs(scores - target).max() < 0.08
    gaps = found.truth[:, None] - found.truth
    compared = (component[:, None] == component) & (gaps > 0.15)
    assert kind == "clean, close scores" or compared.sum() >= 5
    assert (scores[:, None] > scores)[compared].all()


@pytest.mark.parametrize("agent", ["Sceptic", "RCDB"])
def test_scores_fit_what_agents_ask(agent):
    found = drawn(f"{agent} asks", items=4, votes=4000, voters=4000)
    scores, shown = fit_scores(wins(found.votes)).scores, found.votes
    assert np.abs(scores - found.scores).max() < 0.35
    assert (shown.first != shown.second).all()
    assert abs(shown.result.mean() - 0.5) < 0.05  # sides are random


@pytest.mark.parametrize("name", [named(kind)[0] for kind in KINDS])
def test_the_same_seed_gives_the_same_votes_and_another_seed_others(name):
    one, same, other = (population(name, seed) for seed in (1, 1, 2))
    for field in ("first", "second", "result"):
        assert getattr(one.votes, field).tolist() == getattr(same.votes, field).tolist()
    assert one.truth.tolist() == same.truth.tolist()
    assert one.votes.result.tolist() != other.votes.result.tolist()
    sizes = CASES[name].settings
    assert len(one.votes) == sizes["votes"]
    assert len(one.votes.items) == sizes.get("items", 2)
    if "unknown" in name:
        assert one.votes.voter is None
    else:
        assert one.votes.voter.tolist() == same.votes.voter.tolist()
        assert one.votes.voter.max() < sizes["voters"]


# ---------------------------------------------------------------------- what each kind promises


@pytest.mark.parametrize("kind", ["better newcomer", "newcomer like the others", "worse newcomer"])
def test_newcomers_have_few_votes_and_their_place(kind):
    for seed in range(5):
        found = drawn(f"{kind}, 10 votes", seed)
        games = pair_sums(found.votes.first, found.votes.second, 40)
        games = games.sum(axis=0) + games.sum(axis=1)
        assert games[-1] == 10
        assert games[:-1].min() > 1000
        rank = 1 + (found.truth > found.truth[-1]).sum()
        assert rank == {"better newcomer": 1, "worse newcomer": 40}.get(kind, rank)
    assert set(np.argsort(-drawn("two better newcomers, 30 votes").truth)[:2]) == {38, 39}
    best, second, third = np.sort(drawn("newcomer better than a clear leader, 30 votes").scores)[::-1][:3]
    assert 0.5 < best - second < 1.5 == pytest.approx(second - third)


def test_like_the_others_is_neither_better_nor_worse():
    ranks = [
        1 + int((found.truth > found.truth[-1]).sum())
        for found in (drawn("newcomer like the others, 6 votes", seed) for seed in range(60))
    ]
    assert 5.0 < np.mean(ranks) < 8.0  # of 12


def test_a_growing_arena_compares_only_items_that_are_there():
    found = drawn("growing arena", items=20, votes=5000)
    arrived = np.array([np.flatnonzero((found.votes.first == k) | (found.votes.second == k)).min() for k in range(20)])
    assert (np.diff(arrived[4:]) > 0).all()
    assert arrived[4] < 50
    assert 4500 <= arrived[-1] < 4700
    games = np.bincount(found.votes.first, minlength=20) + np.bincount(found.votes.second, minlength=20)
    assert games[0] > 5 * games[-1]
    slopes = [np.polyfit(np.arange(20), drawn("growing arena", seed, items=20).truth, 1)[0] for seed in range(40)]
    assert np.mean(slopes) > 0.05


def test_groups_are_never_compared():
    sizes = {
        size
        for seed in range(20)
        for size in np.bincount(drawn("separate groups", seed, items=60, votes=20_000).votes.components())
    }
    assert sizes == {2, 3, 4, 5}


def test_a_divisive_item_is_loved_by_half_and_hated_by_half():
    rng = np.random.default_rng(0)
    people = People.drawn(Crowd(theta=THETA, divided=(0, 2)), 10_000, rng)
    tastes = people.own - THETA
    assert sorted(set(tastes[:, 0].round(9))) == [-DIVIDED, DIVIDED]
    assert np.abs(tastes[:, [0, 2]].mean(axis=0)).max() < 0.05
    assert not tastes[:, [1, 3]].any()
    assert abs((tastes[:, 0] * tastes[:, 2] > 0).mean() - 0.5) < 0.02


def test_households_share_tastes():
    people = People.drawn(Crowd(theta=THETA, taste=TASTE), 500, np.random.default_rng(0))
    grouped = people.in_households(np.random.default_rng(1))
    _, sizes = np.unique(grouped.own, axis=0, return_counts=True)
    assert {2, 3, 4, 5} <= set(sizes) <= {1, 2, 3, 4, 5}  # the last one may be cut off
    assert (sizes == 1).sum() <= 1


def test_fans_raise_their_item_in_the_average_vote():
    rng = np.random.default_rng(0)
    people = People.drawn(Crowd(theta=np.zeros(6), taste=TASTE), 200_000, rng)
    activity = populations.zeal(people, rng)
    average = np.sort(activity @ people.own / activity.sum())
    assert average[-1] == pytest.approx(0.7, abs=0.02)
    assert np.abs(average[:-1]).max() < 0.02


@pytest.mark.parametrize("listed", [True, False])
def test_the_first_item_of_a_pair_has_an_advantage(listed):
    found = drawn(f"first of a {'list' if listed else 'pair'} wins more", items=6, votes=200_000)
    first, second, result = found.votes.first, found.votes.second, found.votes.result

    def loss(parameters):
        margin = parameters[first] - parameters[second] + parameters[-1]
        return np.mean(np.logaddexp(0.0, margin) - result * margin) + 1e-9 * (parameters[:-1] ** 2).sum()

    fitted = optimize.minimize(loss, np.zeros(7), options={"maxiter": 200}).x
    assert fitted[-1] == pytest.approx(ADVANTAGE, abs=0.05)
    assert np.abs(fitted[:-1] - fitted[:-1].mean() - found.scores).max() < 0.1
    orders = set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(orders) == 15  # each pair in one order
    assert listed == all(one < other for one, other in orders)


@pytest.mark.parametrize("kind", ["winner stays, per voter", "winner stays, one chain"])
def test_the_winner_is_in_the_next_vote(kind):
    votes = drawn(kind, votes=600, voters=20).votes
    winner = np.where(votes.result == 1.0, votes.first, votes.second)
    chains = [np.arange(600)] if "one" in kind else [np.flatnonzero(votes.voter == voter) for voter in range(20)]
    for chain in chains:
        before, now = winner[chain[:-1]], chain[1:]
        assert ((votes.first[now] == before) | (votes.second[now] == before)).all()
    assert abs((votes.first == winner).mean() - 0.5) < 0.1


def test_one_person_casts_the_first_hundred():
    voter = drawn("one casts the first 100").votes.voter
    assert (voter[:100] == 0).all()
    assert np.ptp(np.bincount(voter[100:])) <= 1
    assert set(drawn("two voters").votes.voter) == {0, 1}


def test_equal_items_are_equal_and_gaps_are_as_named():
    assert np.ptp(drawn("equal items, tastes").truth) == 0.0
    found = drawn("two items, gap 1", taste=0.0)
    assert np.ptp(found.scores) == pytest.approx(1.0, abs=1e-6)
    assert drawn("two items, gap 1").truth.max() == pytest.approx(
        special.logit(Crowd(theta=np.array([0.0, 1.0]), taste=TASTE).average()[1, 0])
    )


def test_recorded_scores_belong_to_the_duels_that_were_shown():
    people = People.drawn(Crowd(theta=THETA, mixture=True), 3, np.random.default_rng(0))
    pairs = np.array([0, 1, 2]), np.array([1, 2, 3])
    found = populations.recorded(people, Duels(np.zeros(3, np.int64), *pairs), np.ones(3))
    gaps = special.logit(people.crowd.average()[pairs])
    assert np.allclose(found.scores[pairs[0]] - found.scores[pairs[1]], gaps, atol=1e-5)


def test_every_population_has_its_own_name():
    assert all(name == case.name for name, case in CASES.items())
    everything = sum(len(named(kind)) for kind in KINDS)
    assert everything == len(CASES) == len(named())
    assert all(any(kind.startswith(start) for kind in KINDS) for start in populations.UNMET)
    assert replace(CASES[named("sparse")[0]], kind="other").name.startswith("other, 60 items")
