"""The proxy in a store's connections, in front of a server that says everything twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runcert.problems import KitProblem
from runcert.wire import Cut, Mode, Wire


class Echo:
    """A server that answers each piece with it twice, and keeps what it was told."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.heard: list[bytes] = []
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def end(self) -> None:
        """End every connection."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while data := connection.recv(1 << 16):
                self.heard.append(data)
                connection.sendall(data * 2)


@pytest.fixture
def echo() -> Iterator[Echo]:
    listener = socket.create_server(("127.0.0.1", 0))
    yield Echo(listener)
    listener.close()


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    made = Wire(tmp_path)
    yield made
    made.close()


@pytest.fixture
def address(wire: Wire, echo: Echo) -> tuple[str, int]:
    return wire.address("127.0.0.1", int(echo.listener.getsockname()[1]))


def connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=5)


def ask(client: socket.socket, question: bytes) -> bytes:
    client.sendall(question)
    return client.recv(100)


def test_what_passes_is_passed_on_and_counted(wire: Wire, address: tuple[str, int], echo: Echo) -> None:
    with connect(address) as client:
        assert b"abab" == ask(client, b"ab")
        assert b"cc" == ask(client, b"c")

    assert [b"ab", b"c"] == echo.heard
    assert (1, 2, 0) == (wire.traffic.connections, wire.traffic.requests, wire.traffic.struck)


def test_one_backend_has_one_address_and_two_wires_have_two(
    wire: Wire, address: tuple[str, int], echo: Echo, tmp_path: Path
) -> None:
    port = int(echo.listener.getsockname()[1])
    other = Wire(tmp_path)

    assert address == wire.address("127.0.0.1", port) != other.address("127.0.0.1", port)
    other.close()


def test_a_backend_that_is_gone_ends_connections_and_refuses_new_ones_until_it_is_back_at_the_same_place(
    wire: Wire, address: tuple[str, int]
) -> None:
    with connect(address) as client:
        ask(client, b"a")
        wire.be(Mode.GONE)
        assert b"" == client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(address)
    assert wire.traffic.struck == 1

    wire.be(Mode.PASS)

    with connect(address) as client:
        assert b"bb" == ask(client, b"b")


def test_a_backend_that_resets_hears_nothing(wire: Wire, address: tuple[str, int], echo: Echo) -> None:
    with connect(address) as client:
        ask(client, b"a")
        wire.be(Mode.RESET)
        with pytest.raises(ConnectionResetError):
            ask(client, b"b")
    with pytest.raises(ConnectionResetError), connect(address) as client:
        client.recv(1)

    assert [b"a"] == echo.heard
    assert wire.traffic.struck == 2


def test_silence_accepts_and_swallows_and_ends_with_a_reset(wire: Wire, address: tuple[str, int], echo: Echo) -> None:
    with connect(address) as old:
        ask(old, b"a")
        wire.be(Mode.SILENT)
        with connect(address) as new:
            for client in (old, new):
                client.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    ask(client, b"b")
            wire.be(Mode.PASS)
            for client in (old, new):
                client.settimeout(5)
                with pytest.raises(ConnectionResetError):
                    client.recv(1)

    assert [b"a"] == echo.heard


def test_a_silence_that_lasts_too_long_is_ended_by_the_wire(wire: Wire, address: tuple[str, int]) -> None:
    with connect(address) as client:
        wire.be(Mode.SILENT, 0.2)
        started = time.monotonic()
        with pytest.raises(ConnectionResetError):
            ask(client, b"a")

    assert 0.1 < time.monotonic() - started < 4
    assert wire.gave_up
    with pytest.raises(ConnectionResetError), connect(address) as client:
        client.recv(1)
    wire.be(Mode.PASS)
    assert not wire.gave_up


@pytest.mark.parametrize(("where", "heard"), [(Cut.REQUEST, [b"a"]), (Cut.REPLY, [b"a", b"b"])])
def test_one_exchange_is_cut_before_or_after_the_backend_did_its_work(
    wire: Wire, address: tuple[str, int], echo: Echo, where: Cut, heard: list[bytes]
) -> None:
    wire.cut(where, 2)
    with connect(address) as client:
        ask(client, b"a")
        with pytest.raises(ConnectionResetError):
            ask(client, b"b")

    assert heard == echo.heard
    assert wire.heal()
    with connect(address) as client:
        assert b"cc" == ask(client, b"c")


def test_a_cut_that_does_not_come_about_is_forgotten(wire: Wire, address: tuple[str, int]) -> None:
    wire.cut(Cut.REQUEST, 2)
    with connect(address) as client:
        ask(client, b"a")

        assert not wire.heal()
        assert b"bb" == ask(client, b"b")


def test_a_backend_that_is_not_there_resets_its_clients(wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    with pytest.raises(ConnectionResetError), connect(wire.address("127.0.0.1", port)) as client:
        client.recv(1)


def test_both_sides_that_end_at_once_are_ended_once(wire: Wire, address: tuple[str, int], echo: Echo) -> None:
    clients = [connect(address) for _ in range(5)]
    for client in clients:
        ask(client, b"a")
    busy = threading.Thread(target=wire._do, args=(lambda: time.sleep(0.3),))
    busy.start()
    echo.end()
    for client in clients:
        client.close()
    busy.join()

    with connect(address) as client:
        assert b"bb" == ask(client, b"b")


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no UNIX sockets here")
def test_a_socket_of_the_file_system_keeps_its_name(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / ".s.db.5432"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        Echo(listener)
        front = wire.path(str(path))
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(front)
            assert b"aa" == ask(client, b"a")
        wire.be(Mode.GONE)
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(ConnectionRefusedError):
            client.connect(front)

    assert (path.name, front != str(path)) == (Path(front).name, True)
    wire.close()
    assert not Path(front).exists()


def test_closing_ends_everything_and_can_be_done_twice(wire: Wire, address: tuple[str, int]) -> None:
    with connect(address) as client:
        ask(client, b"a")
        wire.close()
        wire.close()
        assert b"" == client.recv(1)

    with pytest.raises(ConnectionRefusedError):
        connect(address)
    assert "runcert-wire" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(KitProblem, match="closed"):
        wire.be(Mode.PASS)


_HOLDS = """
import signal, sys, time
from pathlib import Path
from runcert.wire import Wire
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background may ignore it
print(*Wire(Path(".")).address("127.0.0.1", int(sys.argv[1])), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_nothing_listens_any_more_when_the_process_is_interrupted_or_killed(echo: Echo, ending: str, tmp_path: Path) -> None:
    port = str(echo.listener.getsockname()[1])
    command = [sys.executable, "-c", _HOLDS, port]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path) as holder:
        assert holder.stdout is not None
        host, front = holder.stdout.readline().split()
        with connect((host, int(front))) as client:
            assert b"aa" == ask(client, b"a")
        holder.send_signal(getattr(signal, ending))
        holder.wait(timeout=10)

    with pytest.raises(ConnectionRefusedError):
        connect((host, int(front)))
