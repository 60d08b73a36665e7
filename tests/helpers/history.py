"""Whether what clients saw could have come from a study in which one thing happens at a time (linearizability).

The log gives the order of all effects. An operation has a *point*: the position of the log after which it read, or
that it wrote. It must be a point at which a sequential model of a study gives the same reply, and not before the point
of any operation that had ended before this one began. Taking the earliest such point of each operation, in the order in
which they began, finds valid points if there are any.
"""

import heapq
import itertools
from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass
class Operation:
    """What a client did and saw; times in seconds."""

    kind: str  # ask, answer, undo, switch, look
    voter: str
    body: dict
    began: float = 0.0
    ended: float = 0.0
    status: int = 0
    reply: dict = field(default_factory=dict)


@dataclass
class Model:
    """A study after each event of its log, kept by voter; knows nothing of the service's own state."""

    open: dict = field(default_factory=dict)  # voter → open duels, oldest first
    last: dict = field(default_factory=dict)  # voter → the answer that can be undone
    numbers: dict = field(default_factory=lambda: dict.fromkeys(("votes", "skips", "undone", "open"), 0))
    tallies: dict = field(default_factory=dict)  # voter → votes, skips
    state: str = "open"
    answered: dict = field(default_factory=dict)  # duel, key → position
    undone: dict = field(default_factory=dict)  # duel → position of the duel that repeats it, its id

    def __post_init__(self):
        self.voters, self.studies, self.pauses, self.effects = {}, [], [], []

    def fold(self, event):
        """Take in an event of the log, after checking that it can follow."""
        body, kind = event.body.written(), event.body.kind
        voter = body.get("voter")
        duels = self.open.setdefault(voter, [])
        tally = self.tallies.setdefault(voter, [0, 0])
        if kind == "duel issued":
            assert self.state == "open" or body["repeats"]
            duels.append(body["duel"])
            self.numbers["open"] += 1
            if body["repeats"]:
                self.undone[body["repeats"]] = event.position, body["duel"]
            else:
                self.effects.append(("ask", voter, body["duel"], event.position))
        elif kind == "answered":
            duels.remove(body["duel"])
            self.numbers["open"] -= 1
            is_skip = body["answer"] == "skip"
            self.numbers["skips" if is_skip else "votes"] += 1
            tally[is_skip] += 1
            self.last[voter] = body["duel"], is_skip
            self._keep(event, body)
        elif kind == "answer refused":
            assert body["duel"] not in duels
            assert body["reason"] == "repeated"
            self._keep(event, body)
        elif kind == "answer undone":
            undone, was_skip = self.last.pop(voter)
            assert undone == body["duel"]
            self.numbers["skips" if was_skip else "votes"] -= 1
            self.numbers["undone"] += 1
            tally[was_skip] -= 1
            self.effects.append(("undo", voter, undone, event.position))
        elif kind == "study changed":
            self.state = body["state"]
            if self.state == "paused":
                self.pauses.append([event.position, float("inf")])
            else:
                self.pauses[-1][1] = event.position
            self.effects.append(("switch", self.state, None, event.position))
        last = self.last.get(voter, (None,))[0]
        if voter:
            seen = (event.position, tuple(duels), tuple(tally), last)
            self.voters.setdefault(voter, []).append(seen)
        self.studies.append((event.position, self.state, dict(self.numbers)))

    def _keep(self, event, body):
        assert (body["duel"], body["key"]) not in self.answered
        self.answered[body["duel"], body["key"]] = event.position, event.receipt, body["answer"], event.body.kind
        self.effects.append(("answer", body["voter"], (body["duel"], body["key"]), event.position))

    # ------------------------------------------------------------------ the earliest point of each kind of operation

    def earliest(self, operation, bound):
        """Return the first position from ``bound`` at which the model gives the operation's reply, or None."""
        return getattr(self, f"_{operation.kind}")(operation, bound)

    def _ask(self, operation, bound):
        shown = tuple(duel["duel"] for duel in operation.reply["duels"])
        progress = operation.reply["progress"]
        tally, count = (progress["votes"], progress["answered"] - progress["votes"]), operation.body["count"]
        for begin, end, _, duels, found, _ in self._spans(operation.voter, bound):
            if (duels, found) == (shown, tally):
                if len(duels) >= count:
                    return begin
                paused = self._paused(begin, end)  # too few duels, so the study must be
                if paused is not None:
                    return paused
        return None

    def _paused(self, begin, end):
        """Return the first position between two at which the study is paused, or None."""
        found = (max(begin, first) for first, until in self.pauses if max(begin, first) < min(end, until))
        return next(found, None)

    def _answer(self, operation, bound):
        duel, key, given = (operation.body[name] for name in ("duel", "key", "answer"))
        known = self.answered.get((duel, key))
        if operation.status == 200:
            position, receipt, answer, kind = known
            assert (receipt, answer, kind) == (operation.reply["receipt"], given, "answered")
            return max(position, bound)
        if operation.reply["code"] == "key-reused":
            assert known[2] != given
            return max(known[0], bound)
        if operation.reply["code"] == "not-open":
            spans = (
                self._paused(begin, end)
                for begin, end, _, duels, *_ in self._spans(operation.voter, bound)
                if duel in duels
            )
            return next((paused for paused in spans if paused is not None), None)
        assert operation.reply["code"] == "already-answered", operation
        if known is not None:
            assert known[2:] == (given, "answer refused")
            return max(known[0], bound)
        first = [entry[0] for (about, _), entry in self.answered.items() if about == duel]
        assert len(first) > 10  # this many are kept
        return max(*sorted(first)[:11], bound)

    def _undo(self, operation, bound):
        duel = operation.body["duel"]
        position, again = self.undone.get(duel, (None, None))
        for begin, end, _, duels, _, last in self._spans(operation.voter, bound):
            if operation.status == 200:
                if again in duels:
                    assert operation.reply["duel"]["duel"] == again
                    return max(begin, position)
            elif again not in duels:
                point = begin if last != duel else self._paused(begin, end)
                if point is not None:
                    return point
        return None

    def _switch(self, operation, bound):
        return self._snapshot(operation, bound, operation.body["state"])

    def _look(self, operation, bound):
        return self._snapshot(operation, bound, operation.reply["state"])

    def _snapshot(self, operation, bound, wanted):
        assert operation.reply["state"] == wanted
        counts = {name: operation.reply["counts"][name] for name in self.numbers}
        begin = max(0, bisect_right(self.studies, bound, key=lambda entry: entry[0]) - 1)
        for position, state, numbers in itertools.islice(self.studies, begin, None):
            if (state, numbers) == (wanted, counts):
                return max(position, bound)
        return None

    def _spans(self, voter, bound):
        """Yield the positions from ``bound`` between which a voter's part of the state is the same."""
        entries = self.voters[voter]
        begin = max(0, bisect_right(entries, bound, key=lambda entry: entry[0]) - 1)
        for place in range(begin, len(entries)):
            end = entries[place + 1][0] if place + 1 < len(entries) else float("inf")
            yield max(entries[place][0], bound), end, *entries[place]


def check_history(events, operations):
    """Check that operations are linearizable in the order of the log; returns the number with an effect.

    Raises:
        AssertionError: An operation has no point, or an effect no operation that can have caused it.
    """
    model = Model()
    for event in events:
        model.fold(event)
    ended, bound, bounds = [], 0, {}
    for number, operation in sorted(enumerate(operations), key=lambda pair: pair[1].began):
        while ended and ended[0][0] < operation.began:
            bound = max(bound, heapq.heappop(ended)[1])
        bounds[number] = bound
        point = model.earliest(operation, bound)
        assert point is not None, f"no point from {bound} gives {operation}"
        heapq.heappush(ended, (operation.ended, point))
    causes = {}
    for number, operation in enumerate(operations):
        for cause in _causes(operation):
            causes[cause] = min(causes.get(cause, float("inf")), bounds[number])
    for kind, who, what, position in model.effects:
        assert causes.get((kind, who, what), float("inf")) < position, f"nobody can have caused event {position}"
    return len(model.effects)


def _causes(operation):
    """Yield the effects that an operation may have had."""
    body, voter = operation.body, operation.voter
    if operation.kind == "ask":
        yield from (("ask", voter, duel["duel"]) for duel in operation.reply["duels"])
    elif operation.kind == "answer":
        yield "answer", voter, (body["duel"], body["key"])
    elif operation.kind == "undo":
        yield "undo", voter, body["duel"]
    elif operation.kind == "switch":
        yield "switch", body["state"], None
