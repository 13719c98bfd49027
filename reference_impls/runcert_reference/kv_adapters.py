"""The adapters of the reference stores in Valkey and Redis: on the kit's servers, and on one that the user names by a URL.

Importing this module needs the extra ``kv``.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Lab, Leftover, UsageProblem, adapter
from runcert_contract import StoreError
from runcert_reference.claimed_options import claimed_options
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.run_store import CLAIMS, AsyncValkeyRunStore, ValkeyRunStore
from runcert_reference.kv_namespaces import count_keys, damage_run, leftovers_on, make_namespace, purge_run, remove_namespace
from runcert_reference.shared_kv_places import SharedPrefix, leftovers_in, options_in

__all__ = ["leftovers_at_url", "redis", "redis_async", "redis_at_url", "valkey", "valkey_async"]


# -- adapters


def options(address_of: Callable[[Lab], Address]) -> dict[str, Any]:
    """Give the claims and hooks of the store.

    Args:
        address_of: gives the server of a lab.
    """
    return {
        **claimed_options(CLAIMS),
        "prepare": lambda lab: make_namespace(address_of(lab), lab),
        "dispose": lambda lab: remove_namespace(address_of(lab), lab),
        "damage": lambda lab, _, key, how: damage_run(address_of(lab), lab.namespace, key, how),
        "inventory": lambda lab: count_keys(address_of(lab), lab.namespace),
        "purge": lambda lab, _, key: purge_run(address_of(lab), lab.namespace, key),
    }


def server_of(name: str) -> Callable[[Lab], Address]:
    """Give the address of a server of the kit, or of the one that the user named with ``--server``."""

    def address_of(lab: Lab) -> Address:
        try:
            return Address.of(lab.server(name))
        except StoreError as error:
            raise UsageProblem(f"--server {name}: {error}") from error

    return address_of


def routed(address: Address, lab: Lab) -> Address:
    """Give the address at which a handle finds the server: what the kit puts in front of it, if anything."""
    host, port = lab.route(address.host, address.port)
    return replace(address, host=host, port=port)


def patience_of(lab: Lab) -> float:
    """Give how long a handle waits for its server at most, in seconds."""
    return math.inf if lab.patience is None else lab.patience


def _both_forms(target: str, address_of: Callable[[Lab], Address]) -> tuple[Adapter, Adapter]:
    def open_store(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = ValkeyRunStore(routed(address_of(lab), lab), lab.namespace, patience_of(lab))
        yield store
        store.close()

    async def open_async_store(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
        store = await AsyncValkeyRunStore.open(routed(address_of(lab), lab), lab.namespace, patience_of(lab))
        yield store
        await store.close()

    given = options(address_of)
    synchronous = adapter(EnumeratesRuns, target=target, parity_with=lambda: asynchronous, **given)(open_store)
    asynchronous = adapter(AsyncEnumeratesRuns, target=f"{target}-async", parity_with=lambda: synchronous, **given)(
        open_async_store
    )
    return synchronous, asynchronous


valkey, valkey_async = _both_forms("valkey", server_of("valkey"))
redis, redis_async = _both_forms("redis", server_of("redis"))


def redis_at_url(url: str) -> Adapter:
    """Give the adapter of a store on a server of the user's.

    Args:
        url: ``redis://user:password@host:port/database``; with ``?namespaces=shared&prefix=NAME`` where the user may touch only
            the keys that begin with ``NAME:``.

    Raises:
        UsageProblem: it is no such URL.
    """
    place = SharedPrefix.named_by(url)
    address = _address_at(url) if place is None else place.address
    host = "".join(letter if letter.isalnum() else "-" for letter in address.host).strip("-")
    target = f"redis-{host}-{address.port}-{address.database}"
    return _both_forms(target, lambda _: address)[0] if place is None else _in_shared_place(place, f"{target}-shared")


def _in_shared_place(place: SharedPrefix, target: str) -> Adapter:
    @adapter(EnumeratesRuns, target=target, **options_in(place))
    def in_shared_place(lab: Lab) -> Iterator[EnumeratesRuns]:  # every namespace is this place
        store = ValkeyRunStore(routed(place.address, lab), place.prefix, patience_of(lab))
        yield store
        store.close()

    return in_shared_place


def leftovers_at_url(url: str) -> list[Leftover]:
    """Find what killed runs left on a server of the user's.

    Args:
        url: as for :func:`redis_at_url`.

    Raises:
        UsageProblem: it is no such URL, or the server cannot be used.
    """
    place = SharedPrefix.named_by(url)
    return leftovers_on(_address_at(url)) if place is None else leftovers_in(place)


def _address_at(url: str) -> Address:
    try:
        return Address.of(url)
    except StoreError as error:
        raise UsageProblem(str(error)) from error
