"""What handles of the reference stores share: the error of a closed one, and calls that no cancellation cuts in two."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from runcert_contract import Closed

__all__ = ["ShieldedCalls", "closed_handle"]

_Answer = TypeVar("_Answer")


class ShieldedCalls:
    """The calls of one handle on an event loop; each runs in a task of its own that cancelling the caller does not reach.

    A cancelled call therefore ends by itself, gives its connection back in order, and takes its own answer from it, which no
    later call can then get.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._ended = False

    def check_open(self) -> None:
        """Refuse a call on a closed handle.

        Raises:
            Closed: :meth:`end` was called.
        """
        if self._ended:
            raise closed_handle()

    async def run(self, call: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Wait for a call, which goes on to its end even when this wait is cancelled."""
        task = asyncio.get_running_loop().create_task(call)
        self._running.add(task)
        task.add_done_callback(self._forget)
        await asyncio.wait({task})
        return task.result()

    async def end(self, release: Callable[[], Awaitable[None]]) -> None:
        """Refuse further calls, wait for those that are under way, and then release what they used.

        Args:
            release: closes the connections of the handle.
        """
        self._ended = True
        await self.run(self._end(release))

    async def _end(self, release: Callable[[], Awaitable[None]]) -> None:
        others = self._running - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await release()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more, which is no reason for a warning


def closed_handle() -> Closed:
    """Give the error of a closed handle."""
    return Closed("this handle was closed; open another one")
