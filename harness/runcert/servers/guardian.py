"""The guardian: a process of its own that starts servers, and stops them when whoever asked for them is gone.

It reads orders as JSON lines from standard input and reports on standard output.  When standard input ends, or the process
that started it does, by whatever means, it stops every server, kills what they left behind, and removes their directories.
It needs the standard library only, and runs in a session of its own, so that Ctrl-C does not reach it.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PATIENCE = 5.0
"""How many seconds a process has to end after its stop signal, before it is killed."""

_SET_CHILD_SUBREAPER = 36
_REMOVE_SEGMENT = 0


@dataclass(slots=True)
class _Child:
    """One process that was started."""

    popen: subprocess.Popen[bytes]
    stop_signal: int
    lock_file: str | None
    kill_at: float | None = None


class Guardian:
    """Carries out orders until nobody gives them any more.

    Args:
        parent: the process that gives the orders.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._children: dict[str, _Child] = {}
        self._directories: list[str] = []
        self._at_end: list[list[str]] = []
        self._unread = b""
        self._ending = False
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Carry out orders; at the end, stop and remove everything."""
        try:
            self._listen()
            while not self._ending:
                for key, _ in self._selector.select(self._until_next_kill()):
                    key.data()
                self._look_after_children()
        finally:
            self._stop_all()

    # -- what wakes it

    def _listen(self) -> None:
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, lambda *_: None)  # a signal that is ignored would be ignored by the servers too
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        self._selector.register(0, selectors.EVENT_READ, self._read)
        if hasattr(os, "pidfd_open"):  # a copy of the pipe in some other process must not keep servers alive
            with suppress(OSError):
                self._selector.register(os.pidfd_open(self._parent), selectors.EVENT_READ, self._end)
        if os.getppid() != self._parent:
            self._end()

    def _end(self) -> None:
        self._ending = True

    def _read(self) -> None:
        chunk = os.read(0, 65536)
        if not chunk:
            self._end()
            return
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _until_next_kill(self) -> float | None:
        deadlines = [child.kill_at for child in self._children.values() if child.kill_at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    # -- orders

    def _obey(self, order: dict[str, Any]) -> None:
        if order["order"] == "start":
            self._start(order)
        elif order["order"] == "signal":
            self._signal(order["id"], order["signal"])
        elif order["order"] == "stop":
            self._stop(order["id"])
        elif order["order"] == "directory":
            self._directories.append(order["path"])
        elif order["order"] == "at-end":
            self._at_end.append(order["command"])
        elif order["order"] == "ping":
            self._look_after_children()
            _report(event="pong", id=order["id"])

    def _start(self, order: dict[str, Any]) -> None:
        account = order["account"]
        as_account: dict[str, Any] = {"user": account[0], "group": account[1], "extra_groups": []} if account else {}
        try:
            with os.fdopen(os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as log:
                popen: subprocess.Popen[Any] = subprocess.Popen(
                    order["command"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=order["directory"],
                    env=order["environment"],
                    start_new_session=True,
                    umask=0o077,
                    **as_account,
                )
        except (OSError, subprocess.SubprocessError) as error:
            _report(event="ended", id=order["id"], status=None, message=f"{type(error).__name__}: {error}")
            return
        self._children[order["id"]] = _Child(popen, order["stop_signal"], order["lock_file"])
        _report(event="started", id=order["id"], pid=popen.pid)

    def _signal(self, name: str, number: int) -> None:
        child = self._children.get(name)
        if child is not None:
            with suppress(ProcessLookupError):
                child.popen.send_signal(number)

    def _stop(self, name: str) -> None:
        child = self._children.get(name)
        if child is not None:
            self._signal(name, child.stop_signal)
            child.kill_at = time.monotonic() + _PATIENCE

    def _look_after_children(self) -> None:
        for name, child in list(self._children.items()):
            status = child.popen.poll()
            if status is not None:
                del self._children[name]
                _kill_group(child.popen.pid)
                _remove_shared_memory(child.lock_file)
                _report(event="ended", id=name, status=status, message="")
            elif child.kill_at is not None and time.monotonic() >= child.kill_at:
                child.kill_at = None
                _kill_group(child.popen.pid)

    # -- the end

    def _stop_all(self) -> None:
        for name in list(self._children):
            self._stop(name)
        deadline = time.monotonic() + _PATIENCE
        for child in self._children.values():
            with suppress(subprocess.TimeoutExpired):
                child.popen.wait(max(0.0, deadline - time.monotonic()))
            _kill_group(child.popen.pid)
            child.popen.kill()
            child.popen.wait()
            _remove_shared_memory(child.lock_file)
        _kill_orphans()
        for command in self._at_end:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=60,
                    check=False,
                )
        for directory in self._directories:
            shutil.rmtree(directory, ignore_errors=True)


def _report(**content: object) -> None:
    with suppress(OSError):
        os.write(1, json.dumps(content).encode() + b"\n")


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends first (Linux), so that none of them gets away."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_orphans() -> None:
    deadline = time.monotonic() + _PATIENCE
    while (orphans := _own_children()) and time.monotonic() < deadline:
        for pid in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _own_children() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat") if sys.platform == "linux" else ():
        with suppress(OSError, ValueError, IndexError):
            if int(entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(entry.parent.name))
    return found


def _remove_shared_memory(lock_file: str | None) -> None:
    """Remove the System V segment of a PostgreSQL that was killed; its lock file, which then is still there, names it."""
    if lock_file is None:
        return
    with suppress(OSError, ValueError, IndexError, AttributeError):
        segment = int(Path(lock_file).read_text(encoding="utf-8").splitlines()[6].split()[1])
        ctypes.CDLL(None).shmctl(segment, _REMOVE_SEGMENT, None)


def main() -> None:
    """Run the guardian for the process named on the command line."""
    _adopt_orphans()
    Guardian(int(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
