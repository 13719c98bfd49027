"""How containers are asked for, with a Docker made up for the test; real ones are in test_real_containers."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.servers.clients import version_at
from tests.servers.places import Place, need

from runcert.problems import UsageProblem
from runcert.servers import container_removal, containers
from runcert.servers.containers import Containers, image_of, why_no_containers
from runcert.servers.guarding import Guarded, GuardianProcess
from runcert.servers.offers import KINDS, all_offers
from runcert.servers.owner import Servers
from runcert.servers.private import free_port


class MadeUpContainer:
    """Stands for a container of testcontainers; behind its port is whatever the test put there."""

    port = 0
    host = "127.0.0.1"
    mode = "docker_host"
    status = "running"
    made: list[MadeUpContainer]

    def __init__(self, image: str) -> None:
        self.image = image
        self.env: dict[str, str] = {}
        self.ports: dict[str, Any] = {}
        self.command: list[str] = []
        self.labels: dict[str, str] = {}
        self.started = False
        type(self).made.append(self)

    def with_exposed_ports(self, port: int) -> MadeUpContainer:
        self.ports[str(port)] = None
        return self

    def with_command(self, command: list[str]) -> MadeUpContainer:
        self.command = command
        return self

    def with_envs(self, **variables: str) -> MadeUpContainer:
        self.env = variables
        return self

    def with_kwargs(self, labels: dict[str, str]) -> MadeUpContainer:
        self.labels = labels
        return self

    def get_docker_client(self) -> MadeUpContainer:
        return self

    def start(self) -> None:
        if self.image == "missing":
            raise LookupError("no such image")
        self.started = True

    def get_container_host_ip(self) -> str:
        return self.host

    def get_exposed_port(self, port: int) -> int:
        return self.port

    def reload(self) -> None:
        pass

    def get_logs(self) -> tuple[bytes, bytes]:
        return b"out\n", b"err\n"


class Docker(MadeUpContainer):
    """The same, with the host as the client of Docker gives it."""

    def get_docker_client(self) -> Any:
        host, mode = self.host, self.mode

        class Client:
            def host(self) -> str:
                return host

            def get_connection_mode(self) -> SimpleNamespace:
                return SimpleNamespace(value=mode)

        return Client()


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> type[Docker]:
    module = ModuleType("testcontainers.core.container")
    module.DockerContainer = Docker  # type: ignore[attr-defined]  # a module made up
    monkeypatch.setattr(containers, "_docker_host", lambda: "unix:///made-up")
    for name in ("testcontainers", "testcontainers.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "testcontainers.core.container", module)
    for name, value in {"made": [], "host": "127.0.0.1", "mode": "docker_host", "status": "running"}.items():
        monkeypatch.setattr(Docker, name, value, raising=False)
    return Docker


class NoGuardian(GuardianProcess):
    """A guardian that only notes what it would run at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[list[str]] = []

    def run_at_end(self, command: Any) -> None:
        self.commands.append(list(command))


ASKED: dict[str, dict[str, str]] = {
    "postgresql": {"synchronous_commit": "off"},
    "mariadb": {"innodb_flush_log_at_trx_commit": "2"},
    "valkey": {"maxmemory-policy": "allkeys-lru"},
    "redis": {"appendonly": "yes"},
}


@pytest.fixture
def behind(lasting: Servers, request: pytest.FixtureRequest, docker: type[Docker]) -> str:
    """Start a private server and put it where the made up container is said to be."""
    name = str(request.param)
    need(name, {"postgresql": "wheel", "valkey": "wheel"}.get(name, "system"))
    docker.port = int(lasting.url(name, {}).rpartition(":")[2].partition("/")[0])
    return name


@pytest.mark.parametrize("behind", ["postgresql", "mariadb"], indirect=True)
def test_a_container_is_ready_when_its_server_answers(
    behind: str, docker: type[Docker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"RUNCERT_IMAGE_{behind.upper()}", "mine:1")
    guardian = NoGuardian()
    running = Containers(guardian).start(KINDS[behind], ASKED[behind])
    (made,) = docker.made
    password = running.url.partition("@")[0].rpartition(":")[2]
    ((name, value),) = ASKED[behind].items()

    assert ("mine:1", "containers", True) == (made.image, running.way, made.started)
    assert password in made.env.values()
    assert any(f"{name}={value}" in part for part in made.command)
    assert not any(password in part for part in made.command)
    assert {f"{KINDS[behind].container_port}/tcp": ("127.0.0.1",)} == made.ports
    assert [[f"runcert.run={made.labels['runcert.run']}", "unix:///made-up"]] == [command[-2:] for command in guardian.commands]
    assert f":{docker.port}/" in running.url


@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_the_command_of_the_image_starts_a_server_that_takes_the_password(
    name: str, docker: type[Docker], tmp_path: Path
) -> None:
    need(name, {"valkey": "wheel"}.get(name, "system"))
    kind = KINDS[name]
    plan = kind.in_container("pass-word", ASKED[name])
    program = (kind.from_wheel() if name == "valkey" else kind.from_system()).server
    docker.port = free_port()
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", **plan.environment}
    process = subprocess.Popen(
        [*plan.command, "--port", str(docker.port), "--bind", "127.0.0.1"],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    url = kind.url(plan.user, "pass-word", "127.0.0.1", docker.port)
    try:
        containers._wait_until_ready(kind, docker("image"), "127.0.0.1", docker.port, "pass-word")
        settings = pytest.importorskip("redis").Redis.from_url(url).config_get()

        assert version_at(url)
        assert [settings[setting] for setting in ASKED[name]] == list(ASKED[name].values())
        assert settings["save"] == ""
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.raises(ConnectionRefusedError):  # the shell became the server: who stops the one stops the other
        socket.create_connection(("127.0.0.1", docker.port), timeout=5)


@pytest.mark.parametrize(
    ("host", "mode"), [("172.17.0.1", "docker_host"), ("localhost", "gateway_ip"), ("localhost", "bridge_ip")]
)
def test_a_container_whose_host_is_elsewhere_publishes_its_port_there(
    docker: type[Docker], monkeypatch: pytest.MonkeyPatch, host: str, mode: str
) -> None:
    monkeypatch.setattr(docker, "host", host)
    monkeypatch.setattr(docker, "mode", mode)
    container = docker("image").with_exposed_ports(5432)
    containers._publish_privately(container, KINDS["postgresql"])

    assert container.ports == {"5432": None}


def test_an_image_that_cannot_be_had_is_a_usage_problem(docker: type[Docker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNCERT_IMAGE_REDIS", "missing")

    with pytest.raises(
        UsageProblem, match=r"(?s)Redis \(container of missing\) did not start: LookupError: no such image.*\| err"
    ):
        Containers(NoGuardian()).start(KINDS["redis"], {})


def test_a_container_that_ends_is_not_waited_for(docker: type[Docker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker, "status", "exited")
    monkeypatch.setattr(docker, "port", free_port())

    with pytest.raises(UsageProblem, match="the container is exited"):
        Containers(NoGuardian()).start(KINDS["valkey"], {})


@pytest.fixture
def says() -> Iterator[Any]:
    """Give a server that says something to whoever connects and then closes."""
    listeners: list[socket.socket] = []

    def serve(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=answer_once, args=(listener, answer), daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    yield serve
    for listener in listeners:
        listener.close()


def answer_once(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(100)


@pytest.mark.parametrize(
    ("name", "answer", "ready"),
    [
        ("postgresql", b"R\0\0\0\x17", True),
        ("postgresql", b"E57P03 the database system is starting up", False),
        ("postgresql", b"", False),
        ("mariadb", b"\x5d\0\0\0\x0a11.8.2-MariaDB\0", True),
        ("mariadb", b"\x17\0\0\0\xff\x10\x04Too many connections", False),
        ("mariadb", b"", False),
        ("valkey", b"+OK\r\n+PONG\r\n", True),
        ("redis", b"+OK\r\n-LOADING\r\n", False),
        ("redis", b"", False),
    ],
)
def test_a_server_is_ready_when_it_says_so_and_not_before(says: Any, name: str, answer: bytes, ready: bool) -> None:
    assert answered(name, says(answer)) is ready


def answered(name: str, port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            return KINDS[name].answers(connection, "p")
        except OSError:
            return False


# -- whether there are containers at all


def test_without_testcontainers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    assert why_no_containers() == "the package testcontainers is not installed: pip install 'runcert[containers]'"


def test_without_docker_it_is_said_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    assert why_no_containers().startswith("no Docker answers at unix:///nowhere/docker.sock (FileNotFoundError")


def test_where_docker_answers_the_image_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runcert.servers.offers.why_no_containers", lambda: "")
    monkeypatch.setenv("RUNCERT_IMAGE_MARIADB", "mine:2")
    offers = {(offer.server, offer.way): offer for offer in all_offers({"mariadb": "containers"})}

    assert ("mine:2", True, True) == tuple(
        getattr(offers["mariadb", "containers"], field) for field in ("path", "available", "chosen")
    )
    assert image_of(KINDS["valkey"]) == offers["valkey", "containers"].path
    assert not offers["mariadb", "system"].chosen


def test_a_run_takes_containers_where_it_was_told_to(
    docker: type[Docker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Any
) -> None:
    monkeypatch.setattr("runcert.servers.offers.why_no_containers", lambda: "")
    monkeypatch.setattr(docker, "port", says(b"+OK\r\n+PONG\r\n"))
    servers = Servers(tmp_path, {"redis": "containers"})
    try:
        assert servers.url("redis", {}) == servers.url("redis", {})
        assert len(docker.made) == 1
    finally:
        servers.stop()


class LabelledContainer:
    """A container that is there until it is removed."""

    def __init__(self) -> None:
        self.removed: dict[str, bool] = {}

    def remove(self, **how: bool) -> None:
        self.removed = how


class DockerLibrary(ModuleType):
    """Stands for the library of Docker."""

    def __init__(self) -> None:
        super().__init__("docker")
        self.container = LabelledContainer()
        self.calls: list[Any] = []
        self.containers = self

    def DockerClient(self, **how: Any) -> DockerLibrary:  # noqa: N802  # as in the library
        self.calls.append(how)
        return self

    def from_env(self, **how: Any) -> DockerLibrary:
        return self.DockerClient(**how)

    def list(self, **how: Any) -> list[LabelledContainer]:
        self.calls.append(how)
        return [self.container]

    def ping(self) -> None:
        self.calls.append("ping")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(("host", "how"), [("unix:///made-up", {"base_url": "unix:///made-up"}), ("", {})])
def test_at_the_end_every_container_of_the_run_is_removed(
    monkeypatch: pytest.MonkeyPatch, host: str, how: dict[str, str]
) -> None:
    library = DockerLibrary()
    monkeypatch.setitem(sys.modules, "docker", library)
    monkeypatch.setattr(sys, "argv", ["container_removal", "runcert.run=7", host])
    container_removal.main()

    assert library.calls == [how, {"all": True, "filters": {"label": "runcert.run=7"}}]
    assert library.container.removed == {"force": True, "v": True}


def test_docker_is_asked_for_a_sign_of_life(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    pytest.importorskip("testcontainers")
    library, path = DockerLibrary(), place.directory / "docker.sock"
    monkeypatch.setitem(sys.modules, "docker", library)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        monkeypatch.setattr(containers, "_docker_host", lambda: f"unix://{path}")

        assert why_no_containers() == ""
        assert library.calls == [{"base_url": f"unix://{path}", "timeout": 5}, "ping", "close"]


def test_an_end_is_told_in_words() -> None:
    ends = [
        Guarded("a", status=3),
        Guarded("b", status=-9),
        Guarded("c", message="PermissionError: no"),
        Guarded("d", pid=4, message="killed"),
    ]

    assert [end.end_in_words for end in ends] == [
        "ended with status 3",
        "was ended by signal 9 (SIGKILL)",
        "could not be started (PermissionError: no)",
        "is gone (killed)",
    ]
