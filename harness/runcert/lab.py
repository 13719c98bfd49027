"""The laboratory: what the kit gives an adapter to open a store with.

A lab is plain data plus services, so that another process can be given the same one (:meth:`Lab.to_json`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from runcert.problems import UsageProblem
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
        servers: addresses of servers by name, as given with ``--server NAME=URL``.
    """

    namespace: str
    directory: Path
    clock: Clock
    prepared: JsonValue = None
    servers: Mapping[str, str] = field(default_factory=dict, repr=False)
    _secret: str = field(default="", repr=False)

    @property
    def secret(self) -> str:
        """A password of this run: use it wherever your store takes a credential, and the kit checks that it never shows.

        Reading it is noted; a store whose adapter never does is judged by its attempt tokens alone (ERROR-2).
        """
        return self._secret

    def server(self, name: str) -> str:
        """Give the address of a server.

        Args:
            name: the kind of server, for instance ``"postgresql"``.

        Returns:
            The URL that the user gave with ``--server NAME=URL``.

        Raises:
            UsageProblem: no address was given.
        """
        if name not in self.servers:
            raise UsageProblem(f"the adapter needs a server {name!r}; give its address with --server {name}=URL")
        return self.servers[name]

    def route(self, host: str, port: int) -> tuple[str, int]:
        """Give the address to connect to for a backend at ``host`` and ``port``.

        An adapter that takes its addresses from here lets the kit stand between store and backend.
        """
        return (host, port)

    def to_json(self) -> str:
        """Give the lab as JSON, for another process; :meth:`from_json` makes it again."""
        return json.dumps(
            {
                "namespace": self.namespace,
                "directory": str(self.directory),
                "clock": str(self.clock.file),
                "skew": self.clock.skew,
                "prepared": self.prepared,
                "servers": dict(self.servers),
                "secret": self._secret,
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
        )
