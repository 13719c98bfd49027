"""Marks tell who made something, and whether that process is still at work."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from runcert.marks import Maker, Mark

MINE = Mark.new("rc_1")
ENDED = subprocess.Popen([sys.executable, "-c", ""])  # its number is kept by nobody once it was waited for
ENDED.wait()


def test_a_mark_is_read_as_it_was_written() -> None:
    assert MINE == Mark.read(MINE.to_json())
    assert (MINE.namespace, MINE.host, MINE.process) == ("rc_1", socket.gethostname(), str(os.getpid()))
    assert MINE.mark != Mark.new("rc_1").mark


@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"namespace": "rc_1"}, MINE.to_json() | {"more": "x"}, MINE.to_json() | {"mark": 7}]
)
def test_anything_else_is_no_mark(data: object) -> None:
    assert Mark.read(data) is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell processes of one number apart")
@pytest.mark.parametrize(
    ("mark", "maker"),
    [
        (MINE, Maker.AT_WORK),
        (replace(MINE, process=str(ENDED.pid)), Maker.GONE),
        (replace(MINE, process="99999999999999999999"), Maker.GONE),
        (replace(MINE, process="1"), Maker.GONE),  # another process of that number: it started at another time
        (replace(MINE, started="another boot/pid:[1]/1"), Maker.GONE),
        (replace(MINE, started=MINE.started.replace("pid:[", "pid:[1")), Maker.ELSEWHERE),
        (replace(MINE, host="another-machine"), Maker.ELSEWHERE),
        (replace(MINE, process="-1"), Maker.ELSEWHERE),
        (replace(MINE, process=""), Maker.ELSEWHERE),
    ],
)
def test_whether_the_maker_is_at_work_is_seen_from_its_own_machine(mark: Mark, maker: Maker) -> None:
    assert maker is mark.maker


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_that_ended_and_was_not_waited_for_is_gone() -> None:
    code = "from runcert.marks import Mark; import json; print(json.dumps(Mark.new('rc_1').to_json()), flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = process.stdout.read()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        mark = Mark.read(json.loads(written))
        assert mark is not None
        assert mark.maker is Maker.GONE
