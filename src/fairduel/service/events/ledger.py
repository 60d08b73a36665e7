"""The ledger: one thread that runs all commands, writes their events and commits many at a time.

A command is a function of the ledger. It decides by the state, appends events, and returns what to answer; to refuse
something it raises a :class:`~fairduel.service.problems.Problem` before it appends anything, or returns one after. Its
caller gets the result once the events are on disk. If they cannot be written, all commands of the batch fail, and the
state is read from disk again.
"""

import contextlib
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from fairduel.errors import FairduelError
from fairduel.service.events.database import FolderStore, VoteStore
from fairduel.service.events.kinds import Answered, Refolded, VoterJoined
from fairduel.service.events.log import Event, Happened, next_event, sealed
from fairduel.service.events.schema import Changes, Row, Writer
from fairduel.service.events.state import State, StudyState
from fairduel.service.problems import Problem, overloaded, storage_failed, unconfirmed
from fairduel.service.server_log import log, log_failure
from fairduel.service.study import learner as learners

Result = TypeVar("Result")
Personal = TypeVar("Personal", VoterJoined, Answered)
Command = Callable[["Ledger"], Result]
_Entry = tuple[Command[Any], Future[Any], float, str]  # when it was queued, and for which operator
_MOST_AT_ONCE = 128  # commands in one commit
_LONGEST_AT_ONCE = 0.025  # seconds of commands in one commit
_MOST_WAITING = 4096  # commands
# A command that would wait for longer is refused, so that others are answered soon; but not if few wait, or if the
# last batch hardly waited, so that they all came at once.
_LONGEST_WAIT, _FEW_WAITING, _SHORT_WAIT = 0.03, 32, 0.01  # seconds, commands, seconds
_SWEEP_SECONDS = 1.0
_CLOCK_SECONDS = 1.0  # by which the clock may be behind without a warning
# Between two saves of a study's learner: at least this many seconds, and this multiple of the duration of the last
# save, but at most a minute.
_SAVE_SECONDS, _SAVE_REST, _LONGEST_REST = 1.0, 20.0, 60.0


class Ledger:
    """The log of one store, its state, and the thread that changes both.

    Args:
        sweep: Called about once per second, as a command, to append what is due, such as expired duels.
    """

    def __init__(
        self,
        where: VoteStore | Path,
        *,
        sweep: Command[object] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = FolderStore(where) if isinstance(where, Path) else where
        self._sweep = sweep
        self._began = clock() - time.monotonic()  # so that setting the clock does not matter while the server runs
        self._can_write = True
        self._listeners: list[Callable[[int, frozenset[str]], None]] = []
        self._pending = Changes()
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self.sign_ins = frozenset[str]()
        """In which ways voters can sign in: the values of ``access`` that need it."""
        self._by = ""  # the operator for whom the current command runs
        self._pace = 0.0  # seconds per command, lately
        self._waited = 0.0  # seconds, the first command of the last batch
        self._swept, self._is_closing = 0.0, False
        self._save_after: dict[str, float] = {}  # when a study's learner may be written again
        self._saver = ThreadPoolExecutor(1, "fairduel-saver")
        try:
            self._connection: Connection = self.store.writer()
            self._writer = Writer(self._connection)
            self.secret = self.store.secret(self._connection)
            self._state: State | None = None
            self._load()
            self._catch_up()
        except BaseException:
            self.store.close()
            raise
        self._thread = threading.Thread(target=self._work, name="fairduel-ledger", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ for everyone

    def submit(self, command: Command[Result], by: str = "") -> Future[Result]:
        """Queue a request's command; the future is done once its events, done by that operator, are on disk.

        Raises:
            Problem: The server is overloaded.
        """
        if self.is_overloaded:
            raise overloaded()
        return self._put(command, by)

    def run(self, command: Command[Result], by: str = "") -> Result:
        """Run a command of the server's own, which is never refused, and wait for it."""
        return outcome(self._put(command, by).result())

    def _put(self, command: Command[Result], by: str) -> Future[Result]:
        future: Future[Result] = Future()
        self._queue.put((command, future, time.monotonic(), by))
        if not self._thread.is_alive():
            self._refuse_queued()
        return future

    def listen(self, listener: Callable[[int, frozenset[str]], None]) -> None:
        """After each commit, call a function with the position and the changed studies, on the ledger's thread."""
        self._listeners.append(listener)

    @property
    def is_ready(self) -> bool:
        """Whether the log can be read and written, as far as was tried last."""
        return self._state is not None and self._can_write and self._thread.is_alive()

    @property
    def is_overloaded(self) -> bool:
        """Whether requests are refused because a new one would wait for too long."""
        waiting = self._queue.qsize()
        is_behind = waiting > _FEW_WAITING and self._waited > _SHORT_WAIT
        return waiting >= _MOST_WAITING or (is_behind and waiting * self._pace > _LONGEST_WAIT)

    def close(self) -> None:
        """Finish what is queued, then close the log."""
        self._queue.put(None)
        self._thread.join()
        self._refuse_queued()
        self._saver.shutdown()
        self._connection.close()
        self.store.close()

    def _refuse_queued(self) -> None:
        """Refuse commands that came after the end."""
        with contextlib.suppress(queue.Empty):
            while True:
                entry = self._queue.get_nowait()
                if entry is not None and entry[1].set_running_or_notify_cancel():
                    entry[1].set_exception(storage_failed())

    # ------------------------------------------------------------------ for commands

    @property
    def state(self) -> State:
        """The current state, including events of this batch."""
        if self._state is None:
            raise storage_failed()
        return self._state

    def now(self) -> float:
        """The current time, never before that of the last event."""
        return max(self._began + time.monotonic(), self.state.at)

    def append(self, study: str, body: Happened) -> Event[Happened]:
        """Append an event of a study, or of the whole server if that is ""."""
        state = self.state
        event = next_event(state.hash, state.position + 1, study, self.now(), body, self._by)
        state.apply(event)
        self._pending.add(event)
        return event

    def append_personal(self, study: str, body: Personal, **texts: str | None) -> Event[Personal]:
        """Append an event with texts about a voter, of which the log gets a salted hash each."""
        rows, seals = list[Row](), dict[str, Any]()
        for field, text in texts.items():
            if text is not None:
                salt, seals[field] = sealed(text)
                rows.append({"field": field, "study": study, "voter": body.voter, "salt": salt, "text": text})
        event = self.append(study, replace(body, **seals))
        self._pending.personal += [{"position": event.position, **row} for row in rows]
        return event

    def connection(self) -> Connection:
        """Return the connection, which sees the events of this batch."""
        self._flush()
        return self._connection

    def drop_learner(self, study: str) -> None:
        """Delete the saved learner of a study, after those saves that are on their way; call this on other threads."""
        self._saver.submit(self.store.drop_learner, study).result()

    def adopt(self, study: StudyState, learner: learners.Learner) -> None:
        """Replace a study's learner by one that was refolded to the end of the log, and record it."""
        event = self.append(study.study, Refolded(sorted(study.set_aside)))
        learner.fold(event)
        learner.end_refold()
        study.learner = learner

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        while not self._is_closing:
            self._run(self._next_batch())

    def _next_batch(self) -> Iterator[_Entry]:
        """Wait for a command; yield those that are queued by then, as far as one commit has time for them."""
        with contextlib.suppress(queue.Empty):
            self._waited = 0.0
            entry = self._queue.get(timeout=_SWEEP_SECONDS)
            began = time.monotonic()
            self._waited = 0.0 if entry is None else began - entry[2]
            for left in reversed(range(min(self._queue.qsize() + 1, _MOST_AT_ONCE))):
                if entry is None:
                    self._is_closing = True
                    break
                yield entry
                if left == 0 or time.monotonic() - began > _LONGEST_AT_ONCE:
                    break
                entry = self._queue.get_nowait()
        now = time.monotonic()
        if now - self._swept >= _SWEEP_SECONDS:
            self._swept = now
            yield self._sweep if self._can_write else self._probe, Future(), now, ""

    def _run(self, batch: Iterator[_Entry]) -> None:
        futures, done = list[Future[Any]](), list[tuple[Any, FairduelError | None]]()
        began = 0.0
        try:
            for command, future, _, by in batch:
                began, self._by = began or time.monotonic(), by
                if self._state is None:
                    self._reload()
                if future.set_running_or_notify_cancel():
                    futures.append(future)
                    done.append(self._try(command))
            changed = self._commit()
            self._can_write = self._can_write or bool(changed)
            if futures:
                share = 0.2 * min(1.0, len(futures) / _FEW_WAITING)  # a commit for few says little about one for many
                self._pace += share * ((time.monotonic() - began) / len(futures) - self._pace)
        except Exception as error:  # noqa: BLE001  # the disk is full or gone, or a command failed halfway
            log_failure("storage failed", error)
            self._can_write = False
            self._reload()
            is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
            for future in futures:
                future.set_exception(unconfirmed() if is_lost else storage_failed())
            return
        for future, (result, problem) in zip(futures, done, strict=True):
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(result)
        if changed:
            self._announce(changed)

    def _try(self, command: Command[Any]) -> tuple[Any, FairduelError | None]:
        """Run a command; return its result, or why it refused."""
        before = self._state and self._state.position
        try:
            return command(self), None
        except FairduelError as error:
            if self._state is not None and self._state.position != before:
                raise  # it appended something, so nothing of this batch can be kept
            return None, error

    def _commit(self) -> frozenset[str]:
        """Write everything to disk, and return the studies that changed."""
        self._flush()
        self._connection.commit()
        changed = frozenset(self._pending.studies)
        self._pending.studies.clear()
        return changed

    def _announce(self, changed: frozenset[str]) -> None:
        """Save the learners that are due, and tell the listeners."""
        for name in changed & self.state.studies.keys():
            learner = self.state.studies[name].learner
            if learner.saved is not None and time.monotonic() >= self._save_after.get(name, 0.0):
                self._save_after[name] = math.inf
                self._saver.submit(self._save, name, learner.saved)
                learner.saved = None
        for listener in self._listeners:
            try:
                listener(self.state.position, changed)
            except Exception as error:  # noqa: BLE001  # what is on disk does not depend on it
                log_failure("listener failed", error)

    def _save(self, study: str, learner: dict[str, Any]) -> None:
        """Save a learner; the longer that takes, the longer until the next save."""
        began = time.monotonic()
        try:
            self.store.save_learner(study, learner)
        except Exception as error:  # noqa: BLE001  # without it a restart only takes longer
            log_failure("learner not saved", error)
        rest = min(_SAVE_REST * (time.monotonic() - began), _LONGEST_REST)
        self._save_after[study] = began + max(_SAVE_SECONDS, rest)

    def _flush(self) -> None:
        """Write the pending rows, without committing."""
        pending, self._pending = self._pending, Changes(studies=self._pending.studies)
        self._writer.write(pending)

    def _reload(self) -> None:
        """Read the state from disk again, after a failure; if that fails too, the next batch tries again."""
        self._pending, self._state, self._by = Changes(), None, ""
        try:
            self._connection.rollback()
            self._load()
        except Exception as error:  # noqa: BLE001  # this thread must go on
            self._state = None
            log_failure("cannot read the log", error)

    def _probe(self, _: "Ledger") -> None:
        """Try whether writing works again."""
        self.store.probe(self._connection)
        self._connection.commit()
        self._can_write = True

    def _catch_up(self) -> None:
        """Go on from the last event if the clock is behind it, so that time passes even if the clock was once wrong."""
        behind = self.state.at - (self._began + time.monotonic())
        if behind > 0.0:
            self._began += behind
        if behind > _CLOCK_SECONDS:
            log(
                logging.WARNING,
                "the clock is behind the last event, so times go on from that event",
                seconds=round(behind),
            )

    def _load(self) -> None:
        self._state, diverged = self.store.load(self._connection)
        for study, learner in diverged:
            self.adopt(study, learner)
        if diverged:
            self._commit()


def outcome(result: Result) -> Result:
    """Return the result of a command, or raise the refusal that it returned."""
    if isinstance(result, Problem):
        raise result
    return result
