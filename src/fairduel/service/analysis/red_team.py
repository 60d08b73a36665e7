"""Red team: fork a study, let simulated liars vote in the fork, and compare both rankings.

The fork has the state of the study and a copy of its learner, in memory. Simulated voters join it, get duels and answer
them by the same commands as people do, so the agent chooses what liars are asked, and the study's limits bind them.
Nothing is written to the log.

Honest voters answer by the ranking: i beats j with probability σ(θ_i − θ_j). Liars know it too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sqlalchemy import Connection

from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.service.analysis.analyse import CountedVote, answered_gold, recorded_votes, without_infinities
from fairduel.service.analysis.inputs import Subject
from fairduel.service.analysis.what_if import Progress, compared_ranks, first_place, flagged_names, leader, moves
from fairduel.service.commands import voting
from fairduel.service.events.database import Location, load_learner, load_state
from fairduel.service.events.kinds import Answered, DuelIssued, VoterJoined
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.log import Event, Json, next_event
from fairduel.service.events.state import OpenDuel, State, StudyState
from fairduel.service.keys import Holder
from fairduel.votes.attacking.liars import TACTICS, Liar, TacticName, best_other, happens, lift_by_item
from fairduel.votes.auditing.audit import Audit, audit
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.votes import Votes
from fairduel.words import counted_noun, shortened

_LEAST_GAP, _MOST_GAP = 0.01, 600.0  # seconds between two votes of the fork
_RECENT = 200  # votes, from which its pace is estimated
_REPORT_EVERY = 50  # votes
_TURNS, _ANSWERS, _SIDES = range(3)  # random streams


@dataclass(frozen=True)
class RedTeamPlan:
    """What simulated voters do.

    Args:
        attack: The tactic of the liars, on duels that the agent chooses.
        item: The item that they lie about, by its name.
        liars: How many new voters lie.
        votes_each: How many votes each new voter casts.
        honest: How many new voters are honest, and vote at the same time.
        seed: Seed of all that is random.

    >>> RedTeamPlan("promote", "tea", liars=2, votes_each=10).votes
    20
    """

    attack: TacticName = "promote"
    item: str | None = None
    liars: int = 10
    votes_each: int = 20
    honest: int = 0
    seed: int = 0

    @property
    def votes(self) -> int:
        """How many votes are simulated at most."""
        return (self.liars + self.honest) * self.votes_each


class Fork(Ledger):
    """A ledger in memory: commands run on it, ``gap`` seconds lie between two votes, and nothing is written."""

    def __init__(self, state: State, seed: int, gap: float) -> None:
        self._state, self._gap, self._clock = state, gap, state.at
        self._sides = np.random.default_rng([seed, _SIDES])
        self.secret = b""
        self.gold: set[str] = set()
        """Duels whose answers are known, so that they are not ranked."""

    @classmethod
    def of(cls, connection: Connection, where: Location, study: str, seed: int, gap: float) -> Self:
        """Fork a study as it is at the end of the log; in the fork it is open."""
        state = load_state(connection)
        found = state.studies[study]
        found.learner = load_learner(where, connection, found)
        found.about = found.about.model_copy(update={"state": "open"})
        return cls(state, seed, gap)

    def now(self) -> float:
        """The time of the next vote."""
        return self._clock

    def append(self, study: str, body: Any) -> Event[Any]:
        """Append an event to the state alone."""
        if isinstance(body, DuelIssued):
            body = replace(body, first_is_left=bool(self._sides.random() < 0.5))  # not by its random id: same seed
            if body.gold:
                self.gold.add(body.duel)
        if isinstance(body, Answered):
            self._clock += self._gap
        event = next_event(self.state.hash, self.state.position + 1, study, self.now(), body)
        self.state.apply(event)
        return event


def red_team(
    connection: Connection, where: Location, study: str, plan: RedTeamPlan, progress: Progress = lambda _: None
) -> Json:
    """Let simulated liars vote in a fork of a study.

    Returns:
        JSON values: ``sentence``, ``details``, ``plan``, ``position`` (of the log), ``votes`` (recorded, liars',
        honest), ``caught`` (liars, of how many, honest), ``flagged`` (whom the audit flags only because of the fork)
        and ``ranking``: each item's rank without the liars (before), with them (after), and with them if all votes
        counted alike (unchecked).

    Raises:
        BadInputError: The item is unknown, or there are too few votes to rank.
    """
    state = load_state(connection)
    about = Subject.of(state.studies[study])
    votes = recorded_votes(connection, about)
    if len(votes) < len(about.items):
        raise BadInputError(f"a red team needs at least {counted_noun(len(about.items), 'vote')} to start from.")
    known = answered_gold(connection, about)
    before = audit(votes, top=1, known=known)
    scores, liar, gap = before.shown.scores, _liar(votes, before, plan), _gap(votes)
    progress(0.1)

    def forked(liars: int, begin: float, end: float) -> tuple[Audit, list[CountedVote]]:
        cast = simulate_campaign(
            Fork.of(connection, where, study, plan.seed, gap),
            study,
            replace(plan, liars=liars),
            liar,
            scores,
            lambda done: progress(begin + (end - begin) * done),
        )
        everyone = replace(about, labels=about.labels | {vote.voter: vote.voter for vote in cast})
        return audit(recorded_votes(connection, everyone, cast), top=1, known=known), cast

    if plan.honest:
        before, _ = forked(0, 0.1, 0.4)
    after, cast = forked(plan.liars, 0.4, 0.9)
    return _report(plan, before, after, cast, liar) | {"position": state.position}


def simulate_campaign(
    fork: Fork, study: str, plan: RedTeamPlan, liar: Liar, scores: Vector, progress: Progress = lambda _: None
) -> list[CountedVote]:
    """Let new voters vote in a fork, in random order; return their votes. Their ids are their names.

    Honest voters answer by ``scores``, θ of the items, shape (K,).
    """
    found = fork.state.studies[study]
    turns, answers = (np.random.default_rng([plan.seed, stream]) for stream in (_TURNS, _ANSWERS))
    names = [f"liar {n}" for n in range(1, plan.liars + 1)] + [f"honest {n}" for n in range(1, plan.honest + 1)]
    for name in names:  # an id of their own, because gold duels depend on it
        fork.append(study, VoterJoined(name))
    cast = list[CountedVote]()
    order = turns.permutation(np.repeat(np.arange(len(names)), plan.votes_each)).tolist()

    def says_left(duel: OpenDuel, person: int) -> bool:
        left, right = (duel.first, duel.second) if duel.first_is_left else (duel.second, duel.first)
        chance = expit(scores[left] - scores[right])
        if person < plan.liars:
            chance = liar.chance(left, right, chance)
        # what is drawn is about the first item, so that the side does not change what people say
        says_first = happens(float(chance if duel.first_is_left else 1.0 - chance), answers.random)
        return says_first == duel.first_is_left

    for number, person in enumerate(order, start=1):
        cast += _vote(fork, found, names[person], partial(says_left, person=person))
        if number % _REPORT_EVERY == 0:
            progress(number / len(order))
    return cast


def _vote(fork: Fork, study: StudyState, voter: str, says_left: Callable[[OpenDuel], bool]) -> list[CountedVote]:
    """Let a voter answer one duel, if there is one for them."""
    holder, cast = Holder("voter", study.study, voter), list[CountedVote]()
    for shown in voting.ask(fork, holder, 1)["duels"]:
        duel = study.voters[voter].open[shown["duel"]]
        answer = "left" if says_left(duel) else "right"
        voting.answer(fork, holder, voting.Given(duel.duel, "vote", answer))
        if duel.duel not in fork.gold:
            cast.append(
                CountedVote(voter, duel.context, duel.first, duel.second, duel.first_is_left, answer, fork.now())
            )
    return cast


def _liar(votes: Votes, found: Audit, plan: RedTeamPlan) -> Liar:
    """Return a liar who knows the votes and the ranking."""
    if not TACTICS[plan.attack].needs_item:
        return Liar(plan.attack)
    if plan.item not in votes.items:
        raise unknown_name("item", str(plan.item), votes.items)
    item = votes.items.index(plan.item)
    lift = lift_by_item(fit_scores(wins(votes, ties="drop")), item, to_first=True)
    return Liar(plan.attack, item, best_other(found.shown.scores, item), lift)


def _gap(votes: Votes) -> float:
    """Return the seconds between two votes lately."""
    times = np.zeros(0) if votes.time is None else votes.time[np.isfinite(votes.time)][-_RECENT:]
    return float(np.clip(np.median(np.diff(times)), _LEAST_GAP, _MOST_GAP)) if len(times) > 1 else 1.0


def _report(plan: RedTeamPlan, before: Audit, after: Audit, cast: Sequence[CountedVote], liar: Liar) -> Json:
    """Say what the liars did, and who was caught."""
    liars = {vote.voter for vote in cast if vote.voter.startswith("liar ")}
    known, now = flagged_names(before), flagged_names(after)
    caught, wronged = now & liars, now - liars - known
    rows = compared_ranks(before.shown, after.shown, unchecked=after.everyone)
    lies = [vote for vote in cast if vote.voter in liars]
    way = TACTICS[plan.attack].how.format(item=plan.item)
    times = counted_noun(plan.votes_each, "time")
    who = f"{counted_noun(plan.liars, 'liar')} who {'votes' if plan.liars == 1 else 'vote'} {times}"
    sentence = (
        f"With {who}{' each' if plan.liars > 1 else ''} {way}, {first_place(before.shown, after.shown)}; "
        f"{_caught(len(caught), plan.liars)} and {_wronged(len(wronged))}."
    )
    details = [f"Ranks: {moves(rows)}."]
    if leader(after.everyone) != leader(after.shown):
        details.append(f"If all votes counted alike, {leader(after.everyone)} would have the highest score.")
    if liar.item is not None and lies:
        met = sum(liar.item in (vote.first, vote.second) for vote in lies)
        details.append(f"The agent showed {plan.item} in {met:,} of the {len(lies):,} duels of the liars.")
    if len(cast) < plan.votes:
        details.append(
            f"{len(cast):,} of {plan.votes:,} votes count: the study's limits and gold duels took the others."
        )
    if wronged:
        details.append(f"Wrongly flagged: {shortened(sorted(wronged))}.")
    found = {
        "sentence": sentence,
        "details": details,
        "plan": vars(plan),
        "votes": {"recorded": len(after.votes) - len(cast), "liars": len(lies)} | {"honest": len(cast) - len(lies)},
        "caught": {"liars": len(caught), "of": plan.liars, "honest": len(wronged)},
        "flagged": _flagged(after, caught | wronged, liars),
        "ranking": rows,
    }
    return without_infinities(found)  # type: ignore[no-any-return]


def _caught(caught: int, liars: int) -> str:
    """Say how many liars were flagged.

    >>> [_caught(number, 3) for number in range(4)]
    ['none of them was caught', '1 of 3 was caught', '2 of 3 were caught', 'all of them were caught']
    """
    if liars == 1:
        return "the liar was caught" if caught else "the liar was not caught"
    if caught in (0, liars):
        return "all of them were caught" if caught else "none of them was caught"
    return f"{caught} of {liars} {'was' if caught == 1 else 'were'} caught"


def _wronged(count: int) -> str:
    if count == 0:
        return "no honest voter was"
    return f"{counted_noun(count, 'honest voter')} {'was' if count == 1 else 'were'} wrongly flagged"


def _flagged(found: Audit, names: set[str], liars: set[str]) -> list[Json]:
    """Return who is flagged only in the fork, and why."""
    table = found.voters
    rows = [] if table is None else table.to_dicts()
    return [
        {"voter": row["voter"], "liar": row["voter"] in liars, "why": row["why"]}
        | {"log10_evidence": row["log10_evidence"]}
        for row in rows
        if row["voter"] in names
    ]
