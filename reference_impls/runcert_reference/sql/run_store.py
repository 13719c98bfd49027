"""Run stores in an SQL database: one handle is one engine with a small pool of connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Self, TypeVar

from sqlalchemy import URL, Connection

from runcert_contract import Listing, Run, check_identifier, check_new_run, check_update
from runcert_reference.handles import ShieldedCalls, closed_handle
from runcert_reference.sql.deadlines import ends_within
from runcert_reference.sql.dialects import CALL_SECONDS, Dialect
from runcert_reference.sql.engines import async_engine, dialect_of, engine
from runcert_reference.sql.failures import translated
from runcert_reference.sql.operations import find_run, insert_run, list_resumable, replace_run
from runcert_reference.sql.schema import check_schema
from runcert_reference.sql.sqlite import CLAIMS, insist_on_file

__all__ = ["CLAIMS", "AsyncSqlRunStore", "SqlRunStore"]

_Answer = TypeVar("_Answer")


class SqlRunStore:
    """A run store in an SQL database; threads may share it.

    What is said of it depends on the database: :mod:`.sqlite`, :mod:`.postgresql`, :mod:`.mysql`.

    Args:
        url: the database; its tables have to be there (:func:`runcert_reference.sql.schema.upgrade`).
        patience: how long a call on a server takes at most, in seconds.

    Raises:
        StoreError: the database cannot be reached, or its schema is not the one that this store needs.
    """

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        self._dialect = dialect_of(url)
        self._claims = self._dialect.claims
        self._patience = patience
        insist_on_file(url)
        self._engine = engine(url, patience)
        self._calls = _Calls()
        try:
            with self._connection("the schema") as connection:
                self._check(connection)
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Let calls that are under way end, refuse new ones, and close every connection."""
        self._calls.end()
        self._engine.dispose()

    def create(self, run: Run) -> Run:
        """Store a new run (RUN-CREATE-1 to -5)."""
        with self._calls.one():
            check_new_run(run, self._claims)
            with self._connection(f"run {run.run_id!r}", record=run.run_id, writes=True) as connection:
                return insert_run(connection, run)

    def find(self, run_id: str) -> Run | None:
        """Give the run, or None (RUN-FIND-1 to -3)."""
        with self._calls.one():
            check_identifier(run_id, "run_id", self._claims)
            with self._connection(f"run {run_id!r}", record=run_id) as connection:
                return find_run(connection, run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one (RUN-CAS-1 to -10)."""
        with self._calls.one():
            check_update(expected, updated, self._claims)
            with self._connection(f"run {expected.run_id!r}", record=expected.run_id, writes=True) as connection:
                return replace_run(connection, expected, updated)

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal (RUN-RESUMABLE-1)."""
        with self._calls.one():
            check_identifier(tenant_id, "tenant_id", self._claims)
            with self._connection(f"runs of tenant {tenant_id!r}") as connection:
                return list_resumable(connection, tenant_id)

    def _check(self, connection: Connection) -> None:
        """Refuse a server or a schema that does not do; nothing is created or altered (SCHEMA-1)."""
        self._dialect.check(connection)
        check_schema(connection)

    @contextmanager
    def _connection(self, what: str, *, record: str | None = None, writes: bool = False) -> Iterator[Connection]:
        """Give a connection for one statement; a failure to connect is definite, whatever was going to be written."""
        with _bounded(self._dialect, self._patience):
            with translated(what, record=record):
                connection = self._engine.connect()
            with connection, translated(what, record=record, writes=writes):
                yield connection


def _bounded(dialect: Dialect, seconds: float) -> AbstractContextManager[None]:
    """Bound a call on a server; a database file answers or fails by itself."""
    return nullcontext() if dialect.fileno is None else ends_within(seconds)


class _Calls:
    """The calls of one handle that are under way, so that closing it waits for the last of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._ended = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one call for the length of the body."""
        with self._changed:
            if self._ended:
                raise closed_handle()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Refuse further calls and wait for those that are under way."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: self._running == 0)


class AsyncSqlRunStore:
    """The same store for callers on an event loop; open one with :meth:`open`.

    A call goes on to its end even where its caller is cancelled (:class:`.ShieldedCalls`).

    Args:
        url: the database.
        patience: how long a call on a server takes at most, in seconds.
    """

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        self._dialect = dialect_of(url)
        self._claims = self._dialect.claims
        self._patience = patience
        insist_on_file(url)
        self._engine = async_engine(url, patience)
        self._calls = ShieldedCalls()

    @classmethod
    async def open(cls, url: URL, patience: float = CALL_SECONDS) -> Self:
        """Open a handle on a database whose tables are there.

        Args:
            url: the database.
            patience: how long a call on a server takes at most, in seconds.

        Raises:
            StoreError: the database cannot be reached, or its schema is not the one that this store needs.
        """
        store = cls(url, patience)
        try:
            await store._call("the schema", store._check)
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Let calls that are under way end, refuse new ones, and close every connection."""
        await self._calls.end(self._engine.dispose)

    async def create(self, run: Run) -> Run:
        """Store a new run."""
        self._calls.check_open()
        check_new_run(run, self._claims)
        what = f"run {run.run_id!r}"
        return await self._call(what, lambda connection: insert_run(connection, run), record=run.run_id, writes=True)

    async def find(self, run_id: str) -> Run | None:
        """Give the run, or None."""
        self._calls.check_open()
        check_identifier(run_id, "run_id", self._claims)
        return await self._call(f"run {run_id!r}", lambda connection: find_run(connection, run_id), record=run_id)

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one."""
        self._calls.check_open()
        check_update(expected, updated, self._claims)
        what = f"run {expected.run_id!r}"
        return await self._call(
            what, lambda connection: replace_run(connection, expected, updated), record=expected.run_id, writes=True
        )

    async def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal."""
        self._calls.check_open()
        check_identifier(tenant_id, "tenant_id", self._claims)
        return await self._call(f"runs of tenant {tenant_id!r}", lambda connection: list_resumable(connection, tenant_id))

    def _check(self, connection: Connection) -> None:
        self._dialect.check(connection)
        check_schema(connection)

    async def _call(
        self, what: str, operation: Callable[[Connection], _Answer], *, record: str | None = None, writes: bool = False
    ) -> _Answer:
        """Run an operation on a connection; a failure to connect is definite, whatever was going to be written."""

        async def call() -> _Answer:
            with _bounded(self._dialect, self._patience):
                with translated(what, record=record):
                    connection = await self._engine.connect()
                try:
                    with translated(what, record=record, writes=writes):
                        return await connection.run_sync(operation)
                finally:
                    await connection.close()

        return await self._calls.run(call())
