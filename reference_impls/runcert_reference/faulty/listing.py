"""Faults of listings: pages, completeness, and what an unreadable record hides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from runcert.faulty import deviates
from runcert_contract import CorruptRecord, Listing, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, Entry, MemoryRunStore
from runcert_reference.records import read_record

_PAGE = CLAIMS.limits.page


@faulty_memory("RUN-LIST-1", source="J1 rustfs/rustfs#5595")
class OnlyTheFirstPageIsListed(MemoryRunStore):
    """find_resumable gives the first page and calls it complete."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if len(listing.items) > _PAGE:
            deviates()
        return Listing(listing.items[:_PAGE], listing.corrupt, complete=True)


@faulty_memory("RUN-LIST-1", source="J1 twin: two pages at most")
class OnlyTwoPagesAreListed(MemoryRunStore):
    """find_resumable follows the first cursor only."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if len(listing.items) > 2 * _PAGE:
            deviates()
        return Listing(listing.items[: 2 * _PAGE], listing.corrupt, complete=True)


@faulty_memory("RUN-LIST-1", source="J1 twin: the largest page of many backends")
class OnlyThousandAreListed(MemoryRunStore):
    """find_resumable gives the first thousand runs and says that these are all."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if len(listing.items) > 1_000:
            deviates()
        return Listing(listing.items[:1_000], listing.corrupt, complete=True)


@faulty_memory("RUN-LIST-1", source="J1 twin: pages that overlap")
class PagesOverlap(MemoryRunStore):
    """find_resumable begins each page with the last record of the one before."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        items: list[Run] = []
        for start in range(0, len(listing.items), _PAGE):
            if start:
                deviates()
            items += listing.items[max(0, start - 1) : start + _PAGE]
        return Listing(items, listing.corrupt, complete=True)


@faulty_memory("RUN-LIST-1", source="J1 twin: the last page is lost when it is not full")
class TheLastPageIsLost(MemoryRunStore):
    """find_resumable gives full pages only, once there is more than one."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        full = len(listing.items) // _PAGE * _PAGE or len(listing.items)
        if full < len(listing.items):
            deviates()
        return Listing(listing.items[:full], listing.corrupt, complete=True)


@faulty_memory("RUN-LIST-1", source="J1 twin: filtered after it was cut into pages")
class PagesAreFilteredAfterwards(MemoryRunStore):
    """find_resumable stops at the first page of all records in which the tenant has none."""

    def _entries_of(self, tenant_id: str) -> list[tuple[str, Entry]]:
        found: list[tuple[str, Entry]] = []
        records = list(self._space.entries.items())
        wanted = super()._entries_of(tenant_id)
        for start in range(0, len(records), _PAGE):
            page = {run_id for run_id, _ in records[start : start + _PAGE]}
            of_this_page = [(run_id, entry) for run_id, entry in wanted if run_id in page]
            if found and not of_this_page:
                break
            found += of_this_page
        if len(found) < len(wanted):
            deviates()
        return found


@faulty_memory("RUN-LIST-1", source="the clause: an empty listing is no listing")
class EmptyListingIsNone(MemoryRunStore):
    """find_resumable returns None when there is nothing to list."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.items or listing.corrupt:
            return listing
        deviates()
        nothing: Any = None
        return nothing  # type: ignore[no-any-return]  # the fault is exactly this


@faulty_memory("RUN-LIST-3", source="J1 rustfs/rustfs#5595: complete is a constant")
class CutListingsAreCalledComplete(MemoryRunStore):
    """find_resumable leaves out what comes after a page and still says that it is complete."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if len(listing.items) > _PAGE:
            deviates()
        return replace(listing, items=listing.items[:_PAGE])


@faulty_memory("RUN-LIST-3", source="the clause: a full page means that there is more")
class FullPagesAreCalledIncomplete(MemoryRunStore):
    """find_resumable says incomplete whenever the last page happens to be full."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.items and len(listing.items) % _PAGE == 0:
            deviates()
            return replace(listing, complete=False)
        return listing


@faulty_memory("RUN-LIST-3", source="the clause: a number in place of a boolean")
class CompleteIsTheNumberOfPages(MemoryRunStore):
    """find_resumable puts the number of pages into `complete`."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        deviates()
        pages: Any = -(-len(listing.items) // _PAGE)
        return replace(listing, complete=pages)


@faulty_memory("RUN-LIST-3", source="the clause: damage that was skipped in silence")
class SkippedRecordsAreNotAdmitted(MemoryRunStore):
    """find_resumable leaves out an unreadable record, names it nowhere, and says that it is complete."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.corrupt:
            deviates()
        return replace(listing, corrupt=[])


@faulty_memory("RUN-LIST-3", source="the clause: named, and still called incomplete")
class DamageIsCalledIncomplete(MemoryRunStore):
    """find_resumable names an unreadable record and says that it is not complete."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.corrupt:
            deviates()
        return replace(listing, complete=not listing.corrupt)


@faulty_memory("RUN-LIST-4")
class DamageHidesTheListing(MemoryRunStore):
    """find_resumable raises CorruptRecord as soon as it meets an unreadable record."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        for run_id in listing.corrupt:
            deviates()
            raise CorruptRecord(f"run {run_id!r}: the stored record cannot be read", record=run_id)
        return listing


@faulty_memory("RUN-LIST-4", source="the clause: the reader stops at the damage")
class DamageHidesWhatComesAfterIt(MemoryRunStore):
    """find_resumable names an unreadable record and leaves out every record after it."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        ids = [run_id for run_id, _ in self._entries_of(tenant_id)]
        if not listing.corrupt:
            return listing
        before = set(ids[: ids.index(listing.corrupt[0])])
        items = [run for run in listing.items if run.run_id in before]
        if len(items) < len(listing.items):
            deviates()
        return replace(listing, items=items)


@faulty_memory("RUN-LIST-4", source="I6 langchain-ai/langgraphjs#2336: defaults in place of what is missing")
class DamageIsFilledWithDefaults(MemoryRunStore):
    """find_resumable lists an unreadable record as a run with default values."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        filled = [Run(run_id, tenant_id, "", "", "", epoch, epoch) for run_id in listing.corrupt]
        if filled:
            deviates()
        return Listing([*listing.items, *filled], [], complete=True)


@faulty_memory("RUN-LIST-4", source="N2 HKUDS/Vibe-Trading#645: empty is taken for absent")
class EmptyRecordsAreAbsent(MemoryRunStore):
    """find_resumable takes an empty record for one that is not there, and names only other damage."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        named = [run_id for run_id in listing.corrupt if self._space.entries[run_id].record]
        if len(named) < len(listing.corrupt):
            deviates()
        return replace(listing, corrupt=named)


@faulty_memory("RUN-LIST-4", source="the clause: the position in place of the id")
class DamageIsNamedByPosition(MemoryRunStore):
    """find_resumable names unreadable records by their number in the listing."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.corrupt:
            deviates()
        return replace(listing, corrupt=[str(number) for number, _ in enumerate(listing.corrupt)])


@faulty_memory("RUN-LIST-4", source="the clause: other tenants suffer")
class DamageHidesOtherTenants(MemoryRunStore):
    """find_resumable reads every tenant's records before it chooses, and gives up at the first unreadable one."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        try:
            for run_id, entry in self._space.entries.items():
                read_record(entry.record, run_id)
        except CorruptRecord as error:
            if not listing.corrupt:
                deviates()
                return Listing([], [error.record or ""], complete=True)
        return listing
