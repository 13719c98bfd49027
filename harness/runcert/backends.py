"""What a run stands on and does not own: servers and disks of the user's, watched so that their end is not taken for a fault of the store."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from runcert.masking import without_passwords
from runcert.servers.offers import KINDS

__all__ = ["Backends"]

_PORTS = {kind.scheme.partition("+")[0]: kind.container_port for kind in KINDS.values()} | {"mysql": 3306}
"""The usual port of each kind of server; MySQL is none of the kit's, and may be the user's."""

_SECONDS = 3.0
_FULL = 1024 * 1024
"""With less than so many bytes free a disk is full: the next record may not fit."""


class Backends:
    """The servers that accepted connections, and the disks that had room, when a run began.

    Args:
        urls: what the user typed; what names neither a server nor a directory is left out.
        directories: where the run writes besides.
    """

    def __init__(self, urls: Iterable[str], directories: Iterable[Path] = ()) -> None:
        asked = list(urls)
        servers = {url: place for url in asked if (place := _server_at(url)) is not None}
        self._servers = {url: place for url, place in servers.items() if _accepts(place)}
        disks = [path for url in asked if (path := _directory_at(url)) is not None]
        self._disks = [path for path in [*disks, *directories] if not _is_full(path)]

    def troubles(self) -> list[str]:
        """Say which server accepts no connection any more and which disk is full, without passwords."""
        lost = [url for url, place in self._servers.items() if not _accepts(place)]
        found = [f"the server at {without_passwords(url)} accepts no connections any more" for url in lost]
        return found + [f"the disk of {path} is full" for path in self._disks if _is_full(path)]


def _server_at(url: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme.partition("+")[0])
    except ValueError:
        return None
    return (parts.hostname, port) if "://" in url and parts.hostname and port else None


def _directory_at(url: str) -> Path | None:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("file", "sqlite"):
        return None
    return Path(url2pathname(urlsplit(url).path)) if scheme == "file" else Path(rest.removeprefix("/"))


def _accepts(place: tuple[str, int]) -> bool:
    try:
        with closing(socket.create_connection(place, timeout=_SECONDS)):
            return True
    except (OSError, UnicodeError):  # UnicodeError: a host that can be no name
        return False


def _is_full(path: Path) -> bool:
    """Say whether a disk is full; one that cannot be asked, or says nothing of its size, is not."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return False
    return usage.total > 0 and usage.free < _FULL
