"""The adapters of the reference stores: how the kit opens them and what is said of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Handles, Lab, RunStore, adapter
from runcert_reference import memory_hooks
from runcert_reference.claimed_options import claimed_options
from runcert_reference.memory import CLAIMS, AsyncMemoryRunStore, MemoryRunStore, forget, space_of
from runcert_reference.noop import NoopRunStore

__all__ = ["memory", "memory_async", "noop"]


def damage_memory(lab: Lab, contract: str, key: str, how: str) -> None:  # noqa: ARG001  # one contract only
    """Make a stored run unreadable."""
    memory_hooks.damage(space_of(lab.namespace), key, how)


def count_memory(lab: Lab) -> dict[str, int]:
    """Count what is stored."""
    return memory_hooks.count(space_of(lab.namespace))


def purge_memory(lab: Lab, contract: str, key: str) -> None:  # noqa: ARG001  # one contract only
    """Remove a run as retention would."""
    memory_hooks.purge(space_of(lab.namespace), key)


def forget_memory(lab: Lab) -> None:
    """Remove the namespace."""
    forget(lab.namespace)


def memory_async_form() -> Adapter:
    """Give the asynchronous form of the store in memory."""
    return memory_async


_OPTIONS = {
    **claimed_options(CLAIMS),
    "damage": damage_memory,
    "inventory": count_memory,
    "purge": purge_memory,
    "dispose": forget_memory,
}


@adapter(EnumeratesRuns, **_OPTIONS, parity_with=memory_async_form)
def memory(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in memory."""
    store = MemoryRunStore(space_of(lab.namespace))
    yield store
    store.close()


@adapter(AsyncEnumeratesRuns, **{**_OPTIONS, "handles": Handles.PER_TASK}, parity_with=lambda: memory)
async def memory_async(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
    """Open the reference store in memory for an event loop."""
    store = AsyncMemoryRunStore(space_of(lab.namespace))
    yield store
    await store.close()


@adapter(RunStore)
def noop(lab: Lab) -> Iterator[RunStore]:  # noqa: ARG001  # it keeps nothing anywhere
    """Open the store that keeps nothing."""
    yield NoopRunStore()
