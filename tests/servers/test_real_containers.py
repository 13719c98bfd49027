"""Containers for real: Docker's own engine, images of this machine's PostgreSQL and Redis, and nothing left of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.command_line import RUNCERT, Runcert
from tests.servers.docker_engine import Engine, docker_engine, image_of_postgresql, image_of_redis
from tests.servers.places import STORES, Place, need, wait_until


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker_engine() as made:
        yield made


@pytest.fixture(scope="module")
def surroundings(engine: Engine) -> dict[str, str]:
    """Give what a user sets who has images of their own; the reaper's image cannot be had without a registry."""
    for name in ("postgresql", "redis"):
        need(name, "system")
    return {
        "DOCKER_HOST": engine.host,
        "RUNCERT_IMAGE_POSTGRESQL": image_of_postgresql(engine),
        "RUNCERT_IMAGE_REDIS": image_of_redis(engine),
        "TESTCONTAINERS_RYUK_DISABLED": "true",
    }


def test_postgresql_and_redis_are_certified_in_containers(
    engine: Engine, surroundings: dict[str, str], runcert: Runcert, tmp_path: Path
) -> None:
    ways = ["--server", "postgresql=containers", "--server", "redis=containers"]
    runcert(
        *("certify", "postgresql", "redis", *ways, "--depth", "quick", "--out", "results", "--seed", "1"),
        env=surroundings,
        expected=0,
    )
    certificates = {
        name: json.loads((tmp_path / "results" / name / "certificate.json").read_bytes()) for name in ("postgresql", "redis")
    }

    assert {"certified"} == {certificate["verdict"] for certificate in certificates.values()}
    for name, certificate in certificates.items():
        assert [name] == list(certificate["servers"])
        assert "container" in certificate["servers"][name]
    assert [] == engine.containers_of_the_kit()


def test_the_table_of_servers_names_the_images(surroundings: dict[str, str], runcert: Runcert) -> None:
    done = runcert("servers", "--format", "json", env=surroundings, expected=0)
    images = {row["server"]: row["path"] for row in done.json() if row["way"] == "containers" and row["available"]}

    assert (surroundings["RUNCERT_IMAGE_POSTGRESQL"], "mariadb:11.8") == (images["postgresql"], images["mariadb"])


def test_an_image_that_ends_at_once_says_what_it_wrote(engine: Engine, surroundings: dict[str, str], runcert: Runcert) -> None:
    wrong = surroundings | {"RUNCERT_IMAGE_POSTGRESQL": surroundings["RUNCERT_IMAGE_REDIS"]}
    done = runcert("certify", "postgresql", "--server", "postgresql=containers", "--depth", "quick", env=wrong, expected=2)

    assert "PostgreSQL (container of runcert-test-redis:local) did not start: " in done.err
    assert [] == engine.containers_of_the_kit()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_leaves_no_container(
    engine: Engine, surroundings: dict[str, str], place: Place, number: signal.Signals
) -> None:
    """The port of the container is this machine's alone, unless the kit runs in a container itself, which has to be left out here."""
    waiting = place.directory.parent / f"{place.directory.name}.waiting"
    command = [str(RUNCERT), "certify", f"{STORES}:that_waits_on_postgresql", "--server", "postgresql=containers"]
    here = {"WAITING": str(waiting), "TESTCONTAINERS_CONNECTION_MODE": "docker_host"}
    environment = place.environment | surroundings | here
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: waiting.exists() or process.poll() is not None)
            had, addresses = engine.containers_of_the_kit(), engine.published_addresses()
            os.kill(process.pid, number)
        finally:
            waiting.unlink(missing_ok=True)
    wait_until(lambda: not engine.containers_of_the_kit() and place.is_clean)

    assert (1, ["127.0.0.1"]) == (len(had), addresses)
