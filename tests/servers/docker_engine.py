"""A real Docker for tests: the one that answers, or one that is started for the test, with images made of this machine's programs.

No registry is asked.  An image is a tar file of a server's programs, the libraries that ``ldd`` names, and the few files that they
read; ``docker import`` makes an image of it, under a tag that nobody else uses.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException
from tests.servers.places import wait_until

from runcert.servers.binaries import Unavailable
from runcert.servers.offers import KINDS

__all__ = ["Engine", "docker_engine", "image_of_postgresql", "image_of_redis"]

_NOBODY = 65534
_LOCK = Path(tempfile.gettempdir()) / "runcert-tests-docker.lock"
"""Held by whoever has an engine of its own: two of them would fight for one bridge."""


class Engine:
    """A Docker that answers.

    Args:
        host: where it answers.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.client = docker.DockerClient(base_url=host)

    def containers_of_the_kit(self) -> list[str]:
        """Give the names of the containers that a run of the kit left, running or not."""
        return [str(container.name) for container in self._found()]

    def published_addresses(self) -> list[str]:
        """Give the addresses of this machine on which those containers can be reached."""
        ports = [found for container in self._found() for found in container.ports.values()]
        return [binding["HostIp"] for bindings in ports for binding in bindings or []]

    def _found(self) -> list[Any]:
        # one that goes while the list is made is no error
        return list(self.client.containers.list(all=True, filters={"label": "runcert.run"}, ignore_removed=True))

    def make_image(self, name: str, content: bytes, changes: list[str]) -> str:
        """Make an image of a tar file.

        Args:
            name: what it is called.
            content: the tar file.
            changes: instructions as in a Dockerfile.
        """
        self.client.api.import_image_from_data(content, repository=name, tag="local", changes=changes)
        return f"{name}:local"

    def close(self) -> None:
        """Remove the images, and leave."""
        for image in self.client.images.list():
            for tag in image.tags:
                if tag.startswith("runcert-test-"):
                    self.client.images.remove(tag, force=True)
        self.client.close()


@contextmanager
def docker_engine() -> Iterator[Engine]:
    """Give the Docker that answers at its usual place, or start one; skip where there can be none, and fail on a build machine."""
    running = _usual_host()
    if running is not None:
        engine = Engine(running)
        try:
            yield engine
        finally:
            engine.close()
        return
    dockerd = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sys.platform != "linux" or os.geteuid() != 0 or dockerd is None:
        _cannot_be_had(f"no Docker answers, and to start one takes root and dockerd (apt-get install docker.io): {dockerd}")
        return
    with _alone(), _started(dockerd) as host:
        engine = Engine(host)
        try:
            yield engine
        finally:
            engine.close()


def _cannot_be_had(why: str) -> None:
    if "CI" in os.environ:
        pytest.fail(f"Docker may not be missing here: {why}")
    pytest.skip(why)


def _usual_host() -> str | None:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if host.startswith("unix://") and not Path(host.removeprefix("unix://")).exists():
        return None
    with suppress(DockerException):
        client = docker.DockerClient(base_url=host, timeout=10)
        client.ping()
        client.close()
        return host
    return None


@contextmanager
def _alone() -> Iterator[None]:
    import fcntl  # noqa: PLC0415  # Linux only, as is what follows

    with _LOCK.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _started(dockerd: str) -> Iterator[str]:
    """Start an engine whose every file lies in a directory of its own, and stop it with all its containers."""
    directory = Path(tempfile.mkdtemp(prefix="rcd-", dir="/tmp"))
    socket, log = directory / "docker.sock", directory / "log"
    command = [dockerd, "--host", f"unix://{socket}", "--data-root", str(directory / "data")]
    command += ["--exec-root", str(directory / "exec"), "--pidfile", str(directory / "pid"), "--shutdown-timeout", "2"]
    command += [
        "--iptables=false",
        "--ip-forward=false",
        "--ip-masq=false",
    ]  # this machine's network stays as it is; ports go by a proxy
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_until(lambda: process.poll() is not None or b"API listen on" in log.read_bytes())
            if process.poll() is not None:
                lines = [line for line in log.read_text(errors="replace").splitlines() if "level=info" not in line]
                _cannot_be_had(f"dockerd ended with status {process.returncode}: {' | '.join(lines[-5:])}")
            yield f"unix://{socket}"
        finally:
            process.terminate()
            process.wait(timeout=60)
    finally:
        _unmount_below(directory)
        shutil.rmtree(directory, ignore_errors=True)


def _unmount_below(directory: Path) -> None:
    """Let go of what a stopped engine left mounted (network namespaces)."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for mount in sorted((one for one in mounts if one.startswith(f"{directory}/")), reverse=True):
        subprocess.run(["umount", mount], check=False, capture_output=True)


# -- images


def image_of_redis(engine: Engine) -> str:
    """Make an image of the Redis that is installed here: the server in PATH, a shell, a working directory that can be written."""
    server = KINDS["redis"].from_system().server
    tree = _Tree()
    tree.add_programs([server, Path("/bin/sh")])
    tree.add_link("/usr/bin/redis-server", server)
    tree.add_directory("/srv", owner=0)
    return engine.make_image("runcert-test-redis", tree.content(), ["WORKDIR /srv", "ENV PATH=/usr/bin:/bin"])


_POSTGRESQL_ENTRY = """#!/bin/sh
set -e
umask 077
printf %s "$POSTGRES_PASSWORD" > /srv/password
initdb --pgdata=/srv/data --username="$POSTGRES_USER" --pwfile=/srv/password $POSTGRES_INITDB_ARGS
echo "host all all all scram-sha-256" >> /srv/data/pg_hba.conf
shift
exec postgres -D /srv/data -c listen_addresses='*' -c unix_socket_directories= "$@"
"""


def image_of_postgresql(engine: Engine) -> str:
    """Make an image of the PostgreSQL that is installed here, which takes what the kit gives the official one."""
    binaries = KINDS["postgresql"].from_system()
    programs = binaries.server.resolve().parent
    version = programs.parent.name
    tree = _Tree()
    tree.add_programs([programs / "postgres", programs / "initdb", Path("/bin/sh"), Path("/usr/bin/locale")])
    tree.add_programs(sorted(programs.parent.glob("lib/*.so")))
    tree.add(Path(f"/usr/share/postgresql/{version}"))
    tree.add(Path("/usr/lib/locale/C.utf8"))
    tree.add(Path("/usr/share/zoneinfo/Etc/UTC"))
    tree.add_text("/etc/passwd", f"nobody:x:{_NOBODY}:{_NOBODY}::/srv:/bin/sh\n")
    tree.add_text("/entry.sh", _POSTGRESQL_ENTRY, mode=0o755)
    tree.add_directory("/srv", owner=_NOBODY)
    tree.add_directory("/tmp", owner=_NOBODY)
    changes = [f"USER {_NOBODY}", "WORKDIR /srv", f"ENV PATH={programs}:/usr/bin:/bin", 'ENTRYPOINT ["/bin/sh", "/entry.sh"]']
    return engine.make_image("runcert-test-postgresql", tree.content(), changes)


class _Tree:
    """The files of an image, gathered from this machine."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._buffer, mode="w")  # noqa: SIM115  # closed by content()
        self._names: set[str] = set()

    def add_programs(self, programs: Iterable[Path]) -> None:
        """Add programs, or libraries, with every library that they need."""
        for program in programs:
            self.add(program)
            for library in _libraries_of(program):
                self.add(library)

    def add(self, path: Path) -> None:
        """Add a file, what a link leads to under the name of the link, or a whole directory."""
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and str(file) not in self._names:
                self._add_bytes(str(file), file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)

    def add_text(self, name: str, text: str, mode: int = 0o644) -> None:
        """Add a file with this text."""
        self._add_bytes(name, text.encode(), mode)

    def add_directory(self, name: str, owner: int) -> None:
        """Add an empty directory that its owner may write."""
        entry = tarfile.TarInfo(name.lstrip("/"))
        entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o755, owner, owner
        self._tar.addfile(entry)

    def add_link(self, name: str, target: Path) -> None:
        """Add a link, unless the target has that name itself."""
        if str(target) != name:
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, str(target)
            self._tar.addfile(entry)

    def content(self) -> bytes:
        """Give the tar file."""
        self._tar.close()
        return self._buffer.getvalue()

    def _add_bytes(self, name: str, content: bytes, mode: int) -> None:
        self._names.add(name)
        entry = tarfile.TarInfo(name.lstrip("/"))
        entry.size, entry.mode = len(content), mode
        self._tar.addfile(entry, io.BytesIO(content))


def _libraries_of(program: Path) -> list[Path]:
    """Give the libraries that a program loads, and the loader itself."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    if "not found" in done.stdout:
        raise Unavailable(f"{program} misses a library: {done.stdout}")
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", done.stdout)]
