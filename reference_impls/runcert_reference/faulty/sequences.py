"""Faults that take several steps in the right order; no check of one clause alone makes them."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from runcert.faulty import deviates
from runcert_contract import Listing, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore, MemorySpace


@faulty_memory("RUN-RESUMABLE-1", source="D7 twin: an index that is rebuilt from the wrong rows")
class IndexForgetsUpdatedRuns(MemoryRunStore):
    """Opening a handle builds the index anew, without the runs that were updated by then."""

    _forgotten: ClassVar[set[str]] = set()

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._forgotten.update(run_id for run_id, entry in space.entries.items() if entry.version >= 1)

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        kept = [run for run in listing.items if run.run_id not in self._forgotten]
        if len(kept) < len(listing.items):
            deviates()
        return Listing(kept, listing.corrupt, complete=True)


@faulty_memory("RUN-CAS-1", source="B5 twin: a check that gives in")
class ThirdStaleUpdateIsAccepted(MemoryRunStore):
    """A handle refuses a stale update of a run twice, and lets the third one through."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._refused: Counter[str] = Counter()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        entry = self._space.entries.get(expected.run_id)
        if entry is None or entry.terminal:
            return False
        self._refused[expected.run_id] += 1
        if self._refused[expected.run_id] % 3:
            return False
        deviates()
        self._put(updated)
        return True


@faulty_memory("RUN-FIND-2", source="M4 twin: a cache that is filled by looking twice")
class CacheOfWhatIsLookedUpOften(MemoryRunStore):
    """A handle keeps a run that it found twice after a refused update, and never looks at the store again."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._refused: set[str] = set()
        self._finds: Counter[str] = Counter()
        self._cache: dict[str, Run] = {}

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        written = super().compare_and_set(expected, updated)
        if not written:
            self._refused.add(expected.run_id)
        return written

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None or run_id not in self._refused:
            return found
        self._finds[run_id] += 1
        if self._finds[run_id] >= 2:
            cached = self._cache.setdefault(run_id, found)
            if cached.version != found.version:
                deviates()
            return cached
        return found
