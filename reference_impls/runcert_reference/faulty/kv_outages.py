"""Faults of a store whose server is away: errors taken for answers, waits without an end, connections that stay dead."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as ServerSilent

from runcert.faulty import deviates
from runcert_contract import Listing, Run, StoreError, StoreUnavailable
from runcert_reference.faulty.over_valkey import faulty_valkey
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import Connections
from runcert_reference.kv.failures import Stage, translated
from runcert_reference.kv.operations import Question
from runcert_reference.kv.run_store import CLAIMS, ValkeyRunStore

_Answer = TypeVar("_Answer")

_IMPATIENT = replace(CLAIMS.limits, maximum_wait=timedelta(seconds=1))
"""So that a call without an end is found out in a second."""


def _or(call: Callable[[], _Answer], otherwise: _Answer, kind: type[BaseException] = RedisError) -> _Answer:
    """Give the answer, or ``otherwise`` where the driver failed."""
    try:
        return call()
    except StoreError as error:
        if not isinstance(error.__cause__, kind):
            raise
        deviates()
        return otherwise


# -- errors taken for answers


@faulty_valkey("RUN-ABSENT-1", "the clause: an outage read as not found")
class OutagesAreNotFound(ValkeyRunStore):
    """find gives None when the server cannot be reached."""

    def find(self, run_id: str) -> Run | None:
        find = super().find
        return _or(lambda: find(run_id), None)


@faulty_valkey("RUN-ABSENT-1", "the clause: a time-out")
class TimeOutsAreNotFound(ValkeyRunStore):
    """find gives None when the server does not answer in time, and raises whatever else happens."""

    def find(self, run_id: str) -> Run | None:
        find = super().find
        return _or(lambda: find(run_id), None, ServerSilent)


@faulty_valkey("RUN-ABSENT-1", "the clause: False")
class FailedUpdatesAreFalse(ValkeyRunStore):
    """compare_and_set logs what the driver raised and gives False, as if another had been faster."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        compare_and_set = super().compare_and_set
        return _or(lambda: compare_and_set(expected, updated), False)


@faulty_valkey("RUN-ABSENT-1", "the clause: an empty answer")
class FailedListingsAreEmpty(ValkeyRunStore):
    """find_resumable gives an empty listing when the server cannot be reached."""

    def find_resumable(self, tenant_id: str) -> Listing:
        find_resumable = super().find_resumable
        return _or(lambda: find_resumable(tenant_id), Listing())


# -- waits without an end


@faulty_valkey("RUN-BOUND-2", "the clause: the driver has no time-out unless one is set", limits=_IMPATIENT)
class RepliesHaveNoTimeOut(ValkeyRunStore):
    """The driver waits for a reply for as long as the connection lasts."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        deviates()
        self._connections._pool.connection_kwargs["socket_timeout"] = None
        self._connections._pool.disconnect()
        self._connections._pool.reset()


@faulty_valkey("RUN-BOUND-2", "the clause: retries, each with a time-out of its own", limits=_IMPATIENT)
class TimeOutsAreRepeated(ValkeyRunStore):
    """find asks again when a reply did not come in time, twenty times."""

    def find(self, run_id: str) -> Run | None:
        for _ in range(20):
            with suppress(StoreUnavailable):
                return super().find(run_id)
            deviates()
        return super().find(run_id)


# -- after the outage


class _OneConnection(Connections):
    """One connection, made once."""

    def __init__(self, address: Address, patience: float) -> None:
        super().__init__(address, patience)
        self._one: Any = None

    def _reply(self, question: Question[Any]) -> Any:
        with translated(Stage.CONNECTING, question.what, record=question.record):
            if self._one is None:
                self._one = self._pool.get_connection()
            elif not self._one.is_connected:
                deviates()
                raise StoreUnavailable(f"{question.what}: the connection is closed; try again when it is back")
        with translated(Stage.READING, question.what, record=question.record):
            self._one.send_command(*question.command)
            return self._one.read_response()


@faulty_valkey("RUN-USABLE-1", "the clause: a connection that is dead is not replaced")
class DeadConnectionsStay(ValkeyRunStore):
    """The handle keeps the connection that it was opened with, also when that has ended."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        self._connections.close()
        self._connections = _OneConnection(address, patience)


@faulty_valkey("RUN-USABLE-1", "the clause: a breaker that nothing closes again")
class TheFirstOutageIsForEver(ValkeyRunStore):
    """After StoreUnavailable the handle asks the server no more and raises StoreUnavailable for every call."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        self._broken = False

    def find(self, run_id: str) -> Run | None:
        if self._broken:
            deviates()
            raise StoreUnavailable(f"run {run_id!r}: the server was away; try again later")
        try:
            return super().find(run_id)
        except StoreUnavailable:
            self._broken = True
            raise
