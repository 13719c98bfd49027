"""Cancelling a call of an asynchronous store exactly where it gives up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from runcert.event_loops import LoopStuck
from runcert.handles import Handle, Step
from runcert.suspensions import Suspensions
from runcert_contract import Hung, Operation, Outcome, Unknown

__all__ = ["Cancelled", "Moment", "call_cancelled"]


class Moment(Enum):
    """When, at a suspension, the call is cancelled."""

    WAITING = "while it waits"
    ANSWERED = "when the answer has come and has not been taken"
    TIMEOUT = "by a time-out"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What came of a call that was to be cancelled.

    Attributes:
        outcome: what the caller got; unknown where the call was really cancelled.
        landed: False when the call ended before it came to that suspension.
        suspensions: how often it gave up the event loop.
    """

    outcome: Outcome
    landed: bool
    suspensions: int


def call_cancelled(handle: Handle, operation: Operation, at: int, moment: Moment, note: Callable[[Step], None]) -> Cancelled:
    """Make one call and cancel it at one of its suspensions.

    Args:
        handle: an open handle of an asynchronous store.
        operation: the call.
        at: the number of the suspension, from 1.
        moment: when it is cancelled there.
        note: called with the step, for the report of a failure.
    """
    trial = _Trial(handle, operation, at, moment)
    try:
        outcome = handle.on_loop(trial.run)
    except LoopStuck:
        outcome = Hung(handle.bound)
    note(Step(handle.name, operation, outcome))
    return Cancelled(outcome, trial.landed, trial.suspensions)


class _Trial:
    """One call that is cancelled at one place."""

    def __init__(self, handle: Handle, operation: Operation, at: int, moment: Moment) -> None:
        self.landed = False
        self.suspensions = 0
        self._handle = handle
        self._operation = operation
        self._at = at
        self._moment = moment
        self._task: asyncio.Task[Outcome] | None = None

    async def run(self) -> Outcome:
        self._task = asyncio.ensure_future(self._timed() if self._moment is Moment.TIMEOUT else self._call())
        await asyncio.wait({self._task})
        if self._task.cancelled():
            return Unknown(f"the call was cancelled {self._moment.value}")
        return self._task.result()

    async def _call(self) -> Outcome:
        outcome = await Suspensions(self._handle.call_on_loop(self._operation), self._at_suspension)
        return Unknown(f"the call was cancelled {self._moment.value}") if isinstance(outcome, Unknown) else outcome

    async def _timed(self) -> Outcome:
        try:
            async with asyncio.timeout(0):
                outcome = await Suspensions(
                    self._handle.call_on_loop(self._operation, raise_cancelled=True), self._at_suspension
                )
        except TimeoutError:
            return Unknown("the call was ended by a time-out")
        return outcome

    def _at_suspension(self, number: int, awaited: object) -> None:
        self.suspensions = number
        if number != self._at or self._task is None:
            return
        self.landed = True
        if self._moment is Moment.ANSWERED and isinstance(awaited, asyncio.Future):
            task = self._task
            awaited.add_done_callback(lambda _: task.cancel())
        elif self._moment is not Moment.TIMEOUT:
            asyncio.get_running_loop().call_soon(self._task.cancel)
