"""Faults of handles after a refusal."""

from __future__ import annotations

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, CorruptRecord, InvalidRecord, Listing, Run, StoreUnavailable, check_identifier
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, Entry, MemoryRunStore, MemorySpace


class _Poisoned(MemoryRunStore):
    """Refuses everything once its session was poisoned."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._poisoned = False

    def _check_open(self) -> None:
        super()._check_open()
        if self._poisoned:
            deviates()
            raise StoreUnavailable("the transaction was aborted; commands are ignored until it ends")


@faulty_memory("RUN-USABLE-1", source="L4 juanluispaz/ts-sql-query#136")
class TakenIdsPoisonTheSession(_Poisoned):
    """After AlreadyExists every further call on the handle fails."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            self._poisoned = True
            raise


@faulty_memory("RUN-USABLE-1", source="L4 twin: a conflict")
class RefusedUpdatesPoisonTheSession(_Poisoned):
    """After an update that gave False every further call on the handle fails."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        self._poisoned = not answer
        return answer


@faulty_memory("RUN-USABLE-1", source="L4 twin: only writes fail, and only after a wrong value")
class InvalidRunsLeaveTheHandleReadOnly(MemoryRunStore):
    """After InvalidRecord the handle answers reads, and gives False to every update."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._read_only = False

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if self._read_only:
            deviates()
            return False
        try:
            return super().compare_and_set(expected, updated)
        except InvalidRecord:
            self._read_only = True
            raise


@faulty_memory("RUN-USABLE-1", source="L4 twin: the pool runs dry")
class EachRefusalKeepsOneConnection(MemoryRunStore):
    """Each refused create keeps a connection, until none is left."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._connections = 5

    def create(self, run: Run) -> Run:
        if self._connections == 0:
            deviates()
            raise StoreUnavailable("no connection came free within the wait; try again")
        try:
            return super().create(run)
        except Exception:
            self._connections -= 1
            raise


@faulty_memory("RUN-USABLE-1", source="L4 twin: a record that cannot be read")
class DamagedRecordsPoisonTheSession(_Poisoned):
    """After CorruptRecord every further call on the handle fails."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except CorruptRecord:
            self._poisoned = True
            raise


@faulty_memory("RUN-USABLE-1", source="L4 twin: listings only")
class RefusalsEmptyTheListings(MemoryRunStore):
    """After AlreadyExists the handle lists nothing any more."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._lists = True

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            self._lists = False
            raise

    def find_resumable(self, tenant_id: str) -> Listing:
        if not self._lists:
            deviates()
            return Listing()
        return super().find_resumable(tenant_id)


class _Snapshot(MemoryRunStore):
    """Reads from a snapshot that was taken when the handle first read."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._snapshot: dict[str, Entry] | None = None

    def find(self, run_id: str) -> Run | None:
        check_identifier(run_id, "run_id", CLAIMS)
        if self._snapshot is None:
            self._snapshot = dict(self._space.entries)
        live, self._space.entries = self._space.entries, self._snapshot
        try:
            found = super().find(run_id)
        finally:
            self._space.entries = live
        if self._snapshot.get(run_id) != live.get(run_id):
            deviates()
        return found


@faulty_memory("RUN-USABLE-2", source="L1 openedx/openedx-platform#12714")
class RefusedCreatesReadOldSnapshots(_Snapshot):
    """The snapshot of a handle is renewed by its own writes only, so that the run which took the id is not found."""

    def create(self, run: Run) -> Run:
        created = super().create(run)
        self._snapshot = None
        return created

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._snapshot = None
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-USABLE-2", source="L1 twin: a refused update")
class RefusedUpdatesReadOldSnapshots(_Snapshot):
    """A handle whose update was refused goes on to find the version that it knew."""

    def create(self, run: Run) -> Run:
        self._snapshot = None
        return super().create(run)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        if answer:
            self._snapshot = None
        return answer
