"""One client of a burst in a process of its own: reads orders from standard input, writes what it did to standard output."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from runcert.adapters import Adapter
from runcert.burst_processes import program_named
from runcert.burst_programs import Recorder, run_program
from runcert.event_loops import EventLoopThread
from runcert.faulty import deviations
from runcert.handles import Handle
from runcert.history import Event
from runcert.lab import Lab
from runcert.problems import describe_error
from runcert.targets import resolve
from runcert_contract import JsonValue, decode, encode

_SKEW = 1800.0
"""By how many seconds the clocks of two clients with homes of their own differ."""


@dataclass(frozen=True, slots=True)
class _Client:
    """What stays the same from order to order."""

    number: int
    home: str
    bound: float
    adapter: Adapter
    loop: EventLoopThread | None
    answers: IO[str]


def main() -> None:
    """Serve orders until standard input ends."""
    answers = _take_standard_output()
    spec, number, home, bound = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    try:
        adapter = resolve(spec)[0].adapter
        loop = EventLoopThread() if adapter.claims.asynchronous else None
        client = _Client(number, home, bound, adapter, loop, answers)
        for line in sys.stdin:
            _serve(client, json.loads(line))
    except BaseException as error:  # noqa: BLE001  # the other side is told, whatever it is
        _answer(answers, {"trouble": describe_error(error)})
    os._exit(0)


def _serve(client: _Client, order: dict[str, Any]) -> None:
    before = deviations()
    handle = Handle(client.adapter, _lab(order["lab"], client), f"client {client.number}", loop=client.loop)
    program, work = program_named(order["program"]), decode(order["work"])
    _answer(client.answers, {"ready": client.number})
    recorder = Recorder(client.number)
    ended = threading.Event()
    threading.Thread(target=_watch, args=(client, recorder, ended), daemon=True).start()
    _wait_until(json.loads(sys.stdin.readline())["start_at"])
    run_program(program, work, handle, recorder)
    ended.set()
    handle.close()
    _answer(client.answers, {"events": [_row(event) for event in recorder.events], "deviations": deviations() - before})


def _row(event: Event) -> list[JsonValue]:
    return [event.client, event.process, encode(event.operation), encode(event.outcome), event.called, event.returned]


def _watch(client: _Client, recorder: Recorder, ended: threading.Event) -> None:
    """Report a call that is over its bound, and end the process: nothing else gets out of it."""
    while not ended.wait(0.1):
        running = recorder.running
        if running is not None and time.monotonic() - running[0] > client.bound:
            _answer(client.answers, {"hung": running[1], "client": client.number})
            os._exit(0)


def _lab(text: str, client: _Client) -> Lab:
    """Give the lab of this client: where it has a home of its own, with a directory of its own and a clock that is off."""
    if not client.home:
        return Lab.from_json(text)
    lab = Lab.from_json(text, skew=client.number * _SKEW)
    directory = Path(client.home) / lab.namespace
    directory.mkdir(exist_ok=True)
    return replace(lab, directory=directory)


def _take_standard_output() -> IO[str]:
    """Keep standard output for answers, and send what the store prints to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _answer(answers: IO[str], message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _wait_until(start_at: int) -> None:
    """Start with the others: a busy wait of a few milliseconds is the barrier between processes."""
    while time.monotonic_ns() < start_at:
        pass


if __name__ == "__main__":
    main()
