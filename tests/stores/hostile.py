"""Adapters of stores that misbehave as programs; each must get one clear verdict, and never a green."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from runcert import AsyncRunStore, Capability, Handles, Lab, Limits, RunStore, Scope, Stance, adapter
from runcert_contract import Run
from runcert_reference.memory import AsyncMemoryRunStore, MemoryRunStore, MemorySpace

_FOREVER = threading.Event()
GUARDED = {Capability.GUARDS_TERMINAL: Stance.CLAIMED}
SHORT = Limits(maximum_wait=timedelta(seconds=0.3))


class Disturbed(MemoryRunStore):
    """Does something first, whenever a run is created."""

    def __init__(self, disturb: Callable[[], object]) -> None:
        super().__init__(MemorySpace())
        self._disturb = disturb

    def create(self, run: Run) -> Run:
        self._disturb()
        return super().create(run)


@adapter(RunStore, scope=Scope.HANDLE, handles=Handles.SHARED, capabilities=GUARDED)
def prints(lab: Lab) -> Iterator[RunStore]:
    yield Disturbed(lambda: (print("noise"), sys.stderr.write("more noise\n"), os.write(1, b"raw noise\n")))  # noqa: T201


@adapter(RunStore)
def closes_standard_output(lab: Lab) -> Iterator[RunStore]:
    os.close(1)
    os.close(2)
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore, capabilities=GUARDED)
def leaks_threads(lab: Lab) -> Iterator[RunStore]:
    threading.Thread(target=_FOREVER.wait, daemon=False).start()
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def hangs_on_open(lab: Lab) -> Iterator[RunStore]:
    _FOREVER.wait()
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore, limits=SHORT)
def hangs_on_call(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: _FOREVER.wait() if next(calls) > 3 else None)


def _namespace_of(lab: Lab) -> Path:
    return Path(os.environ["NAMESPACES"]) / lab.namespace


@adapter(
    RunStore,
    limits=SHORT,
    prepare=lambda lab: _namespace_of(lab).mkdir(),
    dispose=lambda lab: _namespace_of(lab).rmdir(),
)
def hangs_beside_its_namespace(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: _FOREVER.wait() if next(calls) > 3 else None)


@adapter(RunStore, limits=SHORT)
def hangs_on_first_call(lab: Lab) -> Iterator[RunStore]:
    yield Disturbed(_FOREVER.wait)


@adapter(AsyncRunStore, limits=SHORT)
async def hangs_on_async_call(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    class Hanging(AsyncMemoryRunStore):
        calls = 0

        async def create(self, run: Run) -> Run:
            Hanging.calls += 1
            if Hanging.calls > 4:
                _FOREVER.wait()
            return await super().create(run)

    yield Hanging(MemorySpace())


@adapter(RunStore)
def hangs_on_close(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())
    _FOREVER.wait()


@adapter(RunStore)
def raises_on_open(lab: Lab) -> Iterator[RunStore]:
    if lab.namespace:
        raise ConnectionRefusedError("no server at postgresql://ann:hunter2@127.0.0.1:1/db")
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def raises_on_close(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())
    raise RuntimeError("cannot close")


@adapter(RunStore)
def yields_nothing(lab: Lab) -> Iterator[RunStore]:
    if lab.namespace == "":
        yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def yields_twice(lab: Lab) -> Iterator[RunStore]:
    yield MemoryRunStore(MemorySpace())
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def yields_the_wrong_thing(lab: Lab) -> Iterator[RunStore]:
    yield {"not": "a store"}  # type: ignore[misc]  # the wrong thing is the point


@adapter(RunStore)
def raises_anything(lab: Lab) -> Iterator[RunStore]:
    def disturb() -> None:
        raise ZeroDivisionError("anything")

    yield Disturbed(disturb)


@adapter(RunStore)
def raises_system_exit_later(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: sys.exit(0) if next(calls) > 3 else None)


@adapter(RunStore)
def raises_keyboard_interrupt_later(lab: Lab) -> Iterator[RunStore]:
    def disturb() -> None:
        if next(calls) > 3:
            raise KeyboardInterrupt

    calls = iter(range(1000))
    yield Disturbed(disturb)


@adapter(RunStore)
def calls_pytest_exit_later(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: pytest.exit("all fine", returncode=0) if next(calls) > 3 else None)


@adapter(RunStore)
def skips_later(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: pytest.skip("nothing to see") if next(calls) > 3 else None)


@adapter(RunStore)
def leaves_the_interpreter(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: os._exit(0) if next(calls) > 3 else None)


@adapter(RunStore)
def leaves_the_interpreter_on_open(lab: Lab) -> Iterator[RunStore]:
    if lab.namespace:
        os._exit(0)
    yield MemoryRunStore(MemorySpace())


@adapter(RunStore)
def crashes_the_interpreter(lab: Lab) -> Iterator[RunStore]:
    calls = iter(range(1000))
    yield Disturbed(lambda: ctypes.string_at(0) if next(calls) > 3 else None)


@adapter(RunStore, capabilities=GUARDED)
def changes_directory(lab: Lab) -> Iterator[RunStore]:
    os.chdir(lab.directory)
    yield MemoryRunStore(MemorySpace())
