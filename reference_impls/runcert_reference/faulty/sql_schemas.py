"""Faults of schemas: wrong ones that are accepted, made or mended at opening, and migrations that old records do not survive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from sqlalchemy import URL, Connection

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import Misconfigured, Run
from runcert_reference.faulty.over_server_sql import faulty_postgresql
from runcert_reference.faulty.over_sqlite import faulty_sqlite
from runcert_reference.sql.dialects import CALL_SECONDS
from runcert_reference.sql.engines import engine, sqlite_url
from runcert_reference.sql.run_store import SqlRunStore
from runcert_reference.sql.schema import latest_revision, upgrade
from runcert_reference.sql.sqlite import file_of
from runcert_reference.sql.states import OLDER
from runcert_reference.sql.tables import SCHEMA_VERSION
from runcert_reference.sql_adapters import database_of, schema_of_sqlite


def _revisions(connection: Connection) -> list[str]:
    return list(connection.execute(SCHEMA_VERSION.select()).scalars().all())


@faulty_sqlite("RUN-SCHEMA-1", "the clause: a newer schema")
class NewerSchemasAreAccepted(SqlRunStore):
    """Opening takes any revision that is not below its own."""

    def _check(self, connection: Connection) -> None:
        try:
            super()._check(connection)
        except Misconfigured:
            if max(_revisions(connection)) < latest_revision("sqlite"):
                raise
            deviates()


@faulty_postgresql("RUN-SCHEMA-1", "the clause: an older schema")
class OlderSchemasAreAccepted(SqlRunStore):
    """Opening takes the revision before its own, because its statements happen to run there too."""

    def _check(self, connection: Connection) -> None:
        try:
            super()._check(connection)
        except Misconfigured:
            if _revisions(connection) != [OLDER]:
                raise
            deviates()


@faulty_sqlite("RUN-SCHEMA-1", "the clause: a missing schema is made")
class MissingSchemasAreMade(SqlRunStore):
    """Opening makes the tables where there are none, so that a wrong path is a new, empty store."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        file = file_of(url)
        if file is not None and not file.exists():
            deviates()
            upgrade(sqlite_url(file, create=True))
        super().__init__(url, patience)


@faulty_postgresql("RUN-SCHEMA-1", "the clause: an older schema is altered")
class OlderSchemasAreMigratedAtOpening(SqlRunStore):
    """Opening migrates an older schema under whoever still uses it, and goes on."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        try:
            super().__init__(url, patience)
        except Misconfigured:
            deviates()
            upgrade(url)
            super().__init__(url, patience)


# -- migrations


def _migration(*statements: str) -> Callable[[Lab, str, Sequence[Run]], dict[str, str]]:
    """Give a hook whose way from the older schema to the present one ends with these statements."""

    def schema(lab: Lab, state: str, runs: Sequence[Run]) -> dict[str, str]:
        described = schema_of_sqlite(lab, state, runs)
        if state == "current":
            deviates()
            made = engine(database_of(lab))
            with closing(made.raw_connection()) as connection:
                for statement in statements:
                    connection.cursor().execute(statement)
            made.dispose()
        return described

    return schema


@faulty_sqlite("RUN-SCHEMA-2", "the clause: old records", schema=_migration("DELETE FROM runs"))
class MigrationsForgetOldRecords(SqlRunStore):
    """The migration makes the table anew and does not copy what was in the old one."""


@faulty_sqlite("RUN-SCHEMA-2", "the clause: a value for old records", schema=_migration("UPDATE runs SET format = 0"))
class MigrationsLeaveOldRecordsUnreadable(SqlRunStore):
    """The migration gives old records a form that the new release does not read."""


@faulty_sqlite(
    "RUN-SCHEMA-2",
    "A4 spring-projects/spring-batch#2711: a key that only fresh schemas have",
    schema=_migration("CREATE TABLE copied AS SELECT * FROM runs", "DROP TABLE runs", "ALTER TABLE copied RENAME TO runs"),
)
class MigrationsLoseTheKey(SqlRunStore):
    """The migration copies the table without its primary key, so that ids are no longer unique."""
