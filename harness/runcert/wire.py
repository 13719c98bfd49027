"""What stands between a store and its backend: a small proxy that can be gone, reset connections, fall silent, or cut a message.

A :class:`Wire` belongs to one client: every client has ports of its own.  One thread does all of it, so that a change of mode
holds for whatever comes after it; it counts what it sees, because a fault that hit nothing proves nothing.
"""

from __future__ import annotations

import os
import queue
import selectors
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from runcert.problems import KitProblem

__all__ = ["LONGEST_SOCKET_PATH", "Cut", "Mode", "Traffic", "Wire"]

_HOST = "127.0.0.1"
_CHUNK = 1 << 18
_PATIENCE = 10.0
"""How long the backend, or a client that does not read, is waited for, in seconds."""

_RESETTING = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
"""``SO_LINGER`` with no time: closing such a socket resets the connection."""

LONGEST_SOCKET_PATH = 100
"""The address of a UNIX socket holds 104 bytes on some systems, 108 on others."""

_Address: TypeAlias = tuple[str, int] | str
_T = TypeVar("_T")


class Mode(Enum):
    """What becomes of connections."""

    PASS = "pass"  # noqa: S105  # no password
    """Every byte is passed on."""

    GONE = "gone"
    """Nobody listens, and every connection has ended."""

    RESET = "reset"
    """New connections are reset, and those that are there as soon as the client says something; the backend hears nothing of it."""

    SILENT = "silent"
    """Connections are accepted, what the client says is swallowed, and nothing is answered."""


class Cut(Enum):
    """Where one exchange is cut; the connection is reset there, and everything before and after it is passed on."""

    REQUEST = "the request, before the backend saw it"
    REPLY = "the reply, after the backend had done its work"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was seen.

    Attributes:
        connections: how many connections clients made.
        requests: how many pieces clients sent; a request that a client sends at once and that is not large is one piece.
        struck: how often a fault hit something: a connection that ended, was reset or was accepted in silence, a piece that was
            swallowed or cut.
    """

    connections: int = 0
    requests: int = 0
    struck: int = 0


@dataclass(eq=False, slots=True)
class _Connection:
    client: socket.socket
    backend: socket.socket | None
    tampered: bool = False
    awaits_cut: bool = False


@dataclass(eq=False, slots=True)
class _Link:
    """The way to one backend; ``place`` keeps the port while nobody listens there."""

    backend: _Address
    front: _Address
    listener: socket.socket | None = None
    place: socket.socket | None = None


class Wire:
    """One client's way to its backends; every method may be called from any thread.

    Args:
        directory: where sockets of the file system are made, if any are wanted; it has to exist.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sockets: Path | None = None
        self._selector = selectors.DefaultSelector()
        self._links: dict[_Address, _Link] = {}
        self._connections: set[_Connection] = set()
        self._mode = Mode.PASS
        self._cut: tuple[Cut, int] | None = None
        self._silence_ends: float | None = None
        self._gave_up = False
        self._traffic = Traffic()
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._bell, self._inbox = socket.socketpair()
        self._inbox.setblocking(False)
        self._selector.register(self._inbox, selectors.EVENT_READ, self._take_orders)
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name="runcert-wire", daemon=True)
        self._thread.start()

    # -- for whoever connects

    def address(self, host: str, port: int) -> tuple[str, int]:
        """Give the address at which this client finds the backend at ``host`` and ``port``; the same one each time."""
        front = self._do(lambda: self._link((host, port)).front)
        return front if isinstance(front, tuple) else (front, 0)

    def path(self, path: str) -> str:
        """Give the path at which this client finds the backend at the UNIX socket ``path``; its last part stays as it is."""
        return str(self._do(lambda: self._link(path).front))

    # -- for whoever tries a store

    @property
    def traffic(self) -> Traffic:
        """What was seen so far."""
        return self._do(lambda: self._traffic)

    @property
    def gave_up(self) -> bool:
        """True where a silence lasted until the wire itself ended it."""
        return self._do(lambda: self._gave_up)

    def be(self, mode: Mode, seconds: float | None = None) -> None:
        """Change the mode; it holds when this returns.

        Connections that were tampered with are reset when the mode ends, as their two sides no longer agree on what was said.

        Args:
            mode: from now on.
            seconds: how long a silence lasts at most.  After that connections are reset, also new ones, so that a client without a
                time-out of its own does not hold up the kit; :attr:`gave_up` then says so.
        """
        self._do(lambda: self._change(mode, seconds))

    def cut(self, where: Cut, number: int = 1) -> None:
        """Cut one exchange.

        Args:
            where: on its way there or on its way back.
            number: which of the pieces that clients send from now on, the first being 1.
        """
        self._do(lambda: self._arm((where, number)))

    def heal(self) -> bool:
        """Pass everything on again, and forget a cut that did not come about.

        Returns:
            True where the cut that was asked for last did come about.
        """
        return self._do(self._disarm)

    def close(self) -> None:
        """End every connection and listen no more; a second call does nothing."""
        if self._thread.is_alive():
            with suppress(KitProblem):
                self._do(self._end)
            self._thread.join(_PATIENCE)

    # -- orders, carried out in the thread of the wire

    def _do(self, action: Callable[[], _T]) -> _T:
        answer: Future[_T] = Future()

        def carry_out() -> None:
            try:
                answer.set_result(action())
            except BaseException as error:  # noqa: BLE001  # handed to whoever gave the order
                answer.set_exception(error)

        self._orders.put(carry_out)
        try:
            self._bell.send(b"!")
            return answer.result(_PATIENCE)
        except (OSError, TimeoutError) as error:
            raise KitProblem(f"the wire to the backend was closed, or does not answer ({error!r})") from error

    def _take_orders(self) -> None:
        with suppress(BlockingIOError):
            self._inbox.recv(1024)
        while not self._orders.empty():
            self._orders.get()()

    def _change(self, mode: Mode, seconds: float | None) -> None:
        if mode is Mode.GONE:
            for link in self._links.values():
                self._stop_listening(link)
            self._strike(len(self._connections))
            for connection in list(self._connections):
                self._end_connection(connection)
        elif self._mode is Mode.GONE:
            for link in self._links.values():
                self._listen(link)
        for connection in [one for one in self._connections if one.tampered]:
            self._reset(connection)
        self._mode, self._gave_up = mode, False
        self._silence_ends = None if seconds is None else time.monotonic() + seconds

    def _arm(self, cut: tuple[Cut, int]) -> None:
        self._cut = cut

    def _disarm(self) -> bool:
        happened = self._cut is None
        self._cut = None
        for connection in self._connections:
            if connection.awaits_cut:
                happened, connection.awaits_cut = False, False
        self._change(Mode.PASS, None)
        return happened

    # -- the thread

    def _serve(self) -> None:
        try:
            while not self._ended:
                wait = None if self._silence_ends is None else max(0.0, self._silence_ends - time.monotonic())
                for key, _ in self._selector.select(wait):
                    self._handle(key)
                if self._silence_ends is not None and time.monotonic() >= self._silence_ends:
                    self._give_up()
        finally:
            self._end()  # whatever happened, nobody listens any more

    def _handle(self, key: selectors.SelectorKey) -> None:
        """Do what a socket is there for, unless what came just before has closed it, or everything."""
        if isinstance(key.fileobj, socket.socket) and key.fileobj.fileno() >= 0:
            key.data()

    def _give_up(self) -> None:
        self._change(Mode.RESET, None)
        self._gave_up = True

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        for connection in list(self._connections):
            self._end_connection(connection)
        for link in self._links.values():
            self._stop_listening(link)
            if link.place is not None:
                link.place.close()
        for one in (self._inbox, self._bell):
            one.close()
        self._selector.close()
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)

    # -- listening

    def _link(self, backend: _Address) -> _Link:
        if backend not in self._links:
            link = _Link(backend, self._new_path(backend) if isinstance(backend, str) else (_HOST, 0))
            self._listen(link)
            if self._mode is Mode.GONE:
                self._stop_listening(link)
            self._links[backend] = link
        return self._links[backend]

    def _new_path(self, backend: str) -> str:
        """Give a path in a directory of its own, because clients look for sockets by the last part of their path."""
        if self._sockets is None:
            short = len(str(self._directory)) + len(Path(backend).name) < LONGEST_SOCKET_PATH - 16
            self._sockets = Path(tempfile.mkdtemp(prefix="rcw", dir=self._directory if short else None))
        return str(Path(tempfile.mkdtemp(dir=self._sockets, prefix="")) / Path(backend).name)

    def _listen(self, link: _Link) -> None:
        listener = socket.socket(_family(link.front))
        if isinstance(link.front, str):
            Path(link.front).unlink(missing_ok=True)
        else:
            _share_port(listener)
        listener.bind(link.front)
        listener.listen()
        link.front = listener.getsockname()
        if link.place is None and not isinstance(link.front, str) and hasattr(socket, "SO_REUSEPORT"):
            link.place = socket.socket()
            _share_port(link.place)
            link.place.bind(link.front)
        link.listener = listener
        self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, link))

    def _stop_listening(self, link: _Link) -> None:
        if link.listener is not None:
            self._selector.unregister(link.listener)
            link.listener.close()
            link.listener = None

    def _accept(self, link: _Link) -> None:
        if link.listener is None:
            return
        try:
            client, _ = link.listener.accept()
        except OSError:  # the client went away again
            return
        self._traffic = replace(self._traffic, connections=self._traffic.connections + 1)
        backend = None
        if self._mode is not Mode.PASS:
            self._strike()
        if self._mode is Mode.RESET:
            _close_with_reset(client)
            return
        if self._mode is Mode.PASS:
            try:
                backend = _connect(link.backend)
            except OSError:
                _close_with_reset(client)
                return
        connection = _Connection(client, backend, tampered=backend is None)
        self._connections.add(connection)
        self._watch(client, partial(self._from_client, connection))
        if backend is not None:
            self._watch(backend, partial(self._from_backend, connection, backend))

    def _watch(self, one: socket.socket, then: Callable[[], None]) -> None:
        one.settimeout(_PATIENCE)
        if one.family != getattr(socket, "AF_UNIX", None):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(one, selectors.EVENT_READ, then)

    # -- passing on

    def _from_client(self, connection: _Connection) -> None:
        data = _received(connection.client)
        if not data:
            self._end_connection(connection)
            return
        self._traffic = replace(self._traffic, requests=self._traffic.requests + 1)
        if self._mode is Mode.SILENT:
            connection.tampered = True
            self._strike()
        elif self._mode is not Mode.PASS or connection.backend is None or self._is_cut_here(connection):
            self._strike()
            self._reset(connection)
        else:
            self._pass_on(connection, connection.backend, data)

    def _is_cut_here(self, connection: _Connection) -> bool:
        if self._cut is None:
            return False
        where, number = self._cut
        self._cut = (where, number - 1) if number > 1 else None
        if number == 1 and where is Cut.REPLY:
            connection.awaits_cut = True
        return number == 1 and where is Cut.REQUEST

    def _from_backend(self, connection: _Connection, backend: socket.socket) -> None:
        data = _received(backend)
        if not data:
            self._end_connection(connection)
        elif self._mode is Mode.SILENT:
            connection.tampered = True
            self._strike()
        elif self._mode is Mode.RESET or connection.awaits_cut:
            connection.awaits_cut = False
            self._strike()
            self._reset(connection)
        else:
            self._pass_on(connection, connection.client, data)

    def _pass_on(self, connection: _Connection, target: socket.socket, data: bytes) -> None:
        try:
            target.sendall(data)
        except OSError:
            self._end_connection(connection)

    def _strike(self, number: int = 1) -> None:
        self._traffic = replace(self._traffic, struck=self._traffic.struck + number)

    def _reset(self, connection: _Connection) -> None:
        with suppress(OSError):
            connection.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETTING)
        self._end_connection(connection)

    def _end_connection(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        for one in (connection.client, connection.backend):
            if one is not None and one.fileno() >= 0:
                with suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                one.close()


def _family(address: _Address) -> int:
    return int(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)


def _share_port(one: socket.socket) -> None:
    """Let a second socket of this kind be bound to the port, so that the port stays taken while nobody listens there."""
    if hasattr(socket, "SO_REUSEPORT"):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _connect(backend: _Address) -> socket.socket:
    if isinstance(backend, tuple):
        return socket.create_connection(backend, timeout=_PATIENCE)
    made = socket.socket(_family(backend))
    made.settimeout(_PATIENCE)
    try:
        made.connect(backend)
    except OSError:
        made.close()
        raise
    return made


def _close_with_reset(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETTING)
    one.close()


def _received(one: socket.socket) -> bytes:
    """Give the next piece; nothing where the connection ended."""
    try:
        return one.recv(_CHUNK)
    except OSError:
        return b""
