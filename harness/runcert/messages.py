"""What the supervisor and its child processes say to each other: JSON objects over one connection."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Client, Connection
from typing import Any

from runcert.cases import Depth

__all__ = ["ADDRESS", "ANY_CLAUSE", "HUNG", "KEY", "ROOT", "Channel", "Job", "Settings", "connect"]

ADDRESS = "RUNCERT_SUPERVISOR_ADDRESS"
KEY = "RUNCERT_SUPERVISOR_KEY"
ROOT = "RUNCERT_RUN_DIRECTORY"

HUNG = 70
"""The exit status of a child that ended itself because a call hung; it reported the hang before."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a whole run.

    Attributes:
        root: the directory of the run; everything that is written lies below it.
        depth: how long to try.
        seed: everything random follows from it.
        servers: what the user said of servers, by name: an address, or a way in which the kit gets one.
        desk: where the kit is asked for servers.
    """

    root: str
    depth: str = Depth.STANDARD.value
    seed: int = 0
    servers: dict[str, str] = field(default_factory=dict)
    desk: str = ""


ANY_CLAUSE = "any"
"""Stop at the first failure, whichever clause it is of (how soon a fault is found is measured so)."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one child runs on one target.

    Attributes:
        spec: how the target is resolved.
        checks: the ids of the checks.
        until_red: the clause at whose first failure to stop, or :data:`ANY_CLAUSE`; empty to run every check.
        faulty: True for a faulty store: a failing check is then repeated on the same store without the fault.
    """

    spec: str
    checks: list[str]
    until_red: str = ""
    faulty: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give the job as plain data."""
        return asdict(self)


class Channel:
    """One end of the connection."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection

    def send(self, kind: str, **content: Any) -> None:
        """Send one message; a peer that is gone is not an error of the sender."""
        try:
            self._connection.send_bytes(json.dumps({"kind": kind, **content}).encode())
        except (OSError, BrokenPipeError):
            return

    def receive(self) -> dict[str, Any] | None:
        """Wait for the next message; None when the peer is gone."""
        try:
            message: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError, TypeError):  # a connection that another thread closes has no handle any more: TypeError
            return None
        return message

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


def connect() -> Channel:
    """Connect a child process to its supervisor."""
    address = json.loads(os.environ[ADDRESS])  # a path, or host and port
    return Channel(Client(address if isinstance(address, str) else tuple(address), authkey=bytes.fromhex(os.environ[KEY])))
