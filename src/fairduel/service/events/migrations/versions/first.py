"""The first schema: every table as declared, because no schema has been released; a second revision must freeze it."""

from alembic import op

from fairduel.service.events.schema import metadata

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    metadata.create_all(op.get_bind())
