"""The command ``runcert``: it takes Ctrl-C before it imports anything that takes time."""

from __future__ import annotations

import os
import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave)
    from runcert.cli import main as command  # noqa: PLC0415  # this is what takes time

    command()


def _leave(number: int, _: object) -> None:
    os.write(2, b"runcert: interrupted; nothing was started yet\n")
    os._exit(128 + number)
