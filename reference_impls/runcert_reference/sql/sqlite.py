"""SQLite: one file, processes of one machine.

Every connection is in autocommit, so that one statement is one transaction: SQLite takes its write lock at once and never has
to turn a read lock into a write lock, which is where it refuses without waiting.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection

from runcert_contract import (
    Capability,
    Claims,
    Contended,
    CorruptRecord,
    Fault,
    Handles,
    Kept,
    Limits,
    Misconfigured,
    Scope,
    Stance,
    StoreUnavailable,
    TooLarge,
)
from runcert_reference.sql.dialects import Dialect, Meaning

__all__ = ["CLAIMS", "SQLITE", "file_of", "insist_on_file", "meaning_of", "sqlite_url"]

CLAIMS = Claims(
    scope=Scope.HOST,
    handles=Handles.SHARED,
    durability={Fault.CLOSE: Kept()},
    capabilities=dict.fromkeys(
        (Capability.ENUMERATES, Capability.GUARDS_TERMINAL, Capability.VERSIONED_SCHEMA), Stance.CLAIMED
    ),
    limits=Limits(identifier=1024, text=100_000, depth=64, accepts_up_to=1_000_000, refuses_above=1_000_000),
    topology="one SQLite file in WAL mode with synchronous=FULL, processes of one machine",
)
"""What is said of the store on SQLite."""

LOCK_WAIT = 3.0
"""How long a statement waits for the locks of others, and how long a call waits for a connection, in seconds.

A call waits at most twice (connection, statement), which stays below the maximum wait that the store declares.
"""

_PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA fullfsync=ON")
"""What each connection sets for itself; the journal mode belongs to the file and is set by the migration."""

_MEANINGS: Mapping[int, Meaning] = {
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        (Contended, "the database was locked by others for too long; try again"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM),
        (StoreUnavailable, "the database file cannot be opened or its disk is full; try again when it is back"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_NOTADB),
        (Misconfigured, "the database does not hold the tables of this store; run the migrations, or name the right file"),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        (Misconfigured, "the database file may not be written; change its permissions"),
    ),
    sqlite3.SQLITE_CORRUPT: (CorruptRecord, "the database file is damaged; restore it from a backup"),
    sqlite3.SQLITE_TOOBIG: (TooLarge, "the record is larger than this database keeps; store a smaller one"),
}
"""What each of SQLite's result codes means; all of these are raised before anything was written."""


def meaning_of(error: BaseException) -> Meaning | None:
    """Give what an error of the driver means, by SQLite's primary result code; None where that leaves it open."""
    return _MEANINGS.get(int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF)


def sqlite_url(path: Path, *, create: bool = False) -> URL:
    """Give the URL of a database file.

    Args:
        path: the file.
        create: True to make the file where there is none; otherwise opening a missing one fails.
    """
    query = {"mode": "rwc" if create else "rw", "uri": "true"}
    return URL.create("sqlite", database=f"file:{quote(str(path.absolute()))}", query=query)


def file_of(url: URL) -> Path | None:
    """Give the file that a URL of SQLite names; None for a database in memory, and for a URL of another database."""
    database = url.database or ""
    if url.get_backend_name() != "sqlite" or database in ("", ":memory:"):
        return None
    return Path(unquote(database.removeprefix("file:").partition("?")[0]) if database.startswith("file:") else database)


def insist_on_file(url: URL) -> None:
    """Refuse a file that is not there, although its directory is: it was never made, and opening must not make it.

    Raises:
        Misconfigured: there is no such file.
    """
    file = file_of(url)
    if file is not None and file.parent.is_dir() and not file.exists():
        raise Misconfigured(f"there is no database {file}; run the migrations, which make it, or name the right file")


def _options(url: URL, patience: float) -> Mapping[str, Any]:  # noqa: ARG001  # the same for every file
    return {"pool_timeout": LOCK_WAIT, "connect_args": {"timeout": LOCK_WAIT}}


def _set_up(connection: Any, mariadb: bool) -> None:  # noqa: ARG001  # the signature of every dialect
    # Text that is no UTF-8 is a damaged record like any other; it must not end the statement that meets it.
    getattr(connection, "driver_connection", connection).text_factory = _lenient_text
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _lenient_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")


def _check(connection: Connection) -> None:
    """Accept every file."""


def _begin_migration(connection: Connection) -> None:
    """Set the journal mode, which is kept in the file and cannot be set inside a transaction, and take the write lock."""
    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


SQLITE = Dialect(
    name="sqlite",
    driver="sqlite",
    async_driver="sqlite+aiosqlite",
    claims=CLAIMS,
    options=_options,
    fileno=None,
    set_up=_set_up,
    check=_check,
    begin_migration=_begin_migration,
    end_migration=("COMMIT",),
)
"""SQLite through the driver of the standard library, and aiosqlite."""
