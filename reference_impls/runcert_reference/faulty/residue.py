"""Faults of operations that leave something behind although they were refused."""

from __future__ import annotations

from dataclasses import replace

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Listing, Run, StoreError
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore


@faulty_memory("RUN-RESIDUE-1", source="the clause: a marker")
class RefusedCreatesLeaveMarkers(MemoryRunStore):
    """A create that is refused because the id is taken leaves its marker."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            self._space.retired.add(f"marker of {run.run_id}")
            raise


@faulty_memory("RUN-RESIDUE-1", source="the clause: a lock")
class RefusedUpdatesLeaveTheirLock(MemoryRunStore):
    """An update that gives False does not take its lock away."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        if not answer:
            deviates()
            self._space.retired.add(f"lock of {expected.run_id}")
        return answer


@faulty_memory("RUN-RESIDUE-1", source="K1 osbuild/osbuild-composer#4779: the index was changed first")
class RefusedRunsLeaveAnIndexEntry(MemoryRunStore):
    """The index is written first, and stays when the run is then refused for a value outside the domain."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except StoreError as error:
            if not isinstance(error, AlreadyExists):
                deviates()
                self._space.retired.add(f"index of {run.run_id!r}")
            raise


@faulty_memory("RUN-RESIDUE-1", source="the clause: a temporary file")
class WrongUpdatesLeaveTemporaries(MemoryRunStore):
    """An update that is refused leaves the temporary copy that it was written to."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except StoreError:
            deviates()
            current = self._space.entries[expected.run_id]
            self._space.entries[f".{expected.run_id}.tmp"] = replace(current, terminal=True)
            raise


@faulty_memory("RUN-RESIDUE-1", source="the clause: reads that write")
class ListingsLeaveBuckets(MemoryRunStore):
    """find_resumable makes a bucket for a tenant that has none."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if not listing.items:
            deviates()
            self._space.retired.add(f"bucket of {tenant_id}")
        return listing
