"""Bursts: several clients at once on the same records, without a plan.

A client is a *program*: a generator that yields operations and is sent their outcomes, so that one program runs in threads, in
tasks of an event loop and in other processes alike.  One barrier starts all clients; then each goes as fast as it can.  The
number of operations that overlapped with a rival's is the evidence that the burst was one.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from runcert.cases import Case, Namespace
from runcert.checks import Violation
from runcert.faulty import note_deviations
from runcert.handles import Handle
from runcert.history import Event
from runcert.problems import AdapterProblem, KitProblem
from runcert_contract import Handles, JsonValue, Operation, Outcome, Scope, decode, encode

__all__ = ["CLIENTS", "Burst", "Program", "bursts_of", "run_program"]

CLIENTS = 4
"""How many clients a burst has."""

Program: TypeAlias = Callable[[int, Any], Generator[Operation, Outcome, None]]
"""``program(client, work)``: what one client does; ``work`` is data that :func:`runcert_contract.encode` can write."""

_SWITCH_INTERVAL = 1e-6


@dataclass(frozen=True, slots=True)
class Burst:
    """One way to run clients at once.

    Attributes:
        name: in words, for evidence: "threads, one handle", "tasks", "processes".
        run: runs a program with every client on the same work, and gives what they did.
    """

    name: str
    run: Callable[[Program, object], list[Event]]

    # Whether the store ever gave up the event loop inside a call; None where that question makes no sense.
    suspended: Callable[[], bool | None] = lambda: None


def bursts_of(case: Case) -> list[Burst]:
    """Give the ways in which clients of this store may work at once, as far as it claims."""
    claims = case.claims
    found: list[Burst] = []
    if claims.asynchronous:
        found.append(_task_burst(case))
    else:
        if claims.handles is Handles.SHARED:
            found.append(Burst("threads, one handle", lambda program, work: _threads(case, program, work, shared=True)))
        if claims.scope is not Scope.HANDLE:
            found.append(Burst("threads, a handle each", lambda program, work: _threads(case, program, work, shared=False)))
    if claims.scope.includes(Scope.HOST):
        found.append(Burst("processes", lambda program, work: _processes(case, program, work)))
    return found


# -- programs


class Recorder:
    """What one client did, and when; ``running`` since when it is in a call."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.events: list[Event] = []
        self.running: tuple[float, str] | None = None

    def call(self, handle: Handle, operation: Operation) -> Outcome:
        """Make one call and note it."""
        self.running = (time.monotonic(), operation.method)
        called = time.monotonic_ns()
        outcome = handle.call(operation)
        self.note(operation, outcome, called)
        return outcome

    def note(self, operation: Operation, outcome: Outcome, called: int) -> None:
        """Note one call that ended now."""
        self.events.append(Event(self.client, os.getpid(), operation, outcome, called, time.monotonic_ns()))
        self.running = None


def run_program(program: Program, work: object, handle: Handle, recorder: Recorder) -> None:
    """Run one client's program on one handle."""
    steps = program(recorder.client, work)
    with suppress(StopIteration):
        operation = next(steps)
        while True:
            operation = steps.send(recorder.call(handle, operation))


# -- threads


def _threads(case: Case, program: Program, work: object, *, shared: bool) -> list[Event]:
    namespace = case.namespace()
    common = Handle(case.adapter, namespace.lab, "shared handle") if shared else None
    recorders = [Recorder(client) for client in range(CLIENTS)]
    barrier = threading.Barrier(CLIENTS)
    troubles: list[BaseException] = []

    def client(recorder: Recorder) -> None:
        try:
            handle = common or Handle(case.adapter, namespace.lab, f"client {recorder.client}")
            barrier.wait(timeout=30)
            run_program(program, work, handle, recorder)
            if common is None:
                handle.close()
        except BaseException as error:  # noqa: BLE001  # carried over to the thread that waits
            troubles.append(error)
            barrier.abort()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        threads = [threading.Thread(target=client, args=(recorder,), daemon=True) for recorder in recorders]
        for thread in threads:
            thread.start()
        _wait_for(threads, recorders, case.claims.limits.maximum_wait.total_seconds())
    finally:
        sys.setswitchinterval(interval)
    if common is not None:
        common.close()
    _raise_first(troubles)
    return [event for recorder in recorders for event in recorder.events]


def _wait_for(threads: Sequence[threading.Thread], recorders: Sequence[Recorder], maximum_wait: float) -> None:
    for thread in threads:
        while thread.is_alive():
            thread.join(timeout=0.05)
            for recorder in recorders:
                running = recorder.running
                if running is not None and time.monotonic() - running[0] > maximum_wait + 1:
                    raise Violation(
                        f"every call to end within {maximum_wait:g} s, also under contention",
                        f"{running[1]}() of client {recorder.client} had not ended after that",
                    )


def _raise_first(troubles: Sequence[BaseException]) -> None:
    broken = [error for error in troubles if not isinstance(error, threading.BrokenBarrierError)]
    if broken:
        raise broken[0]
    if troubles:
        raise KitProblem("the clients of a burst did not start together within 30 s")


# -- tasks


class _Suspensions:
    """Awaits a coroutine and counts how often it gave up the event loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, Outcome]) -> None:
        self.count = 0
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Outcome]:
        inner = self._coroutine.__await__()
        sent: Any = None
        while True:
            try:
                awaited = inner.send(sent)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # the coroutine gives an Outcome
            self.count += 1
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001  # cancellation is passed on to the coroutine
                inner.throw(error)


def _task_burst(case: Case) -> Burst:
    counted = [0]

    def run(program: Program, work: object) -> list[Event]:
        return _tasks(case, program, work, counted)

    name = "tasks, one handle" if case.claims.scope is Scope.HANDLE else "tasks, a handle each"
    return Burst(name, run, lambda: counted[0] > 0)


def _tasks(case: Case, program: Program, work: object, counted: list[int]) -> list[Event]:
    loop = case.workplace.loop
    if loop is None:
        raise KitProblem("an asynchronous store has no event loop")
    namespace = case.namespace()
    alone = case.claims.scope is Scope.HANDLE
    handles = [case.workplace.open(namespace) for _ in range(1 if alone else CLIENTS)]
    recorders = [Recorder(client) for client in range(CLIENTS)]

    async def client(recorder: Recorder, handle: Handle) -> None:
        steps = program(recorder.client, work)
        with suppress(StopIteration):
            operation = next(steps)
            while True:
                called = time.monotonic_ns()
                waiting = _Suspensions(handle.call_on_loop(operation))
                outcome = await waiting
                counted[0] += waiting.count
                recorder.note(operation, outcome, called)
                operation = steps.send(outcome)

    async def all_clients() -> None:
        await asyncio.gather(*(client(r, handles[r.client % len(handles)]) for r in recorders))

    try:
        loop.run(all_clients(), 60 + case.claims.limits.maximum_wait.total_seconds())
    finally:
        for handle in handles:
            namespace.handles.remove(handle)
            handle.close()
    return [event for recorder in recorders for event in recorder.events]


# -- processes


def _processes(case: Case, program: Program, work: object) -> list[Event]:
    pool = _pool_of(case)
    return pool.run(case.namespace(), program, work)


def _pool_of(case: Case) -> _ProcessPool:
    kept = case.workplace.kept.get("burst processes")
    if isinstance(kept, _ProcessPool) and kept.alive:
        return kept
    pool = _ProcessPool(case.workplace.spec, private=case.claims.scope is Scope.CLUSTER)
    pool.patience = case.claims.limits.maximum_wait.total_seconds() + 60
    case.workplace.kept["burst processes"] = pool
    case.workplace.at_end.append(pool.stop)
    return pool


class _ProcessPool:
    """Client processes of one target, started once and kept."""

    def __init__(self, spec: str, *, private: bool) -> None:
        self.patience = 60.0
        self._homes = [Path(tempfile.mkdtemp(prefix="runcert-client-")) for _ in range(CLIENTS)] if private else []
        self._clients = [self._start(spec, number) for number in range(CLIENTS)]

    @property
    def alive(self) -> bool:
        return all(client.poll() is None for client in self._clients)

    def _start(self, spec: str, number: int) -> subprocess.Popen[str]:
        environment = dict(os.environ)
        if self._homes:
            home = str(self._homes[number])
            environment |= {"HOME": home, "TMPDIR": home, "TEMP": home, "TMP": home}
        skew = str(number * 1800.0) if self._homes else "0"
        command = [sys.executable, "-P", "-m", "runcert.burst_client", spec, str(number), skew]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def run(self, namespace: Namespace, program: Program, work: object) -> list[Event]:
        order = {
            "lab": namespace.lab.to_json(),
            "program": f"{program.__module__}:{program.__qualname__}",
            "work": encode(work),
        }
        for client in self._clients:
            self._send(client, order)
        for client in self._clients:
            self._expect(client, "ready")
        start_at = time.monotonic_ns() + 5_000_000
        for client in self._clients:
            self._send(client, {"start_at": start_at})
        return [event for client in self._clients for event in self._events(client)]

    def _send(self, client: subprocess.Popen[str], message: dict[str, JsonValue]) -> None:
        if client.stdin is None:
            raise KitProblem("a client process of a burst has no input")
        try:
            client.stdin.write(json.dumps(message) + "\n")
            client.stdin.flush()
        except OSError as error:
            raise AdapterProblem(f"a client process of a burst is gone ({error}); does the store end its process?") from error

    def _expect(self, client: subprocess.Popen[str], kind: str) -> dict[str, Any]:
        if client.stdout is None:
            raise KitProblem("a client process of a burst has no output")
        timer = threading.Timer(self.patience, client.kill)
        timer.start()
        try:
            line = client.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise AdapterProblem("a client process of a burst ended or was silent for too long; does the store end its process or hang?")
        message: dict[str, Any] = json.loads(line)
        if "trouble" in message:
            raise AdapterProblem(f"in a client process: {message['trouble']}")
        if kind not in message:
            raise KitProblem(f"a client process of a burst answered {message!r}, expected {kind!r}")
        return message

    def _events(self, client: subprocess.Popen[str]) -> list[Event]:
        message = self._expect(client, "events")
        note_deviations(int(message["deviations"]))
        return [
            Event(row[0], row[1], decode(row[2]), decode(row[3]), row[4], row[5])  # type: ignore[arg-type]  # written by our client
            for row in message["events"]
        ]

    def stop(self) -> None:
        for client in self._clients:
            with suppress(OSError):
                if client.stdin is not None:
                    client.stdin.close()
        for client in self._clients:
            try:
                client.wait(timeout=5)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
            if client.stdout is not None:
                client.stdout.close()
        for home in self._homes:
            shutil.rmtree(home, ignore_errors=True)


def program_named(name: str) -> Program:
    """Give the program ``module:function``, in a client process."""
    module, _, function = name.partition(":")
    program: Program = getattr(importlib.import_module(module), function)
    return program
