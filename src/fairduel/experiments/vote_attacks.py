"""Rankings of recorded votes under attack: populations of voters × attacks × shares of false votes × models."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import polars as pl
from scipy import special, stats
from threadpoolctl import threadpool_limits

from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.experiments.inference import Mean, mean, paired_difference
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.files import write_atomically
from fairduel.simulation.fingerprint import code_digest
from fairduel.votes.rivals import RIVALS
from fairduel.votes.stress_tests import Attack, inject, our_scores, rank_of
from fairduel.votes.votes import Votes

RUNS = 20
OURS = "ours"
NO_ATTACK = "none"
SHARES = (0.01, 0.02, 0.05, 0.10)
"""Shares of all votes that attackers cast."""
ALLOWED = 0.01
"""How far in τ we may be behind the best rival."""
_ITEMS, _VOTERS, _VOTES_EACH = 20, 150, 30
_TIES = 0.1


@dataclass(frozen=True)
class Population:
    """Honest voters: i beats j with log-odds s(θ_i − θ_j) + u_i − u_j, θ ~ N(0, 1), and one vote in ten is a tie."""

    taste: float = 0.0
    """Standard deviation of the tastes u, one per voter and item."""
    care: float = 0.0
    """Standard deviation of log s, one per voter."""
    activity: float | None = None
    """Standard deviation of the log of a voter's number of votes; None: uniform from 2 to 60."""
    popularity: float = 0.0
    """Standard deviation of the log of an item's frequency."""

    def votes(self, seed: int) -> tuple[Votes, Vector]:
        """Draw about 4,500 votes of 150 voters on 20 items; return them and the true scores (K,)."""
        world, people, duels = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
        scores, frequency = world.standard_normal(_ITEMS), np.exp(self.popularity * world.standard_normal(_ITEMS))
        care = np.exp(self.care * people.standard_normal((_VOTERS, 1)))
        own = care * scores + self.taste * people.standard_normal((_VOTERS, _ITEMS))
        if self.activity is None:
            cast = people.integers(2, 2 * _VOTES_EACH + 1, _VOTERS)
        else:
            activity = np.exp(self.activity * people.standard_normal(_VOTERS))
            cast = np.ceil(_VOTERS * _VOTES_EACH * activity / activity.sum()).astype(np.int64)
        voter = duels.permutation(np.repeat(np.arange(_VOTERS), cast))
        # two different items each, drawn by frequency: the two largest of perturbed log-frequencies
        first, second = np.argsort(-np.log(frequency) - duels.gumbel(size=(len(voter), _ITEMS)), axis=1)[:, :2].T
        swapped = duels.random(len(voter)) < 0.5
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        won = duels.random(len(voter)) < special.expit(own[voter, first] - own[voter, second])
        result = np.where(duels.random(len(voter)) < _TIES, 0.5, won)
        names = [f"item {number}" for number in range(1, _ITEMS + 1)]
        voters = [f"voter {number}" for number in range(1, _VOTERS + 1)]
        return Votes.from_arrays(names, first, second, result, voter=voter, voters=voters), scores


POPULATIONS: Mapping[str, Population] = {
    "identical": Population(),
    "tastes": Population(taste=0.5, care=0.3),
    "uneven": Population(taste=0.5, care=0.3, activity=1.2, popularity=0.7),
}
"""Voters who differ in nothing; in tastes and care; also in activity, with items of uneven frequency."""


class Plan(NamedTuple):
    """What the attackers do."""

    attacks: tuple[Attack, ...]
    """Each with an equal part of the false votes."""
    votes_each: int = _VOTES_EACH


ATTACKS: Mapping[str, Plan] = {
    "promote": Plan(("promote",)),
    "half-honest": Plan(("half-honest",)),
    "omnipresent": Plan(("omnipresent",)),
    "demote": Plan(("demote",)),
    "inverters": Plan(("inverters",)),
    "sybils": Plan(("promote",), votes_each=1),
    "random votes": Plan(("random votes",)),
    "mixed": Plan(("promote", "half-honest", "omnipresent", "random votes")),
}
"""Attacks, most with 30 votes per attacker; sybils promote with one vote each."""

MODELS: Mapping[str, Callable[[Votes], Vector]] = {OURS: our_scores, **RIVALS}
"""Every model compared."""


@dataclass(frozen=True)
class Batch:
    """All shares of one attack on one population, with one seed."""

    population: str
    attack: str
    seed: int

    def run(self) -> pl.DataFrame:
        """Return one row per share and model: Kendall's τ with the true scores, and places gained by the target.

        The target is the true leader for demote, otherwise the item three quarters down. Places count from its true
        rank, in the direction that the attackers want; without a target there are none.
        """
        votes, scores = POPULATIONS[self.population].votes(self.seed)
        target = int(np.argsort(-scores)[0 if self.attack == "demote" else 3 * _ITEMS // 4])
        direction = -1 if self.attack == "demote" else 1
        rows: list[dict[str, Any]] = []
        for share in (0.0,) if self.attack == NO_ATTACK else SHARES:
            attacked = _attacked(votes, self.attack, target, share, self.seed)
            for name, model in MODELS.items():
                found = model(attacked)
                moved = rank_of(scores, target) - rank_of(found, target)
                has_target = self.attack not in (NO_ATTACK, "inverters", "random votes")
                tau = float(stats.kendalltau(found, scores).statistic)
                gained = direction * moved if has_target else None
                rows.append(asdict(self) | {"share": share, "model": name, "tau": tau, "gained": gained})
        return pl.DataFrame(rows, schema_overrides={"gained": pl.Int64})

    def path(self, folder: Path) -> Path:
        """Its file in ``folder``, named after everything that its result depends on."""
        plan = ATTACKS.get(self.attack)
        content = [
            asdict(self),
            asdict(POPULATIONS[self.population]),
            plan,
            SHARES,
            list(MODELS),
            code_digest([__name__]),
        ]
        return folder / "runs" / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]}.parquet"


def measure(
    folder: Path, seeds: Sequence[int], *, jobs: int = 1, progress: Callable[[int], None] = lambda _: None
) -> pl.DataFrame:
    """Run what is missing in ``folder`` and return the rows of all batches; see :meth:`Batch.run`."""
    refuse_tuning_seeds(seeds)
    paths = {batch: batch.path(folder) for batch in batches(seeds)}
    missing = [batch for batch, path in paths.items() if not path.exists()]
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)
    with threadpool_limits(1), closing(pool(joblib.delayed(_saved)(batch, paths[batch]) for batch in missing)) as done:
        for _ in done:
            progress(1)
    return pl.concat([_read(path) for path in paths.values()])


def count_missing(folder: Path, seeds: Sequence[int]) -> int:
    """Return how many batches are not finished."""
    return sum(not batch.path(folder).exists() for batch in batches(seeds))


def batches(seeds: Sequence[int]) -> list[Batch]:
    """Return all batches, seed by seed."""
    return [
        Batch(population, attack, seed)
        for seed in seeds
        for population in POPULATIONS
        for attack in (NO_ATTACK, *ATTACKS)
    ]


class Comparison(NamedTuple):
    """The models in one cell of the table: a population, an attack and its share."""

    population: str
    attack: str
    share: float
    tau: dict[str, Mean]
    gained: dict[str, Mean] | None
    """Places gained by the target; None without one."""
    best: str
    """The rival with the highest mean τ."""
    lead: Mean
    """Our τ minus that rival's, seed by seed."""


def compare(frame: pl.DataFrame) -> list[Comparison]:
    """Compare the models in every cell of a frame from :func:`measure`."""
    return list(_comparisons(frame.sort("seed")))


def _comparisons(frame: pl.DataFrame) -> Iterator[Comparison]:
    for (population, attack, share), cell in frame.group_by("population", "attack", "share", maintain_order=True):
        of = {str(name): rows for (name,), rows in cell.group_by("model")}
        tau = {name: of[name]["tau"].to_numpy() for name in MODELS}
        best = max((name for name in MODELS if name != OURS), key=lambda name: float(tau[name].mean()))
        gained = None
        if cell["gained"].null_count() == 0:
            gained = {name: mean(of[name]["gained"].to_numpy().astype(np.float64)) for name in MODELS}
        means = {name: mean(values) for name, values in tau.items()}
        lead = paired_difference(tau[OURS], tau[best])
        yield Comparison(str(population), str(attack), float(str(share)), means, gained, best, lead)


def _attacked(votes: Votes, attack: str, target: int, share: float, seed: int) -> Votes:
    """Add false votes until they are ``share`` of all."""
    if attack == NO_ATTACK:
        return votes
    plan, size = ATTACKS[attack], len(votes) * share / (1.0 - share)
    part = max(1, round(size / len(plan.attacks)))
    for number, each in enumerate(plan.attacks):
        liars = max(1, round(part / plan.votes_each))
        votes = inject(votes, each, votes.items[target], size=part, voters=liars, seed=seed + number).votes
    return votes


def _saved(batch: Batch, path: Path) -> None:
    with threadpool_limits(1):
        frame = batch.run()
    content = io.BytesIO()
    frame.write_parquet(content)
    write_atomically(path, content.getvalue())


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInputError(f"{path} is damaged: delete it and rerun.") from error
