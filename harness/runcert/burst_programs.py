"""The programs that the clients of a burst run, and what is noted of each client.

A program is a generator that yields operations and is sent their outcomes, so that one program runs in threads, in tasks of an
event loop and in other processes alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from runcert.checks import Violation
from runcert.handles import Handle
from runcert.history import Event
from runcert_contract import Operation, Outcome, Returned

__all__ = ["CLIENTS", "OVERTIME", "Pause", "Program", "Recorder", "hanging", "run_program"]

CLIENTS = 4
"""How many clients a burst has."""

OVERTIME = 1.0
"""How many seconds a call may take beyond the declared maximum wait before it counts as hanging: a busy machine is no fault."""

Program: TypeAlias = Callable[[int, Any], Generator[Operation, Outcome, None]]
"""``program(client, work)``: what one client does; ``work`` is data that :func:`runcert_contract.encode` can write.

It is a function of a module, so that client processes can find it by name.
"""


@dataclass(frozen=True, slots=True)
class Pause(Operation):
    """What a program yields in order to wait; it is no call and leaves no event."""

    method: ClassVar[str] = "pause"
    seconds: float


class Recorder:
    """What one client did, and when.

    Attributes:
        client: the number of the client.
        events: its calls.
        running: since when it is in a call, and in which; None between calls.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.events: list[Event] = []
        self.running: tuple[float, str] | None = None

    def begin(self, operation: Operation) -> int:
        """Note that a call begins now, and give the time."""
        self.running = (time.monotonic(), operation.method)
        return time.monotonic_ns()

    def end(self, operation: Operation, outcome: Outcome, called: int) -> None:
        """Note that a call ended now."""
        self.events.append(Event(self.client, os.getpid(), operation, outcome, called, time.monotonic_ns()))
        self.running = None


def run_program(program: Program, work: object, handle: Handle, recorder: Recorder) -> None:
    """Run one client's program on one handle."""
    steps = program(recorder.client, work)
    with suppress(StopIteration):
        operation = next(steps)
        while True:
            operation = steps.send(_perform(operation, handle, recorder))


def _perform(operation: Operation, handle: Handle, recorder: Recorder) -> Outcome:
    if isinstance(operation, Pause):
        time.sleep(operation.seconds)  # the program asked for it; nothing is judged by how long it takes
        return Returned(None)
    called = recorder.begin(operation)
    outcome = handle.call(operation)
    recorder.end(operation, outcome, called)
    return outcome


def hanging(method: str, client: int, maximum_wait: float) -> Violation:
    """Give the violation of a call that does not end under contention."""
    return Violation(
        f"every call to end within {maximum_wait:g} s, also under contention",
        f"{method}() of client {client}, one of {CLIENTS} at work on the same records, had not ended after {maximum_wait + OVERTIME:g} s",
        "RUN-BOUND-1",
    )
