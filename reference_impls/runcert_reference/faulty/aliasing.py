"""Faults of state that store and caller share."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, InvalidRecord, Listing, Run, canonical
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore, MemorySpace


class _KeepsObjects(MemoryRunStore):
    """Remembers runs as objects beside what is stored, as long as the stored version is theirs."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._objects: dict[str, Run] = {}

    def _remembered(self, run_id: str) -> Run | None:
        run = self._objects.get(run_id)
        return run if run is not None and run.version == self._space.entries[run_id].version else None

    def _live(self, run_id: str, found: Run | None) -> Run | None:
        """Give the store's own object in place of what was found; the first time, what was found becomes it."""
        if found is None:
            return None
        run = self._remembered(run_id)
        if run is None:
            self._objects[run_id] = found
            return found
        deviates()
        return run


class _KeepsWhatIsPassed(_KeepsObjects):
    """Keeps what it is given, or a part of it, and copies what it hands out."""

    def _kept(self, run: Run) -> Run:
        return run

    def _put(self, run: Run) -> None:
        super()._put(run)
        self._objects[run.run_id] = self._kept(run)

    def _read(self, run_id: str) -> Run:
        run = self._remembered(run_id)
        if run is None:
            return super()._read(run_id)
        deviates()
        return deepcopy(run)


@faulty_memory("RUN-ALIAS-1", source="C1 langchain-ai/langgraph#8835: what is passed in")
class ThePassedRunIsKept(_KeepsWhatIsPassed):
    """The store keeps the very run that it was given, and copies only what it hands out."""


@faulty_memory("RUN-ALIAS-1", source="C3 twin: only the top of each object is copied on the way in")
class ThePassedRunIsCopiedAtTheTop(_KeepsWhatIsPassed):
    """The store copies the objects of the run that it is given, and not what is inside them."""

    def _kept(self, run: Run) -> Run:
        return _shallow(run)


@faulty_memory("RUN-ALIAS-2", source="C1 langchain-ai/langgraph#8835")
class FindHandsOutTheLiveRun(_KeepsObjects):
    """What find returns is the store's own object."""

    def find(self, run_id: str) -> Run | None:
        return self._live(run_id, super().find(run_id))


@faulty_memory("RUN-ALIAS-2", source="C1 twin: what create returns")
class CreateHandsOutTheLiveRun(_KeepsObjects):
    """What create returns is the store's own object; find copies it."""

    def create(self, run: Run) -> Run:
        self._objects[run.run_id] = super().create(run)
        return self._objects[run.run_id]

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        run = None if found is None else self._remembered(run_id)
        if run is None:
            return found
        deviates()
        return deepcopy(run)


class _FindsShallowCopies(_KeepsObjects):
    """Finds copies at the top, whose inner parts are the store's own."""

    def find(self, run_id: str) -> Run | None:
        live = self._live(run_id, super().find(run_id))
        return None if live is None else _shallow(live)


@faulty_memory("RUN-ALIAS-2", source="C3 walt-id/waltid-identity#2236: shallow copies")
class FindHandsOutShallowCopies(_FindsShallowCopies):
    """What find returns is a copy at the top, whose inner parts are the store's own."""


@faulty_memory("RUN-ALIAS-2", source="C1 twin: the listing itself")
class ListingsAreTheStoresOwn(MemoryRunStore):
    """A listing that nothing has changed since is handed out again, the same object."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._listings: dict[str, tuple[list[str], Listing]] = {}

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        state = [entry.record for _, entry in self._entries_of(tenant_id)]
        remembered = self._listings.get(tenant_id)
        if remembered is not None and remembered[0] == state:
            deviates()
            return remembered[1]
        self._listings[tenant_id] = state, listing
        return listing


@faulty_memory("RUN-ALIAS-3", source="C1 twin: one object for many readers")
class ReadersShareOneObject(_KeepsObjects):
    """Reads give the same object again while it still is what is stored, so that readers share it."""

    def _read(self, run_id: str) -> Run:
        fresh = super()._read(run_id)
        shared = self._objects.get(run_id)
        if shared is not None and canonical(shared) == canonical(fresh):
            deviates()
            return shared
        self._objects[run_id] = fresh
        return fresh


@faulty_memory("RUN-ALIAS-3", source="C3 twin: one inner object for many readers")
class ReadersShareInnerObjects(_KeepsObjects):
    """Each read gives a run of its own, whose context is interned and shared by all who read the same."""

    def _read(self, run_id: str) -> Run:
        fresh = super()._read(run_id)
        shared = self._objects.get(run_id)
        if shared is not None and canonical(shared.context) == canonical(fresh.context):
            deviates()
            return replace(fresh, context=shared.context)
        self._objects[run_id] = fresh
        return fresh


@faulty_memory("RUN-ALIAS-4", source="C3 walt-id/waltid-identity#2236")
class RefusedUpdatesLeaveNestedEdits(_FindsShallowCopies):
    """find hands out shallow copies, so that edits of nested parts stay when the update with them is refused."""


@faulty_memory("RUN-ALIAS-4", source="C3 twin: parts are written before the check")
class PartsAreWrittenBeforeTheCheck(MemoryRunStore):
    """An update writes the context first and then finds that its version is stale."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        if not answer and expected.run_id in self._space.entries:
            deviates()
            self._put(replace(self._read(expected.run_id), context=updated.context))
        return answer


@faulty_memory("RUN-ALIAS-4", source="C3 twin: a refused create")
class RefusedCreatesLeaveTheirInput(MemoryRunStore):
    """create on an id in use is refused, and the input of the refused run is stored."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            self._put(replace(self._read(run.run_id), input=run.input))
            raise


@faulty_memory("RUN-ALIAS-4", source="C3 twin: an update that is wrong in itself")
class WrongUpdatesLeaveTheirInput(MemoryRunStore):
    """An update whose context has no JSON form is refused after its input was stored."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except InvalidRecord as error:
            if "context" in str(error):
                deviates()
                self._put(replace(self._read(expected.run_id), input=updated.input))
            raise


def _shallow(run: Run) -> Run:
    """Copy a run and its objects, and nothing inside them."""
    return replace(
        run,
        input=dict(run.input),
        context=dict(run.context),
        external_operation_metadata=dict(run.external_operation_metadata),
    )
