"""A clock that stands still while this process waits for the kit itself: starting a server is no fault of a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["counted_time", "not_counted"]

_lock = threading.Lock()
_waiting = 0
_since = 0.0
_passed_over = 0.0


@contextmanager
def not_counted() -> Iterator[None]:
    """Do not count the time that the body takes; bodies in several threads may overlap."""
    _enter()
    try:
        yield
    finally:
        _leave()


def counted_time() -> float:
    """Give the monotonic time in seconds, without what was spent in :func:`not_counted`."""
    with _lock:
        now = _since if _waiting else time.monotonic()
        return now - _passed_over


def _enter() -> None:
    global _waiting, _since  # noqa: PLW0603  # one clock for the process
    with _lock:
        if not _waiting:
            _since = time.monotonic()
        _waiting += 1


def _leave() -> None:
    global _waiting, _passed_over  # noqa: PLW0603  # one clock for the process
    with _lock:
        _waiting -= 1
        if not _waiting:
            _passed_over += time.monotonic() - _since
