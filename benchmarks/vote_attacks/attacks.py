"""Rankings of recorded votes under attack: populations of voters × attacks × shares of false votes × models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special, stats

from benchmarks.rivals import RIVALS
from benchmarks.running import Work
from fairduel.duel import Vector
from fairduel.stats import Mean, mean, paired_difference
from fairduel.votes import audit_voters, find_camps, rank, trusted_weights
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import TACTICS, TacticName
from fairduel.votes.attacking.stress import rank_by_score
from fairduel.votes.votes import Votes

OURS = "ours"
NO_ATTACK = "none"
SHARES = (0.05, 0.10, 0.25, 0.40)
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

    tactics: tuple[TacticName, ...]
    """Each with an equal part of the false votes."""
    votes_each: int = _VOTES_EACH


ATTACKS: Mapping[str, Plan] = {
    "promote": Plan(("promote",)),
    "half-honest": Plan(("half-honest",)),
    "omnipresent": Plan(("omnipresent",)),
    "demote": Plan(("demote",)),
    "inverters": Plan(("inverters",)),
    "half-honest 20": Plan(("half-honest",), votes_each=20),
    "promote, demote": Plan(("promote", "demote")),
    "sybils": Plan(("promote",), votes_each=1),
    "random-votes": Plan(("random-votes",)),
    "mixed": Plan(("promote", "half-honest", "omnipresent", "random-votes")),
}
"""Attacks, most with 30 votes per attacker; sybils promote with one vote each. Inverters form a camp."""
_CAMPS = ("inverters", "random-votes")
_MOST = 0.25  # share of any other attack: beyond that, attackers can become the majority on their item


def our_scores(votes: Votes) -> Vector:
    """Return the scores (K,) of the ranking that the audit shows."""
    camps = find_camps(votes)
    evidence = replace(audit_voters(votes), camps=camps)
    weights = trusted_weights(votes, evidence, camps=camps) if evidence.finds_anyone else None
    return rank(votes, reliability=weights, draws=100).scores  # draws are for ranges, which are not used here


MODELS: Mapping[str, Callable[[Votes], Vector]] = {OURS: our_scores, **RIVALS}
"""Every model compared."""
SCHEMA = {"seed": pl.Int64, "share": pl.Float64, "model": pl.String, "tau": pl.Float64, "gained": pl.Int64}


def works(shares: Sequence[float]) -> dict[tuple[str, str], Work]:
    """Return what to measure, by population and attack."""
    return {
        (population, attack): Work(
            ", ".join([population, attack, *(f"{share:.0%}" for share in shares)]),
            partial(measured, population, attack, shares),
            SCHEMA,
            (__name__,),
        )
        for population in POPULATIONS
        for attack in (NO_ATTACK, *ATTACKS)
    }


def measured(population: str, attack: str, shares: Sequence[float], seed: int) -> list[dict[str, Any]]:
    """Return one row per share and model: Kendall's τ with the true scores, and places gained by the target.

    The target is the true leader if it shall fall, otherwise the item three quarters down; if tactics have different
    targets, the first one's is followed. Places count from its true rank, in the direction that the attackers want;
    without a target there are none.
    """
    votes, scores = POPULATIONS[population].votes(seed)
    tactics = [] if attack == NO_ATTACK else [TACTICS[name] for name in ATTACKS[attack].tactics]
    targets = [int(np.argsort(-scores)[0 if tactic.lowers else 3 * _ITEMS // 4]) for tactic in tactics]
    has_target = any(tactic.needs_item for tactic in tactics)
    direction = -1 if has_target and tactics[0].lowers else 1
    rows: list[dict[str, Any]] = []
    shares = [0.0] if attack == NO_ATTACK else [each for each in shares if each <= _MOST or attack in _CAMPS]
    for share in shares:
        attacked = _attacked(votes, attack, targets, share, seed)
        for name, model in MODELS.items():
            found = model(attacked)
            tau = float(stats.kendalltau(found, scores).statistic)
            gained = None
            if has_target:
                gained = direction * (rank_by_score(scores, targets[0]) - rank_by_score(found, targets[0]))
            rows.append({"seed": seed, "share": share, "model": name, "tau": tau, "gained": gained})
    return rows


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


def compare(found: Mapping[tuple[str, str], pl.DataFrame]) -> list[Comparison]:
    """Compare the models at every share, given the rows of each population and attack."""
    return [cell for (population, attack), frame in found.items() for cell in _comparisons(population, attack, frame)]


def _comparisons(population: str, attack: str, frame: pl.DataFrame) -> Iterator[Comparison]:
    for (share,), cell in frame.sort("seed", maintain_order=True).group_by("share", maintain_order=True):
        of = {str(name): rows for (name,), rows in cell.group_by("model", maintain_order=True)}
        tau = {name: of[name]["tau"].to_numpy() for name in MODELS}
        best = max((name for name in MODELS if name != OURS), key=lambda name: float(tau[name].mean()))
        gained = None
        if cell["gained"].null_count() == 0:
            gained = {name: mean(of[name]["gained"].to_numpy().astype(np.float64)) for name in MODELS}
        means = {name: mean(values) for name, values in tau.items()}
        yield Comparison(
            population, attack, float(str(share)), means, gained, best, paired_difference(tau[OURS], tau[best])
        )


def _attacked(votes: Votes, attack: str, targets: Sequence[int], share: float, seed: int) -> Votes:
    """Add false votes until they are ``share`` of all."""
    if attack == NO_ATTACK:
        return votes
    plan, size = ATTACKS[attack], len(votes) * share / (1.0 - share)
    part = max(1, round(size / len(plan.tactics)))
    for number, (each, target) in enumerate(zip(plan.tactics, targets, strict=True)):
        liars = max(1, round(part / plan.votes_each))
        votes = inject(votes, each, votes.items[target], size=part, voters=liars, seed=seed + number).votes
    return votes
