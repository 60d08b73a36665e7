import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairduel import BadInputError, Outcome
from fairduel.adversaries import (
    ATTACKS,
    Adversarial,
    FlippingAdversary,
    Greedy,
    Hiding,
    Misleading,
    NoAttack,
    Random,
    Sight,
    StrongAdversary,
    WeakAdversary,
)

FLIPPING = [name for name, kind in ATTACKS.items() if issubclass(kind, FlippingAdversary)]
REWARDS = np.array([0.2, 0.9, -0.5, 0.4, 0.0])  # best first: 1, 3, 0, 4, 2


def sight(first=0, second=1, winner=None, *, number=1, probability=0.7, rewards=REWARDS):
    winner = first if winner is None else winner
    outcome = Outcome.FIRST if winner == first else Outcome.SECOND
    return Sight(number, np.eye(len(rewards)), rewards, first, second, outcome, probability)


sights = st.builds(
    lambda first, second, first_wins, number, probability: sight(
        first, second, first if first_wins else second, number=number, probability=probability
    ),
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 10**6),
    st.floats(0, 1),
)


@pytest.mark.parametrize("name", FLIPPING)
@given(budget=st.integers(0, 6), rounds=st.lists(sights, max_size=40), seed=st.integers(0, 2**32 - 1))
def test_the_budget_is_never_overspent(name, budget, rounds, seed):
    adversary = ATTACKS[name](budget=budget, rng=np.random.default_rng(seed))
    flips = sum(adversary.flips(each) for each in rounds)
    assert flips <= budget
    assert adversary.spent == flips


@pytest.mark.parametrize("name", FLIPPING)
def test_without_a_budget_nothing_is_flipped(name):
    adversary = ATTACKS[name](budget=0)
    assert not any(adversary.flips(sight(2, 1, winner, number=t)) for t in range(1, 50) for winner in (1, 2))


@pytest.mark.parametrize("name", FLIPPING)
@pytest.mark.parametrize("budget", [-1, 1.5, "3", None])
def test_a_bad_budget_is_refused(name, budget):
    with pytest.raises(BadInputError, match="whole number"):
        ATTACKS[name](budget=budget)


def test_a_sight_knows_winner_and_loser():
    assert (sight(3, 4, winner=4).winner, sight(3, 4, winner=4).loser) == (4, 3)
    assert (sight(3, 4, winner=3).winner, sight(3, 4, winner=3).loser) == (3, 4)


# ---------------------------------------------------------------------- weak attacks


def test_no_attack_flips_nothing_with_any_budget():
    adversary = NoAttack(budget=10)
    assert not any(adversary.flips(sight(number=t)) for t in range(1, 100))
    assert NoAttack().budget == 0


@given(st.integers(0, 30))
def test_greedy_flips_exactly_the_first_rounds(budget):
    adversary = Greedy(budget=budget)
    flipped = [t for t in range(1, 51) if adversary.flips(sight(number=t))]
    assert flipped == list(range(1, budget + 1))


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.8])
def test_random_flips_with_its_probability(probability):
    adversary = Random(budget=10**6, probability=probability, rng=np.random.default_rng(0))
    flips = sum(adversary.flips(sight(number=t)) for t in range(1, 3001))
    assert stats.binomtest(flips, 3000, probability).pvalue > 0.01


def test_random_stops_when_the_budget_is_spent():
    adversary = Random(budget=20, rng=np.random.default_rng(0))
    flipped = [t for t in range(1, 200) if adversary.flips(sight(number=t))]
    assert len(flipped) == 20
    assert 20 < max(flipped) < 100


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, math.nan])
def test_a_probability_outside_zero_and_one_is_refused(probability):
    with pytest.raises(BadInputError, match="between 0 and 1"):
        Random(budget=3, probability=probability)


def test_a_weak_adversary_is_given_the_round_and_nothing_else():
    received = []

    class Curious(WeakAdversary):
        def wants_flip(self, *arguments, **more):
            received.append((arguments, more))
            return True

    adversary = Curious(budget=2)
    assert [adversary.flips(sight(number=t)) for t in (1, 2, 3)] == [True, True, False]
    assert received == [((1,), {}), ((2,), {})]
    assert all(type(arguments[0]) is int for arguments, _ in received)


# ---------------------------------------------------------------------- strong attacks


@given(sights)
def test_adversarial_flips_exactly_the_likelier_outcomes(seen):
    assert Adversarial(budget=1).flips(seen) == (seen.probability > 0.5)


@pytest.mark.parametrize(("target", "action"), [("second", 3), ("median", 0), ("worst", 2), (4, 4), (1, 1)])
def test_misleading_names_its_target_by_rank_or_index(target, action):
    for other in set(range(5)) - {action}:
        assert Misleading(budget=1, target=target).flips(sight(action, other, winner=other))
        assert Misleading(budget=1, target=target).flips(sight(other, action, winner=other))


@given(sights)
def test_misleading_flips_only_where_the_target_lost_to_another(seen):
    lost = seen.loser == 2 and seen.first != seen.second
    assert Misleading(budget=1, target="worst").flips(seen) == lost


def test_misleading_follows_the_rank_when_the_rewards_change():
    adversary = Misleading(budget=9, target="second")
    assert adversary.flips(sight(3, 1, winner=1))
    assert not adversary.flips(sight(3, 1, winner=1, rewards=-REWARDS))
    assert adversary.flips(sight(4, 1, winner=1, rewards=-REWARDS))


def test_a_random_target_is_one_rank_below_the_best_for_the_whole_run():
    hits = Counter()
    for seed in range(400):
        adversary = Misleading(budget=10**6, rng=np.random.default_rng(seed))
        for _ in range(2):
            hits.update(a for a in range(5) if adversary.flips(sight(a, (a + 1) % 5, winner=(a + 1) % 5)))
    assert set(hits) == {0, 2, 3, 4}
    assert all(count % 2 == 0 for count in hits.values())
    assert stats.chisquare([count // 2 for count in hits.values()]).pvalue > 0.01


@pytest.mark.parametrize("target", [5, -1, 99])
def test_a_target_that_is_no_action_is_refused(target):
    with pytest.raises(BadInputError, match=f"{target} of the misleading attack is not one of the 5 actions"):
        Misleading(budget=3, target=target).flips(sight())


def test_an_unknown_target_is_answered_with_the_nearest():
    with pytest.raises(BadInputError, match="did you mean 'median'"):
        Misleading(budget=3, target="medain")


def test_hiding_lets_the_best_actions_first_duels_look_like_a_coin():
    for winner in (1, 0):
        adversary = Hiding(budget=600, rng=np.random.default_rng(1))
        flips = [adversary.flips(sight(0, 1, winner=winner)) for _ in range(900)]
        assert stats.binomtest(sum(flips[:600]), 600).pvalue > 0.01
        assert not any(flips[600:])
        assert adversary.spent == sum(flips)


def test_hiding_counts_only_real_duels_of_the_best_action():
    adversary = Hiding(budget=50, rng=np.random.default_rng(1))
    for _ in range(200):
        assert not adversary.flips(sight(0, 2))
        assert not adversary.flips(sight(1, 1))
    flips = [adversary.flips(sight(1, 2)) for _ in range(60)]
    assert 10 < sum(flips[:50]) < 40
    assert not any(flips[50:])


def test_an_attack_of_ones_own_takes_five_lines():
    @dataclass(kw_only=True, eq=False)
    class Spoiler(StrongAdversary):
        spared: int

        def wants_flip(self, sight):
            return sight.winner != self.spared

    adversary = Spoiler(budget=2, spared=3)
    assert [adversary.flips(sight(3, 4, winner=w)) for w in (3, 4, 4, 4)] == [False, True, True, False]
    assert adversary.spent == 2


@pytest.mark.parametrize("kind", [WeakAdversary, StrongAdversary])
def test_an_attack_without_wants_flip_cannot_be_made(kind):
    class Forgetful(kind):
        pass

    with pytest.raises(TypeError, match="wants_flip"):
        Forgetful(budget=1)


def test_a_rule_overridden_in_python_is_not_run_compiled():
    class Lazy(Greedy):
        def wants_flip(self, round_number):
            return round_number > 5

    assert Greedy.flip_step() is not None
    assert Lazy.flip_step() is None


# ---------------------------------------------------------------------- when an attack happens


@pytest.mark.parametrize("name", FLIPPING)
@given(start=st.integers(1, 20), every=st.integers(1, 7), seed=st.integers(0, 2**32 - 1))
def test_an_attack_keeps_to_its_time(name, start, every, seed):
    adversary = ATTACKS[name](budget=50, start=start, every=every, rng=np.random.default_rng(seed))
    flipped = [t for t in range(1, 60) if adversary.flips(sight(1, 2, winner=1, number=t))]
    assert set(flipped) <= set(range(start, 60, every))


def test_a_late_attack_keeps_its_budget_until_then():
    adversary = Greedy(budget=3, start=10, every=5)
    assert [t for t in range(1, 100) if adversary.flips(sight(number=t))] == [10, 15, 20]


@pytest.mark.parametrize("bad", [{"start": 0}, {"every": 0}, {"start": 1.5}])
def test_a_bad_time_is_refused(bad):
    with pytest.raises(BadInputError, match=f"the attack's {next(iter(bad))}"):
        Greedy(budget=3, **bad)
