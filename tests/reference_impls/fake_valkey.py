"""A server that says what a test wants it to say, byte for byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

FACTS = "redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\nrole:master\r\ncluster_enabled:0\r\n"

CLOSE = b"close"
SILENT = b"silent"


def bulk(text: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text.encode()), text.encode())


class FakeValkey:
    """Answers commands by name; notes every one of them."""

    def __init__(self, listener: socket.socket) -> None:
        self.answers: dict[str, bytes] = {"INFO": bulk(FACTS)}
        self.commands: list[str] = []
        self._listener = listener
        self._connections: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            while command := read_command(lines):
                name = command[0].decode().upper()
                self.commands.append(name)
                answer = self.answers.get(name, b"+OK\r\n")
                if answer == CLOSE:
                    return
                if answer != SILENT:
                    connection.sendall(answer)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the wait for the next connection, too
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def read_command(lines: IO[bytes]) -> list[bytes]:
    first = lines.readline()
    if not first.startswith(b"*"):
        return []
    parts = []
    for _ in range(int(first[1:])):
        length = int(lines.readline()[1:])
        parts.append(lines.read(length + 2)[:-2])
    return parts


@contextmanager
def fake_valkey() -> Iterator[FakeValkey]:
    """Run one for the length of the body."""
    server = FakeValkey(socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.close()
