"""MariaDB and MySQL: one server, clients on any machine.

Connections are in autocommit at READ COMMITTED, so that one statement is one transaction.  SQLAlchemy asks for found rows instead
of changed rows; which of the two servers answers is asked of the server, not of the URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import URL, Connection, text

from runcert_contract import Capability, Contended, Misconfigured, Scope, Stance, StoreUnavailable, TooLarge
from runcert_reference.sql import sqlite
from runcert_reference.sql.dialects import CONNECT_SECONDS, LOCK_SECONDS, POOL_SECONDS, STATEMENT_SECONDS, Dialect, Meaning

__all__ = ["CLAIMS", "MYSQL", "in_database", "meaning_of"]

CLAIMS = replace(
    sqlite.CLAIMS,
    scope=Scope.CLUSTER,
    capabilities={**sqlite.CLAIMS.capabilities, Capability.BOUNDS_SILENCE: Stance.CLAIMED},
    limits=replace(sqlite.CLAIMS.limits, identifier=768),
    topology="one MariaDB server, InnoDB, autocommit at READ COMMITTED",
)
"""What is said of the store on MariaDB.

An identifier is a key of an index, which holds at most 3,072 bytes: 768 code points of 4 bytes.
"""

OLDEST_MARIADB, OLDEST_MYSQL = (10, 2), (5, 7)
"""The first releases whose indexes hold keys of 3,072 bytes by default."""

_SMALLEST_PACKET = 8 * 1024 * 1024
"""What the largest record takes in one statement: escaped as JSON, and escaped again as a literal."""

_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    f"SET SESSION innodb_lock_wait_timeout = {LOCK_SECONDS}, SESSION lock_wait_timeout = {LOCK_SECONDS}",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
)
"""What each session is told at its start, whatever the defaults of the server are."""

_LIMIT_ON_MARIADB = f"SET SESSION max_statement_time = {STATEMENT_SECONDS}"
_LIMIT_ON_MYSQL = f"SET SESSION max_execution_time = {STATEMENT_SECONDS * 1000}"

_REFUSED: Meaning = (Misconfigured, "the server refused user, password or database; check the URL and the permissions")
_MEANINGS: Mapping[int, Meaning] = {
    **dict.fromkeys((1020, 1205, 1213, 3572), (Contended, "others were in the way for too long; try again")),
    **dict.fromkeys(
        (1021, 1040, 1053, 1114, 1203, 1226, 2002, 2003),
        (StoreUnavailable, "the server cannot be reached, is full or out of connections; try again later"),
    ),
    **dict.fromkeys(
        (1317, 1969, 3024), (StoreUnavailable, "the server did not end the statement in time and gave it up; try again later")
    ),
    **dict.fromkeys((1290, 1792, 1836), (StoreUnavailable, "the server takes no writes just now; try again when it does")),
    **dict.fromkeys(
        (1051, 1054, 1146),
        (Misconfigured, "the database does not hold the tables of this store; run the migrations, or name the right database"),
    ),
    **dict.fromkeys((1044, 1045, 1049, 1698), _REFUSED),
    **dict.fromkeys(
        (1142, 1143, 1227, 1370), (Misconfigured, "the user of the database may not do this; grant it the permission")
    ),
    1665: (Misconfigured, "the server logs statements, which READ COMMITTED forbids; set binlog_format to ROW or MIXED"),
    **dict.fromkeys((1153, 1264, 1406), (TooLarge, "the record is larger than this database keeps; store a smaller one")),
}
"""What each error number means; all of these are raised before anything was written."""


def meaning_of(error: BaseException) -> Meaning | None:
    """Give what an error of PyMySQL means, by its number; None where that leaves it open."""
    number = error.args[0] if error.args else None
    return _MEANINGS.get(number) if isinstance(number, int) else None


def in_database(url: URL, database: str) -> URL:
    """Give the URL of another database of the same server."""
    return url.set(database=database)


def _options(url: URL, patience: float) -> Mapping[str, Any]:  # noqa: ARG001  # the same for every server
    return {
        "pool_timeout": POOL_SECONDS,
        "connect_args": {
            "connect_timeout": min(CONNECT_SECONDS, patience),
            "read_timeout": min(STATEMENT_SECONDS + 1, patience),
            "write_timeout": min(STATEMENT_SECONDS + 1, patience),
            "charset": "utf8mb4",
        },
    }


def _set_up(connection: Any, mariadb: bool) -> None:
    cursor = connection.cursor()
    for statement in (*_SESSION, _LIMIT_ON_MARIADB if mariadb else _LIMIT_ON_MYSQL):
        cursor.execute(statement)
    cursor.close()


def _check(connection: Connection) -> None:
    mariadb = bool(getattr(connection.dialect, "is_mariadb", False))
    found, oldest = connection.dialect.server_version_info or (), OLDEST_MARIADB if mariadb else OLDEST_MYSQL
    if found < oldest:
        raise Misconfigured(
            f"the server is {'MariaDB' if mariadb else 'MySQL'} {'.'.join(map(str, found)) or 'of an unknown version'}, "
            f"this store needs {'.'.join(map(str, oldest))} or newer"
        )
    packet = int(connection.execute(text("SELECT @@max_allowed_packet")).scalar_one())
    if packet < _SMALLEST_PACKET:
        raise Misconfigured(
            f"max_allowed_packet of the server is {packet}, a record takes up to {_SMALLEST_PACKET} bytes; set it higher"
        )


def _begin_migration(connection: Connection) -> None:
    """Take the lock by name: statements on tables commit by themselves, so that no transaction keeps others out."""
    taken = connection.execute(text(f"SELECT GET_LOCK(CONCAT('runs of ', MD5(DATABASE())), {LOCK_SECONDS})")).scalar_one()
    if taken != 1:
        raise Contended("another migration of this database is under way; try again when it is done")


MYSQL = Dialect(
    name="mysql",
    driver="mysql+pymysql",
    async_driver="",
    claims=CLAIMS,
    options=_options,
    fileno=lambda connection: int(connection._sock.fileno()),  # PyMySQL gives it in no other way
    set_up=_set_up,
    check=_check,
    begin_migration=_begin_migration,
    end_migration=("DO RELEASE_LOCK(CONCAT('runs of ', DATABASE()))",),
)
"""MariaDB and MySQL through PyMySQL; MySQL gets the same tables and is not certified by the kit's own tests."""
