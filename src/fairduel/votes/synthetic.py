"""A made-up arena with liars, so that everything can be seen without any file."""

from collections.abc import Mapping

import numpy as np
from scipy import special

from fairduel.checks import integer
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.votes import Votes

ITEMS = (
    "Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow",
)  # fmt: skip
LIES = ("promotes", "demotes", "inverts", "one side")
LIARS = {"promotes": 7, "inverts": 2, "one side": 1}
"""How many liars of each kind the arena of the demo has."""


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
    """Make the votes of honest people with tastes of their own and of liars; return them and what each liar does.

    Twelve items have scores ``spread`` · N(0, 1). An honest voter prefers i to j with log-odds s·(θ_i − θ_j) +
    u_i − u_j, his care s log-normal about 1, his tastes u_i ~ N(0, ``taste``²); one honest vote in ten is a tie.
    Duels are drawn evenly, except that who promotes or demotes the ``target`` votes only where it is shown. Voters
    cast from 2 to 2·``votes_each`` votes. Rows are in random order.

    >>> votes, liars = arena(seed=0)
    >>> len(votes.items), len(votes.voters), sorted(set(liars.values()))
    (12, 150, ['inverts', 'one side', 'promotes'])
    """
    kinds = LIARS if liars is None else dict(liars)
    for kind in kinds:
        if kind not in LIES:
            raise unknown_name("kind of liar", kind, LIES)
    if target not in ITEMS:
        raise unknown_name("item", target, ITEMS)
    lies = [kind for kind, count in kinds.items() for _ in range(integer(kind, count))]
    if len(lies) > integer("voters", voters, least=1):
        raise BadInputError(f"{len(lies)} of {voters} voters cannot lie: make more voters or fewer liars.")
    world, people, duels = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    count, aim = len(ITEMS), ITEMS.index(target)
    scores = spread * world.standard_normal(count)
    care, tastes = np.exp(0.3 * people.standard_normal(voters)), taste * people.standard_normal((voters, count))
    names = tuple(f"voter {number}" for number in range(1, voters + 1))
    liar_of = dict(zip(people.permutation(voters)[: len(lies)].tolist(), lies, strict=True))

    cast = duels.integers(2, 2 * integer("votes_each", votes_each, least=1) + 1, voters)
    cast[list(liar_of)] = np.maximum(cast[list(liar_of)], votes_each)
    voter = np.repeat(np.arange(voters), cast)
    first = duels.integers(count, size=len(voter))
    second = (first + duels.integers(1, count, len(voter))) % count
    lie = np.array([LIES.index(liar_of[v]) if v in liar_of else -1 for v in range(voters)])[voter]
    pushes = (lie == LIES.index("promotes")) | (lie == LIES.index("demotes"))
    at_first = duels.random(len(voter)) < 0.5
    opponent = np.where(first == aim, second, first)
    first = np.where(pushes, np.where(at_first, aim, opponent), first)
    second = np.where(pushes, np.where(at_first, opponent, aim), second)

    own = care[:, None] * scores + tastes
    wins = duels.random(len(voter)) < special.expit(own[voter, first] - own[voter, second])
    wins = np.where(lie == LIES.index("inverts"), ~wins, wins)
    wins = np.where(lie == LIES.index("one side"), True, wins)
    wins = np.where(lie == LIES.index("promotes"), first == aim, wins)
    wins = np.where(lie == LIES.index("demotes"), first != aim, wins)
    tie = (lie < 0) & (duels.random(len(voter)) < 0.1)
    order = duels.permutation(len(voter))
    votes = Votes.from_arrays(
        ITEMS,
        first[order],
        second[order],
        np.where(tie, 0.5, wins.astype(np.float64))[order],
        voter=voter[order],
        voters=names,
    )
    return votes, {names[v]: kind for v, kind in liar_of.items()}
