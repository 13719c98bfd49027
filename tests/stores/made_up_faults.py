"""Records of faulty stores that the self-check must not count as caught."""

from __future__ import annotations

from typing import Any

from runcert.faulty import FaultyStore, deviates
from runcert_contract import Run
from runcert_reference.faulty.creating import CreateReplaces
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore


@faulty_memory("RUN-CREATE-2")
class WELL_BEHAVED(MemoryRunStore):  # noqa: N801  # becomes a record, not a class
    """is the reference store as it is"""


@faulty_memory("RUN-CREATE-2")
class HARMLESS(MemoryRunStore):  # becomes a record, not a class
    """says that it deviates, and does not"""

    def create(self, run: Run) -> Run:
        deviates()
        return super().create(run)


_red: Any = CreateReplaces  # type checkers do not see that its decorator made a record of it

BROKEN_TWIN = FaultyStore(
    name="broken-twin",
    clause="RUN-CREATE-2",
    fault="its sound twin is faulty as well, so the check may be wrong",
    source="none",
    backend="memory",
    adapter=_red.adapter,
    sound=_red.adapter,
    spec=f"{__file__}:BROKEN_TWIN",
)
