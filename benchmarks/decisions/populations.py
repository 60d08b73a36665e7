"""Files of honest votes whose truth is known: pure functions of sizes and a seed."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy import special

from benchmarks.decisions.crowds import TASTE, Codes, Crowd, People
from fairduel import RCDB, Outcome, Sceptic
from fairduel.duel import Matrix, Vector
from fairduel.votes import Votes
from fairduel.votes.ranking.bradley_terry import fit_scores
from fairduel.votes.votes import pair_sums

CLOSE = 0.05
"""Standard deviation of scores at which all items are about equally good; too narrow ranges then fail most often."""
ADVANTAGE = 0.3
"""Advantage in log-odds of the item shown first, where there is one."""
_FAVOUR = 0.7  # how much higher the average vote of a fan population rates the item than the average voter
_OTHERS = 0.5  # standard deviation of the scores of items that newcomers meet
_POPULAR = 10.0  # how much more often popular items are drawn

UNMET = (
    *("one voter", "two voters", "one casts the first 100"),  # several voters, none of whom casts most votes
    *("households", "voters with tastes, unknown"),  # voters are known, and independent of each other
    "fans vote more",  # how much somebody votes does not depend on what they like
    "winner stays",  # pairs do not depend on what the same voter answered
    *("first of a list wins more", "first of a pair wins more"),  # sides are random
)
"""How the names of populations and polls begin that do not meet a condition of rankings."""

Draw = Callable[..., "Population"]


@dataclass(frozen=True, eq=False)
class Population:
    """Votes and the truth behind them.

    Args:
        votes: The votes, in the order in which they were cast.
        truth: Log-odds of the average chance to beat another item, over all voters and contexts that could have been
            drawn, shape ``(K,)``. In each component its order is the true one.
        scores: Bradley–Terry scores that the same duels would give if each were answered by infinitely many voters
            who could have been drawn, shape ``(K,)``.
    """

    votes: Votes
    truth: Vector
    scores: Vector


class Duels(NamedTuple):
    """Who is asked what, all ``(n,)``."""

    voter: Codes
    first: Codes
    second: Codes


def population(name: str, seed: int) -> Population:
    """Draw the population called ``name`` (see :data:`CASES`); the same seed gives the same votes.

    >>> drawn = population("clean, 5 items, 50 votes, 3 voters", seed=0)
    >>> len(drawn.votes), drawn.truth.shape
    (50, (5,))
    """
    case = CASES[name]
    return case.draw(np.random.default_rng([crc32(case.kind.encode()), seed]), **case.settings)


# ---------------------------------------------------------------------- duels


def random_pairs(weights: Matrix, votes: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Draw pairs in proportion to ``weights`` (K, K) above its diagonal, shown in random order; both ``(votes,)``."""
    one, other = np.triu_indices(len(weights), 1)
    odds = weights[one, other]
    pair = rng.choice(len(one), votes, p=odds / odds.sum())
    return turned(one[pair], other[pair], rng)


def turned(one: Codes, other: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Show each pair in random order."""
    turn = rng.random(len(one)) < 0.5
    return np.where(turn, other, one), np.where(turn, one, other)


def alike(items: int) -> Matrix:
    """Return equal weights of all pairs, shape ``(items, items)``."""
    return np.ones((items, items))


def cast(people: People, duels: Duels, rng: np.random.Generator) -> Population:
    """Let people answer duels."""
    return recorded(people, duels, *people.answers(*duels, rng))


def recorded(people: People, duels: Duels, result: Vector, context: Codes | None = None) -> Population:
    """Return the votes with the truth of the people's crowd."""
    items, (voters, _) = len(people.crowd.theta), people.own.shape
    votes = Votes.from_arrays(
        [f"item {number}" for number in range(1, items + 1)],
        duels.first,
        duels.second,
        result,
        voter=duels.voter,
        voters=[f"voter {number}" for number in range(1, voters + 1)],
        context=context,
        contexts=[f"prompt {number}" for number in range(1, len(people.effects) + 1)],
    )
    average = people.crowd.average()
    shown = pair_sums(duels.first, duels.second, items)
    truth = (average.sum(axis=1) - 0.5) / (items - 1)
    return Population(votes, special.logit(truth), fit_scores((shown + shown.T) * average).scores)


# ---------------------------------------------------------------------- populations without a story


def plain(
    rng: np.random.Generator,
    *,
    items: int,
    votes: int,
    voters: int,
    spread: float = 1.0,
    prompts: int = 0,
    households: bool = False,
    active: float = 0.0,
    popular: bool = False,
    anonymous: bool = False,
    **crowd: Any,
) -> Population:
    """Draw voters who are shown random pairs.

    Args:
        rng: The random stream.
        items: K.
        votes: Number of votes.
        voters: Number of voters who may be asked.
        spread: Standard deviation of the scores.
        prompts: Number of prompts, each with own effects.
        households: Whether groups of 2 to 5 voters share their tastes.
        active: Standard deviation of the log of the voters' activity.
        popular: Whether a third of the items is drawn ten times as often.
        anonymous: Whether the votes do not say who voted.
        crowd: Settings of :class:`Crowd`.
    """
    theta = spread * rng.standard_normal(items)
    prompt = TASTE if prompts else 0.0
    people = People.drawn(Crowd(theta=theta, prompt=prompt, **crowd), voters, rng, prompts=prompts)
    if households:
        people = people.in_households(rng)
    people = people.with_activity(rng.lognormal(sigma=active, size=voters))
    popularity = np.ones(items)
    if popular:
        popularity[rng.permutation(items)[: items // 3]] = _POPULAR
    pairs = random_pairs(np.outer(popularity, popularity), votes, rng)
    found = cast(people, Duels(people.who(votes, rng), *pairs), rng)
    return replace(found, votes=without_voters(found.votes)) if anonymous else found


def groups(rng: np.random.Generator, *, items: int, votes: int, voters: int, spread: float = 1.0) -> Population:
    """Compare only items of the same group, of 2 to 5 items."""
    people = People.drawn(Crowd(theta=spread * rng.standard_normal(items)), voters, rng)
    group = rng.permutation(items) % max(2, items // int(rng.integers(2, 6)))
    pairs = random_pairs(group[:, None] == group, votes, rng)
    return cast(people, Duels(people.who(votes, rng), *pairs), rng)


def separation(rng: np.random.Generator, *, items: int, votes: int, voters: int) -> Population:
    """Spread the scores so far that some items win or lose nearly all votes."""
    theta = 3.0 * rng.standard_normal(items)
    theta[rng.integers(items)] = 6.0
    people = People.drawn(Crowd(theta=theta), voters, rng)
    return cast(people, Duels(people.who(votes, rng), *random_pairs(alike(items), votes, rng)), rng)


def divisive(
    rng: np.random.Generator, *, items: int, votes: int, voters: int, divided: int, spread: float = 1.0
) -> Population:
    """Let half of the voters love an item, and the other half hate it, for some items."""
    theta = spread * rng.standard_normal(items)
    chosen = tuple(rng.permutation(items)[:divided].tolist())
    people = People.drawn(Crowd(theta=theta, divided=chosen), voters, rng)
    return cast(people, Duels(people.who(votes, rng), *random_pairs(alike(items), votes, rng)), rng)


def gap(rng: np.random.Generator, *, gap: float, votes: int, voters: int, taste: float = TASTE) -> Population:
    """Compare two items whose scores differ by ``gap``."""
    theta = rng.permutation([0.0, gap])
    people = People.drawn(Crowd(theta=theta, taste=taste), voters, rng)
    return cast(people, Duels(people.who(votes, rng), *random_pairs(alike(2), votes, rng)), rng)


# ---------------------------------------------------------------------- items that come later


def newcomers(
    rng: np.random.Generator,
    *,
    items: int,
    votes: int,
    voters: int,
    games: int,
    place: str,
    new: int = 1,
    ahead: float = 0.0,
    anonymous: bool = False,
    taste: float = 0.0,
) -> Population:
    """Let the last ``new`` items meet the others only in the last ``games`` votes each.

    Args:
        rng: The random stream.
        items: K, newcomers included.
        votes: Number of votes, with those on newcomers.
        voters: Number of voters.
        games: Votes on each newcomer.
        place: Whether newcomers are 0.5 to 1.5 ``"better"`` than the best of the others, ``"like"`` the others, or as
            much ``"worse"`` than the worst.
        new: Number of newcomers.
        ahead: How far the best of the others is ahead of the second; 0 leaves it where it is.
        anonymous: Whether the votes do not say who voted.
        taste: Standard deviation of the voters' tastes.
    """
    theta, old = _OTHERS * rng.standard_normal(items), items - new
    by = rng.uniform(0.5, 1.5, new)
    if ahead:
        best, second = np.argsort(-theta[:old])[:2]
        theta[best] = theta[second] + ahead
    if place == "better":
        theta[old:] = theta[:old].max() + by
    elif place == "worse":
        theta[old:] = theta[:old].min() - by
    people = People.drawn(Crowd(theta=theta, taste=taste), voters, rng)
    late = new * games
    first, second = random_pairs(alike(old), votes - late, rng)
    newcomer, other = rng.permutation(np.repeat(np.arange(old, items), games)), rng.integers(old, size=late)
    first_late, second_late = turned(newcomer, other, rng)
    pairs = np.concatenate([first, first_late]), np.concatenate([second, second_late])
    found = cast(people, Duels(people.who(votes, rng), *pairs), rng)
    return replace(found, votes=without_voters(found.votes)) if anonymous else found


def without_voters(votes: Votes) -> Votes:
    """Return votes that do not say who voted."""
    return replace(votes, voter=None, voters=())


def growing(
    rng: np.random.Generator, *, items: int, votes: int, voters: int, taste: float = 0.0, rise: float = 3.0
) -> Population:
    """Release items one by one, later ones better by ``rise`` from first to last; only items present are compared.

    Five items are there from the start. The others come at equal intervals, the last when 90% of the votes are in, so
    that early items have many more votes.
    """
    theta = rise * np.linspace(0.0, 1.0, items) + 0.5 * rng.standard_normal(items)
    people = People.drawn(Crowd(theta=theta, taste=taste), voters, rng)
    release = np.concatenate([np.zeros(5), np.linspace(0.0, 0.9, items - 4)[1:]])
    present = np.searchsorted(release, np.arange(votes) / votes, side="right")
    first = (rng.random(votes) * present).astype(np.int64)
    second = (first + 1 + (rng.random(votes) * (present - 1)).astype(np.int64)) % present
    return cast(people, Duels(people.who(votes, rng), first, second), rng)


# ---------------------------------------------------------------------- voters who are not a random sample


def few_people(
    rng: np.random.Generator, *, items: int, votes: int, voters: int, first_alone: int = 0, spread: float = 1.0
) -> Population:
    """Let voters with tastes cast equally many votes each, after one of them has cast the ``first_alone``."""
    theta = spread * rng.standard_normal(items)
    people = People.drawn(Crowd(theta=theta, taste=TASTE), voters, rng)
    rest = votes - first_alone
    voter = np.concatenate([np.zeros(first_alone, dtype=np.int64), rng.permutation(np.arange(rest) % voters)])
    return cast(people, Duels(voter, *random_pairs(alike(items), votes, rng)), rng)


def fans(rng: np.random.Generator, *, items: int, votes: int, voters: int) -> Population:
    """Let those vote more who like one item, which the average vote then rates 0.7 higher than the average voter."""
    people = People.drawn(Crowd(theta=rng.standard_normal(items), taste=TASTE), voters, rng)
    people = people.with_activity(zeal(people, rng))
    return cast(people, Duels(people.who(votes, rng), *random_pairs(alike(items), votes, rng)), rng)


def zeal(people: People, rng: np.random.Generator) -> Vector:
    """Return an activity, shape ``(V,)``, that tilts the tastes for one item from N(0, τ²) to N(0.7, τ²)."""
    liking = (people.own - people.crowd.theta)[:, rng.integers(len(people.crowd.theta))]
    activity = np.exp(_FAVOUR / TASTE**2 * liking)
    return np.asarray(activity / activity.mean())


# ---------------------------------------------------------------------- pairs that are not random


def one_order(
    rng: np.random.Generator, *, items: int, votes: int, voters: int, listed: bool, taste: float = 0.0
) -> Population:
    """Show each pair in one order, with an advantage of the first: that of a list, or drawn once per pair."""
    crowd = Crowd(theta=rng.standard_normal(items), taste=taste, advantage=ADVANTAGE)
    people = People.drawn(crowd, voters, rng)
    pair = rng.integers(items * (items - 1) // 2, size=votes)
    one, other = np.triu_indices(items, 1)
    if not listed:
        one, other = turned(one, other, rng)
    return cast(people, Duels(people.who(votes, rng), one[pair], other[pair]), rng)


def winner_stays(
    rng: np.random.Generator, *, items: int, votes: int, voters: int, one_chain: bool, taste: float = TASTE
) -> Population:
    """Let the winner of a vote meet a random other item in the next one, by anybody or (chains) by the same voter."""
    people = People.drawn(Crowd(theta=rng.standard_normal(items), taste=taste), voters, rng)
    return chained(people, people.who(votes, rng), rng, one_chain=one_chain)


def chained(people: People, voter: Codes, rng: np.random.Generator, *, one_chain: bool = False) -> Population:
    """Let the winner of a vote meet a random other item in the next one, of the same ``voter`` (n,) or of anybody."""
    votes, items = len(voter), len(people.crowd.theta)
    turn, challenger, draw = rng.random(votes) < 0.5, rng.random(votes), rng.random(votes)
    pairs, result = np.empty((2, votes), dtype=np.int64), np.empty(votes)
    own, winner = people.own, dict[int, int]()
    for vote, person in enumerate(voter):
        chain = 0 if one_chain else int(person)
        one = winner[chain] if chain in winner else int(rng.integers(items))
        other = (one + 1 + int(challenger[vote] * (items - 1))) % items
        wins = draw[vote] < special.expit(own[person, one] - own[person, other])
        winner[chain] = one if wins else other
        pairs[:, vote] = (other, one) if turn[vote] else (one, other)
        result[vote] = float(wins != turn[vote])
    return recorded(people, Duels(voter, *pairs), result)


def adaptive(
    rng: np.random.Generator,
    *,
    agent: str,
    items: int,
    votes: int,
    voters: int,
    spread: float = 1.0,
    taste: float = TASTE,
) -> Population:
    """Let an agent choose the pairs, for voters with tastes who come one after the other."""
    people = People.drawn(Crowd(theta=spread * rng.standard_normal(items), taste=taste), voters, rng)
    asker = asking(agent, items, votes, int(rng.integers(2**31)))
    voter = np.arange(votes) * voters // votes
    return asked(people, voter, asker, rng)


def asking(agent: str, items: int, votes: int, seed: int) -> Sceptic | RCDB:
    """Return a new agent that chooses pairs of ``items``, never an item against itself."""
    horizon = votes if agent == "rcdb" else None  # only RCDB must be told
    return {"sceptic": Sceptic, "rcdb": RCDB}[agent](items=items, horizon=horizon, seed=seed, self_duels=False)


def asked(people: People, voter: Codes, asker: Sceptic | RCDB, rng: np.random.Generator) -> Population:
    """Let ``asker`` choose what each ``voter`` (n,) is asked; each pair is shown in random order."""
    turn, draw = rng.random(len(voter)) < 0.5, rng.random(len(voter))
    pairs, result = np.empty((2, len(voter)), dtype=np.int64), np.empty(len(voter))
    for vote, person in enumerate(voter):
        duel = asker.ask()
        one, other = (duel.second, duel.first) if turn[vote] else (duel.first, duel.second)
        wins = draw[vote] < special.expit(people.own[person, one] - people.own[person, other])
        asker.tell(duel, Outcome.FIRST if wins != turn[vote] else Outcome.SECOND)
        pairs[:, vote], result[vote] = (one, other), float(wins)
    return recorded(people, Duels(voter, *pairs), result)


# ---------------------------------------------------------------------- the cases


@dataclass(frozen=True)
class Case:
    """A population with its sizes."""

    kind: str
    """Name of the kind of population, which cases of several sizes share."""
    draw: Draw
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kind and the sizes."""
        names = ("items", "votes", "voters")
        sizes = [f"{self.settings[name]:,} {name}" for name in names if name in self.settings]
        return ", ".join([self.kind, *sizes])


_SIZES = tuple(itertools.product((5, 20, 60), (50, 300, 3000), (3, 30, 300)))
_USUAL = ((12, 600, 40), (12, 6000, 300), (20, 3000, 150))
_ARENA = (40, 32_000, 1600)


def _cases(kind: str, draw: Draw, sizes: Sequence[tuple[int, int, int]], **settings: Any) -> list[Case]:
    return [
        Case(kind, draw, {"items": items, "votes": votes, "voters": voters, **settings})
        for items, votes, voters in sizes
    ]


def _all_cases() -> dict[str, Case]:
    found: list[Case] = []
    for kind, draw, settings in (
        ("clean", plain, {}),
        ("tastes, some vote far more", plain, {"taste": TASTE, "active": 1.0}),
        ("13 prompts", plain, {"prompts": 13}),
        ("5 prompts", plain, {"prompts": 5}),
        ("separate groups", groups, {}),
        ("another link, careless voters", plain, {"mixture": True, "care": 0.5, "popular": True}),
        ("one divisive item", divisive, {"divided": 1}),
        ("ties", plain, {"tie": 0.5}),
    ):
        found += _cases(kind, draw, _SIZES, **settings)
        found += _cases(f"{kind}, close scores", draw, _SIZES, **settings, spread=CLOSE)
    found += _cases("separation", separation, _SIZES)
    for place, games in itertools.product(("better", "like", "worse"), (10, 30)):
        kind = {"like": "newcomer like the others"}.get(place, f"{place} newcomer")
        found += _cases(f"{kind}, {games} votes", newcomers, [_ARENA], games=games, place=place)
        if games == 30:
            found += _cases(f"{kind}, tastes", newcomers, [_ARENA], games=games, place=place, taste=TASTE)
        else:
            found += _cases(f"{kind}, 6 votes", newcomers, [(12, 600, 30)], games=6, place=place)
        if place == "better":
            found += _cases(
                f"two better newcomers, {games} votes", newcomers, [_ARENA], games=games, place=place, new=2
            )
    for games in (10, 30):
        kind = f"newcomer better than a clear leader, {games} votes"
        settings = {"games": games, "place": "better", "ahead": 1.5}
        found += _cases(kind, newcomers, [_ARENA], **settings)
        found += _cases(f"{kind}, voters unknown", newcomers, [_ARENA], **settings, anonymous=True)
    growths = ((20, 1000, 50), (30, 2000, 100), (30, 6000, 300), _ARENA)
    found += _cases("growing arena", growing, growths)
    found += _cases("growing arena, tastes", growing, growths, taste=TASTE)
    found += _cases("one voter", few_people, [(5, 100, 1), (12, 300, 1), (12, 1000, 1)])
    found += _cases("two voters", few_people, [(5, 100, 2), (12, 300, 2), (12, 1000, 2)])
    found += _cases("one casts the first 100", few_people, [(12, 300, 20), (12, 1000, 90)], first_alone=100)
    for agent, name in (("sceptic", "Sceptic"), ("rcdb", "RCDB")):
        sizes = [(6, 300, 15), (12, 1000, 50), (20, 3000, 150)]
        found += _cases(f"{name} asks", adaptive, sizes, agent=agent)
        found += _cases(f"{name} asks, close scores", adaptive, sizes, agent=agent, spread=CLOSE)
    found += _cases("two divisive items", divisive, [(10, 1000, 60), (12, 1000, 20), *_USUAL], divided=2)
    close = ((10, 1000, 20), (12, 3000, 40), (20, 3000, 150))
    found += _cases("two divisive items, close scores", divisive, close, divided=2, spread=CLOSE)
    for one_chain, name in ((False, "per voter"), (True, "one chain")):
        found += _cases(f"winner stays, {name}", winner_stays, _USUAL, one_chain=one_chain)
    found += _cases("winner stays, voters alike", winner_stays, _USUAL, one_chain=False, taste=0.0)
    found += _cases("first of a list wins more", one_order, _USUAL, listed=True)
    found += _cases("first of a pair wins more", one_order, _USUAL, listed=False)
    found += _cases("households", plain, [(12, 3000, 40), *_USUAL], households=True, taste=TASTE)
    found += _cases("fans vote more", fans, _USUAL)
    found += _cases("uneven popularity", plain, [(20, 1000, 50), (40, 5000, 250)], popular=True, taste=TASTE)
    found += _cases("voters alike, unknown", plain, _USUAL, anonymous=True)
    found += _cases("voters alike, unknown, close scores", plain, _USUAL, anonymous=True, spread=CLOSE)
    found += _cases("voters with tastes, unknown", plain, _USUAL, anonymous=True, taste=TASTE)
    found += _cases("sparse", plain, [(60, 200, 20), (60, 200, 200)])
    for difference in (0.0, 0.3, 1.0):
        name = "two equal items" if difference == 0.0 else f"two items, gap {difference:g}"
        found += [
            Case(name, gap, {"votes": votes, "voters": max(3, votes // 20), "gap": difference})
            for votes in (30, 100, 1000)
        ]
    found += _cases("equal items", plain, [(5, 300, 30), *_USUAL], spread=0.0)
    found += _cases("equal items, tastes", plain, [(5, 300, 30), *_USUAL], spread=0.0, taste=TASTE)
    return {case.name: case for case in found}


CASES = _all_cases()
"""All populations, by name."""


def meets_conditions(kind: str) -> bool:
    """Return whether a kind of population or poll meets all conditions.

    >>> meets_conditions("sparse"), meets_conditions("winner stays, per voter")
    (True, False)
    """
    return not kind.startswith(UNMET)


def has_one_best(kind: str) -> bool:
    """Return whether one item of a population is the best, so that P(best) can be calibrated.

    No continuous prior allows for items that are exactly equal: with ever more votes, P(best) of the first of two then
    averages 0.75, and each is called best half of the time.

    >>> has_one_best("sparse"), has_one_best("equal items, tastes")
    (True, False)
    """
    return "equal items" not in kind


def named(*kinds: str) -> list[str]:
    """Return the names of all cases of these kinds; all names without arguments.

    >>> named("sparse")
    ['sparse, 60 items, 200 votes, 20 voters', 'sparse, 60 items, 200 votes, 200 voters']
    """
    return [name for name, case in CASES.items() if not kinds or case.kind in kinds]
