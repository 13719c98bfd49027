"""A call that does not end must not keep the kit from saying so.

Python cannot interrupt a thread that waits in somebody else's code.  Therefore a thread of the kit watches the call that the
main thread is in; when it is over its bound, ``on_hang`` is called there, which reports and ends the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from runcert.waiting import counted_time

__all__ = ["Hang", "Watchdog"]

_LOOK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Hang:
    """What did not end.

    Attributes:
        description: what it was, in words.
        seconds: how long it was given.
        is_call: True for a call of the store, which the contract bounds; False for opening, closing and hooks.
    """

    description: str
    seconds: float
    is_call: bool


class Watchdog:
    """Watches one thing at a time.

    Args:
        on_hang: called in the watching thread with what hangs.
    """

    def __init__(self, on_hang: Callable[[Hang], None]) -> None:
        self._on_hang = on_hang
        self._watched: tuple[float, float, Callable[[], str], bool] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="runcert-watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, description: Callable[[], str], seconds: float, *, is_call: bool = False) -> Iterator[None]:
        """Watch the body: it has to end within ``seconds``."""
        outer = self._watched
        self._watched = (counted_time() + seconds, seconds, description, is_call)
        try:
            yield
        finally:
            self._watched = outer

    def stop(self) -> None:
        """End the watching thread."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY):
            watched = self._watched
            if watched is not None and counted_time() > watched[0]:
                self._watched = None
                self._on_hang(Hang(watched[2](), watched[1], watched[3]))
