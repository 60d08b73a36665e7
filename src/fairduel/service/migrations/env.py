"""Runs the migrations on the connection that :func:`fairduel.service.schema.migrate` passes."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
