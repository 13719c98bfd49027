"""What an SQL store keeps of a run.

Identifiers are the bytes of their UTF-8 form on every dialect: no collation, no padding, no folding.  The record itself is
ASCII JSON; the columns beside it are what statements decide by.  These tables describe what ``migrations/`` creates and never
create anything themselves.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, MetaData, String, Table, Text

__all__ = ["FORMAT", "RUNS", "SCHEMA_VERSION", "bytes_of", "text_of"]

_METADATA = MetaData()

RUNS = Table(
    "runs",
    _METADATA,
    Column("run_id", LargeBinary, primary_key=True),
    Column("tenant_id", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("terminal", Boolean, nullable=False),
    Column("retired", Boolean, nullable=False),
    Column("payload", Text, nullable=False),
    Column("format", Integer, nullable=False),
)
"""One row for each id that was ever created.

A purge empties the row and marks it ``retired`` instead of deleting it: the primary key alone then refuses the id for ever, in
one statement and on every dialect, however create and purge overlap.
"""

FORMAT = 1
"""The form of payload that this release writes and reads."""

SCHEMA_VERSION = Table("alembic_version", _METADATA, Column("version_num", String(32), primary_key=True))
"""Which migration the tables are at; written by Alembic."""


def bytes_of(identifier: str) -> bytes:
    """Give the form in which an identifier is stored."""
    return identifier.encode("utf-8")


def text_of(identifier: bytes) -> str:
    """Give the identifier that is stored in this form; bytes that are no UTF-8 are shown escaped."""
    return bytes(identifier).decode("utf-8", "backslashreplace")
