"""An asynchronous run store over redis.asyncio: one hash for each run, and a script wherever something is compared."""

import json
import math
from collections.abc import AsyncIterator
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from runcert import AsyncRunStore, Fault, Handles, Kept, Lab, Limits, Scope, adapter
from runcert_contract import (
    AlreadyExists,
    Claims,
    Closed,
    Misconfigured,
    OutcomeUnknown,
    Run,
    StoreUnavailable,
    check_identifier,
    check_new_run,
    check_update,
    decode,
    encode,
)

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
WRITE = """
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1
"""


class RedisAsyncioRunStore:
    def __init__(self, url: str, prefix: str, patience: float) -> None:
        # no retries: a write whose answer was lost may have been done, and only the caller knows what to do then
        self._client = Redis.from_url(
            url, socket_timeout=patience, socket_connect_timeout=patience, retry=Retry(NoBackoff(), 0)
        )
        self._prefix, self._open = prefix, True

    async def start(self) -> None:
        try:
            found = await self._client.info("memory")
        except RedisError as error:
            raise StoreUnavailable("the server cannot be reached") from error
        if found["maxmemory_policy"] != "noeviction":
            raise Misconfigured("this server removes keys when its memory is full; set maxmemory-policy to noeviction")

    async def close(self) -> None:
        self._open = False
        await self._client.aclose()

    async def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if not await self._write("", run):
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return cast("Run", decode(encode(run)))

    async def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        try:
            text = await cast("Any", self._client.hget(self._prefix + run_id, "record"))
        except RedisError as error:
            raise StoreUnavailable(f"run {run_id!r} cannot be read now") from error
        return None if text is None else cast("Run", decode(json.loads(text)))

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        return await self._write(str(expected.version), updated)

    async def _write(self, expected: str, run: Run) -> bool:
        arguments = (self._prefix + run.run_id, expected, str(run.version), json.dumps(encode(run)))
        try:
            return bool(await cast("Any", self._client.eval(WRITE, 1, *arguments)))
        except RedisError as error:
            raise OutcomeUnknown(f"run {run.run_id!r}: no answer; find it to see whether it was written") from error

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


@adapter(AsyncRunStore, scope=Scope.CLUSTER, handles=Handles.SHARED, limits=LIMITS, durability={Fault.CLOSE: Kept()})
async def redis_asyncio_store(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    store = RedisAsyncioRunStore(lab.server("valkey"), f"{lab.namespace}:", lab.patience or math.inf)
    await store.start()
    yield store
    await store.close()
