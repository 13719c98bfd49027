"""Where a server is, taken from a URL; nothing of the URL reaches the driver unread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

from runcert_contract import Misconfigured

__all__ = ["Address"]

_FORM = "redis://user:password@host:port/database"


@dataclass(frozen=True, slots=True)
class Address:
    """A database of a server; ``repr`` leaves out the password."""

    host: str
    port: int = 6379
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL ``redis://user:password@host:port/database``; everything but the host may be left out.

        Options behind ``?`` are refused: the driver would let them replace the time-outs and retries that this store needs.

        Raises:
            Misconfigured: it is no such URL; the message does not repeat it, because it may hold a password.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise Misconfigured(f"the address of the server cannot be read; write {_FORM}") from error
        database = parts.path.strip("/") or "0"
        if parts.scheme != "redis" or not host or parts.query or parts.fragment or not database.isdecimal():
            raise Misconfigured(f"the address of the server is written {_FORM}, without anything else")
        return cls(host, port or 6379, int(database), _given(parts.username), _given(parts.password))


def _given(part: str | None) -> str | None:
    return unquote(part) if part else None
