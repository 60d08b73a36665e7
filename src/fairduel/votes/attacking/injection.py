"""Votes of liars added to recorded votes: an attack of a given size, or a campaign of false accounts."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.attacking.liars import TACTICS, Items, Liar, TacticName, best_other
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.votes import Indices, Mask, Ties, Votes

FLIPS = {"random-flips": "flip recorded votes at random", "early-flips": "flip the first recorded votes"}
"""Attacks that flip recorded decisive votes, and how; the others add votes by new voters."""
ATTACKS = (*TACTICS, *FLIPS)
CAMPAIGN_TACTICS = tuple(name for name, tactic in TACTICS.items() if tactic.needs_item and tactic.share == 1.0)
"""Tactics of campaigns that push an item; an account says how many of its votes are lies."""
_PLANNED = 0.1  # of the recorded duels: the pool of a campaign that follows a plan


@dataclass(frozen=True, eq=False)
class Injected:
    """The votes after an attack, and which of them are false."""

    votes: Votes
    fake: Mask
    """Which votes were added or flipped, shape (n,)."""
    liars: tuple[str, ...]
    """Names of the voters added by the attack."""


# ---------------------------------------------------------------------------- an attack of a given size


def inject(
    votes: Votes, attack: str, target: str | None = None, *, size: int, voters: int = 1, seed: int = 0
) -> Injected:
    """Attack the votes with ``size`` false votes.

    Liars with one of the ``TACTICS`` vote on recorded duels, in which honest answers follow the Bradley–Terry model, or
    on duels that their tactic chooses, with opponents drawn as often as they occur, on a random side, in the context of
    the vote that the opponent was drawn from. ``FLIPS`` swap winner and loser instead.

    Added votes are cast by ``voters`` new voters in turn and come last; their row numbers continue from the last row.

    >>> votes = Votes.from_arrays("abc", [0, 1, 2], [1, 2, 0], [1, 1, 0], voter=[0, 0, 0], voters=["Ann"])
    >>> attacked = inject(votes, "promote", "c", size=4, voters=2)
    >>> len(attacked.votes), attacked.liars, int(attacked.fake.sum())
    (7, ('liar 1', 'liar 2'), 4)
    """
    needs_item = needs_target(attack)
    integer("the number of false votes", size)
    integer("the number of new voters", voters, least=1)
    votes, rng = votes.without_features(), np.random.default_rng(seed)
    if attack in FLIPS:
        return _flip(votes, early=attack == "early-flips", size=size, rng=rng)
    item = item_index(votes, target) if needs_item else None
    if needs_item and len(votes.items) < 2:
        raise BadInputError("an attack on an item needs at least two items.")
    if len(votes) == 0:
        raise BadInputError("this attack repeats recorded duels, but there are none.")
    scores, tactic = fit_scores(wins(votes)).scores, TACTICS[attack]
    liar = Liar(attack, item, leader=None if item is None else best_other(scores, item))
    if tactic.plan is not None:
        source, first_wins = tactic.plan(liar, votes, size, rng)
        return cast_votes(votes, source, votes.first[source], votes.second[source], first_wins, voters)
    ballots = _ballots(votes, scores, liar, -(-size // voters) if tactic.alike else size, rng)
    if tactic.alike:
        ballots = tuple(np.repeat(each, voters)[:size] for each in ballots)
    if tactic.share < 1.0:
        honest = _ballots(votes, scores, None, size, rng)
        is_honest = rng.random(size) < 1.0 - tactic.share
        ballots = tuple(np.where(is_honest, *both) for both in zip(honest, ballots, strict=True))
    source, first, second, first_wins = ballots
    return cast_votes(votes, source, first, second, first_wins, voters)


def needs_target(attack: str) -> bool:
    """Return whether an attack is about an item.

    >>> [attack for attack in ATTACKS if not needs_target(attack)]
    ['inverters', 'contrarians', 'random-votes', 'one-side', 'random-flips', 'early-flips']
    """
    if attack not in ATTACKS:
        raise unknown_name("attack", str(attack), ATTACKS)
    return attack in TACTICS and TACTICS[attack].needs_item


def item_index(votes: Votes, name: str | None) -> int:
    """Return the index of the item that an attack needs."""
    if name is None:
        raise BadInputError("this attack needs a target: name the item (target=…).")
    if name not in votes.items:
        raise unknown_name("item", name, votes.items)
    return votes.items.index(name)


def _ballots(votes: Votes, scores: Vector, liar: Liar | None, size: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw votes of a liar who only lies, or of an honest voter: their source, first, second and whether first wins."""
    source = rng.integers(len(votes), size=size)
    first: Items = votes.first[source]
    second: Items = votes.second[source]
    if liar is not None and liar.chooses:
        first, second = liar.duels(first, second, rng.random(size) < 0.5, rng.random(size) < 0.5)
    chance = expit(scores[first] - scores[second])
    if liar is not None:
        chance = liar.lie(first, second, chance)
    is_certain = ((chance == 0.0) | (chance == 1.0)).all()
    return source, first, second, chance == 1.0 if is_certain else rng.random(size) < chance


def _flip(votes: Votes, *, early: bool, size: int, rng: np.random.Generator) -> Injected:
    decisive = np.flatnonzero(~votes.is_tie)
    if size > len(decisive):
        raise BadInputError(f"cannot flip {size:,} votes: only {len(decisive):,} have a winner.")
    chosen = decisive[:size] if early else rng.choice(decisive, size, replace=False)
    fake = np.zeros(len(votes), dtype=np.bool_)
    fake[chosen] = True
    return Injected(replace(votes, result=np.where(fake, 1.0 - votes.result, votes.result)), fake, ())


# ---------------------------------------------------------------------------- a campaign of false accounts


@dataclass(frozen=True)
class Campaign:
    """Votes by new accounts that all follow one tactic.

    Args:
        tactic: What their lies are, one of ``TACTICS``.
        accounts: Number of accounts.
        votes_each: Votes of each account.
        false_each: How many of them are lies; with the others, the account looks honest.

    >>> Campaign("promote", accounts=3, votes_each=10, false_each=4).votes
    30
    """

    tactic: TacticName
    accounts: int
    votes_each: int
    false_each: int

    def __post_init__(self) -> None:
        if self.tactic not in TACTICS:
            raise unknown_name("tactic", str(self.tactic), TACTICS)
        integer("the number of accounts", self.accounts)
        if not 1 <= integer("false_each", self.false_each) <= integer("votes_each", self.votes_each):
            raise BadInputError("false_each must be between 1 and votes_each.")

    @property
    def votes(self) -> int:
        """Number of votes that the accounts cast, false or not."""
        return self.accounts * self.votes_each

    @property
    def false_votes(self) -> int:
        """Number of votes that are lies."""
        return self.accounts * self.false_each


@dataclass(frozen=True, eq=False)
class Campaigner:
    """Casts the votes of campaigns that push ``item`` past ``leader``.

    The lies are about the item, or about the leader if the tactic lowers its item. They are on duels that the tactic
    chooses. Other votes repeat recorded duels and follow the Bradley–Terry model of the recorded votes. All votes are
    in the context of a recorded vote and come last. The first accounts of a larger campaign are those of a smaller one
    with the same seed.

    Args:
        votes: The recorded votes.
        item: Index of the item to push.
        leader: Index of the item to push it past.
        ties: How ties count in the model.

    >>> votes = Votes.from_arrays("abc", [0, 1, 2], [1, 2, 0], [1, 1, 0], voter=[0, 0, 0], voters=["Ann"])
    >>> cast = Campaigner(votes, item=2, leader=0).cast(Campaign("head-to-head", 2, 3, 1), seed=0)
    >>> len(cast.votes), cast.liars, int(cast.fake.sum())
    (9, ('liar 1', 'liar 2'), 2)
    """

    votes: Votes
    item: int
    leader: int
    ties: Ties = "half"
    _plans: dict[tuple[str, int], tuple[Indices, Mask]] = field(default_factory=dict, init=False, repr=False)

    @property
    def tactics(self) -> tuple[TacticName, ...]:
        """The tactics that these votes allow: plans need duels without the item."""
        pushed = (self.votes.first == self.item) | (self.votes.second == self.item)
        return tuple(name for name in CAMPAIGN_TACTICS if TACTICS[name].plan is None or not pushed.all())

    @cached_property
    def _scores(self) -> Vector:
        return fit_scores(wins(self.votes, ties=self.ties)).scores

    def cast(self, campaign: Campaign, *, seed: int = 0) -> Injected:
        """Add the votes of a campaign to the recorded ones; ``fake`` are the lies."""
        votes, each, tactic = self.votes, campaign.votes_each, TACTICS[campaign.tactic]
        drawn = np.random.default_rng(seed).random((campaign.accounts, 5, each))  # a prefix for fewer accounts
        if tactic.alike:
            drawn[:] = drawn[:1]
        order = np.argsort(drawn[:, 0], axis=1).argsort(axis=1)
        false = (order < campaign.false_each).T.ravel()  # accounts take turns
        which, outcome, coin, side = (drawn[:, place].T.ravel() for place in range(1, 5))
        liar = Liar(campaign.tactic, self.leader if tactic.lowers else self.item, self.leader, to_first=True)
        source = (which * len(votes)).astype(np.int64)
        first: Items = votes.first[source]
        second: Items = votes.second[source]
        lies: Mask | None = None
        if tactic.plan is not None:
            plan, winner = self._plan(liar, seed)
            planned = (which * len(plan)).astype(np.int64)
            source, lies = np.where(false, plan[planned], source), winner[planned]
            first, second = votes.first[source], votes.second[source]
        else:
            chosen = liar.duels(first, second, coin < 0.5, side < 0.5)
            first, second = np.where(false, chosen[0], first), np.where(false, chosen[1], second)
        chance = expit(self._scores[first] - self._scores[second])
        if lies is None:
            lies = outcome < liar.lie(first, second, chance)
        added = cast_votes(votes, source, first, second, np.where(false, lies, outcome < chance), campaign.accounts)
        return Injected(added.votes, np.append(np.zeros(len(votes), dtype=np.bool_), false), added.liars)

    def _plan(self, liar: Liar, seed: int) -> tuple[Indices, Mask]:
        """Return the duels that a campaign with a plan draws from, and whether their first item wins."""
        plan = TACTICS[liar.tactic].plan
        assert plan is not None
        if (liar.tactic, seed) not in self._plans:
            size = max(1, int(_PLANNED * len(self.votes)))
            self._plans[liar.tactic, seed] = plan(liar, self.votes, size, np.random.default_rng(seed))
        return self._plans[liar.tactic, seed]


# ---------------------------------------------------------------------------- new votes


def cast_votes(votes: Votes, source: Any, first: Any, second: Any, first_wins: Mask, voters: int) -> Injected:
    """Append false votes of weight 1, in the contexts of the votes ``source``, with unknown times."""
    size = len(first_wins)
    liars = () if votes.voter is None else _new_names(votes.voters, voters)
    added: dict[str, Any] = {
        "first": first,
        "second": second,
        "result": first_wins.astype(np.float64),
        "weight": np.ones(size),
        "row": votes.row.max(initial=1) + 1 + np.arange(size),
        "voter": len(votes.voters) + np.arange(size) % voters,
        "context": () if votes.context is None else votes.context[source],
        "time": np.full(size, np.nan),
    }
    known = {name: values for name, values in vars(votes).items() if isinstance(values, np.ndarray)}
    joined: dict[str, Any] = {n: np.append(values, added[n]).astype(values.dtype) for n, values in known.items()}
    fake = np.arange(len(votes) + size) >= len(votes)
    return Injected(replace(votes, voters=votes.voters + liars, **joined), fake, liars)


def _new_names(taken: tuple[str, ...], count: int) -> tuple[str, ...]:
    prefix = "liar"
    while any(name.startswith(f"{prefix} ") for name in taken):
        prefix = f"new {prefix}"
    return tuple(f"{prefix} {number}" for number in range(1, count + 1))
