"""Faults with the errors that leave a store, and with what they show."""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterator
from typing import Any

from runcert import Adapter, Lab, RunStore, adapter
from runcert.faulty import FaultyStore, deviates
from runcert_contract import AlreadyExists, Closed, CorruptRecord, Run, TooLarge
from runcert_reference.adapters import count_memory, damage_memory, forget_memory
from runcert_reference.faulty.over_memory import MemoryRunStoreInLab, faulty_memory, make_faulty
from runcert_reference.memory import CLAIMS, MemoryRunStore, space_of

_log = logging.getLogger(__name__)


@faulty_memory("RUN-ERROR-1", source="the clause: recursion")
class RecursionErrorsLeave(MemoryRunStore):
    """A value that json cannot write because it is nested too deep ends in a RecursionError."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except TooLarge as error:
            if "nested" in str(error):
                deviates()
                json.dumps(run.input)
                json.dumps(run.context)
            raise


@faulty_memory("RUN-ERROR-1", source="the clause: integers of a driver")
class DriverErrorsLeaveForLargeIntegers(MemoryRunStore):
    """A count that does not fit into 64 bits ends in the error of the encoder."""

    def create(self, run: Run) -> Run:
        stored = super().create(run)
        if run.recovery_count >= 2**63:
            deviates()
            struct.pack("<q", run.recovery_count)
        return stored


@faulty_memory("RUN-ERROR-1", source="the clause: versions of a driver")
class DriverErrorsLeaveForLargeVersions(MemoryRunStore):
    """A version that does not fit into the column of 64 bits ends in the error of the driver."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        changed = super().compare_and_set(expected, updated)
        if type(updated.version) is int and updated.version >= 2**63:
            deviates()
            struct.pack("<q", updated.version)
        return changed


@faulty_memory("RUN-ERROR-1", source="the clause: text of a driver")
class EncodingErrorsLeave(MemoryRunStore):
    """An identifier that is no UTF-8 ends in a UnicodeEncodeError."""

    def find(self, run_id: str) -> Run | None:
        try:
            run_id.encode()
        except UnicodeEncodeError:
            deviates()
            raise
        return super().find(run_id)


@faulty_memory("RUN-ERROR-1", source="the clause: a missing row")
class KeyErrorsLeave(MemoryRunStore):
    """An update of a run that is not there ends in a KeyError."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if expected.run_id not in self._space.entries and super().compare_and_set(expected, updated) is False:
            deviates()
            raise KeyError(expected.run_id)
        return super().compare_and_set(expected, updated)


@faulty_memory("RUN-ERROR-2", source="P1 mako-ai/mako#909: error text")
class MessagesShowTheWholeRun(MemoryRunStore):
    """The message about an id that is taken quotes the run, attempt token included."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            raise AlreadyExists(f"run {run.run_id!r} exists; not stored: {_everything(run)}") from None


@faulty_memory("RUN-ERROR-2", source="P1 twin: captured logs")
class LogLinesShowTheToken(MemoryRunStore):
    """Each refused update is logged with its parameters."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        answer = super().compare_and_set(expected, updated)
        if not answer:
            deviates()
            _log.debug("UPDATE runs SET ... matched no row, parameters %s", _everything(updated))
        return answer


@faulty_memory("RUN-ERROR-2", source="the clause: the chained cause")
class CausesShowTheToken(MemoryRunStore):
    """The error is clean, and its cause quotes the parameters of the statement."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists as error:
            deviates()
            raise AlreadyExists(str(error)) from RuntimeError(f"duplicate key [parameters: {_everything(run)}]")


@faulty_memory("RUN-ERROR-2", source="the clause: what cannot be decoded is quoted")
class CorruptRecordsAreQuoted(MemoryRunStore):
    """The error about a record that cannot be read shows what is stored."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except CorruptRecord:
            deviates()
            record = self._space.entries[run_id].record
            raise CorruptRecord(f"run {run_id!r} cannot be read: {record}", record=run_id) from None


class MemoryRunStoreWithPassword(MemoryRunStoreInLab):
    """The reference store, opened with a password."""

    @property
    def _address(self) -> str:
        return f"memory://runs:{self._lab.secret}@localhost/{self._lab.namespace}"


def _with_password(kind: type[MemoryRunStoreInLab]) -> Adapter:
    def open_store(lab: Lab) -> Iterator[RunStore]:
        store = kind(space_of(lab.namespace), lab)
        yield store
        store.close()

    return adapter(
        RunStore,
        target=kind.__name__,
        scope=CLAIMS.scope,
        handles=CLAIMS.handles,
        capabilities=CLAIMS.capabilities,
        limits=CLAIMS.limits,
        damage=damage_memory,
        inventory=count_memory,
        dispose=forget_memory,
    )(open_store)


def _faulty_with_password(source: str) -> Any:
    def decorate(store: type[MemoryRunStoreInLab]) -> FaultyStore:
        return make_faulty(
            store, "RUN-ERROR-2", source, "memory", _with_password(store), _with_password(MemoryRunStoreWithPassword)
        )

    return decorate


@_faulty_with_password("P1 twin: repr")
class ReprShowsThePassword(MemoryRunStoreWithPassword):
    """The repr of the store is the address with the password in it."""

    def __repr__(self) -> str:
        deviates()
        return f"<{type(self).__name__} at {self._address}>"


@_faulty_with_password("the clause: the address in an error")
class ErrorsShowTheAddress(MemoryRunStoreWithPassword):
    """The error of a closed handle names the address, password included."""

    def _check_open(self) -> None:
        try:
            super()._check_open()
        except Closed:
            deviates()
            raise Closed(f"{self._address} was closed; open another handle") from None


def _everything(run: Run) -> dict[str, object]:
    return {name: getattr(run, name) for name in ("run_id", "tenant_id", "owner", "attempt_token", "input")}
