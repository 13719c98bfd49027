"""Gaps: what lies between a look at a record and the write that trusts it, in every faulty store that races.

In a real store the gap is as wide as a call of the system or of a server; a store in memory, or one on a fast disk, would race too
seldom to be caught reliably.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from runcert.faulty import deviates

__all__ = ["Gap", "let_others_in"]

_MOMENT = 0.0005
"""What a service does between two calls takes time; in seconds."""


def let_others_in() -> None:
    """Wait a moment; giving up the interpreter alone would leave it to luck whether somebody comes between."""
    time.sleep(_MOMENT)  # part of the fault: the window of the race


class Gap:
    """The gap of one faulty store: callers of one process who are in it with the same record have taken the wrong turn.

    Who looks at the record again, to see whether it has changed, does not see the rival that writes right after that look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: Counter[Hashable] = Counter()

    @contextmanager
    def before_writing(self, record: Hashable) -> Iterator[None]:
        """Wait a moment, and stay until the record is written.

        Args:
            record: which record; it names the run in its namespace.
        """
        with self._lock:
            self._inside[record] += 1
        try:
            let_others_in()
            if self._inside[record] > 1:
                deviates()
            yield
        finally:
            with self._lock:
                self._inside[record] -= 1
