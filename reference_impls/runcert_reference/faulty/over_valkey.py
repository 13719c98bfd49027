"""How a faulty store is made of a few lines over the reference store in Valkey."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

from runcert import AsyncEnumeratesRuns, EnumeratesRuns, Lab, Scope, adapter
from runcert.adapters import Adapter
from runcert.faulty import FaultyStore
from runcert_reference.faulty.over_memory import make_faulty
from runcert_reference.kv.run_store import AsyncValkeyRunStore, ValkeyRunStore
from runcert_reference.kv_adapters import options as valkey_options
from runcert_reference.kv_adapters import patience_of, routed, server_of

__all__ = ["faulty_async_valkey", "faulty_valkey"]

_address_of = server_of("valkey")
# Threads show these faults as well as processes do, and sooner.
_OPTIONS: dict[str, Any] = {**valkey_options(_address_of), "scope": Scope.PROCESS}


def faulty_valkey(clause: str, source: str = "the clause", **options: Any) -> Callable[[type[ValkeyRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the reference store in Valkey.

    Args:
        clause: the clause that has to catch it.
        source: where the fault was seen.
        options: options of the adapter that differ from the reference store's; ``None`` takes a hook away.
    """

    def decorate(store: type[ValkeyRunStore]) -> FaultyStore:
        return make_faulty(store, clause, source, "valkey", _adapter(store, options), _sound())

    return decorate


def faulty_async_valkey(
    clause: str, source: str = "the clause", **options: Any
) -> Callable[[type[AsyncValkeyRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the asynchronous form; arguments as in :func:`faulty_valkey`."""

    def decorate(store: type[AsyncValkeyRunStore]) -> FaultyStore:
        return make_faulty(store, clause, source, "valkey-async", _async_adapter(store, options), _async_sound())

    return decorate


def _adapter(kind: type[ValkeyRunStore], options: dict[str, Any]) -> Adapter:
    def open_store(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = kind(routed(_address_of(lab), lab), lab.namespace, patience_of(lab))
        yield store
        store.close()

    return adapter(EnumeratesRuns, target=kind.__name__, **{**_OPTIONS, **options})(open_store)


def _async_adapter(kind: type[AsyncValkeyRunStore], options: dict[str, Any]) -> Adapter:
    async def open_store(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
        store = await kind.open(routed(_address_of(lab), lab), lab.namespace, patience_of(lab))
        yield store
        await store.close()

    return adapter(AsyncEnumeratesRuns, target=kind.__name__, **{**_OPTIONS, **options})(open_store)


@cache
def _sound() -> Adapter:
    """Give one adapter for all of them, so that a self-check asks it once; another hook is part of the fault."""
    return _adapter(ValkeyRunStore, {})


@cache
def _async_sound() -> Adapter:
    return _async_adapter(AsyncValkeyRunStore, {})
