import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairduel import BadInputError
from fairduel.adversaries import Watching
from fairduel.adversaries.searching import GENES, KNOWN, in_words, search, settings_at

POINTS = arrays(float, len(GENES), elements=st.floats(0, 1))


@given(point=POINTS, horizon=st.integers(1, 10**5))
def test_every_point_is_an_attack(point, horizon):
    settings = settings_at(point, horizon)
    attack = Watching(budget=1, **settings)
    assert {name: getattr(attack, name) for name in settings} == settings
    assert 1 <= attack.start <= max(1, horizon // 2 + 1)


def test_the_first_known_attack_has_the_defaults():
    default = Watching(budget=1)
    assert settings_at(KNOWN[0], 1000) == {gene.name: getattr(default, gene.name) for gene in GENES}


def test_the_start_grows_with_the_horizon():
    point = np.full(len(GENES), 0.8)
    assert settings_at(point, 4000)["start"] == pytest.approx(2 * settings_at(point, 2000)["start"], abs=1)


def planted(tried, generation):  # noqa: ARG001
    """Best: from round 400 on, at 90% of the way, at full pace."""
    return [
        -abs(one["start"] - 400) / 100
        - 10 * abs(one["settling"] - 0.9)
        - 10 * (1 - one["pace"])
        - (one["misled"] != "wait")
        for one in tried
    ]


def test_it_finds_a_planted_attack():
    found = list(search(planted, horizon=2000, generations=60))
    first, last = max(found[0].regrets), max(found[-1].regrets)
    assert last > -0.5 > first
    assert len(found) == 60


def test_the_same_seed_makes_the_same_search():
    one, same, other = (
        [generation.points for generation in search(planted, horizon=2000, generations=5, seed=seed)]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(np.vstack(one), np.vstack(same))
    assert not np.array_equal(one[-1], other[-1])


@pytest.mark.parametrize("bad", [{"generations": 0}, {"generations": 2, "population": 3}])
def test_a_bad_size_is_refused(bad):
    with pytest.raises(BadInputError, match=list(bad)[-1]):
        next(search(planted, horizon=100, **bad))


@given(point=POINTS)
def test_an_attack_is_described_by_all_that_it_does(point):
    settings = settings_at(point, 2000)
    words = in_words(settings)
    assert (f"round {settings['start']:,}" in words) == (settings["start"] > 1)
    assert ("clearly ahead" in words) == (settings["settling"] > 0)
    assert ("contradicted the agent" in words) == (settings["upsets"] > 0)
    assert (f"{settings['upsets']} outcomes in a row" in words) == (settings["upsets"] > 1)
    assert ("probability above" in words) == (settings["chance"] > 0)
    assert ("each with probability" in words) == (settings["pace"] < 1)
    assert ("once the leader is wrong" in words) == (settings["misled"] != "go on")
    assert ("lets one pass" in words) == (settings["spare"] > 0)
    assert ("action lost" in words) == (settings["favourite"] != "nobody")
