"""``runcert clean``: what a killed run left on a backend of the user's is found by its mark and removed, and nothing else is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import URL, Connection, make_url, text
from tests.command_line import RUNCERT, Runcert
from tests.servers.conftest import a_place
from tests.servers.places import Place, need, wait_until

from runcert import Clock, Lab, Mark
from runcert.servers.owner import Servers
from runcert_reference import file_adapters, kv_namespaces, server_sql_namespaces
from runcert_reference.kv.addresses import Address

SCHEMES = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "valkey": "redis", "redis": "redis"}
WAYS = {"postgresql": "wheel", "mariadb": "system", "valkey": "wheel", "redis": "system"}


class Backend:
    """A backend of the user's, with something of the user's on it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def names(self) -> set[str]:
        """Give the name of everything on it."""
        raise NotImplementedError  # each backend says how

    def namespaces(self) -> set[str]:
        """Give the names that only the kit uses, but for the user's own that looks like one."""
        return {name for name in self.names() if name.startswith("rc_") and not name.startswith("rc_users")}

    def lab(self, tmp_path: Path) -> Lab:
        """Make a namespace of this very process, which is at work."""
        raise NotImplementedError  # each backend says how

    def say_it_was_made_on(self, host: str, namespace: str) -> None:
        """Change the mark."""
        raise NotImplementedError  # each backend says how


class Directory(Backend):
    def __init__(self, root: Path, scheme: str) -> None:
        super().__init__(root.as_uri() if scheme == "file" else f"sqlite:///{root}")
        self.root = root
        (root / "rc_users").mkdir()
        (root / "notes.txt").write_text("the user's")

    def names(self) -> set[str]:
        return {path.name.removesuffix(".made-by-runcert.json") for path in self.root.iterdir()}

    def lab(self, tmp_path: Path) -> Lab:
        empty = a_lab(tmp_path)
        return replace(empty, prepared=dict(file_adapters.make_namespace(self.root, empty)))

    def say_it_was_made_on(self, host: str, namespace: str) -> None:
        file = self.root / namespace / "made-by-runcert.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"host": host}))


class Database(Backend):
    def __init__(self, server: URL, name: str) -> None:
        super().__init__(server.set(drivername=SCHEMES[name]).render_as_string(hide_password=False))
        self.server = server
        self.kind = "SCHEMA" if name == "postgresql" else "DATABASE"
        self.execute(f"CREATE {self.kind} IF NOT EXISTS rc_users")

    def execute(self, statement: str, **values: str) -> None:
        server_sql_namespaces.on_connection(self.server, lambda connection: connection.execute(text(statement), values))

    def names(self) -> set[str]:
        def found(connection: Connection) -> set[str]:
            return set(connection.execute(text("SELECT schema_name FROM information_schema.schemata")).scalars())

        return server_sql_namespaces.on_connection(self.server, found)

    def lab(self, tmp_path: Path) -> Lab:
        empty = a_lab(tmp_path)
        return replace(empty, prepared=dict(server_sql_namespaces.make_namespace(lambda _: self.server, empty)))

    def say_it_was_made_on(self, host: str, namespace: str) -> None:
        self.execute(f"UPDATE {namespace}.made_by_runcert SET host = :host", host=host)


class Keys(Backend):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.execute("SET", "rc_users:key", "the user's")

    def execute(self, *command: str) -> Any:
        with closing(redis.Redis.from_url(self.url)) as client:
            return client.execute_command(*command)  # type: ignore[no-untyped-call]  # the driver leaves it untyped

    def names(self) -> set[str]:
        return {key.decode(errors="replace").partition(":")[0] for key in self.execute("KEYS", "*")}

    def lab(self, tmp_path: Path) -> Lab:
        empty = a_lab(tmp_path)
        return replace(empty, prepared=dict(kv_namespaces.make_namespace(Address.of(self.url), empty)))

    def say_it_was_made_on(self, host: str, namespace: str) -> None:
        key = f"{namespace}:made-by-runcert"
        self.execute("SET", key, json.dumps(json.loads(self.execute("GET", key)) | {"host": host}))


def a_lab(tmp_path: Path) -> Lab:
    return Lab("rc_0123abcd_0", tmp_path / "unused", Clock(tmp_path / "clock"))


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with a_place() as made:
        servers = Servers(made.directory, {})
        yield servers
        servers.stop()


@pytest.fixture(params=["file", "sqlite", *SCHEMES])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    name = str(request.param)
    if name in ("file", "sqlite"):
        root = tmp_path / "the-users"
        root.mkdir()
        return Directory(root, name)
    need(name, WAYS[name])
    url = request.getfixturevalue("servers").url(name, {})
    return Keys(url) if SCHEMES[name] == "redis" else Database(make_url(url), name)


def test_what_a_killed_run_left_is_removed_and_nothing_else(backend: Backend, runcert: Runcert, place: Place) -> None:
    before = backend.names()
    command = [str(RUNCERT), "certify", backend.url, "--depth", "standard", "-n", "2"]
    with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        wait_until(lambda: len(backend.namespaces()) > 1 or run.poll() is not None)  # the smoke test has just one
        run.kill()
    wait_until(lambda: not place.processes)
    left = backend.namespaces()
    looked = runcert("clean", backend.url, "--dry-run", expected=1)
    seen = backend.namespaces()
    removed = runcert("clean", backend.url, expected=0)
    again = runcert("clean", backend.url, expected=0)

    assert left
    assert left == seen
    assert [True] * len(left) == [f"{name}" in looked.out and f"{name}" in removed.out for name in left]
    assert "would be removed" in looked.out
    assert f"{len(left)} removed" in removed.out
    assert "0 removed" in again.out
    assert before == backend.names()
    assert (make_url(backend.url).password or "no password") not in looked.out + removed.out + again.out


def test_what_is_in_use_is_kept_and_what_another_machine_made_only_removed_on_demand(
    backend: Backend, runcert: Runcert, tmp_path: Path
) -> None:
    before = backend.names()
    lab = backend.lab(tmp_path)
    at_work = runcert("clean", backend.url, expected=0)
    backend.say_it_was_made_on("another-machine", lab.namespace)
    elsewhere = runcert("clean", backend.url, expected=1)
    kept = backend.namespaces()
    runcert("clean", backend.url, "--host", "another-machine", expected=0)

    assert "which is still at work" in at_work.out
    assert "if no run goes on there: --host another-machine" in elsewhere.out
    assert {lab.namespace} == kept
    assert before == backend.names()


def test_what_has_no_mark_is_somebody_elses(backend: Backend, runcert: Runcert) -> None:
    done = runcert("clean", backend.url, "--format", "json", expected=0)
    (found,) = done.json().values()

    assert [] == [each for each in found if each["done"] != "kept" or "no mark of the kit" not in each["why"]]
    assert any("rc_users" in each["name"] for each in found) or isinstance(backend, Keys)  # of keys, only marks are looked for
    assert any(name.startswith("rc_users") for name in backend.names())


def test_a_mark_that_cannot_be_read_is_no_mark(runcert: Runcert, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name, content in {"rc_1": "{", "rc_2": "[]", "rc_3": '{"namespace": "rc_3"}'}.items():
        (root / name).mkdir(parents=True)
        (root / name / "made-by-runcert.json").write_text(content)

    done = runcert("clean", root.as_uri(), expected=0)

    assert 3 == done.out.count("has no mark of the kit")
    assert 3 == len(list(root.iterdir()))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "oracle://ann:hunter2@db/x",
            "oracle://ann:***@db/x is no URL that can be cleaned; expected one of file://, mariadb://",
        ),
        ("memory", "memory is no URL that can be cleaned"),
        ("file:///no/such/directory", "does not exist"),
        ("postgresql://ann:hunter2@127.0.0.1:9/x", "cannot look for what is left: the database could not be reached"),
        ("mysql://ann:hunter2@127.0.0.1:9/x", "cannot be reached"),
        ("redis://:hunter2@127.0.0.1:9", "127.0.0.1:9: the server: the server did not answer"),
        ("redis://:hunter2@127.0.0.1:9/x", "the address of the server is written redis://"),
    ],
)
def test_a_url_that_cannot_be_cleaned_says_why(runcert: Runcert, url: str, message: str) -> None:
    done = runcert("clean", url, expected=2)

    assert message in done.err
    assert "hunter2" not in done.err


def test_a_directory_that_was_made_and_not_marked_yet_has_its_mark_beside_it(runcert: Runcert, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "rc_1").mkdir()
    for name in ("rc_1", "rc_2"):  # killed after the directory was made, and before
        mark = replace(Mark.new(name), process="4194304999")
        (root / f"{name}.made-by-runcert.json").write_text(json.dumps(mark.to_json()))
    done = runcert("clean", root.as_uri(), expected=0)

    assert "2 found, 2 removed" in done.out
    assert [] == list(root.iterdir())


def test_a_removal_that_fails_does_not_keep_the_others(runcert: Runcert, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("rc_1", "rc_2"):
        (root / name).mkdir(parents=True)
        mark = replace(Mark.new(name), process="4194304999")
        (root / name / "made-by-runcert.json").write_text(json.dumps(mark.to_json()))
    done = subprocess.run(["chattr", "+i", str(root / "rc_1" / "made-by-runcert.json")], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"no file can be made immutable here: {done.stderr.decode()}")
    try:
        cleaned = runcert("clean", root.as_uri(), expected=1)
    finally:
        subprocess.run(["chattr", "-i", str(root / "rc_1" / "made-by-runcert.json")], check=True)

    assert "failed" in cleaned.out
    assert "Operation not permitted" in cleaned.out
    assert ["rc_1"] == [path.name for path in root.iterdir()]


def test_a_database_that_was_made_and_not_marked_yet_has_its_mark_as_a_comment(servers: Servers, runcert: Runcert) -> None:
    need("mariadb", "system")
    mark = replace(Mark.new("rc_early_0"), process="4194304999")
    backend = Database(make_url(servers.url("mariadb", {})), "mariadb")
    backend.execute(f"CREATE DATABASE rc_early_0 COMMENT '{json.dumps(mark.to_json()).replace(':', chr(92) + ':')}'")
    backend.execute("CREATE DATABASE rc_early_1 COMMENT 'of somebody'")
    done = runcert("clean", backend.url, expected=0)
    backend.execute("DROP DATABASE rc_early_1")

    assert "removed          database rc_early_0" in done.out
    assert "kept             database rc_early_1: has no mark" in done.out
