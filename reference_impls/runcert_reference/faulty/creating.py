"""Faults of create."""

from __future__ import annotations

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Run, check_new_run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore


@faulty_memory("RUN-CREATE-1")
class CreateForgetsTheRun(MemoryRunStore):
    """create returns the run and stores it only when its input is empty."""

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if run.input:
            deviates()
            return run
        return super().create(run)


@faulty_memory("RUN-CREATE-2", source="A1 Azure/azure-functions-durable-extension#367")
class CreateReplaces(MemoryRunStore):
    """create replaces a run that is already there, without an error."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            with self._space.lock:
                self._put(run)
            return self._read(run.run_id)


@faulty_memory("RUN-CREATE-2", source="A1 twin: only terminal runs are replaced")
class CreateReplacesTerminalRuns(MemoryRunStore):
    """create replaces a run that has ended, because its id looks free."""

    def create(self, run: Run) -> Run:
        entry = self._space.entries.get(run.run_id)
        if entry is not None and entry.terminal:
            deviates()
            del self._space.entries[run.run_id]
        return super().create(run)


@faulty_memory("RUN-CREATE-4")
class CreateTakesAnyVersion(MemoryRunStore):
    """create stores a run with whatever version it comes with."""

    def create(self, run: Run) -> Run:
        if run.version > 0 and run.run_id not in self._space.entries:
            deviates()
            self._put(run)
            return run
        return super().create(run)


@faulty_memory("RUN-CREATE-5")
class IdsAreFreeForOtherTenants(MemoryRunStore):
    """create treats run ids as unique within a tenant only, and the newer run hides the older."""

    def create(self, run: Run) -> Run:
        entry = self._space.entries.get(run.run_id)
        if entry is not None and entry.tenant_id != run.tenant_id:
            deviates()
            del self._space.entries[run.run_id]
        return super().create(run)
