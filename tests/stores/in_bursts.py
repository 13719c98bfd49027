"""Adapters of stores that are sound as long as one client is at work, and go wrong in the clients of a burst."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from runcert import AsyncRunStore, Handles, Lab, Limits, RunStore, Scope, adapter
from runcert_contract import Run
from runcert_reference.memory import AsyncMemoryRunStore, MemoryRunStore, MemorySpace

IN_A_CLIENT_PROCESS = Path(sys.argv[0]).name == "burst_client.py"
SHORT = Limits(maximum_wait=timedelta(seconds=0.3))
_FOREVER = threading.Event()


class _Disturbed(MemoryRunStore):
    """Does something else in place of creating a run."""

    def __init__(self, create: Callable[[], Any]) -> None:
        super().__init__(MemorySpace())
        self._create = create

    def create(self, run: Run) -> Run:
        created: Run = self._create()
        return created


def _wait_in_a_client_process() -> None:
    if IN_A_CLIENT_PROCESS:
        _FOREVER.wait()


@adapter(RunStore, scope=Scope.HOST)
def raises_on_open(lab: Lab) -> Iterator[RunStore]:
    if IN_A_CLIENT_PROCESS:
        raise ConnectionRefusedError("no server for a second process")
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore, scope=Scope.HOST, limits=SHORT)
def hangs_on_open(lab: Lab) -> Iterator[RunStore]:
    _wait_in_a_client_process()
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore, scope=Scope.HOST)
def leaves_the_interpreter(lab: Lab) -> Iterator[RunStore]:
    yield _Disturbed(lambda: os._exit(0) if IN_A_CLIENT_PROCESS else None)


@adapter(RunStore, scope=Scope.HOST, handles=Handles.SHARED, limits=SHORT)
def never_creates(lab: Lab) -> Iterator[RunStore]:
    yield _Disturbed(_FOREVER.wait)


@adapter(RunStore, scope=Scope.HOST)
def creates_an_object(lab: Lab) -> Iterator[RunStore]:
    yield _Disturbed(object)


@adapter(RunStore, scope=Scope.PROCESS)
def opens_once(lab: Lab) -> Iterator[RunStore]:
    taken = lab.directory / "taken"
    taken.touch(exist_ok=False)
    yield MemoryRunStore(MemorySpace())
    taken.unlink()


class _AsyncDisturbed(AsyncMemoryRunStore):
    """As above, on an event loop."""

    def __init__(self, create: Callable[[], Any]) -> None:
        super().__init__(MemorySpace())
        self._create = create

    async def create(self, run: Run) -> Run:
        created: Run = await self._create()
        return created


@adapter(AsyncRunStore, scope=Scope.HANDLE, handles=Handles.SHARED, limits=SHORT)
async def never_creates_on_the_loop(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    yield _AsyncDisturbed(lambda: asyncio.get_running_loop().create_future())


@adapter(AsyncRunStore, scope=Scope.HANDLE, handles=Handles.SHARED, limits=SHORT)
async def blocks_the_loop(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    yield _AsyncDisturbed(_FOREVER.wait)
