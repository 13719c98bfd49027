"""Faults of handles that were closed."""

from __future__ import annotations

from runcert.faulty import deviates
from runcert_contract import Closed, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore


@faulty_memory("RUN-CLOSED-1", source="the clause: an answer that nobody looked up")
class ClosedHandlesFindNothing(MemoryRunStore):
    """find on a closed handle answers None."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except Closed:
            deviates()
            return None


@faulty_memory("RUN-CLOSED-1", source="the clause: a write after close")
class ClosedHandlesWrite(MemoryRunStore):
    """create on a closed handle raises Closed, after it has stored the run."""

    def create(self, run: Run) -> Run:
        if not self._open and run.run_id not in self._space.entries:
            deviates()
            self._put(run)
        return super().create(run)


@faulty_memory("RUN-CLOSED-1", source="the clause: an update after close")
class ClosedHandlesRefuseUpdates(MemoryRunStore):
    """compare_and_set on a closed handle answers False, as if another had won."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        try:
            return super().compare_and_set(expected, updated)
        except Closed:
            deviates()
            return False


@faulty_memory("RUN-CLOSED-1", source="the clause: an update that is answered before the handle is looked at")
class ClosedHandlesAnswerStaleUpdates(MemoryRunStore):
    """compare_and_set compares versions first, so that a stale update is answered with False on a closed handle, too."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        entry = self._space.entries.get(expected.run_id)
        if not self._open and entry is not None and entry.version != expected.version:
            deviates()
            return False
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-CLOSED-1", source="the clause: the error of the driver")
class ClosedHandlesRaiseTheirOwnError(MemoryRunStore):
    """What a closed handle raises is whatever the missing connection raises."""

    def _check_open(self) -> None:
        if not self._open:
            deviates()
            raise AttributeError("'NoneType' object has no attribute 'cursor'")


@faulty_memory("RUN-CLOSED-1", source="the clause: handles share what is closed")
class ClosingOneClosesAll(MemoryRunStore):
    """The first handle that is closed takes the runs of all others with it."""

    def close(self) -> None:
        with self._space.lock:
            if self._open and self._space.handles > 1:
                deviates()
                self._space.entries.clear()
        super().close()
