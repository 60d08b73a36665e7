"""A store in PostgreSQL, which several servers share and one of them, the leader, writes.

The leader holds an advisory lock on the very connection that writes, and that connection is never replaced. Whoever
loses the lock has therefore lost the connection and cannot commit, even if it notices late. PostgreSQL
frees the lock when the leader ends, when its machine vanishes (keepalives), and when it hangs: a leader sends something
every second, and one that is silent for some seconds is disconnected.
"""

import secrets
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import URL, Connection, Row, column, delete, event, func, insert, select, table
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import ProgrammingError

from fairduel.agents.parts.state_file import pack_state
from fairduel.errors import BadInputError
from fairduel.service.events import schema
from fairduel.service.events.database import VoteStore, connect, described, open_postgres

SILENCE_SECONDS = 6.0
"""Seconds of silence after which PostgreSQL disconnects a leader."""
_LOCK = 0x66616972  # the class of our advisory locks
_SETTINGS = table("pg_settings", column("name"), column("setting"))
_KEEPALIVES = {"tcp_keepalives_idle": "2", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "3"}


@dataclass(frozen=True)
class Leader:
    """The server that runs all commands.

    Args:
        term: 1, 2, …: how many servers have led.
        address: Where the other servers reach it.
        secret: What they authenticate with.
    """

    term: int
    address: str
    secret: bytes = field(repr=False)


class DatabaseSession:
    """One connection to a database, on which a server can become its leader; it is never replaced by another one.

    Raises:
        BadInputError: There is no such database, or it could lose what it has committed, or is of a newer version.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.is_lost = False
        """Whether the connection, and with it the lock, is gone."""
        self._engine = open_postgres(url, pool_size=1, max_overflow=0)
        event.listen(self._engine, "do_connect", self._connect_once)
        self._is_first = True
        self.connection = connect(self._engine)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _connect_once(self, *_: Any) -> None:
        if not self._is_first:
            self.is_lost = True
            raise ConnectionError("the connection to the database, and with it the lock, was lost")
        self._is_first = False

    def _prepare(self) -> None:
        found = {row.name: row.setting for row in self.connection.execute(select(_SETTINGS))}
        name = described(self.url)
        for setting in ("fsync", "full_page_writes"):
            if found[setting] == "off":
                raise BadInputError(f"{name} has {setting} = off, so a crash could lose votes; turn it on.")
        if found["server_encoding"] != "UTF8":
            raise BadInputError(f"{name} cannot hold all texts; create the database with ENCODING 'UTF8'.")
        if found["transaction_read_only"] == "on":
            raise BadInputError(f"{name} is read-only; name the primary server.")
        schema.has_tables(self.connection)
        wanted = _KEEPALIVES | ({"synchronous_commit": "on"} if found["synchronous_commit"] == "off" else {})
        self._set(self.connection, wanted)
        self.connection.commit()

    @staticmethod
    def _set(connection: Connection, settings: dict[str, str]) -> None:
        for name, value in settings.items():  # older versions of PostgreSQL do not have all of them
            connection.execute(select(func.set_config(name, value, False)).where(_SETTINGS.c.name == name))

    def try_to_lead(self) -> bool:
        """Take the lock, unless another server has it."""
        lock = func.pg_try_advisory_lock(_LOCK, func.hashtext(func.current_schema()))
        is_ours = bool(self.connection.execute(select(lock)).scalar_one())
        self.connection.commit()
        return is_ours

    def leader(self) -> Leader | None:
        """Return the current leader, or the last one."""
        try:
            return _leader(self.connection.execute(select(schema.leader)).one_or_none())
        except ProgrammingError:  # nobody has led yet
            return None
        finally:
            self.connection.rollback()

    def own_address(self) -> str:
        """Return the address under which the database sees this machine."""
        found = self.connection.execute(select(func.host(func.inet_client_addr()))).scalar()
        self.connection.rollback()
        return found or "127.0.0.1"

    def limit_silence(self, connection: Connection) -> None:
        """Ask the database to end this session if it is silent for too long."""
        milliseconds = str(round(1000 * SILENCE_SECONDS))
        names = ("idle_session_timeout", "idle_in_transaction_session_timeout")
        self._set(connection, dict.fromkeys(names, milliseconds))

    def close(self) -> None:
        """Close the connection, which frees the lock."""
        self.connection.close()
        self._engine.dispose()


def _leader(row: Row[Any] | None) -> Leader | None:
    return None if row is None else Leader(row.term, row.address, bytes(row.secret))


class PostgresStore(VoteStore):
    """The store of the leader, whom other servers reach at an address; it closes its session."""

    def __init__(self, session: DatabaseSession, address: str) -> None:
        super().__init__(session.url, open_postgres(session.url, pool_pre_ping=True))
        self.session = session
        try:
            self.leader = self._begin_term(session.connection, address)
        except BaseException:
            self.close()
            raise

    @classmethod
    def alone(cls, url: URL) -> Self:
        """Open a database that no other server leads."""
        session = DatabaseSession(url)
        if not session.try_to_lead():
            session.close()
            raise BadInputError(f"another fairduel server leads {described(url)}; stop it first.")
        return cls(session, "")

    @staticmethod
    def _begin_term(connection: Connection, address: str) -> Leader:
        schema.create_tables(connection)
        before = _leader(connection.execute(select(schema.leader)).one_or_none())
        leader = Leader(1 if before is None else before.term + 1, address, secrets.token_bytes(32))
        connection.execute(delete(schema.leader))
        row = {"term": leader.term, "address": leader.address, "secret": leader.secret}
        connection.execute(insert(schema.leader), row)
        connection.commit()
        return leader

    def writer(self) -> Connection:
        """Return the connection that holds the lock."""
        return self.session.connection

    def close(self) -> None:
        """Close all connections, which frees the lock."""
        super().close()
        self.session.close()

    def forget(self) -> None:
        """Reclaim the rows that were erased; PostgreSQL's own log keeps them until it is recycled."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM personal, events, duels, answers")

    def drop_learner(self, study: str) -> None:
        """Delete a study's row."""
        with self.engine.begin() as connection:
            connection.execute(delete(schema.learners).where(schema.learners.c.study == study))

    def save_learner(self, study: str, state: dict[str, Any]) -> None:
        """Write a study's learner to its row; an old one that a former leader writes late does no harm."""
        content = {"content": pack_state(state)}
        row = upsert(schema.learners).values(study=study, **content)
        with self.engine.begin() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["study"], set_=content))
