"""Two sound stores in one file."""

from __future__ import annotations

from collections.abc import Iterator

from runcert import Capability, Lab, RunStore, Stance, adapter
from runcert_reference.memory import MemoryRunStore, MemorySpace


@adapter(RunStore, capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED})
def first(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore, capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED})
def second(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())
