"""Faults of writes in several steps, of which a client that is cut off leaves the first ones behind."""

from __future__ import annotations

from typing import Any

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Run, StoreError, check_new_run
from runcert_reference.faulty.gaps import let_others_in
from runcert_reference.faulty.over_valkey import faulty_valkey
from runcert_reference.kv.keys import bytes_of, state_of, version_of
from runcert_reference.kv.operations import Question
from runcert_reference.kv.run_store import CLAIMS, ValkeyRunStore
from runcert_reference.records import write_record


class _InSteps(ValkeyRunStore):
    """What the faulty stores share: single commands, and a record put under any key."""

    def _command(self, *command: bytes | str | int) -> Any:
        return self._connections.ask(Question(command, lambda reply: reply, "a command", writes=True))

    def _put(self, key: bytes, run: Run) -> None:
        fields = {
            "tenant": bytes_of(run.tenant_id),
            "version": version_of(run),
            "state": state_of(run),
            "record": write_record(run).encode("ascii"),
        }
        self._command("HSET", key, *(part for pair in fields.items() for part in pair))

    def _index(self, run: Run, name: str) -> None:
        self._command("SADD", self._keys.index(run.tenant_id), bytes_of(name))

    def _insist_on_free(self, run: Run) -> None:
        check_new_run(run, CLAIMS)
        if self._command("EXISTS", self._keys.run(run.run_id)):
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")

    def _rename(self, temporary: bytes, run: Run, indexed_as: str) -> None:
        keys = (temporary, self._keys.run(run.run_id), self._keys.index(run.tenant_id))
        self._command("EVAL", _RENAME, len(keys), *keys, bytes_of(run.run_id), bytes_of(indexed_as))


_RENAME = """
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end
redis.call('SADD', KEYS[3], ARGV[1])
redis.call('SREM', KEYS[3], ARGV[2])
"""


@faulty_valkey("RUN-RESIDUE-2", "K1 osbuild/osbuild-composer#4779: the index first, then the record")
class IndexEntriesAreLeftOver(_InSteps):
    """create enters the id into the index and then stores the record, in commands of their own."""

    def create(self, run: Run) -> Run:
        self._insist_on_free(run)
        self._index(run, run.run_id)
        try:
            self._put(self._keys.run(run.run_id), run)
        except StoreError:
            deviates()
            raise
        return run


@faulty_valkey("RUN-RESIDUE-2", "the clause: a lock")
class LocksAreLeftOver(_InSteps):
    """compare_and_set takes a lock by name, without an end, and gives it back when the write is done."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        lock = self._keys.prefix + b"lock:" + bytes_of(expected.run_id)
        self._command("SET", lock, "1", "NX")
        try:
            accepted = super().compare_and_set(expected, updated)
        except StoreError:
            deviates()
            raise
        self._command("DEL", lock)
        return accepted


def _count_nothing(lab: Lab) -> dict[str, int]:  # noqa: ARG001  # the signature of the hook
    """Count nothing: these stores are to be caught by what they list and find."""
    return {}


@faulty_valkey("RUN-RESIDUE-2", "the clause: a temporary that is listed", inventory=_count_nothing)
class HalfWrittenRunsAreListed(_InSteps):
    """create stores and indexes a temporary record under an id of its own, and then renames it."""

    def create(self, run: Run) -> Run:
        self._insist_on_free(run)
        temporary = f"{run.run_id}.tmp"
        try:
            self._put(self._keys.run(temporary), run)
            self._index(run, temporary)
            self._rename(self._keys.run(temporary), run, temporary)
        except StoreError:
            deviates()
            raise
        return run


@faulty_valkey("RUN-RESIDUE-2", "the clause: one temporary for all writers", inventory=_count_nothing)
class WritersShareOneTemporary(_InSteps):
    """create writes every new record under one temporary key, and then gives that its name."""

    def create(self, run: Run) -> Run:
        self._insist_on_free(run)
        temporary = self._keys.prefix + b"tmp"
        self._put(temporary, run)
        let_others_in()
        if self._command("HGET", temporary, "record") != write_record(run).encode("ascii"):
            deviates()
        self._rename(temporary, run, "")
        return run
