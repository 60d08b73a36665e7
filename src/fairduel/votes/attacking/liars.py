"""Liars: what they answer, and which duels they choose if they may; and a synthetic arena with planted liars.

Whatever simulates liars uses these tactics: ``fairduel stress``, ``cost`` and ``demo``, the red team, the demo of the
live service, and the benchmarks. CONTRIBUTING.md says how to add one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special
from scipy.special import expit

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.ranking.bradley_terry import Scores, fit_scores, wins
from fairduel.votes.votes import Indices, Mask, Votes

Items = Any
"""The items of one duel or of many: an index, or indices of shape (n,)."""
Chances = Any
"""Probabilities for one duel or for many: a float, or floats of shape (n,)."""
_STEPS = 10  # of an omnipresent plan, which refits after each
_COMPETING = 0.25  # h: log-odds within which two items compete for a rank


@dataclass(frozen=True)
class Tactic:
    """What liars of one kind do.

    Args:
        how: How they vote; the words after "liars who vote". A tactic that is about an item says ``{item}``.
        rule: The chance that a lie names the first item of a duel, given the chance that an honest answer does. It is
            the honest chance where there is nothing to lie about.
        opponent: Whom their item meets if they choose their duels, given that item, the items of a recorded duel and a
            coin. None: they take duels as they come.
        plan: Chooses recorded duels and their answers together instead, if they choose their duels.
        share: Share of their votes that are lies.
        lowers: Whether their item shall fall.
        alike: Whether liars who choose their duels all cast the same votes.
        mixes: Whether they choose duels of the leader as often as duels of their item.
    """

    how: str
    rule: Callable[["Liar", Items, Items, Chances], Chances]
    opponent: Callable[["Liar", Items, Items, Items, Mask], Items] | None = None
    plan: Callable[["Liar", Votes, int, np.random.Generator], tuple[Indices, Mask]] | None = None
    share: float = 1.0
    lowers: bool = False
    alike: bool = False
    mixes: bool = False

    @property
    def needs_item(self) -> bool:
        """Whether it is about an item."""
        return "{item}" in self.how


@dataclass(frozen=True, eq=False)
class Liar:
    """Someone who lies.

    Args:
        tactic: What they do, by its name in ``TACTICS``.
        item: Index of the item that they lie about, if their tactic needs one.
        leader: Index of the item to beat, which only ``head-to-head`` and ``mixed`` need.
        lift: By how much a point for each item lifts theirs, shape (K,); which only ``omnipresent`` needs.
        to_first: Whether they only care for first place, or for every rank.

    >>> liar = Liar("promote", item=2)
    >>> liar.chance(np.array([2, 0, 0]), np.array([0, 2, 1]), honest=np.array([0.7, 0.7, 0.7])).tolist()
    [1.0, 0.0, 0.7]
    """

    tactic: str
    item: int | None = None
    leader: int | None = None
    lift: Vector | None = None
    to_first: bool = False

    def __post_init__(self) -> None:
        if self.tactic not in TACTICS:
            raise unknown_name("tactic", str(self.tactic), TACTICS)

    @property
    def chooses(self) -> bool:
        """Whether they choose whom their item meets."""
        return TACTICS[self.tactic].opponent is not None

    def lie(self, first: Items, second: Items, honest: Chances) -> Chances:
        """Return the chance that a lie names the first item, given the chance that an honest answer does."""
        return TACTICS[self.tactic].rule(self, first, second, honest)

    def chance(self, first: Items, second: Items, honest: Chances) -> Chances:
        """Return the chance that their answer names the first item; not all of their answers may be lies."""
        share = TACTICS[self.tactic].share
        return share * self.lie(first, second, honest) + (1.0 - share) * honest

    def duels(self, first: Items, second: Items, coin: Mask, at_first: Mask) -> tuple[Items, Items]:
        """Return the duels that they choose instead of others, all ``(n,)``.

        Args:
            first: First items of the others.
            second: Second items.
            coin: Decides which of the two their item meets.
            at_first: Whether it comes first.
        """
        tactic = TACTICS[self.tactic]
        if tactic.opponent is None:
            return first, second
        item: Items = np.full_like(first, self.item)
        if tactic.mixes:
            item = np.where(coin != at_first, self.leader, item)
        other = tactic.opponent(self, item, first, second, coin)
        return np.where(at_first, item, other), np.where(at_first, other, item)


def happens(chance: float, draw: Callable[[], float]) -> bool:
    """Return true with this chance; ``draw`` returns a number in [0, 1), and is only called if there is a choice.

    >>> happens(0.3, lambda: 0.2), happens(1.0, input)
    (True, True)
    """
    return chance > 0.0 and (chance == 1.0 or draw() < chance)


# ---------------------------------------------------------------------------- rules


def for_item(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:
    """Their item wins."""
    return np.where(first == liar.item, 1.0, np.where(second == liar.item, 0.0, honest))


def against_item(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:
    """Their item loses."""
    return np.where(first == liar.item, 0.0, np.where(second == liar.item, 1.0, honest))


def for_item_over_leader(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:
    """Their item beats the leader."""
    with_leader = (first == liar.leader) | (second == liar.leader)
    return np.where(with_leader, for_item(liar, first, second, honest), honest)


def for_item_against_leader(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:
    """Their item wins, and the leader loses."""
    against = np.where(first == liar.leader, 0.0, np.where(second == liar.leader, 1.0, honest))
    return for_item(liar, first, second, against)


def for_what_lifts_it(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:  # noqa: ARG001
    """Their item wins, and so does whatever lifts it more."""
    assert liar.lift is not None
    return for_item(liar, first, second, np.where(liar.lift[first] >= liar.lift[second], 1.0, 0.0))


def opposite(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:  # noqa: ARG001
    """Whatever they would honestly say loses."""
    return 1.0 - honest


def for_worse(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:  # noqa: ARG001
    """The worse item wins."""
    return np.where(honest > 0.5, 0.0, 1.0)


def by_coin(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:  # noqa: ARG001
    """Either wins."""
    return np.full_like(honest, 0.5)


def for_first(liar: Liar, first: Items, second: Items, honest: Chances) -> Chances:  # noqa: ARG001
    """The item shown first wins."""
    return np.ones_like(honest)


# ---------------------------------------------------------------------------- duels they choose


def anyone(liar: Liar, item: Items, first: Items, second: Items, coin: Mask) -> Items:  # noqa: ARG001
    """The item meets one of the two by a coin, but never itself: opponents as often as they occur."""
    opponent: Items = np.where(coin, first, second)
    return np.where(opponent == item, first + second - item, opponent)


def the_leader(liar: Liar, item: Items, first: Items, second: Items, coin: Mask) -> Items:  # noqa: ARG001
    """Their item meets the leader."""
    return np.full_like(first, liar.leader)


def lifting_duels(liar: Liar, votes: Votes, size: int, rng: np.random.Generator) -> tuple[Indices, Mask]:
    """Choose recorded duels (size,) without the item, and whether their first item wins.

    A vote for i over j moves θ by about (1 − p_ij) H⁻¹(e_i − e_j). The votes chosen have the largest influence on a
    smooth version of the item's rank, R = Σ_k σ((θ_item − θ_k)/h), in a few steps with a refit after each. To get
    ``to_first`` place, all items above the item matter as if they were level with it.
    """
    assert liar.item is not None
    free = rng.permutation(np.flatnonzero((votes.first != liar.item) & (votes.second != liar.item)))
    if len(free) == 0:
        raise BadInputError(
            "an omnipresent attack needs duels without its target, but there are none: use another attack."
        )
    first, second = votes.first[free], votes.second[free]
    won = wins(votes, ties="drop")
    taken, first_wins = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    for step in np.diff(np.linspace(0, size, _STEPS + 1).astype(int)):
        fitted = fit_scores(won)
        gain = lift_by_item(fitted, liar.item, to_first=liar.to_first)
        lift, margin = gain[first] - gain[second], fitted.scores[first] - fitted.scores[second]
        influence = np.maximum(lift * expit(-margin), -lift * expit(margin))
        best = np.argsort(-influence, kind="stable")[np.arange(step) % len(free)]
        up = replace(liar, lift=gain).lie(first[best], second[best], 0.5) == 1.0
        np.add.at(won, (np.where(up, first[best], second[best]), np.where(up, second[best], first[best])), 1.0)
        taken, first_wins = np.append(taken, free[best]), np.append(first_wins, up)
    return taken, first_wins


def lift_by_item(fitted: Scores, item: int, *, to_first: bool = False) -> Vector:
    """Return, for each item (K,), how much points for it lift this one; see :func:`lifting_duels`.

    A vote for i over j lifts it if i's value exceeds j's.
    """
    ahead = fitted.scores[item] - fitted.scores
    chance = expit((np.maximum(ahead, 0.0) if to_first else ahead) / _COMPETING)
    near = chance * (1.0 - chance) * (np.arange(len(chance)) != item)
    return np.asarray(near.sum() * fitted.covariance[item] - near @ fitted.covariance)


def best_other(scores: Vector, item: int) -> int:
    """Return the index of the best item but this one.

    >>> best_other(np.array([0.3, 0.9, 0.5]), item=1)
    2
    """
    return int(np.argmax(np.where(np.arange(len(scores)) == item, -np.inf, scores)))


TACTICS: Mapping[str, Tactic] = {
    "head-to-head": Tactic("for {item} over the leader", for_item_over_leader, the_leader),
    "promote": Tactic("for {item}", for_item, anyone),
    "demote": Tactic("against {item}", against_item, anyone, lowers=True),
    "mixed": Tactic("for {item} and against the leader", for_item_against_leader, anyone, mixes=True),
    "omnipresent": Tactic("for {item} and whatever lifts it", for_what_lifts_it, plan=lifting_duels),
    "clones": Tactic("for {item}, all in the same duels", for_item, anyone, alike=True),
    "half-honest": Tactic("for {item} half of the time", for_item, anyone, share=0.5),
    "inverters": Tactic("against their own opinion", opposite),
    "contrarians": Tactic("for the worse item in every duel", for_worse),
    "random-votes": Tactic("at random", by_coin),
    "one-side": Tactic("for the item shown first", for_first),
}
"""All tactics by name. ``fairduel cost`` tries those for which an item is needed in this order."""

if TYPE_CHECKING:
    TacticName = str
else:
    TacticName = Literal[tuple(TACTICS)]
"""The name of a tactic, for the checks of the API."""


ITEMS = (
    "Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow",
)  # fmt: skip
LIARS = {"promote": 7, "inverters": 2, "one-side": 1}
"""Number of liars with each tactic in the demo's arena."""
PLANTED = tuple(
    name for name, tactic in TACTICS.items() if tactic.plan is None and tactic.share == 1.0 and not tactic.alike
)
"""Tactics of which each vote follows from its duel alone."""


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
    """Generate votes by honest voters with individual tastes and by liars; return the votes and each liar's tactic.

    Twelve items have scores ``spread`` · N(0, 1). An honest voter prefers i to j with log-odds s·(θ_i − θ_j) +
    u_i − u_j, where the care s is log-normal around 1 and the tastes are u_i ~ N(0, ``taste``²); one honest vote in ten
    is a tie. Duels are drawn uniformly, but liars choose theirs if their tactic does, and lie about the ``target``.
    Each voter casts 2 to 2·``votes_each`` votes, liars at least ``votes_each``. Rows are in random order.

    >>> votes, liars = arena(seed=0)
    >>> len(votes.items), len(votes.voters), sorted(set(liars.values()))
    (12, 150, ['inverters', 'one-side', 'promote'])
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
    tactic = np.array([liar_of.get(each, "") for each in range(voters)])[voter]
    item = ITEMS.index(target)
    known = {name: Liar(name, item, leader=best_other(scores, item)) for name in sorted(set(lies))}
    first = duels.integers(len(ITEMS), size=len(voter))
    second = (first + duels.integers(1, len(ITEMS), len(voter))) % len(ITEMS)
    at_first = duels.random(len(voter)) < 0.5
    for name, liar in known.items():
        chosen = liar.duels(first, second, np.ones_like(at_first), at_first)
        first, second = np.where(tactic == name, chosen, (first, second))

    own = care[:, None] * scores + tastes
    chance = special.expit(own[voter, first] - own[voter, second])
    for name, liar in known.items():
        chance = np.where(tactic == name, liar.lie(first, second, chance), chance)
    luck = duels.random(len(voter))
    # mirrored for liars, so that inverters say the opposite of what they would have said honestly
    wins = np.where(tactic == "", luck, 1.0 - luck) < chance
    tie = (tactic == "") & (duels.random(len(voter)) < 0.1)
    order = duels.permutation(len(voter))
    result = np.where(tie, 0.5, wins.astype(np.float64))[order]
    names = tuple(f"voter {number}" for number in range(1, voters + 1))
    votes = Votes.from_arrays(ITEMS, first[order], second[order], result, voter=voter[order], voters=names)
    return votes, {names[each]: name for each, name in liar_of.items()}


def _lies(liars: Mapping[str, int], voters: int) -> list[str]:
    """List the tactic of each liar."""
    for name in liars:
        if name not in PLANTED:
            raise unknown_name("tactic", name, PLANTED)
    lies = [name for name, count in liars.items() for _ in range(integer(name, count))]
    if len(lies) > voters:
        raise BadInputError(f"{len(lies)} liars are too many for {voters} voters: use more voters or fewer liars.")
    return lies
