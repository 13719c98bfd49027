"""From what a driver raises to the errors of the contract, in one place.

The decision goes by the codes of the database, never by the text of a message where there is a code.  Messages name the record and
the way out; statement parameters are hidden by the engine (``hide_parameters``), so the chained traceback shows no attempt token either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
)
from runcert_reference.sql import mysql, postgresql, sqlite
from runcert_reference.sql.dialects import Meaning

__all__ = ["translated"]

_DRIVERS: Mapping[str, Callable[[BaseException], Meaning | None]] = {
    "sqlite3": sqlite.meaning_of,
    "aiosqlite": sqlite.meaning_of,
    "psycopg": postgresql.meaning_of,
    "pymysql": mysql.meaning_of,
}
"""Who knows what an error means, by the package that its class comes from."""

_WRITE_LEFT_OPEN: Meaning = (
    OutcomeUnknown,
    "the write failed in a way that leaves open whether it took effect; read before you go on",
)
_READ_FAILED: Meaning = (StoreUnavailable, "the database could not be reached or read; try again when it is back")


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
        raise _translation(error.orig or error, what, record, writes=writes) from error
    except SQLAlchemyError as error:
        raise Misconfigured(
            f"{what}: SQLAlchemy refused the statement ({type(error).__name__}); check the URL and the schema"
        ) from error
    except Exception as error:  # raised by a driver outside of a statement
        if _package(error) not in _DRIVERS:
            raise
        raise _translation(error, what, record, writes=writes) from error


def _translation(error: BaseException, what: str, record: str | None, *, writes: bool) -> StoreError:
    meaning = _DRIVERS[_package(error)](error) if _package(error) in _DRIVERS else None
    kind, sentence = meaning or (_WRITE_LEFT_OPEN if writes else _READ_FAILED)
    if kind is CorruptRecord:
        return CorruptRecord(f"{what}: {sentence}", record=record)
    return kind(f"{what}: {sentence}")


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]
