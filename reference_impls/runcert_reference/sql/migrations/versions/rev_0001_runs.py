"""Runs, one row for each id."""

from __future__ import annotations

from alembic import op

from runcert_reference.sql.schema import folder_of, statements_of

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table and the index by tenant."""
    for statement in statements_of(folder_of(op.get_bind()), "0001_runs"):
        op.execute(statement)
