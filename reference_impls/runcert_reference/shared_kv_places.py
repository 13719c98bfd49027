"""One beginning of keys on a server of the user's for all namespaces, where the user may touch no others.

A hash beside the runs holds a mark for each process that is at work.  Runs of others are told apart by the word that every id of a
process of the kit has in it.  Importing this module needs the extra ``kv``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import redis as driver

from runcert import Lab, Leftover, Maker, Mark, Namespaces, UsageProblem
from runcert_contract import StoreError
from runcert_reference.claimed_options import claimed_options
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.keys import RETIRED, Keys
from runcert_reference.kv.run_store import CLAIMS, ValkeyRunStore
from runcert_reference.kv_namespaces import AT_ONCE, MARK, client_of, damage_run, mark_in, purge_run

__all__ = ["SharedPrefix", "leftovers_in", "options_in"]


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The keys of the user's that the kit may use.

    Attributes:
        address: the server.
        prefix: what they begin with, without the colon.
    """

    address: Address
    prefix: str

    @classmethod
    def named_by(cls, url: str) -> Self | None:
        """Give the place that a URL with ``?namespaces=shared&prefix=NAME`` names; None for a URL without a query.

        Raises:
            UsageProblem: the query says anything else.
        """
        bare, mark, query = url.partition("?")
        if not mark:
            return None
        said = parse_qs(query, keep_blank_values=True)
        prefix = said.get("prefix", [""])[0]
        shown = urlsplit(bare).hostname
        if said != {"namespaces": ["shared"], "prefix": [prefix]}:
            raise UsageProblem(f"redis at {shown}: behind ? only namespaces=shared&prefix=NAME is known")
        try:
            Keys(prefix)
            return cls(Address.of(bare), prefix)
        except StoreError as error:
            raise UsageProblem(f"redis at {shown}: {error}") from error

    @property
    def keys(self) -> Keys:
        """The keys of the stores there."""
        return Keys(self.prefix)

    @property
    def marks(self) -> bytes:
        """The key of the marks."""
        return self.keys.prefix + MARK


def options_in(place: SharedPrefix) -> dict[str, Any]:
    """Give the claims and hooks of the store in a shared place."""
    return {
        **claimed_options(CLAIMS),
        "namespaces": Namespaces.SHARED,
        "prepare": partial(_come, place),
        "dispose": partial(_go, place),
        "damage": lambda lab, _, key, how: damage_run(place.address, place.prefix, key, how),  # noqa: ARG005  # the place is the namespace
        "inventory": partial(_count, place),
        "purge": lambda lab, _, key: purge_run(place.address, place.prefix, key),  # noqa: ARG005  # as above
    }


def _come(place: SharedPrefix, lab: Lab) -> dict[str, str]:
    """Mark that this process is at work.

    Raises:
        UsageProblem: the server cannot be used, or the keys are somebody else's.
    """
    mark = Mark.new(lab.namespace).to_json()
    where = f"{place.address.host}:{place.address.port}"
    try:
        ValkeyRunStore(place.address, place.prefix).close()
        with client_of(place.address) as client:
            # first, so that what is there besides is not taken for another run's
            client.hset(place.marks, lab.namespace, json.dumps(mark))
            free = False
            try:
                free = _others_at_work(client, place, lab.namespace) or not _keys_without_a_mark(client, place)
            finally:
                if not free:
                    client.hdel(place.marks, lab.namespace)
    except StoreError as error:
        raise UsageProblem(f"{where}: {error}") from error
    if not free:
        raise UsageProblem(
            f"{where}: keys that begin with {place.prefix}: are there already, without a mark of the kit; name another prefix, or remove them yourself"
        )
    return mark


def _marks(client: driver.Redis, place: SharedPrefix) -> list[Mark]:
    """Read the marks of a place."""
    found = client.hgetall(place.marks) if client.type(place.marks) == b"hash" else {}
    return [mark for value in dict(found).values() if (mark := mark_in(value)) is not None]


def _others_at_work(client: driver.Redis, place: SharedPrefix, namespace: str) -> bool:
    """Say whether another process of the kit may be at work here, whose keys come and go."""
    return any(mark.maker is not Maker.GONE for mark in _marks(client, place) if mark.namespace != namespace)


def _keys_without_a_mark(client: driver.Redis, place: SharedPrefix) -> set[bytes]:
    """Give the keys that belong to no run of the kit, killed ones included."""
    keys = set(client.scan_iter(match=place.keys.prefix + b"*", count=AT_ONCE)) - {place.marks}
    words = [_word(mark.namespace) for mark in _marks(client, place)]
    return {key for key in keys if not any(word in key or _holds(client, place, key, word) for word in words)}


def _go(place: SharedPrefix, lab: Lab) -> None:
    mark = Mark.read(lab.prepared)
    if mark is None:
        raise RuntimeError(f"the namespace {lab.namespace} has no mark, so what is there is left as it is")
    _leave(place, mark)


def _leave(place: SharedPrefix, mark: Mark) -> None:
    """Remove the runs of the process that left a mark, and then the mark."""
    word = _word(mark.namespace)
    with client_of(place.address) as client:
        if mark_in(client.hget(place.marks, mark.namespace)) != mark:
            raise RuntimeError(f"{place.prefix}: has no such mark any more, so what is there is left as it is")
        keys = set(client.scan_iter(match=place.keys.prefix + b"*", count=AT_ONCE)) - {place.marks}
        ours = [key for key in keys if word in key or _holds(client, place, key, word)]
        for start in range(0, len(ours), AT_ONCE):
            client.unlink(*ours[start : start + AT_ONCE])
        for key in keys - set(ours):
            if key.startswith(place.keys.indexes):
                _leave_index(client, key, word)
        client.hdel(place.marks, mark.namespace)


def _holds(client: driver.Redis, place: SharedPrefix, key: bytes, word: bytes) -> bool:
    """Say whether a run whose id does not have the word is of a tenant that does."""
    return key.startswith(place.keys.runs) and word in bytes(client.hget(key, "tenant") or b"")  # type: ignore[arg-type]  # bytes, because nothing is decoded


def _leave_index(client: driver.Redis, key: bytes, word: bytes) -> None:
    members: Iterable[bytes] = client.smembers(key)  # type: ignore[assignment]  # bytes, because nothing is decoded
    ours = [member for member in members if word in member]
    if ours:
        client.srem(key, *ours)


def _count(place: SharedPrefix, lab: Lab) -> dict[str, int]:
    """Count what this process stored, by kind."""
    word, keys = _word(lab.namespace), place.keys
    with client_of(place.address) as client:
        found = [key for key in set(client.scan_iter(match=keys.prefix + b"*", count=AT_ONCE)) if word in key]
        runs = [key for key in found if key.startswith(keys.runs)]
        indexes = [key for key in found if key.startswith(keys.indexes)]
        retired = sum(client.hget(key, "state") == RETIRED for key in runs)
        return {
            "runs": len(runs) - retired,
            "retired": retired,
            "index entries": sum(int(client.scard(key)) for key in indexes),
            "other keys": len(found) - len(runs) - len(indexes),
        }


def _word(namespace: str) -> bytes:
    """Give what every id of the process that a namespace belongs to has in it."""
    return namespace.split("_")[1].encode("ascii")


def leftovers_in(place: SharedPrefix) -> list[Leftover]:
    """Find what killed runs left in a shared place: a mark, and with it runs.

    Raises:
        UsageProblem: the server cannot be used.
    """
    try:
        with client_of(place.address) as client:
            found = _marks(client, place)
    except StoreError as error:
        raise UsageProblem(f"{place.address.host}:{place.address.port}: {error}") from error
    return [Leftover("runs", f"{place.prefix}:* of {mark.namespace}", mark, partial(_leave, place, mark)) for mark in found]
