"""MariaDB."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import ClassVar

from runcert.servers.binaries import Binaries, Unavailable, programs, version_of
from runcert.servers.kinds import HOST, USER, ContainerPlan, Kind, Place, Settings

__all__ = ["MariaDB"]

_VERSION = r"Ver (\S+?)(?:-MariaDB\S*)? for"


class MariaDB(Kind):
    """MariaDB with one user, who may do everything and comes by TCP."""

    name: ClassVar[str] = "mariadb"
    title: ClassVar[str] = "MariaDB"
    way_out: ClassVar[str] = "apt-get install mariadb-server"
    image: ClassVar[str] = "mariadb:11.8"
    container_port: ClassVar[int] = 3306
    scheme: ClassVar[str] = "mysql"
    database: ClassVar[str] = "runcert"
    refuses_root: ClassVar[bool] = True
    ready: ClassVar[re.Pattern[str]] = re.compile("ready for connections")
    port_taken: ClassVar[re.Pattern[str]] = re.compile("Bind on TCP/IP port|Can't start server: Bind|Address already in use")
    stop_signal: ClassVar[int] = getattr(signal, "SIGKILL", signal.SIGTERM)
    reserved: ClassVar[frozenset[str]] = frozenset(
        {
            "port",
            "bind_address",
            "socket",
            "datadir",
            "init_file",
            "log_error",
            "pid_file",
            "skip_networking",
            "skip_grant_tables",
            "user",
        }
    )

    def from_wheel(self) -> Binaries:
        """Say that there is none."""
        raise Unavailable("no wheel bundles MariaDB")

    def from_system(self) -> Binaries:
        """Find the programs in PATH and /usr/sbin."""
        server, initialiser = programs("mariadbd"), programs("mariadb-install-db")
        if not server or not initialiser:
            missing = "mariadbd" if not server else "mariadb-install-db"
            raise Unavailable(f"no {missing} in PATH or /usr/sbin: {self.way_out}")
        return Binaries("system", server[0], version_of(server[0], _VERSION), initialiser[0])

    def lay_out(self, place: Place) -> Mapping[str, str]:
        """Write the statements that make the user and take everybody else away."""
        statements = [
            "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys';",
            "FLUSH PRIVILEGES;",
            f"CREATE DATABASE {self.database};",
            f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{place.password}';",
            f"GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;",
        ]
        return {"server.cnf": _options(place), "init.sql": "\n".join(statements) + "\n"}

    def preparation(self, place: Place) -> Sequence[str]:
        """Make the system tables; how they are written is for speed and holds for this step alone."""
        options = ["--skip-test-db", "--skip-name-resolve", "--auth-root-authentication-method=normal"]
        options += ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF"]
        return [str(place.binaries.initialiser), f"--defaults-file={place.directory / 'server.cnf'}", *options]

    def configuration(self, place: Place) -> Mapping[str, str]:
        """Write the options again, because they name the port."""
        return {"server.cnf": _options(place)}

    def command(self, place: Place) -> Sequence[str]:
        """Run it in the foreground."""
        return [
            str(place.binaries.server),
            f"--defaults-file={place.directory / 'server.cnf'}",
            f"--init-file={place.directory / 'init.sql'}",
        ]

    def in_container(self, password: str, settings: Settings) -> ContainerPlan:
        """Run the official image, in which root is the user who may do everything."""
        environment = {"MARIADB_ROOT_PASSWORD": password, "MARIADB_ROOT_HOST": "%", "MARIADB_DATABASE": self.database}
        options = [f"--{name}={value}" for name, value in {"skip-name-resolve": "ON", **settings}.items()]
        return ContainerPlan(environment, ["mariadbd", *options], "root")

    def answers(self, connection: socket.socket, password: str) -> bool:  # noqa: ARG002  # it greets before any password
        """Wait for its greeting, which has protocol version 10 as its fifth byte."""
        with connection.makefile("rb") as greeting:
            return greeting.read(5)[4:] == b"\x0a"


def _options(place: Place) -> str:
    settings = {
        "innodb_buffer_pool_size": "64M",
        "innodb_log_file_size": "32M",
        "max_connections": "200",
        "character_set_server": "utf8mb4",
        **{name.replace("-", "_"): value for name, value in place.settings.items()},
        "datadir": str(place.data),
        "tmpdir": str(place.directory),
        "socket": "socket",
        "pid_file": str(place.directory / "pid"),
        "bind_address": HOST,
        "port": str(place.port),
        "skip_name_resolve": "ON",
    }
    return "[mysqld]\n" + "".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items())


def _quoted(value: str) -> str:
    """Write a value for an option file, where ``#`` begins a comment outside of quotes."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
