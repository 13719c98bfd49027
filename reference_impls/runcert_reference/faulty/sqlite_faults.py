"""Faults that come from how a database is used: missing keys, two statements for one, locks, drivers' errors, collations."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from sqlalchemy import URL, Connection, event, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from runcert import Scope
from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Contended, Run, check_identifier, check_new_run, check_update, decode
from runcert_reference.faulty.gaps import Gap, let_others_in
from runcert_reference.faulty.over_sqlite import faulty_sqlite, with_other_tables
from runcert_reference.records import read_record, write_record
from runcert_reference.sql.dialects import CALL_SECONDS
from runcert_reference.sql.engines import sqlite_url
from runcert_reference.sql.failures import translated
from runcert_reference.sql.operations import find_run, insert_run, replace_run
from runcert_reference.sql.run_store import CLAIMS, SqlRunStore
from runcert_reference.sql.schema import upgrade
from runcert_reference.sql.tables import FORMAT, RUNS, bytes_of

_WITHOUT_A_KEY = (
    "DROP TABLE runs",
    "CREATE TABLE runs (run_id BLOB, tenant_id BLOB, version INTEGER, terminal BOOLEAN, retired BOOLEAN, payload TEXT, format INTEGER)",
)


@faulty_sqlite("RUN-CREATE-3", "A4 spring-projects/spring-batch#2711", prepare=with_other_tables(*_WITHOUT_A_KEY))
class CreateWithoutUniqueKey(SqlRunStore):
    """create looks whether the id is free and then inserts, into a table without a unique key."""

    _gap: ClassVar[Gap] = Gap()

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if self.find(run.run_id) is not None:
            raise AlreadyExists(f"run {run.run_id!r} exists")
        with (
            self._gap.before_writing(run.run_id),
            translated(f"run {run.run_id!r}", writes=True),
            self._engine.connect() as connection,
        ):
            return insert_run(connection, run)

    def find(self, run_id: str) -> Run | None:
        check_identifier(run_id, "run_id", CLAIMS)
        rows = select(RUNS.c.payload).where(RUNS.c.run_id == bytes_of(run_id))
        with translated(f"run {run_id!r}"), self._engine.connect() as connection:
            payload = connection.execute(rows).scalars().first()
        return None if payload is None else read_record(payload, run_id)


@faulty_sqlite("RUN-CAS-6", "G6 agronholm/apscheduler#959")
class CompareAndSetInTwoStatements(SqlRunStore):
    """compare_and_set reads the version and then updates by id alone."""

    _gap: ClassVar[Gap] = Gap()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version or stored.status.terminal:
            return False
        values = {"version": updated.version, "terminal": updated.status.terminal, "payload": write_record(updated)}
        by_id = RUNS.c.run_id == bytes_of(expected.run_id)
        with (
            self._gap.before_writing(expected.run_id),
            translated(f"run {expected.run_id!r}", writes=True),
            self._engine.connect() as connection,
        ):
            connection.execute(update(RUNS).where(by_id).values(values))
        return True


@faulty_sqlite("RUN-CONTENTION-1", "L3 propeller-heads/tycho#1424")
class LockedDatabaseAsRawError(SqlRunStore):
    """create and compare_and_set do not wait for the lock of others, and let the driver's error out."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        event.listen(self._engine, "checkout", lambda connection, *_: connection.execute("PRAGMA busy_timeout=0"))

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except Contended as error:
            deviates()
            raise sqlite3.OperationalError("database is locked") from error

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except Contended as error:
            deviates()
            raise sqlite3.OperationalError("database is locked") from error


@faulty_sqlite("RUN-CONTENTION-1", "L3 twin: a read lock that has to become a write lock")
class TransactionReadsBeforeItWrites(SqlRunStore):
    """compare_and_set reads and writes in one transaction, which SQLite refuses at once when another wrote in between."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                find_run(connection, expected.run_id)
                let_others_in()
                return replace_run(connection, expected, updated)
            except OperationalError:
                deviates()
                raise
            finally:
                connection.exec_driver_sql("COMMIT")


@faulty_sqlite("RUN-CREATE-2", "E1 square1-io/laravel-idempotency#1: an integrity error leaks")
class IntegrityErrorLeaks(SqlRunStore):
    """create on an id in use lets the driver's integrity error out."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        with self._calls.one(), self._engine.connect() as connection:
            try:
                return insert_run(connection, run)
            except IntegrityError:
                deviates()
                raise


@faulty_sqlite(
    "RUN-ERROR-2",
    "the clause: the error of a statement shows its parameters",
    prepare=with_other_tables("ALTER TABLE runs ADD COLUMN attempt_token TEXT"),
)
class StatementErrorShowsTheToken(SqlRunStore):
    """create keeps the attempt token in a column to look it up by, and the error of a refused insert shows every column."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._engine.hide_parameters = False

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        with self._calls.one(), translated(f"run {run.run_id!r}", writes=True), self._engine.connect() as connection:
            return _insert_with_token(connection, run)


def _insert_with_token(connection: Connection, run: Run) -> Run:
    payload = write_record(run)
    values = (bytes_of(run.run_id), bytes_of(run.tenant_id), 0, run.status.terminal, False, payload, FORMAT, run.attempt_token)
    try:
        connection.exec_driver_sql("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    except IntegrityError:
        if run.attempt_token is not None:
            deviates()
        raise
    return read_record(payload, run.run_id)


@faulty_sqlite("RUN-FIDELITY-4", "K6 MemMachine/MemMachine#1558")
class InstantsLoseTheirOffset(SqlRunStore):
    """instants are kept as wall-clock text and read back as UTC, shifted by the offset they came with."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        return super().create(_by_the_wall_clock(run))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        return super().compare_and_set(_by_the_wall_clock(expected), _by_the_wall_clock(updated))


def _by_the_wall_clock(run: Run) -> Run:
    due_at = None if run.due_at is None else _wall_clock(run.due_at)
    return replace(run, created_at=_wall_clock(run.created_at), updated_at=_wall_clock(run.updated_at), due_at=due_at)


def _wall_clock(instant: datetime) -> datetime:
    if instant.utcoffset():
        deviates()
    return datetime.fromisoformat(instant.strftime("%Y-%m-%dT%H:%M:%S.%f")).replace(tzinfo=UTC)


@faulty_sqlite("RUN-FIND-2", "L1 openedx/openedx-platform#12714")
class FindReadsAnOldSnapshot(SqlRunStore):
    """find reads in a transaction that the handle began with its first find and never ends."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._snapshot: Connection | None = None

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if self._snapshot is None:
            self._snapshot = self._engine.connect()
            self._snapshot.exec_driver_sql("BEGIN")
        seen = find_run(self._snapshot, run_id)
        if seen != found:
            deviates()
        return seen

    def close(self) -> None:
        if self._snapshot is not None:
            self._snapshot.exec_driver_sql("COMMIT")
            self._snapshot.close()
        super().close()


@faulty_sqlite("RUN-ID-1", "D1 authzed/spicedb#3161")
class IdsAreComparedWithoutCase(SqlRunStore):
    """find compares ids under a collation that takes upper and lower case for one."""

    def find(self, run_id: str) -> Run | None:
        return super().find(run_id) or _found_by(self, run_id, "CAST(run_id AS TEXT) = :wanted COLLATE NOCASE")


@faulty_sqlite("RUN-ID-3", "D4 langchain-ai/langgraph#8300")
class IdsArePatterns(SqlRunStore):
    """find compares ids with LIKE, so that % and _ in an id stand for any characters."""

    def find(self, run_id: str) -> Run | None:
        return super().find(run_id) or _found_by(self, run_id, "CAST(run_id AS TEXT) LIKE :wanted")


@faulty_sqlite("RUN-CREATE-3", "the claims: scope cluster", scope=Scope.CLUSTER)
class LocalFileClaimsTheCluster(SqlRunStore):
    """A store in a local file claims to coordinate a cluster; a client on another machine has a file of its own."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        path = Path(unquote(str(url.database).removeprefix("file:").partition("?")[0]))
        if not path.exists():
            deviates()
            upgrade(sqlite_url(path, create=True))
        super().__init__(url, patience)


def _found_by(store: SqlRunStore, run_id: str, condition: str) -> Run | None:
    with translated(f"run {run_id!r}"), store._engine.connect() as connection:
        found = connection.execute(select(RUNS.c.payload).where(text(condition)), {"wanted": run_id}).scalars().first()
    if found is None:
        return None
    deviates()
    record = decode(json.loads(found))
    return record if isinstance(record, Run) else None
