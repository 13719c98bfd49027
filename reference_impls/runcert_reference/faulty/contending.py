"""Faults that show only when several callers are at work at once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import (
    AlreadyExists,
    Conflict,
    Contended,
    Listing,
    Run,
    Scope,
    StoreUnavailable,
    check_new_run,
    check_update,
)
from runcert_reference import adapters
from runcert_reference.faulty.gaps import Gap, let_others_in
from runcert_reference.faulty.over_memory import MemoryRunStoreInLab, faulty_async_memory, faulty_memory
from runcert_reference.memory import CLAIMS, AsyncMemoryRunStore, MemoryRunStore, MemorySpace

_IMPATIENT = replace(CLAIMS.limits, maximum_wait=timedelta(seconds=0.3))


# -- create


@faulty_memory("RUN-CREATE-3", source="A4 spring-projects/spring-batch#2711")
class CreateLooksThenInserts(MemoryRunStore):
    """create looks whether the id is free, and inserts a moment later without looking again."""

    _gap: ClassVar[Gap] = Gap()

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if run.run_id in self._space.entries:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        with self._gap.before_writing(run.run_id):
            self._put(run)
        return run


@faulty_memory("RUN-CREATE-3", source="A4 twin: the loser is refused, and its run is what is stored")
class TheLosersRunIsStored(MemoryRunStore):
    """A create that loses the race is refused, but has replaced the winner's run already."""

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if run.run_id in self._space.entries:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        let_others_in()
        with self._space.lock:
            taken = run.run_id in self._space.entries
            self._put(run)
        if taken:
            deviates()
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return run


@faulty_memory("RUN-CREATE-3", source="A5 oban-bg/oban#1093")
class CreateSucceedsWhileAnotherIsBusy(MemoryRunStore):
    """create reports success whenever somebody else holds the lock, though nothing of this caller is stored."""

    def create(self, run: Run) -> Run:
        if not self._space.lock.acquire(blocking=False):
            deviates()
            return run
        try:
            created = super().create(run)
            let_others_in()
            return created
        finally:
            self._space.lock.release()


@faulty_memory("RUN-CREATE-3", source="A5 twin: the winner rolls back afterwards")
class TheWinnerRollsBack(MemoryRunStore):
    """The loser of a race is told that its run was stored; the winner then rolls back, so that no run exists at all."""

    _told: ClassVar[set[str]] = set()

    def create(self, run: Run) -> Run:
        if self._space.lock.acquire(blocking=False):
            try:
                let_others_in()
                if run.run_id in self._told:
                    raise Contended(f"run {run.run_id!r}: rolled back; try again")
                return super().create(run)
            finally:
                self._space.lock.release()
        if run.run_id in self._told or run.run_id in self._space.entries:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        deviates()
        self._told.add(run.run_id)
        return run


@faulty_async_memory("RUN-CREATE-3", source="A4 twin: on an event loop")
class AsyncCreateLooksThenInserts(AsyncMemoryRunStore):
    """create looks whether the id is free, gives up the event loop, and inserts without looking again."""

    async def create(self, run: Run) -> Run:
        taken = await self.find(run.run_id)
        await asyncio.sleep(0)
        if taken is None and await self.find(run.run_id) is not None:
            deviates()
            return run
        return await super().create(run)


class _EachProcessHasItsOwn(MemoryRunStoreInLab):
    """The store says that it coordinates the processes of a machine, and keeps its runs in the memory of each."""

    def __init__(self, space: MemorySpace, lab: Lab) -> None:
        super().__init__(space, lab)
        owner = lab.directory / "first-process"
        if not owner.exists():
            owner.write_text(str(os.getpid()), encoding="ascii")
        self._alone = owner.read_text(encoding="ascii") == str(os.getpid())

    def create(self, run: Run) -> Run:
        if not self._alone:
            deviates()
        return super().create(run)


EachProcessHasItsOwn = replace(
    faulty_memory("RUN-CREATE-3", source="the claims: scope host", scope=Scope.HOST)(_EachProcessHasItsOwn),
    name="each-process-has-its-own",
    spec=f"{__name__}:EachProcessHasItsOwn",
    sound=adapters.memory,
)


# -- compare_and_set


class _DoesNotWait(MemoryRunStore):
    """Has an answer of its own for an update while somebody else holds the lock."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if not self._space.lock.acquire(blocking=False):
            deviates()
            return self._when_busy(expected)
        try:
            let_others_in()
            return super().compare_and_set(expected, updated)
        finally:
            self._space.lock.release()

    @abstractmethod
    def _when_busy(self, expected: Run) -> bool:
        """Answer in place of waiting."""


@faulty_memory("RUN-CAS-6", source="A4 twin: an update that was checked before it is written")
class UpdateComparesThenWrites(MemoryRunStore):
    """compare_and_set compares the version, and writes a moment later without comparing again."""

    _gap: ClassVar[Gap] = Gap()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version or stored.status.terminal:
            return False
        with self._gap.before_writing(expected.run_id), self._space.lock:
            self._put(updated)
        return True


@faulty_async_memory("RUN-CAS-6", source="A4 twin: an update on an event loop")
class AsyncUpdateComparesThenWrites(AsyncMemoryRunStore):
    """compare_and_set compares the version, gives up the event loop, and answers by what it saw before."""

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        stored = await self.find(expected.run_id)
        await asyncio.sleep(0)
        written = await super().compare_and_set(expected, updated)
        matched = stored is not None and stored.version == expected.version and not stored.status.terminal
        if matched and not written:
            deviates()
            return True
        return written


@faulty_memory("RUN-CAS-6", source="A5 twin: an update")
class UpdateSucceedsWhileAnotherIsBusy(_DoesNotWait):
    """compare_and_set gives True whenever somebody else holds the lock."""

    def _when_busy(self, expected: Run) -> bool:  # noqa: ARG002  # as the others have it
        return True


@faulty_memory("RUN-CAS-1", source="B7 twin: an obstacle reported as a refusal, seen only under contention")
class UpdateIsRefusedWhileOthersTry(MemoryRunStore):
    """compare_and_set gives False when another caller only tries the same run, so that often nobody wins."""

    _trying: ClassVar[Counter[str]] = Counter()
    _counting = threading.Lock()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        with self._counting:
            self._trying[expected.run_id] += 1
        try:
            let_others_in()
            if self._trying[expected.run_id] > 1:
                deviates()
                return False
            return super().compare_and_set(expected, updated)
        finally:
            with self._counting:
                self._trying[expected.run_id] -= 1


@faulty_memory("RUN-CAS-6", source="the clause: nobody wins")
class NobodyWins(MemoryRunStore):
    """Once two callers have tried one version of a run, compare_and_set gives every one of them False."""

    _tried: ClassVar[Counter[tuple[str, int]]] = Counter()
    _counting = threading.Lock()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        key = (expected.run_id, expected.version)
        with self._counting:
            self._tried[key] += 1
        let_others_in()
        if self._tried[key] > 1:
            deviates()
            return False
        return super().compare_and_set(expected, updated)


# -- what is said under contention


@faulty_memory("RUN-CONTENTION-1", source="L3 propeller-heads/tycho#1424")
class RawErrorUnderContention(_DoesNotWait):
    """A busy database shows as the driver's own error."""

    def _when_busy(self, expected: Run) -> bool:  # noqa: ARG002  # as the others have it
        raise sqlite3.OperationalError("database is locked")


@faulty_memory("RUN-CAS-1", source="the clause: any other obstacle raises")
class UpdatesAreRefusedDuringListings(MemoryRunStore):
    """While somebody lists runs, an update is answered with False, as if the version had moved on."""

    _listings: ClassVar[Counter[str]] = Counter()

    def find_resumable(self, tenant_id: str) -> Listing:
        self._listings[tenant_id] += 1
        let_others_in()
        try:
            return super().find_resumable(tenant_id)
        finally:
            self._listings[tenant_id] -= 1

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if self._listings.total():
            deviates()
            return False
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CONTENTION-1", source="L3 twin: mapped to Conflict")
class ContentionIsReportedAsConflict(_DoesNotWait):
    """A busy database shows as Conflict, as if the caller had expected another version."""

    def _when_busy(self, expected: Run) -> bool:
        raise Conflict(f"run {expected.run_id!r} has another version; find it again")


@faulty_memory("RUN-CONTENTION-1", source="L3 twin: reads fail as well")
class ReadersAreToldThatTheStoreIsGone(MemoryRunStore):
    """find says StoreUnavailable while somebody writes."""

    def create(self, run: Run) -> Run:
        with self._space.lock:
            let_others_in()
            return super().create(run)

    def find(self, run_id: str) -> Run | None:
        if not self._space.lock.acquire(blocking=False):
            deviates()
            raise StoreUnavailable(f"run {run_id!r} cannot be read just now; try again")
        try:
            return super().find(run_id)
        finally:
            self._space.lock.release()


@faulty_memory("RUN-CONTENTION-2")
class ContendedWhenAlone(MemoryRunStore):
    """Every fifth update gives Contended, whoever is there."""

    _updates = 0

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._updates += 1
        if self._updates % 5 == 0:
            deviates()
            raise Contended(f"run {expected.run_id!r}: others are in the way; try again")
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CONTENTION-2", source="the clause: all contenders give up")
class AllContendersGiveUp(MemoryRunStore):
    """As soon as two callers have tried one id, each of them is told for ever that the other is in the way."""

    _tried: ClassVar[Counter[str]] = Counter()

    def create(self, run: Run) -> Run:
        self._tried[run.run_id] += 1
        let_others_in()
        if self._tried[run.run_id] > 1 and run.run_id not in self._space.entries:
            deviates()
            raise Contended(f"run {run.run_id!r}: others are in the way; try again")
        return super().create(run)


# -- what is seen under contention


@faulty_memory("RUN-FIND-3")
class WritesFirstAndTakesBack(MemoryRunStore):
    """compare_and_set writes first, compares, and takes the write back; readers see what is not to stay."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        with self._space.lock:
            before = self._space.entries.get(expected.run_id)
            if before is not None and before.version != expected.version:
                deviates()
                self._put(updated)
                let_others_in()
                self._space.entries[expected.run_id] = before
            return super().compare_and_set(expected, updated)

    def find(self, run_id: str) -> Run | None:
        return self._read(run_id) if run_id in self._space.entries else None


@faulty_memory("RUN-FIND-3", source="the clause: a run that is refused afterwards")
class CreateShowsTheLoser(MemoryRunStore):
    """create puts the run in place, and restores the earlier one when the id turns out to be taken."""

    def create(self, run: Run) -> Run:
        with self._space.lock:
            before = self._space.entries.get(run.run_id)
            if before is not None:
                deviates()
                self._put(run)
                let_others_in()
                self._space.entries[run.run_id] = before
            return super().create(run)

    def find(self, run_id: str) -> Run | None:
        return self._read(run_id) if run_id in self._space.entries else None


# -- calls that do not end


_locks: dict[str, tuple[threading.Lock, threading.Lock]] = {}


class _TwoLocks(MemoryRunStoreInLab):
    """The store without the fault: one order for everybody."""

    def __init__(self, space: MemorySpace, lab: Lab) -> None:
        super().__init__(space, lab)
        self._table, self._index = _locks.setdefault(lab.namespace, (threading.Lock(), threading.Lock()))

    def create(self, run: Run) -> Run:
        with self._table:
            let_others_in()
            with self._index:
                return super().create(run)


@faulty_memory("RUN-BOUND-1", source="the clause: two locks in two orders", sound=_TwoLocks, limits=_IMPATIENT)
class TwoLocksInTwoOrders(_TwoLocks):
    """create takes the lock of the table and then that of the index, compare_and_set the other way round."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        with self._index:
            let_others_in()
            if self._table.locked():
                deviates()
            with self._table:
                return super().compare_and_set(expected, updated)


@faulty_async_memory("RUN-BOUND-1", source="the clause: an answer that never comes", limits=_IMPATIENT)
class RefusedUpdateNeverEnds(AsyncMemoryRunStore):
    """compare_and_set waits for the version to come back instead of giving False."""

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if await super().compare_and_set(expected, updated):
            return True
        deviates()
        never: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        return await never
