"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.String(32)
_POSITION = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "events",
        sa.Column("position", _POSITION, primary_key=True, autoincrement=False),
        sa.Column("study", _ID, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
    )
    op.create_index("events_by_kind", "events", ["kind", "position"])
    op.create_table(
        "duels",
        sa.Column("duel", _ID, primary_key=True),
        sa.Column("study", _ID, nullable=False),
        sa.Column("voter", _ID, nullable=False),
        sa.Column("issued", sa.BigInteger, nullable=False),
        sa.Column("issued_at", sa.Float(53), nullable=False),
        sa.Column("deadline", sa.Float(53), nullable=False),
        sa.Column("context", sa.Integer),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("second", sa.Integer, nullable=False),
        sa.Column("first_is_left", sa.Boolean, nullable=False),
        sa.Column("weight", sa.Float(53), nullable=False),
        sa.Column("repeats", _ID),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("answer", sa.String(8)),
        sa.Column("answered", sa.BigInteger),
        sa.Column("answered_at", sa.Float(53)),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("settled", sa.Boolean, nullable=False),
    )
    op.create_index("duels_by_study", "duels", ["study", "status", "answered"])
    op.create_index("duels_by_voter", "duels", ["study", "voter", "issued"])
    op.create_table(
        "answers",
        sa.Column("position", _POSITION, primary_key=True, autoincrement=False),
        sa.Column("duel", _ID, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.UniqueConstraint("duel", "key", name="answers_once"),
    )
    op.create_table(
        "personal",
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("field", sa.String(16), primary_key=True),
        sa.Column("study", _ID, nullable=False),
        sa.Column("voter", _ID, nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("personal_by_voter", "personal", ["study", "voter"])
    op.create_table(
        "images",
        sa.Column("image", sa.String(64), primary_key=True),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table("secrets", sa.Column("name", sa.String(16), primary_key=True), sa.Column("value", sa.LargeBinary))
