"""Where a coroutine gives up the event loop: counted, and acted upon."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Suspensions"]

_T = TypeVar("_T")


def _nothing(number: int, awaited: object) -> None:
    """Do nothing at a suspension."""


class Suspensions(Generic[_T]):
    """Something to await in place of a coroutine: it counts how often the coroutine gives up the event loop.

    Args:
        coroutine: what runs.
        at_each: called at each suspension with its number, from 1, and with what is awaited there (a future, or None).

    Attributes:
        count: how often it gave up the loop so far.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, _T], at_each: Callable[[int, object], None] = _nothing) -> None:
        self.count = 0
        self._coroutine = coroutine
        self._at_each = at_each

    def __await__(self) -> Generator[Any, Any, _T]:
        inner = self._coroutine.__await__()
        resume: Callable[[Any], Any] = inner.send
        value: Any = None
        while True:
            try:
                awaited = resume(value)
            except StopIteration as end:
                result: _T = end.value
                return result
            self.count += 1
            self._at_each(self.count, awaited)
            try:
                value = yield awaited
                resume = inner.send
            except BaseException as error:  # noqa: BLE001  # cancellation is passed on to the coroutine
                value = error
                resume = inner.throw
