"""Faults of find: unknown ids that are more than that, and answers older than an acknowledged write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from runcert.faulty import deviates
from runcert_contract import NotFound, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore, MemorySpace


@faulty_memory("RUN-FIND-1")
class FindRaisesNotFound(MemoryRunStore):
    """find of an unknown id raises NotFound."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None:
            deviates()
            raise NotFound(f"no run {run_id!r}; create it first")
        return found


@faulty_memory("RUN-FIND-1", source="the clause: a get that creates")
class FindCreatesPlaceholders(MemoryRunStore):
    """find of an unknown id answers None and leaves an empty row behind, which takes the id."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None:
            deviates()
            self._space.retired.add(run_id)
        return found


@faulty_memory("RUN-FIND-1", source="the clause: a lookup by order or prefix")
class FindGivesTheNearestRun(MemoryRunStore):
    """find of an unknown id gives the next run in the order of ids."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        following = sorted(key for key in self._space.entries if key.startswith(run_id[:-1]))
        if found is None and following:
            deviates()
            return self._read(following[0])
        return found


@faulty_memory("RUN-FIND-1", source="the clause: defaults in place of None")
class FindMakesUpRuns(MemoryRunStore):
    """find of an unknown id gives a run with default values."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None:
            deviates()
            epoch = datetime(1970, 1, 1, tzinfo=UTC)
            return Run(run_id, "tenant", "action", "proposal", "key", epoch, epoch)
        return found


class _Cached(MemoryRunStore):
    """Keeps what it has read, one cache a handle."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._cache: dict[str, Run | None] = {}

    def _notice(self, run_id: str, answer: Run | None) -> Run | None:
        if answer != super().find(run_id):
            deviates()
        return answer


@faulty_memory("RUN-FIND-2", source="the clause: a read cache per handle")
class ReadCachePerHandle(_Cached):
    """find keeps what it read, and drops it only when the same handle writes."""

    def find(self, run_id: str) -> Run | None:
        found = self._cache.get(run_id) or super().find(run_id)
        self._cache[run_id] = found
        return self._notice(run_id, found)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._cache.pop(expected.run_id, None)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-FIND-2", source="the clause: a negative cache")
class AbsenceIsCached(_Cached):
    """find remembers for ever that an id was unknown to this handle."""

    def find(self, run_id: str) -> Run | None:
        if run_id in self._cache:
            return self._notice(run_id, None)
        found = super().find(run_id)
        if found is None:
            self._cache[run_id] = None
        return found


@faulty_memory("RUN-FIND-2", source="the clause: a cache filled by a refused update")
class CacheHoldsTheRefusedUpdate(_Cached):
    """compare_and_set puts its run into the handle's cache before it knows whether it was accepted."""

    def find(self, run_id: str) -> Run | None:
        cached = self._cache.pop(run_id, None)
        return self._notice(run_id, cached) if cached is not None else super().find(run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if not accepted:
            self._cache[updated.run_id] = updated
        return accepted


@faulty_memory("RUN-FIND-2", source="M4 nats-io/nats-server#4162")
class ReadsComeFromLaggingReplicas(MemoryRunStore):
    """every fifth find is served by a replica that is one write behind."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._finds = 0

    def find(self, run_id: str) -> Run | None:
        self._finds += 1
        found = super().find(run_id)
        if self._finds % 5 == 0 and found is not None and found.version > 0:
            deviates()
            return replace(found, version=found.version - 1)
        return found


@faulty_memory("RUN-FIND-2", source="the clause: one snapshot for the life of a handle")
class TerminalStatusIsSeenLate(_Cached):
    """find gives a run as it was when this handle first saw it running, although it has ended."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None or not found.status.terminal:
            self._cache[run_id] = found
            return found
        return self._notice(run_id, self._cache.get(run_id) or found)
