"""Faults of stores that do not keep their namespaces apart."""

from __future__ import annotations

from typing import ClassVar

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Listing, Run
from runcert_reference.adapters import forget_memory
from runcert_reference.faulty.over_memory import MemoryRunStoreInLab, faulty_memory
from runcert_reference.memory import MemoryRunStore, MemorySpace

_seen: dict[str, MemorySpace] = {}


class _Neighbours(MemoryRunStoreInLab):
    """Knows the other namespaces of this process, as every store does that shares one backend."""

    def __init__(self, space: MemorySpace, lab: Lab) -> None:
        super().__init__(space, lab)
        _seen[lab.namespace] = space

    def _others(self) -> list[tuple[str, MemorySpace]]:
        return [(name, space) for name, space in _seen.items() if space is not self._space]


@faulty_memory("RUN-NAMESPACE-1", source="D7 redis-developer/langgraph-redis#187")
class TheActiveIndexIsShared(_Neighbours):
    """record keys carry the prefix of the namespace, the keys of the active index do not."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        items = list(listing.items)
        for _, space in self._others():
            other = MemoryRunStore(space)
            items += other.find_resumable(tenant_id).items
            other.close()
        if len(items) > len(listing.items):
            deviates()
        return Listing(items, listing.corrupt, listing.complete)


@faulty_memory("RUN-NAMESPACE-1", source="D7 twin: the end of a run is noted without the prefix")
class EndedRunsAreShared(_Neighbours):
    """the mark that a run has ended carries no prefix, so that a run of that id ends in every namespace."""

    _ended: ClassVar[set[str]] = set()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and updated.status.terminal:
            self._ended.add(updated.run_id)
        return accepted

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        items = [run for run in listing.items if run.run_id not in self._ended]
        if len(items) < len(listing.items):
            deviates()
        return Listing(items, listing.corrupt, listing.complete)


@faulty_memory("RUN-NAMESPACE-1", source="the clause: records found by a prefix of the namespace")
class RecordsOfLongerNamesAreFound(_Neighbours):
    """find also sees the records of namespaces whose name begins with its own."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        for name, space in self._others():
            if found is None and name.startswith(self._lab.namespace) and run_id in space.entries:
                deviates()
                return MemoryRunStore(space).find(run_id)
        return found


@faulty_memory("RUN-NAMESPACE-1", source="the clause: one set of used ids")
class UsedIdsAreShared(_Neighbours):
    """create refuses an id that another namespace has used."""

    def create(self, run: Run) -> Run:
        if any(run.run_id in space.entries for _, space in self._others()):
            deviates()
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return super().create(run)


_scanned: dict[str, MemorySpace] = {}


def _forget_by_prefix(lab: Lab) -> None:
    """Empty every namespace whose name begins with this one's, as a scan for ``prefix*`` does, then remove this one."""
    for name, space in _scanned.items():
        if name.startswith(lab.namespace) and name != lab.namespace and space.entries:
            deviates()
            space.entries.clear()
    forget_memory(lab)


@faulty_memory("RUN-NAMESPACE-1", source="the clause: disposing by prefix", dispose=_forget_by_prefix)
class DisposingTakesLongerNamesAlong(MemoryRunStoreInLab):
    """removing a namespace removes every other whose name begins with its name."""

    def __init__(self, space: MemorySpace, lab: Lab) -> None:
        super().__init__(space, lab)
        _scanned[lab.namespace] = space
