"""The adapters of the reference stores in an SQL database; importing this module needs the extra ``sql``."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Handles, Lab, Leftover, UsageProblem, adapter
from runcert_contract import Run
from runcert_reference.claimed_options import claimed_options
from runcert_reference.file_adapters import away, leftovers_in, make_namespace, remove_namespace
from runcert_reference.sql.engines import engine, sqlite_url
from runcert_reference.sql.operations import count_runs, damage_run, retire_run
from runcert_reference.sql.run_store import CLAIMS, AsyncSqlRunStore, SqlRunStore
from runcert_reference.sql.schema import upgrade
from runcert_reference.sql.states import bring_to

__all__ = ["leftovers_at_url", "sqlite", "sqlite_async", "sqlite_at_url"]

_Answer = TypeVar("_Answer")


def database_of(lab: Lab) -> URL:
    """Give the database of a namespace: one file in its directory."""
    return sqlite_url(lab.directory / "runs.db")


def prepare_sqlite(lab: Lab) -> None:
    """Make the database of a namespace."""
    make_database(lab.directory / "runs.db")


def make_database(file: Path) -> None:
    """Make a database with the tables in it: a copy of one that was migrated, because a check asks for one again and again."""
    file.write_bytes(_migrated_database())


@lru_cache(maxsize=1)
def _migrated_database() -> bytes:
    with TemporaryDirectory(prefix="runcert-sqlite-") as directory:
        file = Path(directory) / "runs.db"
        upgrade(sqlite_url(file, create=True))
        return file.read_bytes()


def damage_sqlite(lab: Lab, contract: str, key: str, how: str) -> None:  # noqa: ARG001  # one contract only
    """Make a stored run unreadable."""
    _on_connection(database_of(lab), lambda connection: damage_run(connection, key, how))


def count_sqlite(lab: Lab) -> dict[str, int]:
    """Count what is stored."""
    return _on_connection(database_of(lab), count_runs)


def purge_sqlite(lab: Lab, contract: str, key: str) -> None:  # noqa: ARG001  # one contract only
    """Remove a run as retention would."""
    _on_connection(database_of(lab), lambda connection: retire_run(connection, key))


def schema_of_sqlite(lab: Lab, state: str, runs: Sequence[Run]) -> dict[str, str]:
    """Bring the schema of a namespace into a state."""
    return bring_to(database_of(lab), state, runs)


def outage_of_sqlite(lab: Lab) -> Iterator[None]:
    """Move the database away and back."""
    return away(lab.directory)


def _on_connection(database: URL, action: Callable[[Connection], _Answer]) -> _Answer:
    made = engine(database)
    try:
        with made.connect() as connection:
            return action(connection)
    finally:
        made.dispose()


def sqlite_async_form() -> Adapter:
    """Give the asynchronous form of the store in SQLite."""
    return sqlite_async


_OPTIONS = {
    **claimed_options(CLAIMS),
    "prepare": prepare_sqlite,
    "damage": damage_sqlite,
    "inventory": count_sqlite,
    "purge": purge_sqlite,
    "schema": schema_of_sqlite,
    "outage": outage_of_sqlite,
}


@adapter(EnumeratesRuns, **_OPTIONS, parity_with=sqlite_async_form)
def sqlite(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in SQLite."""
    store = SqlRunStore(database_of(lab))
    yield store
    store.close()


@adapter(AsyncEnumeratesRuns, **{**_OPTIONS, "handles": Handles.PER_TASK}, parity_with=lambda: sqlite)
async def sqlite_async(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
    """Open the reference store in SQLite for an event loop."""
    store = await AsyncSqlRunStore.open(database_of(lab))
    yield store
    await store.close()


# -- sqlite:///path


def sqlite_at_url(url: str) -> Adapter:
    """Give the adapter of a store in SQLite, below a directory of the user's.

    Each namespace is a directory with one database of its own there, which the kit makes, marks as its own and removes; nothing
    else is touched.

    Args:
        url: ``sqlite:////path/to/an/existing/directory``, or ``sqlite:///relative/path``.

    Raises:
        UsageProblem: it names no directory.
    """
    root = _directory_at(url)

    def file_of(lab: Lab) -> Path:
        return root / lab.namespace / "runs.db"

    def prepare(lab: Lab) -> dict[str, str]:
        mark = make_namespace(root, lab)
        try:
            make_database(file_of(lab))
        except BaseException:  # a disk that became full meanwhile: what was made goes again, as nobody else will remove it
            remove_namespace(root, replace(lab, prepared={**mark}))
            raise
        return mark

    def inside(lab: Lab, action: Callable[[Connection], _Answer]) -> _Answer:
        return _on_connection(sqlite_url(file_of(lab)), action)

    options: dict[str, Any] = {
        **claimed_options(CLAIMS),
        "prepare": prepare,
        "dispose": partial(remove_namespace, root),
        "damage": lambda lab, _, key, how: inside(lab, lambda connection: damage_run(connection, key, how)),
        "inventory": lambda lab: inside(lab, count_runs),
        "purge": lambda lab, _, key: inside(lab, lambda connection: retire_run(connection, key)),
        "schema": lambda lab, state, runs: bring_to(sqlite_url(file_of(lab)), state, runs),
        "outage": lambda lab: away(root / lab.namespace),
    }

    @adapter(
        EnumeratesRuns,
        target=f"sqlite-{re.sub('[^A-Za-z0-9._-]+', '-', str(root)).strip('-')}".rstrip("-"),
        **options,
    )
    def sqlite_below(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = SqlRunStore(sqlite_url(file_of(lab)))
        yield store
        store.close()

    return sqlite_below


def leftovers_at_url(url: str) -> list[Leftover]:
    """Find what killed runs left in a directory of the user's.

    Args:
        url: ``sqlite:////path/to/an/existing/directory``.

    Raises:
        UsageProblem: it names no directory.
    """
    return leftovers_in(_directory_at(url))


def _directory_at(url: str) -> Path:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise UsageProblem(f"{url} cannot be read; write sqlite:////path/to/directory") from error
    if parsed.host or parsed.query or not parsed.database or parsed.database == ":memory:":
        raise UsageProblem(f"{url}: a directory is named by its path, sqlite:////path/to/directory, without anything else")
    root = Path(parsed.database).absolute()
    if not root.is_dir():
        what = "is a file" if root.is_file() else "does not exist"
        raise UsageProblem(
            f"{url}: {root} {what}; the kit makes databases of its own: make a directory for it to work in and name that one"
        )
    return root
