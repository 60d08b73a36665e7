"""Clients at the same time see what they would see one after another, in the order of the log."""

import asyncio
import copy
import random
import time

from fairduel.service.events import backup
from fairduel.service.events.database import read_events
from helpers.history import Operation, check_history
from helpers.servers import Link, in_a_loop
from helpers.torture import torture

VOTERS, CLIENTS = 8, 32


class Client:
    """One of several clients of a voter, who share what they know."""

    def __init__(self, server, study, voter, key, shared, rng):
        self.link, self.operator = Link(server.port, key), Link(server.port, server.key)
        self.path, self.voter, self.shared, self.rng = f"/api/studies/{study}", voter, shared, rng

    async def run(self, count, history):
        for _ in range(count):
            operation, link, method, path, body, headers = self.choose()
            operation.began = time.perf_counter()
            operation.status, operation.reply = await link.insist(method, path, body, **headers)
            operation.ended = time.perf_counter()
            assert operation.status in {200, 409, 422}, operation
            history.append(operation)
            if operation.kind == "ask":
                self.shared["open"] = [duel["duel"] for duel in operation.reply["duels"]]
        self.link.close()
        self.operator.close()

    def choose(self):
        rng, shared, chance = self.rng, self.shared, self.rng.random()
        if chance < 0.04:
            state = rng.choice(["open", "open", "paused"])
            wanted = Operation("switch", "", {"state": state})
            return wanted, self.operator, "PATCH", self.path, {"state": state}, {}
        if chance < 0.08:
            return Operation("look", "", {}), self.operator, "GET", self.path, {}, {}
        if chance < 0.2 and shared["sent"]:
            duel = rng.choice(shared["sent"][-4:])[0]
            return Operation("undo", self.voter, {"duel": duel}), *self._duel(duel, "undo", {}, {})
        if chance < 0.65 and (shared["open"] or shared["sent"]):
            duel, key, answer = self._answer()
            wanted = Operation("answer", self.voter, {"duel": duel, "key": key, "answer": answer})
            return wanted, *self._duel(duel, "answer", {"answer": answer}, {"Idempotency_Key": key})
        body = {"count": rng.randint(1, 3)}
        return Operation("ask", self.voter, body), self.link, "POST", f"{self.path}/duels", body, {}

    def _duel(self, duel, action, body, headers):
        return self.link, "POST", f"{self.path}/duels/{duel}/{action}", body, headers

    def _answer(self):
        """A new answer, an old one again, an old key with another answer, or a second answer to an old duel."""
        rng, shared = self.rng, self.shared
        answer = rng.choice(["left", "right", "tie", "skip"])
        if shared["sent"] and (not shared["open"] or rng.random() < 0.4):
            duel, key, before = rng.choice(shared["sent"][-6:])
            sent = rng.choice([(duel, key, before), (duel, key, answer), (duel, f"{rng.random()}", answer)])
        else:
            sent = rng.choice(shared["open"]), f"{rng.random()}", answer
        shared["sent"].append(sent)
        return sent


def record(launcher, folder, count):
    """Return the log and the operations of clients at the same time."""
    server = launcher.start(folder)
    server.wait()
    history = []

    async def run():
        operator = Link(server.port, server.key)
        items = [{"name": f"item {n}"} for n in range(6)]
        study = {"question": "Which?", "items": items, "repeat_pairs": True, "undo_seconds": 3600}
        made = (await operator.post("/api/studies", study))[2]["study"]
        joined = [(await operator.post(f"/api/studies/{made}/voters", {}))[2] for _ in range(VOTERS)]
        operator.close()
        shared = [{"open": [], "sent": []} for _ in range(VOTERS)]
        clients = [
            Client(server, made, *joined[n % VOTERS].values(), shared[n % VOTERS], random.Random(n))
            for n in range(CLIENTS)
        ]
        await asyncio.gather(*(client.run(count // CLIENTS, history) for client in clients))
        return made

    study = in_a_loop(run())
    server.end()
    with backup.reading(folder) as connection:
        return list(read_events(connection, study=study)), history


@torture(
    14, "32 clients of 8 voters ask, answer, repeat, undo and pause at once", small=960, full=10_240, unit="operations"
)
def test_histories_are_linearizable(trial, launcher, tmp_path):
    log, history = record(launcher, tmp_path / "store", trial.size)
    effects = check_history(log, history)
    assert len(history) == trial.size
    assert {operation.kind for operation in history} == {"ask", "answer", "undo", "switch", "look"}
    codes = {operation.reply.get("code") for operation in history if operation.status != 200}
    assert codes == {"already-answered", "cannot-undo", "key-reused", "not-open"}
    assert backup.check(tmp_path / "store").problems == ()
    assert _anomalies(log, history) > 0.9
    trial.found = (
        f"no anomaly; {effects:,} effects, each between the start and the end of an operation that can cause it"
    )


def _anomalies(log, history):
    """Change one operation at a time, and return the share of changes that are noticed."""
    rng, noticed, tried = random.Random(0), 0, 40
    for change in range(tried):
        spoiled = copy.copy(history)
        kind = ("ask", "answer", "undo", "look")[change % 4]
        place = rng.choice([n for n, each in enumerate(history) if each.kind == kind and each.status == 200])
        operation = spoiled[place] = copy.copy(history[place])
        if kind in {"ask", "look"}:  # a reply that was right at the start
            operation.reply = next(each.reply for each in history if (each.kind, each.voter) == (kind, operation.voter))
            operation.began = operation.ended = history[-1].ended + 1.0
        else:  # it happened before it was asked for
            same = [each for each in spoiled if each.kind == kind and _same(each, operation)]
            for each in same:
                spoiled[spoiled.index(each)] = later = copy.copy(each)
                later.began, later.ended = (moment + 3600.0 for moment in (each.began, each.ended))
        try:
            check_history(log, spoiled)
        except AssertionError:
            noticed += 1
    return noticed / tried


def _same(one, other):
    return all(one.body.get(name) == other.body.get(name) for name in ("duel", "key"))
