"""A run store in a directory: one file a run, for the threads of one process.

Every handle of the process that is opened on a directory shares one lock (:mod:`runcert_reference.record_directory`), which makes each
operation atomic between them.  Other processes are not kept out: for those there are the stores in a database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runcert_contract import (
    AlreadyExists,
    Capability,
    Claims,
    CorruptRecord,
    Fault,
    Handles,
    InvalidIdentifier,
    Kept,
    Limits,
    Listing,
    Run,
    Scope,
    Stance,
    check_identifier,
    check_new_run,
    check_update,
)
from runcert_reference.file_names import LONGEST_NAME, LONGEST_PORTABLE, identifier_of, name_of
from runcert_reference.handles import closed_handle
from runcert_reference.record_directory import NameTaken, RecordDirectory, record_directory
from runcert_reference.records import read_record, write_record

__all__ = ["CLAIMS", "FileRunStore", "retire_run", "tombstone"]

_OTHER_IDENTIFIERS = (
    "tenant_id", "action_id", "proposal_id", "idempotency_key", "owner", "approval_id", "attempt_token", "external_operation_id",
)  # fmt: skip

CLAIMS = Claims(
    scope=Scope.PROCESS,
    handles=Handles.SHARED,
    durability={Fault.CLOSE: Kept()},
    capabilities={Capability.ENUMERATES: Stance.CLAIMED, Capability.GUARDS_TERMINAL: Stance.CLAIMED},
    limits=Limits(
        identifier={"run_id": LONGEST_PORTABLE, **dict.fromkeys(_OTHER_IDENTIFIERS, 1024)},
        text=100_000,
        depth=64,
        accepts_up_to=1_000_000,
        refuses_above=1_000_000,
    ),
    topology="one directory, one file a run, one process; no lock files",
)
"""What is said of this store."""


class FileRunStore:
    """A run store in a directory; threads may share it.

    Args:
        directory: an existing directory; files in it whose names this store does not make are left alone.

    Raises:
        StoreError: there is no such directory, or it may not be read and synced.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = record_directory(directory)
        self._open = True

    def close(self) -> None:
        """Let the call that is under way end, and refuse new ones."""
        with self._directory.lock:
            self._open = False

    def create(self, run: Run) -> Run:
        """Store a new run (RUN-CREATE-1 to -5)."""
        self._check_open()
        name = self._name_in(run)
        check_new_run(run, CLAIMS)
        record = write_record(run)
        with self._turn() as directory:
            if directory.read(name) is not None:
                raise _exists(run.run_id)
            try:
                directory.create(name, record.encode("ascii"))
            except NameTaken as error:
                raise _exists(run.run_id) from error
        return read_record(record, run.run_id)

    def find(self, run_id: str) -> Run | None:
        """Give the run, or None (RUN-FIND-1 to -3)."""
        self._check_open()
        name = self._name(run_id)
        with self._turn() as directory:
            content = directory.read(name)
        return None if content is None else read_file(content, run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one (RUN-CAS-1 to -10)."""
        self._check_open()
        name = self._name_in(expected)
        self._name_in(updated)
        check_update(expected, updated, CLAIMS)
        record = write_record(updated)
        with self._turn() as directory:
            content = directory.read(name)
            stored = None if content is None else read_file(content, expected.run_id)
            if stored is None or stored.version != expected.version or stored.status.terminal:
                return False
            directory.replace(name, record.encode("ascii"))
        return True

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal (RUN-RESUMABLE-1); reads every file.

        The lock is held for the names and then for each file, so that a long listing keeps nobody waiting for all of it.
        """
        self._check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        items: list[Run] = []
        corrupt: list[str] = []
        for run_id, name in self._record_names():
            try:
                run = self._read_if_resumable(name, run_id, tenant_id)
            except CorruptRecord:
                corrupt.append(run_id)
            else:
                items.extend(() if run is None else (run,))
        return Listing(items, corrupt, complete=True)

    def _record_names(self) -> list[tuple[str, str]]:
        with self._turn() as directory:
            names = directory.names()
        return [(run_id, name) for name in names if (run_id := identifier_of(name)) is not None]

    def _read_if_resumable(self, name: str, run_id: str, tenant_id: str) -> Run | None:
        with self._directory.lock:
            content = self._directory.read(name)
        if content is None or _is_of_another(content, run_id, tenant_id):
            return None
        run = read_file(content, run_id)
        return run if run is not None and run.tenant_id == tenant_id and not run.status.terminal else None

    def _name_in(self, run: object) -> str:
        return self._name(run.run_id) if isinstance(run, Run) else ""  # what is no run is refused next

    def _name(self, run_id: str) -> str:
        """Give the file name of a run.

        Raises:
            InvalidIdentifier: it has none.
        """
        check_identifier(run_id, "run_id", CLAIMS)
        name = name_of(run_id)
        if name is None:
            raise InvalidIdentifier(
                f"run_id: its file name would be longer than {LONGEST_NAME} bytes; give a shorter identifier"
            )
        return name

    @contextmanager
    def _turn(self) -> Iterator[RecordDirectory]:
        """Have the directory for oneself."""
        with self._directory.lock:
            self._check_open()
            yield self._directory

    def _check_open(self) -> None:
        if not self._open:
            raise closed_handle()


def _exists(run_id: str) -> AlreadyExists:
    return AlreadyExists(f"run {run_id!r} exists; find it, or take another id")


# -- what is in a file


def tombstone(run_id: str) -> bytes:
    """Give the content of the file of a run that was purged: it keeps the id from being accepted again."""
    return json.dumps({"$retired": run_id}, separators=(",", ":")).encode("ascii")


def read_file(content: bytes, run_id: str) -> Run | None:
    """Give the run that a file holds; None where it was purged.

    Args:
        content: what is in the file.
        run_id: the id that belongs to its name.

    Raises:
        CorruptRecord: it holds neither this run nor its tombstone.
    """
    if content == tombstone(run_id):
        return None
    return read_record(_text(content, run_id), run_id)


def _text(content: bytes, run_id: str) -> str:
    try:
        return content.decode("ascii")
    except UnicodeDecodeError as error:
        raise _unreadable(run_id) from error


def _unreadable(run_id: str) -> CorruptRecord:
    return CorruptRecord(f"run {run_id!r}: its file cannot be read; restore it from a backup", record=run_id)


_HEAD = re.compile(
    rb'\{"\$record":\["Run",\{"run_id":(?P<run_id>"(?:[^"\\]|\\.)*"),"tenant_id":(?P<tenant_id>"(?:[^"\\]|\\.)*"),'
)


def _is_of_another(content: bytes, run_id: str, tenant_id: str) -> bool:
    """Say whether a file begins as a record of another tenant does, which a listing need not decode.

    Where this cannot be told, the answer is False, so that an unreadable record is named to every tenant (LIST-4).
    """
    head = _HEAD.match(content)
    return head is not None and head["run_id"] == _literal(run_id) and head["tenant_id"] != _literal(tenant_id)


def _literal(text: str) -> bytes:
    return json.dumps(text).encode("ascii")


# -- retention


def retire_run(directory: Path, run_id: str) -> None:
    """Purge a run, as retention does: a tombstone takes the place of its record.

    Args:
        directory: where the store keeps its files.
        run_id: the id, which is never accepted again.

    Raises:
        StoreError: the system refused.
    """
    name = name_of(run_id)
    shared = record_directory(directory)
    with shared.lock:
        if name is not None and shared.read(name) is not None:
            shared.replace(name, tombstone(run_id))
