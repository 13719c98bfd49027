"""Servers in containers, through testcontainers, which pulls the image and whose reaper removes what a killed kit leaves."""

from __future__ import annotations

import importlib.util
import logging
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from typing import Any

from runcert.problems import UsageProblem, describe_error
from runcert.servers.guarding import GuardianProcess
from runcert.servers.kinds import Kind, Settings
from runcert.servers.private import Running

__all__ = ["Containers", "image_of", "why_no_containers"]

LABEL = "runcert.run"
"""The label on every container of the kit; its value is the run's own."""

_START_SECONDS = 120.0
_ASK_EVERY = 0.1
_PING_SECONDS = 5
_DEFAULT_HOST = "unix:///var/run/docker.sock"


def image_of(kind: Kind) -> str:
    """Give the image of a server: the one that the environment names, or the official one."""
    return os.environ.get(f"RUNCERT_IMAGE_{kind.name.upper()}") or kind.image


def why_no_containers() -> str:
    """Say why no container can be started here; empty where one can."""
    if importlib.util.find_spec("testcontainers") is None:
        return "the package testcontainers is not installed: pip install 'runcert[containers]'"
    host = _docker_host()
    try:
        _reach(host)
    except Exception as error:  # noqa: BLE001  # whatever the library of Docker raises means that there is no Docker
        return (
            f"no Docker answers at {host or _DEFAULT_HOST} ({describe_error(_cause_of(error))}): start it, or set DOCKER_HOST"
        )
    return ""


def _docker_host() -> str:
    """Give where testcontainers looks for Docker: its own setting, DOCKER_HOST, or the current context; empty for the default."""
    from testcontainers.core.docker_client import get_docker_host  # noqa: PLC0415  # comes with an extra

    return get_docker_host() or ""


def _reach(host: str) -> None:
    """Ask Docker for a sign of life; a socket that is not there is noticed without its library, which leaks one then."""
    scheme, _, path = (host or _DEFAULT_HOST).partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    import docker  # noqa: PLC0415  # comes with an extra

    client = docker.DockerClient(base_url=host, timeout=_PING_SECONDS) if host else docker.from_env(timeout=_PING_SECONDS)
    try:
        client.ping()
    finally:
        client.close()


def _cause_of(error: BaseException) -> BaseException:
    """Give the innermost error, which says what is the matter in the fewest words."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error


class Containers:
    """Starts the containers of one run, and removes them.

    Args:
        guardian: removes them when the kit is killed, also where the reaper of testcontainers is switched off.
    """

    def __init__(self, guardian: GuardianProcess) -> None:
        self._guardian = guardian
        self._token = secrets.token_hex(8)
        self._guarded = False

    def start(self, kind: Kind, settings: Settings) -> Running:
        """Start a container and wait until clients may come.

        Raises:
            UsageProblem: it does not start.
        """
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415  # comes with an extra

        _be_quiet()
        if not self._guarded:
            self._guardian.run_at_end(
                [sys.executable, "-P", "-m", "runcert.servers.container_removal", f"{LABEL}={self._token}", _docker_host()]
            )
            self._guarded = True
        image, password = image_of(kind), secrets.token_hex(16)
        plan = kind.in_container(password, settings)
        container = DockerContainer(image).with_exposed_ports(kind.container_port).with_command(list(plan.command))
        container.with_envs(**plan.environment).with_kwargs(labels={LABEL: self._token})
        _publish_privately(container, kind)
        try:
            container.start()
            host, port = container.get_container_host_ip(), int(container.get_exposed_port(kind.container_port))
            _wait_until_ready(kind, container, host, port, password)
        except Exception as error:
            raise UsageProblem(
                f"{kind.title} (container of {image}) did not start: {describe_error(error)}{_log_of(container)}"
            ) from error
        return Running(kind.url(plan.user, password, host, port), kind.title, image, "containers")


def _publish_privately(container: Any, kind: Kind) -> None:
    """Publish the port on 127.0.0.1 alone, where that is how the containers of this machine are reached.

    A kit that runs inside a container reaches others by the gateway, or by their own address, and not by its own 127.0.0.1.
    """
    local = not os.environ.get("DOCKER_HOST", "").startswith(("tcp://", "ssh://", "http"))
    client = container.get_docker_client()
    if local and client.get_connection_mode().value == "docker_host" and client.host() in ("localhost", "127.0.0.1"):
        container.ports[f"{kind.container_port}/tcp"] = ("127.0.0.1",)
        container.ports.pop(str(kind.container_port), None)


def _wait_until_ready(kind: Kind, container: Any, host: str, port: int, password: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((host, port), timeout=2) as connection:
            connection.settimeout(2)
            if kind.answers(connection, password):
                return
        container.reload()
        if container.status in ("exited", "dead"):
            raise RuntimeError(f"the container is {container.status}")
        time.sleep(_ASK_EVERY)  # between two questions; the loop ends by the answer or its deadline
    raise TimeoutError(f"no answer at {host}:{port} for {_START_SECONDS:g} s")


def _log_of(container: Any) -> str:
    try:
        written = b"".join(container.get_logs()).decode("utf-8", "replace").splitlines()[-12:]
    except Exception:  # noqa: BLE001  # there is no container, or Docker is gone: then there is no log
        return ""
    return "\nIt wrote last:\n" + "\n".join(f"  | {line[:300]}" for line in written) if written else ""


def _be_quiet() -> None:
    for name in ("testcontainers", "docker", "urllib3"):
        logging.getLogger(name).setLevel(logging.ERROR)
