"""Ctrl-C, and the signals that ask a process to end, treated alike.

Before anything was started there is nothing to clean up: the process ends at once, whatever it is in the middle of importing.  Afterwards
a ``KeyboardInterrupt`` is raised, and noted, because one that is raised inside somebody's callback or import can be lost or wrapped.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

from runcert_command import SIGNALS, leave

__all__ = ["SIGNALS", "came", "check", "clean_up_from_now_on", "take_signals"]

_came: list[int] = []
_to_clean_up = False


def take_signals() -> None:
    """Take the signals from now on."""
    for number in SIGNALS:
        signal.signal(number, _take)


def clean_up_from_now_on() -> None:
    """Say that something is started from here on, which has to be stopped before the process ends."""
    global _to_clean_up  # noqa: PLW0603  # a process has one set of signals
    _to_clean_up = True


def came() -> int | None:
    """Give the first signal that came, or None."""
    return _came[0] if _came else None


def check() -> None:
    """Stop here if a signal came meanwhile; for places that wait.

    Raises:
        KeyboardInterrupt: one came, in the main thread.
    """
    if _came and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def _take(number: int, _: FrameType | None) -> None:
    _came.append(number)
    if not _to_clean_up:
        leave(number, None)
    raise KeyboardInterrupt
