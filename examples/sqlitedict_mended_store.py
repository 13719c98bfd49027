"""The run store in sqlitedict, mended: one caller at a time looks and writes, and a write is there before it is acknowledged."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from sqlitedict import SqliteDict

from runcert import Fault, Kept, Lab, Limits, RunStore, Scope, adapter
from runcert_contract import AlreadyExists, Claims, Closed, Run, check_identifier, check_new_run, check_update, decode, encode

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
KEPT = {Fault.CLOSE: Kept()}
LOCK = threading.Lock()


class MendedRunStore:
    def __init__(self, file: Path) -> None:
        self._runs = SqliteDict(str(file), encode=json.dumps, decode=json.loads)
        self._open = True

    def close(self) -> None:
        self._open = False
        self._runs.close()

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        with LOCK:
            if run.run_id in self._runs:
                raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
            self._write(run)
        return cast("Run", decode(encode(run)))

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        return cast("Run | None", decode(self._runs.get(run_id)))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        with LOCK:
            stored = self.find(expected.run_id)
            if stored is None or stored.version != expected.version:
                return False
            self._write(updated)
        return True

    def _write(self, run: Run) -> None:
        self._runs[run.run_id] = encode(run)
        self._runs.commit(blocking=True)  # sqlitedict hands writes to a thread and goes on

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


@adapter(RunStore, scope=Scope.PROCESS, limits=LIMITS, durability=KEPT)
def mended_store(lab: Lab) -> Iterator[RunStore]:
    store = MendedRunStore(lab.directory / "runs.sqlite")
    yield store
    store.close()
