"""The states in which a store may find its schema, made on purpose: for those who try what it does then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import URL, Connection, inspect

from runcert_contract import Run
from runcert_reference.records import write_record
from runcert_reference.sql.deadlines import ends_within
from runcert_reference.sql.engines import engine
from runcert_reference.sql.schema import MIGRATION_SECONDS, upgrade
from runcert_reference.sql.sqlite import file_of
from runcert_reference.sql.tables import RUNS, SCHEMA_VERSION, bytes_of

__all__ = ["OLDER", "bring_to"]

_Answer = TypeVar("_Answer")

OLDER = "0001"
"""A revision before the present one."""

_COLUMNS_OF_OLDER = ("run_id", "tenant_id", "version", "terminal", "retired", "payload")


def bring_to(url: URL, state: str, runs: Sequence[Run] = ()) -> dict[str, str]:
    """Bring a schema into a state and say what is there then.

    Args:
        url: the database.
        state: ``missing``; ``older``, with records as the release of that time wrote them; ``newer``; ``current``, migrated from
            whatever is there; ``unchanged``.
        runs: the records of an older schema.

    Returns:
        Tables, columns, indexes, revision and numbers of rows, in words of the database.
    """
    making = url.update_query_dict({"mode": "rwc"}) if file_of(url) is not None else url
    if state in ("missing", "older", "newer"):
        _remove(url)
    if state == "older":
        upgrade(making, OLDER)
        _run(url, lambda connection: _insert_as_then(connection, runs))
    if state in ("newer", "current"):
        upgrade(making)
    if state == "newer":
        _run(url, _go_beyond)
    return _description(url)


def _run(url: URL, action: Callable[[Connection], _Answer]) -> _Answer:
    made = engine(url, MIGRATION_SECONDS)
    try:
        with ends_within(MIGRATION_SECONDS), made.connect() as connection:
            return action(connection)
    finally:
        made.dispose()


def _remove(url: URL) -> None:
    file = file_of(url)
    if file is None:
        _run(url, _drop)
        return
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        (file.parent / name).unlink(missing_ok=True)


def _drop(connection: Connection) -> None:
    for table in (RUNS, SCHEMA_VERSION):
        table.drop(connection, checkfirst=True)


def _insert_as_then(connection: Connection, runs: Sequence[Run]) -> None:
    """Write records as the release of the older schema did, column by column."""
    for run in runs:
        row = (bytes_of(run.run_id), bytes_of(run.tenant_id), run.version, run.status.terminal, False, write_record(run))
        connection.execute(RUNS.insert().values(dict(zip(_COLUMNS_OF_OLDER, row, strict=True))))


def _go_beyond(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN of_a_later_release INTEGER")
    connection.execute(SCHEMA_VERSION.update().values(version_num="9999"))


def _description(url: URL) -> dict[str, str]:
    file = file_of(url)
    if file is not None and not file.exists():
        return {}
    return _run(url, _describe)


def _describe(connection: Connection) -> dict[str, str]:
    inspector = inspect(connection)
    described = {}
    for table in sorted(inspector.get_table_names()):
        columns = [(column["name"], str(column["type"])) for column in inspector.get_columns(table)]
        indexes = sorted(str(index["name"]) for index in inspector.get_indexes(table))
        rows = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()  # noqa: S608  # a name from the database
        described[table] = f"columns {columns}, indexes {indexes}, rows {rows}"
    if SCHEMA_VERSION.name in described:
        described["revision"] = str(connection.execute(SCHEMA_VERSION.select()).scalars().all())
    return described
