"""Faults about runs that have ended and ids that were used."""

from __future__ import annotations

from dataclasses import replace

from runcert.faulty import deviates
from runcert_contract import Run, RunStatus, canonical, check_new_run, check_update
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore


class _Unguarded(MemoryRunStore):
    """Accepts updates of terminal runs that a rule lets through."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        entry = self._space.entries.get(expected.run_id)
        if entry is None or not entry.terminal or entry.version != expected.version:
            return super().compare_and_set(expected, updated)
        stored = self._read(expected.run_id)
        if not self._lets_through(stored, updated):
            return False
        if (stored.status, canonical(stored.result)) != (updated.status, canonical(updated.result)):
            deviates()
        with self._space.lock:
            self._put(updated)
        return True

    def _lets_through(self, stored: Run, updated: Run) -> bool:
        raise NotImplementedError  # each faulty store says how


@faulty_memory("RUN-TERMINAL-1", source="F1 celery/celery#6090")
class TerminalRunsAreReplaced(_Unguarded):
    """compare_and_set replaces a terminal run like any other."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:  # noqa: ARG002  # everything is let through
        return True


@faulty_memory("RUN-TERMINAL-1", source="F1 twin: only success is protected")
class OnlySuccessIsFinal(_Unguarded):
    """compare_and_set protects succeeded runs only."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:  # noqa: ARG002  # the stored status alone decides
        return stored.status is not RunStatus.SUCCEEDED


@faulty_memory("RUN-TERMINAL-1", source="F4 PrefectHQ/prefect#17482")
class CancelledRunsCanComplete(_Unguarded):
    """compare_and_set lets a worker's late success replace a cancellation."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:
        return (stored.status, updated.status) == (RunStatus.CANCELLED, RunStatus.SUCCEEDED)


@faulty_memory("RUN-TERMINAL-1", source="the clause: the guard sees the status only")
class ResultsOfEndedRunsChange(_Unguarded):
    """compare_and_set guards the status and lets another result through."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:
        return stored.status is updated.status


@faulty_memory("RUN-TERMINAL-1", source="the clause: the guard compares results shallowly")
class OutputsOfEndedRunsChange(_Unguarded):
    """compare_and_set guards status, code and message, and lets another output through."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:
        if stored.status is not updated.status or stored.result is None or updated.result is None:
            return False
        return canonical(replace(stored.result, output=None)) == canonical(replace(updated.result, output=None))


@faulty_memory("RUN-TERMINAL-1", source="the clause: the guard asks whether there is a result")
class RunsWithoutResultAreNotFinal(_Unguarded):
    """compare_and_set takes a run for ended when it has a result, so that an expired one starts again."""

    def _lets_through(self, stored: Run, updated: Run) -> bool:  # noqa: ARG002  # the stored result alone decides
        return stored.result is None


@faulty_memory("RUN-REUSE-1")
class PurgedIdsAreFree(MemoryRunStore):
    """create accepts the id of a run that was purged."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if run.run_id in self._space.retired:
            deviates()
            self._space.retired.discard(run.run_id)
        return super().create(run)


@faulty_memory("RUN-REUSE-1", source="the clause: the mark is removed when it is used")
class PurgedIdsAreRefusedOnce(MemoryRunStore):
    """create refuses a purged id once, by which it forgets that it was used."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        try:
            return super().create(run)
        finally:
            if run.run_id in self._space.retired:
                deviates()
                self._space.retired.discard(run.run_id)
