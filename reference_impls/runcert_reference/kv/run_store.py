"""Run stores in Valkey or Redis: one handle is a small pool of connections to one server."""

from __future__ import annotations

import math
from typing import Self

from runcert_contract import (
    Capability,
    Claims,
    Fault,
    Handles,
    Kept,
    Limits,
    Listing,
    Run,
    Scope,
    Stance,
    check_identifier,
    check_new_run,
    check_update,
)
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import AsyncConnections, Connections
from runcert_reference.kv.keys import Keys
from runcert_reference.kv.operations import create_run, find_run, list_resumable, replace_run
from runcert_reference.kv.server_check import check_server

__all__ = ["CLAIMS", "AsyncValkeyRunStore", "ValkeyRunStore"]

CLAIMS = Claims(
    scope=Scope.CLUSTER,
    handles=Handles.SHARED,
    durability={Fault.CLOSE: Kept()},
    capabilities=dict.fromkeys((Capability.ENUMERATES, Capability.GUARDS_TERMINAL, Capability.BOUNDS_SILENCE), Stance.CLAIMED),
    limits=Limits(identifier=1024, text=100_000, depth=64, accepts_up_to=1_000_000, refuses_above=1_000_000),
    topology="one primary without eviction, cluster mode off; what outlives the server is a matter of its own settings",
)
"""What is said of this store."""


class ValkeyRunStore:
    """A run store in Valkey or Redis; threads may share it.

    Args:
        address: the server.
        namespace: what every key begins with; stores of different namespaces know nothing of each other.
        patience: the longest time in seconds that a new connection or a reply is waited for, where that is less than usual.

    Raises:
        StoreError: the server cannot be reached, or cannot hold authoritative records.
    """

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        self._keys = Keys(namespace)
        self._connections = Connections(address, patience)
        try:
            self._connections.ask(check_server())
        except BaseException:
            self._connections.close()
            raise

    def close(self) -> None:
        """Let calls that are under way end, refuse new ones, and close every connection."""
        self._connections.close()

    def create(self, run: Run) -> Run:
        """Store a new run (RUN-CREATE-1 to -5)."""
        self._connections.check_open()
        check_new_run(run, CLAIMS)
        return self._connections.ask(create_run(self._keys, run))

    def find(self, run_id: str) -> Run | None:
        """Give the run, or None (RUN-FIND-1 to -3)."""
        self._connections.check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        return self._connections.ask(find_run(self._keys, run_id))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one (RUN-CAS-1 to -10)."""
        self._connections.check_open()
        check_update(expected, updated, CLAIMS)
        return self._connections.ask(replace_run(self._keys, expected, updated))

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal (RUN-RESUMABLE-1)."""
        self._connections.check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        return self._connections.ask(list_resumable(self._keys, tenant_id))


class AsyncValkeyRunStore:
    """The same store for callers on an event loop; open one with :meth:`open`.

    Args:
        address: the server.
        namespace: what every key begins with.
        patience: the longest time in seconds that a new connection or a reply is waited for, where that is less than usual.
    """

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        self._keys = Keys(namespace)
        self._connections = AsyncConnections(address, patience)

    @classmethod
    async def open(cls, address: Address, namespace: str, patience: float = math.inf) -> Self:
        """Open a handle.

        Raises:
            StoreError: the server cannot be reached, or cannot hold authoritative records.
        """
        store = cls(address, namespace, patience)
        try:
            await store._connections.ask(check_server())
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Let calls that are under way end, refuse new ones, and close every connection."""
        await self._connections.close()

    async def create(self, run: Run) -> Run:
        """Store a new run."""
        self._connections.check_open()
        check_new_run(run, CLAIMS)
        return await self._connections.ask(create_run(self._keys, run))

    async def find(self, run_id: str) -> Run | None:
        """Give the run, or None."""
        self._connections.check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        return await self._connections.ask(find_run(self._keys, run_id))

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still the expected one."""
        self._connections.check_open()
        check_update(expected, updated, CLAIMS)
        return await self._connections.ask(replace_run(self._keys, expected, updated))

    async def find_resumable(self, tenant_id: str) -> Listing:
        """Give the tenant's runs that are not terminal."""
        self._connections.check_open()
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        return await self._connections.ask(list_resumable(self._keys, tenant_id))
