"""Faults of two forms of one store that answer differently."""

from __future__ import annotations

from dataclasses import replace

from runcert import Adapter
from runcert.faulty import deviates
from runcert_contract import AlreadyExists, InvalidRecord, Run
from runcert_reference.faulty.over_memory import faulty_async_memory, faulty_memory
from runcert_reference.memory import AsyncMemoryRunStore, MemoryRunStore


def _asynchronous_form() -> Adapter:
    from runcert_reference.adapters import memory_async  # noqa: PLC0415  # only when it is asked for

    return memory_async


def _synchronous_form() -> Adapter:
    from runcert_reference.adapters import memory  # noqa: PLC0415  # only when it is asked for

    return memory


@faulty_memory("RUN-PARITY-1", source="the clause: errors", parity_with=_asynchronous_form)
class TakenIdsAreInvalidInOneForm(MemoryRunStore):
    """The synchronous form says InvalidRecord where the asynchronous one says AlreadyExists."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists as error:
            deviates()
            raise InvalidRecord(str(error)) from error


@faulty_async_memory("RUN-PARITY-1", source="the clause: answers", parity_with=_synchronous_form)
class StaleUpdatesRaiseInOneForm(AsyncMemoryRunStore):
    """The asynchronous form raises for a stale update where the synchronous one answers False."""

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if not await super().compare_and_set(expected, updated):
            deviates()
            raise InvalidRecord(f"run {expected.run_id!r} has another version")
        return True


@faulty_async_memory(
    "RUN-PARITY-1", source="K4 contribsys/faktory#395: one form has another encoder", parity_with=_synchronous_form
)
class NumbersAreRoundedInOneForm(AsyncMemoryRunStore):
    """The asynchronous form reads the numbers of an input as floats."""

    async def find(self, run_id: str) -> Run | None:
        run = await super().find(run_id)
        if run is None or not any(isinstance(value, int) for value in run.input.values()):
            return run
        deviates()
        return replace(run, input={key: float(value) if isinstance(value, int) else value for key, value in run.input.items()})
