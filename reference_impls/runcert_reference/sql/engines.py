"""How connections to a database are made and set up.

Every connection is in autocommit, so that one statement is one transaction.  What is particular to a database stands in its own module:
:mod:`.sqlite`, :mod:`.postgresql`, :mod:`.mysql`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from runcert_contract import Misconfigured
from runcert_reference.sql.deadlines import is_readable, watch
from runcert_reference.sql.dialects import CALL_SECONDS, Dialect
from runcert_reference.sql.mysql import MYSQL
from runcert_reference.sql.postgresql import POSTGRESQL
from runcert_reference.sql.sqlite import SQLITE, file_of, sqlite_url

__all__ = ["async_engine", "dialect_of", "engine", "sqlite_url"]

_DIALECTS: Mapping[str, Dialect] = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}

_OPTIONS: Mapping[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "skip_autocommit_rollback": True,
    "hide_parameters": True,
}


def dialect_of(url: URL) -> Dialect:
    """Give what the stores have to know of the database that a URL names.

    Raises:
        Misconfigured: they are not made for that one.
    """
    name = url.get_backend_name()
    if name not in _DIALECTS:
        raise Misconfigured(f"this store is not made for {name}; it knows {', '.join(_DIALECTS)}")
    return _DIALECTS[name]


def engine(url: URL, patience: float = CALL_SECONDS) -> Engine:
    """Make an engine whose connections are set up for this store; the caller disposes of it.

    Args:
        url: the database.
        patience: the longest time in seconds that a server is waited for.
    """
    dialect = dialect_of(url)
    made = create_engine(dialect.url(url), **_OPTIONS, **dialect.options(url, patience))
    _listen(made, dialect)
    return made


def async_engine(url: URL, patience: float = CALL_SECONDS) -> AsyncEngine:
    """Make the same engine for an event loop.

    Raises:
        Misconfigured: the database has no driver for one.
    """
    dialect = dialect_of(url)
    made = create_async_engine(dialect.url(url, asynchronous=True), **_OPTIONS, **dialect.options(url, patience))
    _listen(made.sync_engine, dialect)
    logging.getLogger("aiosqlite").addFilter(_shows_no_parameters)
    return made


def _shows_no_parameters(record: logging.LogRecord) -> bool:
    """Drop what aiosqlite logs of each statement: its parameters hold attempt tokens, and ``hide_parameters`` cannot reach it."""
    return record.levelno > logging.DEBUG


def _listen(made: Engine, dialect: Dialect) -> None:
    file = file_of(made.url)
    if file is not None:
        event.listen(made, "connect", _noting(file))
        event.listen(made, "checkout", _insisting(file))
    if dialect.fileno is not None:
        # Before SQLAlchemy asks the server anything, so that the deadline of the call holds for that, too.
        event.listen(made, "connect", _watching(dialect.fileno), insert=True)
        event.listen(made, "checkout", _taking(dialect.fileno))

    def set_up(connection: Any, record: object) -> None:  # noqa: ARG001  # the signature of the event
        dialect.set_up(connection, getattr(made.dialect, "is_mariadb", False))

    event.listen(made, "connect", set_up)


def _noting(file: Path) -> Callable[[Any, Any], None]:
    def connect(connection: Any, record: Any) -> None:  # noqa: ARG001  # the signature of the event
        record.info["file"] = _identity(file)

    return connect


def _insisting(file: Path) -> Callable[[Any, Any, Any], None]:
    """Give up a connection whose file was moved or changed for another: it would go on in a file that nobody else sees."""

    def checkout(connection: Any, record: Any, proxy: object) -> None:  # noqa: ARG001  # the signature of the event
        if _identity(file) != record.info["file"]:
            raise DisconnectionError

    return checkout


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116  # at every call, and half as fast through a Path
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _watching(fileno: Callable[[Any], int]) -> Callable[[Any, Any], None]:
    def connect(connection: Any, record: Any) -> None:  # noqa: ARG001  # the signature of the event
        watch(fileno(record.driver_connection))

    return connect


def _taking(fileno: Callable[[Any], int]) -> Callable[[Any, Any, Any], None]:
    def checkout(connection: Any, record: Any, proxy: object) -> None:  # noqa: ARG001  # the signature of the event
        number = fileno(record.driver_connection)
        if is_readable(number):  # the server ended it meanwhile: noticed before anything is sent, so that no write is in doubt
            raise DisconnectionError
        watch(number)

    return checkout
