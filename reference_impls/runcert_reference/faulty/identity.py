"""Faults about the identity of a run."""

from __future__ import annotations

from runcert.faulty import deviates
from runcert_contract import IDENTITY_FIELDS, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import MemoryRunStore


def _changed(expected: Run, updated: Run) -> list[str]:
    return [name for name in IDENTITY_FIELDS if getattr(expected, name) != getattr(updated, name)]


class _Lenient(MemoryRunStore):
    """Writes an update, if its version fits, without looking at its identity."""

    def _write_anyway(self, expected: Run, updated: Run) -> bool:
        deviates()
        entry = self._space.entries.get(expected.run_id)
        if entry is None or entry.version != expected.version or entry.terminal:
            return False
        with self._space.lock:
            self._put(updated)
        return True


@faulty_memory("RUN-IDENTITY-1")
class UpdateChangesTheTenant(_Lenient):
    """compare_and_set moves a run to another tenant."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if _changed(expected, updated) == ["tenant_id"]:
            return self._write_anyway(expected, updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-IDENTITY-1", source="the clause: the key is not compared")
class UpdateChangesTheIdempotencyKey(_Lenient):
    """compare_and_set gives a run another idempotency key."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if _changed(expected, updated) == ["idempotency_key"]:
            return self._write_anyway(expected, updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-IDENTITY-1", source="the clause: created_at counts as a time stamp")
class UpdateChangesCreatedAt(_Lenient):
    """compare_and_set stores another created_at."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if _changed(expected, updated) == ["created_at"]:
            return self._write_anyway(expected, updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-IDENTITY-1", source="the clause: compared without regard to case")
class IdentityIsComparedWithoutCase(_Lenient):
    """compare_and_set takes an action or proposal that differs in case for the same one."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        names = _changed(expected, updated)
        folded = [str(getattr(expected, name)).casefold() == str(getattr(updated, name)).casefold() for name in names]
        if names and all(folded):
            return self._write_anyway(expected, updated)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-IDENTITY-1", source="the clause: decided by what is stored")
class IdentityIsComparedWithTheStoredRun(MemoryRunStore):
    """compare_and_set compares the identity with the stored run only, so that an absent or newer run gives False."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        entry = self._space.entries.get(expected.run_id)
        if _changed(expected, updated) and (entry is None or entry.version != expected.version):
            deviates()
            return False
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-IDENTITY-1", source="the clause: ignored instead of refused")
class ChangedIdentityIsIgnored(_Lenient):
    """compare_and_set keeps the old identity, writes the rest, and answers True."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if "action_id" in _changed(expected, updated):
            return self._write_anyway(expected, expected)
        return super().compare_and_set(expected, updated)
