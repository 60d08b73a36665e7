"""Simulated voters, honest ones and liars, in front of a learner, without a store."""

import random

from fairduel.core.links import LOGISTIC
from fairduel.service.events.kinds import Answered, DuelIssued, GoldChanged, StudyCreated
from fairduel.service.events.log import GENESIS, next_event
from fairduel.service.study import gold
from fairduel.service.study.learner import Learner, Proposal
from fairduel.votes.attacking.liars import Liar, happens
from helpers.booth import about


class Crowd:
    """Voters who answer duels of a learner one after another; items are numbered from worst to best.

    Args:
        seed: Seed of the learner, of the order of items and of what honest voters say.
        voters: How many.
        liars: How many of them always say that the worse item is better (contrarians).
        items: K.
        step: Log-odds between neighbours.
        answers: How many known answers there are, between items far apart.
    """

    def __init__(self, seed, voters=20, liars=6, items=8, step=0.5, answers=6):
        self.rng = random.Random(seed)
        self.liars, self.step, self.voters = liars, step, [f"voter {number}" for number in range(voters)]
        self.place = self.rng.sample(range(items), items)  # from worst to best, by item
        self.study = about(items, seed=seed, undo_seconds=0, repeat_pairs=True)
        self.learner = Learner(self.study)
        self.digest, self.position, self.log = GENESIS, 0, []
        self.shown, self.issued = [0] * items, dict.fromkeys(self.voters, 0)
        self.append(StudyCreated({}))
        far = [(a, b) for a in range(items) for b in range(items) if self.place[a] - self.place[b] >= items // 2]
        given = self.rng.sample(far, answers)
        self.known = {gold.compared(None, *pair): pair[0] for pair in given}
        self.append(GoldChanged([[None, *pair] for pair in given], first=5, every=10))

    def append(self, body):
        self.position += 1
        event = next_event(self.digest, self.position, "study", float(self.position), body)
        self.digest = event.hash
        self.learner.fold(event)
        self.log.append(event)

    def issue(self, voter):
        """Issue a duel as the server does; return its id and pair."""
        number, duel = self.issued[voter], f"{voter}/{self.issued[voter]}"
        tested = self.learner._tested.get(voter, {})
        left = [pair for pair in self.known if pair not in tested]
        self.issued[voter] += 1
        is_gold = bool(left) and gold.is_gold_turn(b"secret", voter, number, first=5, every=10)
        if is_gold:
            pair = left[gold.keyed_number(b"secret", f"{voter}\n{number}") % len(left)]
            proposal = Proposal(*pair, weight=0.0, declined=False)
        else:
            proposal = self.learner.propose((), self.shown)
        self.append(DuelIssued.of(proposal, duel, voter, first_is_left=True, deadline=0.0, gold=is_gold))
        first, second = proposal.first, proposal.second
        return duel, first, second

    def answer(self, voter, duel, first, second):
        gap = abs(self.place[first] - self.place[second])
        better, worse = sorted((first, second), key=self.place.__getitem__, reverse=True)
        chance = LOGISTIC.probability(self.step * gap)
        if self.voters.index(voter) < self.liars:
            chance = float(Liar("contrarians").chance(better, worse, chance))
        winner = better if happens(chance, self.rng.random) else worse
        self.append(Answered(duel, voter, "left", winner, "key", None, settles=None, final=True, progress={}))

    def vote(self, rounds):
        """Let everyone vote ``rounds`` times, in turn."""
        for _ in range(rounds):
            for voter in self.rng.sample(self.voters, len(self.voters)):
                self.answer(voter, *self.issue(voter))

    @property
    def is_right(self):
        """Whether the agent recommends the best item."""
        best = self.place.index(len(self.place) - 1)
        return self.learner.agent.recommend() == best

    @property
    def doubted(self):
        return [voter for voter in self.voters if gold.is_doubtful(*self.learner.tested(voter))]
