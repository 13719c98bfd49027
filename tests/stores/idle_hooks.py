"""The store in memory, with hooks of the adapter that do nothing: what they would show cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runcert import Capability, EnumeratesRuns, Lab, Stance, adapter
from runcert_reference.adapters import count_memory, damage_memory, forget_memory, purge_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore, space_of

_OPTIONS: dict[str, Any] = {
    "scope": CLAIMS.scope,
    "handles": CLAIMS.handles,
    "durability": CLAIMS.durability,
    "capabilities": CLAIMS.capabilities,
    "limits": CLAIMS.limits,
    "dispose": forget_memory,
    "inventory": count_memory,
    "damage": damage_memory,
    "purge": purge_memory,
}


def count_nothing(lab: Lab) -> dict[str, int]:
    """Give what was true once."""
    return {"runs": 0}


def do_nothing(*arguments: object) -> None:
    """Leave everything as it is."""


@adapter(EnumeratesRuns, **{**_OPTIONS, "inventory": count_nothing})
def counts_nothing(lab: Lab) -> Iterator[EnumeratesRuns]:
    store = MemoryRunStore(space_of(lab.namespace))
    yield store
    store.close()


@adapter(EnumeratesRuns, **{**_OPTIONS, "purge": do_nothing})
def purges_nothing(lab: Lab) -> Iterator[EnumeratesRuns]:
    store = MemoryRunStore(space_of(lab.namespace))
    yield store
    store.close()


@adapter(EnumeratesRuns, **{**_OPTIONS, "damage": do_nothing})
def damages_nothing(lab: Lab) -> Iterator[EnumeratesRuns]:
    store = MemoryRunStore(space_of(lab.namespace))
    yield store
    store.close()


@adapter(
    EnumeratesRuns,
    **{**_OPTIONS, "capabilities": {**CLAIMS.capabilities, Capability.VERSIONED_SCHEMA: Stance.CLAIMED}, "schema": do_nothing},
)
def changes_no_schema(lab: Lab) -> Iterator[EnumeratesRuns]:
    store = MemoryRunStore(space_of(lab.namespace))
    yield store
    store.close()


damages_nothing_either = damages_nothing
"""A second name of one adapter."""
