"""Adapters in any process, and in any language, ask at one socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.places import need

from runcert import Clock, Lab, UsageProblem
from runcert.event_loops import EventLoopThread, LoopStuck
from runcert.problems import AdapterProblem, ServerLost
from runcert.servers.desk import Desk
from runcert.servers.owner import Servers
from runcert.waiting import counted_time, not_counted
from runcert.watchdog import Hang, Watchdog


@pytest.fixture
def desk(servers: Servers) -> Iterator[Desk]:
    opened = Desk(servers)
    yield opened
    opened.close()


def a_lab(desk: Desk | None, directory: Path, servers: dict[str, str] | None = None) -> Lab:
    return Lab(
        "rc_1", directory, Clock(directory / "clock"), servers=servers or {}, desk=desk.address if desk is not None else ""
    )


def say(desk: Desk, line: bytes) -> dict[str, Any]:
    host, port, _ = desk.address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(line + b"\n")
        answer: dict[str, Any] = json.loads(connection.makefile().readline())
        return answer


def test_another_process_with_the_same_lab_gets_the_same_server(desk: Desk, tmp_path: Path) -> None:
    need("valkey", "wheel")
    lab = a_lab(desk, tmp_path)
    program = "import sys; from runcert import Lab; print(Lab.from_json(sys.stdin.read()).server('valkey'))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=lab.to_json(), capture_output=True, text=True, timeout=60, check=True
    )

    assert f"{lab.server('valkey')}\n" == done.stdout


def test_who_does_not_know_the_word_of_the_run_gets_nothing(desk: Desk) -> None:
    question = {"word": "guessed", "ask": "server", "name": "valkey", "settings": {}}

    assert say(desk, json.dumps(question).encode()) == {"trouble": "this is not the word of the run"}


@pytest.mark.parametrize("line", [b"", b"no json", b"[]", b"{}", b'{"word": 1}'])
def test_what_is_no_question_gets_an_answer_all_the_same(desk: Desk, line: bytes) -> None:
    assert set(say(desk, line)) == {"trouble"}


def test_another_service_does_not_exist(desk: Desk) -> None:
    question = {"word": desk.address.split(":")[2], "ask": "coffee"}

    assert say(desk, json.dumps(question).encode()) == {"trouble": "there is no service 'coffee'"}


def test_a_server_that_cannot_be_had_is_a_usage_problem_for_the_adapter(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="give its address with --server cassandra=URL"):
        a_lab(desk, tmp_path).server("cassandra")
    with pytest.raises(UsageProblem, match="a setting is no text, number or bool"):
        a_lab(desk, tmp_path).server("valkey", save=object())  # type: ignore[arg-type]  # that is what is tested


def test_a_server_that_was_lost_is_a_problem_of_the_adapter(
    desk: Desk, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(name: str, settings: object) -> str:
        raise ServerLost(f"{name} is gone")

    monkeypatch.setattr(servers, "url", lost)

    with pytest.raises(AdapterProblem, match=r"lab.server\('valkey'\): valkey is gone"):
        a_lab(desk, tmp_path).server("valkey")


def test_when_the_run_is_over_nobody_answers(servers: Servers, tmp_path: Path) -> None:
    desk = Desk(servers)
    lab = a_lab(desk, tmp_path)
    desk.close()

    with pytest.raises(AdapterProblem, match="the process that owns the servers of this run is gone"):
        lab.server("valkey")


def test_an_address_of_the_user_is_known_without_asking(tmp_path: Path) -> None:
    lab = a_lab(None, tmp_path, {"valkey": "redis://h", "redis": "wheel"})

    assert lab.server("valkey", appendonly=True) == "redis://h"
    assert not lab.starts("valkey")
    with pytest.raises(UsageProblem, match="needs a server 'redis'; give its address"):
        lab.server("redis")


def test_a_lab_says_which_servers_the_kit_starts(desk: Desk, tmp_path: Path) -> None:
    lab = a_lab(desk, tmp_path, {"valkey": "redis://h", "redis": "wheel"})

    assert [False, True, True] == [lab.starts(name) for name in ("valkey", "redis", "postgresql")]
    assert desk.address not in repr(lab)


# -- waiting for the kit is nobody's fault


def test_the_clock_stands_still_while_the_kit_is_waited_for() -> None:
    before = counted_time()
    with not_counted():
        first = counted_time()
        with not_counted():
            wait_until_monotonic(time.monotonic() + 0.05)
        second = counted_time()

    assert first == second
    assert counted_time() - before < 0.05


def wait_until_monotonic(moment: float) -> None:
    while time.monotonic() < moment:
        pass


def test_the_watchdog_does_not_bite_whoever_waits_for_the_kit() -> None:
    hangs: list[Hang] = []
    watchdog = Watchdog(hangs.append)
    with watchdog.watching(lambda: "opening", 0.2), not_counted():
        wait_until_monotonic(time.monotonic() + 0.6)
    watchdog.stop()

    assert hangs == []


def test_an_event_loop_that_waits_for_the_kit_is_not_stuck() -> None:
    loop = EventLoopThread()

    async def waits_for_the_kit() -> int:
        with not_counted():
            wait_until_monotonic(time.monotonic() + 0.6)
        return 7

    async def waits_for_something_else() -> None:
        wait_until_monotonic(time.monotonic() + 0.6)

    assert loop.run(waits_for_the_kit(), 0.2) == 7
    with pytest.raises(LoopStuck):
        loop.run(waits_for_something_else(), 0.2)
    loop.stop()
