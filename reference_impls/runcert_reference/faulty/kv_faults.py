"""Faults that come from how a key-value server is used: several commands for one step, keys, patterns, transactions, replies."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, ClassVar

import redis
from redis.exceptions import WatchError

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import (
    AlreadyExists,
    Listing,
    Run,
    check_identifier,
    check_new_run,
    check_update,
    encode,
)
from runcert_reference.faulty.gaps import Gap, let_others_in
from runcert_reference.faulty.over_valkey import faulty_async_valkey, faulty_valkey
from runcert_reference.kv.addresses import Address
from runcert_reference.kv.connections import REPLY_WAIT, AsyncConnections
from runcert_reference.kv.keys import RESUMABLE, Keys, bytes_of, state_of, text_of, version_of
from runcert_reference.kv.operations import Question, fields_of, find_run, run_of
from runcert_reference.kv.run_store import CLAIMS, AsyncValkeyRunStore, ValkeyRunStore
from runcert_reference.kv_adapters import server_of
from runcert_reference.records import write_record


class _InSingleCommands(ValkeyRunStore):
    """What the faulty stores share: commands without a script."""

    def _command(self, *command: bytes | str | int) -> Any:
        return self._connections.ask(Question(command, lambda reply: reply, "a command", writes=True))

    def _put(self, run: Run) -> None:
        pairs = [part for pair in _fields(run).items() for part in pair]
        self._command("HSET", self._keys.run(run.run_id), "tenant", bytes_of(run.tenant_id), *pairs)

    def _index(self, run: Run) -> None:
        change = "SREM" if run.status.terminal else "SADD"
        self._command(change, self._keys.index(run.tenant_id), bytes_of(run.run_id))


def _fields(run: Run) -> dict[str, bytes]:
    return {"version": version_of(run), "state": state_of(run), "record": write_record(run).encode("ascii")}


# -- several commands for one step


@faulty_valkey("RUN-CREATE-3", "E1 square1-io/laravel-idempotency#1: GET, then SET")
class CreateLooksAndThenSets(_InSingleCommands):
    """create looks whether the key is there and then writes it, in commands of their own."""

    _gap: ClassVar[Gap] = Gap()

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if self.find(run.run_id) is not None:
            raise AlreadyExists(f"run {run.run_id!r} exists")
        with self._gap.before_writing(run.run_id):
            self._put(run)
            self._index(run)
        return run


@faulty_valkey("RUN-CAS-6", "G6 agronholm/apscheduler#959: GET, compare, SET")
class UpdatesReadAndThenSet(_InSingleCommands):
    """compare_and_set reads the version and then writes the record, in commands of their own."""

    _gap: ClassVar[Gap] = Gap()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version or stored.status.terminal:
            return False
        with self._gap.before_writing(expected.run_id):
            self._put(updated)
            self._index(updated)
        return True


@faulty_valkey("RUN-CREATE-2", "A2 dapr/components-contrib#1010")
class CreateIsAnUnconditionalPut(_InSingleCommands):
    """create has no version to compare with and therefore writes whatever is there."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if self._command("EXISTS", self._keys.run(run.run_id)):
            deviates()
        self._put(run)
        self._index(run)
        return run


@faulty_valkey("RUN-RESUMABLE-1", "H1: the index is a second call, forgotten where a run ends")
class EndedRunsStayInTheSet(_InSingleCommands):
    """The index is written by calls of its own, none of which is made when a run ends, and the listing trusts the index."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted and updated.status.terminal:
            deviates()
            self._command("SADD", self._keys.index(updated.tenant_id), bytes_of(updated.run_id))
        return accepted

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        members = self._command("SMEMBERS", self._keys.index(tenant_id))
        found = [self.find(text_of(member)) for member in members]
        return Listing([run for run in found if run is not None])


@faulty_valkey("RUN-CONTENTION-1", "L3 propeller-heads/tycho#1424: a watched transaction")
class WatchErrorsLeak(_InSingleCommands):
    """compare_and_set watches the key, and lets the error out with which the driver reports that another was faster."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        self._client = _client(address)

    def close(self) -> None:
        super().close()
        self._client.close()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        key = self._keys.run(expected.run_id)
        with self._client.pipeline() as transaction:
            transaction.watch(key)  # type: ignore[no-untyped-call]  # the driver leaves it untyped
            if self.find(expected.run_id) is None or transaction.hmget(key, "version", "state") != [
                version_of(expected),
                RESUMABLE,
            ]:
                return False
            let_others_in()
            transaction.multi()
            transaction.hset(key, mapping=_fields(updated))  # type: ignore[arg-type]  # a mapping of bytes is one
            try:
                transaction.execute()
            except WatchError:
                deviates()
                raise
        self._index(updated)
        return True


# -- keys


class _KeysWithoutNamespaceInIndexes(Keys):
    """The namespace is part of the keys of runs only."""

    @property
    def indexes(self) -> bytes:
        return b"resumable:"


@faulty_valkey("RUN-NAMESPACE-1", "D7 redis-developer/langgraph-redis#187")
class IndexesHaveNoNamespace(ValkeyRunStore):
    """The keys of the indexes lack the namespace, so that all namespaces share them."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        deviates()
        self._keys = _KeysWithoutNamespaceInIndexes(namespace)


@faulty_valkey("RUN-ID-4", "D3 sibidharan/zealphp#247")
class TenantAndRunAreJoinedInOneKey(_InSingleCommands):
    """The index of resumable runs is one hash, whose fields are tenant and run id with a colon between them."""

    @property
    def _entries(self) -> bytes:
        return self._keys.prefix + b"entries"

    def create(self, run: Run) -> Run:
        created = super().create(run)
        field = bytes_of(f"{run.tenant_id}:{run.run_id}")
        if self._command("HEXISTS", self._entries, field):
            deviates()
        self._command("HSET", self._entries, field, bytes_of(run.run_id))
        return created

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        entries = fields_of(self._command("HGETALL", self._entries))
        found = [self.find(text_of(run_id)) for field, run_id in entries.items() if field.startswith(bytes_of(f"{tenant_id}:"))]
        return Listing([run for run in found if run is not None and not run.status.terminal])


@faulty_valkey("RUN-ID-3", "D4 langchain-ai/langgraph#8300: KEYS with a glob")
class TenantsAreMatchedByKeys(_InSingleCommands):
    """find_resumable asks for the indexes with KEYS, in whose pattern * ? [ ] of a tenant stay what they are."""

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        items: list[Run] = []
        for key in self._command("KEYS", self._keys.index(tenant_id)):
            if key != self._keys.index(tenant_id):
                deviates()
            found = [self.find(text_of(member)) for member in self._command("SMEMBERS", key)]
            items += [run for run in found if run is not None and not run.status.terminal]
        return Listing(items)


# -- values


@faulty_valkey("RUN-FIDELITY-2", "the clause: replies are decoded as far as possible")
class RepliesAreDecodedWithReplacements(_InSingleCommands):
    """Records are written as UTF-8, and find decodes them with a replacement for each byte that is no ASCII."""

    def create(self, run: Run) -> Run:
        created = super().create(run)
        text = json.dumps(encode(run), ensure_ascii=False, separators=(",", ":"))
        self._command("HSET", self._keys.run(run.run_id), "record", text.encode("utf-8"))
        return created

    def find(self, run_id: str) -> Run | None:
        check_identifier(run_id, "run_id", CLAIMS)

        def read(reply: list[bytes]) -> Run | None:
            stored = fields_of(reply)
            text = stored.get(b"record", b"").decode("ascii", "replace")
            if not text.isascii():
                deviates()
            return run_of(run_id, {**stored, b"record": ascii_json(text)}) if stored else None

        return self._connections.ask(Question(find_run(self._keys, run_id).command, read, f"run {run_id!r}", run_id))


def ascii_json(text: str) -> bytes:
    """Give the same JSON with every other character escaped."""
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04x}" for letter in text).encode("ascii")


@contextmanager
def _driver(lab: Lab) -> Iterator[redis.Redis]:
    with closing(_client(server_of("valkey")(lab))) as client:
        yield client


def _client(address: Address) -> redis.Redis:
    return redis.Redis(
        host=address.host,
        port=address.port,
        db=address.database,
        username=address.username,
        password=address.password,
        socket_timeout=REPLY_WAIT,
        protocol=2,
    )


def _delete(lab: Lab, contract: str, key: str) -> None:  # noqa: ARG001  # one contract only
    deviates()
    with _driver(lab) as client:
        client.delete(Keys(lab.namespace).run(key))


@faulty_valkey("RUN-REUSE-1", "the clause: retention removes keys, as a time to live does", purge=_delete)
class RetentionRemovesKeys(ValkeyRunStore):
    """Retention removes the key of a run, after which nothing knows that the id was used."""


@faulty_valkey("RUN-LIST-1", "J1 rustfs/rustfs#5595: one call of SSCAN")
class OnePageOfTheIndexIsRead(_InSingleCommands):
    """find_resumable asks SSCAN once and takes its first page for everything."""

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        cursor, members = self._command("SSCAN", self._keys.index(tenant_id), 0, "COUNT", 100)
        if cursor != b"0":
            deviates()
        found = [self.find(text_of(member)) for member in members]
        return Listing([run for run in found if run is not None and not run.status.terminal])


# -- the connection


class _OneConnection(AsyncConnections):
    """One connection for all tasks, kept in use also when a call is cancelled between command and reply."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._one: Any = None
        self._turn = asyncio.Lock()

    async def ask(self, question: Question[Any]) -> Any:
        self.check_open()
        async with self._turn:
            if self._one is None:
                self._one = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # the driver leaves it untyped
            await self._one.send_command(*question.command)
            try:
                reply = await self._one.read_response(disconnect_on_error=False)
            except asyncio.CancelledError:
                deviates()
                raise
        return question.read(reply)


@faulty_async_valkey("RUN-CANCEL-1", "redis/redis-py#2624: the reply of a cancelled call stays on the connection")
class CancelledCallsLeaveTheirReply(AsyncValkeyRunStore):
    """A call that is cancelled between command and reply leaves the reply to the next call on the connection."""

    def __init__(self, address: Address, namespace: str, patience: float = math.inf) -> None:
        super().__init__(address, namespace, patience)
        self._connections = _OneConnection(address)
