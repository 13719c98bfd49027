"""The command ``runcert``: it takes Ctrl-C before it imports anything that takes time."""

from __future__ import annotations

import os
import signal

__all__ = ["SIGNALS", "leave", "main"]

SIGNALS = tuple(int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that ask a process to end, as far as the platform has them."""


def main() -> None:
    """Run the command line."""
    for number in SIGNALS:
        signal.signal(number, leave)
    from runcert.cli import main as command  # noqa: PLC0415  # this is what takes time

    command()


def leave(number: int, _: object) -> None:
    """End the process at once: nothing was started that somebody would have to stop."""
    os.write(2, b"runcert: interrupted; nothing was started yet\n")
    os._exit(128 + number)
