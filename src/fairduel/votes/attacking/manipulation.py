"""The cost of manipulation: the cheapest campaign found that puts an item first and that the audit does not report.

A campaign is a number of new accounts that each cast as many votes, some of them false (see ``injection``). It
**succeeds** if the item is then first by all votes (by the audit's weights, if the audit reports somebody anyway), and
the audit reports nothing that it does not report without the campaign: no voter, no pair of voters, and no item on
which a crowd differs.

For each number of votes per account and each tactic, with all, ½, ¼ or ⅛ of an account's votes false, the search finds
the fewest accounts that win, by bisection: with a given seed, accounts stay the same as others join them, so more of
them win more easily. It then asks the audit. The more accounts, the more there is to report, so that the fewest that
win in enough seeds are also the least conspicuous. A campaign counts if it succeeds with at least half of the seeds.

Whatever is found is an *upper* bound: a cleverer campaign may be cheaper.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from fairduel.checks import integer
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.attacking.injection import CAMPAIGN_TACTICS, Campaign, Campaigner
from fairduel.votes.attacking.liars import TacticName
from fairduel.votes.auditing.camps import find_camps, trusted_weights
from fairduel.votes.auditing.collusion import OCCASIONAL
from fairduel.votes.auditing.voters import Evidence, audit_voters
from fairduel.votes.given import takes_votes
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.rank import rank
from fairduel.votes.votes import Ties, Votes
from fairduel.words import counted_noun

_PARTS = (1, 2, 4, 8)  # of an account's votes, one in this many is false
_UPPER_BOUND = (
    "A campaign is noticed if the audit reports a voter, a pair of voters or a crowd, and only then. "
    "These are the cheapest campaigns found; a cleverer one may be cheaper."
)
_HOPELESS = 2  # times the accounts allowed: a tactic that seems to need more is not tried


@dataclass(frozen=True)
class CampaignLimits:
    """What the operator allows.

    Args:
        voters: Number of new voters.
        votes_per_day: Votes of each of them per day.
        days: Length of the campaign.

    >>> CampaignLimits(voters=20, votes_per_day=5, days=3).votes_each
    15
    """

    voters: int = 100
    votes_per_day: int = 10
    days: int = 7

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            integer(name, value, least=1)

    @property
    def votes_each(self) -> int:
        """Most votes that one account can cast."""
        return self.votes_per_day * self.days


@dataclass(frozen=True)
class Found:
    """A campaign that succeeds.

    Args:
        campaign: The campaign.
        succeeded: With how many of the seeds it does.
        doubted: With how many of these another item is first if votes count by how reliable their voters are.
    """

    campaign: Campaign
    succeeded: int
    doubted: int = 0

    @property
    def noticed(self) -> str:
        """Say what the audit makes of the campaign: it reports nobody, but may trust some voters less."""
        one = self.campaign.accounts == 1
        flags = f"The audit would not report {'this account' if one else 'any of these accounts'}"
        if not self.doubted:
            return f"{flags}."
        where = "" if self.doubted == self.succeeded else f", with {self.doubted} of these {self.succeeded} seeds"
        return f"{flags}; if votes count by how reliable their voters are{where}, another item is first."


@dataclass(frozen=True, eq=False, repr=False)
class Manipulation(Result):
    """What it takes to put an item first.

    Args:
        item: The item that campaigns push.
        leader: Who is first without them.
        found: Cheapest campaigns, the fewest votes per account first. Each has fewer accounts than those before it.
        plain_votes: Votes that put the item first under plain Bradley–Terry, if nobody checks; None if none do.
        limits: What campaigns may use.
        voters_known: Whether the file says who voted; if not, nothing can be reported, and only votes count.
        settings: Everything else behind these numbers.
    """

    item: str
    leader: str
    found: Sequence[Found]
    plain_votes: int | None
    limits: CampaignLimits
    voters_known: bool
    settings: dict[str, Any]

    def within(self, *, voters: int | None = None, votes_each: int | None = None) -> list[Found]:
        """Return the campaigns within tighter limits, the fewest votes per account first."""
        return [
            each
            for each in self.found
            if each.campaign.accounts <= (voters or math.inf) and each.campaign.votes_each <= (votes_each or math.inf)
        ]

    def fewest_accounts(self, **limits: int) -> Found | None:
        """Return the campaign with the fewest accounts, within tighter limits if given (see :meth:`within`)."""
        return min(self.within(**limits), key=lambda each: each.campaign.accounts, default=None)

    def fewest_votes(self, **limits: int) -> Found | None:
        """Return the campaign with the fewest votes, within tighter limits if given (see :meth:`within`)."""
        return min(self.within(**limits), key=lambda each: (each.campaign.votes, each.campaign.accounts), default=None)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per number of votes per account that was tried: the fewest accounts found up to it."""
        rows = []
        for each in self.settings["votes_each_tried"]:
            found = self.fewest_accounts(votes_each=each)
            campaign = found.campaign if found else None
            rows.append(
                {
                    "most_votes_each": each,
                    "accounts": campaign and campaign.accounts,
                    "votes": campaign and campaign.votes,
                    "false_votes": campaign and campaign.false_votes,
                    "votes_each": campaign and campaign.votes_each,
                    "false_each": campaign and campaign.false_each,
                    "tactic": campaign and campaign.tactic,
                    "seeds_succeeded": found and found.succeeded,
                    "seeds_doubted": found and found.doubted,
                    "accounts_without_audit": None if self.plain_votes is None else math.ceil(self.plain_votes / each),
                }
            )
        whole = dict.fromkeys((name for name in rows[0] if name != "tactic"), pl.Int64)
        return pl.DataFrame(rows, schema_overrides={**whole, "tactic": pl.String})

    def summary(self) -> list[str]:
        """Summarise the findings in a few sentences, conclusion first."""
        few, cheap, limits = self.fewest_accounts(), self.fewest_votes(), self.limits
        if few is None or cheap is None:
            voters = f"{counted_noun(limits.voters, 'new voter')} with {counted_noun(limits.votes_each, 'vote')} each"
            none = f"No campaign was found by which at most {voters} put {self.item} first without being reported."
            return [none, *self._plain()]
        first = f"first in place of {self.leader}"
        if not self.voters_known:
            votes = f"{counted_noun(cheap.campaign.votes, 'false vote')} ({cheap.campaign.tactic})"
            unknown = "The file does not say who voted, so the audit can report nobody"
            return [f"{unknown}: {votes} put {self.item} {first}.", *self._plain(), _UPPER_BOUND]
        alone = few.campaign.accounts == 1
        sentences = [f"{self._described(few)} {'puts' if alone else 'put'} {self.item} {first}. {few.noticed}"]
        if cheap is not few:
            sentences.append(f"Fewest votes: {self._described(cheap)}.")
        return [*sentences, *self._plain(), *self._tighter(), _UPPER_BOUND]

    def _described(self, found: Found) -> str:
        campaign, each = found.campaign, " each" if found.campaign.accounts > 1 else ""
        size = f"{counted_noun(campaign.accounts, 'false account')} with {counted_noun(campaign.votes_each, 'vote')}"
        false = f"{campaign.votes:,} in all, {campaign.false_votes:,} of them false"
        return f"{size}{each} ({false}; {campaign.tactic}; {found.succeeded} of {len(self.settings['seeds'])} seeds)"

    def _plain(self) -> list[str]:
        """Say what it takes if nobody checks."""
        votes, cheap, few = self.plain_votes, self.fewest_votes(), self.fewest_accounts()
        if votes is None:
            return ["Without the audit, under plain Bradley–Terry, none was found either."]
        if votes == 0:
            return [f"Under plain Bradley–Terry, {self.item} is first already."]
        accounts = math.ceil(votes / self.limits.votes_each)
        size = counted_noun(votes, "vote") + (f" or {counted_noun(accounts, 'account')}" if self.voters_known else "")
        sentence = f"Without the audit, under plain Bradley–Terry, {size} would do"
        if cheap is None or few is None or not self.voters_known:
            return [f"{sentence}."]
        dearer = (
            _dearer(cheap.campaign.votes / votes, "votes"),
            _dearer(few.campaign.accounts / accounts, "accounts"),
        )
        return [f"{sentence}. The audit makes it {' and '.join(dearer)}."]

    def _tighter(self) -> list[str]:
        """Say what half of the votes per voter would change."""
        half = self.limits.votes_each // 2
        if not half:
            return []
        tighter = self.fewest_accounts(votes_each=half)
        if tighter is None:
            return [f"With at most {counted_noun(half, 'vote')} per voter, half as many, no campaign was found."]
        accounts = counted_noun(tighter.campaign.accounts, "false account")
        return [f"With at most {counted_noun(half, 'vote')} per voter, half as many, it takes {accounts}."]

    def brief(self) -> str:
        """Say what it takes."""
        return self.summary()[0]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        return {
            "summary": self.summary(),
            "item": self.item,
            "leader": self.leader,
            "plain_votes": self.plain_votes,
            "campaigns": [
                {**vars(each.campaign), "seeds_succeeded": each.succeeded, "seeds_doubted": each.doubted}
                for each in self.found
            ],
            "rows": self.to_frame().to_dicts(),
        }


@takes_votes
def cost_of_manipulation(
    votes: Votes,
    item: str | None = None,
    *,
    limits: CampaignLimits | None = None,
    runs: int = 3,
    seed: int = 0,
    ties: Ties = "half",
    level: float = 0.05,
    duels_assigned: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Manipulation:
    """Search for the cheapest campaign that puts an item first and that the audit does not report.

    Args:
        votes: The recorded votes.
        item: The item to put first. Default: the runner-up.
        limits: What campaigns may use. Default: ``CampaignLimits()``.
        runs: Number of seeds; a campaign must succeed with at least half of them.
        seed: The first seed.
        ties: How ties count.
        level: Level of the audit.
        duels_assigned: See :func:`fairduel.votes.audit_voters`.
        progress: Called with 1 after each of :func:`searches`.

    Returns:
        The cheapest campaigns found, for every number of votes per account.

    Raises:
        BadInputError: The item is unknown or already first, or there are fewer than two items to compare.

    >>> from fairduel.votes.attacking.liars import arena
    >>> votes, _ = arena(liars={}, voters=40, seed=3)
    >>> cost = cost_of_manipulation(votes, limits=CampaignLimits(20, 4, 1), runs=1)
    >>> cost.leader, cost.item, cost.plain_votes
    ('Fir', 'Willow', 11)
    """
    limits = limits or CampaignLimits()
    search = _Search(votes, limits, range(seed, seed + integer("runs", runs, least=1)), ties, level, duels_assigned)
    first, *others = search.order(votes)
    if not others:
        raise BadInputError("there is no item to push: the largest group of compared items has only one.")
    if item is not None and item not in votes.items:
        raise unknown_name("item", item, votes.items)
    if item == first:
        raise BadInputError(f"{item} is first already: name an item that is not (item=…).")
    pushed = item or others[0]
    campaigner = Campaigner(votes, votes.items.index(pushed), votes.items.index(first), ties)
    leads = _plain_leader(votes, ties) == pushed
    by_tactic = {} if leads else search.plain_votes(campaigner)
    found = search.cheapest(campaigner, by_tactic, progress or (lambda _: None))
    settings = {
        "most_new_voters": limits.voters,
        "votes_per_day": limits.votes_per_day,
        "days": limits.days,
        "votes_each_tried": search.sizes,
        "tactics": list(campaigner.tactics),
        "false_share": [f"1/{part}" for part in _PARTS],
        "seeds": list(search.seeds),
        "seeds_needed": search.needed,
        "ties": ties,
        "level": level,
        "duels_assigned": duels_assigned,
    }
    plain_votes = 0 if leads else min(by_tactic.values(), default=None)
    return Manipulation(pushed, first, found, plain_votes, limits, votes.voter is not None, settings)


def searches(votes: Votes, limits: CampaignLimits) -> int:
    """Return how many kinds of campaign :func:`cost_of_manipulation` searches."""
    return len(list(_kinds(_sizes(votes, limits))))


def _sizes(votes: Votes, limits: CampaignLimits) -> list[int]:
    """Return the numbers of votes per account to try: powers of two, but just above what makes an occasional voter.

    The same numbers are tried within tighter limits. Without voters, a campaign has only a number of votes.
    """
    if votes.voter is None:
        return [1]
    powers = (2**power for power in range(limits.votes_each.bit_length()))
    return [each for each in (size + (size == max(OCCASIONAL)) for size in powers) if each <= limits.votes_each]


def _kinds(sizes: Sequence[int]) -> Iterator[tuple[TacticName, int, int]]:
    """Yield each tactic with the votes of an account, and how many of them are false."""
    for each in sizes:
        for part in _PARTS:
            if each >= part:
                yield from ((tactic, each, each // part) for tactic in CAMPAIGN_TACTICS)


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the cheapest campaign on one file."""

    votes: Votes
    limits: CampaignLimits
    seeds: range
    ties: Ties
    level: float
    duels_assigned: bool

    @property
    def sizes(self) -> list[int]:
        return _sizes(self.votes, self.limits)

    @property
    def needed(self) -> int:
        """With how many seeds a campaign must succeed."""
        return math.ceil(len(self.seeds) / 2)

    @cached_property
    def _known(self) -> Evidence | None:
        """The audit without any campaign."""
        if self.votes.voter is None:
            return None
        return replace(self._audit(self.votes), camps=find_camps(self.votes, ties=self.ties))

    def _audit(self, votes: Votes) -> Evidence:
        return audit_voters(votes, level=self.level, duels_assigned=self.duels_assigned)

    def order(self, votes: Votes, *, by_reliability: bool = False) -> list[str]:
        """Return the items of the largest group, best first, by all votes.

        If the audit finds somebody anyway, or if asked for, votes count as they do after it.
        """
        weights = None
        if self._known is not None and (by_reliability or self._known.finds_anyone):
            trusted = trusted_weights(votes, self._audit(votes), self.ties)
            weights = trusted if votes.counts(self.ties)[trusted > 0.0].any() else None
        ranking = rank(votes, ties=self.ties, reliability=weights, draws=100)  # draws are for intervals, not used here
        return [standing.item for standing in next(ranking.components())]

    def _is_unnoticed(self, votes: Votes) -> bool:
        """Whether the audit reports nothing new."""
        return self._known is None or reports(self._audit(votes)) <= reports(self._known)

    def plain_votes(self, campaigner: Campaigner) -> dict[TacticName, int]:
        """Return how many votes of each tactic, if any do, put the item first under plain Bradley–Terry."""
        most, found = self.limits.voters * self.limits.votes_each, dict[TacticName, int]()
        for tactic in campaigner.tactics:
            like = Campaign(tactic, accounts=1, votes_each=1, false_each=1)
            fewest = self._fewest(campaigner, like, most, lambda votes: _plain_leader(votes, self.ties))
            found[tactic] = sorted(fewest)[self.needed - 1]
        return {tactic: votes for tactic, votes in found.items() if votes <= most}

    def cheapest(
        self, campaigner: Campaigner, false_votes: Mapping[TacticName, int], done: Callable[[int], None]
    ) -> list[Found]:
        """Return the cheapest campaigns, one per number of votes per account that needs fewer accounts.

        ``false_votes`` is a first guess of how many false votes each tactic needs.
        """
        found, expected = dict[int, Found](), dict(false_votes)
        most = self.limits.voters * (self.limits.votes_each if self.votes.voter is None else 1)
        for tactic, each, false in _kinds(self.sizes):
            guess = math.ceil(expected.get(tactic, 1) / false)
            if tactic in campaigner.tactics and guess <= _HOPELESS * most:
                enough, result = self._search(campaigner, Campaign(tactic, guess, each, false), most)
                expected[tactic] = enough * false
                if result is not None:
                    found[each], most = result, result.campaign.accounts - 1
            done(1)
        return list(found.values())

    def _search(self, campaigner: Campaigner, like: Campaign, most: int) -> tuple[int, Found | None]:
        """Return how many accounts win with enough seeds (or ``most`` + 1), and the cheapest campaign that succeeds."""
        fewest = self._fewest(campaigner, like, most, lambda votes: self.order(votes)[0])
        enough = sorted(fewest)[self.needed - 1 :]
        for accounts in sorted({each for each in enough if each <= most}):
            campaign = replace(like, accounts=accounts)
            unnoticed = [self._is_unnoticed(campaigner.cast(campaign, seed=seed).votes) for seed in self.seeds]
            succeeded = [
                seed
                for seed, quiet, own in zip(self.seeds, unnoticed, fewest, strict=True)
                if quiet and own <= accounts
            ]
            if len(succeeded) >= self.needed:
                item = self.votes.items[campaigner.item]
                weighted = (
                    self.order(campaigner.cast(campaign, seed=seed).votes, by_reliability=True) for seed in succeeded
                )
                return enough[0], Found(campaign, len(succeeded), sum(order[0] != item for order in weighted))
            if sum(unnoticed) < self.needed:
                break  # more accounts are noticed more easily
        return enough[0], None

    def _fewest(self, campaigner: Campaigner, like: Campaign, most: int, leader: Callable[[Votes], str]) -> list[int]:
        """Return with how many accounts the item leads, for each seed; ``most`` + 1 if more are needed."""
        fewest, item = list[int](), self.votes.items[campaigner.item]
        for seed in self.seeds:

            def wins(accounts: int, seed: int = seed) -> bool:
                return leader(campaigner.cast(replace(like, accounts=accounts), seed=seed).votes) == item

            fewest.append(_fewest(wins, guess=fewest[-1] if fewest else like.accounts, most=most))
            if sum(each > most for each in fewest) > len(self.seeds) - self.needed:
                return [most + 1] * len(self.seeds)  # too few seeds are left
        return fewest


def _plain_leader(votes: Votes, ties: Ties) -> str:
    """Return who is first in the largest group under plain Bradley–Terry."""
    scores = fit_scores(wins(votes, ties=ties)).scores
    return votes.items[int(np.argmax(np.where(votes.components(ties) == 0, scores, -np.inf)))]


def reports(evidence: Evidence) -> frozenset[tuple[str, ...]]:
    """Return what an audit reports: voters, pairs of voters, and items on which a crowd differs, with the direction."""
    names, pairs = evidence.voters, evidence.pairs
    voters = {("voter", names[place]) for place in np.flatnonzero(evidence.flagged)}
    alike = {("pair", *sorted((names[pairs.one[p]], names[pairs.other[p]]))) for p in np.flatnonzero(pairs.flagged)}
    differs = () if evidence.crowd is None else evidence.crowd.differs
    return frozenset(voters | alike | {("crowd", str(push.item), "up" if push.up else "down") for push in differs})


def _dearer(ratio: float, what: str) -> str:
    """Say how much more expensive something is.

    >>> _dearer(1.6, "votes"), _dearer(1.0, "accounts"), _dearer(0.3, "votes")
    ('1.6 times as expensive in votes', 'no more expensive in accounts', 'cheaper in votes (its ranking is closer)')
    """
    rounded = f"{ratio:.2g}"
    if float(rounded) == 1.0:
        return f"no more expensive in {what}"
    return f"{rounded} times as expensive in {what}" if ratio > 1.0 else f"cheaper in {what} (its ranking is closer)"


def _fewest(wins: Callable[[int], bool], *, guess: int, most: int) -> int:
    """Return the smallest number from 1 to ``most`` that wins, if larger ones win too; ``most`` + 1 if none does.

    >>> _fewest(lambda number: number >= 13, guess=2, most=100), _fewest(lambda number: False, guess=2, most=9)
    (13, 10)
    """
    fails, works, step = 0, most + 1, max(1, guess // 8)
    while works - fails > 1:
        number = min(max(guess, fails + 1), works - 1)
        if wins(number):
            works = number
        else:
            fails = number
        beyond = works - step if works <= most else fails + step
        guess = (fails + works) // 2 if fails and works <= most else beyond
        step *= 2
    return works
