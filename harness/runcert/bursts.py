"""Bursts: several clients at once on the same records, without a plan.

A client is a *program*: a generator that yields operations and is sent their outcomes, so that one program runs in threads, in
tasks of an event loop and in other processes alike.  One barrier starts all clients; then each goes as fast as it can.  The
number of operations that overlapped with a rival's is the evidence that the burst was one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from runcert.cases import Case
from runcert.checks import Violation
from runcert.handles import Handle
from runcert.history import Event
from runcert.problems import KitProblem
from runcert.suspensions import Suspensions
from runcert_contract import Handles, Operation, Outcome, Returned, Scope

__all__ = ["CLIENTS", "Burst", "Pause", "Program", "Recorder", "bursts_of", "run_program"]

CLIENTS = 4
"""How many clients a burst has."""

OVERTIME = 1.0
"""How many seconds a call may take beyond the declared maximum wait before it counts as hanging: a busy machine is no fault."""

Program: TypeAlias = Callable[[int, Any], Generator[Operation, Outcome, None]]
"""``program(client, work)``: what one client does; ``work`` is data that :func:`runcert_contract.encode` can write.

It is a function of a module, so that client processes can find it by name.
"""

_SWITCH_INTERVAL = 1e-6
_LOOK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class Pause(Operation):
    """What a program yields in order to wait; it is no call and leaves no event."""

    method: ClassVar[str] = "pause"
    seconds: float


@dataclass(frozen=True, slots=True)
class Burst:
    """One way to run clients at once.

    Attributes:
        name: in words, for evidence: "threads, one handle", "tasks, a handle each", "processes".
        run: runs a program with every client on the same work, and gives what they did.
        suspensions: how often the store gave up the event loop so far, inside calls of each method; None where that question
            makes no sense.
    """

    name: str
    run: Callable[[Program, object], list[Event]]
    suspensions: Counter[str] | None = None


def bursts_of(case: Case, handle: Handle) -> list[Burst]:
    """Give the ways in which clients of this store may work at once, as far as it claims.

    Args:
        case: the check that wants them.
        handle: an open handle, for the clients that share one.
    """
    from runcert.burst_processes import processes  # noqa: PLC0415  # it runs programs of this module

    claims = case.claims
    found: list[Burst] = []
    if claims.handles is Handles.SHARED:
        found.append(_tasks_burst(case, handle) if claims.asynchronous else _threads_burst(case, handle))
    if claims.scope is not Scope.HANDLE:
        found.append(_tasks_burst(case, None) if claims.asynchronous else _threads_burst(case, None))
    if claims.scope.includes(Scope.HOST):
        found.append(Burst("processes", lambda program, work: processes(case, program, work)))
    return found


# -- programs


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
        time.sleep(operation.seconds)
        return Returned(None)
    called = recorder.begin(operation)
    outcome = handle.call(operation)
    recorder.end(operation, outcome, called)
    return outcome


def _all_events(recorders: Sequence[Recorder]) -> list[Event]:
    return sorted((event for recorder in recorders for event in recorder.events), key=lambda event: event.called)


def _watch(
    alive: Callable[[], bool], wait: Callable[[float], None], recorders: Sequence[Recorder], maximum_wait: float
) -> None:
    """Wait for clients, and say so when one of them is in a call for longer than declared."""
    while alive():
        wait(_LOOK_EVERY)
        for recorder in recorders:
            running = recorder.running
            if running is not None and time.monotonic() - running[0] > maximum_wait + OVERTIME:
                raise hanging(running[1], recorder.client, maximum_wait)


def hanging(method: str, client: int, maximum_wait: float) -> Violation:
    """Give the violation of a call that does not end under contention."""
    return Violation(
        f"every call to end within {maximum_wait:g} s, also under contention",
        f"{method}() of client {client}, one of {CLIENTS} at work on the same records, had not ended after {maximum_wait + OVERTIME:g} s",
        "RUN-BOUND-1",
    )


# -- threads


def _threads_burst(case: Case, shared: Handle | None) -> Burst:
    name = "threads, a handle each" if shared is None else "threads, one handle"
    return Burst(name, lambda program, work: _threads(case, program, work, shared))


def _threads(case: Case, program: Program, work: object, shared: Handle | None) -> list[Event]:
    lab = case.namespace().lab
    common = None if shared is None else shared.unwatched()
    recorders = [Recorder(client) for client in range(CLIENTS)]
    barrier = threading.Barrier(CLIENTS)
    troubles: list[BaseException] = []

    def client(recorder: Recorder) -> None:
        try:
            handle = common or Handle(case.adapter, lab, f"client {recorder.client}")
            barrier.wait(timeout=30)
            run_program(program, work, handle, recorder)
            if common is None:
                handle.close()
        except BaseException as error:  # noqa: BLE001  # carried over to the thread that waits
            troubles.append(error)
            barrier.abort()

    threads = [threading.Thread(target=client, args=(recorder,), daemon=True) for recorder in recorders]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            _watch(thread.is_alive, thread.join, recorders, case.claims.limits.maximum_wait.total_seconds())
    finally:
        sys.setswitchinterval(interval)
    _raise_first(troubles)
    return _all_events(recorders)


def _raise_first(troubles: Sequence[BaseException]) -> None:
    broken = [error for error in troubles if not isinstance(error, threading.BrokenBarrierError)]
    if broken:
        raise broken[0]
    if troubles:
        raise KitProblem("the clients of a burst did not start together within 30 s")


# -- tasks


def _tasks_burst(case: Case, shared: Handle | None) -> Burst:
    counted: Counter[str] = Counter()
    name = "tasks, a handle each" if shared is None else "tasks, one handle"
    return Burst(name, lambda program, work: _tasks(case, program, work, shared, counted), counted)


def _tasks(case: Case, program: Program, work: object, shared: Handle | None, counted: Counter[str]) -> list[Event]:
    namespace = case.namespace()
    recorders = [Recorder(client) for client in range(CLIENTS)]
    own = [] if shared is not None else [case.workplace.open(namespace) for _ in recorders]
    handles = own if shared is None else [shared] * CLIENTS

    async def all_clients() -> None:
        await asyncio.gather(*(_task(program, work, h, r, counted) for r, h in zip(recorders, handles, strict=True)))

    _wait_on_loop(case, all_clients, recorders)
    for handle in own:
        namespace.handles.remove(handle)
        handle.close()
    return _all_events(recorders)


async def _task(program: Program, work: object, handle: Handle, recorder: Recorder, counted: Counter[str]) -> None:
    """Run one client's program as a task, and count how often the store gives up the event loop."""
    steps = program(recorder.client, work)
    with suppress(StopIteration):
        operation = next(steps)
        while True:
            if isinstance(operation, Pause):
                await asyncio.sleep(operation.seconds)
                operation = steps.send(Returned(None))
                continue
            called = recorder.begin(operation)
            call = Suspensions(handle.call_on_loop(operation))
            outcome = await call
            recorder.end(operation, outcome, called)
            counted[operation.method] += call.count
            await asyncio.sleep(0)  # the others' turn, also where the store itself never gives up the loop
            operation = steps.send(outcome)


def _wait_on_loop(case: Case, action: Callable[[], Any], recorders: Sequence[Recorder]) -> None:
    thread = case.workplace.loop
    if thread is None:
        raise KitProblem("an asynchronous store has no event loop")
    ended = threading.Event()
    future = asyncio.run_coroutine_threadsafe(action(), thread.loop)
    future.add_done_callback(lambda _: ended.set())
    try:
        _watch(
            lambda: not ended.is_set(),
            lambda s: _ignored(ended.wait(s)),
            recorders,
            case.claims.limits.maximum_wait.total_seconds(),
        )
    except BaseException:
        future.cancel()
        thread.probe()
        raise
    future.result()


def _ignored(value: object) -> None:
    """Take a value that nobody needs."""
