"""One client of a burst in a process of its own: reads orders from standard input, writes what it did to standard output."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import IO, Any

from runcert.bursts import Recorder, program_named, run_program
from runcert.event_loops import EventLoopThread
from runcert.faulty import deviations
from runcert.handles import Handle
from runcert.lab import Lab
from runcert.problems import describe_error
from runcert.targets import resolve
from runcert_contract import decode, encode


def main() -> None:
    """Serve orders until standard input ends."""
    answers = _take_standard_output()
    spec, client, skew = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    loop: EventLoopThread | None = None
    try:
        adapter = resolve(spec)[0].adapter
        loop = EventLoopThread() if adapter.claims.asynchronous else None
        for line in sys.stdin:
            order = json.loads(line)
            handle = Handle(adapter, Lab.from_json(order["lab"], skew), f"client {client}", loop=loop)
            _answer(answers, {"ready": client})
            recorder = Recorder(client)
            before = deviations()
            _wait_until(json.loads(sys.stdin.readline())["start_at"])
            run_program(program_named(order["program"]), decode(order["work"]), handle, recorder)
            handle.close()
            rows = [[e.client, e.process, encode(e.operation), encode(e.outcome), e.called, e.returned] for e in recorder.events]
            _answer(answers, {"events": rows, "deviations": deviations() - before})
    except BaseException as error:  # noqa: BLE001  # the other side is told, whatever it is
        _answer(answers, {"trouble": describe_error(error)})
    os._exit(0)


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
