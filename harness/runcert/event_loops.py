"""One event loop in a thread of its own, so that asynchronous stores are driven by the same checks as synchronous ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from runcert.waiting import counted_time

__all__ = ["EventLoopThread", "LoopStuck"]

_T = TypeVar("_T")
_PROBE_SECONDS = 1.0
_LOOK_EVERY = 0.01


class LoopStuck(Exception):
    """What ran on the event loop had not ended in time."""


class EventLoopThread:
    """An event loop that runs until :meth:`stop`.

    Attributes:
        loop: the event loop.
        stuck: True once a call blocked the loop itself; whatever runs on it then is given up at once.
    """

    def __init__(self) -> None:
        self.stuck = False
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="runcert-event-loop", daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[_T], seconds: float) -> _T:
        """Wait for ``awaitable`` on the loop.

        Args:
            awaitable: what to wait for.
            seconds: how long to wait at most.

        Raises:
            LoopStuck: it had not ended in time.
        """
        if self.stuck:
            if isinstance(awaitable, Coroutine):
                awaitable.close()  # nobody will ever wait for it
            raise LoopStuck
        future = asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), self.loop)
        deadline = counted_time() + seconds
        while True:
            try:
                return future.result(max(_LOOK_EVERY, deadline - counted_time()))
            except FutureTimeoutError:
                if future.done():
                    raise
                if counted_time() < deadline:  # the kit itself was waited for
                    continue
                future.cancel()
                self.probe()
                raise LoopStuck from None

    def probe(self) -> None:
        """Find out whether the loop still runs."""
        answered = threading.Event()
        self.loop.call_soon_threadsafe(answered.set)
        self.stuck = not answered.wait(_PROBE_SECONDS)

    def stop(self) -> None:
        """End the loop; tasks that are left are cancelled."""
        if self.stuck:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self._cancel_what_is_left()
        finally:
            self.loop.close()

    def _cancel_what_is_left(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=1))


def _as_coroutine(awaitable: Awaitable[_T]) -> Coroutine[Any, Any, _T]:
    async def wait() -> _T:
        return await awaitable

    return wait()
