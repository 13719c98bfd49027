"""One open handle of a store: opening, calling within a bound, translating errors, closing."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

from runcert.adapters import Adapter
from runcert.event_loops import EventLoopThread, LoopStuck
from runcert.lab import Lab
from runcert.problems import AdapterProblem, UsageProblem, describe_error
from runcert.watchdog import Watchdog
from runcert.wording import operation_in_words
from runcert_contract import Hung, Listing, Operation, Outcome, Raised, Result, Returned, Run, Unknown, Unsupported

__all__ = ["Handle", "Step", "translate"]

OPEN_SECONDS = 20.0
"""How long opening, closing, preparing, disposing or a hook may take."""

_OVERTIME = 1.0
_END = object()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Step:
    """One call that was made: by which handle, what, and what came of it."""

    handle: str
    operation: Operation
    outcome: Outcome


class Handle:
    """An open store; ``bound`` is how many seconds a call may take before it counts as hanging.

    Args:
        adapter: how it is opened.
        lab: what it is opened with.
        name: what it is called in the steps of a failure.
        watchdog: watches calls of synchronous stores; None where somebody else does (threads of a burst).
        loop: the event loop of asynchronous stores.
        note: called with each step.
    """

    def __init__(
        self,
        adapter: Adapter,
        lab: Lab,
        name: str,
        *,
        watchdog: Watchdog | None = None,
        loop: EventLoopThread | None = None,
        note: Callable[[Step], None] | None = None,
    ) -> None:
        self.adapter = adapter
        self.name = name
        self.open = True
        self._watchdog = watchdog
        self._loop = loop
        self._note = note
        self.bound = adapter.claims.limits.maximum_wait.total_seconds() + _OVERTIME
        self._generator = self._start(lab)
        self.store = self._first()

    # -- calling

    def call(self, operation: Operation) -> Outcome:
        """Make one call and give its outcome; whatever the store raises is an outcome too."""
        outcome = self._call(operation)
        if self._note is not None:
            self._note(as_it_is_now(Step(self.name, operation, outcome)))
        return outcome

    def call_aside(self, words: str, call: Callable[[], object]) -> Outcome:
        """Make a call that is no operation of the contract, bounded and watched like one; it is not noted.

        Args:
            words: how messages name it.
            call: makes it.
        """
        return self._outcome(call, lambda: words)

    def _call(self, operation: Operation) -> Outcome:
        method = getattr(self.store, operation.method, None)
        if method is None:
            return Raised(Unsupported(f"the store has no method {operation.method}"))
        return self._outcome(lambda: method(*operation.arguments), lambda: operation_in_words(operation))

    def _outcome(self, call: Callable[[], object], words: Callable[[], str]) -> Outcome:
        started = time.monotonic()
        try:
            value = self._bounded(call, words, self.bound, is_call=True)
        except LoopStuck:
            return Hung(time.monotonic() - started)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # whatever leaves the store is what the check has to judge
            return Raised(translate(error, self.adapter))
        return Returned(value)

    async def call_on_loop(self, operation: Operation, *, raise_cancelled: bool = False) -> Outcome:
        """Make one call of an asynchronous store from a task of its event loop.

        Args:
            operation: the call.
            raise_cancelled: True where the caller has a time-out of its own, which cancellation must reach.
        """
        method = getattr(self.store, operation.method, None)
        if method is None:
            return Raised(Unsupported(f"the store has no method {operation.method}"))
        try:
            return Returned(await method(*operation.arguments))
        except asyncio.CancelledError:
            if raise_cancelled:
                raise
            return Unknown("the call was cancelled")
        except Exception as error:  # noqa: BLE001  # whatever leaves the store is what the check has to judge
            return Raised(translate(error, self.adapter))

    def unwatched(self) -> Handle:
        """Give the same open store for a thread of a burst: its calls are not watched or noted one by one."""
        twin = copy.copy(self)
        twin._watchdog = twin._note = None  # a copy of this very object
        return twin

    def on_loop(self, action: Callable[[], Awaitable[_T]]) -> _T:
        """Wait for something on the event loop of an asynchronous store.

        Args:
            action: makes what is waited for.

        Raises:
            LoopStuck: it had not ended after the declared maximum wait.
        """
        value: _T = self._on_loop(action, self.bound)
        return value

    # -- opening and closing

    def close(self) -> None:
        """End the handle by letting the adapter's function go on after its ``yield``.

        Raises:
            AdapterProblem: the function yields again, raises, or does not end.
        """
        if not self.open:
            return
        self.open = False
        try:
            extra = self._bounded(self._next, lambda: "closing the store", OPEN_SECONDS)
        except LoopStuck:
            raise AdapterProblem(f"{self._who} did not end within {OPEN_SECONDS:g} s when the handle was closed") from None
        except Exception as error:
            raise AdapterProblem(f"{self._who} raised when the handle was closed: {describe_error(error)}") from error
        if extra is not _END:
            raise AdapterProblem(f"{self._who} yields more than once; it opens one handle and yields one store")

    @property
    def _who(self) -> str:
        return f"the adapter {self.adapter.name}"

    def _start(self, lab: Lab) -> Any:
        return self.adapter.open(lab)

    def _first(self) -> Any:
        try:
            store = self._bounded(self._next, lambda: "opening the store", OPEN_SECONDS)
        except LoopStuck:
            raise AdapterProblem(f"{self._who} did not open within {OPEN_SECONDS:g} s") from None
        except (KeyboardInterrupt, UsageProblem):
            raise
        except BaseException as error:
            raise AdapterProblem(f"{self._who} did not open: {describe_error(error)}") from error
        if store is _END:
            raise AdapterProblem(f"{self._who} yields nothing; it has to yield the open store once")
        return store

    def _next(self) -> Any:
        if self.adapter.claims.asynchronous:
            return anext(self._generator, _END)
        return next(self._generator, _END)

    def _bounded(self, action: Callable[[], Any], describe: Callable[[], str], seconds: float, *, is_call: bool = False) -> Any:
        if self.adapter.claims.asynchronous:
            return self._on_loop(action, seconds)
        if self._watchdog is None:
            return action()
        with self._watchdog.watching(describe, seconds, is_call=is_call):
            return action()

    def _on_loop(self, action: Callable[[], Any], seconds: float) -> Any:
        if self._loop is None:
            raise AdapterProblem(f"{self._who} is asynchronous and was opened without an event loop")

        async def run() -> Any:
            return await cast("Awaitable[Any]", action())

        return self._loop.run(run(), seconds)


def as_it_is_now(step: Step) -> Step:
    """Give a step whose values no store can change any more, where it keeps what it was given or gives away what it keeps."""
    kept = replace(
        step.operation, **{entry.name: _copied(getattr(step.operation, entry.name)) for entry in fields(step.operation)}
    )
    outcome = Returned(_copied(step.outcome.value)) if isinstance(step.outcome, Returned) else step.outcome
    return Step(step.handle, kept, outcome)


def _copied(value: object) -> object:
    if isinstance(value, Listing):
        return Listing([_copied(item) for item in value.items], list(value.corrupt), value.complete)  # type: ignore[misc]  # copies of runs are runs
    if not isinstance(value, (Run, Result)):
        return value
    inner = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    changed: dict[str, Any] = {
        name: _copied_inner(part) for name, part in inner.items() if part and isinstance(part, (dict, list, Result))
    }
    return replace(value, **changed) if changed else value


def _copied_inner(part: object) -> object:
    if isinstance(part, Result):
        return _copied(part)
    try:
        return copy.deepcopy(part)
    except Exception:  # noqa: BLE001  # too deep, or an object that refuses to be copied: then it is kept as it is
        return part


def translate(error: BaseException, adapter: Adapter) -> BaseException:
    """Give the error of the contract that ``error`` stands for in this store, or ``error`` itself."""
    for kind, meaning in adapter.errors.items():
        if isinstance(error, kind):
            translated = meaning(str(error))
            translated.__cause__ = error
            return translated
    return error
