"""Run stores in memory: every handle of a process that is opened on one :class:`MemorySpace` sees the same runs.

Runs are kept as text, so that nothing mutable is shared with callers; one lock makes each operation atomic.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from runcert_contract import (
    AlreadyExists,
    Capability,
    Claims,
    CorruptRecord,
    Fault,
    Handles,
    Limits,
    Listing,
    Run,
    Scope,
    Stance,
    Volatile,
    check_identifier,
    check_new_run,
    check_update,
)
from runcert_reference.handles import closed_handle
from runcert_reference.records import read_record, write_record

__all__ = ["CLAIMS", "AsyncMemoryRunStore", "Entry", "MemoryRunStore", "MemorySpace", "forget", "space_of"]

CLAIMS = Claims(
    scope=Scope.PROCESS,
    handles=Handles.SHARED,
    durability={Fault.CLOSE: Volatile()},
    capabilities={Capability.ENUMERATES: Stance.CLAIMED, Capability.GUARDS_TERMINAL: Stance.CLAIMED},
    limits=Limits(identifier=1024, text=100_000, depth=64, accepts_up_to=1_000_000, refuses_above=1_000_000),
)
"""What is said of this store."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept for one run: what decides, and the record as text."""

    tenant_id: str
    version: int
    terminal: bool
    record: str


@dataclass(slots=True)
class MemorySpace:
    """The runs of one namespace.

    Attributes:
        entries: what is kept, by run id.
        retired: ids that were purged and are never accepted again.
        lock: held for the length of one operation.
        handles: how many handles are open; with the last one everything is gone.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)
    handles: int = 0


class MemoryRunStore:
    """A run store in memory; one handle.

    Args:
        space: the runs of the namespace.
    """

    def __init__(self, space: MemorySpace) -> None:
        self._space = space
        self._open = True
        with space.lock:
            space.handles += 1

    def close(self) -> None:
        """Close the handle; with the last handle of the space its runs are gone."""
        with self._space.lock:
            if self._open:
                self._open = False
                self._space.handles -= 1
                if self._space.handles == 0:
                    self._space.entries.clear()
                    self._space.retired.clear()

    def create(self, run: Run) -> Run:
        """Store a new run (RUN-CREATE-1 to -5)."""
        self._check_open()
        check_new_run(run, CLAIMS)
        with self._space.lock:
            if run.run_id in self._space.entries or run.run_id in self._space.retired:
                raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
            self._put(run)
        return self._read(run.run_id)

    def find(self, run_id: str) -> Run | None:
        """Give the run, or None (RUN-FIND-1 to -3)."""
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        with self._space.lock:
            return self._read(run_id) if run_id in self._space.entries else None

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one (RUN-CAS-1 to -10)."""
        self._check_open()
        check_update(expected, updated, CLAIMS)
        with self._space.lock:
            entry = self._space.entries.get(expected.run_id)
            if entry is None or entry.version != expected.version or entry.terminal:
                return False
            self._put(updated)
        return True

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal (RUN-RESUMABLE-1)."""
        self._check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        items: list[Run] = []
        corrupt: list[str] = []
        with self._space.lock:
            for run_id, entry in self._entries_of(tenant_id):
                try:
                    items.append(read_record(entry.record, run_id))
                except CorruptRecord:
                    corrupt.append(run_id)
        return Listing(items, corrupt, complete=True)

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        wanted = self._space.entries.items()
        return [(run_id, entry) for run_id, entry in wanted if entry.tenant_id == tenant_id and not entry.terminal]

    def _put(self, run: Run) -> None:
        entry = Entry(run.tenant_id, run.version, run.status.terminal, write_record(run))
        self._space.entries[run.run_id] = entry

    def _read(self, run_id: str) -> Run:
        return read_record(self._space.entries[run_id].record, run_id)

    def _check_open(self) -> None:
        if not self._open:
            raise closed_handle()


class AsyncMemoryRunStore:
    """The same store for callers on an event loop; no operation gives up the loop, so each is atomic.

    Args:
        space: the runs of the namespace.
    """

    def __init__(self, space: MemorySpace) -> None:
        self._store = MemoryRunStore(space)

    async def close(self) -> None:
        """Close the handle."""
        self._store.close()

    async def create(self, run: Run) -> Run:
        """Store a new run."""
        return self._store.create(run)

    async def find(self, run_id: str) -> Run | None:
        """Give the run, or None."""
        return self._store.find(run_id)

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one."""
        return self._store.compare_and_set(expected, updated)

    async def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal."""
        return self._store.find_resumable(tenant_id)


_spaces: dict[str, MemorySpace] = {}
_spaces_lock = threading.Lock()


def space_of(namespace: str) -> MemorySpace:
    """Give the space of a namespace in this process, made at first use."""
    with _spaces_lock:
        return _spaces.setdefault(namespace, MemorySpace())


def forget(namespace: str) -> None:
    """Remove the space of a namespace."""
    with _spaces_lock:
        _spaces.pop(namespace, None)
