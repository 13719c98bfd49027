"""Marks: who made a namespace on somebody's backend, so that it is removed by its maker, or by ``runcert clean`` when that is gone."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Self

__all__ = ["Maker", "Mark"]


class Maker(Enum):
    """What can be said of the process that made something."""

    AT_WORK = "at work"
    GONE = "gone"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one namespace, kept beside its records.

    Attributes:
        namespace: the namespace.
        mark: a word that nobody else knows.
        host: the machine on which it was made.
        process: the number of the process that made it.
        started: which process of that number it was; empty where the system does not tell.
    """

    namespace: str
    mark: str
    host: str
    process: str
    started: str = ""

    @classmethod
    def new(cls, namespace: str) -> Self:
        """Make the mark of this process for a namespace."""
        return cls(namespace, secrets.token_hex(16), socket.gethostname(), str(os.getpid()), _started(os.getpid()))

    @classmethod
    def read(cls, data: object) -> Self | None:
        """Give the mark that :meth:`to_json` wrote; None for anything else."""
        names = {entry.name for entry in fields(cls)}
        if not isinstance(data, Mapping) or set(data) != names or not all(isinstance(value, str) for value in data.values()):
            return None
        return cls(**data)

    def to_json(self) -> dict[str, str]:
        """Give the mark as plain data."""
        return asdict(self)

    @property
    def maker(self) -> Maker:
        """Whether the process that made it is still at work, as far as this machine can tell."""
        if self.host != socket.gethostname() or sys.platform == "win32" or not self.process.isdecimal():
            return Maker.ELSEWHERE
        here, there = _started(os.getpid()).split("/"), self.started.split("/")
        if len(here) == len(there) == _PARTS and here[0] == there[0] and here[1] != there[1]:
            return Maker.ELSEWHERE  # in another container of this machine, where numbers mean other processes
        try:
            os.kill(int(self.process), 0)
        except (ProcessLookupError, OverflowError):
            return Maker.GONE
        except PermissionError:
            return Maker.AT_WORK
        return Maker.AT_WORK if _started(int(self.process)) == self.started else Maker.GONE


_PARTS = 3


def _started(pid: int) -> str:
    """Tell processes of one number apart: boot of the machine, space of process numbers, and start (Linux; else nothing).

    A process that ended and was not waited for yet has no start any more.
    """
    with suppress(OSError, IndexError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = Path("/proc/self/ns/pid").readlink()
        state, *numbers = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return f"{boot}/{space}/{'' if state in 'ZX' else numbers[18]}"
    return ""
