"""Polls in which the winner stays are named, other ways of choosing duels are not, and nobody is blamed for them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from fairduel.agents import Sceptic
from fairduel.duel import Outcome
from fairduel.votes import Votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing.audit import audit
from fairduel.votes.auditing.collection import WINNER_STAYS, successions, winner_stays
from fairduel.votes.auditing.voters import audit_voters

WAYS = ("own winner", "one winner for all", "random", "latest", "leader of all")


def poll(
    seed: int, way: str, *, taste: float = 0.7, in_turn: bool = False, restart: float = 0.0, ties: float = 0.0
) -> Votes:
    """Draw honest votes; the next duel has a random item and the last winner, the last item, the leader, or any."""
    rng = np.random.default_rng([seed, 12])
    items, voters = rng.integers(6, 21), rng.integers(20, 61)
    scores = rng.standard_normal(items) + taste * rng.standard_normal((voters, items))
    who = np.repeat(np.arange(voters), rng.integers(20, 101, voters))
    who = rng.permutation(who) if in_turn else who
    won, shown, champion, rows = np.ones(items), np.full(items, 2.0), {}, []
    for voter in who:
        chain = voter if way == "own winner" else 0
        one = champion.get(chain, 0)
        if way == "random" or rng.random() < restart:
            one = rng.integers(items)
        elif way == "leader of all":
            one = int(np.argmax(won / shown))
        other = (one + rng.integers(1, items)) % items
        first, second = (one, other) if rng.random() < 0.5 else (other, one)
        first_wins = rng.random() < expit(scores[voter, first] - scores[voter, second])
        winner = first if first_wins else second
        if rng.random() < ties:
            winner, result = one, 0.5
        else:
            result = float(first_wins)
        rows.append((first, second, result))
        won[winner] += 1.0
        shown[[first, second]] += 1.0
        champion[chain] = other if way == "latest" else winner
    names = [f"i{k}" for k in range(items)], [f"v{v}" for v in range(voters)]
    return Votes.from_arrays(
        names[0], *np.array(rows).T[:2].astype(int), [r[2] for r in rows], voter=who, voters=names[1]
    )


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("change", [{}, {"taste": 1.2}, {"in_turn": True}, {"restart": 0.1}, {"ties": 0.3}])
def test_polls_in_which_the_winner_stays_are_named(way, change):
    assert all(winner_stays(poll(seed, way, **change)) for seed in range(5))


@pytest.mark.parametrize("way", WAYS[2:])
@pytest.mark.parametrize("in_turn", [False, True])
def test_other_ways_of_choosing_duels_are_not_named(way, in_turn):
    assert not any(winner_stays(poll(seed, way, in_turn=in_turn)) for seed in range(10))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_turn", [False, True])
def test_an_agent_that_asks_around_the_leader_is_not_named(seed, in_turn):
    rng = np.random.default_rng([seed, 13])
    scores, agent = rng.standard_normal(10), Sceptic(items=10, self_duels=False, seed=seed)
    voter, rows = np.repeat(np.arange(30), 20), []
    for _ in voter:
        duel = agent.ask(np.eye(10))
        first_wins = rng.random() < expit(scores[duel.first] - scores[duel.second])
        agent.tell(duel, Outcome.FIRST if first_wins else Outcome.SECOND)
        rows.append((duel.first, duel.second, int(first_wins)))
    voter = rng.permutation(voter) if in_turn else voter
    assert not winner_stays(Votes.from_arrays("abcdefghij", *np.array(rows).T, voter=voter, voters=range(30)))


def test_liars_who_always_choose_their_item_are_not_taken_for_such_a_poll():
    for seed in range(5):
        votes, _ = arena(liars={"promote": 140}, seed=seed)
        assert [each.won_second > 0.4 * each.won_first for each in successions(votes)] == [True, True]
        assert not winner_stays(votes)


def test_the_number_of_shared_items_that_won_the_first_duel_is_as_uncertain_as_the_test_says():
    """Where the latest item stays, every answer counts twice, so Σ k y has the variance Σ k²/4 that p rests on."""
    z = []
    for seed in range(800):
        rng = np.random.default_rng(seed)
        first = np.cumsum(rng.integers(1, 8, 151)) % 8
        votes = Votes.from_arrays("abcdefgh", first[:-1], first[1:], rng.integers(0, 2, 150))
        [all_votes] = successions(votes)
        z.append(np.sqrt(-2.0 * np.log(all_votes.p_value)))  # p = exp(−z²/2)
    z = np.array(z)
    above = z[z > 0.0]
    assert (z > 0.0).mean() == pytest.approx(0.5, abs=0.06)
    assert np.mean(above**2) == pytest.approx(1.0, abs=4 * np.sqrt(2.0 / len(above)))


@pytest.mark.parametrize("way", WAYS[2:4])
def test_p_values_are_not_too_small(way):
    small = sum(each.p_value <= 0.05 for seed in range(100) for each in successions(poll(seed, way)))
    assert small <= stats.binom.ppf(0.99, 200, 0.05) / 2


def test_successions_are_counted_one_by_one():
    votes = replace(poll(1, "latest", ties=0.2, in_turn=True), time=None)
    for each, chains in zip(successions(votes), ([np.arange(len(votes))], own_chains(votes)), strict=True):
        duels = stays = won_first = won_second = 0
        for chain in chains:
            for one, next_one in pairwise(chain):
                here, there = ({votes.first[t], votes.second[t]} for t in (one, next_one))
                duels += winner(votes, one) is not None
                if len(here & there) == 1:
                    [shared] = here & there
                    stays += winner(votes, one) == shared
                    won = [winner(votes, t) for t in (one, next_one)]
                    won_first += won[0] == shared and won[1] not in (shared, None)
                    won_second += won[1] == shared and won[0] not in (shared, None)
        assert (each.duels, each.stays, each.won_first, each.won_second) == (duels, stays, won_first, won_second)


def own_chains(votes: Votes) -> list[np.ndarray]:
    return [np.flatnonzero(votes.voter == voter) for voter in range(len(votes.voters))]


def winner(votes: Votes, place: int) -> int | None:
    items = {1.0: votes.first[place], 0.0: votes.second[place]}
    return items.get(votes.result[place])


def test_the_order_is_that_of_time_and_votes_of_weight_0_do_not_count():
    votes = poll(3, "own winner")
    moved = np.random.default_rng(0).permutation(len(votes))
    arrays = {name: getattr(votes, name)[moved] for name in ("first", "second", "result", "voter")}
    shuffled = replace(votes, **arrays)
    assert not winner_stays(shuffled)
    assert winner_stays(replace(shuffled, time=1.7e9 + moved))
    assert not winner_stays(replace(votes, weight=np.zeros(len(votes))))
    assert winner_stays(votes.select(votes.voter < 5))


@pytest.mark.parametrize("way", WAYS[:2])
def test_nobody_is_blamed_where_the_winner_stays(way):
    for seed in range(8):
        evidence = audit_voters(poll(seed, way, taste=1.2))
        assert evidence.settings["winner_stays"]
        assert not evidence.settings["duels_assigned"]
        assert not evidence.someone_differs


def test_without_that_finding_honest_voters_would_be_blamed(monkeypatch):
    monkeypatch.setattr("fairduel.votes.auditing.voters.winner_stays", lambda _: False)
    flagged = [audit_voters(poll(seed, way, taste=1.2)).flagged.any() for seed in range(8) for way in WAYS[:2]]
    assert sum(flagged) >= 3


def test_the_audit_says_so_in_one_sentence():
    votes = poll(0, "own winner").select(np.arange(len(poll(0, "own winner"))) < 900)
    assert WINNER_STAYS in audit(votes, top=1).summary()
    honest, _ = arena(liars={}, seed=0)
    assert WINNER_STAYS not in audit(honest, top=1).summary()
