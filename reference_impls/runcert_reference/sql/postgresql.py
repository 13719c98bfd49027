"""PostgreSQL: one server, clients on any machine.

Connections are in autocommit at READ COMMITTED, so that one statement is one transaction: an update that waited for another
one looks at its condition again, and a find always sees what was committed before it began.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import URL, Connection

from runcert_contract import Capability, Contended, CorruptRecord, Misconfigured, Scope, Stance, StoreUnavailable, TooLarge
from runcert_reference.sql import sqlite
from runcert_reference.sql.dialects import CONNECT_SECONDS, LOCK_SECONDS, POOL_SECONDS, STATEMENT_SECONDS, Dialect, Meaning

__all__ = ["CLAIMS", "POSTGRESQL", "in_schema", "meaning_of"]

CLAIMS = replace(
    sqlite.CLAIMS,
    scope=Scope.CLUSTER,
    capabilities={**sqlite.CLAIMS.capabilities, Capability.BOUNDS_SILENCE: Stance.CLAIMED},
    limits=replace(sqlite.CLAIMS.limits, identifier=640),
    topology="one PostgreSQL server, autocommit at READ COMMITTED",
)
"""What is said of the store on PostgreSQL.

An identifier is a key of an index, an entry of which holds at most 2,704 bytes: 640 code points of 4 bytes and the header fit.
"""

OLDEST = (10,)
"""The first release that the driver talks to."""

_SETTINGS: Mapping[str, str] = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "synchronous_commit": "on",
}
"""What each session is told at its start, whatever the defaults of server, database and user are."""

_LOCKED: Meaning = (Contended, "others were in the way for too long; try again")
_REFUSED: Meaning = (Misconfigured, "the server refused user, password or database; check the URL and the permissions")
_MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(("40001", "40P01", "55P03"), _LOCKED),
    **dict.fromkeys(
        ("53000", "53100", "53200", "53300", "57P03"),
        (StoreUnavailable, "the server is starting, full or out of connections; try again later"),
    ),
    "57014": (StoreUnavailable, "the server did not end the statement in time and gave it up; try again later"),
    "25006": (StoreUnavailable, "the server takes no writes, as a standby does; try again when it is the primary"),
    **dict.fromkeys(
        ("42P01", "42703", "42804", "42883", "3F000"),
        (Misconfigured, "the database does not hold the tables of this store; run the migrations, or name the right schema"),
    ),
    "42501": (Misconfigured, "the user of the database may not do this; grant it the permission"),
    **dict.fromkeys(("28000", "28P01", "3D000"), _REFUSED),
    **dict.fromkeys(
        ("22001", "22003", "54000"), (TooLarge, "the record is larger than this database keeps; store a smaller one")
    ),
    **dict.fromkeys(("XX001", "XX002"), (CorruptRecord, "the database is damaged; restore it from a backup")),
}
"""What each SQLSTATE means; all of these are raised before anything was written."""

_REFUSALS = ("password", "no pg_hba.conf entry", "does not exist", "permission denied", "is not permitted to log in")
"""What a server says to whom it refuses.  libpq gives no SQLSTATE of a connection that was not made, so there only the text is left;
in another language than English a refusal is taken for a server that is away."""


def meaning_of(error: BaseException) -> Meaning | None:
    """Give what an error of psycopg means; None where that leaves it open."""
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return _MEANINGS.get(str(state))
    return _REFUSED if any(words in str(error) for words in _REFUSALS) else None


def in_schema(url: URL, schema: str) -> URL:
    """Give the URL under which every table is looked for in this schema alone.

    Args:
        url: a database.
        schema: a name of lower-case letters, digits and underscores.
    """
    return _with_settings(url, {"search_path": schema})


def _with_settings(url: URL, settings: Mapping[str, str]) -> URL:
    given = url.query.get("options", ())
    before = [given] if isinstance(given, str) else list(given)
    return url.update_query_dict({"options": " ".join([*before, *(f"-c{name}={value}" for name, value in settings.items())])})


def _options(url: URL, patience: float) -> Mapping[str, Any]:
    return {
        "pool_timeout": POOL_SECONDS,
        "use_native_hstore": False,  # it would be asked for at every opening
        "connect_args": {
            "options": _with_settings(url, _SETTINGS).query["options"],
            "connect_timeout": min(CONNECT_SECONDS, math.ceil(patience)),  # less than 2 s are taken for 2 s by the driver
            "client_encoding": "utf8",
            "prepare_threshold": None,  # every call sends the same messages, also through a pooler
        },
    }


def _set_up(connection: Any, mariadb: bool) -> None:
    """Say nothing more: the settings came with the start of the session."""


def _check(connection: Connection) -> None:
    found = connection.dialect.server_version_info or ()
    if found < OLDEST:
        raise Misconfigured(
            f"the server is of version {'.'.join(map(str, found)) or 'unknown'}, this store needs {OLDEST[0]} or newer"
        )


def _begin_migration(connection: Connection) -> None:
    """Begin a transaction and wait for those of others; of two migrations at once the second finds all done."""
    connection.exec_driver_sql("BEGIN")
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7239871)")


POSTGRESQL = Dialect(
    name="postgresql",
    driver="postgresql+psycopg",
    async_driver="postgresql+psycopg",
    claims=CLAIMS,
    options=_options,
    fileno=lambda connection: int(connection.fileno()),
    set_up=_set_up,
    check=_check,
    begin_migration=_begin_migration,
    end_migration=("COMMIT",),
)
"""PostgreSQL through psycopg."""
