"""A synthetic arena with planted liars, to try everything without a vote file."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairduel.checks import integer
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.votes import Indices, Votes

ITEMS = (
    "Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow",
)  # fmt: skip
LIES = ("promotes", "demotes", "inverts", "one side")
LIARS = {"promotes": 7, "inverts": 2, "one side": 1}
"""Number of liars of each kind in the demo's arena."""


def arena(
    *,
    voters: int = 150,
    votes_each: int = 30,
    liars: Mapping[str, int] | None = None,
    target: str = "Maple",
    spread: float = 1.2,
    taste: float = 0.5,
    seed: int = 0,
) -> tuple[Votes, dict[str, str]]:
    """Generate votes by honest voters with individual tastes and by liars; return the votes and each liar's kind.

    Twelve items have scores ``spread`` · N(0, 1). An honest voter prefers i to j with log-odds s·(θ_i − θ_j) +
    u_i − u_j, where the care s is log-normal around 1 and the tastes are u_i ~ N(0, ``taste``²); one honest vote in ten
    is a tie. Duels are drawn uniformly, but voters who promote or demote the ``target`` only vote on duels with it.
    Each voter casts 2 to 2·``votes_each`` votes, liars at least ``votes_each``. Rows are in random order.

    >>> votes, liars = arena(seed=0)
    >>> len(votes.items), len(votes.voters), sorted(set(liars.values()))
    (12, 150, ['inverts', 'one side', 'promotes'])
    """
    if target not in ITEMS:
        raise unknown_name("item", target, ITEMS)
    lies = _lies(LIARS if liars is None else liars, integer("voters", voters, least=1))
    world, people, duels = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    scores = spread * world.standard_normal(len(ITEMS))
    care, tastes = np.exp(0.3 * people.standard_normal(voters)), taste * people.standard_normal((voters, len(ITEMS)))
    liar_of = dict(zip(people.permutation(voters)[: len(lies)].tolist(), lies, strict=True))

    cast = duels.integers(2, 2 * integer("votes_each", votes_each, least=1) + 1, voters)
    cast[list(liar_of)] = np.maximum(cast[list(liar_of)], votes_each)
    voter = np.repeat(np.arange(voters), cast)
    lie = np.array([liar_of.get(each, "") for each in range(voters)])[voter]
    first, second = _duels(duels, lie, ITEMS.index(target))
    own = care[:, None] * scores + tastes
    wins = duels.random(len(voter)) < special.expit(own[voter, first] - own[voter, second])
    for_target = first == ITEMS.index(target)
    lying = {"promotes": for_target, "demotes": ~for_target, "inverts": ~wins, "one side": np.ones_like(wins)}
    wins = np.select([lie == kind for kind in LIES], [lying[kind] for kind in LIES], wins)
    tie = (lie == "") & (duels.random(len(voter)) < 0.1)
    order = duels.permutation(len(voter))
    result = np.where(tie, 0.5, wins.astype(np.float64))[order]
    names = tuple(f"voter {number}" for number in range(1, voters + 1))
    votes = Votes.from_arrays(ITEMS, first[order], second[order], result, voter=voter[order], voters=names)
    return votes, {names[each]: kind for each, kind in liar_of.items()}


def _lies(liars: Mapping[str, int], voters: int) -> list[str]:
    """List the kind of each liar."""
    for kind in liars:
        if kind not in LIES:
            raise unknown_name("kind of liar", kind, LIES)
    lies = [kind for kind, count in liars.items() for _ in range(integer(kind, count))]
    if len(lies) > voters:
        raise BadInputError(f"{len(lies)} liars are too many for {voters} voters: use more voters or fewer liars.")
    return lies


def _duels(rng: np.random.Generator, lie: NDArray[np.str_], target: int) -> tuple[Indices, Indices]:
    """Draw the first and second item of each vote, both (n,); voters who push the target always see it."""
    count, size = len(ITEMS), len(lie)
    first = rng.integers(count, size=size)
    second = (first + rng.integers(1, count, size)) % count
    pushes = np.isin(lie, ("promotes", "demotes"))
    at_first = rng.random(size) < 0.5
    opponent = np.where(first == target, second, first)
    return (
        np.where(pushes, np.where(at_first, target, opponent), first),
        np.where(pushes, np.where(at_first, opponent, target), second),
    )
