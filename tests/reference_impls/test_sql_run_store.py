"""The reference store in SQLite, where the suites cannot look: migrations, the driver's errors, what is left after closing."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import exc

from runcert_contract import AlreadyExists, Closed, Contended, CorruptRecord, Misconfigured, Run, StoreError, StoreUnavailable
from runcert_reference.sql import schema, sqlite, states
from runcert_reference.sql.engines import sqlite_url
from runcert_reference.sql.failures import translated
from runcert_reference.sql.run_store import AsyncSqlRunStore, SqlRunStore

_NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _run(run_id: str) -> Run:
    return Run(run_id, "tenant", "action", "proposal", "key", _NOW, _NOW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "100 % #1?é" / "runs.db"
    made.parent.mkdir()
    schema.upgrade(sqlite_url(made, create=True))
    return made


@pytest.fixture
def store(file: Path) -> Iterator[SqlRunStore]:
    with closing(SqlRunStore(sqlite_url(file))) as opened:
        yield opened


@pytest.fixture
def database(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


def test_a_migration_that_was_released_is_never_edited() -> None:
    released = {
        "mysql/0001_runs.sql": "a9263a59c3c442023b092f435605ec9aff0be67d1800768bb6a5819a2e30d809",
        "postgresql/0001_runs.sql": "6514918c6fe3ee30dc6d1009b46932a0a7e1595842cd565284d321f4acd7c555",
        "sqlite/0001_runs.sql": "7ee5d3c6cc95ae47a62f9f69f0a65b4440c35b517cb54039b3c93cfe29cd3909",
        "mysql/0002_formats.sql": "496ad14220d7c2a23f6d196c45262013702e4e60a1af05218f30d4e1af31d3e9",
        "postgresql/0002_formats.sql": "496ad14220d7c2a23f6d196c45262013702e4e60a1af05218f30d4e1af31d3e9",
        "sqlite/0002_formats.sql": "ede8da8e96f1172ce2b1facb16bffb3ae83a19137e7086b10584598a34694210",
    }

    found = {
        f"{file.parent.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in schema.MIGRATIONS.glob("*/*.sql")
    }

    assert released == found


@pytest.mark.parametrize("dialect", ["mysql", "postgresql", "sqlite"])
def test_the_newest_sql_file_is_alembics_head(dialect: str) -> None:
    head = ScriptDirectory(str(schema.MIGRATIONS)).get_current_head()

    assert head == schema.latest_revision(dialect)


def test_migrating_again_changes_nothing(file: Path, store: SqlRunStore) -> None:
    store.create(_run("r1"))

    schema.upgrade(sqlite_url(file, create=True))

    assert _run("r1") == store.find("r1")


def test_a_schema_that_is_missing_is_refused_and_not_made(tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()

    with pytest.raises(Misconfigured, match="run the migrations"):
        SqlRunStore(sqlite_url(empty))

    assert empty.stat().st_size == 0


def test_a_newer_schema_is_refused(file: Path, database: sqlite3.Connection) -> None:
    database.execute("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(Misconfigured, match="9999"):
        SqlRunStore(sqlite_url(file))
    with pytest.raises(Misconfigured, match="9999"):
        schema.upgrade(sqlite_url(file, create=True))


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"there is no database .*missing\.db; run the migrations"):
        SqlRunStore(sqlite_url(tmp_path / "missing.db"))
    with pytest.raises(StoreUnavailable):
        SqlRunStore(sqlite_url(tmp_path / "no such disk" / "missing.db"))

    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_moved_away_is_not_written_any_more(file: Path, store: SqlRunStore) -> None:
    store.create(_run("r1"))
    elsewhere = file.parent.with_name("elsewhere")
    file.parent.rename(elsewhere)
    for call in (lambda: store.find("r1"), lambda: store.create(_run("r2")), lambda: store.find_resumable("tenant")):
        with pytest.raises(StoreUnavailable):
            call()
    elsewhere.rename(file.parent)

    assert (_run("r1"), None) == (store.find("r1"), store.find("r2"))


def test_records_of_an_older_schema_come_back_after_the_migration(file: Path) -> None:
    with_old_records = states.bring_to(sqlite_url(file), "older", [_run("r1")])
    with pytest.raises(Misconfigured, match="revision 0001, this store needs 0002"):
        SqlRunStore(sqlite_url(file))
    assert with_old_records == states.bring_to(sqlite_url(file), "unchanged")

    states.bring_to(sqlite_url(file), "current")

    with closing(SqlRunStore(sqlite_url(file))) as migrated:
        assert _run("r1") == migrated.find("r1")


def test_a_record_in_a_form_of_a_later_release_is_named_corrupt(store: SqlRunStore, database: sqlite3.Connection) -> None:
    store.create(_run("r1"))
    database.execute("UPDATE runs SET format = 2")

    with pytest.raises(CorruptRecord, match="form 2; use the release that wrote it"):
        store.find("r1")


def test_a_lock_of_others_is_contended(monkeypatch: pytest.MonkeyPatch, file: Path, database: sqlite3.Connection) -> None:
    monkeypatch.setattr(sqlite, "LOCK_WAIT", 0.01)
    with closing(SqlRunStore(sqlite_url(file))) as impatient:
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(Contended, match="'r1'"):
            impatient.create(_run("r1"))
        database.execute("ROLLBACK")

        assert _run("r1") == impatient.create(_run("r1"))


def test_a_table_that_is_gone_is_misconfigured(store: SqlRunStore, database: sqlite3.Connection) -> None:
    database.execute("DROP TABLE runs")

    for call in (lambda: store.find("r1"), lambda: store.create(_run("r1")), lambda: store.find_resumable("tenant")):
        with pytest.raises(Misconfigured):
            call()


@pytest.mark.parametrize("damage", ["CAST(x'fffe' AS TEXT)", "x'7b7d'", "7", "''", "'{}'"])
def test_whatever_lies_in_the_column_is_named_corrupt(store: SqlRunStore, database: sqlite3.Connection, damage: str) -> None:
    store.create(_run("r1"))
    store.create(_run("r2"))
    database.execute(f"UPDATE runs SET payload = {damage} WHERE run_id = x'7231'")

    with pytest.raises(CorruptRecord) as caught:
        store.find("r1")
    listing = store.find_resumable("tenant")

    assert caught.value.record == "r1"
    assert (["r1"], [_run("r2")]) == (listing.corrupt, listing.items)


@pytest.mark.parametrize("change", ["version = 7", "tenant_id = x'74'"])
def test_a_record_that_disagrees_with_its_columns_is_corrupt(
    store: SqlRunStore, database: sqlite3.Connection, change: str
) -> None:
    store.create(_run("r1"))
    database.execute(f"UPDATE runs SET {change}")

    with pytest.raises(CorruptRecord, match="record and columns disagree") as caught:
        store.find("r1")
    assert "r1" == caught.value.record


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (exc.TimeoutError("QueuePool limit reached"), Contended),
        (exc.InvalidRequestError("this result object does not return rows"), Misconfigured),
        (exc.IntegrityError("INSERT", None, sqlite3.IntegrityError("UNIQUE")), AlreadyExists),
        (sqlite3.OperationalError("disk I/O error"), StoreUnavailable),
        (Closed("this handle was closed"), Closed),
        (ZeroDivisionError("a defect of this store"), ZeroDivisionError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_the_driver_or_the_pool_raises_is_an_error_of_the_contract_and_a_defect_is_not(
    error: Exception, expected: type[Exception]
) -> None:
    with pytest.raises(expected) as caught, translated("run 'r1'"):
        raise error

    assert isinstance(caught.value, StoreError) or caught.value is error


def test_no_version_is_too_large_to_ask_for(store: SqlRunStore) -> None:
    store.create(_run("r1"))

    for version in (2**63 - 2, 2**63 - 1, 2**63, 2**70):
        assert not store.compare_and_set(replace(_run("r1"), version=version), replace(_run("r1"), version=version + 1))


def test_closing_waits_for_calls_that_are_under_way(store: SqlRunStore) -> None:
    ends: list[str] = []

    def call_until_refused() -> None:
        try:
            while True:
                store.find("r1")
        except StoreError as error:
            ends.append(type(error).__name__)

    threads = [threading.Thread(target=call_until_refused) for _ in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join()

    assert ends == ["Closed"] * 4


def test_nothing_is_left_open_after_closing(file: Path) -> None:
    async def use() -> None:
        opened = await AsyncSqlRunStore.open(sqlite_url(file))
        await asyncio.gather(*(opened.find(f"r{number}") for number in range(8)))
        await opened.close()
        with pytest.raises(Closed):
            await opened.find("r1")

    before = set(threading.enumerate())
    asyncio.run(use())
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=2)  # the driver's threads have been told to end and may need a moment

    assert before >= set(threading.enumerate())
    assert [file] == list(file.parent.iterdir())


def test_a_cancelled_call_keeps_no_connection_and_leaves_no_answer(file: Path) -> None:
    async def use(turns: int) -> None:
        opened = await AsyncSqlRunStore.open(sqlite_url(file))
        for number in range(12):
            call = asyncio.create_task(opened.create(_run(f"{turns}-{number}")))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait({call})
            assert await opened.find("unknown") is None
            assert await opened.find(f"{turns}-{number}") in (None, _run(f"{turns}-{number}"))
        with pytest.raises(AlreadyExists):
            await opened.create(_run("r1"))
        await opened.close()

    with closing(SqlRunStore(sqlite_url(file))) as other:
        other.create(_run("r1"))
    for turns in range(8):
        asyncio.run(use(turns))
