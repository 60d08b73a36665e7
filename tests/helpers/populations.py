"""Honest populations of voters with a known order of the items, to check that intervals hold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairduel.checks import integer
from fairduel.duel import Matrix, Vector
from fairduel.errors import unknown_name
from fairduel.votes.votes import Indices, Votes

TASTE = 0.7
"""Standard deviation of a voter's taste, or a prompt's effect, per item (log-odds)."""
KINDS = {
    "clean": "Bradley–Terry, random pairs, voters alike",
    "tastes": "each voter has own tastes, and some vote far more than others",
    "prompts": "13 prompts, each with own effects on the items",
    "groups": "separate groups of 2 to 5 items",
    "separation": "scores so far apart that some items win or lose nearly all votes",
    "misspecified": "another link, careless voters and popular items",
    "few prompts": "as prompts, but only 5",
    "polarising": "half of the voters love one item, half hate it",
    "ties": "Davidson's ties",
}
"""What each kind of population is."""
_PROMPTS = {"prompts": 13, "few prompts": 5}
_POLARISED = 2.0
_DAVIDSON = 0.5


@dataclass(frozen=True, eq=False)
class Population:
    """Votes and the truth behind them.

    Args:
        votes: The votes.
        truth: Scores of the items, shape ``(K,)``. Their order in a component is the order of the average chance to
            beat another item, over all voters and prompts that could have been drawn.
    """

    votes: Votes
    truth: Vector


@dataclass(frozen=True, eq=False)
class _Model:
    """What votes are drawn from."""

    theta: Vector
    activity: Vector
    """How often each voter votes, in proportion, shape (V,)."""
    care: Vector
    """Shape (V,)."""
    tastes: Matrix
    """Taste of each voter, shape (V, K)."""
    popularity: Vector
    """How often each item is drawn, in proportion, shape (K,)."""
    group: NDArray[np.int64]
    """Group of each item, shape (K,); only items of one group are compared."""
    effects: Matrix
    """Effect of each prompt, shape (prompts, K); no rows if there are no prompts."""


def population(kind: str, *, items: int, votes: int, voters: int, seed: int, spread: float = 1.0) -> Population:
    """Draw honest votes from a population with known scores θ.

    A vote is by a random voter v on a random pair (and prompt p), who prefers i to j with log-odds
    s_v (θ_i − θ_j) + u_vi − u_vj + e_pi − e_pj. In ``clean`` votes θ ~ N(0, ``spread``²), the care is s = 1, and there
    are no tastes u and no prompt effects e. The other kinds differ from this:

    - ``tastes``: u ~ N(0, 0.7²), and the voters' activity is log-normal;
    - ``prompts`` and ``few prompts``: 13 and 5 prompts with e ~ N(0, 0.7²);
    - ``groups``: only items of one group are compared;
    - ``separation``: θ is three times as large, and one item at 6;
    - ``misspecified``: a mixture of probit, cauchit and 10% coin flips, log-normal care, and a third of the items drawn
      ten times as often;
    - ``polarising``: u = ±2 for one item, + for half of the voters;
    - ``ties``: Davidson's model with ν = ½.

    Args:
        kind: One of :data:`KINDS`.
        items: Number of items, at least 4.
        votes: Number of votes.
        voters: Number of voters.
        seed: Seed; the same seed gives the same votes.
        spread: Standard deviation of the scores. Near 0 all items are about equally good, which is hardest for ranges:
            any two items told apart are in the wrong order half of the time.

    Returns:
        The votes, and the scores that order the items.

    >>> drawn = population("clean", items=5, votes=50, voters=3, seed=0)
    >>> len(drawn.votes), drawn.truth.shape
    (50, (5,))
    """
    if kind not in KINDS:
        raise unknown_name("population", kind, KINDS)
    for name, number, least in (("items", items, 4), ("votes", votes, 1), ("voters", voters, 1)):
        integer(name, number, least=least)
    world, duels = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    model = _model(kind, items, voters, spread, world)
    voter = duels.choice(voters, votes, p=model.activity / model.activity.sum())
    first, second = _pairs(model, votes, duels)
    own = model.care[:, None] * model.theta + model.tastes
    margin = own[voter, first] - own[voter, second]
    context, prompts = None, len(model.effects)
    if prompts:
        context = duels.integers(prompts, size=votes)
        margin += model.effects[context, first] - model.effects[context, second]
    chance, tie = _chances(kind, margin)
    draw = duels.random(votes)
    result = np.where(draw < tie, 0.5, (draw < tie + (1.0 - tie) * chance).astype(np.float64))
    cast = Votes.from_arrays(
        [f"item {number}" for number in range(1, items + 1)],
        first,
        second,
        result,
        voter=voter,
        voters=[f"voter {number}" for number in range(1, voters + 1)],
        context=context,
        contexts=[f"prompt {number}" for number in range(1, prompts + 1)],
    )
    return Population(cast, _truth(kind, model))


def _model(kind: str, items: int, voters: int, spread: float, rng: np.random.Generator) -> _Model:
    theta, activity, care = spread * rng.standard_normal(items), np.ones(voters), np.ones(voters)
    tastes, popularity, group = np.zeros((voters, items)), np.ones(items), np.zeros(items, dtype=np.int64)
    effects = np.zeros((0, items))
    if kind == "tastes":
        tastes = TASTE * rng.standard_normal((voters, items))
        activity = rng.lognormal(size=voters)
    elif kind in _PROMPTS:
        effects = TASTE * rng.standard_normal((_PROMPTS[kind], items))
    elif kind == "groups":
        group = rng.permutation(items) % max(2, items // int(rng.integers(2, 6)))
    elif kind == "separation":
        theta *= 3.0
        theta[rng.integers(items)] = 6.0
    elif kind == "misspecified":
        care = rng.lognormal(sigma=0.5, size=voters)
        popularity[rng.permutation(items)[: items // 3]] = 10.0
    elif kind == "polarising":
        signs = np.where((np.arange(voters) + rng.integers(2)) % 2, _POLARISED, -_POLARISED)
        tastes[:, rng.integers(items)] = rng.permutation(signs)
    return _Model(theta, activity, care, tastes, popularity, group, effects)


def _pairs(model: _Model, votes: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw the items of each vote, both (n,): pairs of one group, in proportion to both items' popularity."""
    one, other = np.triu_indices(len(model.group), 1)
    allowed = model.group[one] == model.group[other]
    one, other = one[allowed], other[allowed]
    odds = model.popularity[one] * model.popularity[other]
    pair = rng.choice(len(one), votes, p=odds / odds.sum())
    turned = rng.random(votes) < 0.5
    return np.where(turned, other[pair], one[pair]), np.where(turned, one[pair], other[pair])


def _chances(kind: str, margin: Vector) -> tuple[Vector, Vector]:
    """Return the chance that the first item wins unless it is a tie, and the chance of a tie, both (n,)."""
    if kind == "misspecified":
        mixture = 0.5 * special.ndtr(margin) + 0.5 * (0.5 + np.arctan(margin) / np.pi)
        return 0.9 * mixture + 0.05, np.zeros(len(margin))
    tie = np.zeros(len(margin))
    if kind == "ties":  # P(tie) = ν √(p_i p_j) / (p_i + p_j + ν √(p_i p_j))
        tie = _DAVIDSON / (2.0 * np.cosh(0.5 * margin) + _DAVIDSON)
    return special.expit(margin), tie


def _truth(kind: str, model: _Model) -> Vector:
    """Return θ, or log-odds of the average chance to win where θ orders the items differently, shape (K,).

    If pairs are drawn in proportion to both items' popularity w and one link F holds for all pairs, Bradley–Terry
    scores s are in the order of θ whatever the link, because Σ_j w_j F(θ_i − θ_j) = Σ_j w_j σ(s_i − s_j), and both
    sides increase in i's score. A polarising item has a flatter link than the others.
    """
    if kind != "polarising":
        return model.theta
    gaps = model.theta[:, None] - model.theta
    polarised = np.abs(model.tastes[0]) > 0.0
    mixed = polarised[:, None] ^ polarised
    chance = 0.5 * (special.expit(gaps + _POLARISED * mixed) + special.expit(gaps - _POLARISED * mixed))
    return np.asarray(special.logit(chance.mean(axis=1)))
