"""Faulty stores: how the kit proves that it can say no.

A faulty store is a few lines over a reference store and breaks one clause.  Where its code takes the wrong turn it calls
:func:`deviates`, so that a store that was never wrong is not counted as one that was caught.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points

from runcert.adapters import Adapter
from runcert.problems import KitProblem

__all__ = ["FaultyStore", "deviates", "deviations", "faulty_stores", "note_deviations"]


@dataclass(frozen=True, slots=True)
class FaultyStore:
    """One store that must not pass.

    Attributes:
        name: its name in the matrix.
        clause: the clause that has to catch it.
        fault: what it does wrong, in one sentence.
        source: where the fault was seen: an entry of the collected field reports, or the clause itself.
        backend: the backend of the reference store beneath, for instance ``memory``.
        adapter: the adapter of the faulty store.
        sound: the adapter of the same store without the fault.
        spec: ``module:attribute``, by which it can be certified like any other store.
    """

    name: str
    clause: str
    fault: str
    source: str
    backend: str
    adapter: Adapter
    sound: Adapter
    spec: str


class _Count:
    """A number that threads may raise at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.value = 0

    def raise_by(self, number: int) -> None:
        with self._lock:
            self.value += number


_count = _Count()


def deviates() -> None:
    """Note that a faulty store takes its wrong turn now."""
    _count.raise_by(1)


def note_deviations(number: int) -> None:
    """Note deviations that happened in another process."""
    _count.raise_by(number)


def deviations() -> int:
    """Give how often faulty stores deviated in this process so far."""
    return _count.value


def faulty_stores(contract: str | None = None) -> tuple[FaultyStore, ...]:
    """Give every faulty store that installed packages registered, in their order.

    Args:
        contract: only those of this contract.

    Raises:
        KitProblem: two have the same name.
    """
    entries = {(entry.name, entry.value): entry for entry in entry_points(group="runcert.faulty")}
    found: list[FaultyStore] = []
    for (name, _), entry in sorted(entries.items()):
        if contract in (None, name):
            stores: Iterable[FaultyStore] = entry.load()()
            found.extend(stores)
    names = [store.name for store in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise KitProblem(f"two faulty stores are called {', '.join(doubled)}")
    return tuple(found)
