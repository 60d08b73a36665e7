"""Recommendations by recorded votes: a burst of lies at any time, what is said about it, and when there is none."""

import contextlib

import numpy as np
import pytest

from fairduel import RCDB, Agent, BadInputError, MaxPairUCB, Outcome
from fairduel.action_sets import HypercubeSet
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.simulation import Cell, play
from fairduel.simulation.compiled_run import play_compiled

ACTIONS = np.array([[0.9, 0.0], [0.0, 0.9], [-0.6, 0.3]])
WITH_VOTES = [n for n, k in AGENTS.items() if issubclass(k, ContextualAgent) and k.estimator != "one-pass"]


def taught(kind, votes=200, lies=range(0), **settings):
    """An agent whose first action is the best, as all votes but the lies say."""
    agent = kind(dimension=2, norm_bound=2.0, horizon=votes, self_duels=False, **settings)
    tell(agent, votes, lies)
    return agent


def tell(agent, votes, lies=range(0)):
    for vote in range(votes):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if (duel.first < duel.second) != (vote in lies) else Outcome.SECOND)


@pytest.mark.parametrize("name", WITH_VOTES)
def test_a_last_minute_burst_does_not_change_the_recommendation(name):
    agent = taught(AGENTS[name], lies=range(150, 200))
    assert agent.recommend(ACTIONS) == 0
    assert agent.recommend(HypercubeSet(2)) == HypercubeSet(2).index(HypercubeSet(2).best(agent.conclude().theta))
    [burst] = agent.conclude().bursts
    assert (burst.begin, burst.end) == (150, 200)


def test_the_explanation_names_the_votes_and_the_evidence():
    agent = taught(MaxPairUCB, votes=2000, lies=range(1500, 1700))
    [burst] = agent.conclude().bursts
    text = agent.explain_recommendation()
    assert text.startswith("Of 2,000 votes, the recommendation sets aside votes 1,501 to 1,700 (log-likelihood gain ")
    assert f"gain {burst.gain:.1f}; chance explains up to {burst.bar:.1f})" in text
    assert text.endswith("lies are one possible reason, a release or a new audience another.")
    assert text.count(".") == 3  # two decimal points, one sentence
    honest = taught(MaxPairUCB)
    assert honest.conclude().bursts == ()
    assert honest.explain_recommendation().startswith("The recommendation rests on all 200 votes: no stretch")


@pytest.mark.parametrize(
    ("settings", "votes", "reason"),
    [
        ({"recommend_by": "estimate"}, 100, "because recommend_by is 'estimate'."),
        ({"estimator": "one-pass"}, 100, "because one-pass estimates store no votes."),
        ({}, 39, "at least 40 votes and fewer than 64 features."),
    ],
)
def test_without_votes_to_scan_the_own_estimate_recommends_and_says_why(settings, votes, reason):
    agent = taught(RCDB, votes=votes, flip_budget=5, **settings)
    assert agent.conclude() is None
    assert agent.recommend(ACTIONS) == np.argmax(ACTIONS @ agent.estimate)
    assert agent.explain_recommendation().endswith(reason)


def test_a_wrong_way_to_recommend_is_refused():
    with pytest.raises(BadInputError, match="recommend_by"):
        RCDB(dimension=2, norm_bound=2.0, flip_budget=5, recommend_by="vote")


def test_conclusions_survive_saving_and_follow_new_votes(tmp_path):
    agent = taught(RCDB, lies=range(150, 200), flip_budget=5)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    for both in (agent, again):
        assert both.conclude().bursts[0].begin == 150
        tell(both, 60)
        assert both.conclude().votes == 260
    np.testing.assert_allclose(agent.conclude().theta, again.conclude().theta, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
@pytest.mark.parametrize("world", ["hypercube", "fresh"])
@pytest.mark.parametrize("settings", [{}, {"estimator": "lazy"}, {"estimator": "one-pass"}], ids=str)
def test_both_drivers_recommend_alike(world, settings):
    cell = Cell("rcdb", "adversarial", 20, 150, world=world, attack_settings={"start": 100}, agent_settings=settings)
    found = []
    for driver in (play_compiled, play):
        agent, place, adversary, streams = cell.start(1)
        driver(agent, place, adversary, horizon=150, labels=streams.labels)
        offer = place.offer(151)
        found.append((agent.recommend(offer.actions), agent.conclude() and agent.conclude().bursts, offer.rewards))
    np.testing.assert_array_equal(found[0][2], found[1][2])
    assert found[0][:2] == found[1][:2]
    assert ("one-pass" in settings.values()) == (found[0][1] is None)


def accepted():
    """All contextual agents with all estimators that they accept."""
    for name, kind in AGENTS.items():
        for estimator in ("exact", "lazy", "one-pass") if issubclass(kind, ContextualAgent) else ():
            with contextlib.suppress(BadInputError):
                kind(dimension=2, norm_bound=2.0, horizon=150, estimator=estimator)
                yield name, estimator


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
@pytest.mark.parametrize("dimension", [5, 64])
@pytest.mark.parametrize(("name", "estimator"), [*accepted()])
def test_looking_between_a_question_and_its_answer_changes_no_duel(name, estimator, dimension):
    """Above 63 features, a recommendation is by the agent's own estimate."""
    rng = np.random.default_rng(0)
    actions = rng.normal(size=(12, dimension))
    actions /= 1.01 * np.linalg.norm(actions, axis=1, keepdims=True)
    watched, alone = (
        AGENTS[name](
            dimension=dimension, norm_bound=2.0, horizon=150, estimator=estimator, radius_scale=0.2, self_duels=False
        )
        for _ in range(2)
    )
    for _ in range(150):
        duel, twin = watched.ask(actions), alone.ask(actions)
        assert (duel.first, duel.second, duel.weight) == (twin.first, twin.second, twin.weight)
        assert np.isfinite(watched.estimate).all()
        watched.recommend(actions)
        getattr(watched, "hessian", None)
        answer = Outcome.FIRST if rng.random() < 0.5 + 0.4 * np.sign(duel.second - duel.first) else Outcome.SECOND
        watched.tell(duel, answer)
        alone.tell(twin, answer)


def onehot(seed):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=30)
    return rng, np.eye(30), 2.0 * theta / np.linalg.norm(theta)


def featured(seed):
    """Twenty actions with five features."""
    rng = np.random.default_rng(1_000_000 + seed)
    theta, actions = rng.normal(size=5), rng.normal(size=(20, 5))
    actions *= rng.uniform(0.6, 1.0, size=(20, 1)) / np.linalg.norm(actions, axis=1, keepdims=True)
    return rng, actions, 2.0 * theta / np.linalg.norm(theta)


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
@pytest.mark.parametrize("attack", ["none", "contradict", "promote", "late"])
@pytest.mark.parametrize(("world", "votes", "seeds"), [(onehot, 1500, 4), (featured, 1200, 8)])
@pytest.mark.parametrize("name", [name for name in WITH_VOTES if name != "random-pairs"])  # its play says nothing
def test_a_conclusion_is_not_worse_than_the_play_it_came_from(name, world, votes, seeds, attack):
    """45 lies, early or late; play is the item shown most often in the last hundred duels."""
    shortfall, self_duels = [], world is onehot
    for seed in range(seeds):
        rng, actions, theta = world(seed)
        rewards, lies, shown = actions @ theta, 45, []
        agent = AGENTS[name](dimension=len(theta), norm_bound=2.0, horizon=votes, self_duels=self_duels)
        for vote in range(votes):
            duel = agent.ask(actions)
            gap = rewards[duel.first] - rewards[duel.second]
            wins = rng.random() < 1.0 / (1.0 + np.exp(-gap))
            false = wins
            if attack == "contradict" or (attack == "late" and vote > 0.85 * votes):
                false = gap < 0.0
            elif attack == "promote" and np.argmin(rewards) in (duel.first, duel.second):
                false = duel.first == np.argmin(rewards)
            if lies and gap and false != wins:
                wins, lies = false, lies - 1
            agent.tell(duel, Outcome.FIRST if wins else Outcome.SECOND)
            shown += [duel.first, duel.second]
        played = np.bincount(shown[-200:]).argmax()
        shortfall.append(rewards[played] - rewards[agent.recommend(actions)])
    assert np.mean(shortfall) < 0.1


@pytest.mark.parametrize("self_duels", [False, True])
def test_honest_votes_right_after_early_lies_are_not_set_aside(self_duels):
    """The lies come first, and contradict the votes after them as much as these contradict the lies."""
    overruled = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=30)
        theta *= 2.0 / np.linalg.norm(theta)
        agent, lies = AGENTS["sceptic"](items=30, horizon=1600, self_duels=self_duels), 45
        for _ in range(400):
            duel = agent.ask()
            gap = theta[duel.first] - theta[duel.second]
            wins = rng.random() < 1.0 / (1.0 + np.exp(-gap))
            if lies and gap and wins == (gap > 0.0):
                wins, lies = not wins, lies - 1
            agent.tell(duel, Outcome.FIRST if wins else Outcome.SECOND)
        item = agent.recommend()
        assert theta[np.argmax(agent.estimate)] - theta[item] < 0.1
        text = agent.explain_recommendation()
        overruled += "which contradict the rest, but with the votes since then" in text
        assert (agent.conclude() is None) == text.startswith("The recommendation rests on the agent's own estimate")
    assert overruled
