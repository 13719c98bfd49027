"""Faults of what is left when every handle was closed."""

from __future__ import annotations

from dataclasses import replace

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Fault, Kept, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import Entry, MemoryRunStore, MemorySpace

_KEPT = {Fault.CLOSE: Kept()}


class KeepingMemoryRunStore(MemoryRunStore):
    """The reference store in memory, which keeps its runs when the last handle is closed."""

    def close(self) -> None:
        with self._space.lock:
            entries = dict(self._space.entries)
            last = self._open and self._space.handles == 1
            super().close()
            self._space.entries.update(entries)
            if last:
                self._all_closed()

    def _all_closed(self) -> None:
        """Do what is done when no handle is left."""

    def _replace_record(self, run: Run) -> None:
        """Bring a run back behind the store's back."""
        MemoryRunStore._put(self, run)


@faulty_memory("RUN-DURABLE-1", source="the clause: write-behind", sound=KeepingMemoryRunStore, durability=_KEPT)
class TheLastWriteIsNotFlushed(KeepingMemoryRunStore):
    """Writes go to storage with the next write; the last one before closing is lost."""

    def _all_closed(self) -> None:
        if self._space.entries:
            deviates()
            self._space.entries.popitem()


@faulty_memory("RUN-DURABLE-1", source="the clause: ended runs", sound=KeepingMemoryRunStore, durability=_KEPT)
class EndedRunsAreNotKept(KeepingMemoryRunStore):
    """Only runs that have not ended are kept when the handles are closed."""

    def _all_closed(self) -> None:
        for run_id in [run_id for run_id, entry in self._space.entries.items() if entry.terminal]:
            deviates()
            del self._space.entries[run_id]


@faulty_memory("RUN-DURABLE-1", source="the clause: volatile is all or nothing")
class HalfIsGone(KeepingMemoryRunStore):
    """The store promises nothing for close, and loses every second run."""

    def _all_closed(self) -> None:
        for run_id in list(self._space.entries)[::2]:
            deviates()
            del self._space.entries[run_id]


class _Remembers(KeepingMemoryRunStore):
    """Keeps what was stored before the last write of each run."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._before: dict[str, Entry] = {}

    def _put(self, run: Run) -> None:
        before = self._space.entries.get(run.run_id)
        if before is not None:
            self._before[run.run_id] = before
        super()._put(run)


@faulty_memory("RUN-DURABLE-3", source="M2 redis/redis#6062: an older snapshot", sound=KeepingMemoryRunStore, durability=_KEPT)
class OlderSnapshotsComeBack(_Remembers):
    """When the handles are opened again, runs are there in the version before the last."""

    def _all_closed(self) -> None:
        for run_id, entry in self._before.items():
            deviates()
            self._space.entries[run_id] = entry


@faulty_memory(
    "RUN-DURABLE-3", source="the clause: a journal of what was refused", sound=KeepingMemoryRunStore, durability=_KEPT
)
class RefusedUpdatesAreReplayed(KeepingMemoryRunStore):
    """The journal holds refused updates too, and replays them when the handles are closed."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._journal: list[Run] = []

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        if not answer:
            self._journal.append(updated)
        return answer

    def _all_closed(self) -> None:
        for run in self._journal:
            deviates()
            self._replace_record(run)


@faulty_memory("RUN-DURABLE-3", source="the clause: a refused create comes back", sound=KeepingMemoryRunStore, durability=_KEPT)
class RefusedCreatesComeBack(KeepingMemoryRunStore):
    """A create that was refused is in the log, and what the log says last is what is read after closing."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._log: list[Run] = []

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            self._log.append(run)
            raise

    def _all_closed(self) -> None:
        for run in self._log:
            deviates()
            entry = self._space.entries[run.run_id]
            self._replace_record(run)
            self._space.entries[run.run_id] = replace(entry, record=self._space.entries[run.run_id].record)


@faulty_memory(
    "RUN-DURABLE-4",
    source="the clause: only what was there at first is written back",
    sound=KeepingMemoryRunStore,
    durability=_KEPT,
)
class WritesAfterReopeningAreLost(KeepingMemoryRunStore):
    """A store that was opened on existing runs reads them and no longer writes new ones to storage."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._found = set(space.entries) if space.handles == 1 else None

    def _all_closed(self) -> None:
        for run_id in [run_id for run_id in self._space.entries if self._found and run_id not in self._found]:
            deviates()
            del self._space.entries[run_id]


@faulty_memory("RUN-DURABLE-4", source="the clause: updates after recovery", sound=KeepingMemoryRunStore, durability=_KEPT)
class UpdatesAfterReopeningAreLost(KeepingMemoryRunStore):
    """What was recovered is written back as it was recovered when the handles are closed the next time."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._recovered = dict(space.entries) if space.handles == 1 else {}

    def _all_closed(self) -> None:
        for run_id, entry in self._recovered.items():
            if self._space.entries.get(run_id) != entry:
                deviates()
                self._space.entries[run_id] = entry
