"""Where a user may make no schemas or databases, every namespace is one place: certified, clean afterwards, and nobody else's runs are touched."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, inspect, make_url, select, text
from sqlalchemy.exc import DBAPIError
from tests.command_line import RUNCERT, Finished, Runcert
from tests.servers.conftest import a_place
from tests.servers.places import need, wait_until

from runcert.servers.owner import Servers
from runcert_contract import Run
from runcert_reference.server_sql_namespaces import on_connection
from runcert_reference.sql.postgresql import in_schema
from runcert_reference.sql.run_store import SqlRunStore
from runcert_reference.sql.schema import upgrade
from runcert_reference.sql.tables import RUNS

SOME = ("RUN-CREATE-2", "RUN-ID-1", "RUN-ID-4", "RUN-PATH-2", "RUN-RESUMABLE-1", "RUN-RESIDUE-1", "RUN-LIST-4", "RUN-REUSE-1")
"""Clauses whose checks use ids that are odd, counted, damaged or retired; every clause takes minutes here."""

ONLY = [part for clause in SOME for part in ("--only", clause)]
WAYS = {"postgresql": "wheel", "mariadb": "system"}
MAKE = {
    "postgresql": ["CREATE ROLE tenant LOGIN PASSWORD 'geheim'", "CREATE DATABASE place"],
    "mariadb": [
        "CREATE USER tenant IDENTIFIED BY 'geheim'",
        "CREATE DATABASE place",
        "GRANT ALL ON place.* TO tenant",
    ],
}
REMOVE = {
    "postgresql": ["DROP DATABASE place WITH (FORCE)", "DROP ROLE tenant"],
    "mariadb": ["DROP DATABASE place", "DROP USER tenant"],
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    directory = Path(tempfile.mkdtemp(prefix="rc-"))
    directory.chmod(0o711)
    made = Servers(directory, {})
    yield made
    made.stop()
    shutil.rmtree(directory, ignore_errors=True)


def execute(url: URL, *statements: str) -> None:
    def all_of_them(connection: Connection) -> None:
        for statement in statements:
            connection.execute(text(statement))

    on_connection(url, all_of_them)


class Granted:
    """A place of the user's, and how the user names it."""

    def __init__(self, name: str, admin: URL) -> None:
        self.inside = in_schema(admin.set(database="place"), "team") if name == "postgresql" else admin.set(database="place")
        driver = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}[name]
        query = {"namespaces": "shared"} | ({"schema": "team"} if name == "postgresql" else {})
        limited = admin.set(drivername=driver, username="tenant", password="geheim", database="place")
        self.without_query = limited.render_as_string(hide_password=False)
        self.url = limited.set(query=query).render_as_string(hide_password=False)

    def tables(self) -> set[str]:
        schema = "team" if self.inside.get_backend_name() == "postgresql" else None
        return on_connection(self.inside, lambda connection: set(inspect(connection).get_table_names(schema)))

    def runs(self) -> list[bytes]:
        return on_connection(
            self.inside, lambda connection: [bytes(found) for found in connection.scalars(select(RUNS.c.run_id))]
        )


@pytest.fixture(params=WAYS)
def granted(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Granted]:
    name = str(request.param)
    need(name, WAYS[name])
    admin = make_url(servers.url(name, {}))
    execute(admin, *MAKE[name])
    if name == "postgresql":
        execute(admin.set(database="place"), "CREATE SCHEMA team AUTHORIZATION tenant")
    yield Granted(name, admin)
    execute(admin, *REMOVE[name])


def test_the_store_is_certified_but_for_namespaces_and_leaves_nothing(granted: Granted, runcert: Runcert) -> None:
    every = granted.inside.get_backend_name() == "postgresql"
    done = runcert("certify", granted.url, "--depth", "quick", "-n", "2", *([] if every else ONLY), expected=0)

    assert ("-shared: certified" if every else "-shared: partial") in done.out
    assert not every or "not certified (namespaces=shared): RUN-NAMESPACE-1" in done.out
    assert "geheim" not in done.out + done.err
    assert set() == granted.tables()


def test_without_the_word_the_way_out_is_named(granted: Granted, runcert: Runcert) -> None:
    done = runcert("certify", granted.without_query, "--depth", "quick", expected=2)

    assert "; a user who may make none adds ?namespaces=shared to the URL" in done.err
    assert "geheim" not in done.err


def test_tables_that_somebody_made_are_used_and_other_runs_in_them_are_left(granted: Granted, runcert: Runcert) -> None:
    upgrade(granted.inside)
    with closing(SqlRunStore(granted.inside)) as store:
        now = datetime(2026, 1, 2, tzinfo=UTC)
        store.create(Run("theirs", "tenant", "action", "proposal", "key", now, now))
    if granted.inside.get_backend_name() == "postgresql":
        execute(
            granted.inside,
            "ALTER SCHEMA team OWNER TO runcert",
            "GRANT USAGE ON SCHEMA team TO tenant",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA team TO tenant",
        )
    for _ in range(2):  # what the first run did is no obstacle for the second
        runcert("certify", granted.url, "--depth", "quick", "-n", "2", *ONLY, expected=0)

    assert {"runs", "alembic_version"} == granted.tables()
    assert [b"theirs"] == granted.runs()


def test_a_place_that_another_run_is_coming_to_is_contended(servers: Servers, runcert: Runcert) -> None:
    """MariaDB waits for a lock by name for some seconds only; then somebody has to be told."""
    need("mariadb", WAYS["mariadb"])
    admin = make_url(servers.url("mariadb", {}))
    execute(admin, *MAKE["mariadb"])
    granted = Granted("mariadb", admin)

    def hold(connection: Connection) -> Finished:
        connection.execute(text("SELECT GET_LOCK(CONCAT('runcert in ', MD5(DATABASE())), 0)"))
        return runcert("certify", granted.url, "--depth", "quick", expected=2)

    try:
        done = on_connection(granted.inside, hold)
    finally:
        execute(admin, *REMOVE["mariadb"])

    assert "another run of the kit is coming to this place, or leaving it; try again when it is through" in done.err
    assert "geheim" not in done.err


def _holds_runs(granted: Granted) -> bool:
    """Say whether a run is in the middle of its checks; its smoke test makes the tables and removes them again before that."""
    try:
        return "runs" in granted.tables() and len(granted.runs()) > 5
    except DBAPIError:  # removed between the two questions
        return False


def test_what_a_killed_run_left_is_found_and_removed(granted: Granted, runcert: Runcert) -> None:
    with a_place() as place:
        command = [str(RUNCERT), "certify", granted.url, "--depth", "standard", "-n", "2"]
        with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            wait_until(lambda: _holds_runs(granted) or run.poll() is not None)
            run.kill()
        wait_until(lambda: not place.processes)
    left = granted.tables()
    done = runcert("clean", granted.url, "--format", "json", expected=0)
    (found,) = json.loads(done.out).values()

    assert {"runs", "alembic_version", "made_by_runcert"} == left
    assert {"removed"} == {each["done"] for each in found}
    assert set() == granted.tables()
    assert "geheim" not in done.out


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("namespaces=private", "namespaces=private is not known; write namespaces=shared"),
        ("namespaces=shared&schema=nowhere", "the user has no schema here; name one that the user may use"),
        ("namespaces=shared", "cannot use it as a shared place"),
    ],
)
def test_a_place_that_is_none_is_said_in_one_line(servers: Servers, runcert: Runcert, query: str, message: str) -> None:
    need("postgresql", "wheel")
    admin = make_url(servers.url("postgresql", {}))
    execute(admin, *MAKE["postgresql"])
    limited = admin.set(drivername="postgresql+psycopg", username="tenant", password="geheim", database="place")
    try:
        done = runcert("certify", f"{limited.render_as_string(hide_password=False)}?{query}", "--depth", "quick", expected=2)
    finally:
        execute(admin, *REMOVE["postgresql"])

    assert message in done.err
    assert 1 == len(done.err.strip().splitlines())
    assert "geheim" not in done.err


def test_mariadb_has_no_schemas_in_a_database(runcert: Runcert) -> None:
    done = runcert("certify", "mariadb+pymysql://u:geheim@127.0.0.1:9/x?namespaces=shared&schema=y", expected=2)

    assert "leave schema= out" in done.err
    assert "geheim" not in done.err
