"""Where a user may touch only keys with one beginning, every namespace is there: judged, clean afterwards, and nobody else's keys are touched."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import redis
from tests.command_line import RUNCERT, Runcert
from tests.servers.conftest import a_place
from tests.servers.places import need, wait_until

from runcert import Mark
from runcert.servers.owner import Servers
from runcert_reference.kv.addresses import Address

COMMANDS = ["+info", "+eval", "+scan", "+get", "+set", "+type", "+exists", "+del", "+unlink", "+@hash", "+@set"]
SOME = ("RUN-CREATE-2", "RUN-ID-1", "RUN-ID-4", "RUN-PATH-2", "RUN-RESUMABLE-1", "RUN-RESIDUE-1", "RUN-LIST-4", "RUN-REUSE-1")
ONLY = [part for clause in SOME for part in ("--only", clause)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    need("valkey", "wheel")
    with a_place() as place:
        servers = Servers(place.directory, {})
        yield servers.url("valkey", {})
        servers.stop()


@pytest.fixture
def server(url: str) -> Iterator[Any]:
    """Give a client of the owner, on a server with something of somebody else's."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.set("of somebody", "else")
        client.execute_command("ACL", "SETUSER", "tenant", "reset", "on", ">geheim", "~team:*", *COMMANDS)
        yield client


@pytest.fixture
def shared(url: str, server: Any) -> str:
    address = Address.of(url)
    return f"redis://tenant:geheim@{address.host}:{address.port}/0?namespaces=shared&prefix=team"


def test_the_store_is_certified_but_for_namespaces_and_leaves_nothing(shared: str, server: Any, runcert: Runcert) -> None:
    done = runcert("certify", shared, "--depth", "quick", "-n", "2", expected=0)

    assert "-shared: certified" in done.out
    assert "not certified (namespaces=shared): RUN-NAMESPACE-1" in done.out
    assert "geheim" not in done.out + done.err
    assert [b"of somebody"] == server.keys("*")


def test_runs_of_another_process_there_are_left(shared: str, server: Any, runcert: Runcert) -> None:
    server.hset("team:made-by-runcert", "rc_deadbeef_0", json.dumps(Mark.new("rc_deadbeef_0").to_json()))
    server.hset("team:run:r1-deadbeef", mapping={"tenant": "t", "record": "{}", "version": "0", "state": "resumable"})
    before = sorted(server.keys("*"))
    runcert("certify", shared, "--depth", "quick", "-n", "2", *ONLY, expected=0)
    kept = runcert("clean", shared, expected=0)

    assert before == sorted(server.keys("*"))
    assert "kept             runs team:* of rc_deadbeef_0" in kept.out


def test_keys_without_a_mark_are_somebody_elses(shared: str, server: Any, runcert: Runcert) -> None:
    server.hset("team:run:r1", "record", "theirs")
    done = runcert("certify", shared, "--depth", "quick", expected=2)

    assert "keys that begin with team: are there already, without a mark of the kit" in done.err
    assert [b"of somebody", b"team:run:r1"] == sorted(server.keys("*"))


def test_what_a_killed_run_left_does_not_hide_what_is_somebody_elses(shared: str, server: Any, runcert: Runcert) -> None:
    mark = replace(Mark.new("rc_0123abcd_0"), process="4194304999")
    server.hset("team:made-by-runcert", mark.namespace, json.dumps(mark.to_json()))
    server.hset("team:run:r1-0123abcd", "record", "of the killed run")
    runcert("certify", shared, "--depth", "quick", "--only", "RUN-CREATE-1", expected=0)
    server.hset("team:run:r1", "record", "theirs")
    before = sorted(server.keys("*"))
    done = runcert("certify", shared, "--depth", "quick", expected=2)

    assert "keys that begin with team: are there already, without a mark of the kit" in done.err
    assert before == sorted(server.keys("*"))


def test_what_a_killed_run_left_is_found_and_removed(shared: str, server: Any, runcert: Runcert) -> None:
    with a_place() as place:
        command = [str(RUNCERT), "certify", shared, "--depth", "standard", "-n", "2"]
        with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            wait_until(lambda: len(server.keys("team:run:*")) > 5 or run.poll() is not None)
            run.kill()
        wait_until(lambda: not place.processes)
    left = len(server.keys("team:*"))
    done = runcert("clean", shared, "--format", "json", expected=0)
    (found,) = done.json().values()

    assert left > 5
    assert {"removed"} == {each["done"] for each in found}
    assert [b"of somebody"] == server.keys("*")
    assert "geheim" not in done.out


def test_what_has_no_word_in_its_id_goes_by_its_tenant(shared: str, server: Any, runcert: Runcert) -> None:
    mark = replace(Mark.new("rc_0123abcd_0"), process="4194304999")
    server.hset("team:made-by-runcert", mark.namespace, json.dumps(mark.to_json()))
    server.hset("team:run:", "tenant", "t1-0123abcd")
    server.hset("team:run:theirs", "tenant", "theirs")
    server.sadd("team:resumable:", "r1-0123abcd", "theirs")
    runcert("clean", shared, expected=0)

    assert [b"of somebody", b"team:resumable:", b"team:run:theirs"] == sorted(server.keys("*"))
    assert {b"theirs"} == server.smembers("team:resumable:")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?namespaces=private&prefix=team", "only namespaces=shared&prefix=NAME is known"),
        ("?namespaces=shared", "only namespaces=shared&prefix=NAME is known"),
        ("?namespaces=shared&prefix=a:b", "a namespace has 1 to 64 letters"),
        ("?namespaces=shared&prefix=other", "this user may not run the commands or touch the keys of this store"),
    ],
)
def test_a_place_that_is_none_is_said_in_one_line(shared: str, runcert: Runcert, query: str, message: str) -> None:
    done = runcert("certify", shared.partition("?")[0] + query, "--depth", "quick", expected=2)

    assert message in done.err
    assert 1 == len(done.err.strip().splitlines())
    assert "geheim" not in done.err
