"""What if: the ranking with and without something, and what it would cost to change it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from fairduel.service.analysis.analyse import answered_gold, recorded_votes, without_infinities
from fairduel.service.analysis.inputs import MOST_ACCOUNTS, MOST_VOTES_EACH, Subject
from fairduel.service.events.log import Json
from fairduel.service.events.state import StudyState
from fairduel.votes.attacking.manipulation import CampaignLimits, cost_of_manipulation, searches
from fairduel.votes.auditing.audit import Audit, audit
from fairduel.votes.ranking.rank import Ranking
from fairduel.words import counted_noun, shortened

_MANY_VOTES = 2000  # with more, a campaign is tried with one seed
_SEEDS = 3
Progress = Callable[[float], None]


# ---------------------------------------------------------------------------- two rankings


def leader(ranking: Ranking) -> str:
    """Return the first item of the largest group of items that were compared."""
    return next(ranking.components())[0].item


def ranks(ranking: Ranking) -> dict[str, int | None]:
    """Return the rank of each item, the best first; None if it was compared with no other."""
    return {each.item: each.rank if len(group) > 1 else None for group in ranking.components() for each in group}


def compared_ranks(before: Ranking, after: Ranking, **others: Ranking) -> list[Json]:
    """Return one row per item with its ranks before and after, and by other rankings, in the order of the latter."""
    columns = {"before": before, "after": after} | others
    by_item = {name: ranks(ranking) for name, ranking in columns.items()}
    chance = {name: {each.item: each.best for each in columns[name].standings} for name in ("before", "after")}
    return [
        {"item": each.item, "group": each.group}
        | {name: found[each.item] for name, found in by_item.items()}
        | {f"best_{name}": found[each.item] for name, found in chance.items()}
        for each in after.standings
    ]


def first_place(before: Ranking, after: Ranking) -> str:
    """Say who has the highest score then.

    >>> from fairduel.votes import Votes, rank
    >>> one, other = (rank(Votes.from_arrays(["tea", "milk"], [0], [1], [won])) for won in (1, 0))
    >>> first_place(one, one), first_place(one, other)
    ('tea keeps the highest score', 'milk has the highest score instead of tea')
    """
    old, new = leader(before), leader(after)
    return f"{new} keeps the highest score" if old == new else f"{new} has the highest score instead of {old}"


def moves(rows: Sequence[Json]) -> str:
    """Say which ranks change.

    >>> moves([{"item": "tea", "before": 2, "after": 1}, {"item": "milk", "before": 1, "after": 2}])
    'tea 2 → 1 and milk 1 → 2'
    >>> moves([{"item": "tea", "before": 1, "after": 1}])
    'no rank changes'
    """
    changed = [
        f"{row['item']} {_rank(row['before'])} → {_rank(row['after'])}" for row in rows if row["before"] != row["after"]
    ]
    return shortened(changed) if changed else "no rank changes"


def _rank(rank: int | None) -> str:
    return "unranked" if rank is None else str(rank)


# ---------------------------------------------------------------------------- a voter set aside


def effect(connection: Connection, subject: Subject, voter: str, progress: Progress = lambda _: None) -> Json:
    """Compare the rankings with and without the votes of a voter, whether or not they are set aside now.

    Returns:
        JSON values: ``sentence``, ``details``, ``votes`` (the voter's), ``flagged``, and ``ranking``, the ranks with
        (before) and without (after) the voter.
    """
    without = recorded_votes(connection, replace(subject, set_aside=subject.set_aside | {voter}))
    whole = recorded_votes(connection, replace(subject, set_aside=subject.set_aside - {voter}))
    known = answered_gold(connection, subject)
    with_voter = audit(whole, top=1, known=known)
    progress(0.5)
    others = audit(without, top=1, known=known)
    label, count = subject.labels[voter], len(whole) - len(without)
    rows = compared_ranks(with_voter.shown, others.shown)
    flagged = label in flagged_names(with_voter)
    details = [f"This leaves out {counted_noun(count, 'vote')} of {len(whole):,}."]
    if flagged:
        details.append("The audit flags this voter, so their votes count for nothing in the ranking that is shown.")
    first, (old, new) = leader(others.shown), (_chance(found) for found in (with_voter, others))
    if leader(with_voter.shown) == first and old != new:
        details.append(f"The probability that {first} is the best goes from {old} to {new}.")
    sentence = f"Without {label}, {first_place(with_voter.shown, others.shown)}; {moves(rows)}."
    found = {"sentence": sentence, "details": details, "voter": voter, "label": label, "votes": count}
    return found | without_infinities({"flagged": flagged, "ranking": rows})  # type: ignore[no-any-return]


def flagged_names(found: Audit) -> set[str]:
    """Return the names of the voters whom an audit flags."""
    evidence = found.evidence
    if evidence is None:
        return set()
    return {name for name, flag in zip(evidence.voters, evidence.flagged, strict=True) if flag}


def _chance(found: Audit) -> str:
    return f"{next(found.shown.components())[0].best:.0%}"


# ---------------------------------------------------------------------------- the cost of manipulation


@dataclass(frozen=True)
class Allowed:
    """What a study's limits allow false accounts to do.

    Args:
        voters: How many of them there may be.
        votes_each: How many votes each may cast.
        reasons: Where these numbers come from, in sentences.
    """

    voters: int
    votes_each: int
    reasons: tuple[str, ...] = ()


def allowed(study: StudyState, voters: int | None = None, votes_each: int | None = None) -> Allowed:
    """Return what a study's limits allow, or other limits that are given instead."""
    about, pairs = study.about, _pairs(study)
    if voters is not None:
        who = f"Up to {counted_noun(voters, 'false account')} were tried, as asked."
    elif about.access == "invitation":
        voters = sum(
            voter.votes == 0 and not voter.set_aside and voter.model is None for voter in study.voters.values()
        )
        who = f"Only invited people vote; {voters:,} of them {'has' if voters == 1 else 'have'} not voted yet."
    else:
        voters, who = MOST_ACCOUNTS, f"Anyone may join: up to {MOST_ACCOUNTS} false accounts were tried."
    if votes_each is not None:
        each = f"Each could vote {counted_noun(votes_each, 'time')}, as asked."
    elif about.votes_per_voter is not None:
        votes_each, each = about.votes_per_voter, f"Each may vote {counted_noun(about.votes_per_voter, 'time')}."
    elif not about.repeat_pairs and pairs <= MOST_VOTES_EACH:
        votes_each, each = pairs, f"Each sees a pair once, so may vote {counted_noun(pairs, 'time')}."
    else:
        votes_each, each = MOST_VOTES_EACH, f"Votes per voter have no limit: up to {MOST_VOTES_EACH} each were tried."
    if max(voters / MOST_ACCOUNTS, votes_each / MOST_VOTES_EACH) > 1.0:
        each += f" At most {MOST_ACCOUNTS} accounts with {MOST_VOTES_EACH} votes each were tried."
    return Allowed(min(voters, MOST_ACCOUNTS), min(votes_each, MOST_VOTES_EACH), (who, each))


def _pairs(study: StudyState) -> int:
    """Return how many pairs a voter can compare."""
    sizes = [len(context.contents) for context in study.about.contexts] or [sum(study.enabled)]
    return max(1, sum(size * (size - 1) // 2 for size in sizes))


def cost(connection: Connection, subject: Subject, limits: Allowed, progress: Progress = lambda _: None) -> Json:
    """Search for the cheapest campaign that makes the runner-up first, within limits.

    Returns:
        JSON values: ``sentence``, ``details``, ``limits``, ``searched`` (what was tried, in sentences), and those of
        :meth:`fairduel.votes.attacking.manipulation.Manipulation.record`.
    """
    shown = {"voters": limits.voters, "votes_each": limits.votes_each}
    if limits.voters == 0:
        nobody = "No false account can vote: everyone who is invited has voted."
        lies = "The certificates say how many of those who voted would have to have lied."
        return {"sentence": nobody, "details": [lies], "limits": shown, "searched": list(limits.reasons), "rows": []}
    votes = recorded_votes(connection, subject)
    within, done = CampaignLimits(limits.voters, limits.votes_each, 1), 0

    def step(_: int) -> None:
        nonlocal done
        done += 1
        progress(done / kinds)

    kinds = searches(votes, within)
    found = cost_of_manipulation(votes, limits=within, runs=1 if len(votes) > _MANY_VOTES else _SEEDS, progress=step)
    sentence, *details = found.summary()
    tried = found.settings
    searched = [
        *limits.reasons,
        f"Tactics tried: {', '.join(tried['tactics'])}, with all or some of an account's votes false "
        f"({', '.join(tried['false_share'])}) and {counted_noun(len(tried['seeds']), 'seed')}.",
        "These accounts choose their duels; here the agent chooses them, as the red team simulates.",
    ]
    record = found.record() | {"sentence": sentence, "details": details, "limits": shown, "searched": searched}
    del record["summary"]
    return without_infinities(record)  # type: ignore[no-any-return]
