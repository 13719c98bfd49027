"""How a faulty store is made of a few lines over the reference store in memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from runcert import AsyncRunStore, Lab, RunStore, adapter
from runcert.adapters import Adapter
from runcert.faulty import FaultyStore
from runcert_reference.adapters import count_memory, damage_memory, forget_memory, purge_memory
from runcert_reference.memory import CLAIMS, AsyncMemoryRunStore, MemoryRunStore, MemorySpace, space_of

__all__ = ["MemoryRunStoreInLab", "faulty_async_memory", "faulty_memory", "make_faulty"]


class MemoryRunStoreInLab(MemoryRunStore):
    """The reference store in memory for faults that need more than the space: a directory, a clock.

    Args:
        space: the runs of the namespace.
        lab: what the handle is opened with.
    """

    def __init__(self, space: MemorySpace, lab: Lab) -> None:
        super().__init__(space)
        self._lab = lab


def faulty_memory(
    clause: str, source: str = "the clause", sound: type[MemoryRunStore] = MemoryRunStore, **options: Any
) -> Callable[[type[MemoryRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the reference store in memory.

    Args:
        clause: the clause that has to catch it.
        source: where the fault was seen.
        sound: the class without the fault, where it is not the reference store itself.
        options: options of the adapter that differ from the reference store's; ``None`` takes a hook away.
    """

    def decorate(store: type[MemoryRunStore]) -> FaultyStore:
        without_fault = _adapter(sound, options) if options else _sound(sound)
        return make_faulty(store, clause, source, "memory", _adapter(store, options), without_fault)

    return decorate


def faulty_async_memory(
    clause: str, source: str = "the clause", sound: type[AsyncMemoryRunStore] = AsyncMemoryRunStore, **options: Any
) -> Callable[[type[AsyncMemoryRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the asynchronous reference store in memory; arguments as in :func:`faulty_memory`."""

    def decorate(store: type[AsyncMemoryRunStore]) -> FaultyStore:
        without_fault = _async_adapter(sound, options) if options else _async_sound(sound)
        return make_faulty(store, clause, source, "memory-async", _async_adapter(store, options), without_fault)

    return decorate


def make_faulty(store: type[Any], clause: str, source: str, backend: str, faulty: Adapter, sound: Adapter) -> FaultyStore:
    """Make the record of a faulty store.

    Args:
        store: the faulty class; its documentation is the fault in one sentence.
        clause: the clause that has to catch it.
        source: where the fault was seen.
        backend: the backend of the reference store.
        faulty: its adapter.
        sound: the adapter of the same store without the fault.
    """
    return FaultyStore(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", store.__name__).lower(),
        clause=clause,
        fault=" ".join((store.__doc__ or "").split()),
        source=source,
        backend=backend,
        adapter=faulty,
        sound=sound,
        spec=f"{store.__module__}:{store.__name__}",
    )


_OPTIONS: dict[str, Any] = {
    "scope": CLAIMS.scope,
    "durability": CLAIMS.durability,
    "capabilities": CLAIMS.capabilities,
    "limits": CLAIMS.limits,
    "damage": damage_memory,
    "inventory": count_memory,
    "purge": purge_memory,
    "dispose": forget_memory,
}


def _adapter(kind: type[MemoryRunStore], options: dict[str, Any]) -> Adapter:
    def open_store(lab: Lab) -> Iterator[RunStore]:
        space = space_of(lab.namespace)
        store = kind(space, lab) if issubclass(kind, MemoryRunStoreInLab) else kind(space)
        yield store
        store.close()

    return adapter(RunStore, target=kind.__name__, **{**_OPTIONS, "handles": CLAIMS.handles, **options})(open_store)


def _async_adapter(kind: type[AsyncMemoryRunStore], options: dict[str, Any]) -> Adapter:
    async def open_store(lab: Lab) -> AsyncIterator[AsyncRunStore]:
        store = kind(space_of(lab.namespace))
        yield store
        await store.close()

    return adapter(AsyncRunStore, target=kind.__name__, **{**_OPTIONS, **options})(open_store)


_made: dict[type[Any], Adapter] = {}


def _sound(kind: type[MemoryRunStore]) -> Adapter:
    """Give one adapter for all faulty stores over ``kind``, so that a self-check asks it once."""
    return _made.setdefault(kind, _adapter(kind, {}))


def _async_sound(kind: type[AsyncMemoryRunStore]) -> Adapter:
    return _made.setdefault(kind, _async_adapter(kind, {}))
