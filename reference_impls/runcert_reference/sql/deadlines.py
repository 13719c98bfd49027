"""An upper bound on every call on a server: when it passes, the call's sockets are shut and the driver sees a lost connection.

psycopg has no time-out for reading, and time-outs of the server do not help when the server accepts and stays silent.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = ["ends_within", "is_readable", "watch"]

_IDLE_SECONDS = 1.0
"""How long the thread waits for a call before it ends."""


class _Call:
    """One call and the sockets that it waits on."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._passed = False
        self.deadline = time.monotonic() + seconds

    def add(self, fileno: int) -> None:
        # A duplicate names the same connection for as long as it is open, whatever the driver does with its own number.
        duplicate = socket.fromfd(fileno, socket.AF_INET, socket.SOCK_STREAM)
        with self._lock:
            self._sockets.append(duplicate)
            passed = self._passed
        if passed:
            self.shut()

    def shut(self) -> None:
        """Shut every socket, now and as it comes."""
        with self._lock:
            self._passed = True
            for one in self._sockets:
                with suppress(OSError):  # it is shut already
                    one.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        with self._lock:
            for one in self._sockets:
                one.close()
            self._sockets.clear()


class _Deadlines:
    """The calls that are under way, and the thread that looks at them; it ends when there is nothing to look at."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: set[_Call] = set()
        self._running = False
        self._looks_at = 0.0

    def add(self, call: _Call) -> None:
        with self._changed:
            self._calls.add(call)
            if not self._running:
                self._running = True
                threading.Thread(target=self._look, name="sql-deadlines", daemon=True).start()
            elif call.deadline < self._looks_at:
                self._changed.notify()

    def remove(self, call: _Call) -> None:
        with self._changed:
            self._calls.discard(call)

    def _look(self) -> None:
        while due := self._wait():
            for call in due:
                call.shut()

    def _wait(self) -> list[_Call]:
        """Wait for calls whose time is up; none means that there was no call for a while, and the thread ends."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = [call for call in self._calls if call.deadline <= now]
                if due:
                    self._calls.difference_update(due)
                    return due
                idle = not self._calls
                self._looks_at = min([now + _IDLE_SECONDS, *(call.deadline for call in self._calls)])
                self._changed.wait(self._looks_at - now)
                if idle and not self._calls:
                    self._running = False
                    return []


_deadlines = _Deadlines()
_current: ContextVar[_Call | None] = ContextVar("call", default=None)


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    """Let the body wait no longer than this on connections that it takes or makes.

    Args:
        seconds: from now on.
    """
    call = _Call(seconds)
    token = _current.set(call)
    _deadlines.add(call)
    try:
        yield
    finally:
        _deadlines.remove(call)
        _current.reset(token)
        call.end()


def watch(fileno: int) -> None:
    """Let the current call's deadline hold for the connection with this number, too."""
    call = _current.get()
    if call is not None:
        call.add(fileno)


def is_readable(fileno: int) -> bool:
    """Say whether something came from the other side unasked: on an idle connection that is its end."""
    if not hasattr(select, "poll"):
        return bool(select.select([fileno], [], [], 0)[0])
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))
