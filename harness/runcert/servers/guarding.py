"""The side of the guardian that gives the orders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from runcert.problems import KitProblem
from runcert.servers.accounts import Account

__all__ = ["Guarded", "GuardianProcess"]

_ANSWER_SECONDS = 30.0
_END_SECONDS = 60.0


@dataclass(slots=True)
class Guarded:
    """One process that the guardian started.

    Attributes:
        pid: its number; 0 where it could not be started.
        status: its exit status once it ended, negative for a signal; None where it could not be started.
        message: why it could not be started.
    """

    name: str
    pid: int = 0
    status: int | None = None
    message: str = ""
    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def end_in_words(self) -> str:
        """How it ended."""
        if self.status is None and self.pid:
            return f"is gone ({self.message})"
        if self.status is None:
            return f"could not be started ({self.message})"
        if self.status < 0:
            return f"was ended by signal {-self.status} ({signal.Signals(-self.status).name})"
        return f"ended with status {self.status}"


class GuardianProcess:
    """The guardian, started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._known: dict[str, Guarded] = {}
        self._answered: dict[str, threading.Event] = {}
        self._popen: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._stopped = False

    def start(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        log: Path,
        account: Account | None = None,
        stop_signal: int = signal.SIGKILL,
        lock_file: Path | None = None,
    ) -> Guarded:
        """Start a process.

        Args:
            command: the program and its arguments.
            directory: where it works.
            environment: all of its environment.
            log: where its output goes.
            account: under whose account it runs; the kit's own where none is given.
            stop_signal: what asks it to end at once.
            lock_file: a PostgreSQL lock file that names shared memory which has to be removed with the process.

        Raises:
            KitProblem: the guardian is gone.
        """
        guarded = Guarded(f"p{next(self._numbers)}")
        self._known[guarded.name] = guarded
        self._order(
            order="start",
            id=guarded.name,
            command=list(command),
            directory=str(directory),
            environment=dict(environment),
            log=str(log),
            account=[account.user, account.group] if account is not None else None,
            stop_signal=int(stop_signal),
            lock_file=str(lock_file) if lock_file is not None else None,
        )
        if not guarded.started.wait(_ANSWER_SECONDS):
            raise KitProblem("the guardian of the servers does not answer")
        return guarded

    def stop_process(self, guarded: Guarded) -> None:
        """Stop one process and wait for its end."""
        self._order(order="stop", id=guarded.name)
        guarded.ended.wait(_ANSWER_SECONDS)

    def remove_at_end(self, directory: Path) -> None:
        """Let the guardian remove a directory at the end."""
        self._order(order="directory", path=str(directory))

    def run_at_end(self, command: Sequence[str]) -> None:
        """Let the guardian run a command at the end."""
        self._order(order="at-end", command=list(command))

    def settle(self) -> None:
        """Wait until every end so far has been told, the guardian's own too."""
        if self._popen is None:
            return
        name, answered = f"q{next(self._numbers)}", threading.Event()
        self._answered[name] = answered
        try:
            self._order(order="ping", id=name)
        except KitProblem:  # it is gone; the thread that reads notices that as well
            if self._reader is not None:
                self._reader.join(_ANSWER_SECONDS)
            return
        answered.wait(_ANSWER_SECONDS)

    def stop(self) -> None:
        """Let the guardian stop and remove everything, and wait until it did; a second call does nothing."""
        with self._lock:
            self._stopped = True
            popen = self._popen
        if popen is None or popen.stdin is None:
            return
        with suppress(OSError):
            popen.stdin.close()
        try:
            popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        if self._reader is not None:
            self._reader.join(timeout=5)
        if popen.stdout is not None:
            popen.stdout.close()

    # -- talking

    def _order(self, **content: Any) -> None:
        with self._lock:
            if self._stopped:
                raise KitProblem("the servers of this run are stopped already")
            if self._popen is None:
                self._popen = self._begin()
            try:
                if self._popen.stdin is not None:
                    self._popen.stdin.write(json.dumps(content).encode() + b"\n")
                    self._popen.stdin.flush()
            except OSError as error:
                raise KitProblem(f"the guardian of the servers is gone ({error})") from error

    def _begin(self) -> subprocess.Popen[bytes]:
        popen = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-P", "-m", "runcert.servers.guardian", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(popen,), name="runcert-guardian", daemon=True)
        self._reader.start()
        return popen

    def _read(self, popen: subprocess.Popen[bytes]) -> None:
        if popen.stdout is not None:
            for line in popen.stdout:
                self._note(json.loads(line))
        if not self._stopped:
            self._lost_guardian()

    def _note(self, report: dict[str, Any]) -> None:
        if report["event"] == "pong":
            self._answered.pop(report["id"]).set()
            return
        guarded = self._known[report["id"]]
        if report["event"] == "started":
            guarded.pid = report["pid"]
        else:
            guarded.status, guarded.message = report["status"], report["message"]
            guarded.ended.set()
        guarded.started.set()

    def _lost_guardian(self) -> None:
        """Kill what a guardian that was killed itself left behind, and let nobody wait for it."""
        for guarded in list(self._known.values()):
            if guarded.pid and not guarded.ended.is_set():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(guarded.pid, signal.SIGKILL)
                guarded.message = "the guardian of the servers was killed"
            guarded.ended.set()
            guarded.started.set()
        for answered in list(self._answered.values()):
            answered.set()
