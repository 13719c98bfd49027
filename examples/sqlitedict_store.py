"""A run store in sqlitedict that reads right: whoever has the id free creates, whoever has the version updates."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from sqlitedict import SqliteDict

from runcert import Fault, Kept, Lab, Limits, RunStore, Scope, adapter
from runcert_contract import AlreadyExists, Claims, Closed, Run, check_identifier, check_new_run, check_update, decode, encode

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
KEPT = {Fault.CLOSE: Kept()}


class SqlitedictRunStore:
    def __init__(self, file: Path) -> None:
        self._runs = SqliteDict(str(file), autocommit=True, encode=json.dumps, decode=json.loads)
        self._open = True

    def close(self) -> None:
        self._open = False
        self._runs.close()

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if run.run_id in self._runs:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        self._runs[run.run_id] = encode(run)
        return cast("Run", decode(encode(run)))

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        return cast("Run | None", decode(self._runs.get(run_id)))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version:
            return False
        self._runs[updated.run_id] = encode(updated)
        return True

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


@adapter(RunStore, scope=Scope.PROCESS, limits=LIMITS, durability=KEPT)
def sqlitedict_store(lab: Lab) -> Iterator[RunStore]:
    store = SqlitedictRunStore(lab.directory / "runs.sqlite")
    yield store
    store.close()
