"""From what the driver raises to the errors of the contract, in one place.

The decision goes by SQLite's result codes, never by the text of a message.  Messages name the record and the way out; statement
parameters are hidden by the engine (``hide_parameters``), so the chained traceback shows no attempt token either.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from runcert_contract import (
    AlreadyExists,
    Contended,
    CorruptRecord,
    Misconfigured,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
    TooLarge,
)

__all__ = ["translated"]

_MEANINGS: Mapping[int, tuple[type[StoreError], str]] = {
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

_WRITE_LEFT_OPEN = (OutcomeUnknown, "the write failed in a way that leaves open whether it took effect; read before you go on")
_READ_FAILED = (StoreUnavailable, "the database could not be read; try again when it is back")


@contextmanager
def translated(what: str, *, record: str | None = None, writes: bool = False) -> Iterator[None]:
    """Let no error of SQLAlchemy or of a driver out of the body.

    Args:
        what: what the operation is about, for messages: "run 'r1'".
        record: the id of the record, where there is one.
        writes: True when the body writes, so that some failures leave it open whether it did.

    Raises:
        StoreError: the error of the contract that the driver's error stands for.
    """
    try:
        yield
    except IntegrityError as error:
        raise AlreadyExists(f"{what} exists; find it, or take another id") from error
    except PoolTimeoutError as error:
        raise Contended(f"{what}: every connection of this handle was in use for too long; try again") from error
    except DBAPIError as error:
        raise _meaning(_code(error.orig), what, record, writes=writes) from error
    except sqlite3.Error as error:
        raise _meaning(_code(error), what, record, writes=writes) from error
    except SQLAlchemyError as error:
        raise Misconfigured(
            f"{what}: SQLAlchemy refused the statement ({type(error).__name__}); check the URL and the schema"
        ) from error


def _code(error: BaseException | None) -> int:
    """Give SQLite's primary result code, or 0 where the driver gave none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _meaning(code: int, what: str, record: str | None, *, writes: bool) -> StoreError:
    kind, sentence = _MEANINGS.get(code, _WRITE_LEFT_OPEN if writes else _READ_FAILED)
    if kind is CorruptRecord:
        return CorruptRecord(f"{what}: {sentence}", record=record)
    return kind(f"{what}: {sentence}")
