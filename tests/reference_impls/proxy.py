"""A small proxy between a store and its server, which can fall silent, lose an answer, or go away."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes bytes on, until it is told otherwise.

    Args:
        host: where the server is.
        port: its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.silent = False
        self.cuts_answers = False
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse new connections and end those that are there."""
        _end(self._listener)
        self.cut()

    def cut(self) -> None:
        """End every connection."""
        for one in self._sockets:
            _end(one)
        self._sockets.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client), kwargs={"back": True}, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, *, back: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if back and self.cuts_answers:
                    break
                if not self.silent:
                    target.sendall(data)
        _end(source)
        _end(target)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
