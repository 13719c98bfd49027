"""The laboratory: what the kit gives an adapter to open a store with.

A lab is plain data plus services, so that another process can be given the same one (:meth:`Lab.to_json`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import overload

from runcert.masking import remember_password
from runcert.problems import UsageProblem
from runcert.reach import Reach
from runcert.servers.asking import ask_for_server
from runcert.wire import Wire
from runcert_contract import JsonValue

__all__ = ["Clock", "Lab"]


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock that the kit can turn; a store that reads the time takes it from here.

    The offset lies in a file, so that every process of a run sees the same time.

    Args:
        file: where the offset in seconds is kept.
        skew: how far the clock of this client is off, in seconds.
    """

    file: Path
    skew: float = 0.0

    def now(self) -> datetime:
        """Give the time of the lab, aware, in UTC."""
        return datetime.now(timezone.utc) + timedelta(seconds=self._offset() + self.skew)

    def turn(self, seconds: float) -> None:
        """Turn the clock forward, or back where ``seconds`` is negative."""
        self.file.write_text(repr(self._offset() + seconds), encoding="ascii")

    def _offset(self) -> float:
        try:
            return float(self.file.read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0.0


@dataclass(frozen=True, slots=True)
class Lab:
    """What an adapter needs to open one handle.

    Attributes:
        namespace: an identifier ``[a-z0-9_]{1,40}``: schema, prefix or directory name; everything the store keeps lies under it.
        directory: an empty directory of this namespace, for stores that keep files.
        clock: the time, for stores that read it.
        prepared: what the adapter's ``prepare`` returned for this namespace.
        servers: what the user said of servers, by name: ``--server NAME=URL``, or a way in which the kit gets one.
        desk: where the kit is asked for services; empty where nobody answers.
        patience: how long, in seconds, the store should wait for its backend before it gives up; None leaves it to the store.
            The kit gives a short one where it takes the backend away, so that a run with many outages stays short.
        settings: settings of servers, by name, that a check wants instead of the adapter's.
        wire: what stands between this client and its backends; None where nothing does.
        reach: what was asked of the lab so far.
    """

    namespace: str
    directory: Path
    clock: Clock
    prepared: JsonValue = None
    servers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _secret: str = field(default="", repr=False)
    desk: str = field(default="", repr=False)
    patience: float | None = None
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    wire: Wire | None = field(default=None, repr=False, compare=False)
    reach: Reach = field(default_factory=Reach, repr=False, compare=False)

    @property
    def secret(self) -> str:
        """A password of this run: use it wherever your store takes a credential, and the kit checks that it never shows.

        Reading it is noted; a store whose adapter never does is judged by its attempt tokens alone (ERROR-2).
        """
        return self._secret

    def server(self, name: str, **settings: str | float | bool) -> str:
        """Give the address of a server; the kit starts it when it is first asked for.

        Everybody in a run who asks for the same server with the same settings gets the same one.

        Args:
            name: the kind of server: ``"postgresql"``, ``"mariadb"``, ``"valkey"``, ``"redis"``, or any for which the user gave an
                address with ``--server NAME=URL``.
            settings: settings of a server that the kit starts, in its own words, for instance
                ``**{"maxmemory-policy": "allkeys-lru"}``; a server of the user's stays as it is (see :meth:`starts`).

        Returns:
            Its URL, with user and password.

        Raises:
            UsageProblem: it cannot be had; the message says what was tried and what to do.
            AdapterProblem: it ended in the middle of the run.
        """
        told = self.servers.get(name, "")
        if "://" in told:
            self.reach.note_server(name, told, of_the_user=True)
            return remember_password(told)
        if not self.desk:
            raise UsageProblem(f"the adapter needs a server {name!r}; give its address with --server {name}=URL")
        url = ask_for_server(self.desk, name, {**settings, **self.settings.get(name, {})})
        self.reach.note_server(name, url)
        return remember_password(url)

    def starts(self, name: str) -> bool:
        """Say whether the kit starts the server ``name`` itself, so that settings take effect and nobody else is on it."""
        return bool(self.desk) and "://" not in self.servers.get(name, "")

    @overload
    def route(self, host_or_path: str, port: int) -> tuple[str, int]: ...

    @overload
    def route(self, host_or_path: str) -> str: ...

    def route(self, host_or_path: str, port: int | None = None) -> tuple[str, int] | str:
        """Give the address to connect to for a backend at a host and port, or at the path of a UNIX socket.

        An adapter that takes its addresses from here lets the kit stand between store and backend, in the checks that need it
        (ABSENT-1, BOUND-2, RESIDUE-2); in all others, and in client processes, it gets the address back as it is.

        Args:
            host_or_path: the host, or the path of the socket.
            port: the port; left out for a path.

        Returns:
            Host and port, or a path.  The last part of a path stays as it is.
        """
        self.reach.note_route()
        if port is None:
            return host_or_path if self.wire is None else self.wire.path(host_or_path)
        return (host_or_path, port) if self.wire is None else self.wire.address(host_or_path, port)

    def to_json(self) -> str:
        """Give the lab as JSON, for another process; :meth:`from_json` makes it again, without what stands in between."""
        return json.dumps(
            {
                "namespace": self.namespace,
                "directory": str(self.directory),
                "clock": str(self.clock.file),
                "skew": self.clock.skew,
                "prepared": self.prepared,
                "servers": dict(self.servers),
                "secret": self._secret,
                "desk": self.desk,
                "patience": self.patience,
                "settings": {name: dict(given) for name, given in self.settings.items()},
            }
        )

    @classmethod
    def from_json(cls, text: str, skew: float = 0.0) -> Lab:
        """Make the lab that :meth:`to_json` wrote.

        Args:
            text: the JSON.
            skew: how far the clock of this client is off, in seconds.
        """
        data = json.loads(text)
        return cls(
            namespace=data["namespace"],
            directory=Path(data["directory"]),
            clock=Clock(Path(data["clock"]), data["skew"] + skew),
            prepared=data["prepared"],
            servers=data["servers"],
            _secret=data["secret"],
            desk=data["desk"],
            patience=data["patience"],
            settings=data["settings"],
        )
