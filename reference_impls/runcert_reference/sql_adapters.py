"""The adapters of the reference stores in an SQL database; importing this module needs the extra ``sql``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeVar

from sqlalchemy import URL, Connection

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Handles, Lab, adapter
from runcert_reference.sql.engines import engine, sqlite_url
from runcert_reference.sql.operations import count_runs, damage_run, retire_run
from runcert_reference.sql.run_store import CLAIMS, AsyncSqlRunStore, SqlRunStore
from runcert_reference.sql.schema import upgrade

__all__ = ["sqlite", "sqlite_async"]

_Answer = TypeVar("_Answer")


def database_of(lab: Lab, *, create: bool = False) -> URL:
    """Give the database of a namespace: one file in its directory."""
    return sqlite_url(lab.directory / "runs.db", create=create)


def prepare_sqlite(lab: Lab) -> None:
    """Make the tables of a namespace."""
    upgrade(database_of(lab, create=True))


def damage_sqlite(lab: Lab, contract: str, key: str, how: str) -> None:  # noqa: ARG001  # one contract only
    """Make a stored run unreadable."""
    _on_connection(lab, lambda connection: damage_run(connection, key, how))


def count_sqlite(lab: Lab) -> dict[str, int]:
    """Count what is stored."""
    return _on_connection(lab, count_runs)


def purge_sqlite(lab: Lab, contract: str, key: str) -> None:  # noqa: ARG001  # one contract only
    """Remove a run as retention would."""
    _on_connection(lab, lambda connection: retire_run(connection, key))


def _on_connection(lab: Lab, action: Callable[[Connection], _Answer]) -> _Answer:
    made = engine(database_of(lab))
    try:
        with made.connect() as connection:
            return action(connection)
    finally:
        made.dispose()


def sqlite_async_form() -> Adapter:
    """Give the asynchronous form of the store in SQLite."""
    return sqlite_async


@adapter(
    EnumeratesRuns,
    scope=CLAIMS.scope,
    handles=CLAIMS.handles,
    durability=CLAIMS.durability,
    capabilities=CLAIMS.capabilities,
    limits=CLAIMS.limits,
    topology=CLAIMS.topology,
    prepare=prepare_sqlite,
    damage=damage_sqlite,
    inventory=count_sqlite,
    purge=purge_sqlite,
    parity_with=sqlite_async_form,
)
def sqlite(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in SQLite."""
    store = SqlRunStore(database_of(lab))
    yield store
    store.close()


@adapter(
    AsyncEnumeratesRuns,
    scope=CLAIMS.scope,
    handles=Handles.PER_TASK,
    durability=CLAIMS.durability,
    capabilities=CLAIMS.capabilities,
    limits=CLAIMS.limits,
    topology=CLAIMS.topology,
    prepare=prepare_sqlite,
    damage=damage_sqlite,
    inventory=count_sqlite,
    purge=purge_sqlite,
    parity_with=lambda: sqlite,
)
async def sqlite_async(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
    """Open the reference store in SQLite for an event loop."""
    store = await AsyncSqlRunStore.open(database_of(lab))
    yield store
    await store.close()
