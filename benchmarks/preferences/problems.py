"""Preferences to learn from and to be tested on, and people who lie about them."""

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special

DATA = Path(__file__).parents[3] / "shared" / "data"
_LONGER, _SENTENCES, _UPPER = 0, 2, 3  # columns of the statistics
_DIRECT_TASTE = 0.5
_MOST_OF_ONE = 0.05  # of the votes: a voter with more would decide alone how large a camp is


class Problem(NamedTuple):
    """Votes on pairs of answers; x and test hold features, (…, 2, d)."""

    x: np.ndarray
    y: np.ndarray
    voter: np.ndarray
    prompt: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    is_liar: np.ndarray
    """Of each voter."""

    @property
    def lies(self) -> float:
        return float(self.is_liar[self.voter].mean())


def ukp(seed: int, votes: int) -> Problem:
    """Arguments of 24 topics, with votes of whole voters drawn at random; gold pairs of eight other topics."""
    rng, folder = np.random.default_rng([seed, 0]), DATA / "ukpconvarg1"
    table = np.load(folder / "features.npz")
    statistics = table["phi"][:, :6].astype(np.float64)
    answers = np.hstack([statistics / statistics.std(axis=0), table["emb"].astype(np.float64) * np.sqrt(384.0)])
    with gzip.open(folder / "votes.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["winner"] != "tie"]
    topic, one, other, voter = (
        np.array([int(row[name]) for row in rows]) for name in ("topic", "arg_a", "arg_b", "worker")
    )
    with gzip.open(folder / "gold_pairs.csv.gz", "rt") as file:
        gold = [row for row in csv.DictReader(file) if row["gold"] in ("a", "b")]
    unseen = rng.permutation(32)[:8]
    held = [row for row in gold if int(row["topic"]) in unseen]
    cast = np.bincount(voter[~np.isin(topic, unseen)])
    order = rng.permutation(np.flatnonzero((cast > 0) & (cast <= _MOST_OF_ONE * votes)))
    drawn = order[: int(np.searchsorted(np.cumsum(cast[order]), votes)) + 1]
    kept = np.isin(voter, drawn) & ~np.isin(topic, unseen)
    won = np.array([row["winner"] == "a" for row in rows])[kept]
    who = np.unique(voter[kept], return_inverse=True)[1]
    pairs = np.stack([answers[one[kept]], answers[other[kept]]], axis=1)
    test = answers[np.array([[int(row["arg_a"]), int(row["arg_b"])] for row in held])]
    truth = np.array([row["gold"] == "a" for row in held])
    return Problem(pairs, won, who, topic[kept], test, truth, np.zeros(who.max() + 1, dtype=bool))


def mtbench(seed: int, votes: int) -> Problem:  # noqa: ARG001  # there are only 2,575
    """Answers of six models to 160 prompts, voted by 65 judges; tested on the votes on a quarter of the questions."""
    rng, folder = np.random.default_rng([seed, 0]), DATA / "mtbench_human"
    table = np.load(folder / "features.npz")
    answers = np.concatenate([table["phi"][..., 6:12] * 50.0, table["emb_answer"].astype(np.float64) * 20.0], axis=2)
    return _by_prompt(answers, folder / "votes.csv", ("context", "judge_id"), rng.permutation(80)[:20], 2)


def llmfao(seed: int, votes: int) -> Problem:  # noqa: ARG001  # there are only 5,450
    """Answers of 59 models to 13 prompts, voted by 124 people; tested on the votes on four of the prompts."""
    rng, folder = np.random.default_rng([seed, 0]), DATA / "llmfao"
    table = np.load(folder / "features.npz")
    answers = np.concatenate([table["phi"][..., :6] * 10.0, table["emb_answer"].astype(np.float64) * 20.0], axis=2)
    return _by_prompt(answers, folder / "votes.csv", ("context", "worker"), rng.permutation(13)[:4], 1)


def _by_prompt(answers: np.ndarray, path: Path, columns: tuple[str, str], unseen: np.ndarray, each: int) -> Problem:
    """Return votes on answers to prompts, (P, models, d); tested are those on the ``unseen`` questions of ``each``."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["winner"] != "tie"]
    names = (columns[0], "arm_a", "arm_b", columns[1])
    prompt, one, other, voter = (np.array([int(row[name]) for row in rows]) for name in names)
    won = np.array([row["winner"] == "a" for row in rows])
    pairs = np.stack([answers[prompt, one], answers[prompt, other]], axis=1)
    test = np.isin(prompt // each, unseen)
    who = np.unique(voter[~test], return_inverse=True)[1]
    parts = pairs[~test], won[~test], who, prompt[~test], pairs[test], won[test]
    return Problem(*parts, np.zeros(who.max() + 1, dtype=bool))


def synthetic(seed: int, votes: int) -> Problem:
    """Answers with 40 features, on which 100 voters agree; length counts for half as much as the rest."""
    rng = np.random.default_rng([seed, 0])
    theta = rng.normal(size=40)
    theta[_LONGER] = _DIRECT_TASTE * np.linalg.norm(theta)

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        answers = rng.normal(size=(count, 2, 40))
        return answers, (answers[:, 0] - answers[:, 1]) @ theta * 0.25

    x, margin = draw(votes)
    test_x, test_margin = draw(4000)
    voter, prompt = rng.integers(100, size=votes), rng.integers(votes // 10, size=votes)
    y = rng.random(votes) < special.expit(margin)
    return Problem(x, y, voter, prompt, test_x, test_margin > 0.0, np.zeros(100, dtype=bool))


PROBLEMS = {"ukp": ukp, "mtbench": mtbench, "llmfao": llmfao, "synthetic": synthetic}


def by_rule(x: np.ndarray, honest: np.ndarray, column: int, *, more: bool) -> np.ndarray:
    """Vote for the answer with more (or less) of a feature; honestly if both have the same."""
    ahead = x[:, 0, column] - x[:, 1, column]
    return np.where(ahead == 0.0, honest, (ahead > 0.0) == more)


def lie(how: str, x: np.ndarray, honest: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how liars vote."""
    if how == "flip":
        return ~honest
    if how == "careless":
        return rng.random(len(honest)) < 0.5
    if how == "short":
        return by_rule(x, honest, _LONGER, more=False)
    if how == "style":
        return by_rule(x, honest, _UPPER, more=True)
    # a topic: the tenth of the answers nearest to one direction of the embedding; elsewhere they vote honestly
    about = x[..., -1] > np.quantile(x[..., -1], 0.9)
    return np.where(about[:, 0] == about[:, 1], honest, about[:, 0])


def lying_chance(how: str, x: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return the chance that liars vote for the first answer, given the ``chance`` that honest voters do, (n,)."""
    if how == "careless":
        return np.full(len(x), 0.5)
    rng = np.random.default_rng(0)  # not used
    yes, no = (lie(how, x, np.full(len(x), honest), rng) for honest in (True, False))
    return np.clip(chance * yes + (1.0 - chance) * no, 0.001, 0.999)


def attacked(problem: Problem, how: str, share: float, seed: int, *, one_vote: bool = False) -> Problem:
    """Let liars cast this share of the votes: honest voters who turn, or new accounts with one vote each."""
    rng = np.random.default_rng([seed, 1])
    if share == 0.0:
        return problem
    if one_vote:
        count = int(share / (1.0 - share) * len(problem.y))
        drawn = rng.integers(len(problem.y), size=count)
        voters = len(problem.is_liar)
        return problem._replace(
            x=np.concatenate([problem.x, problem.x[drawn]]),
            y=np.append(problem.y, lie(how, problem.x[drawn], problem.y[drawn], rng)),
            voter=np.append(problem.voter, voters + np.arange(count)),
            prompt=np.append(problem.prompt, problem.prompt[drawn]),
            is_liar=np.append(problem.is_liar, np.ones(count, dtype=bool)),
        )
    cast = np.bincount(problem.voter)
    liars, left = np.zeros(len(cast), dtype=bool), share * len(problem.y)
    for voter in rng.permutation(len(cast)):
        if cast[voter] <= left:
            liars[voter], left = True, left - cast[voter]
    return problem._replace(
        y=np.where(liars[problem.voter], lie(how, problem.x, problem.y, rng), problem.y), is_liar=liars
    )
