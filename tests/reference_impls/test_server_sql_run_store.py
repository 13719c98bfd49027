"""The reference stores in PostgreSQL and MariaDB, where the suites cannot look: limits, locks, lost connections, whose schema it is."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, make_url, text
from tests.command_line import Runcert

from runcert import Clock, Lab, UsageProblem
from runcert.servers.owner import Servers
from runcert.wire import Cut, Mode, Wire
from runcert_contract import (
    AlreadyExists,
    Closed,
    Contended,
    CorruptRecord,
    InvalidIdentifier,
    JsonValue,
    Misconfigured,
    OutcomeUnknown,
    Run,
    StoreError,
    StoreUnavailable,
)
from runcert_reference import server_sql_namespaces
from runcert_reference.records import write_record
from runcert_reference.server_sql_adapters import server_at_url
from runcert_reference.server_sql_namespaces import make_namespace, namespace_url, on_connection, remove_namespace
from runcert_reference.sql import deadlines, dialects, mysql, schema
from runcert_reference.sql import postgresql as postgresql_dialect
from runcert_reference.sql.engines import async_engine, dialect_of, engine
from runcert_reference.sql.run_store import AsyncSqlRunStore, SqlRunStore

pytestmark = pytest.mark.xdist_group("servers")

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_NAMES = ("postgresql", "mariadb")


def _run(run_id: str) -> Run:
    return Run(run_id, "tenant", "action", "proposal", "key", _NOW, _NOW)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    directory = Path(tempfile.mkdtemp(prefix="rc-"))
    directory.chmod(0o711)
    made = Servers(directory, {})
    yield made
    made.stop()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=_NAMES)
def server(request: pytest.FixtureRequest, servers: Servers) -> URL:
    return make_url(servers.url(request.param, {}))


@pytest.fixture
def postgresql(servers: Servers) -> URL:
    return make_url(servers.url("postgresql", {}))


def _lab(tmp_path: Path, prepared: dict[str, str] | None = None, name: str = "") -> Lab:
    return Lab(name or f"rc_test_{abs(hash(tmp_path)) % 10**12}", tmp_path, Clock(tmp_path / "clock"), dict(prepared or {}))


@pytest.fixture
def lab(server: URL, tmp_path: Path) -> Iterator[Lab]:
    empty = _lab(tmp_path)
    prepared = make_namespace(lambda _: server, empty)
    made = replace(empty, prepared=dict(prepared))
    yield made
    remove_namespace(lambda _: server, made)


@pytest.fixture
def inside(server: URL, lab: Lab) -> URL:
    return namespace_url(server, lab)


@pytest.fixture
def store(inside: URL) -> Iterator[SqlRunStore]:
    with closing(SqlRunStore(inside)) as opened:
        yield opened


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    made = Wire(tmp_path)
    yield made
    made.close()


def _through(wire: Wire, url: URL) -> URL:
    host, port = wire.address(str(url.host), int(url.port or 0))
    return url.set(host=host, port=port)


@pytest.fixture
def remote(inside: URL, wire: Wire) -> Iterator[SqlRunStore]:
    """Give a store that reaches its server through the wire."""
    with closing(SqlRunStore(_through(wire, inside))) as opened:
        yield opened


def _execute(url: URL, *statements: str) -> None:
    on_connection(url, lambda connection: [connection.exec_driver_sql(statement) for statement in statements])


# -- limits


def test_the_longest_identifiers_are_keys_of_both_indexes(store: SqlRunStore) -> None:
    longest = dialect_of(store._engine.url).claims.limits.identifier
    assert isinstance(longest, int)
    name = "".join(chr(0x10000 + number * 7919 % 0xFFFFF) for number in range(longest - 1))  # compresses badly

    for end in ("x", "y", "\U0010ffff"):
        run = replace(_run(name + end), tenant_id=name + end)
        store.create(run)
        assert run == store.find(name + end)
        assert [run] == store.find_resumable(name + end).items
    with pytest.raises(InvalidIdentifier):
        store.create(_run(name + "xx"))


@pytest.mark.parametrize("character", ["é", "\\", '"', "'", "\x00", "\U0001f600"])
def test_the_largest_records_fit_into_one_packet(character: str) -> None:
    width = {"\\": 2, '"': 2, "\x00": 6}.get(character, len(character.encode()))
    run = replace(_run("r1"), input={"text": character * ((1_000_000 - 1_000) // width)})

    escaped = len(write_record(run).replace("\\", "\\\\").replace('"', '\\"'))

    assert escaped < mysql._SMALLEST_PACKET


def test_a_server_that_takes_no_large_packets_is_refused(servers: Servers, tmp_path: Path) -> None:
    small = make_url(servers.url("mariadb", {"max_allowed_packet": 1024 * 1024}))
    made = _lab(tmp_path)
    made = replace(made, prepared=dict(make_namespace(lambda _: small, made)))

    with pytest.raises(Misconfigured, match="max_allowed_packet"):
        SqlRunStore(namespace_url(small, made))

    remove_namespace(lambda _: small, made)


# -- the session


def test_a_server_that_is_too_old_is_refused(inside: URL, store: SqlRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((postgresql_dialect, "OLDEST"), (mysql, "OLDEST_MARIADB")):
        monkeypatch.setattr(module, name, (99, 1))
    found = r"version \d+\.\d+, this store needs 99 or newer|is MariaDB \d+\.\d+\.\d+, this store needs 99\.1 or newer"

    with pytest.raises(Misconfigured, match=found):
        SqlRunStore(inside)


@pytest.mark.parametrize("drivername", ["mysql+pymysql", "mariadb+pymysql", "mysql"])
def test_which_server_it_is_is_asked_of_the_server(servers: Servers, drivername: str) -> None:
    url = make_url(servers.url("mariadb", {})).set(drivername=drivername)

    found = on_connection(url, lambda c: c.execute(text("SELECT @@max_statement_time, @@tx_isolation, @@autocommit")).one())

    assert (dialects.STATEMENT_SECONDS, "READ-COMMITTED", 1) == tuple(found)


def test_defaults_of_the_user_do_not_matter(postgresql: URL, tmp_path: Path) -> None:
    defaults = "-cdefault_transaction_isolation=serializable -cstatement_timeout=0 -csynchronous_commit=off"
    names = ("transaction_isolation", "statement_timeout", "synchronous_commit", "search_path")
    url = namespace_url(postgresql.update_query_dict({"options": defaults}), _lab(tmp_path, name="rc_mine"))

    found = on_connection(url, lambda c: [c.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names])

    assert ["read committed", f"{dialects.STATEMENT_SECONDS}s", "on", "rc_mine"] == found


def test_an_update_that_changes_no_column_is_found(inside: URL, store: SqlRunStore) -> None:
    store.create(_run("r1"))

    def same(connection: Connection) -> int:
        return connection.exec_driver_sql("UPDATE runs SET version = version").rowcount

    assert 1 == on_connection(inside, same)


# -- others in the way


def test_a_lock_of_others_is_contended_within_the_bound(inside: URL, store: SqlRunStore) -> None:
    store.create(_run("r1"))
    updated = replace(_run("r1"), version=1)

    def hold(connection: Connection) -> float:
        connection.exec_driver_sql("START TRANSACTION")
        connection.exec_driver_sql("SELECT version FROM runs FOR UPDATE")
        started = time.monotonic()
        with pytest.raises(Contended, match="'r1'"):
            store.compare_and_set(_run("r1"), updated)
        connection.exec_driver_sql("ROLLBACK")
        return time.monotonic() - started

    seconds = on_connection(inside, hold)

    assert seconds < dialects.CALL_SECONDS
    assert store.compare_and_set(_run("r1"), updated)


# -- lost connections


def test_a_connection_that_ended_while_idle_is_replaced_before_anything_is_sent(remote: SqlRunStore, wire: Wire) -> None:
    remote.create(_run("r1"))
    wire.be(Mode.GONE)
    wire.be(Mode.PASS)

    remote.create(_run("r2"))

    assert _run("r2") == remote.find("r2")


def test_a_server_that_refuses_is_unavailable_and_nothing_was_written(remote: SqlRunStore, wire: Wire) -> None:
    wire.be(Mode.GONE)

    for call in (lambda: remote.create(_run("r1")), lambda: remote.find("r1"), lambda: remote.find_resumable("tenant")):
        with pytest.raises(StoreUnavailable):
            call()


def test_a_lost_answer_leaves_a_write_open_and_a_read_unavailable(remote: SqlRunStore, store: SqlRunStore, wire: Wire) -> None:
    remote.create(_run("r0"))
    wire.cut(Cut.REPLY)
    with pytest.raises(OutcomeUnknown, match="'r1'"):
        remote.create(_run("r1"))
    with pytest.raises(AlreadyExists):
        remote.create(_run("r1"))

    wire.cut(Cut.REPLY)
    with pytest.raises(StoreUnavailable):
        remote.find("r1")

    assert _run("r1") == remote.find("r1") == store.find("r1")


def test_a_server_that_accepts_and_stays_silent_is_given_up_within_the_bound(inside: URL, wire: Wire) -> None:
    remote = SqlRunStore(_through(wire, inside), patience=0.5)
    remote.find("r1")
    wire.be(Mode.SILENT)

    started = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        remote.create(_run("r1"))
    assert time.monotonic() - started < 2

    wire.be(Mode.PASS)
    assert remote.find("r1") is None  # what the wire swallowed never arrived
    remote.close()


def test_opening_against_silence_ends_within_the_bound(inside: URL, wire: Wire) -> None:
    wire.be(Mode.SILENT)
    started = time.monotonic()

    with pytest.raises(StoreUnavailable):
        SqlRunStore(_through(wire, inside))

    assert time.monotonic() - started < 10


def test_deadlines_leave_no_thread_behind() -> None:
    with deadlines.ends_within(0.1):
        pass
    time.sleep(2)

    assert "sql-deadlines" not in [thread.name for thread in threading.enumerate()]


# -- the schema


def test_migrating_again_changes_nothing(inside: URL, store: SqlRunStore) -> None:
    store.create(_run("r1"))

    schema.upgrade(inside)

    assert _run("r1") == store.find("r1")


def test_a_schema_that_is_missing_newer_or_gone_is_refused(inside: URL, server: URL, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        SqlRunStore(namespace_url(server, _lab(tmp_path, name="rc_nowhere")))
    _execute(inside, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Misconfigured, match="9999"):
        SqlRunStore(inside)
    _execute(inside, "UPDATE alembic_version SET version_num = '0002'")
    with closing(SqlRunStore(inside)) as opened:
        _execute(inside, "DROP TABLE runs")
        for call in (lambda: opened.find("r1"), lambda: opened.create(_run("r1")), lambda: opened.find_resumable("tenant")):
            with pytest.raises(Misconfigured, match="migrations"):
                call()


@pytest.mark.parametrize("damage", ["", "{}", "{not json", "\ufffd", "7"])
def test_whatever_lies_in_the_column_is_named_corrupt(store: SqlRunStore, inside: URL, damage: str) -> None:
    store.create(_run("r1"))
    on_connection(inside, lambda c: c.execute(text("UPDATE runs SET payload = :damage"), {"damage": damage}))

    with pytest.raises(CorruptRecord) as caught:
        store.find("r1")

    assert ("r1", ["r1"]) == (caught.value.record, store.find_resumable("tenant").corrupt)


def test_a_second_migration_at_once_is_contended(monkeypatch: pytest.MonkeyPatch, servers: Servers) -> None:
    server = make_url(servers.url("mariadb", {}))
    monkeypatch.setattr(mysql, "LOCK_SECONDS", 0)

    def hold(connection: Connection) -> None:
        assert connection.execute(text("SELECT GET_LOCK(CONCAT('runs of ', MD5(DATABASE())), 0)")).scalar_one() == 1
        with pytest.raises(Contended, match="another migration"):
            schema.upgrade(server)

    on_connection(server, hold)


# -- whose schema it is


def test_a_name_that_is_taken_is_refused_and_left_alone(server: URL, lab: Lab, store: SqlRunStore) -> None:
    store.create(_run("r1"))

    with pytest.raises(UsageProblem, match="already"):
        make_namespace(lambda _: server, lab)

    assert _run("r1") == store.find("r1")


def test_what_does_not_have_the_mark_is_never_removed(server: URL, lab: Lab, store: SqlRunStore) -> None:
    marks: tuple[JsonValue, ...] = ({}, {"mark": "another"}, None)
    for prepared in marks:
        with pytest.raises(RuntimeError, match="mark"):
            remove_namespace(lambda _: server, replace(lab, prepared=prepared))

    assert store.find("r1") is None


def test_what_an_error_interrupts_is_not_left_open_for_the_next_action(server: URL, tmp_path: Path) -> None:
    def begin_and_fail(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("CREATE TABLE rc_half_made (a INTEGER)")
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        on_connection(server, begin_and_fail)
    on_connection(server, lambda connection: connection.exec_driver_sql("DROP TABLE IF EXISTS rc_half_made"))
    lab = _lab(tmp_path)
    prepared = make_namespace(lambda _: server, lab)
    remove_namespace(lambda _: server, replace(lab, prepared={**prepared}))


def test_a_database_whose_mark_cannot_be_written_does_not_stay(servers: Servers, tmp_path: Path) -> None:
    admin = make_url(servers.url("mariadb", {}))
    _execute(admin, "CREATE USER maker IDENTIFIED BY 'geheim'", "GRANT CREATE, DROP, SELECT ON *.* TO maker")
    lab = _lab(tmp_path)
    try:
        with pytest.raises(UsageProblem, match="INSERT command denied"):
            make_namespace(lambda _: admin.set(username="maker", password="geheim"), lab)
        query = text("SELECT schema_name FROM information_schema.schemata WHERE schema_name = :name")
        assert [] == on_connection(admin, lambda connection: connection.execute(query, {"name": lab.namespace}).all())
    finally:
        _execute(admin, "DROP USER maker")


# -- secrets


def test_no_error_shows_the_password(server: URL, tmp_path: Path) -> None:
    wrong = server.set(password="geheim-und-falsch")

    with pytest.raises(StoreError) as caught:
        SqlRunStore(namespace_url(wrong, _lab(tmp_path)))
    with pytest.raises(UsageProblem) as refused:
        make_namespace(lambda _: wrong, _lab(tmp_path))

    shown = "".join(traceback.format_exception(caught.value) + traceback.format_exception(refused.value))
    assert isinstance(caught.value, Misconfigured)
    assert "geheim" not in shown


# -- the asynchronous form


def test_the_asynchronous_form_gives_up_silence_and_closes(postgresql: URL, wire: Wire, tmp_path: Path) -> None:
    lab = _lab(tmp_path)
    lab = replace(lab, prepared=dict(make_namespace(lambda _: postgresql, lab)))

    async def use() -> None:
        opened = await AsyncSqlRunStore.open(_through(wire, namespace_url(postgresql, lab)), patience=1.5)
        await asyncio.gather(*(opened.create(_run(f"r{number}")) for number in range(8)))
        wire.be(Mode.SILENT)
        with pytest.raises(OutcomeUnknown):
            await opened.create(_run("r9"))
        wire.be(Mode.PASS)
        assert await opened.find("r7") == _run("r7")
        await opened.close()
        with pytest.raises(Closed):
            await opened.find("r7")

    asyncio.run(use())
    remove_namespace(lambda _: postgresql, lab)


def test_mariadb_has_no_asynchronous_form(servers: Servers) -> None:
    with pytest.raises(Misconfigured, match="synchronous"):
        AsyncSqlRunStore(make_url(servers.url("mariadb", {})))


# -- the command line


@pytest.mark.parametrize("name", _NAMES)
def test_the_store_is_certified(runcert: Runcert, name: str) -> None:
    done = runcert("certify", name, "--depth", "quick", expected=0)

    assert f"{name}: certified" in done.out


@pytest.mark.parametrize(("scheme", "name"), [("postgresql+psycopg", "postgresql"), ("mariadb+pymysql", "mariadb")])
def test_a_server_of_the_users_is_left_as_it_was(runcert: Runcert, servers: Servers, scheme: str, name: str) -> None:
    url = make_url(servers.url(name, {}))
    own = url.set(drivername=scheme).render_as_string(hide_password=False)
    schemata = text("SELECT schema_name FROM information_schema.schemata")

    def names(connection: Connection) -> list[str]:
        return sorted(connection.execute(schemata).scalars())

    before = on_connection(url, names)
    runcert("certify", own, "--depth", "quick", "--only", "RUN-CREATE-1", expected=0)

    assert before == on_connection(url, names)


_LIMITED = {
    "postgresql": [
        "CREATE ROLE limited LOGIN PASSWORD 'geheim'",
        "CREATE DATABASE place",
        "GRANT CREATE ON DATABASE place TO limited",
    ],
    "mariadb": [
        "CREATE USER limited IDENTIFIED BY 'geheim'",
        "CREATE DATABASE place",
        "GRANT SELECT ON place.* TO limited",
        "GRANT ALL ON `rc\\_%%`.* TO limited",
    ],
}
_UNLIMITED = {
    "postgresql": ["DROP DATABASE place", "DROP ROLE limited"],
    "mariadb": ["DROP DATABASE place", "DROP USER limited"],
}


@pytest.mark.parametrize(("scheme", "name"), [("postgresql+psycopg", "postgresql"), ("mariadb+pymysql", "mariadb")])
def test_a_user_who_may_make_the_kits_names_and_no_others_can_certify(
    runcert: Runcert, servers: Servers, scheme: str, name: str
) -> None:
    url = make_url(servers.url(name, {}))
    limited = url.set(drivername=scheme, username="limited", password="geheim", database="place")
    _execute(url, *_LIMITED[name])
    try:
        runcert(
            "certify", limited.render_as_string(hide_password=False), "--depth", "quick", "--only", "RUN-RESIDUE-1", expected=0
        )
    finally:
        _execute(url, *_UNLIMITED[name])


def test_a_user_without_the_right_to_make_schemas_is_told_so(runcert: Runcert, postgresql: URL) -> None:
    limited = postgresql.set(drivername="postgresql+psycopg", username="powerless", password="geheim")
    _execute(postgresql, "CREATE ROLE powerless LOGIN PASSWORD 'geheim'")
    try:
        done = runcert("certify", limited.render_as_string(hide_password=False), "--depth", "quick", expected=2)
    finally:
        _execute(postgresql, "DROP ROLE powerless")

    assert "may not do this" in done.err
    assert "geheim" not in done.err


_BAD: dict[str, Callable[[URL], URL]] = {
    "user, password or database": lambda url: url.set(password="geheim-und-falsch"),
    "does not exist|Unknown database": lambda url: url.set(database="no_such_database"),
    "cannot be reached|could not be reached": lambda url: url.set(port=9),
    "names no database": lambda url: url.set(database=""),
}


@pytest.mark.parametrize("sentence", _BAD)
@pytest.mark.parametrize(("scheme", "name"), [("postgresql+psycopg", "postgresql"), ("mysql+pymysql", "mariadb")])
def test_what_is_wrong_with_a_url_is_said_in_one_line(
    runcert: Runcert, servers: Servers, scheme: str, name: str, sentence: str
) -> None:
    url = _BAD[sentence](make_url(servers.url(name, {}))).set(drivername=scheme)

    done = runcert("certify", url.render_as_string(hide_password=False), "--depth", "quick", expected=2)

    assert any(words in done.err for words in sentence.split("|")), done.err
    assert str(url.password) not in done.out + done.err
    assert 1 == len(done.err.strip().splitlines())


@pytest.mark.parametrize("url", ["postgresql+psycopg://ann:geheim@h:port/db", "mariadb+pymysql://ann:geheim@h:port/db"])
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageProblem, match="the URL of the database cannot be read; write scheme://user") as caught:
        server_at_url(url)

    assert "geheim" not in str(caught.value)


def test_a_namespace_whose_tables_cannot_be_made_is_removed_again(
    postgresql: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: URL) -> None:
        raise Misconfigured("the tables cannot be made")

    monkeypatch.setattr(server_sql_namespaces, "upgrade", refuse)
    lab = _lab(tmp_path, name="rc_half_made")

    with pytest.raises(UsageProblem, match="the tables cannot be made"):
        make_namespace(lambda _: postgresql, lab)
    left = text("SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'rc_half_made'")
    assert 0 == on_connection(postgresql, lambda connection: connection.execute(left).scalar_one())


@pytest.mark.parametrize(
    ("url", "make", "message"),
    [
        ("oracle://h/db", engine, "this store is not made for oracle; it knows"),
        ("mysql://h/db", async_engine, "there is no asynchronous driver for mysql here; use the synchronous store"),
    ],
)
def test_a_database_that_no_store_is_made_for_is_named(url: str, make: Callable[[URL], object], message: str) -> None:
    with pytest.raises(Misconfigured, match=message):
        make(make_url(url))


def test_sqlite_by_url_leaves_its_directory_as_it_was(runcert: Runcert, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()

    only = ["--only", "RUN-NAMESPACE-1", "--only", "RUN-REUSE-1", "--only", "RUN-CORRUPT-1", "--only", "RUN-RESIDUE-1"]
    done = runcert("certify", f"sqlite:///{place}", "--depth", "quick", *only, expected=0)

    assert "4 of 4 clauses" in done.out
    assert [] == list(place.iterdir())


@pytest.mark.parametrize(
    "url", ["sqlite:////no/such/directory", "sqlite://", "sqlite:///:memory:", "sqlite://host/x", "sqlite://[x/y"]
)
def test_a_sqlite_url_names_a_directory(runcert: Runcert, url: str) -> None:
    done = runcert("certify", url, "--depth", "quick", expected=2)

    assert "directory" in done.err
