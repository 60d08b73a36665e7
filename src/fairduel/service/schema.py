"""The tables: ``events`` is the log, ``duels`` and ``answers`` follow from it, the others hold what no log may hold."""

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

from fairduel.errors import BadInputError

metadata = MetaData()
_ID = String(32)

events = Table(
    "events",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("study", _ID, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at", Float(53), nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Index("events_by_kind", "kind", "position"),
)
duels = Table(
    "duels",
    metadata,
    Column("duel", _ID, primary_key=True),
    Column("study", _ID, nullable=False),
    Column("voter", _ID, nullable=False),
    Column("issued", BigInteger, nullable=False),  # position of the event
    Column("issued_at", Float(53), nullable=False),
    Column("deadline", Float(53), nullable=False),
    Column("context", Integer),
    Column("first", Integer, nullable=False),
    Column("second", Integer, nullable=False),
    Column("first_is_left", Boolean, nullable=False),
    Column("weight", Float(53), nullable=False),
    Column("repeats", _ID),  # the undone duel whose pair it shows again
    Column("status", String(8), nullable=False),  # open, voted, skipped, expired, undone
    Column("answer", String(8)),  # left, right, tie, skip
    Column("answered", BigInteger),  # position of the event
    Column("answered_at", Float(53)),
    Column("seconds", Float(53)),  # as the voter's browser measured them
    Column("settled", Boolean, nullable=False),  # whether an answer can no longer be undone
    Index("duels_by_study", "study", "status", "answered"),
    Index("duels_by_voter", "study", "voter", "issued"),
)
answers = Table(
    "answers",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("duel", _ID, nullable=False),
    Column("key", String(64), nullable=False),
    UniqueConstraint("duel", "key", name="answers_once"),
)
personal = Table(
    "personal",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),  # of the event that holds the hash
    Column("field", String(16), primary_key=True),  # name, participant, comment
    Column("study", _ID, nullable=False),
    Column("voter", _ID, nullable=False),
    Column("salt", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Index("personal_by_voter", "study", "voter"),
)
images = Table(
    "images",
    metadata,
    Column("image", String(64), primary_key=True),  # SHA-256 of the content
    Column("type", String(32), nullable=False),
    Column("content", LargeBinary, nullable=False),
)
secrets = Table("secrets", metadata, Column("name", String(16), primary_key=True), Column("value", LargeBinary))
learners = Table(  # only in PostgreSQL; beside SQLite they are files
    "learners",
    metadata,
    Column("study", _ID, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
leader = Table(  # which of the servers of a database runs all commands; in one row
    "leader",
    metadata,
    Column("term", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, …: how many servers have led
    Column("address", Text, nullable=False),  # where the other servers reach it
    Column("secret", LargeBinary, nullable=False),  # with which they prove who they are
)

LATEST = "0002"
"""The newest migration."""


def migrate(connection: Connection) -> None:
    """Create the tables, or bring those of an older version up to date; the caller commits."""
    version = known_version(connection)
    if version == LATEST:
        return
    from alembic import command  # noqa: PLC0415  # slow, and rarely needed
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")  # else each table is committed by itself, and a crash leaves some
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def known_version(connection: Connection) -> str | None:
    """Return the migration that the tables are at, or None if there are none; refuse those of a newer version."""
    version = schema_version(connection)
    if version is not None and version > LATEST:
        raise BadInputError(f"this store was written by a newer fairduel (schema {version}); upgrade fairduel.")
    return version


def schema_version(connection: Connection) -> str | None:
    """Return the migration that the tables are at, or None if there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)
