"""Runs the migrations on the connection that :func:`fairduel.service.events.schema.migrate` passes."""

from alembic import context

if hasattr(context, "config"):  # not if something else imports this file
    context.configure(connection=context.config.attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()
