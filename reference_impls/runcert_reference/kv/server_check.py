"""Which server is refused when a handle is opened, before anything is written there."""

from __future__ import annotations

from runcert_contract import Misconfigured
from runcert_reference.kv.operations import Question

__all__ = ["check_server"]

OLDEST = 7
"""The first release of Redis whose scripts say what they need; every Valkey is newer."""


def check_server() -> Question[None]:
    """Ask a server about itself.

    Reading the answer raises ``Misconfigured`` for a server that is too old, evicts, is a replica or part of a cluster.
    """
    return Question(("INFO",), lambda reply: _check(_facts(reply)), "opening the store")


def _facts(reply: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def _check(facts: dict[str, str]) -> None:
    """Refuse a server by what it says of itself.

    Raises:
        Misconfigured: it cannot hold authoritative records.
    """
    version = facts.get("redis_version", "")
    policy = facts.get("maxmemory_policy", "")
    if not version.partition(".")[0].isdecimal() or int(version.partition(".")[0]) < OLDEST:
        raise Misconfigured(f"the server is of version {version or 'unknown'}, this store needs {OLDEST}.0 or newer")
    if policy != "noeviction":
        raise Misconfigured(
            f"the server evicts records when its memory is full (maxmemory-policy {policy or 'unknown'}); set it to noeviction"
        )
    if facts.get("role") != "master":
        raise Misconfigured("the server is a replica, which may show old records; name the primary")
    if facts.get("cluster_enabled", "0") != "0":
        raise Misconfigured(
            "the server is part of a cluster, which this store does not use; name a server with cluster mode off"
        )
