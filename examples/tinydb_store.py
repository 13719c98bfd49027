"""A run store in TinyDB for one program at a time: the whole file is written anew at every change."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tinydb import TinyDB, where

from runcert import Fault, Kept, Lab, Limits, RunStore, adapter
from runcert_contract import AlreadyExists, Claims, Closed, Run, check_identifier, check_new_run, check_update, decode, encode

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
KEPT = {Fault.CLOSE: Kept()}


class TinydbRunStore:
    def __init__(self, file: Path) -> None:
        self._runs = TinyDB(file, encoding="utf-8")
        self._open = True

    def close(self) -> None:
        self._open = False
        self._runs.close()

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if self.find(run.run_id) is not None:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        self._runs.insert({"id": run.run_id, "run": encode(run)})
        return cast("Run", decode(encode(run)))

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        found = self._runs.get(where("id") == run_id)
        return None if found is None else cast("Run", decode(found["run"]))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version:
            return False
        self._runs.update({"run": encode(updated)}, where("id") == updated.run_id)
        return True

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


@adapter(RunStore, limits=LIMITS, durability=KEPT)
def tinydb_store(lab: Lab) -> Iterator[RunStore]:
    store = TinydbRunStore(lab.directory / "runs.json")
    yield store
    store.close()
