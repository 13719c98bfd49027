"""Two sound stores in one file."""

from __future__ import annotations

from collections.abc import Iterator

from runcert import Lab, RunStore, adapter
from runcert_reference.memory import MemoryRunStore, MemorySpace


@adapter(RunStore)
def first(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def second(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())
