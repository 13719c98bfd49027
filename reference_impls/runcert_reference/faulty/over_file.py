"""How a faulty store is made of a few lines over the reference store in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from runcert import Lab, RunStore, adapter
from runcert.adapters import Adapter
from runcert.faulty import FaultyStore
from runcert_reference.faulty.over_memory import make_faulty
from runcert_reference.file_adapters import options as file_options
from runcert_reference.files import FileRunStore

__all__ = ["faulty_file"]


def faulty_file(clause: str, source: str = "the clause", **options: Any) -> Callable[[type[FileRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the reference store in files.

    Args:
        clause: the clause that has to catch it.
        source: where the fault was seen.
        options: options of the adapter that differ from the reference store's; ``None`` takes a hook away.
    """

    def decorate(store: type[FileRunStore]) -> FaultyStore:
        return make_faulty(store, clause, source, "file", _adapter(store, options), _SOUND)

    return decorate


def _adapter(kind: type[FileRunStore], options: dict[str, Any]) -> Adapter:
    def open_store(lab: Lab) -> Iterator[RunStore]:
        store = kind(lab.directory)
        yield store
        store.close()

    return adapter(RunStore, target=kind.__name__, **{**file_options(lambda lab: lab.directory), **options})(open_store)


_SOUND = _adapter(FileRunStore, {})
"""One for all faulty stores over it; it keeps its own hooks, because another one is part of a fault."""
