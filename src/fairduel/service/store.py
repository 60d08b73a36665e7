"""A store: the log, the tables that follow from it, and saved learners, of which one server at a time writes."""

import fcntl
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, func, insert, select

from fairduel.errors import BadInputError
from fairduel.service import learner as learners
from fairduel.service import schema
from fairduel.service.gold import GOLD_WEIGHT, compared
from fairduel.service.learner import DivergedError, Learner
from fairduel.service.locations import DATABASE, Location, open_sqlite
from fairduel.service.log import ABOUT_DUELS, Event, Kind, read_event
from fairduel.service.logs import log_failure
from fairduel.service.state import LastAnswer, OpenDuel, State, StudyState, add_open


class Store(ABC):
    """What a server stores.

    Args:
        where: Where it is.
        engine: For reading.
    """

    def __init__(self, where: Location, engine: Engine) -> None:
        self.where, self.engine = where, engine

    @abstractmethod
    def writer(self) -> Connection:
        """Return the connection that writes."""

    @abstractmethod
    def forget(self) -> None:
        """Remove what was erased from where the database may still have it."""

    @abstractmethod
    def save_learner(self, study: str, state: dict[str, Any]) -> None:
        """Save a study's learner."""

    def close(self) -> None:
        """Close all files and connections."""
        self.engine.dispose()

    def secret(self, connection: Connection) -> bytes:
        """Return the key of the hash that decides sides, created at first use."""
        table = schema.secrets
        found = connection.execute(select(table.c.value).where(table.c.name == "sides")).scalar()
        if found is None:
            found = secrets.token_bytes(32)
            connection.execute(insert(table), {"name": "sides", "value": found})
            connection.commit()
        return bytes(found)

    def load(self, connection: Connection) -> tuple[State, list[tuple[StudyState, Learner]]]:
        """Read the state at the end of the log.

        Returns:
            The state, and the studies whose learners folded the log to other duels than those recorded, each with a
            refolded learner to adopt.
        """
        state = load_state(connection)
        diverged = list[tuple[StudyState, Learner]]()
        for study in state.studies.values():
            try:
                study.learner = load_learner(self.where, connection, study)
            except DivergedError as error:
                log_failure("learner refolded", error)
                refolded = Learner(study.about)
                refolded.impose(read_events(connection, study=study.study), study.set_aside)
                diverged.append((study, refolded))
        return state, diverged


def load_learner(where: Location, connection: Connection, study: StudyState) -> Learner:
    """Read the last saved learner of a study and fold the rest of the log."""
    refolded = last_refold(connection, study.study)
    learner = saved_learner(where, connection, study)
    if learner is not None:
        known = select(schema.events.c.hash).where(schema.events.c.position == learner.position)
        digest = connection.execute(known).scalar()
        if digest != learner.digest or (refolded is not None and learner.position < refolded.position):
            learner = None  # of another log, or out of date
    return folded_learner(connection, study, learner, refolded)


class FolderStore(Store):
    """The files of one folder.

    Args:
        folder: Created if need be, readable by its owner only.

    Raises:
        BadInputError: Another server uses the folder, or it holds a newer version's store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "learners").mkdir(exist_ok=True)
            self._lock: IO[bytes] = (folder / "lock").open("ab")
        except OSError as error:
            raise BadInputError(f"cannot use the folder {folder}: {error.strerror}.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise BadInputError(
                f"another fairduel server uses {folder}; stop it or choose another --folder."
            ) from error
        path = folder / DATABASE
        path.touch(mode=0o600)
        super().__init__(folder, open_sqlite(path))
        try:
            with self.engine.begin() as connection:
                schema.migrate(connection)
        except BaseException:
            self.close()
            raise

    def writer(self) -> Connection:
        """Return a connection; the lock on the folder keeps other servers away."""
        return self.engine.connect()

    def close(self) -> None:
        """Close all files."""
        super().close()
        self._lock.close()

    def forget(self) -> None:
        """Empty the write-ahead log."""
        with self.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def save_learner(self, study: str, state: dict[str, Any]) -> None:
        """Write a study's learner to its file."""
        learners.save(_learner_file(self._folder, study), state)


def saved_learner(where: Location, connection: Connection, study: StudyState) -> Learner | None:
    """Return the saved learner of a study, or None if there is none that can be read."""
    if isinstance(where, Path):
        return learners.load(_learner_file(where, study.study), study.about)
    query = select(schema.learners.c.content).where(schema.learners.c.study == study.study)
    content = connection.execute(query).scalar()
    return None if content is None else learners.load(bytes(content), study.about)


def _learner_file(folder: Path, study: str) -> Path:
    return folder / "learners" / f"{study}.npz"


def folded_learner(connection: Connection, study: StudyState, start: Learner | None, refolded: Event | None) -> Learner:
    """Fold the log of a study from a saved learner, or else from the last refold or from the start of the log."""
    if start is None and refolded is not None:
        before = read_events(connection, study=study.study, last=refolded.position)
        start = Learner.refolded(study.about, before, refolded.body["without"])
    learner = start or Learner(study.about)
    for each in read_events(connection, study=study.study, after=learner.position):
        learner.fold(each)
    return learner


def last_refold(connection: Connection, study: str) -> Event | None:
    """Return the event that records a study's last refold, if any."""
    events = schema.events
    query = select(events).where(events.c.kind == Kind.REFOLDED.value, events.c.study == study)
    row = connection.execute(query.order_by(events.c.position.desc()).limit(1)).one_or_none()
    return None if row is None else read_event(*row)


def read_events(
    connection: Connection, *, study: str | None = None, after: int = 0, last: int | None = None
) -> Iterator[Event]:
    """Yield the events of one study, or of all, in order, a thousand at a time.

    Args:
        connection: Where to read.
        study: Id of the study; None for the whole log.
        after: Position of the last event to leave out.
        last: Position of the last event to return.
    """
    events = schema.events
    while True:
        query = select(events).where(events.c.position > after).order_by(events.c.position).limit(1000)
        if study is not None:
            query = query.where(events.c.study == study)
        if last is not None:
            query = query.where(events.c.position <= last)
        rows = connection.execute(query).all()
        for row in rows:
            yield read_event(*row)
        if len(rows) < 1000:
            return
        after = rows[-1].position


def load_state(connection: Connection) -> State:
    """Read the state from the tables, with new learners."""
    # First the duels: the studies' agents wait for compiled code, which another thread loads meanwhile.
    duels = _read_duels(connection)
    state, events = State(), schema.events
    query = select(events).where(events.c.kind.in_([kind.value for kind in Kind if kind not in ABOUT_DUELS]))
    for row in connection.execute(query.order_by(events.c.position)):
        state.apply(read_event(*row), learn=False)
    last = connection.execute(select(events).order_by(events.c.position.desc()).limit(1)).one_or_none()
    if last is not None:
        state.position, state.hash, state.at = last.position, last.hash, last.at
    _add_duels(state.studies, duels)
    _load_seen(connection, state.studies)
    _load_participants(connection, state.studies)
    return state


class _Duels(NamedTuple):
    """What the state knows about the duels of all studies."""

    tally: Sequence[Sequence[Any]]
    pairs: Sequence[Sequence[Any]]
    tests: Sequence[Sequence[Any]]
    current: Sequence[Row[Any]]


def _read_duels(connection: Connection) -> _Duels:
    """Read the duels of all studies at once, each query in the table's order on disk, which is fast."""
    duels = schema.duels.c
    tally = select(duels.study, duels.voter, duels.status, func.count(), func.count(duels.repeats))
    pairs = select(duels.study, duels.first, duels.second, func.count())
    pairs = pairs.where(duels.repeats.is_(None), duels.weight > 0.0)
    tests = select(duels.study, duels.voter, duels.context, duels.first, duels.second)
    current = select(schema.duels).where(duels.status.in_(["open", "voted", "skipped"]), ~duels.settled)
    queries = (
        tally.group_by(duels.voter, duels.status, duels.study),
        pairs.group_by(duels.first, duels.second, duels.study),
        tests.where(duels.weight == GOLD_WEIGHT),
        current.order_by(duels.issued),
    )
    return _Duels(*(connection.execute(query).all() for query in queries))


def _add_duels(studies: Mapping[str, StudyState], duels: _Duels) -> None:
    for study, voter, status, count, repeats in duels.tally:
        found = studies[study].voters[voter]
        found.issued += count - repeats
        if status != "open":
            studies[study].counts[status] += count
        if status in {"voted", "skipped"}:
            setattr(found, "votes" if status == "voted" else "skips", count)
    for study, first, second, count in duels.pairs:
        studies[study].shown[first] += count
        studies[study].shown[second] += count
    for study, voter, *pair in duels.tests:
        studies[study].voters[voter].tests.add(compared(*pair))
    for row in duels.current:
        duel = OpenDuel(row.duel, row.voter, row.context, row.first, row.second, row.first_is_left, row.deadline)
        if row.status == "open":
            add_open(studies[row.study], duel)
        else:
            studies[row.study].voters[row.voter].last = LastAnswer(duel, row.answer, row.answered_at)


def _load_seen(connection: Connection, studies: Mapping[str, StudyState]) -> None:
    """Read what voters have compared where nobody may get the same pair twice."""
    duels = schema.duels.c
    once = [study.study for study in studies.values() if not study.about.repeat_pairs]
    query = select(duels.study, duels.voter, duels.context, duels.first, duels.second).where(duels.study.in_(once))
    for study, voter, *pair in connection.execute(query):
        studies[study].voters[voter].seen.add(compared(*pair))


def _load_participants(connection: Connection, studies: Mapping[str, StudyState]) -> None:
    personal = schema.personal.c
    query = select(personal.study, personal.text, personal.voter).where(personal.field == "participant")
    for study, participant, voter in connection.execute(query):
        studies[study].participants[participant] = voter
