"""What the kit needs to look behind a store in memory."""

from __future__ import annotations

from dataclasses import replace

from runcert_reference.memory import MemorySpace

__all__ = ["count", "damage", "purge"]


def damage(space: MemorySpace, run_id: str, how: str) -> None:
    """Make the stored record of a run unreadable: ``how`` is undecodable, cut or empty."""
    with space.lock:
        entry = space.entries[run_id]
        record = {"undecodable": "\ufffd{not json", "cut": entry.record[: len(entry.record) // 2], "empty": ""}[how]
        space.entries[run_id] = replace(entry, record=record)


def count(space: MemorySpace) -> dict[str, int]:
    """Count what is stored."""
    with space.lock:
        return {"runs": len(space.entries), "retired": len(space.retired)}


def purge(space: MemorySpace, run_id: str) -> None:
    """Remove a run as retention would; its id stays retired."""
    with space.lock:
        del space.entries[run_id]
        space.retired.add(run_id)
