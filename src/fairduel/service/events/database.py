"""A store: the log, the tables that follow from it, and saved learners, of which one server at a time writes.

It is in a folder, with SQLite, or in a PostgreSQL database.
"""

import fcntl
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, insert, make_url, select, update
from sqlalchemy.exc import ArgumentError, DBAPIError

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError
from fairduel.service.events import schema
from fairduel.service.events.kinds import Refolded, read_event
from fairduel.service.events.log import KINDS, Event
from fairduel.service.events.state import LastAnswer, OpenDuel, State, StudyState
from fairduel.service.problems import Problem
from fairduel.service.server_log import log_failure
from fairduel.service.study import learner as learners
from fairduel.service.study.gold import compared
from fairduel.service.study.learner import DivergedError, Learner

Location = Path | URL
DATABASE = "fairduel.db"
"""The file in a folder."""
SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")
"""What a connection to SQLite is set to; a reader leaves out the first."""
_POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
# A database that has gone away is noticed within 5 s, even if it says nothing.
_CONNECTION = {
    "application_name": "fairduel",
    "connect_timeout": "5",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}


def location(text: str) -> Location:
    """Return the database or the folder that a text names.

    >>> location("votes"), str(location("postgres://me:secret@db.example/votes"))
    (PosixPath('votes'), 'postgresql+psycopg://me:***@db.example/votes')
    """
    return database(text) if "://" in text else Path(text)


def spelled(where: Location) -> str:
    """Return the text that :func:`location` reads, with the password if there is one."""
    return str(where) if isinstance(where, Path) else where.render_as_string(hide_password=False)


def database(text: str) -> URL:
    """Return the address of a PostgreSQL database; a refusal does not repeat it, because it may hold a password."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    if url is None or url.drivername not in _POSTGRES:
        raise BadInputError("the address of a database looks like postgresql://user@host/name.")
    return url.set(drivername="postgresql+psycopg")


def described(where: Location) -> str:
    """Return the name of a folder, or the address of a database without user, password and options.

    >>> described(location("postgresql://me:secret@db.example:5433/votes?connect_timeout=3"))
    'postgresql://db.example:5433/votes'
    """
    if isinstance(where, Path):
        return str(where)
    port = "" if where.port is None else f":{where.port}"
    return f"postgresql://{where.host or ''}{port}/{where.database or ''}"


def open_sqlite(path: Path, *, read_only: bool = False) -> Engine:
    """Open a database so that a commit returns only after the data are on disk."""
    url = f"sqlite:///file:{path.resolve()}?mode={'ro' if read_only else 'rw'}&uri=true"
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 10}, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def _(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        for setting in SETTINGS[read_only:]:
            cursor.execute(f"PRAGMA {setting}")
        cursor.close()

    return engine


def open_postgres(url: URL, **pool: Any) -> Engine:
    """Open a database; options in its address go before ours."""
    with needs_extra("postgres"):
        return create_engine(url.set(query=_CONNECTION | dict(url.query)), hide_parameters=True, **pool)


def connect(engine: Engine) -> Connection:
    """Connect to a PostgreSQL database, or say in one sentence why that fails."""
    try:
        return engine.connect()
    except DBAPIError as error:
        first_line = str(error.orig).strip().partition("\n")[0]
        reason = first_line.rpartition(" failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
        raise BadInputError(f"cannot open {described(engine.url)}: {reason}.") from error


@contextmanager
def reading(where: Location) -> Iterator[Connection]:
    """Open a store to read it as it is at this moment, also while a server uses it."""
    if isinstance(where, Path):
        path = where / DATABASE
        if not path.is_file():
            raise BadInputError(f"{where} has no fairduel store; name the --folder of a server.")
        engine = open_sqlite(path, read_only=True)
    else:
        as_now = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        engine = open_postgres(where, execution_options=as_now)
    try:
        with engine.connect() if isinstance(where, Path) else connect(engine) as connection:
            if isinstance(where, Path):
                connection.exec_driver_sql("BEGIN")
            elif not schema.has_tables(connection):
                raise BadInputError(f"{described(where)} has no fairduel store; name the --database of a server.")
            yield connection
    finally:
        engine.dispose()


Rows = Sequence[Any]
_FORGET_SECONDS = 20.0  # that erasing may wait for readers


class VoteStore(ABC):
    """What a server stores."""

    def __init__(self, where: Location, engine: Engine) -> None:
        self.where, self.engine = where, engine

    @abstractmethod
    def writer(self) -> Connection:
        """Return the connection that writes."""

    @abstractmethod
    def forget(self) -> None:
        """Remove what was erased from where the database may still have it.

        Raises:
            Problem: It is still there.
        """

    @abstractmethod
    def save_learner(self, study: str, state: dict[str, Any]) -> None:
        """Save a study's learner."""

    @abstractmethod
    def drop_learner(self, study: str) -> None:
        """Delete a study's learner."""

    def close(self) -> None:
        """Close all files and connections."""
        self.engine.dispose()

    def probe(self, connection: Connection) -> None:
        """Write something, to see whether that works; the caller commits."""
        table = schema.secrets
        connection.execute(update(table).where(table.c.name == "sides").values(value=table.c.value))

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


class FolderStore(VoteStore):
    """The files of one folder, which is created if need be, readable by its owner only.

    Raises:
        BadInputError: Another server uses the folder, or it holds another version's store.
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
                f"another fairduel server uses {folder}; stop it, choose another --folder, or add to it: poll --server."
            ) from error
        path = folder / DATABASE
        path.touch(mode=0o600)
        super().__init__(folder, open_sqlite(path))
        try:
            with self.engine.begin() as connection:
                schema.create_tables(connection)
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
        """Empty the write-ahead log, which has to wait for those who read older data from it."""
        give_up = time.monotonic() + _FORGET_SECONDS
        while True:
            with self.engine.connect() as connection:
                is_busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            if not is_busy:
                return
            if time.monotonic() > give_up:
                raise Problem(503, "storage", "It is erased, but still in a log on disk; repeat this in a while.", 10)
            time.sleep(0.1)

    def save_learner(self, study: str, state: dict[str, Any]) -> None:
        """Write a study's learner to its file."""
        learners.save(_learner_file(self._folder, study), state)

    def drop_learner(self, study: str) -> None:
        """Delete a study's file."""
        _learner_file(self._folder, study).unlink(missing_ok=True)


def saved_learner(where: Location, connection: Connection, study: StudyState) -> Learner | None:
    """Return the saved learner of a study, or None if there is none that can be read."""
    if isinstance(where, Path):
        return learners.read_learner(_learner_file(where, study.study), study.about)
    query = select(schema.learners.c.content).where(schema.learners.c.study == study.study)
    content = connection.execute(query).scalar()
    return None if content is None else learners.read_learner(bytes(content), study.about)


def saved_states(where: Location, connection: Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each study with the state of its saved learner, if that can be read."""
    if isinstance(where, Path):
        found = [(file.stem, file) for file in sorted((where / "learners").glob("*.npz"))]
        yield from ((study, state) for study, file in found if (state := learners.state_of(file)) is not None)
    else:
        for study, content in connection.execute(select(schema.learners)):
            if (state := learners.state_of(bytes(content))) is not None:
                yield study, state


def _learner_file(folder: Path, study: str) -> Path:
    return folder / "learners" / f"{study}.npz"


def folded_learner(
    connection: Connection, study: StudyState, start: Learner | None, refolded: Event[Refolded] | None
) -> Learner:
    """Fold the log of a study from a saved learner, or else from the last refold or from the start of the log."""
    if start is None and refolded is not None:
        before = read_events(connection, study=study.study, last=refolded.position)
        start = Learner.refolded(study.about, before, refolded.body.without)
    learner = start or Learner(study.about)
    for each in read_events(connection, study=study.study, after=learner.position):
        learner.fold(each)
    return learner


def last_refold(connection: Connection, study: str) -> Event[Refolded] | None:
    """Return the event that records a study's last refold, if any."""
    events = schema.events
    query = select(events).where(events.c.kind == Refolded.kind, events.c.study == study)
    row = connection.execute(query.order_by(events.c.position.desc()).limit(1)).one_or_none()
    return None if row is None else read_event(*row)


def read_events(
    connection: Connection, *, study: str | None = None, after: int = 0, last: int | None = None
) -> Iterator[Event[Any]]:
    """Yield the events of one study, or of all, after a position up to a last one, a thousand at a time."""
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
    """Read the state at the end of the log, with new learners.

    Table ``duels`` is its snapshot as far as duels are concerned; all other events, which are few, are applied again.
    """
    events, duels, personal = schema.events, schema.duels.c, schema.personal.c
    # First the duels, all studies at once and in the table's order on disk: that is fast, and the studies' agents wait
    # for compiled code, which another thread loads meanwhile.
    tally = select(duels.study, duels.voter, duels.status, func.count(), func.count(duels.repeats))
    asked = select(duels.study, duels.first, duels.second, func.count())
    pairs = select(duels.study, duels.voter, duels.context, duels.first, duels.second)
    current = select(schema.duels).where(duels.status.in_(["open", "voted", "skipped"]), ~duels.settled)
    found = [
        connection.execute(query).all()
        for query in (
            tally.group_by(duels.voter, duels.status, duels.study),
            asked.where(duels.repeats.is_(None), duels.weight > 0.0).group_by(duels.first, duels.second, duels.study),
            pairs.where(duels.gold),
            current.order_by(duels.issued),
        )
    ]
    state = State()
    query = select(events).where(events.c.kind.in_([name for name, kind in KINDS.items() if not kind.about_duel]))
    for row in connection.execute(query.order_by(events.c.position)):
        state.apply(read_event(*row), learn=False)
    last = connection.execute(select(events).order_by(events.c.position.desc()).limit(1)).one_or_none()
    if last is not None:
        state.position, state.hash, state.at = last.position, last.hash, last.at
    studies = state.studies
    _add_duels(studies, *found)
    once = [study.study for study in studies.values() if not study.about.repeat_pairs]
    for study, voter, *pair in connection.execute(pairs.where(duels.study.in_(once))):
        studies[study].voters[voter].seen.add(compared(*pair))
    query = select(personal.study, personal.text, personal.voter).where(personal.field == "participant")
    for study, participant, voter in connection.execute(query):
        studies[study].participants[participant] = voter
    return state


def _add_duels(studies: dict[str, StudyState], tallies: Rows, asked: Rows, tests: Rows, current: Rows) -> None:
    for study, voter, status, count, repeats in tallies:
        found = studies[study].voters[voter]
        found.issued += count - repeats
        if status != "open":
            studies[study].counts[status] += count
        if status in {"voted", "skipped"}:
            setattr(found, "votes" if status == "voted" else "skips", count)
    for study, first, second, count in asked:
        studies[study].shown[first] += count
        studies[study].shown[second] += count
    for study, voter, *pair in tests:
        studies[study].voters[voter].tests.add(compared(*pair))
    for row in current:
        duel = OpenDuel.of(row)
        if row.status == "open":
            studies[row.study].open(duel)
        else:
            studies[row.study].voters[row.voter].last = LastAnswer(duel, row.answer, row.answered_at)
