"""The form in which each record is written, so that a release never takes the records of a newer one for damaged or for its own."""

from __future__ import annotations

from alembic import op

from runcert_reference.sql.schema import folder_of, statements_of

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; every record so far is in the first form."""
    for statement in statements_of(folder_of(op.get_bind()), "0002_formats"):
        op.execute(statement)
