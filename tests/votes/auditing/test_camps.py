"""Camps: found where there are some, rarely where there are none, and described as they are."""

import numpy as np
import pytest
from scipy import special, stats

from fairduel.votes import Votes, audit, rank
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing import camps as camps_module
from fairduel.votes.auditing.camps import find_camps
from fairduel.votes.auditing.mixture import Ballots, first_model, fit_mixture


def electorate(seed, *, own=None, voters=100, items=12, each=40, taste=0.4, care=0.3):
    """Return votes by voters with tastes and care around ``own`` (voters, items), or around one order; and that."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(items)
    own = np.tile(scores, (voters, 1)) if own is None else own(rng, scores, voters)
    own = own * np.exp(care * rng.standard_normal((voters, 1))) + taste * rng.standard_normal((voters, items))
    voter = rng.permutation(np.repeat(np.arange(voters), rng.integers(each // 2, 2 * each, voters)))
    first = rng.integers(items, size=len(voter))
    second = (first + rng.integers(1, items, len(voter))) % items
    won = rng.random(len(voter)) < special.expit(own[voter, first] - own[voter, second])
    names, people = [f"item {k}" for k in range(items)], [f"voter {k}" for k in range(voters)]
    return Votes.from_arrays(names, first, second, won.astype(float), voter=voter, voters=people), scores


def opposed(size):
    return lambda _, scores, voters: np.where(np.arange(voters)[:, None] < size, -scores, scores)


def two_orders(share):
    def own(rng, scores, voters):
        result = np.tile(scores, (voters, 1))
        result[: round(share * voters)] = rng.standard_normal(len(scores))
        return result

    return own


@pytest.mark.parametrize("size", [10, 20, 40])
def test_voters_who_vote_against_the_rest_are_a_camp_of_the_right_size(size):
    votes, scores = electorate(3, own=opposed(size))
    camps = find_camps(votes)
    (camp,) = camps.found
    low, high = camp.interval
    assert low <= size <= high
    assert camp.opposes
    assert camp.sentence.startswith(f"{camp.size} of 100 voters")
    assert "vote against the rest" in camp.sentence
    assert camp.membership[:size].min() > 0.5 > camp.membership[size:].max()
    assert camps.sentences()[-1] == "No statistics can tell people who vote falsely from people who disagree."
    found = rank(votes, reliability=camps.reliability, draws=100).scores
    assert stats.kendalltau(found, scores).statistic > 0.8


@pytest.mark.parametrize("share", [0.2, 0.35])
def test_a_camp_with_an_order_of_its_own_shows_that_order(share):
    votes, _ = electorate(5, own=two_orders(share))
    (camp,) = (each for each in find_camps(votes).found if each.kind == "order")
    theirs = votes.select(votes.cast_by < 100 * share)
    order = [standing.item for standing in rank(theirs, draws=100).standings]
    places = [order.index(item) for item in camp.order]
    assert stats.kendalltau(places, range(len(places))).statistic > 0.6
    assert abs(camp.size - 100 * share) <= 4
    assert "have an order of their own" in camp.sentence


@pytest.mark.parametrize("seed", range(4))
def test_another_order_is_not_against_the_rest_if_the_rest_predict_fewer_than_half_of_its_votes(seed):
    """Two orders that have nothing to do with each other agree in half of all votes, more or less."""
    votes, scores = electorate(30 + seed, own=two_orders(0.35), items=8)
    theirs = votes.select(votes.cast_by < 35)
    own = {standing.item: standing.score for standing in rank(theirs, draws=100).standings}
    alike = np.corrcoef([own[item] for item in votes.items], scores)[0, 1]
    for camp in (each for each in find_camps(votes).found if each.kind == "order"):
        assert camp.resemblance == pytest.approx(alike, abs=0.2)
        assert camp.opposes == (camp.resemblance < -0.5)


def test_three_camps_are_three():
    def own(rng, scores, voters):
        result = np.tile(scores, (voters, 1))
        result[:40], result[40:80] = rng.standard_normal((2, len(scores)))
        return 1.5 * result

    votes, _ = electorate(2, own=own, voters=160)
    camps = find_camps(votes)
    assert [each.kind for each in camps.found] == ["order", "order"]
    for theirs in (camps.of_voter[:40], camps.of_voter[40:80]):
        assert np.bincount(theirs + 1).max() >= 34
    assert np.bincount(camps.of_voter[:40] + 1).argmax() != np.bincount(camps.of_voter[40:80] + 1).argmax()
    assert (camps.of_voter[80:] == -1).mean() > 0.9


def test_honest_populations_rarely_have_a_camp():
    def divided(rng, scores, voters):
        return scores + np.where(np.arange(12) < 3, 1.6, 0.0) * rng.standard_normal((voters, 12))

    populations = {
        "alike": {},
        "tastes": {"taste": 1.0},
        "care": {"care": 0.8},
        "some hardly care": {"care": 1.2},
        "divisive items": {"own": divided},
        "few voters": {"voters": 15, "each": 120},
        "few items": {"items": 4},
        "few votes": {"voters": 300, "each": 6},
        "one or two votes": {"voters": 2000, "each": 2},
    }
    for name, settings in populations.items():
        described = [find_camps(electorate(seed, **settings)[0]).sentences() for seed in range(20, 26)]
        assert sum(map(bool, described)) <= 1, (name, described)


@pytest.mark.parametrize("each", [20, 60])
def test_honest_voters_keep_their_weights_if_items_have_few_votes(each):
    """Without leaving their own votes out, abilities grow without end, or below 0, and so do camps."""
    rng = np.random.default_rng(1_000_000)
    scores, size = rng.standard_normal(300), 1800
    voter, first = rng.integers(size // each, size=size), rng.integers(300, size=size)
    second = (first + rng.integers(1, 300, size=size)) % 300
    won = (rng.random(size) < special.expit(scores[first] - scores[second])).astype(float)
    names = [f"v{number}" for number in range(size // each)]
    camps = find_camps(Votes.from_arrays(map(str, range(300)), first, second, won, voter=voter, voters=names))
    assert not camps.found
    assert camps.reliability.mean() == pytest.approx(1.0, abs=0.3)
    assert (camps.reliability > 0.3).mean() > 0.95


def test_a_fit_that_took_the_order_of_opponents_for_everyones_is_turned_round():
    votes, _ = arena(liars={"inverters": 45}, seed=1)
    ballots, _ = Ballots.of(votes, votes.counts("half"))
    start = first_model(ballots)
    wrong = fit_mixture(ballots, ballots.counts, start._replace(scores=-start.scores))
    assert np.corrcoef(wrong.model.scores[0], start.scores[0])[0, 1] < -0.9  # so EM alone does not
    right = camps_module._upright(ballots, ballots.counts, wrong)
    assert np.corrcoef(right.model.scores[0], start.scores[0])[0, 1] > 0.9
    assert camps_module._upright(ballots, ballots.counts, right) is right


def test_pushing_and_sides_are_described_as_such():
    votes, _ = arena(liars={}, seed=2)
    fans = inject(votes, "promote", "Maple", size=600, voters=20, seed=3).votes
    (camp,) = find_camps(fans).found
    assert (camp.kind, camp.target, camp.up, camp.name) == ("push", "Maple", True, "for Maple")
    sided, _ = arena(liars={"one-side": 15}, seed=2)
    (camp,) = find_camps(sided).found
    assert camp.sentence == "15 of 150 voters (14 to 16) choose the first of the two items in nearly all duels."


def test_an_item_that_divides_voters_makes_no_camp():
    votes, _ = arena(liars={}, seed=2)
    for tactic in ("promote", "demote"):
        votes = inject(votes, tactic, "Maple", size=450, voters=15, seed=3).votes
    assert not [camp for camp in find_camps(votes).found if camp.kind == "push"]


def test_most_voters_are_never_a_camp():
    votes, _ = electorate(4, own=opposed(70))
    (camp,) = find_camps(votes).found
    assert 27 <= camp.size <= 33


def test_without_voters_or_a_majority_every_vote_counts_fully():
    nameless = Votes.from_arrays("ab", [0, 0], [1, 1], [1, 0.5])
    assert find_camps(nameless).reliability.tolist() == [1.0, 1.0]
    assert find_camps(nameless).sentences() == []


def test_the_record_and_the_sentences_say_the_same():
    camps = find_camps(arena(liars={"inverters": 30}, seed=1)[0])
    (row,) = camps.record()
    assert row["sentence"] == camps.sentences()[0]
    assert row["sentence"].startswith(f"{row['voters']} of 150 voters ({row['low']} to {row['high']})")


@pytest.mark.parametrize("size", [10, 30])
def test_the_interval_of_a_size_holds_it(size):
    inside = 0
    for seed in range(10):
        votes, _ = electorate(40 + seed, own=opposed(size))
        against = [camp for camp in find_camps(votes).found if camp.opposes]
        inside += bool(against) and against[0].interval[0] <= size <= against[0].interval[1]
    assert inside >= 9


def at_random(size):
    return lambda _, scores, voters: np.where(np.arange(voters)[:, None] < size, 0.0, np.tile(scores, (voters, 1)))


@pytest.mark.parametrize("size", [30, 80])
def test_voters_who_answer_by_coin_flip_are_a_camp_that_is_not_accused(size):
    found = [find_camps(electorate(60 + seed, own=at_random(size), taste=0.0, items=16)[0]).found for seed in range(6)]
    camps = [camp for (camp,) in filter(None, found)]
    assert len(camps) >= 5
    for camp in camps:
        assert (camp.kind, camp.order, camp.opposes) == ("chance", (), False)
        assert camp.size == pytest.approx(size, abs=10)
        assert "vote in ways that the rest hardly predict" in camp.sentence
        assert camp.agreement < 0.53


def test_a_careful_minority_decides_if_most_vote_at_random():
    """Four in five answer by coin flip, so that scores by all votes are a fifth of the others' and mostly noise."""
    plain, weighted = [], []
    for seed in range(4):
        votes, scores = electorate(60 + seed, own=at_random(80), taste=0.0, items=16)
        for found, reliability in ((plain, None), (weighted, find_camps(votes).reliability)):
            ranked = rank(votes, reliability=reliability, draws=100).scores
            found.append(stats.kendalltau(ranked, scores).statistic)
    assert np.mean(weighted) > np.mean(plain) + 0.1


def without_common_taste(size):
    """``size`` voters share the order; the others each have one of their own."""
    return lambda rng, scores, voters: np.where(
        np.arange(voters)[:, None] < size, scores, rng.normal(scale=scores.std(), size=(voters, len(scores)))
    )


@pytest.mark.parametrize("own", [at_random(80), without_common_taste(20)])
def test_nobody_leads_if_most_voters_are_hardly_predicted(own):
    """A careful minority and the only voters who agree look alike: neither speaks for all the others."""
    reserved = 0
    for seed in range(3):
        votes, _ = electorate(60 + seed, own=own, taste=0.0, items=16)
        (verdict,) = audit(votes, top=1).verdicts
        said = [each for each in find_camps(votes).reservations if each in verdict.sentences]
        assert said or verdict.leader is None
        assert not (said and verdict.leader)
        reserved += bool(said)
    assert reserved >= 2


@pytest.mark.parametrize(("size", "reserved"), [(20, False), (48, True)])
def test_nobody_leads_if_a_camp_is_nearly_as_large_as_the_rest(size, reserved):
    def own(rng, scores, voters):
        return 1.5 * two_orders(size / 100)(rng, scores, voters)

    found = audit(electorate(5, own=own)[0], top=1)
    (camp,) = found.camps.found
    (verdict,) = found.verdicts
    assert bool(found.camps.reservations) == (1.5 * camp.size >= 100 - camp.size) == reserved
    assert all(each in found.summary() for each in found.camps.reservations)
    assert (verdict.state == "too early") or not reserved
    assert any(f"{camp.size} of 100 voters form a camp." in each for each in found.summary())


def test_a_few_careless_voters_change_no_verdict():
    votes, _ = electorate(60, own=at_random(30), taste=0.0, items=16)
    assert find_camps(votes).reservations == []
