"""Stores that ask the kit for a server and only connect to it: the servers are tested, not the stores."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from runcert import AsyncRunStore, Lab, RunStore, adapter
from runcert_contract import Run
from runcert_reference.memory import CLAIMS, AsyncMemoryRunStore, MemoryRunStore, MemorySpace, space_of


def greet(url: str) -> None:
    """Note an address where the test can see it, and connect there."""
    if "NOTED_URLS" in os.environ:
        with Path(os.environ["NOTED_URLS"]).open("a", encoding="ascii") as file:
            file.write(f"{url}\n")
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10):
        pass


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_postgresql(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("postgresql"))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_mariadb(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("mariadb"))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_valkey(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("valkey"))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_evicting_valkey(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("valkey", **{"maxmemory-policy": "allkeys-lru"}))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(AsyncRunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
async def on_valkey_async(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    greet(lab.server("valkey"))
    yield AsyncMemoryRunStore(space_of(lab.namespace))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def with_a_wrong_setting(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("valkey", **{"no-such-setting": "1"}))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_something_else(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("cassandra"))
    yield MemoryRunStore(space_of(lab.namespace))


class KillsItsServer(MemoryRunStore):
    """A store whose server dies in the middle of the run, after the smoke test."""

    creates = 0

    def __init__(self, space: MemorySpace, url: str) -> None:
        super().__init__(space)
        self._url = url

    def create(self, run: Run) -> Run:
        type(self).creates += 1
        if type(self).creates == 3:
            os.kill(process_of(self._url), signal.SIGKILL)
        return super().create(run)


def process_of(url: str) -> int:
    """Ask a Valkey for the number of its process."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(f"AUTH {parts.password}\r\nINFO server\r\n".encode())
        lines = connection.makefile("r", encoding="ascii")
        return next(int(line.partition(":")[2]) for line in lines if line.startswith("process_id:"))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def whose_server_dies(lab: Lab) -> Iterator[RunStore]:
    yield KillsItsServer(space_of(lab.namespace), lab.server("valkey"))


@adapter(RunStore, capabilities=CLAIMS.capabilities, limits=CLAIMS.limits)
def on_redis(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("redis"))
    yield MemoryRunStore(space_of(lab.namespace))


class Forgets(MemoryRunStore):
    """A store that fails, after it had its server and passed the smoke test."""

    finds = 0

    def find(self, run_id: str) -> Run | None:
        type(self).finds += 1
        return super().find(run_id) if type(self).finds < 4 else None


@adapter(RunStore)
def that_fails(lab: Lab) -> Iterator[RunStore]:
    greet(lab.server("valkey"))
    yield Forgets(space_of(lab.namespace))


def wait_to_be_killed(url: str) -> None:
    """Tell the test that the server is there, and wait for a connection that nobody makes."""
    greet(url)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Path(os.environ["WAITING"]).touch()
        server.settimeout(15)
        with suppress(TimeoutError):
            server.accept()


@adapter(RunStore)
def that_waits_on_postgresql(lab: Lab) -> Iterator[RunStore]:
    wait_to_be_killed(lab.server("postgresql"))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore)
def that_waits_on_mariadb(lab: Lab) -> Iterator[RunStore]:
    wait_to_be_killed(lab.server("mariadb"))
    yield MemoryRunStore(space_of(lab.namespace))


@adapter(RunStore)
def that_waits_on_valkey(lab: Lab) -> Iterator[RunStore]:
    wait_to_be_killed(lab.server("valkey"))
    yield MemoryRunStore(space_of(lab.namespace))
