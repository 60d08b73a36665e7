"""The environment of Gymnasium plays the same runs as the simulation."""

import pytest
from gymnasium.utils.env_checker import check_env

from fairduel import BadInputError, Outcome
from fairduel.simulation import Cell
from fairduel.simulation.environment import DuelingEnv
from fairduel.simulation.play import play


@pytest.mark.parametrize(
    ("world", "attack", "settings"),
    [("hypercube", "greedy", {}), ("fresh", "adversarial", {}), ("hypercube", "none", {"ties": "davidson(0.5)"})],
)
def test_an_agent_plays_the_same_run_inside_and_outside(world, attack, settings):
    cell = Cell("rcdb", attack, budget=9, horizon=60, world=world, world_settings=settings)
    agent, made, adversary, streams = cell.start(seed=3)
    trace = play(agent, made, adversary, horizon=60, labels=streams.labels)

    environment = DuelingEnv(world=world, attack=attack, budget=9, horizon=60, world_settings=settings)
    same_agent, *_ = cell.start(seed=3)
    actions, _ = environment.reset(seed=3)
    is_over, rounds = False, []
    while not is_over:
        duel = same_agent.ask(actions)
        actions, told, terminated, is_over, info = environment.step((duel.first, duel.second))
        same_agent.tell(duel, {1.0: Outcome.FIRST, 0.0: Outcome.SECOND, 0.5: Outcome.TIE}[told])
        rounds.append((duel.first, duel.second, info["regret"], info["flipped"]))
        assert not terminated
    expected = zip(trace.first.tolist(), trace.second.tolist(), trace.regret.tolist(), trace.flipped, strict=True)
    assert rounds == list(expected)


@pytest.mark.filterwarnings("ignore::UserWarning")  # actions of this world are not bounded by the space
def test_gymnasium_finds_no_fault():
    check_env(DuelingEnv(attack="random", budget=5, horizon=20), skip_render_check=True)


def test_what_does_not_fit_is_one_sentence():
    with pytest.raises(BadInputError, match="world arms returns rewards, not duels"):
        DuelingEnv(world="arms")
    with pytest.raises(BadInputError, match="attack watching watches an agent"):
        DuelingEnv(attack="watching", budget=3)
    environment = DuelingEnv(horizon=1)
    with pytest.raises(BadInputError, match="call reset"):
        environment.step((0, 1))
    environment.reset(seed=0)
    environment.step((0, 1))
    with pytest.raises(BadInputError, match="call reset"):
        environment.step((0, 1))
    environment.reset(seed=0)
    with pytest.raises(BadInputError, match="pair of indices below 32"):
        environment.step((0, 32))
