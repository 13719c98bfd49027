"""What goes wrong when a call of an asynchronous store is cancelled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from runcert.faulty import deviates
from runcert_contract import Run, StoreUnavailable
from runcert_reference.faulty.over_memory import faulty_async_memory
from runcert_reference.memory import CLAIMS, AsyncMemoryRunStore, MemorySpace

_IMPATIENT = replace(CLAIMS.limits, maximum_wait=timedelta(seconds=0.3))


class SuspendingMemoryRunStore(AsyncMemoryRunStore):
    """The reference store as a driver would have it: each call waits for a connection and then for an answer."""

    connections: ClassVar[int] = 3

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._connections = asyncio.Semaphore(self.connections)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        async with self._connections:
            await asyncio.sleep(0)
            yield

    async def create(self, run: Run) -> Run:
        async with self._connection():
            return await super().create(run)

    async def find(self, run_id: str) -> Run | None:
        async with self._connection():
            return await super().find(run_id)

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        async with self._connection():
            return await super().compare_and_set(expected, updated)


def _faulty(source: str) -> Any:
    return faulty_async_memory("RUN-CANCEL-1", source=source, sound=SuspendingMemoryRunStore, limits=_IMPATIENT)


def _waits(seconds: float) -> asyncio.Future[None]:
    """Give something to wait for that is a future, as a driver's reply is."""
    loop = asyncio.get_running_loop()
    reply: asyncio.Future[None] = loop.create_future()
    loop.call_later(seconds, _answer, reply)
    return reply


def _answer(reply: asyncio.Future[None]) -> None:
    if not reply.done():
        reply.set_result(None)


class _NeverGivenBack(SuspendingMemoryRunStore):
    """What a call takes, it gives back only when it is not cancelled."""

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        await self._connections.acquire()
        kept = False
        try:
            await asyncio.sleep(0)
            yield
        except asyncio.CancelledError:
            kept = True
            deviates()
            raise
        finally:
            if not kept:
                self._connections.release()


@_faulty("the clause: a lock stays held")
class LockStaysHeld(_NeverGivenBack):
    """Each call takes the lock of the handle and gives it back only when it was not cancelled."""

    connections = 1


@_faulty("the clause: a pool slot stays taken")
class PoolSlotLeaks(_NeverGivenBack):
    """A cancelled call never gives its connection back, and the pool has ten."""

    connections = 10


@_faulty("the clause: a later call gets the reply")
class RepliesAreSwapped(SuspendingMemoryRunStore):
    """A cancelled find leaves its answer on the connection, and the next find takes it for its own."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._answers: deque[Run | None] = deque()

    async def find(self, run_id: str) -> Run | None:
        self._answers.append(await AsyncMemoryRunStore.find(self, run_id))
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            deviates()
            raise
        return self._answers.popleft()


@_faulty("the clause: the answer has come when the call is cancelled")
class SlotOfAnAnsweredCallLeaks(SuspendingMemoryRunStore):
    """A call that is cancelled after its answer came, and before it took it, never gives its connection back."""

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        await self._connections.acquire()
        reply, kept = _waits(0.001), False
        try:
            await reply
            yield
        except asyncio.CancelledError:
            if not reply.cancelled():
                kept = True
                deviates()
            raise
        finally:
            if not kept:
                self._connections.release()


@_faulty("L4 twin: poisoned by a cancellation")
class HandleIsPoisoned(SuspendingMemoryRunStore):
    """After one cancelled call every further call on the handle fails."""

    _poisoned = False

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        if self._poisoned:
            raise StoreUnavailable("the connection is in use by another call; try again")
        try:
            async with super()._connection():
                yield
        except asyncio.CancelledError:
            deviates()
            self._poisoned = True
            raise


@_faulty("the clause: half a write")
class CancelledUpdateIsHalfWritten(SuspendingMemoryRunStore):
    """compare_and_set writes the version first and the rest after an await; cancelled in between, half of it stays."""

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        first = replace(expected, version=updated.version)
        if not await AsyncMemoryRunStore.compare_and_set(self, expected, first):
            return False
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            deviates()
            raise
        self._store._put(updated)
        return True
