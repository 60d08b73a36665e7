"""Which answers to compare next, out of a pool of prompts: ``python -m benchmarks.preferences.asking``.

Prompts come in random order. Each agent chooses two of the prompt's answers and is told a recorded vote; a fifth of the
voters may say the opposite. At each number of labels, the same linear reward model is fitted to each agent's labels,
and tested on prompts that were never asked about. The last column says with which share of the labels an agent is as
accurate as random pairs with all. The table goes to docs/data/asking.csv.
"""

import argparse
import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track

from benchmarks.preferences.problems import DATA
from fairduel import Outcome
from fairduel.agents import AGENTS
from fairduel.stats import mean
from fairduel.votes import RobustRewardModel

SIMPLE = ("random", "uncertainty", "infomax", "double-thompson")
OURS: dict[str, tuple[str, dict[str, str]]] = {
    "maxinp": ("maxinp", {}),
    "maxinp, kernel": ("maxinp", {"map": "rbf"}),
    "rcdb": ("rcdb", {}),
    "sceptic": ("sceptic", {}),
}
"""Agents with their settings; the kernel's rewards are not linear."""
STEPS = np.array([0.25, 0.4, 0.5, 2 / 3, 0.8, 1.0])
_BOUND = 20.0  # ‖θ‖
TABLE = Path(__file__).parents[2] / "docs" / "data" / "asking.csv"
Votes = dict[tuple[int, int], list[tuple[int, bool]]]


class Pool(NamedTuple):
    """Candidates of each prompt (K, d); recorded votes on pairs of them, as (voter, first won); and a test."""

    answers: list[np.ndarray]
    votes: list[Votes]
    test_x: np.ndarray
    test_y: np.ndarray
    voters: int


def _pool(answers: list[np.ndarray], rows: list[tuple[int, int, int, int, bool]], held: np.ndarray, gold: list) -> Pool:
    longest = max(np.linalg.norm(each, axis=1).max() for each in answers) * (1.0 + 1e-9)  # agents take norms up to 1
    answers = [each / longest for each in answers]
    places = [place for place in range(len(answers)) if not held[place]]
    number = {place: new for new, place in enumerate(places)}
    votes: list[Votes] = [{} for _ in places]
    for place, one, other, voter, won in rows:
        if place in number:
            votes[number[place]].setdefault((one, other), []).append((voter, won))
            votes[number[place]].setdefault((other, one), []).append((voter, not won))
    test = np.array([[answers[place][one], answers[place][other]] for place, one, other, _ in gold if held[place]])
    truth = np.array([won for place, _, _, won in gold if held[place]])
    return Pool([answers[place] for place in places], votes, test, truth, 1 + max(row[3] for row in rows))


def ukp(seed: int) -> Pool:
    folder = DATA / "ukpconvarg1"
    phi = np.load(folder / "features.npz")["phi"].astype(np.float64)
    with gzip.open(folder / "arguments.csv.gz", "rt") as file:
        where = [(int(row["topic"]), int(row["arm"])) for row in csv.DictReader(file)]
    topic = np.array([place for place, _ in where])
    answers = [phi[topic == place] for place in range(32)]
    with gzip.open(folder / "votes.csv.gz", "rt") as file:
        rows = [
            (
                int(r["topic"]),
                where[int(r["arg_a"])][1],
                where[int(r["arg_b"])][1],
                int(r["worker"]),
                r["winner"] == "a",
            )
            for r in csv.DictReader(file)
            if r["winner"] != "tie"
        ]
    with gzip.open(folder / "gold_pairs.csv.gz", "rt") as file:
        gold = [
            (int(r["topic"]), where[int(r["arg_a"])][1], where[int(r["arg_b"])][1], r["gold"] == "a")
            for r in csv.DictReader(file)
            if r["gold"] in ("a", "b")
        ]
    held = np.isin(np.arange(32), np.random.default_rng([seed, 0]).permutation(32)[:8])
    return _pool(answers, rows, held, gold)


def mtbench(seed: int) -> Pool:
    folder = DATA / "mtbench_human"
    phi = np.load(folder / "features.npz")["phi"].astype(np.float64)
    rows = [
        (int(r["context"]), int(r["arm_a"]), int(r["arm_b"]), int(r["judge_id"]), r["winner"] == "a")
        for r in csv.DictReader((folder / "votes.csv").open())
        if r["winner"] != "tie"
    ]
    held = np.repeat(np.isin(np.arange(80), np.random.default_rng([seed, 0]).permutation(80)[:25]), 2)
    return _pool(list(phi), rows, held, [(row[0], row[1], row[2], row[4]) for row in rows])


POOLS = {"ukp": (ukp, 800), "mtbench": (mtbench, 500)}


class Simple:
    """Ask for a random pair, the one whose outcome is least certain, that about which least is known, or by two draws.

    Double Thompson sampling compares the best answers of two draws of θ.
    """

    def __init__(self, dimension: int, rule: str, seed: int) -> None:
        self.rng, self.rule = np.random.default_rng([seed, 4]), rule
        self.told: list[tuple[np.ndarray, bool]] = []
        self.precision = np.eye(dimension) / _BOUND**2 * dimension
        self.theta = np.zeros(dimension)

    def choose(self, answers: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[int, int]:
        apart = np.array([answers[one] - answers[other] for one, other in pairs])
        score = np.zeros(len(pairs))
        if self.rule == "uncertainty":
            score = -np.abs(apart @ self.theta)
        elif self.rule == "infomax":
            score = np.einsum("ij,ij->i", apart @ np.linalg.inv(self.precision), apart)
        elif self.rule == "double-thompson":
            root = np.linalg.cholesky(np.linalg.inv(self.precision))
            one, other = (self.theta + root @ draw for draw in self.rng.normal(size=(2, len(self.theta))))
            score = np.array([answers[first] @ one + answers[second] @ other for first, second in pairs])
        return pairs[int(np.argmax(score + 1e-9 * self.rng.random(len(score))))]

    def learn(self, apart: np.ndarray, won: bool) -> None:
        self.precision += 0.2 * np.outer(apart, apart)
        self.told.append((apart, won))
        if len(self.told) % 10 == 0:
            x = np.array([each for each, _ in self.told])
            y = np.array([each for _, each in self.told])
            ridge = np.eye(len(self.theta)) * len(self.theta) / _BOUND**2
            for _ in range(5):
                chance = 1.0 / (1.0 + np.exp(-x @ self.theta))
                hessian = (x * (chance * (1.0 - chance))[:, None]).T @ x + ridge
                self.theta += np.linalg.solve(hessian, x.T @ (y - chance) - ridge @ self.theta)


def collected(pool: Pool, name: str, labels: int, liars: float, seed: int) -> tuple[np.ndarray, ...]:
    """Ask for ``labels``; return the pairs (n, 2, d), the answers and the voters."""
    rng = np.random.default_rng([seed, 2])
    lies = np.random.default_rng([seed, 3]).random(pool.voters) < liars
    dimension = pool.answers[0].shape[1]
    own = Simple(dimension, name, seed) if name in SIMPLE else None
    agent = None
    if own is None:
        kind, settings = OURS[name][0], {"horizon": labels, **OURS[name][1]}
        if kind in {"rcdb", "sceptic"}:
            settings["flip_budget"] = max(1, round(liars * labels))
        agent = AGENTS[kind](dimension=dimension, norm_bound=_BOUND, seed=seed, self_duels=False, **settings)
    pairs, results, voters = [], [], []
    while len(results) < labels:
        prompt = int(rng.integers(len(pool.answers)))
        answers, votes = pool.answers[prompt], pool.votes[prompt]
        if not votes:
            continue
        if own is not None:
            first, second = own.choose(answers, list(votes))
        else:
            duel = agent.ask(answers)
            first, second = duel.first, duel.second
            if (first, second) not in votes:  # nobody was ever asked
                agent.cancel(duel)
                continue
        recorded = votes[first, second]
        voter, won = recorded[int(rng.integers(len(recorded)))]
        won = won != lies[voter]
        if own is not None:
            own.learn(answers[first] - answers[second], won)
        else:
            agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        pairs.append((answers[first], answers[second]))
        results.append(won)
        voters.append(voter)
    return np.array(pairs), np.array(results), np.array(voters)


def curve(pool: Pool, name: str, labels: int, liars: float, seed: int) -> np.ndarray:
    """Return the accuracy in the test after each share of the labels."""
    x, y, voters = collected(pool, name, labels, liars, seed)
    found = []
    for count in np.round(STEPS * labels).astype(int):
        model = RobustRewardModel(ridge=float(x.shape[2])).fit(x[:count], y[:count], voters=voters[:count])
        found.append(model.score(pool.test_x, pool.test_y))
    return np.array(found)


def main(seeds: int, names: list[str], agents: list[str], out: Path) -> None:
    rows = []
    cells = [(data, liars) for data in names for liars in (0.0, 0.2)]
    for data, liars in track(cells, "pools"):
        make, labels = POOLS[data]
        curves = {
            name: np.array([curve(make(seed), name, labels, liars, seed) for seed in range(seeds)])
            for name in (*SIMPLE, *agents)
        }
        goal = curves["random"].mean(axis=0)[-1]
        for name, found in curves.items():
            average = found.mean(axis=0)
            reached = np.flatnonzero(average >= goal)
            row = {"data": data, "liars": f"{liars:.0%}", "labels": labels, "asks": name}
            row |= {f"{share:.0%}": f"{value:.3f}" for share, value in zip(STEPS, average, strict=True)}
            row["±"] = f"{mean(found[:, -1] - curves['random'][:, -1]).error:.3f}" if seeds > 1 else ""
            row["as good as random pairs with"] = f"{STEPS[reached[0]]:.0%}" if len(reached) else "more"
            rows.append(row)
            print(*row.values(), flush=True)
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", choices=POOLS, default=list(POOLS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--agents", nargs="*", choices=OURS, default=list(OURS), help="ours, next to the simple rules")
    parser.add_argument("--out", type=Path, default=TABLE, help="file to write")
    given = parser.parse_args()
    main(given.seeds, given.data, given.agents, given.out)
