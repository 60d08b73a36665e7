"""A running service: the ledger, the analyst, refolds in the background, and notifications of changes."""

import gc
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sqlalchemy import select

from fairduel.duel import Outcome
from fairduel.service.analysis.background import Analyst, Jobs
from fairduel.service.analysis.inputs import Subject
from fairduel.service.commands import operating, voting
from fairduel.service.commands.operating import find_study
from fairduel.service.events.database import VoteStore, read_events
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.lifecycle import ItemAdded
from fairduel.service.events.log import DamagedLogError, verified
from fairduel.service.notices import Courier, Target
from fairduel.service.problems import Problem
from fairduel.service.server_log import log_failure
from fairduel.service.sign_in import SignIn
from fairduel.service.study.learner import Learner
from fairduel.service.study.study import NewStudy, new_agent

_VERIFIED_AT_ONCE, _VERIFY_REST = 200, 4.0  # events, and how long to rest after them in multiples of their time


class Service:
    """Everything behind the HTTP interface.

    >>> import tempfile
    >>> service = Service(Path(tempfile.mkdtemp()))
    >>> service.ledger.state.position
    0
    >>> service.close()
    """

    def __init__(self, where: VoteStore | Path) -> None:
        compiling = threading.Thread(target=warm_up)
        compiling.start()
        self.ledger = Ledger(where, sweep=_sweep)
        compiling.join()
        self.is_closed = False
        self._at_end: list[Callable[[], None]] = []
        self._watchers: list[Callable[[str | None], None]] = []
        self._refolds = ThreadPoolExecutor(1, "fairduel-refold")
        self.analyst = Analyst(self.ledger.store, self._describe, self._analysed)
        self.jobs = Jobs(self.ledger.store.where, self._announce)
        self.damage = ""
        """What is wrong with the log, if anything; it is verified in the background after the start."""
        self.verified = 0
        """Up to which position the log was verified."""
        self._forgotten = 0.0  # when the last personal data were erased that are in no log on disk any more
        self._verifying = threading.Thread(target=self._verify, name="fairduel-verify", daemon=True)
        self.sign_in = SignIn()
        self.ledger.listen(self._changed)
        for study in list(self.ledger.state.studies.values()):
            self.analyst.want(study.study)
            if study.refolded_without != study.set_aside:
                self.refold(study.study)
        for deleted in self.ledger.run(operating.half_deleted):
            self.delete(deleted)
        self._verifying.start()

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self.is_closed = True
        with suppress(RuntimeError):  # the loop of the watchers may have ended
            self._announce(None)
        for stop in self._at_end:
            stop()
        self._verifying.join()
        self._refolds.shutdown(cancel_futures=True)
        self.jobs.close()
        self.analyst.close()
        self.ledger.close()

    def at_end(self, stop: Callable[[], None]) -> None:
        """Call a function when the service is closed, while it still works."""
        self._at_end.append(stop)

    def offer(self, sign_in: SignIn) -> None:
        """Let voters sign in in these ways."""
        self.sign_in, self.ledger.sign_ins = sign_in, sign_in.kinds
        self.at_end(sign_in.close)

    def notify(self, targets: Sequence[Target]) -> None:
        """Tell these what happens from now on, or since they were told last."""
        for target in targets:
            self.at_end(Courier(self.ledger, target).close)

    def watch(self, watcher: Callable[[str | None], None]) -> Callable[[], None]:
        """Call a function with each changed study, and None at the end, on another thread; returns what stops that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def refold(self, study: str) -> None:
        """Fold the log of a study again in the background, without the voters set aside, and use that learner then."""
        self._refolds.submit(self._refold, study)

    def add_item(self, study: str, added: ItemAdded, by: str) -> "Future[None]":
        """Add an item in the background, with a learner that has folded the log as if it had been there."""
        return self._refolds.submit(self._add_item, study, added, by)

    def _add_item(self, study: str, added: ItemAdded, by: str) -> None:
        def plan(ledger: Ledger) -> tuple[NewStudy, frozenset[str]]:
            return operating.check_item(ledger, study, added), find_study(ledger, study).set_aside

        def end(ledger: Ledger) -> bool:
            found = find_study(ledger, study)
            operating.check_item(ledger, study, added)
            if found.set_aside != without:
                return False
            learner.impose(read_events(ledger.connection(), study=study, after=learner.position), without)
            learner.fold(ledger.append(study, added))
            ledger.adopt(found, learner)
            return True

        is_done = False
        while not is_done:
            about, without = self.ledger.run(plan)
            learner = Learner(about)
            with self.ledger.store.engine.connect() as connection:
                learner.impose(read_events(connection, study=study), without)
            is_done = self.ledger.run(end, by)

    def delete(self, study: str) -> Future[None]:
        """Remove a deleted study from disk in the background; the future is done once nothing is left."""
        self.analyst.forget(study)
        return self._refolds.submit(self._delete, study)

    def _delete(self, study: str) -> None:
        before = self.ledger.state.position + 1
        while before:
            before = self.ledger.run(lambda ledger, last=before: operating.scrub(ledger, study, last))  # type: ignore[misc]
        self.ledger.drop_learner(study)
        self.ledger.store.forget()

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

    def _verify(self) -> None:
        """Verify the log as it was at the start, slowly, because people vote meanwhile."""
        last, began = self.ledger.state.position, time.monotonic()
        try:
            with self.ledger.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for event in verified(read_events(connection, last=last)):
                    self.verified = event.position
                    if event.position % _VERIFIED_AT_ONCE == 0:
                        time.sleep(_VERIFY_REST * (time.monotonic() - began))
                        began = time.monotonic()
                    if self.is_closed:
                        return
        except DamagedLogError as error:
            self.damage = str(error)
            log_failure("the log is damaged; restore a backup (fairduel store)", error)
        except Exception as error:  # noqa: BLE001  # nothing else depends on it
            log_failure("the log was not verified", error)

    def _describe(self, study: str) -> tuple[Subject, int, int]:
        def describe(ledger: Ledger) -> tuple[Subject, int, int]:
            found = find_study(ledger, study)
            return Subject.of(found), ledger.state.position, found.counts["voted"]

        return self.ledger.run(describe)

    def _changed(self, _: int, studies: frozenset[str]) -> None:
        known = self.ledger.state.studies
        for study in studies:
            if study in known:
                self.analyst.want(study)
                if known[study].erased_at > self._forgotten:
                    self._forgotten = known[study].erased_at
                    self._refolds.submit(self._forget)
            if study:
                self._announce(study)

    def _forget(self) -> None:
        """Remove personal data that were erased because their time is over from where they may still be."""
        try:
            self.ledger.store.forget()
        except Problem as problem:
            log_failure("erased personal data may still be in the write-ahead log", problem)

    def _analysed(self, study: str) -> None:
        """Record what an analysis decides, which may stop the study."""
        verdicts = self.analyst.latest(study).results.get("verdicts", [])
        if verdicts:
            with suppress(Problem):  # the study may be gone, or the disk full
                self.ledger.run(lambda ledger: voting.stop_decided(ledger, study, verdicts))
        self._announce(study)

    def _announce(self, study: str | None) -> None:
        for watcher in list(self._watchers):
            watcher(study)


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
