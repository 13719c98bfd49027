"""The operations of a run store, each as one SQL statement on an open connection.

Both forms of the store share them: the asynchronous one runs them through ``AsyncConnection.run_sync``.  One statement is one
transaction (connections are in autocommit), so nothing here reads first and writes later.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, bindparam, false, func, insert, select, true, update

from runcert_contract import CorruptRecord, Listing, Run
from runcert_reference.records import read_record, write_record
from runcert_reference.sql.tables import FORMAT, RUNS, bytes_of, text_of

__all__ = ["count_runs", "damage_run", "find_run", "insert_run", "list_resumable", "replace_run", "retire_run"]

LARGEST_VERSION = 2**63 - 1
"""The largest version that the column holds."""

_INSERT = insert(RUNS)
_STORED = select(RUNS.c.run_id, RUNS.c.tenant_id, RUNS.c.version, RUNS.c.payload, RUNS.c.format).where(
    RUNS.c.retired == false()
)
_FIND = _STORED.where(RUNS.c.run_id == bindparam("wanted"))
_RESUMABLE = _STORED.where(RUNS.c.tenant_id == bindparam("wanted"), RUNS.c.terminal == false())
_REPLACE = (
    update(RUNS)
    .where(RUNS.c.run_id == bindparam("wanted"), RUNS.c.version == bindparam("expected_version"), RUNS.c.terminal == false())
    .values(version=bindparam("new_version"), terminal=bindparam("new_terminal"), payload=bindparam("new_payload"))
)
_RETIRE = (
    update(RUNS).where(RUNS.c.run_id == bindparam("wanted")).values(retired=true(), terminal=true(), tenant_id=b"", payload="")
)
_DAMAGE = update(RUNS).where(RUNS.c.run_id == bindparam("wanted")).values(payload=bindparam("new_payload"))


def insert_run(connection: Connection, run: Run) -> Run:
    """Insert a new run and give it back as it was stored.

    The primary key decides who was first; a taken id is an ``IntegrityError`` of the driver.
    """
    payload = write_record(run)
    connection.execute(
        _INSERT,
        {
            "run_id": bytes_of(run.run_id),
            "tenant_id": bytes_of(run.tenant_id),
            "version": run.version,
            "terminal": run.status.terminal,
            "retired": False,
            "payload": payload,
            "format": FORMAT,
        },
    )
    return read_record(payload, run.run_id)


def find_run(connection: Connection, run_id: str) -> Run | None:
    """Give the run under ``run_id``, or None.

    Raises:
        CorruptRecord: what is stored under it cannot be read.
    """
    row = connection.execute(_FIND, {"wanted": bytes_of(run_id)}).one_or_none()
    return None if row is None else _run_of(row)


def replace_run(connection: Connection, expected: Run, updated: Run) -> bool:
    """Replace the run where it still has the expected version and is not terminal; say whether it did."""
    if expected.version >= LARGEST_VERSION:
        return False  # no stored run ever gets there, and the driver could not ask
    result = connection.execute(
        _REPLACE,
        {
            "wanted": bytes_of(expected.run_id),
            "expected_version": expected.version,
            "new_version": updated.version,
            "new_terminal": updated.status.terminal,
            "new_payload": write_record(updated),
        },
    )
    return result.rowcount == 1


def list_resumable(connection: Connection, tenant_id: str) -> Listing:
    """Give the runs of a tenant that are not terminal, from one statement and so from one moment."""
    items: list[Run] = []
    corrupt: list[str] = []
    for row in connection.execute(_RESUMABLE, {"wanted": bytes_of(tenant_id)}).all():
        try:
            items.append(_run_of(row))
        except CorruptRecord:
            corrupt.append(text_of(row.run_id))
    return Listing(items, corrupt, complete=True)


def _run_of(row: Row[Any, Any, Any, Any, Any]) -> Run:
    run_id = text_of(row.run_id)
    if row.format != FORMAT:
        raise CorruptRecord(f"run {run_id!r}: the record is in form {row.format}; use the release that wrote it", record=run_id)
    if not isinstance(row.payload, str) or not row.payload.isascii():
        raise CorruptRecord(f"run {run_id!r}: the stored record is not ASCII text; restore it from a backup", record=run_id)
    run = read_record(row.payload, run_id)
    if run.version != row.version or bytes_of(run.tenant_id) != row.tenant_id:
        raise CorruptRecord(f"run {run_id!r}: record and columns disagree; restore it from a backup", record=run_id)
    return run


# -- what the owner of the database does, beside the contract


def retire_run(connection: Connection, run_id: str) -> None:
    """Remove the record of a run as retention does; its id stays taken."""
    connection.execute(_RETIRE, {"wanted": bytes_of(run_id)})


def damage_run(connection: Connection, run_id: str, how: str) -> None:
    """Make the stored record of a run unreadable: ``how`` is undecodable, cut or empty."""
    payload: str = connection.execute(_FIND, {"wanted": bytes_of(run_id)}).one().payload
    damaged = {"undecodable": "\ufffd{not json", "cut": payload[: len(payload) // 2], "empty": ""}[how]
    connection.execute(_DAMAGE, {"wanted": bytes_of(run_id), "new_payload": damaged})


def count_runs(connection: Connection) -> dict[str, int]:
    """Count what is stored."""
    rows = connection.execute(select(RUNS.c.retired, func.count()).group_by(RUNS.c.retired)).all()
    counted = {bool(retired): int(number) for retired, number in rows}
    return {"runs": counted.get(False, 0), "retired": counted.get(True, 0)}
