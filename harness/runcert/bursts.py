"""Bursts: several clients at once on the same records, without a plan.

A client is a *program*: a generator that yields operations and is sent their outcomes, so that one program runs in threads, in
tasks of an event loop and in other processes alike.  One barrier starts all clients; then each goes as fast as it can.  The
number of operations that overlapped with a rival's is the evidence that the burst was one.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from runcert.burst_processes import processes
from runcert.burst_programs import CLIENTS, OVERTIME, Pause, Program, Recorder, hanging, run_program
from runcert.cases import Case
from runcert.handles import Handle
from runcert.history import Event
from runcert.problems import KitProblem
from runcert.suspensions import Suspensions
from runcert_contract import Handles, Returned, Scope

__all__ = ["CLIENTS", "Burst", "Pause", "Program", "Recorder", "bursts_of", "run_program"]

_SWITCH_INTERVAL = 1e-6
_LOOK_EVERY = 0.02


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
    claims = case.claims
    found: list[Burst] = []
    if claims.handles is Handles.SHARED:
        found.append(_tasks_burst(case, handle) if claims.asynchronous else _threads_burst(case, handle))
    if claims.scope is not Scope.HANDLE:
        found.append(_tasks_burst(case, None) if claims.asynchronous else _threads_burst(case, None))
    if claims.scope.includes(Scope.HOST):
        found.append(Burst("processes", lambda program, work: processes(case, program, work)))
    return found


# -- watching over clients


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
