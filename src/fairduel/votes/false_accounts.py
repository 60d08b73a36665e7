"""Campaigns by false accounts: what each account votes, the same however many others there are."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.bradley_terry import fit_scores, wins
from fairduel.votes.stress_tests import Injected, add_votes, lifting_duels, opponents
from fairduel.votes.votes import Indices, Mask, Ties, Votes

Tactic = Literal["head-to-head", "promote", "demote", "omnipresent", "clones"]
TACTICS: tuple[Tactic, ...] = get_args(Tactic)
_PLANNED = 0.1  # of the recorded duels: the pool of an omnipresent campaign


@dataclass(frozen=True)
class Campaign:
    """Votes by new accounts that all follow one tactic.

    Args:
        tactic: What the false votes say; see :class:`Campaigner`.
        accounts: Number of accounts.
        votes_each: Votes of each account.
        false_each: How many of them follow the tactic; with the others, the account looks honest.

    >>> Campaign("promote", accounts=3, votes_each=10, false_each=4).votes
    30
    """

    tactic: Tactic
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
        """Number of votes that follow the tactic."""
        return self.accounts * self.false_each


@dataclass(frozen=True, eq=False)
class Campaigner:
    """Casts the votes of campaigns that push ``item`` past ``leader``.

    The false votes of an account are

    - head-to-head: wins of the item over the leader;
    - promote: wins of the item over opponents drawn as often as they occur;
    - demote: losses of the leader to such opponents;
    - omnipresent: on recorded duels *without* the item, chosen with their winners to raise it above all others;
    - clones: as promote, but every account casts the same votes.

    Its other votes repeat recorded duels and follow the Bradley–Terry model of the recorded votes. All votes are in the
    context of a recorded vote and come last. The first accounts of a larger campaign are those of a smaller one with
    the same seed.

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
    _plans: dict[int, tuple[Indices, Mask]] = field(default_factory=dict, init=False, repr=False)

    @property
    def tactics(self) -> tuple[Tactic, ...]:
        """The tactics that these votes allow: all, or all but omnipresent if every duel includes the item."""
        pushed = (self.votes.first == self.item) | (self.votes.second == self.item)
        return tuple(tactic for tactic in TACTICS if tactic != "omnipresent" or not pushed.all())

    @cached_property
    def _scores(self) -> Vector:
        return fit_scores(wins(self.votes, ties=self.ties)).scores

    def cast(self, campaign: Campaign, *, seed: int = 0) -> Injected:
        """Add the votes of a campaign to the recorded ones; ``fake`` are those that follow its tactic."""
        votes, each = self.votes, campaign.votes_each
        drawn = np.random.default_rng(seed).random((campaign.accounts, 5, each))  # a prefix for fewer accounts
        if campaign.tactic == "clones":
            drawn[:] = drawn[:1]
        order = np.argsort(drawn[:, 0], axis=1).argsort(axis=1)
        false = (order < campaign.false_each).T.ravel()  # accounts take turns
        which, outcome, coin, side = (drawn[:, place].T.ravel() for place in range(1, 5))
        source = (which * len(votes)).astype(np.int64)
        first, second = votes.first[source], votes.second[source]
        first_wins = outcome < expit(self._scores[first] - self._scores[second])
        if campaign.tactic == "omnipresent":
            plan, winner = self._plan(seed)
            planned = (which * len(plan)).astype(np.int64)
            source, first_wins = np.where(false, plan[planned], source), np.where(false, winner[planned], first_wins)
            first, second = votes.first[source], votes.second[source]
        else:
            aim = self.leader if campaign.tactic == "demote" else self.item
            against = opponents(votes, aim, source, coin < 0.5)
            if campaign.tactic == "head-to-head":
                against = np.full(len(source), self.leader)
            at_first = side < 0.5
            first = np.where(false, np.where(at_first, aim, against), first)
            second = np.where(false, np.where(at_first, against, aim), second)
            first_wins = np.where(false, at_first == (campaign.tactic != "demote"), first_wins)
        added = add_votes(votes, source, first, second, first_wins, campaign.accounts)
        return Injected(added.votes, np.append(np.zeros(len(votes), dtype=np.bool_), false), added.liars)

    def _plan(self, seed: int) -> tuple[Indices, Mask]:
        """Return the duels that an omnipresent campaign draws from, and whether their first item wins."""
        if seed not in self._plans:
            size = max(1, int(_PLANNED * len(self.votes)))
            self._plans[seed] = lifting_duels(self.votes, self.item, size, np.random.default_rng(seed), to_first=True)
        return self._plans[seed]
