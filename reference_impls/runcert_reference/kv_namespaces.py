"""The namespaces of the reference stores in Valkey and Redis: each is the keys with a beginning that the kit marks as its own and removes.

Nothing else on the server is touched.  Importing this module needs the extra ``kv``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import redis as driver
from redis.backoff import NoBackoff
from redis.retry import Retry

from runcert import Lab, Leftover, Mark, UsageProblem
from runcert_contract import StoreError
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import CONNECT_WAIT, REPLY_WAIT, Connections
from runcert_reference.kv.failures import Stage, translated
from runcert_reference.kv.keys import RETIRED, Keys
from runcert_reference.kv.operations import retire_run
from runcert_reference.kv.run_store import ValkeyRunStore

__all__ = [
    "AT_ONCE",
    "MARK",
    "client_of",
    "count_keys",
    "damage_run",
    "leftovers_on",
    "make_namespace",
    "mark_in",
    "purge_run",
    "remove_namespace",
]

MARK = b"made-by-runcert"
"""The end of the key that marks a namespace."""

AT_ONCE = 1000
"""How many keys a command names at most."""

_PREFIX = "rc_"
_MOST_KEYS = 200_000
"""How many keys a database may hold: a server finds those of a namespace by looking through all of them."""


@contextmanager
def client_of(address: Address) -> Iterator[driver.Redis]:
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
        with client_of(address) as client:
            held = int(client.dbsize())
            crowded = held > _MOST_KEYS
            free = not crowded and next(client.scan_iter(match=prefix + b"*", count=AT_ONCE), None) is None
            free = free and bool(client.set(prefix + MARK, json.dumps(mark), nx=True))
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
    with client_of(address) as client:
        if not namespace.startswith(_PREFIX) or mark is None or _mark_at(client, prefix + MARK) != mark:
            raise RuntimeError(
                f"the keys of {namespace} do not have the mark of this run any more, so they are left as they are"
            )
        keys = sorted(set(client.scan_iter(match=prefix + b"*", count=AT_ONCE)) - {prefix + MARK})
        for start in range(0, len(keys), AT_ONCE):
            client.unlink(*keys[start : start + AT_ONCE])
        client.unlink(prefix + MARK)  # last, so that a run that is killed here leaves nothing without a mark


def _mark_at(client: driver.Redis, key: bytes) -> Mark | None:
    """Read a mark; what is no mark is none."""
    try:
        return mark_in(client.get(key))
    except driver.ResponseError:
        return None


def mark_in(value: object) -> Mark | None:
    """Read a mark from a value of the server; what is no mark is none."""
    try:
        return Mark.read(json.loads(value)) if isinstance(value, bytes) else None
    except ValueError:
        return None


def leftovers_on(address: Address) -> list[Leftover]:
    """Find the keys of namespaces that killed runs left on a server of the user's.

    Raises:
        UsageProblem: the server cannot be used.
    """
    try:
        with client_of(address) as client:
            keys = sorted(set(client.scan_iter(match=_PREFIX.encode() + b"*:" + MARK, count=AT_ONCE)))
            marks = [(key.removesuffix(b":" + MARK).decode("ascii", "replace"), _mark_at(client, key)) for key in keys]
    except StoreError as error:
        raise UsageProblem(f"{address.host}:{address.port}: {error}") from error
    return [
        Leftover("keys", f"{namespace}:*", mark, partial(_remove_keys, address, mark, namespace))
        for namespace, mark in ((n, m if m is not None and m.namespace == n else None) for n, m in marks)
    ]


# -- hooks


def damage_run(address: Address, namespace: str, run_id: str, how: str) -> None:
    """Make the stored record of a run unreadable: ``how`` is undecodable, cut or empty."""
    key = Keys(namespace).run(run_id)
    with client_of(address) as client:
        record = bytes(client.hget(key, "record") or b"")  # type: ignore[arg-type]  # bytes, because nothing is decoded
        damaged = {"undecodable": b"\xff\xfe{not json", "cut": record[: len(record) // 2], "empty": b""}[how]
        client.hset(key, "record", damaged)


def count_keys(address: Address, namespace: str) -> dict[str, int]:
    """Count what is stored, by kind."""
    keys = Keys(namespace)
    with client_of(address) as client:
        found = set(client.scan_iter(match=keys.prefix + b"*", count=AT_ONCE))
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
