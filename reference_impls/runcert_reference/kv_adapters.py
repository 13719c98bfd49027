"""The adapters of the reference stores in Valkey and Redis: on the kit's servers, and on one that the user names by a URL.

Importing this module needs the extra ``kv``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import redis as driver
from redis.backoff import NoBackoff
from redis.retry import Retry

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Lab, Leftover, Mark, UsageProblem, adapter
from runcert_contract import StoreError
from runcert_reference.claimed_options import claimed_options
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import CONNECT_WAIT, REPLY_WAIT, Connections
from runcert_reference.kv.failures import Stage, translated
from runcert_reference.kv.keys import RETIRED, Keys
from runcert_reference.kv.operations import retire_run
from runcert_reference.kv.run_store import CLAIMS, AsyncValkeyRunStore, ValkeyRunStore

__all__ = ["leftovers_at_url", "redis", "redis_async", "redis_at_url", "valkey", "valkey_async"]

_PREFIX = "rc_"
_MARK = b"made-by-runcert"
_AT_ONCE = 1000
_MOST_KEYS = 200_000
"""How many keys a database may hold: a server finds those of a namespace by looking through all of them."""


# -- what the owner of a namespace does


@contextmanager
def _client(address: Address) -> Iterator[driver.Redis]:
    """Open a client of the driver for the length of the body, whose errors are those of the contract."""
    client = driver.Redis(
        host=address.host,
        port=address.port,
        db=address.database,
        username=address.username,
        password=address.password,
        socket_connect_timeout=CONNECT_WAIT,
        socket_timeout=REPLY_WAIT,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    with translated(Stage.READING, "the server"), closing(client):
        yield client


def make_namespace(address: Address, lab: Lab) -> dict[str, str]:
    """Make a namespace, empty but for a mark, so that it is removed by who made it and by nobody else.

    Args:
        address: the server.
        lab: names the namespace.

    Returns:
        The mark, kept by the kit as ``lab.prepared``.

    Raises:
        UsageProblem: the server cannot be used, or keys of that name are there already.
    """
    mark = Mark.new(lab.namespace).to_json()
    prefix = Keys(lab.namespace).prefix
    try:
        ValkeyRunStore(address, lab.namespace).close()
        with _client(address) as client:
            held = int(client.dbsize())
            crowded = held > _MOST_KEYS
            free = not crowded and next(client.scan_iter(match=prefix + b"*", count=_AT_ONCE), None) is None
            free = free and bool(client.set(prefix + _MARK, json.dumps(mark), nx=True))
    except StoreError as error:
        raise UsageProblem(f"{address.host}:{address.port}: {error}") from error
    if crowded:
        raise UsageProblem(
            f"{address.host}:{address.port}: database {address.database} holds {held:,} keys, all of which would be looked through "
            "again and again; name another one, for instance an empty one by its number at the end of the address"
        )
    if not free:
        raise UsageProblem(
            f"{address.host}:{address.port}: keys that begin with {lab.namespace}: are there already and not this run's; "
            "name another database, or remove them yourself"
        )
    return mark


def remove_namespace(address: Address, lab: Lab) -> None:
    """Remove the keys of a namespace that :func:`make_namespace` made, and nothing else.

    Raises:
        RuntimeError: it does not have this run's mark.
    """
    mark = Mark.read(lab.prepared)
    _remove_keys(address, mark if mark is not None and mark.namespace == lab.namespace else None, lab.namespace)


def _remove_keys(address: Address, mark: Mark | None, namespace: str) -> None:
    prefix = Keys(namespace).prefix
    with _client(address) as client:
        if not namespace.startswith(_PREFIX) or mark is None or _mark_at(client, prefix + _MARK) != mark:
            raise RuntimeError(
                f"the keys of {namespace} do not have the mark of this run any more, so they are left as they are"
            )
        keys = sorted(set(client.scan_iter(match=prefix + b"*", count=_AT_ONCE)) - {prefix + _MARK})
        for start in range(0, len(keys), _AT_ONCE):
            client.unlink(*keys[start : start + _AT_ONCE])
        client.unlink(prefix + _MARK)  # last, so that a run that is killed here leaves nothing without a mark


def _mark_at(client: driver.Redis, key: bytes) -> Mark | None:
    """Read a mark; what is no mark is none."""
    try:
        return Mark.read(json.loads(bytes(client.get(key) or b"")))  # type: ignore[arg-type]  # bytes, because nothing is decoded
    except (driver.ResponseError, ValueError):
        return None


def leftovers_at_url(url: str) -> list[Leftover]:
    """Find the keys of namespaces that killed runs left on a server of the user's.

    Args:
        url: ``redis://user:password@host:port/database``.

    Raises:
        UsageProblem: it is no such URL, or the server cannot be used.
    """
    address = _address_at(url)
    try:
        with _client(address) as client:
            keys = sorted(set(client.scan_iter(match=_PREFIX.encode() + b"*:" + _MARK, count=_AT_ONCE)))
            marks = [(key.removesuffix(b":" + _MARK).decode("ascii", "replace"), _mark_at(client, key)) for key in keys]
    except StoreError as error:
        raise UsageProblem(f"{address.host}:{address.port}: {error}") from error
    return [
        Leftover("keys", f"{namespace}:*", mark, partial(_remove_keys, address, mark, namespace))
        for namespace, mark in ((n, m if m is not None and m.namespace == n else None) for n, m in marks)
    ]


def damage_run(address: Address, namespace: str, run_id: str, how: str) -> None:
    """Make the stored record of a run unreadable: ``how`` is undecodable, cut or empty."""
    key = Keys(namespace).run(run_id)
    with _client(address) as client:
        record = bytes(client.hget(key, "record") or b"")  # type: ignore[arg-type]  # bytes, because nothing is decoded
        damaged = {"undecodable": b"\xff\xfe{not json", "cut": record[: len(record) // 2], "empty": b""}[how]
        client.hset(key, "record", damaged)


def count_keys(address: Address, namespace: str) -> dict[str, int]:
    """Count what is stored, by kind."""
    keys = Keys(namespace)
    with _client(address) as client:
        found = set(client.scan_iter(match=keys.prefix + b"*", count=_AT_ONCE))
        runs = [key for key in found if key.startswith(keys.runs)]
        indexes = [key for key in found if key.startswith(keys.indexes)]
        retired = sum(client.hget(key, "state") == RETIRED for key in runs)
        return {
            "runs": len(runs) - retired,
            "retired": retired,
            "index entries": sum(int(client.scard(key)) for key in indexes),
            "other keys": len(found) - len(runs) - len(indexes),
        }


def purge_run(address: Address, namespace: str, run_id: str) -> None:
    """Remove a run as retention would."""
    with closing(Connections(address)) as connections:
        connections.ask(retire_run(Keys(namespace), run_id))


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


def _both_forms(target: str, address_of: Callable[[Lab], Address]) -> tuple[Adapter, Adapter]:
    def open_store(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = ValkeyRunStore(routed(address_of(lab), lab), lab.namespace)
        yield store
        store.close()

    async def open_async_store(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
        store = await AsyncValkeyRunStore.open(routed(address_of(lab), lab), lab.namespace)
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
        url: ``redis://user:password@host:port/database``.

    Raises:
        UsageProblem: it is no such URL.
    """
    address = _address_at(url)
    host = "".join(letter if letter.isalnum() else "-" for letter in address.host).strip("-")
    return _both_forms(f"redis-{host}-{address.port}-{address.database}", lambda _: address)[0]


def _address_at(url: str) -> Address:
    try:
        return Address.of(url)
    except StoreError as error:
        raise UsageProblem(str(error)) from error
