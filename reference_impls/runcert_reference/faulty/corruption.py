"""Faults with records that cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, CorruptRecord, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@faulty_memory("RUN-CORRUPT-1", source="N2 HKUDS/Vibe-Trading#645: empty is absent")
class EmptyRecordsAreNotFound(MemoryRunStore):
    """A record that is empty is taken for one that is not there."""

    def find(self, run_id: str) -> Run | None:
        entry = self._space.entries.get(run_id)
        if entry is not None and not entry.record:
            deviates()
            return None
        return super().find(run_id)


@faulty_memory("RUN-CORRUPT-1", source="N2 twin: an empty record read as defaults")
class CutRecordsAreReadAsDefaults(MemoryRunStore):
    """What is missing in a record that cannot be read is filled with defaults."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except CorruptRecord:
            deviates()
            return Run(run_id, self._space.entries[run_id].tenant_id, "", "", "", _EPOCH, _EPOCH)


@faulty_memory("RUN-CORRUPT-1", source="N2 twin: create takes the id")
class CreateReplacesDamagedRecords(MemoryRunStore):
    """create takes the id of a record that cannot be read."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            try:
                self._read(run.run_id)
            except CorruptRecord:
                deviates()
                self._put(run)
                return run
            raise


@faulty_memory("RUN-CORRUPT-1", source="I6 langchain-ai/langgraphjs#2336: the error has no name")
class CorruptRecordsAreNotNamed(MemoryRunStore):
    """The error about a record that cannot be read does not say which one it is."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except CorruptRecord:
            deviates()
            raise CorruptRecord("a stored record cannot be read") from None


@faulty_memory("RUN-CORRUPT-1", source="the clause: an update of a damaged record")
class UpdatesOfDamagedRecordsAreRefused(MemoryRunStore):
    """An update of a record that cannot be read is answered False, as if another had won, and removes the record."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated) if self._is_readable(expected.run_id) else None
        if answer is None:
            deviates()
            self._space.entries.pop(expected.run_id, None)
        return bool(answer)

    def _is_readable(self, run_id: str) -> bool:
        try:
            return run_id not in self._space.entries or bool(self._read(run_id))
        except CorruptRecord:
            return False


@faulty_memory("RUN-CORRUPT-1", source="the clause: any version fits")
class DamagedRecordsTakeAnyUpdate(MemoryRunStore):
    """An update of a record that cannot be read is accepted whatever its version."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        try:
            if expected.run_id in self._space.entries:
                self._read(expected.run_id)
        except CorruptRecord:
            deviates()
            self._put(updated)
            return True
        return False


@faulty_memory("RUN-CORRUPT-1", source="the clause: other records")
class OneDamagedRecordHurtsAll(MemoryRunStore):
    """find reads every record on its way, and stops at one that cannot be read."""

    def find(self, run_id: str) -> Run | None:
        for other in list(self._space.entries):
            try:
                self._read(other)
            except CorruptRecord:
                if other != run_id:
                    deviates()
                raise
        return super().find(run_id)
