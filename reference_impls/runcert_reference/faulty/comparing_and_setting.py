"""Faults of compare_and_set."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from runcert.faulty import deviates
from runcert_contract import Run, RunStatus, canonical, check_update
from runcert_reference.faulty.over_memory import MemoryRunStoreInLab, faulty_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore, MemorySpace


class _Updating(MemoryRunStore):
    """Parts that the faults below are made of."""

    def _stored(self, run_id: str) -> Run | None:
        """Give what is stored, for faults that decide by it."""
        with self._space.lock:
            return self._read(run_id) if run_id in self._space.entries else None

    def _force(self, updated: Run) -> bool:
        """Write without any condition, which is always the wrong turn."""
        deviates()
        with self._space.lock:
            self._put(updated)
        return True


class _AcceptsMore(_Updating):
    """Accepts updates whose expected version is not the stored one."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(expected.run_id)
        if stored is not None and not stored.status.terminal and self._is_near_enough(stored.version, expected.version):
            return self._force(updated)
        return super().compare_and_set(expected, updated)

    @abstractmethod
    def _is_near_enough(self, stored: int, expected: int) -> bool:
        """Say whether an update is accepted although these versions differ; False where they do not."""


class _ComparesMore(_Updating):
    """Refuses updates by something beside the version."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(expected.run_id)
        if stored is not None and self._is_in_the_way(stored, expected, updated):
            deviates()
            return False
        return super().compare_and_set(expected, updated)

    @abstractmethod
    def _is_in_the_way(self, stored: Run, expected: Run, updated: Run) -> bool:
        """Say whether what is stored keeps an update from being written."""


class _NotesWrites(MemoryRunStoreInLab):
    """Notes when each run was written, by the clock of the lab."""

    _written: ClassVar[dict[tuple[str, str], datetime]] = {}

    def create(self, run: Run) -> Run:
        created = super().create(run)
        self._written[self._lab.namespace, run.run_id] = self._lab.clock.now()
        return created


# -- RUN-CAS-1: the answer


@faulty_memory("RUN-CAS-1", source="O4 n8n-io/n8n#11638")
class UpdateIgnoresTheVersion(_AcceptsMore):
    """compare_and_set replaces the run whatever version is expected."""

    def _is_near_enough(self, stored: int, expected: int) -> bool:
        return stored != expected


@faulty_memory("RUN-CAS-1", source="the clause: only older expectations are refused")
class UpdateAcceptsFutureVersions(_AcceptsMore):
    """compare_and_set refuses an older version only, so that one from the future is accepted."""

    def _is_near_enough(self, stored: int, expected: int) -> bool:
        return stored < expected


@faulty_memory("RUN-CAS-1", source="B3 nats-io/nats-server#5841")
class OneReplicaTakesTheFastPath(_AcceptsMore):
    """compare_and_set asks the replicas for their vote on the version; with one replica there is nobody to ask, and it skips the comparison."""

    _replicas: ClassVar[int] = 1

    def _is_near_enough(self, stored: int, expected: int) -> bool:
        return self._replicas == 1 and stored > expected


@faulty_memory("RUN-CAS-1", source="the clause: the version is not compared in one status")
class WaitingRunsTakeStaleUpdates(_Updating):
    """compare_and_set takes an update that is one version behind while the run waits for somebody outside."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(expected.run_id)
        waits = stored is not None and stored.status is RunStatus.WAITING_EXTERNAL
        if stored is not None and waits and stored.version == expected.version + 1:
            return self._force(replace(updated, version=stored.version + 1))
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-1", source="the clause: whoever has the attempt token is taken for the last writer")
class OwnRetriesAreAccepted(_Updating):
    """compare_and_set takes a stale update that ends the run, if its owner and attempt token are the stored ones: a repeated write, it believes."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(expected.run_id)
        mine = stored is not None and None not in (stored.owner, stored.attempt_token)
        if stored is not None and mine and not stored.status.terminal and stored.version > expected.version:
            same = (stored.owner, stored.attempt_token) == (updated.owner, updated.attempt_token)
            if same and updated.status.terminal:
                return self._force(replace(updated, version=stored.version + 1))
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-1", source="the clause: versions that wrap around")
class VersionIsComparedInSixteenBits(_AcceptsMore):
    """compare_and_set compares the lower sixteen bits of the version only."""

    def _is_near_enough(self, stored: int, expected: int) -> bool:
        return stored != expected and (stored - expected) % 2**16 == 0


@faulty_memory("RUN-CAS-1", source="the clause: a row count in place of a boolean")
class UpdateReturnsTheRowCount(MemoryRunStore):
    """compare_and_set returns the number of rows that it changed, 1 or 0."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        deviates()
        count: Any = int(super().compare_and_set(expected, updated))
        return count  # type: ignore[no-any-return]  # the fault is exactly this


@faulty_memory("RUN-CAS-1", source="the clause: success that was not written")
class UpdateReportsSuccessWithoutWriting(MemoryRunStore):
    """compare_and_set answers True to a stale update and writes nothing, as if somebody else's write were its own."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        if expected.run_id in self._space.entries and not self._space.entries[expected.run_id].terminal:
            deviates()
            return True
        return False


@faulty_memory("RUN-CAS-1", source="B7 valence-works/groundwork#289: a conflict that was written")
class UpdateIsWrittenAndRefused(MemoryRunStore):
    """compare_and_set writes the first update of a run and answers False."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and expected.version == 0:
            deviates()
            return False
        return accepted


@faulty_memory("RUN-CAS-1", source="the clause: the version is the store's own")
class VersionAdvancesByTwo(_Updating):
    """compare_and_set stores the run with a version one higher than it was given."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and not updated.status.terminal:
            self._force(replace(updated, version=updated.version + 1))
        return accepted


# -- RUN-CAS-2: what a refusal leaves behind


@faulty_memory("RUN-CAS-2", source="the clause: nested parts are written before the check")
class RefusedUpdateLeavesItsInput(_Updating):
    """compare_and_set writes input and context first and compares the version afterwards."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        stored = self._stored(expected.run_id)
        if not accepted and stored is not None:
            self._force(replace(stored, input=updated.input, context=updated.context))
        return accepted


@faulty_memory("RUN-CAS-2", source="the clause: side columns are written unconditionally")
class RefusedUpdateTouchesTheOwner(_Updating):
    """compare_and_set notes the owner and the attempt of an update that it then refuses."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        stored = self._stored(expected.run_id)
        if not accepted and stored is not None and updated.owner != stored.owner:
            self._force(replace(stored, owner=updated.owner, attempt_token=updated.attempt_token))
        return accepted


@faulty_memory("RUN-CAS-2", source="C3 walt-id/waltid-identity#2236")
class FoundRunsShareTheirNestedParts(MemoryRunStore):
    """find gives a shallow copy, so that changing it in place changes the stored run although the update is refused."""

    _live: ClassVar[dict[tuple[int, str], Run]] = {}

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        if found is None:
            return None
        live = self._live.get((id(self._space), run_id))
        if live is None or live.version != found.version:
            live = self._live[id(self._space), run_id] = found
        if canonical(live) != canonical(found):
            deviates()
        return replace(live)


@faulty_memory("RUN-CAS-2", source="the clause: the index is not part of the condition")
class RefusedUpdateChangesTheIndex(MemoryRunStore):
    """compare_and_set takes a run out of the active index before its version is compared."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        entry = self._space.entries.get(expected.run_id)
        if not accepted and entry is not None and updated.status.terminal and not entry.terminal:
            deviates()
            self._space.entries[expected.run_id] = replace(entry, terminal=True)
        return accepted


# -- RUN-CAS-3: arguments that do not fit


@faulty_memory("RUN-CAS-3", source="the clause: the store trusts the caller's version")
class AnyNewVersionIsAccepted(_Updating):
    """compare_and_set stores whatever version the update has."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        stored = self._stored(expected.run_id)
        wrong = updated.version != expected.version + 1
        if wrong and stored is not None and stored.version == expected.version:
            return self._force(updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-3", source="the clause: another id is written")
class UpdateMovesToAnotherId(_Updating):
    """compare_and_set checks the expected run and writes under the id of the updated one."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        stored = self._stored(expected.run_id)
        if updated.run_id != expected.run_id and stored is not None and stored.version == expected.version:
            return self._force(updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-3", source="the clause: storage is asked first")
class AbsenceComesBeforeValidity(MemoryRunStore):
    """compare_and_set looks for the run first, so that an invalid update of an absent or newer run is merely False."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        entry = self._space.entries.get(expected.run_id)
        if (entry is None or entry.version != expected.version) and updated.version != expected.version + 1:
            deviates()
            return False
        return super().compare_and_set(expected, updated)


# -- RUN-CAS-4: a missing run


@faulty_memory("RUN-CAS-4", source="B7 valence-works/groundwork#289")
class MissingRunIsInsertedAndRefused(_Updating):
    """compare_and_set upserts: a missing run is inserted, and the answer is False."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if not accepted and self._stored(expected.run_id) is None:
            self._force(updated)
        return accepted


@faulty_memory("RUN-CAS-4", source="B7 twin: and the answer is True")
class MissingRunIsInserted(_Updating):
    """compare_and_set upserts: a missing run is inserted, and the answer is True."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        return self._force(updated) if self._stored(expected.run_id) is None else super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-4", source="the clause: a tombstone takes the id")
class MissedRunTakesTheId(MemoryRunStore):
    """compare_and_set of a missing run leaves a marker, so that the id cannot be created any more."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if expected.run_id not in self._space.entries:
            deviates()
            self._space.retired.add(expected.run_id)
        return accepted


# -- RUN-CAS-5: an update that changes nothing else


@faulty_memory("RUN-CAS-5", source="B1 stacksjs/stacks#2639")
class UnchangedRowsAreConflicts(_ComparesMore):
    """compare_and_set counts changed columns, so that an update equal to what is stored is a conflict."""

    def _is_in_the_way(self, stored: Run, expected: Run, updated: Run) -> bool:  # noqa: ARG002  # as the others have it
        return _changes_nothing(stored, updated)


@faulty_memory("RUN-CAS-5", source="B1 twin: success without a new version")
class UnchangedRowsKeepTheirVersion(_Updating):
    """compare_and_set answers True to an update equal to what is stored and writes nothing, not even the version."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(updated.run_id)
        if stored is not None and _changes_nothing(stored, updated):
            deviates()
            return stored.version == expected.version
        return super().compare_and_set(expected, updated)


# -- RUN-CAS-8: conflicts that are turned into successes


@faulty_memory("RUN-CAS-8", source="F9 argoproj/argo-workflows#16294")
class ConflictsAreRebased(_Updating):
    """compare_and_set reads the newest version after a conflict and submits the same run on top of it."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        stored = self._stored(expected.run_id)
        if stored is None or stored.status.terminal:
            return False
        return self._force(replace(updated, version=stored.version + 1))


@faulty_memory("RUN-CAS-8", source="F9 twin: after a few refusals")
class ConflictsAreRebasedAtTheThirdTry(_Updating):
    """compare_and_set gives up refusing: the third time it submits the run on top of the newest version."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._refusals: dict[str, int] = {}

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        stored = self._stored(expected.run_id)
        self._refusals[expected.run_id] = self._refusals.get(expected.run_id, 0) + 1
        if stored is None or self._refusals[expected.run_id] < 3:
            return False
        return self._force(replace(updated, version=stored.version + 1))


@faulty_memory("RUN-CAS-8", source="F9 twin: merged into the next update")
class RefusedUpdatesAreMergedLater(_Updating):
    """compare_and_set keeps the input of a refused update and merges it into the next one that is accepted."""

    def __init__(self, space: MemorySpace) -> None:
        super().__init__(space)
        self._waiting: dict[str, Run] = {}

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if not accepted:
            self._waiting[expected.run_id] = updated
        elif updated.run_id in self._waiting:
            self._force(replace(updated, input={**updated.input, **self._waiting.pop(updated.run_id).input}))
        return accepted


# -- RUN-CAS-9: clocks


@faulty_memory("RUN-CAS-9", source="I4 alibaba/spring-ai-alibaba#4753: order by time")
class ConflictsAreFoundByUpdatedAt(_Updating):
    """compare_and_set compares updated_at in place of the version, so that two writes within one tick both fit."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._stored(expected.run_id)
        if stored is None or stored.status.terminal or stored.version == expected.version:
            return super().compare_and_set(expected, updated)
        return self._force(updated) if stored.updated_at == expected.updated_at else False


@faulty_memory("RUN-CAS-9", source="the clause: the last writer wins by updated_at")
class LaterUpdatedAtWins(_Updating):
    """compare_and_set accepts a stale update whose updated_at is later than the stored one by more than a year."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        stored = self._stored(expected.run_id)
        if stored is None or updated.updated_at <= stored.updated_at + timedelta(days=365):
            return False
        return self._force(updated)


@faulty_memory("RUN-CAS-9", source="the clause: updated_at has to grow")
class UpdatedAtHasToGrow(_ComparesMore):
    """compare_and_set takes an update whose updated_at is not later than the stored one for a conflict."""

    def _is_in_the_way(self, stored: Run, expected: Run, updated: Run) -> bool:  # noqa: ARG002  # as the others have it
        return updated.updated_at <= stored.updated_at


@faulty_memory("RUN-CAS-9", source="the clause: clocks that are turned back")
class WritesNeedLaterClocks(_NotesWrites):
    """compare_and_set refuses to write while its clock shows less than at the last write of the run."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        key = (self._lab.namespace, expected.run_id)
        if key in self._written and self._lab.clock.now() < self._written[key]:
            deviates()
            return False
        self._written[key] = self._lab.clock.now()
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CAS-9", source="the clause: a conflict that grows old")
class ConflictsExpire(_NotesWrites):
    """compare_and_set accepts a stale update when the stored run was written more than half an hour ago."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        key = (self._lab.namespace, expected.run_id)
        now = self._lab.clock.now()
        accepted = super().compare_and_set(expected, updated)
        if not accepted and key in self._written and abs(now - self._written[key]) > timedelta(minutes=30):
            deviates()
            with self._space.lock:
                self._put(updated)
            return True
        return accepted


# -- RUN-CAS-10: what else is compared


@faulty_memory("RUN-CAS-10", source="the clause: the whole record is compared")
class TheWholeRecordIsCompared(_ComparesMore):
    """compare_and_set compares every field of the expected run with the stored one."""

    def _is_in_the_way(self, stored: Run, expected: Run, updated: Run) -> bool:  # noqa: ARG002  # as the others have it
        return stored.version == expected.version and canonical(stored) != canonical(expected)


@faulty_memory("RUN-CAS-10", source="the clause: only the owner may write")
class OwnerIsCompared(_ComparesMore):
    """compare_and_set compares the expected owner as well as the version."""

    def _is_in_the_way(self, stored: Run, expected: Run, updated: Run) -> bool:  # noqa: ARG002  # as the others have it
        return stored.version == expected.version and stored.owner != expected.owner


@faulty_memory("RUN-CAS-10", source="the clause: a digest in place of the version")
class DigestsAreCompared(_Updating):
    """compare_and_set accepts any version as long as everything else of the expected run is as stored."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if super().compare_and_set(expected, updated):
            return True
        stored = self._stored(expected.run_id)
        if (
            stored is None
            or stored.status.terminal
            or canonical(replace(stored, version=0)) != canonical(replace(expected, version=0))
        ):
            return False
        return self._force(updated)


@faulty_memory("RUN-CAS-1", source="the clause: a number that is too small")
class VersionsEndAtOneHundredAndTwentySeven(MemoryRunStore):
    """The version is kept in a signed byte, and no update goes past 127."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if updated.version == expected.version + 1 and updated.version > 127:
            deviates()
            return False
        return super().compare_and_set(expected, updated)


def _changes_nothing(stored: Run, updated: Run) -> bool:
    return canonical(replace(stored, version=updated.version)) == canonical(updated)
