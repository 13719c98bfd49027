"""The operations of a run store as questions to a server: one command each, and how its answer is read.

Both forms of the store share them; only how a question travels differs (:mod:`.connections`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from runcert_contract import AlreadyExists, CorruptRecord, InvalidRecord, Listing, Run
from runcert_reference.kv import scripts
from runcert_reference.kv.keys import RETIRED, Keys, bytes_of, state_of, text_of, version_of
from runcert_reference.records import read_record, write_record

__all__ = ["Question", "create_run", "find_run", "list_resumable", "replace_run", "retire_run"]

Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105  # what a question is answered with


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """One command and what becomes of its reply.

    Attributes:
        command: the command and its arguments.
        read: turns the reply into the answer.
        what: what it is about, for messages.
        record: the id of the record, where there is one.
        writes: True when a lost reply leaves it open whether something was written.
    """

    command: Sequence[bytes | str | int]
    read: Callable[[Any], Answer]
    what: str
    record: str | None = None
    writes: bool = False


def create_run(keys: Keys, run: Run) -> Question[Run]:
    """Ask to store a new run."""
    record = write_record(run)
    arguments = (bytes_of(run.run_id), bytes_of(run.tenant_id), version_of(run), state_of(run), record)

    def read(reply: bytes) -> Run:
        if reply != b"created":
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return read_record(record, run.run_id)

    return _about(run.run_id, _script(scripts.CREATE, (keys.run(run.run_id), keys.index(run.tenant_id)), arguments), read)


def replace_run(keys: Keys, expected: Run, updated: Run) -> Question[bool]:
    """Ask to replace a run where it still has the expected version and is not terminal."""
    arguments = (
        bytes_of(updated.run_id),
        bytes_of(updated.tenant_id),
        version_of(updated),
        state_of(updated),
        write_record(updated),
        version_of(expected),
    )

    def read(reply: bytes) -> bool:
        if reply == b"corrupt":
            raise _corrupt(expected.run_id)
        if reply == b"tenant":
            raise InvalidRecord(f"run {expected.run_id!r}: tenant_id is not that of the stored run; find it first")
        return reply == b"replaced"

    touched = (keys.run(expected.run_id), keys.index(expected.tenant_id))
    return _about(expected.run_id, _script(scripts.REPLACE, touched, arguments), read)


def find_run(keys: Keys, run_id: str) -> Question[Run | None]:
    """Ask for a run."""

    def read(reply: Sequence[bytes]) -> Run | None:
        return run_of(run_id, fields_of(reply)) if reply else None

    return Question(("HGETALL", keys.run(run_id)), read, f"run {run_id!r}", run_id)


def list_resumable(keys: Keys, tenant_id: str) -> Question[Listing]:
    """Ask for the runs of a tenant that are not terminal: index and records of one moment."""

    def read(reply: Sequence[Any]) -> Listing:
        items: list[Run] = []
        corrupt: list[str] = []
        for member, stored in zip(reply[::2], reply[1::2], strict=True):
            run_id = text_of(member)
            try:
                run = run_of(run_id, fields_of(stored or ()))
            except CorruptRecord:
                corrupt.append(run_id)
            else:
                items.extend(() if run is None or run.status.terminal else (run,))
        return Listing(items, corrupt, complete=True)

    command = _script(scripts.FIND_RESUMABLE, (keys.index(tenant_id),), (keys.runs,))
    return Question(command, read, f"runs of tenant {tenant_id!r}")


def retire_run(keys: Keys, run_id: str) -> Question[bool]:
    """Ask to remove the record of a run as retention does; its id stays taken."""
    command = _script(scripts.RETIRE, (keys.run(run_id),), (bytes_of(run_id), keys.indexes))
    return _about(run_id, command, lambda reply: bool(reply == b"retired"))


def _about(run_id: str, command: Sequence[bytes | str | int], read: Callable[[Any], Answer]) -> Question[Answer]:
    return Question(command, read, f"run {run_id!r}", run_id, writes=True)


def _script(script: str, keys: Sequence[bytes], arguments: Sequence[bytes | str]) -> Sequence[bytes | str | int]:
    return ("EVAL", script, len(keys), *keys, *arguments)


def fields_of(reply: Sequence[bytes]) -> dict[bytes, bytes]:
    """Give the fields of a hash from the reply, in which names and values take turns."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def run_of(run_id: str, stored: Mapping[bytes, bytes]) -> Run | None:
    """Give the run that these fields hold; None where it was purged.

    Args:
        run_id: the id that belongs to the key.
        stored: the fields under it.

    Raises:
        CorruptRecord: they hold no run, or another one, or do not agree with each other.
    """
    if stored.get(b"state") == RETIRED:
        return None
    try:
        text = stored[b"record"].decode("ascii")
    except (KeyError, UnicodeDecodeError) as error:
        raise _corrupt(run_id) from error
    run = read_record(text, run_id)
    written = {b"tenant": bytes_of(run.tenant_id), b"version": version_of(run), b"state": state_of(run)}
    if any(stored.get(name) != value for name, value in written.items()):
        raise _corrupt(run_id)
    return run


def _corrupt(run_id: str) -> CorruptRecord:
    return CorruptRecord(f"run {run_id!r}: the stored record cannot be read; restore it from a backup", record=run_id)
