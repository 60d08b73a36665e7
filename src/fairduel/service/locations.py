"""Where a store is: in a folder, with SQLite, or in a PostgreSQL database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError
from fairduel.service.schema import known_version

Location = Path | URL
DATABASE = "fairduel.db"
"""The file in a folder."""
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
        if not read_only:
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA secure_delete = ON")
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
            elif known_version(connection) is None:
                raise BadInputError(f"{described(where)} has no fairduel store; name the --database of a server.")
            yield connection
    finally:
        engine.dispose()
