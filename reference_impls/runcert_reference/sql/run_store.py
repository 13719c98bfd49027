"""Run stores in an SQL database: one handle is one engine with a small pool of connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import URL, Connection

from runcert_contract import (
    Capability,
    Claims,
    Closed,
    Fault,
    Handles,
    Kept,
    Limits,
    Listing,
    Run,
    Scope,
    Stance,
    check_identifier,
    check_new_run,
    check_update,
)
from runcert_reference.sql.engines import async_engine, engine
from runcert_reference.sql.failures import translated
from runcert_reference.sql.operations import find_run, insert_run, list_resumable, replace_run
from runcert_reference.sql.schema import check_schema

__all__ = ["CLAIMS", "AsyncSqlRunStore", "SqlRunStore"]

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")

CLAIMS = Claims(
    scope=Scope.HOST,
    handles=Handles.SHARED,
    durability={Fault.CLOSE: Kept()},
    capabilities={Capability.ENUMERATES: Stance.CLAIMED, Capability.GUARDS_TERMINAL: Stance.CLAIMED},
    limits=Limits(identifier=1024, text=100_000, depth=64, accepts_up_to=1_000_000, refuses_above=1_000_000),
    topology="one SQLite file in WAL mode with synchronous=FULL, processes of one machine",
)
"""What is said of this store on SQLite."""


class SqlRunStore:
    """A run store in an SQL database; threads may share it.

    Args:
        url: the database; its tables have to be there (:func:`runcert_reference.sql.schema.upgrade`).

    Raises:
        StoreError: the database cannot be reached, or its schema is not the one that this store needs.
    """

    def __init__(self, url: URL) -> None:
        self._engine = engine(url)
        self._calls = _Calls()
        try:
            with translated("the schema"), self._engine.connect() as connection:
                check_schema(connection)
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
            check_new_run(run, CLAIMS)
            with translated(f"run {run.run_id!r}", record=run.run_id, writes=True), self._engine.connect() as connection:
                return insert_run(connection, run)

    def find(self, run_id: str) -> Run | None:
        """Give the run, or None (RUN-FIND-1 to -3)."""
        with self._calls.one():
            check_identifier(run_id, "run_id", CLAIMS)
            with translated(f"run {run_id!r}", record=run_id), self._engine.connect() as connection:
                return find_run(connection, run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one (RUN-CAS-1 to -10)."""
        with self._calls.one():
            check_update(expected, updated, CLAIMS)
            what = f"run {expected.run_id!r}"
            with translated(what, record=expected.run_id, writes=True), self._engine.connect() as connection:
                return replace_run(connection, expected, updated)

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal (RUN-RESUMABLE-1)."""
        with self._calls.one():
            check_identifier(tenant_id, "tenant_id", CLAIMS)
            with translated(f"runs of tenant {tenant_id!r}"), self._engine.connect() as connection:
                return list_resumable(connection, tenant_id)


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
                raise _closed()
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

    Each call runs in a task of its own that cancelling the caller does not reach.  A cancelled call therefore ends by itself, gives
    its connection back in order, and leaves nothing behind that a later call could take for its own answer.

    Args:
        url: the database.
    """

    def __init__(self, url: URL) -> None:
        self._engine = async_engine(url)
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = False

    @classmethod
    async def open(cls, url: URL) -> Self:
        """Open a handle on a database whose tables are there.

        Raises:
            StoreError: the database cannot be reached, or its schema is not the one that this store needs.
        """
        store = cls(url)
        try:
            with translated("the schema"):
                await store._on_connection(check_schema)
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Let calls that are under way end, refuse new ones, and close every connection."""
        self._ended = True
        await self._to_the_end(self._dispose())

    async def create(self, run: Run) -> Run:
        """Store a new run."""
        self._check_open()
        check_new_run(run, CLAIMS)
        with translated(f"run {run.run_id!r}", record=run.run_id, writes=True):
            return await self._on_connection(insert_run, run)

    async def find(self, run_id: str) -> Run | None:
        """Give the run, or None."""
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        with translated(f"run {run_id!r}", record=run_id):
            return await self._on_connection(find_run, run_id)

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one."""
        self._check_open()
        check_update(expected, updated, CLAIMS)
        with translated(f"run {expected.run_id!r}", record=expected.run_id, writes=True):
            return await self._on_connection(replace_run, expected, updated)

    async def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal."""
        self._check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        with translated(f"runs of tenant {tenant_id!r}"):
            return await self._on_connection(list_resumable, tenant_id)

    def _check_open(self) -> None:
        if self._ended:
            raise _closed()

    async def _on_connection(
        self,
        operation: Callable[Concatenate[Connection, _Arguments], _Answer],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Answer:
        async def call() -> _Answer:
            async with self._engine.connect() as connection:
                return await connection.run_sync(operation, *args, **kwargs)

        return await self._to_the_end(call())

    async def _to_the_end(self, call: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Wait for a call that goes on to its end even when this wait is cancelled."""
        task = asyncio.get_running_loop().create_task(call)
        self._running.add(task)
        task.add_done_callback(self._forget)
        await asyncio.wait({task})
        return task.result()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more, which is no reason for a warning

    async def _dispose(self) -> None:
        others = self._running - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await self._engine.dispose()


def _closed() -> Closed:
    return Closed("this handle was closed; open another one")
