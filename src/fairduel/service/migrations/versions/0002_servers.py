"""Several servers of one database: who leads, and saved learners that all of them can read."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add two tables, which SQLite leaves empty."""
    op.create_table(
        "learners",
        sa.Column("study", sa.String(32), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "leader",
        sa.Column("term", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
    )
