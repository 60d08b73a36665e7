"""A running service: the ledger, the analyst, refolds in the background, and who is told about changes."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import select

from fairduel.duel import Outcome
from fairduel.service import voting
from fairduel.service.analyst import Analyst
from fairduel.service.commands import find_study
from fairduel.service.jobs import Jobs
from fairduel.service.learner import Learner
from fairduel.service.ledger import Ledger
from fairduel.service.logs import log_failure
from fairduel.service.problems import Problem
from fairduel.service.state import StudyState
from fairduel.service.store import Store, read_events
from fairduel.service.study import NewStudy, new_agent
from fairduel.service.subjects import Subject

Json = dict[str, Any]


class Service:
    """Everything behind the HTTP interface.

    Args:
        where: The store, or its folder, which is created if need be.
        clock: Seconds since 1970.

    >>> import tempfile
    >>> service = Service(Path(tempfile.mkdtemp()))
    >>> service.ledger.state.position
    0
    >>> service.close()
    """

    def __init__(self, where: Store | Path, *, clock: Callable[[], float] = time.time) -> None:
        compiling = threading.Thread(target=warm_up)
        compiling.start()
        self.ledger = Ledger(where, sweep=_sweep, clock=clock)
        compiling.join()
        self.is_closed = False
        self._at_end: list[Callable[[], None]] = []
        self._watchers: list[Callable[[str | None], None]] = []
        self._refolds = ThreadPoolExecutor(1, "fairduel-refold")
        self.analyst = Analyst(self.ledger.store, self._describe, self._announce)
        self.jobs = Jobs(self.ledger.store.where, self._announce)
        self.ledger.listen(self._changed)
        for study in list(self.ledger.state.studies.values()):
            self.analyst.want(study.study)
            if study.refolded_without != study.set_aside:
                self.refold(study.study)

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self.is_closed = True
        with suppress(RuntimeError):  # the loop of the watchers may have ended
            self._announce(None)
        for stop in self._at_end:
            stop()
        self._refolds.shutdown(cancel_futures=True)
        self.jobs.close()
        self.analyst.close()
        self.ledger.close()

    def at_end(self, stop: Callable[[], None]) -> None:
        """Call a function when the service is closed, while it still works."""
        self._at_end.append(stop)

    def watch(self, watcher: Callable[[str | None], None]) -> Callable[[], None]:
        """Call a function with each changed study, and None at the end, on another thread; returns what stops that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def refold(self, study: str) -> None:
        """Fold the log of a study again in the background, without the voters set aside, and use that learner then."""
        self._refolds.submit(self._refold, study)

    def _refold(self, study: str) -> None:
        try:
            about, without = self.ledger.run(lambda ledger: _refold_plan(ledger, study))
            learner = Learner(about)
            with self.ledger.store.engine.connect() as connection:
                learner.impose(read_events(connection, study=study), without)
            self.ledger.run(lambda ledger: _end_refold(ledger, study, learner, without))
        except Problem as problem:
            if problem.code != "not-found":
                log_failure("refold failed", problem)

    def _describe(self, study: str) -> tuple[Subject, int, int]:
        return self.ledger.run(
            lambda ledger: (
                subject(ledger, study),
                ledger.state.position,
                find_study(ledger, study).counts["voted"],
            )
        )

    def _changed(self, _: int, studies: frozenset[str]) -> None:
        for study in studies:
            if study:
                self.analyst.want(study)
                self._announce(study)

    def _announce(self, study: str | None) -> None:
        for watcher in list(self._watchers):
            watcher(study)


def subject(ledger: Ledger, study: str) -> Subject:
    """Return what an analysis needs to know about a study."""
    return subject_of(find_study(ledger, study))


def subject_of(found: StudyState) -> Subject:
    """Return what an analysis needs to know about a study, given its state."""
    return Subject(
        study=found.study,
        items=[item.name for item in found.about.items],
        contexts=[context.name for context in found.about.contexts],
        labels={
            voter: f"voter {number}" if known.model is None else f"{known.model} (voter {number})"
            for number, (voter, known) in enumerate(found.voters.items(), start=1)
        },
        set_aside=found.set_aside,
        models=frozenset(voter.voter for voter in found.models),
        counts_models=found.about.models == "counted",
    )


def tune_process() -> None:
    """Set up Python for a process that only serves, once everything is loaded.

    What is loaded stays, so the garbage collector need not look through all of it, during which nobody can vote; and
    what is loaded later it looks through only rarely, because votes leave no cycles behind. The ledger's thread gives
    up Python's lock several times per vote; it gets it back after 0.2 ms instead of 5 ms if the thread that reads
    requests is busy.
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 1000)
    sys.setswitchinterval(0.0002)


def _sweep(ledger: Ledger) -> None:
    """Do what is due, and show the database that this server is alive."""
    voting.sweep(ledger)
    ledger.connection().execute(select(1))


def warm_up() -> None:
    """Compile or load the agents' code before anyone waits for it."""
    agent = new_agent("sceptic", {}, 3, seed=0)
    agent.tell(agent.ask(), Outcome.FIRST)
    agent.cancel(agent.ask())


def _refold_plan(ledger: Ledger, study: str) -> tuple[NewStudy, frozenset[str]]:
    found = find_study(ledger, study)
    return found.about, found.set_aside


def _end_refold(ledger: Ledger, study: str, learner: Learner, without: frozenset[str]) -> None:
    """Fold what happened meanwhile, and adopt the learner unless other voters are set aside by now."""
    found = find_study(ledger, study)
    if found.set_aside == without:
        learner.impose(read_events(ledger.connection(), study=study, after=learner.position), without)
        ledger.adopt(found, learner)
