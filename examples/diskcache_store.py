"""A run store in diskcache: one key for each run, and a transaction around what has to be read before it is written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import diskcache

from runcert import Fault, Handles, Kept, Lab, Limits, RunStore, Scope, adapter
from runcert_contract import AlreadyExists, Claims, Closed, Run, check_identifier, check_new_run, check_update, decode, encode

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
KEPT = {Fault.CLOSE: Kept()}


class DiskcacheRunStore:
    def __init__(self, directory: Path) -> None:
        # without a policy and a limit on the size: a cache removes what is old, a store of runs must not
        self._cache = diskcache.Cache(str(directory), eviction_policy="none", size_limit=2**62, timeout=5)
        self._open = True

    def close(self) -> None:
        self._open = False
        self._cache.close()

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        text = json.dumps(encode(run))
        if not self._cache.add(run.run_id, text, retry=True):
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return cast("Run", decode(json.loads(text)))

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        text = self._cache.get(run_id, retry=True)
        return None if text is None else cast("Run", decode(json.loads(str(text))))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        with self._cache.transact(retry=True):
            stored = self.find(expected.run_id)
            if stored is None or stored.version != expected.version:
                return False
            return bool(self._cache.set(expected.run_id, json.dumps(encode(updated))))

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


@adapter(RunStore, scope=Scope.HOST, handles=Handles.SHARED, limits=LIMITS, durability=KEPT)
def diskcache_store(lab: Lab) -> Iterator[RunStore]:
    store = DiskcacheRunStore(lab.directory)
    yield store
    store.close()
