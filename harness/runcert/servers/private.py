"""Private servers from binaries: a directory and a port of their own, one user with a password that nobody else learns."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runcert.problems import UsageProblem
from runcert.servers.accounts import Account, is_reachable, unprivileged_account
from runcert.servers.binaries import Binaries, Unavailable, copied_for
from runcert.servers.guarding import Guarded, GuardianProcess
from runcert.servers.kinds import HOST, Kind, Place, Settings

__all__ = ["PrivateServers", "Running", "free_port"]

START_SECONDS = 90.0
"""How long one server may take to start, on a slow machine."""

_LOOK_EVERY = 0.01
_ATTEMPTS = 5
_LOG_TAIL = 8000
_LAST_LINES = 8
_COMPLAINT = re.compile(r"\b(ERROR|FATAL|PANIC)\b|[Ee]rror:|cannot|failed")
_OTHER_PLACES = ("/tmp", "/var/tmp")  # noqa: S108  # a directory of our own is made there, by mkdtemp


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs.

    Attributes:
        url: its address, with the password.
        title: what it is, for messages.
        version: its version.
        way: how it was had.
        process: its process, for a private one.
        log: where it writes, for a private one.
    """

    url: str
    title: str
    version: str
    way: str
    process: Guarded | None = None
    log: Path | None = None

    @property
    def log_tail(self) -> str:
        """The last lines that it wrote."""
        return log_tail(self.log)


class PrivateServers:
    """Starts private servers of one run.

    Args:
        root: the directory of the run.
        guardian: starts and stops their processes.
        port: gives a free port.
    """

    def __init__(self, root: Path, guardian: GuardianProcess, port: Callable[[], int] | None = None) -> None:
        self._root = root
        self._guardian = guardian
        self._port = port or free_port
        self._lock = threading.Lock()
        self._bases: dict[Account | None, Path] = {}
        self._made = 0

    @property
    def directories(self) -> list[Path]:
        """The directories in which servers live; they go when the guardian ends."""
        return list(self._bases.values())

    def start(self, kind: Kind, binaries: Binaries, settings: Settings) -> Running:
        """Start a server and wait until clients may come.

        Raises:
            UsageProblem: it does not start; the message has what it wrote.
            Unavailable: its programs cannot be run by the account that has to.
        """
        account = _account_for(kind)
        base, name = self._directory(kind, account)
        with self._lock:
            binaries = copied_for(binaries, account, base / f"{kind.name}-programs")
        place = Place(_made(base / name, account), binaries, self._port(), secrets.token_hex(16), settings)
        log = base / f"{name}.log"
        self._prepare(kind, place, account, log)
        attempts = 0
        while True:
            attempts += 1
            _write(place.directory, kind.configuration(place), account)
            begin = log.stat().st_size
            process = self._run(kind, place, kind.command(place), account, log)
            if self._is_ready(kind, process, log, begin):
                url = kind.url(kind.user, place.password, HOST, place.port)
                return Running(url, kind.title, binaries.version, binaries.way, process, log)
            if attempts == _ATTEMPTS or not kind.port_taken.search(_written(log, begin)):
                raise _did_not_start(kind, binaries, process, log)
            place = replace(place, port=self._port())  # somebody else was quicker

    # -- steps

    def _directory(self, kind: Kind, account: Account | None) -> tuple[Path, str]:
        with self._lock:
            self._made += 1
            if account not in self._bases:
                self._bases[account] = self._new_base(account)
                self._guardian.remove_at_end(self._bases[account])
            return self._bases[account], f"{kind.name}-{self._made}"

    def _new_base(self, account: Account | None) -> Path:
        """Make the directory of all servers of an account: in the run's own, or where the account can reach it."""
        if account is None:
            base = self._root / "servers"
            base.mkdir(mode=0o700)
            return base
        places = [Path(tempfile.gettempdir()), *map(Path, _OTHER_PLACES)]
        reachable = [place for place in places if is_reachable(place, account)]
        if not reachable:
            tried = ", ".join(map(str, places))
            raise UsageProblem(
                f"servers that refuse root run as {account.name} here, which can reach none of {tried}; set TMPDIR to a directory that it can"
            )
        base = Path(tempfile.mkdtemp(prefix="runcert-servers-", dir=reachable[0]))
        base.chmod(0o711)  # it is passed through, not listed
        return base

    def _prepare(self, kind: Kind, place: Place, account: Account | None, log: Path) -> None:
        _write(place.directory, kind.lay_out(place), account)
        command = kind.preparation(place)
        if command is None:
            log.touch(mode=0o600)
            return
        process = self._run(kind, place, command, account, log)
        if not process.ended.wait(START_SECONDS):
            self._guardian.stop_process(process)
        if process.status != 0:
            raise _did_not_start(kind, place.binaries, process, log)

    def _run(self, kind: Kind, place: Place, command: Sequence[str], account: Account | None, log: Path) -> Guarded:
        directory = str(place.directory)
        environment = {"PATH": os.defpath + ":/usr/sbin:/sbin", "LC_ALL": "C", "HOME": directory, "TMPDIR": directory}
        return self._guardian.start(
            command,
            directory=place.directory,
            environment=environment,
            log=log,
            account=account,
            stop_signal=kind.stop_signal,
            lock_file=kind.lock_file(place),
        )

    def _is_ready(self, kind: Kind, process: Guarded, log: Path, begin: int) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while not kind.ready.search(_written(log, begin)):
            if process.ended.wait(_LOOK_EVERY):
                return False
            if time.monotonic() > deadline:
                self._guardian.stop_process(process)
                return False
        return True


def free_port() -> int:
    """Find a port of 127.0.0.1 that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def log_tail(log: Path | None) -> str:
    """Give the last lines of a log, indented."""
    if log is None or not log.exists():
        return ""
    lines = [line for line in _written(log, max(0, log.stat().st_size - _LOG_TAIL)).splitlines() if line.strip()]
    shown = [line for line in lines[:-_LAST_LINES] if _COMPLAINT.search(line)][-_LAST_LINES:] + lines[-_LAST_LINES:]
    return "\nIt wrote last:\n" + "\n".join(f"  | {line[:300]}" for line in shown) if shown else ""


def _written(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read().decode("utf-8", "replace")


def _account_for(kind: Kind) -> Account | None:
    if not kind.refuses_root:
        return None
    try:
        return unprivileged_account()
    except LookupError as problem:
        raise Unavailable(f"{kind.title} refuses to run as root, and {problem}") from problem


def _made(directory: Path, account: Account | None) -> Path:
    directory.mkdir(mode=0o700)
    if account is not None:
        shutil.chown(directory, account.user, account.group)
    return directory


def _write(directory: Path, files: Mapping[str, str], account: Account | None) -> None:
    """Write files that nobody but the account can read; a link that lies in their place is not followed."""
    for name, content in files.items():
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if account is not None:
                os.fchown(descriptor, account.user, account.group)
            file.write(content)


def _did_not_start(kind: Kind, binaries: Binaries, process: Guarded, log: Path) -> UsageProblem:
    return UsageProblem(
        f"{kind.title} {binaries.version} ({binaries.way}: {binaries.server}) did not start: it {process.end_in_words}{log_tail(log)}"
    )
