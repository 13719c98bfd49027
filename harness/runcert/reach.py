"""What the kit can get at from outside of a store: noted while the store is opened, because only its adapter knows."""

from __future__ import annotations

from runcert.servers.offers import KINDS

__all__ = ["EVERYTHING", "EVICTING_SERVER", "WIRE", "Reach"]

WIRE = "wire"
"""The adapter takes its addresses from ``lab.route``, so that the kit can stand in its connections."""

EVICTING_SERVER = "evicting-server"
"""The adapter works on a server that the kit starts, of a kind that can be set to evict."""

EVERYTHING = frozenset({WIRE, EVICTING_SERVER})
"""What there can be; what a store really has is known when it was opened."""


class Reach:
    """What an adapter asked its labs for, so far."""

    def __init__(self) -> None:
        self._routes = False
        self._servers: dict[str, str] = {}
        self._of_the_user: set[str] = set()

    def note_route(self) -> None:
        """Note that an address was asked for."""
        self._routes = True

    def note_server(self, name: str, url: str, *, of_the_user: bool = False) -> None:
        """Note that a server was asked for, and its address."""
        self._servers[name] = url
        if of_the_user:
            self._of_the_user.add(name)

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers that were asked for."""
        return tuple(sorted(self._servers))

    @property
    def names(self) -> frozenset[str]:
        """What of :data:`EVERYTHING` there is."""
        return frozenset(({WIRE} if self._routes else set()) | ({EVICTING_SERVER} if self.evicting_servers else set()))

    @property
    def evicting_servers(self) -> dict[str, str]:
        """The servers of the kit's that were asked for and can be set to evict: name and address."""
        mine = {name: url for name, url in sorted(self._servers.items()) if name not in self._of_the_user}
        return {name: url for name, url in mine.items() if name in KINDS and KINDS[name].evicting}
