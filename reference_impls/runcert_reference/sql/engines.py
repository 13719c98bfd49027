"""How connections to a database are made and set up; the one place that knows what SQLite needs.

Every connection is in autocommit, so that one statement is one transaction: SQLite takes its write lock at once and never has
to turn a read lock into a write lock, which is where it refuses without waiting.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

__all__ = ["async_engine", "engine", "sqlite_url"]

LOCK_WAIT = 3.0
"""How long a statement waits for the locks of others, and how long a call waits for a connection, in seconds.

A call waits at most twice (connection, statement), which stays below the maximum wait that the store declares.
"""

_PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA fullfsync=ON")
"""What each connection sets for itself; the journal mode belongs to the file and is set by the migration."""

_OPTIONS: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "skip_autocommit_rollback": True,
    "hide_parameters": True,
    "pool_timeout": LOCK_WAIT,
    "connect_args": {"timeout": LOCK_WAIT},
}


def sqlite_url(path: Path, *, create: bool = False) -> URL:
    """Give the URL of a database file.

    Args:
        path: the file.
        create: True to make the file where there is none; otherwise opening a missing one fails.
    """
    query = {"mode": "rwc" if create else "rw", "uri": "true"}
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query=query)


def engine(url: URL) -> Engine:
    """Make an engine whose connections are set up for this store; the caller disposes of it."""
    made = create_engine(url, **_OPTIONS)
    event.listen(made, "connect", _set_up)
    return made


def async_engine(url: URL) -> AsyncEngine:
    """Make the same engine for an event loop."""
    made = create_async_engine(url.set(drivername="sqlite+aiosqlite"), **_OPTIONS)
    event.listen(made.sync_engine, "connect", _set_up)
    logging.getLogger("aiosqlite").addFilter(_shows_no_parameters)
    return made


def _shows_no_parameters(record: logging.LogRecord) -> bool:
    """Drop what aiosqlite logs of each statement: its parameters hold attempt tokens, and ``hide_parameters`` cannot reach it."""
    return record.levelno > logging.DEBUG


def _set_up(connection: Any, record: object) -> None:  # noqa: ARG001  # the signature of the event
    # Text that is no UTF-8 is a damaged record like any other; it must not end the statement that meets it.
    getattr(connection, "driver_connection", connection).text_factory = _lenient_text
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _lenient_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")
