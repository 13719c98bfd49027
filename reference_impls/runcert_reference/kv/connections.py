"""How questions reach a server: a small pool of connections for each handle, and no call that the driver repeats by itself.

A connection is taken (and made, where there is none) before a command is sent, as a step of its own: that is what tells a
server that cannot be reached, where nothing was written, from a reply that was lost.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from runcert_contract import Contended
from runcert_reference.handles import ShieldedCalls, closed_handle
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.failures import Stage, translated
from runcert_reference.kv.operations import Question

__all__ = ["AsyncConnections", "Connections"]

_Answer = TypeVar("_Answer")

CONNECTIONS = 8
"""How many connections a handle has at most."""

TURN_WAIT, CONNECT_WAIT, REPLY_WAIT = 2.0, 2.0, 2.5
"""How long a call waits for one of them, for a new one, and for a reply, in seconds.

A call waits at most for a turn, a connection, the reply to its login and its own, which stays below the maximum wait that the
store declares.
"""


def _options(address: Address, patience: float) -> dict[str, Any]:
    return {
        "host": address.host,
        "port": address.port,
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_connect_timeout": min(CONNECT_WAIT, patience),
        "socket_timeout": min(REPLY_WAIT, patience),
        "max_connections": CONNECTIONS,
        "protocol": 2,
        "driver_info": None,
        "decode_responses": False,
    }


class _Connection(Protocol):
    """What is used of a connection of the driver."""

    def send_command(self, *args: bytes | str | int) -> None: ...

    def read_response(self) -> Any: ...


class Connections:
    """The connections of one handle; threads may share it.

    Args:
        address: the server.
        patience: the longest time in seconds that a new connection or a reply is waited for, where that is less than usual.
    """

    def __init__(self, address: Address, patience: float = math.inf) -> None:
        self._pool = redis.ConnectionPool(retry=Retry(NoBackoff(), 0), **_options(address, patience))
        self._changed = threading.Condition()
        self._running = 0
        self._ended = False

    def close(self) -> None:
        """Refuse further questions, wait for those that are under way, and close every connection."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._running == 0)
        self._pool.disconnect()

    def check_open(self) -> None:
        """Refuse a question on a closed handle.

        Raises:
            Closed: :meth:`close` was called.
        """
        if self._ended:
            raise closed_handle()

    def ask(self, question: Question[_Answer]) -> _Answer:
        """Send a command and give the answer.

        Raises:
            StoreError: what the server or the way there makes of it.
        """
        with self._turn(question.what):
            reply = self._reply(question)
        return question.read(reply)

    def _reply(self, question: Question[Any]) -> Any:
        with translated(Stage.CONNECTING, question.what, record=question.record):
            taken = self._pool.get_connection()
        connection = cast("_Connection", taken)
        try:
            with translated(_sent(question), question.what, record=question.record):
                connection.send_command(*question.command)
                return connection.read_response()
        finally:
            self._pool.release(taken)

    @contextmanager
    def _turn(self, what: str) -> Iterator[None]:
        """Be one of those who use a connection."""
        with self._changed:
            free = self._changed.wait_for(lambda: self._ended or self._running < CONNECTIONS, TURN_WAIT)
            self.check_open()
            if not free:
                raise _all_in_use(what)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


class _AsyncConnection(Protocol):
    """What is used of an asynchronous connection of the driver."""

    async def send_command(self, *args: bytes | str | int) -> None: ...

    async def read_response(self) -> Any: ...


class AsyncConnections:
    """The connections of one handle on an event loop; its tasks may share it.

    A question is asked to its end even where its caller is cancelled (:class:`.ShieldedCalls`).

    Args:
        address: the server.
        patience: the longest time in seconds that a new connection or a reply is waited for, where that is less than usual.
    """

    def __init__(self, address: Address, patience: float = math.inf) -> None:
        self._pool = redis.asyncio.ConnectionPool(retry=AsyncRetry(NoBackoff(), 0), **_options(address, patience))
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._calls = ShieldedCalls()

    async def close(self) -> None:
        """Refuse further questions, wait for those that are under way, and close every connection."""
        await self._calls.end(self._pool.disconnect)

    def check_open(self) -> None:
        """Refuse a question on a closed handle.

        Raises:
            Closed: :meth:`close` was called.
        """
        self._calls.check_open()

    async def ask(self, question: Question[_Answer]) -> _Answer:
        """Send a command and give the answer.

        Raises:
            StoreError: what the server or the way there makes of it.
        """
        self.check_open()
        return question.read(await self._calls.run(self._reply(question)))

    async def _reply(self, question: Question[Any]) -> Any:
        try:
            await asyncio.wait_for(self._turns.acquire(), TURN_WAIT)
        except TimeoutError as error:
            raise _all_in_use(question.what) from error
        try:
            return await self._reply_in_turn(question)
        finally:
            self._turns.release()

    async def _reply_in_turn(self, question: Question[Any]) -> Any:
        with translated(Stage.CONNECTING, question.what, record=question.record):
            taken = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # the driver leaves it untyped
        connection = cast("_AsyncConnection", taken)
        try:
            with translated(_sent(question), question.what, record=question.record):
                await connection.send_command(*question.command)
                return await connection.read_response()
        finally:
            await self._pool.release(taken)


def _sent(question: Question[Any]) -> Stage:
    return Stage.WRITING if question.writes else Stage.READING


def _all_in_use(what: str) -> Contended:
    return Contended(f"{what}: every connection of this handle was in use for too long; try again")
