"""Faults of what a key-value server does with records by itself: times to live, and memory that is full."""

from __future__ import annotations

import math

from runcert.faulty import deviates
from runcert_contract import Misconfigured, Run, RunStatus, StoreUnavailable
from runcert_reference.faulty.over_valkey import faulty_valkey
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import Connections
from runcert_reference.kv.keys import Keys
from runcert_reference.kv.operations import Question
from runcert_reference.kv.run_store import ValkeyRunStore

_A_DAY = 86_400


def _expires(store: ValkeyRunStore, run_id: str) -> None:
    deviates()
    command = ("EXPIRE", store._keys.run(run_id), _A_DAY)
    store._connections.ask(Question(command, lambda reply: reply, "a time to live", writes=True))


@faulty_valkey("RUN-EVICT-1", "the clause: a default time to live")
class RunsExpire(ValkeyRunStore):
    """Each run gets a time to live of a day when it is created, which no update takes away."""

    def create(self, run: Run) -> Run:
        created = super().create(run)
        _expires(self, run.run_id)
        return created


@faulty_valkey("RUN-EVICT-1", "the clause: retention by the backend")
class EndedRunsExpire(ValkeyRunStore):
    """A run that has ended gets a time to live, so that its id is free again afterwards."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and updated.status.terminal:
            _expires(self, updated.run_id)
        return accepted


@faulty_valkey("RUN-EVICT-1", "the clause: retention of results, which failures have none of")
class SucceededRunsExpire(ValkeyRunStore):
    """A run that has succeeded gets a time to live; runs that failed or were cancelled are kept."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and updated.status is RunStatus.SUCCEEDED:
            _expires(self, updated.run_id)
        return accepted


@faulty_valkey("RUN-EVICT-1", "the clause: a server set to evict", prepare=None, dispose=None)
class EvictingServersAreAccepted(ValkeyRunStore):
    """Opening looks at the release of the server and not at what it does when its memory is full."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        try:
            super().__init__(address, namespace, patience)
        except Misconfigured:
            deviates()
            self._keys = Keys(namespace)
            self._connections = Connections(address, patience)


@faulty_valkey("RUN-EVICT-1", "the clause: a refused write is acknowledged")
class WritesIntoFullMemoryAreAcknowledged(ValkeyRunStore):
    """create gives the run back although the server took no write: a queue in memory is to write it later."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except StoreUnavailable:
            deviates()
            return run
