"""Rivals of ``RobustRewardModel``: linear rewards by losses and annotator models of the literature.

Each loss is its derivative by the margin. The ridge is that with the best loss on held-out votes, which are attacked
like the others; for RE-PO the number of steps too. It is also shown at its best: with those that do best in the test.
"""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special
from sklearn.linear_model import LogisticRegression

from benchmarks.preferences.problems import Problem, lying_chance
from fairduel.votes import RobustRewardModel
from fairduel.votes.rewards.held_out import GROUPS, RIDGES, groups_of
from fairduel.votes.rewards.truthfulness import POWER, climb

STEPS, _EACH = 30, 10  # of EM, and of the fit in each
_GAMMA = 1.0
Pull = Callable[[np.ndarray], np.ndarray]
Loss = Callable[[np.ndarray], np.ndarray]


def plain(_: float) -> tuple[Pull, Loss]:
    return (lambda z: special.expit(-z)), (lambda z: np.logaddexp(0.0, -z))


def cdpo(rate: float) -> tuple[Pull, Loss]:
    """Label smoothing, told the rate of lies."""
    return (
        lambda z: 1.0 - rate - special.expit(z),
        lambda z: (1.0 - rate) * np.logaddexp(0.0, -z) + rate * np.logaddexp(0.0, z),
    )


def rdpo(rate: float) -> tuple[Pull, Loss]:
    """The loss whose mean over random flips at this rate is the clean loss (Chowdhury et al. 2024)."""
    rate = min(rate, 0.45)
    return (
        lambda z: ((1.0 - rate) * special.expit(-z) + rate * special.expit(z)) / (1.0 - 2.0 * rate),
        lambda z: ((1.0 - rate) * np.logaddexp(0.0, -z) - rate * np.logaddexp(0.0, z)) / (1.0 - 2.0 * rate),
    )


def drdpo(_: float) -> tuple[Pull, Loss]:
    """−log E σ(z): votes count as they are likely (Wu et al. 2024, β' = 1)."""

    def pull(z: np.ndarray) -> np.ndarray:
        chance = special.expit(z)
        return chance / chance.mean(axis=0) * (1.0 - chance)

    return pull, lambda z: 1.0 - special.expit(z)


def gce(_: float) -> tuple[Pull, Loss]:
    return (
        lambda z: special.expit(z) ** POWER * special.expit(-z),
        lambda z: (1.0 - special.expit(z) ** POWER) / POWER,
    )


def holder(_: float) -> tuple[Pull, Loss]:
    """The pseudo-spherical score, a Hölder score, with γ = 1."""

    def parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p, q = special.expit(z), special.expit(-z)
        return p, q, p ** (1.0 + _GAMMA) + q ** (1.0 + _GAMMA)

    def pull(z: np.ndarray) -> np.ndarray:
        p, q, total = parts(z)
        power = total ** (-_GAMMA / (1.0 + _GAMMA))
        slope = _GAMMA * p ** (_GAMMA - 1.0) * power - p**_GAMMA * _GAMMA * power / total * (p**_GAMMA - q**_GAMMA)
        return slope * p * q

    def loss(z: np.ndarray) -> np.ndarray:
        p, _, total = parts(z)
        return 1.0 - p**_GAMMA * total ** (-_GAMMA / (1.0 + _GAMMA))

    return pull, loss


LOSSES = {"plain": plain, "cDPO, told": cdpo, "rDPO, told": rdpo, "Dr.DPO": drdpo, "Hölder": holder, "GCE": gce}


def differences(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return scaled differences, winner − loser (n, d), and first − second of the test."""
    apart = problem.x[:, 0] - problem.x[:, 1]
    scale = np.sqrt((apart**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    ahead = (apart * np.where(problem.y, 1.0, -1.0)[:, None] / scale).astype(np.float32)
    return ahead, ((problem.test_x[:, 0] - problem.test_x[:, 1]) / scale).astype(np.float32)


def accuracy(theta: np.ndarray, test: np.ndarray, problem: Problem) -> np.ndarray:
    return ((test @ theta > 0.0) == problem.test_y[:, None]).mean(axis=0)


def by_loss(problem: Problem, kind: Callable[[float], tuple[Pull, Loss]]) -> float:
    """Return the accuracy in the test with the ridge that is best on held-out prompts."""
    ahead, test = differences(problem)
    pull, loss = kind(problem.lies)
    ridges = ahead.shape[1] * RIDGES
    ones = np.ones(len(ahead))
    prompt = np.unique(problem.prompt, return_inverse=True)[1]
    group = groups_of(prompt, ones, GROUPS, np.random.default_rng(0))[prompt]
    left = np.tile((group[:, None] != np.arange(GROUPS)).astype(np.float32), len(RIDGES))
    theta, _ = climb(ahead, lambda z: left * pull(z), left, np.repeat(ridges, GROUPS), None)
    lost = (loss(ahead @ theta) * (1.0 - left)).sum(axis=0).reshape(len(RIDGES), GROUPS).sum(axis=1)
    best = ridges[[int(np.argmin(lost))]]
    every = np.ones((len(ahead), 1), dtype=np.float32)
    return float(accuracy(climb(ahead, pull, every, best, None)[0], test, problem)[0])


def by_voter(problem: Problem, before: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float, float, np.ndarray]:
    """Return the accuracy with the steps and ridge that predict held-out votes best, and with the best in the test.

    Then that with what does best in one half of the test, scored in the other, and the reliability of each voter at the
    best, (V,). RE-PO is without prior; Crowd-BT (Chen et al. 2013) has the
    same likelihood and the prior Beta(10, 1), as if it had seen ``before`` right and wrong votes of each voter.
    """
    ahead, test = differences(problem)
    prompt = np.unique(problem.prompt, return_inverse=True)[1]
    group = groups_of(prompt, np.ones(len(ahead)), GROUPS, np.random.default_rng(0))[prompt]
    likely = np.zeros((STEPS, len(RIDGES)))
    for left in range(GROUPS):
        seen, unseen = (np.flatnonzero(each) for each in (group != left, group == left))
        for step, (theta, reliability) in enumerate(_voter_steps(problem, ahead, seen, before)):
            mine, chance = reliability[problem.voter[unseen]], special.expit(ahead[unseen] @ theta)
            likely[step] += np.log(mine * chance + (1.0 - mine) * (1.0 - chance)).sum(axis=0)
    fits = list(_voter_steps(problem, ahead, np.arange(len(ahead)), before))
    right = np.array([(test @ theta > 0.0) == problem.test_y[:, None] for theta, _ in fits])
    reached, half = right.mean(axis=1), np.random.default_rng(0).random(len(test)) < 0.5
    chosen, best = (np.unravel_index(int(np.argmax(each)), each.shape) for each in (likely, reached))
    one, other = right[:, half].mean(axis=1), right[:, ~half].mean(axis=1)
    halves = (other.ravel()[one.argmax()] + one.ravel()[other.argmax()]) / 2.0
    return float(reached[chosen]), float(reached[best]), float(halves), fits[best[0]][1][:, best[1]]


def _voter_steps(
    problem: Problem, ahead: np.ndarray, seen: np.ndarray, before: tuple[float, float]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield θ (d, k) and voters' reliability (V, k) after each step on the votes that are ``seen``, for each ridge.

    E-step: the probability that a vote is right, from the voter's reliability. M-step: the mean of it is the voter's
    reliability, and the rewards fit the votes or their opposites with these weights.
    """
    ahead, voter = ahead[seen], problem.voter[seen]
    ridges, voters, (good, bad) = ahead.shape[1] * RIDGES, len(problem.is_liar), before
    cast = np.bincount(voter, minlength=voters)[:, None]
    reliability = np.full((voters, len(ridges)), 0.9)
    theta, every = None, np.ones((len(ahead), len(ridges)), dtype=np.float32)
    right = reliability[voter]
    for _ in range(STEPS):
        theta, _ = climb(ahead, lambda z, right=right: right - special.expit(z), every, ridges, theta, _EACH)
        chance, mine = special.expit(ahead @ theta), reliability[voter]
        right = mine * chance / (mine * chance + (1.0 - mine) * (1.0 - chance))
        total = np.stack([np.bincount(voter, column, voters) for column in right.T], axis=1)
        known = np.clip((total + good) / np.maximum(cast + good + bad, 1), 0.01, 0.99)
        reliability = np.where(cast > 0, known, 0.9)  # unseen voters: 0.9
        yield theta, reliability


def crowd_bt(problem: Problem) -> float:
    """Return Crowd-BT's accuracy."""
    return by_voter(problem, before=(9.0, 0.0))[0]


def dawid_skene(pair: np.ndarray, problem: Problem) -> np.ndarray:
    """Return the probability that the first answer of each pair is better: one accuracy per voter."""
    voters, sign = len(problem.is_liar), np.where(problem.y, 1.0, -1.0)
    share = special.expit(np.bincount(pair, sign))
    for _ in range(30):
        agrees = np.where(problem.y, share[pair], 1.0 - share[pair])
        good = (np.bincount(problem.voter, agrees, voters) + 4.0) / (np.bincount(problem.voter, minlength=voters) + 5.0)
        share = special.expit(np.bincount(pair, sign * special.logit(np.clip(good, 0.01, 0.99))[problem.voter]))
    return share


def mace(pair: np.ndarray, problem: Problem) -> np.ndarray:
    """Return the same by MACE (Hovy et al. 2013): a voter knows the truth, or spams with a taste for one side."""
    voter, y, voters = problem.voter, problem.y, len(problem.is_liar)
    cast = np.bincount(voter, minlength=voters)
    spams, first = np.full(voters, 0.3), np.full(voters, 0.5)
    share = np.full(pair.max() + 1, 0.5)
    for _ in range(30):
        habit = np.where(y, first[voter], 1.0 - first[voter])
        false = spams[voter] * habit
        true = 1.0 - spams[voter] + false
        share = special.expit(np.bincount(pair, np.where(y, 1.0, -1.0) * np.log(true / false)))
        spam = np.where(y, 1.0 - share[pair], share[pair]) + np.where(y, share[pair], 1.0 - share[pair]) * false / true
        spammed = np.bincount(voter, spam, voters)
        spams = np.clip((spammed + 0.5) / (cast + 1.0), 0.01, 0.99)
        first = (np.bincount(voter, spam * y, voters) + 1.0) / (spammed + 2.0)
    return share


def by_pair(problem: Problem, kind: Callable[[np.ndarray, Problem], np.ndarray]) -> float:
    """Return the accuracy of rewards that fit what the votes say together of each pair."""
    ahead, test = differences(problem)
    apart = ahead * np.where(problem.y, 1.0, -1.0)[:, None].astype(np.float32)
    _, pair = np.unique(apart.round(4), axis=0, return_inverse=True)
    share = kind(pair.ravel(), problem)[pair.ravel()]
    right = np.where(problem.y, share, 1.0 - share).astype(np.float32)[:, None]
    every = np.ones_like(right)
    ridge = np.array([ahead.shape[1] * RIDGES[2]])
    theta, _ = climb(ahead, lambda z: right - special.expit(z), every, ridge, None)
    return float(accuracy(theta, test, problem)[0])


def cleanlab(problem: Problem) -> float:
    """Fit without the votes that cleanlab's filter finds, from held-out probabilities of the plain fit."""
    from cleanlab.filter import find_label_issues  # noqa: PLC0415  # optional

    ahead, test = differences(problem)
    prompt = np.unique(problem.prompt, return_inverse=True)[1]
    group = groups_of(prompt, np.ones(len(ahead)), GROUPS, np.random.default_rng(0))[prompt]
    left = (group[:, None] != np.arange(GROUPS)).astype(np.float32)
    pull, ridge = plain(0.0)[0], np.array([ahead.shape[1] * RIDGES[2]])
    theta, _ = climb(ahead, lambda z: left * pull(z), left, np.repeat(ridge, GROUPS), None)
    first = special.expit((ahead @ theta)[np.arange(len(ahead)), group] * np.where(problem.y, 1.0, -1.0))
    issues = find_label_issues(problem.y.astype(int), np.column_stack([1.0 - first, first]), n_jobs=1)
    kept = (~issues).astype(np.float32)[:, None]
    return float(accuracy(climb(ahead, lambda z: kept * pull(z), kept, ridge, None)[0], test, problem)[0])


def without_lies(problem: Problem) -> Problem:
    """Leave out the liars' votes."""
    honest = ~problem.is_liar[problem.voter]
    fields = {name: getattr(problem, name)[honest] for name in ("x", "y", "voter", "prompt")}
    return problem._replace(**fields)


def evidence_of_oracle(how: str, clean: Problem, problem: Problem) -> np.ndarray:
    """Return the log-likelihood ratio of a liar to an honest voter, of each voter (V,), to one who knows how they vote.

    Rewards are those that explain everybody's honest votes best, also those of the voter.
    """
    model = RobustRewardModel().fit(clean.x, clean.y, voters=clean.voter, prompts=clean.prompt)
    margin = model.leads(clean.x)
    fit = LogisticRegression(C=1e6, fit_intercept=False).fit(margin[:, None], clean.y)
    honest = np.clip(fit.predict_proba(margin[:, None])[:, 1], 0.02, 0.98)
    lying = lying_chance(how, clean.x, honest)
    ratio = np.where(problem.y, lying / honest, (1.0 - lying) / (1.0 - honest))
    return np.bincount(problem.voter, np.log(ratio), len(problem.is_liar))
