import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import ArmRace
from fairduel.simulation import Cell


class SlowRace:
    """The race in dictionaries, written from its pseudocode."""

    def __init__(self, arms, horizon, scale, failure=0.05):
        self.layers = range(math.ceil(math.log2(horizon)))
        self.left = {layer: set(range(arms)) for layer in self.layers}
        self.told = {(layer, arm): [] for layer in self.layers for arm in range(arms)}
        self.logarithm = scale * math.log(4 * arms * horizon * math.log(horizon) / failure)
        self.overruled = 0

    def width(self, count):
        return math.sqrt(self.logarithm / count) + self.logarithm / count if count else math.inf

    def tell(self, layer, arm, reward):
        self.told[layer, arm].append(reward)
        bounds = {}
        for a in self.left[layer]:
            rewards = self.told[layer, a]
            mean = sum(rewards) / max(len(rewards), 1)
            bounds[a] = (mean - self.width(len(rewards)), mean + self.width(len(rewards)))
        out = {a for a in bounds for b in bounds if bounds[b][0] > bounds[a][1]}
        for faster in range(layer + 1):
            self.overruled += faster < layer and bool(self.left[faster] & out)
            self.left[faster] -= out


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_rounds_are_those_of_the_pseudocode(seed):
    race, slow = ArmRace(arms=4, horizon=1000, scale=0.02, seed=seed), SlowRace(4, 1000, 0.02)
    rng = np.random.default_rng(seed)
    means = np.array([0.2, 0.5, 0.8, 0.4])
    layers, idle = [], 0
    for t in range(1000):
        pull = race.ask()
        layer = pull.layer
        reward = float(rng.random() < (1 - means if t < 60 else means)[pull.action])
        race.tell(pull, reward)
        if layer is None:
            idle += 1
            first = min(layer for layer in slow.layers if slow.left[layer])
            assert pull.action in slow.left[first]
            continue
        layers.append(layer)
        least = min(len(slow.told[layer, arm]) for arm in slow.left[layer])
        assert pull.action in slow.left[layer]
        assert len(slow.told[layer, pull.action]) == least
        slow.tell(layer, pull.action, reward)
        assert [set(np.flatnonzero(row)) for row in race.active] == [slow.left[layer] for layer in slow.layers]
    assert slow.overruled > 0  # a slower layer struck arms off faster ones
    first = min(layer for layer in slow.layers if slow.left[layer])
    best = max(slow.left[first], key=lambda arm: np.mean(slow.told[first, arm] or [0.0]))
    assert race.recommend() == best


def test_layer_l_is_drawn_with_probability_two_to_the_minus_l():
    race = ArmRace(arms=2, horizon=16)
    layers = np.array([race.ask().layer for _ in range(16_000)])
    shares = np.array([1 / 2 + 1 / 16, 1 / 4, 1 / 8, 1 / 16])  # the first has the rest
    counts = np.bincount(layers, minlength=4)
    assert len(counts) == 4
    assert (np.abs(counts / 16_000 - shares) < 4 * np.sqrt(shares * (1 - shares) / 16_000)).all()


def test_the_first_elimination_by_hand():
    """Rewards 1 and 0 in layer 1: with n pulls of each, arm 1 is out when 1 > 2(√(L/n) + L/n)."""
    race = ArmRace(arms=2, horizon=1000, scale=0.05, seed=0)
    logarithm = 0.05 * math.log(4 * 2 * 1000 * math.log(1000) / 0.05)
    enough = next(n for n in range(1, 100) if 2 * (math.sqrt(logarithm / n) + logarithm / n) < 1)
    while race.active[0].all():
        pull = race.ask()
        race.tell(pull, float(pull.action == 0))
    assert race.active[0].tolist() == [True, False]
    pulls = race._pulls[0, 0]
    assert enough in (pulls, pulls + 1)
    assert enough > 3


def test_theory_never_eliminates_within_twenty_thousand_rounds():
    """Even if one layer had all rounds, the widths of two arms would not fall below the gap."""
    race = ArmRace(arms=10, horizon=20_000, scale="theory")
    pulls = 20_000 * (1 / 2) / 10
    assert 2 * (math.sqrt(race._logarithm / pulls) + race._logarithm / pulls) > 0.2
    assert race._logarithm == pytest.approx(math.log(40 * 20_000 * math.log(20_000) / 0.05))


def test_late_rewards_of_a_dropped_arm_are_not_learned():
    race = ArmRace(arms=2, horizon=1000, scale=0.05, seed=0)
    late = [race.ask() for _ in range(20)]
    while race.active[0].all():
        pull = race.ask()
        race.tell(pull, float(pull.action == 0))
    dropped = next(pull for pull in late if pull.layer == 0 and pull.action == 1)
    before = race.state()["memory"]
    race.tell(dropped, 1e6)
    after = race.state()["memory"]
    assert all(np.array_equal(before[name], after[name]) for name in before)


def regret(budget, attack="swap"):
    cell = Cell("arm-race", attack, budget, 2000, world="arms", world_settings={"arms": 2, "gap": 0.8})
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])


def test_regret_is_far_below_chance_and_corruption_costs():
    clean, corrupted = regret(0, "none"), regret(120)
    assert clean < 0.1 * 2000 * 0.4
    assert 2 * clean < corrupted < 0.7 * 2000 * 0.4


@pytest.mark.parametrize("settings", [{"arms": 0}, {"horizon": None}, {"scale": "none"}, {"failure_probability": 1.0}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        ArmRace(**{"arms": 3, "horizon": 100} | settings)
