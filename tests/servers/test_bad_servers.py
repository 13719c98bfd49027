"""Servers and disks that are wrong, silent, gone or full: one message with the way out, the right exit code, no password, nothing left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import make_url, text
from tests.command_line import RUNCERT, Runcert
from tests.servers.conftest import a_place
from tests.servers.places import Place, need, wait_until

from runcert.backends import Backends
from runcert.messages import Settings
from runcert.problems import UsageProblem
from runcert.servers.owner import Servers
from runcert.supervisor import Supervisor
from runcert_reference.server_sql_namespaces import on_connection

WAYS = {"postgresql": "wheel", "mariadb": "system", "valkey": "wheel", "redis": "system"}


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts and never says a word."""
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


@pytest.mark.parametrize("scheme", ["redis", "postgresql+psycopg", "mysql+pymysql"])
@pytest.mark.parametrize("command", ["certify", "clean"])
def test_a_server_that_stays_silent_is_given_up(runcert: Runcert, silent: int, command: str, scheme: str) -> None:
    started = time.monotonic()
    done = runcert(command, f"{scheme}://ann:hunter2@127.0.0.1:{silent}/0", expected=2)

    assert time.monotonic() - started < 60
    assert any(words in done.err for words in ("cannot be reached", "did not answer", "could not be reached")), done.err
    assert 1 == len(done.err.strip().splitlines())
    assert "hunter2" not in done.err


@pytest.mark.parametrize(
    ("name", "url", "message"),
    [
        ("postgresql", "mysql://ann:hunter2@127.0.0.1:9/x", "expected postgresql://user:"),
        (
            "postgresql",
            "postgresql://ann:hunter2@127.0.0.1:9/x?namespaces=shared",
            "namespaces=shared, are named as the target",
        ),
        ("postgresql", "postgresql://ann:hunter2@127.0.0.1:9", "names no database"),
        ("postgresql", "postgresql://ann:hunter2@127.0.0.1:9/x", "could not be reached"),
        ("mariadb", "postgresql://ann:hunter2@127.0.0.1:9/x", "expected mysql://user:"),
        ("mariadb", "redis://ann:hunter2@127.0.0.1:9/x", "expected mysql://user:"),
        ("valkey", "postgresql://ann:hunter2@127.0.0.1:9/x", "the address of the server is written redis://"),
        ("valkey", "redis://ann:hunter2@127.0.0.1:9", "cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(runcert: Runcert, name: str, url: str, message: str) -> None:
    done = runcert("certify", name, "--server", f"{name}={url}", "--depth", "quick", expected=2)

    assert message in done.err
    assert 1 == len(done.err.strip().splitlines())
    assert "hunter2" not in done.err


@contextmanager
def a_server(name: str) -> Iterator[tuple[Servers, str]]:
    """Start a server that stands for one of the user's, and that a test may stop."""
    need(name, WAYS[name])
    with a_place() as place:
        servers = Servers(place.directory, {})
        try:
            yield servers, servers.url(name, {})
        finally:
            servers.stop()


@pytest.mark.parametrize("name", WAYS)
def test_wrong_credentials_and_a_database_that_is_not_there_are_refused(runcert: Runcert, name: str) -> None:
    with a_server(name) as (_, url):
        right = make_url(url)
        wrong = right.set(password="hunter2").render_as_string(hide_password=False)
        nowhere = right.set(database="99").render_as_string(hide_password=False)
        refused = [
            runcert("certify", name, "--server", f"{name}={each}", "--depth", "quick", expected=2) for each in (wrong, nowhere)
        ]

    assert "refuse" in refused[0].err
    assert any(words in refused[1].err for words in ("does not exist", "Unknown database", "refuses this connection"))
    for done in refused:
        assert 1 == len(done.err.strip().splitlines()), done.err
        assert not any(secret in done.err + done.out for secret in ("hunter2", str(right.password)))


def records_on(url: str) -> bool:
    """Say whether a run is in its middle there: more than the smoke test's one namespace."""
    if url.startswith("redis"):
        with closing(redis.Redis.from_url(url)) as client:
            return len(client.keys("rc_*:made-by-runcert")) > 1
    query = text("SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'rc!_%' ESCAPE '!'")
    return int(on_connection(make_url(url), lambda connection: connection.execute(query).scalar_one())) > 1


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "valkey"])
def test_a_server_of_the_users_that_dies_in_the_middle_leaves_the_run_undecided(place: Place, name: str) -> None:
    with a_server(name) as (servers, url):
        command = [str(RUNCERT), "certify", name, "--server", f"{name}={url}", "--depth", "standard", "-n", "2"]
        with subprocess.Popen(
            command, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            wait_until(lambda: records_on(url) or process.poll() is not None)
            servers.stop()
            out, err = process.communicate(timeout=120)

    assert process.returncode == 3, out + err
    assert "accepts no connections any more, in the middle of the run; what was judged since then says nothing" in err
    assert out == ""
    assert str(make_url(url).password) not in err
    assert place.is_clean


# -- disks


@contextmanager
def a_disk(size: str, *options: str) -> Iterator[Path]:
    """Mount a small disk in memory."""
    directory = Path(tempfile.mkdtemp(prefix="rc-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", str(directory)]
    if sys.platform != "linux" or subprocess.run(command, check=False, capture_output=True).returncode:
        directory.rmdir()
        pytest.skip("no disk can be mounted here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)
        directory.rmdir()


def fill(directory: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (directory / "filling").write_bytes(bytes(1 << 27))


@pytest.mark.parametrize("scheme", ["file://", "sqlite:///"])
@pytest.mark.parametrize(
    ("size", "options", "message"), [("70m", ("ro",), "cannot be written (Read-only file system)"), ("1m", (), "KiB are free")]
)
def test_a_disk_that_takes_no_writes_is_refused(
    runcert: Runcert, scheme: str, size: str, options: tuple[str, ...], message: str
) -> None:
    with a_disk(size, *options) as disk:
        done = runcert("certify", f"{scheme}{disk}", "--depth", "quick", expected=2)

    assert message in done.err
    assert "name " in done.err


@pytest.mark.parametrize("scheme", ["file://", "sqlite:///"])
def test_a_disk_that_becomes_full_in_the_middle_leaves_the_run_undecided(place: Place, scheme: str) -> None:
    with a_disk("70m") as disk:
        command = [str(RUNCERT), "certify", f"{scheme}{disk}", "--depth", "standard", "-n", "2"]
        with subprocess.Popen(
            command, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            wait_until(lambda: len(list(disk.glob("rc_*"))) > 1 or process.poll() is not None)
            fill(disk)
            out, err = process.communicate(timeout=300)
        left = [path.name for path in disk.iterdir()]

    assert process.returncode == 3, out + err
    assert f"the disk of {disk} is full, in the middle of the run" in err
    assert ["filling"] == left
    assert place.is_clean


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_a_server_that_has_no_room_to_start_says_so(name: str) -> None:
    need(name, WAYS[name])
    with a_disk("4m", "mode=0755") as disk:
        command = [str(RUNCERT), "certify", name, "--server", f"{name}={WAYS[name]}", "--depth", "quick"]
        done = subprocess.run(
            command, env=os.environ | {"TMPDIR": str(disk)}, capture_output=True, text=True, check=False, timeout=300
        )
        left = list(disk.iterdir())

    assert done.returncode == 2, done.stdout + done.stderr
    assert "did not start: it ended with status 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert [] == left


@pytest.mark.parametrize(
    ("size", "options", "message"), [("70m", ("ro",), "Read-only file system"), ("4k", (), "No space left on device")]
)
def test_results_that_could_not_be_written_are_noticed_before_the_run(
    runcert: Runcert, size: str, options: tuple[str, ...], message: str
) -> None:
    with a_disk(size, *options) as disk:
        started = time.monotonic()
        done = runcert("certify", "memory", "--out", str(disk / "out"), expected=2)

    assert f"--out {disk}/out: cannot write there ({message})" in done.err
    assert done.out == ""
    assert time.monotonic() - started < 20  # standard depth takes longer


def test_without_any_place_for_temporary_files_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(UsageProblem, match=r"no directory for temporary files can be written .*name one, TMPDIR="):
        Supervisor(Settings(root="")).running().__enter__()


def test_only_what_was_there_at_the_beginning_can_be_lost(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        urls = [
            f"redis://:hunter2@127.0.0.1:{port}",
            "redis://127.0.0.1:9",
            "memory",
            "x.py:y",
            "http://[",
            f"file://{tmp_path}",
        ]
        backends = Backends(urls, [tmp_path, tmp_path / "missing"])
        before = backends.troubles()

    assert [] == before
    assert [f"the server at redis://:***@127.0.0.1:{port} accepts no connections any more"] == backends.troubles()
