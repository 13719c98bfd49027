"""Faults of find_resumable: runs that are missing from it, and runs that do not belong in it."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from runcert.faulty import deviates
from runcert_contract import Capability, Listing, Run, RunStatus, Stance, Unsupported, check_identifier
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, Entry, MemoryRunStore


class _Choosing(MemoryRunStore):
    """Lists the entries that a rule of its own chooses."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        right = super()._entries_of(tenant_id)
        found = self._where(lambda entry: self._belongs(entry, tenant_id))
        if {run_id for run_id, _ in found} != {run_id for run_id, _ in right}:
            deviates()
        return found

    def _where(self, belongs: Callable[[Entry], bool]) -> list[tuple[str, Entry]]:
        return [(run_id, entry) for run_id, entry in self._space.entries.items() if belongs(entry)]

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return entry.tenant_id == tenant_id and not entry.terminal


@faulty_memory("RUN-RESUMABLE-1")
class WaitingRunsAreNotListed(_Choosing):
    """find_resumable leaves out runs that wait for an approval."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return super()._belongs(entry, tenant_id) and f'"{RunStatus.WAITING_APPROVAL.value}"' not in entry.record


@faulty_memory("RUN-RESUMABLE-1", source="the clause: a list of terminal states that forgets one")
class ExpiredRunsAreListed(_Choosing):
    """find_resumable gives expired runs, too."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return entry.tenant_id == tenant_id and (not entry.terminal or f'"{RunStatus.EXPIRED.value}"' in entry.record)


@faulty_memory("RUN-RESUMABLE-1", source="H1 PrefectHQ/prefect#21794")
class EndedRunsStayInTheIndex(MemoryRunStore):
    """compare_and_set loses the index update when a running run fails, so that the run stays listed for ever."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and updated.status is RunStatus.RUNTIME_FAILED:
            deviates()
            entry = self._space.entries[updated.run_id]
            self._space.entries[updated.run_id] = replace(entry, terminal=False)
        return accepted


@faulty_memory("RUN-RESUMABLE-1", source="the clause: the index keeps a copy")
class ListedRunsAreOfYesterday(MemoryRunStore):
    """find_resumable gives a run as it was created, because the index is written by create alone."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if any(run.version for run in listing.items):
            deviates()
        return Listing([replace(run, version=0, stage="") for run in listing.items], listing.corrupt, listing.complete)


@faulty_memory("RUN-RESUMABLE-1", source="the clause: only runs that were moved once are indexed")
class NewRunsAreNotListed(MemoryRunStore):
    """find_resumable gives a run only after its first update."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        items = [run for run in listing.items if run.version > 0]
        if len(items) < len(listing.items):
            deviates()
        return Listing(items, listing.corrupt, listing.complete)


@faulty_memory("RUN-RESUMABLE-1", source="D4 langchain-ai/langgraph#8300: tenants as prefixes")
class TenantsArePrefixes(_Choosing):
    """find_resumable gives the runs of every tenant whose name begins with the given one."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return bool(tenant_id) and entry.tenant_id.startswith(tenant_id) and not entry.terminal


@faulty_memory("RUN-RESUMABLE-1", source="D1 authzed/spicedb#3161: tenants without regard to case")
class TenantsAreComparedWithoutCase(_Choosing):
    """find_resumable gives the runs of tenants that differ in case."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return entry.tenant_id.casefold() == tenant_id.casefold() and not entry.terminal


@faulty_memory("RUN-RESUMABLE-1", source="D4 twin: tenants as patterns")
class TenantsArePatterns(_Choosing):
    """find_resumable reads the tenant as a shell pattern."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return fnmatch.fnmatchcase(entry.tenant_id, tenant_id) and not entry.terminal


@faulty_memory("RUN-RESUMABLE-1", source="the clause: an empty tenant means all")
class EmptyTenantMeansAll(_Choosing):
    """find_resumable of the empty tenant gives the runs of all tenants."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return tenant_id in ("", entry.tenant_id) and not entry.terminal


@faulty_memory("RUN-RESUMABLE-1", source="the clause: an empty tenant means none")
class EmptyTenantMeansNone(_Choosing):
    """find_resumable of the empty tenant gives nothing, although runs were created for it."""

    def _belongs(self, entry: Entry, tenant_id: str) -> bool:
        return bool(tenant_id) and super()._belongs(entry, tenant_id)


@faulty_memory("RUN-RESUMABLE-1", source="the clause: the tenant of the caller that lost")
class RefusedCreatesAreListed(MemoryRunStore):
    """create indexes a run under its tenant before it finds that the id is taken."""

    _lost: ClassVar[list[tuple[str, str]]] = []

    def create(self, run: Run) -> Run:
        entry = self._space.entries.get(run.run_id)
        if entry is not None and entry.tenant_id != run.tenant_id:
            self._lost.append((run.run_id, run.tenant_id))
        return super().create(run)

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        strangers = [
            self._read(run_id) for run_id, tenant in self._lost if tenant == tenant_id and run_id in self._space.entries
        ]
        if strangers:
            deviates()
        return Listing([*listing.items, *strangers], listing.corrupt, listing.complete)


class _WithoutListing(MemoryRunStore):
    """The reference store with a find_resumable that says that there is none."""

    def find_resumable(self, tenant_id: str) -> Listing:
        self._check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        raise Unsupported("this store cannot list runs; keep an index of your own")


@faulty_memory(
    "RUN-RESUMABLE-1",
    source="a listing declared absent that answers",
    sound=_WithoutListing,
    capabilities={Capability.ENUMERATES: Stance.ABSENT, Capability.GUARDS_TERMINAL: Stance.CLAIMED},
)
class AbsentListingAnswersEmpty(MemoryRunStore):
    """find_resumable of a store that declares it absent answers an empty, complete listing."""

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        deviates()
        return Listing()
