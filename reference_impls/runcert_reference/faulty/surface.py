"""Faults of methods beside the contract that replace what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime

from runcert.faulty import deviates
from runcert_contract import Run
from runcert_reference.faulty.over_memory import faulty_async_memory, faulty_memory
from runcert_reference.memory import AsyncMemoryRunStore, MemoryRunStore


class _ReplacesRuns(MemoryRunStore):
    """Replaces a stored run behind the contract's back."""

    def _replace(self, run: Run) -> None:
        with self._space.lock:
            if run.run_id in self._space.entries:
                deviates()
            self._put(run)


@faulty_memory("RUN-SURFACE-1", source="the clause: save")
class SaveReplaces(_ReplacesRuns):
    """The store has a save(run) that writes whatever it is given."""

    def save(self, run: Run) -> None:
        self._replace(run)


@faulty_memory("RUN-SURFACE-1", source="A2 dapr/components-contrib#1010: upsert")
class UpsertReplaces(_ReplacesRuns):
    """The store has an upsert(run_id, run) that replaces what is there."""

    def upsert(self, run_id: str, run: Run) -> None:
        if run_id == run.run_id:
            self._replace(run)


@faulty_memory("RUN-SURFACE-1", source="the clause: force_update")
class ForceUpdateReplaces(_ReplacesRuns):
    """The store has a force_update(expected, updated) that does not compare."""

    def force_update(self, expected: Run, updated: Run, *, note: str = "") -> bool:  # noqa: ARG002  # nothing is compared
        if isinstance(updated, Run):
            self._replace(updated)
        return True


@faulty_memory("RUN-SURFACE-1", source="B4 dapr/components-contrib#1244: the batch path")
class BatchesDoNotCompare(_ReplacesRuns):
    """The store has a put_many(runs) that drops the expectation which single updates check."""

    def put_many(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self._replace(run)


@faulty_memory("RUN-SURFACE-1", source="the clause: import")
class ImportsReplaceOlderVersions(_ReplacesRuns):
    """The store has a load(run) that replaces a run whose version is smaller."""

    def load(self, run: Run) -> None:
        if self._read(run.run_id).version < run.version:
            self._replace(run)


@faulty_memory("RUN-SURFACE-1", source="the clause: a record that has to be named")
class RestoreReplaces(_ReplacesRuns):
    """The store has a restore(*, record) that writes whatever it is given."""

    def restore(self, *, record: Run) -> None:
        self._replace(record)


@faulty_memory("RUN-SURFACE-1", source="the clause: force_*, with a reason and who gave it")
class OverwriteAsksForReasons(_ReplacesRuns):
    """The store has an overwrite(run, reason, actor) for operators."""

    def overwrite(self, run: Run, reason: str, actor: str) -> None:
        if reason and actor:
            self._replace(run)


@faulty_memory("RUN-SURFACE-1", source="the clause: assignment")
class AssignmentReplaces(_ReplacesRuns):
    """The store can be assigned to like a mapping."""

    def __setitem__(self, run_id: str, run: Run) -> None:
        if run_id == run.run_id:
            self._replace(run)


class _Operations:
    """What operators are given."""

    def __init__(self, store: _ReplacesRuns) -> None:
        self._store = store

    def fix(self, run: Run) -> None:
        self._store._replace(run)  # its own store


@faulty_memory("RUN-SURFACE-1", source="the clause: a part of the store")
class PartOfTheStoreReplaces(_ReplacesRuns):
    """The store has a public part, admin, whose fix(run) writes whatever it is given."""

    @property
    def admin(self) -> _Operations:
        return _Operations(self)


@faulty_async_memory("RUN-SURFACE-1", source="the clause: on an event loop")
class AsyncSaveReplaces(AsyncMemoryRunStore):
    """The asynchronous store has a save(run) that writes whatever it is given."""

    async def save(self, run: Run) -> None:
        if run.run_id in self._store._space.entries:  # a faulty store reaches where it should not
            deviates()
        self._store._put(run)  # as above


@faulty_memory("RUN-SURFACE-1", source="the clause: a record as a document")
class DocumentsReplace(_ReplacesRuns):
    """The store has a load_document(document) that writes the record described there."""

    def load_document(self, document: dict[str, object]) -> None:
        known = {entry.name for entry in fields(Run)}
        if set(document) == known and isinstance(document["created_at"], datetime):
            self._replace(Run(**document))  # type: ignore[arg-type]  # a faulty store believes what it is given
