"""Faults that come from how a database server is used: collations, types of columns, row counts, isolation, broken transactions."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

from sqlalchemy import URL, Connection, event, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, InvalidRecord, Listing, Run, check_identifier, check_new_run, check_update
from runcert_reference.faulty.gaps import Gap, let_others_in
from runcert_reference.faulty.over_server_sql import faulty_mariadb, faulty_postgresql
from runcert_reference.records import read_record, write_record
from runcert_reference.sql.dialects import CALL_SECONDS
from runcert_reference.sql.failures import translated
from runcert_reference.sql.operations import find_run, insert_run, replace_run
from runcert_reference.sql.run_store import SqlRunStore
from runcert_reference.sql.tables import RUNS, bytes_of

# -- collations


def _unique_as_text(collation: str) -> str:
    column = f"VARCHAR(768) CHARACTER SET utf8mb4 COLLATE {collation} AS (CONVERT(run_id USING utf8mb4)) PERSISTENT"
    return f"ALTER TABLE runs ADD COLUMN id_as_text {column}, ADD UNIQUE KEY (id_as_text)"


class _UniqueAsText(SqlRunStore):
    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            if self.find(run.run_id) is None:
                deviates()
            raise


@faulty_mariadb("RUN-ID-1", "D1 authzed/spicedb#3161: padding", tables=[_unique_as_text("utf8mb4_bin")])
class CollationPads(_UniqueAsText):
    """ids are unique under utf8mb4_bin, which takes a space at the end for nothing."""


@faulty_mariadb("RUN-ID-1", "D1 authzed/spicedb#3161: folding", tables=[_unique_as_text("utf8mb4_unicode_nopad_ci")])
class CollationFolds(_UniqueAsText):
    """ids are unique under a collation that takes upper and lower case, and letters with and without accents, for one."""


@faulty_postgresql("RUN-ID-3", "D4 langchain-ai/langgraph#8300: a query by tenant")
class TenantsAreLikePatterns(SqlRunStore):
    """find_resumable compares tenants with LIKE and escapes nothing, so that % and _ stand for any characters."""

    def find_resumable(self, tenant_id: str) -> Listing:
        exact = super().find_resumable(tenant_id)
        like = text("SELECT run_id FROM runs WHERE tenant_id LIKE :wanted AND NOT terminal AND NOT retired")
        with self._connection(f"runs of tenant {tenant_id!r}") as connection:
            try:
                matching = connection.execute(like, {"wanted": bytes_of(tenant_id)}).scalars().all()
            except DBAPIError:  # a pattern that ends with its escape character matches nothing
                return exact
            found = [find_run(connection, bytes(run_id).decode()) for run_id in matching]
        if len(found) != len(exact.items):
            deviates()
        return Listing([run for run in found if run is not None], exact.corrupt, complete=True)


# -- types of columns


_THROUGH_JSONB = (
    """
    CREATE FUNCTION through_jsonb() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.payload := (NEW.payload::jsonb)::text; RETURN NEW; END $$
    """,
    "CREATE TRIGGER through_jsonb BEFORE INSERT OR UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION through_jsonb()",
)


class _ThroughJsonb(SqlRunStore):
    def create(self, run: Run) -> Run:
        check_new_run(run, self._claims)
        row = {"run_id": bytes_of(run.run_id), "tenant_id": bytes_of(run.tenant_id), "retired": False, **self._content(run)}
        with self._calls.one(), self._connection(f"run {run.run_id!r}", record=run.run_id, writes=True) as connection:
            connection.execute(insert(RUNS).values(**row))
        return run

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, self._claims)
        same = (RUNS.c.run_id == bytes_of(expected.run_id)) & (RUNS.c.version == min(expected.version, 2**63 - 1))
        statement = update(RUNS).where(same, RUNS.c.terminal.is_(False)).values(**self._content(updated))
        with self._calls.one(), self._connection(f"run {expected.run_id!r}", writes=True) as connection:
            return connection.execute(statement).rowcount == 1

    def find(self, run_id: str) -> Run | None:
        check_identifier(run_id, "run_id", self._claims)
        statement = select(RUNS.c.payload).where(RUNS.c.run_id == bytes_of(run_id), RUNS.c.retired.is_(False))
        with self._calls.one(), self._connection(f"run {run_id!r}", record=run_id) as connection:
            found = connection.execute(statement).scalar_one_or_none()
        return None if found is None else read_record(self._read(found), run_id)

    def _content(self, run: Run) -> dict[str, object]:
        return {"version": run.version, "terminal": run.status.terminal, "payload": self._written(run)}

    def _written(self, run: Run) -> str:
        return write_record(run)

    def _read(self, stored: str) -> str:
        return stored


@faulty_postgresql("RUN-FIDELITY-2", "K1 osbuild/osbuild-composer#4779", tables=_THROUGH_JSONB)
class JsonbKnowsNoNul(_ThroughJsonb):
    """the record is kept as jsonb, which holds no U+0000, and the store claims to keep every text."""

    def _written(self, run: Run) -> str:
        written = write_record(run)
        if "\\u0000" in written:
            deviates()
            raise InvalidRecord(f"run {run.run_id!r}: jsonb holds no U+0000")
        return written


@faulty_postgresql("RUN-FIDELITY-3", "K4 contribsys/faktory#395: numbers in jsonb", tables=_THROUGH_JSONB)
class JsonbChangesNumbers(_ThroughJsonb):
    """the record is kept as jsonb, which writes numbers in its own way: 1e+16 comes back as an integer."""

    def _written(self, run: Run) -> str:
        plain = re.sub(r'\{"\$float":"([^"]*)"\}', r"\1", write_record(run))
        if re.search(r"[0-9]e\+", plain):
            deviates()
        return plain.replace("\\u0000", "")

    def _read(self, stored: str) -> str:
        return json.dumps(json.loads(stored, parse_float=lambda number: {"$float": repr(float(number))}))


_CUT = "ALTER TABLE runs MODIFY payload TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"


@faulty_mariadb("RUN-FIDELITY-6", "K7 kvesteri/sqlalchemy-utils#164", tables=[_CUT])
class TextIsCut(SqlRunStore):
    """the record is kept in a TEXT column of a server that is not strict, so that it is cut at 65,535 bytes."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._engine.dispose()
        event.listen(self._engine, "connect", _not_strict)

    def create(self, run: Run) -> Run:
        stored = super().create(run)
        _note_cut(stored)
        return stored

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        replaced = super().compare_and_set(expected, updated)
        _note_cut(updated)
        return replaced


def _not_strict(connection: object, record: object) -> None:  # noqa: ARG001  # the signature of the event
    cursor = connection.cursor()  # type: ignore[attr-defined]  # a connection of the driver
    cursor.execute("SET SESSION sql_mode = ''")
    cursor.close()


def _note_cut(run: Run) -> None:
    if len(write_record(run)) > 65_535:
        deviates()


# -- row counts


@faulty_mariadb("RUN-CAS-5", "B2: changed rows instead of found rows")
class ChangedRowsDecide(SqlRunStore):
    """compare_and_set takes a statement that changed no row for a conflict, and MariaDB counts only rows that look different after it."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._engine.dispose()
        event.listen(self._engine, "do_connect", _count_changed_rows)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, self._claims)
        content = write_record(replace(updated, version=expected.version))
        condition = (RUNS.c.run_id == bytes_of(expected.run_id)) & (RUNS.c.version == min(expected.version, 2**63 - 1))
        with (
            self._calls.one(),
            self._connection(f"run {expected.run_id!r}", writes=True) as connection,
            _transaction(connection),
        ):
            if (
                connection.execute(update(RUNS).where(condition, RUNS.c.terminal.is_(False)).values(payload=content)).rowcount
                == 1
            ):
                return replace_run(connection, expected, updated)
            found = find_run(connection, expected.run_id)
            if found is not None and found.version == expected.version and not found.status.terminal:
                deviates()
            return False


def _count_changed_rows(dialect: object, record: object, arguments: object, parameters: dict[str, object]) -> None:  # noqa: ARG001  # the signature of the event
    parameters["client_flag"] = 0


@contextmanager
def _transaction(connection: Connection, begin: str = "START TRANSACTION") -> Iterator[None]:
    connection.exec_driver_sql(begin)
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


@faulty_postgresql("RUN-CAS-6", "A1 twin: read committed does not make two statements one")
class ReadsThenUpdates(SqlRunStore):
    """compare_and_set reads the version and then updates by the id alone, both in one transaction at READ COMMITTED."""

    _gap: ClassVar[Gap] = Gap()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, self._claims)
        what = f"run {expected.run_id!r}"
        with (
            self._calls.one(),
            self._connection(what, record=expected.run_id, writes=True) as connection,
            _transaction(connection),
        ):
            found = find_run(connection, expected.run_id)
            if found is None or found.version != expected.version or found.status.terminal:
                return False
            values = {"version": updated.version, "terminal": updated.status.terminal, "payload": write_record(updated)}
            with self._gap.before_writing(expected.run_id):
                connection.execute(update(RUNS).where(RUNS.c.run_id == bytes_of(expected.run_id)).values(**values))
            return True


# -- isolation and broken transactions


@faulty_mariadb("RUN-USABLE-2", "L1 openedx/openedx-platform#12714: after a duplicate key")
class FindKeepsItsSnapshot(SqlRunStore):
    """find reads at REPEATABLE READ in a transaction that only a write which succeeds ends, so it does not see who was first."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._lock = threading.Lock()
        self._snapshot: Connection | None = None

    def create(self, run: Run) -> Run:
        stored = super().create(run)
        self._end()
        return stored

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        replaced = super().compare_and_set(expected, updated)
        if replaced:
            self._end()
        return replaced

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        with self._lock, translated(f"run {run_id!r}"):
            if self._snapshot is None:
                self._snapshot = self._engine.connect()
                self._snapshot.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                self._snapshot.exec_driver_sql("START TRANSACTION")
            seen = find_run(self._snapshot, run_id)
        if seen != found:
            deviates()
        return seen

    def close(self) -> None:
        self._end()
        super().close()

    def _end(self) -> None:
        with self._lock:
            if self._snapshot is not None:
                self._snapshot.exec_driver_sql("COMMIT")
                self._snapshot.close()
                self._snapshot = None


@faulty_postgresql("RUN-USABLE-1", "L4 juanluispaz/ts-sql-query#136")
class SessionIsPoisoned(SqlRunStore):
    """create does not roll back after a unique violation, so that every further statement of its session fails."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._lock = threading.Lock()
        self._session = self._engine.connect()

    def create(self, run: Run) -> Run:
        check_new_run(run, self._claims)
        with self._calls.one(), self._lock, translated(f"run {run.run_id!r}", record=run.run_id, writes=True):
            try:
                self._session.exec_driver_sql("BEGIN")
                stored = insert_run(self._session, run)
            except IntegrityError:
                raise
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) == "25P02":
                    deviates()
                raise
            self._session.exec_driver_sql("COMMIT")
            return stored

    def close(self) -> None:
        self._session.close()
        super().close()


@faulty_postgresql("RUN-CONTENTION-1", "L3 propeller-heads/tycho#1424")
class SerializationFailureLeaks(SqlRunStore):
    """compare_and_set runs at SERIALIZABLE and lets the driver's serialization failure out."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, self._claims)
        with self._calls.one(), self._engine.connect() as connection:
            try:
                with _transaction(connection, "BEGIN ISOLATION LEVEL SERIALIZABLE"):
                    find_run(connection, expected.run_id)
                    let_others_in()
                    return replace_run(connection, expected, updated)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) == "40001":
                    deviates()
                raise


@faulty_postgresql("RUN-ERROR-2", "the clause: credentials of the server in a message")
class PasswordsAreQuoted(SqlRunStore):
    """AlreadyExists quotes the settings of the connection, the password among them, by itself and not in a URL."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists as error:
            deviates()
            settings = {"user": self._engine.url.username, "password": str(self._engine.url.password)}
            raise AlreadyExists(f"{error} ({settings})") from None
