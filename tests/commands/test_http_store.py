"""A store with a connection for each call: what it says while the service is gone is judged like that of any other."""

from __future__ import annotations

from pathlib import Path

from .conftest import Runcert

EXAMPLES = Path(__file__).parents[2] / "examples"
ADAPTER = f"""
import sys
from collections.abc import Iterator
from typing import cast

sys.path.insert(0, {str(EXAMPLES)!r})

from http_store import HttpRunStore, start_service, stop_service
from runcert import Fault, Handles, Kept, Lab, RunStore, Scope, adapter
from runcert_contract import Run, StoreUnavailable


class OutagesAreNotFound(HttpRunStore):
    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except StoreUnavailable:
            return None


class Remembers(HttpRunStore):
    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._known = {{}}

    def find(self, run_id: str) -> Run | None:
        try:
            self._known[run_id] = super().find(run_id)
        except StoreUnavailable:
            if run_id not in self._known:
                raise
        return self._known[run_id]


def _adapter(name, kind):
    def opened(lab: Lab) -> Iterator[RunStore]:
        host, port = lab.route("127.0.0.1", int(cast("int", lab.prepared)))
        yield kind(host, port, lab.patience or 5.0)

    options = dict(scope=Scope.HOST, handles=Handles.SHARED, durability={{Fault.CLOSE: Kept()}})
    return adapter(RunStore, target=name, prepare=start_service, dispose=stop_service, **options)(opened)


not_found = _adapter("not-found", OutagesAreNotFound)
remembers = _adapter("remembers", Remembers)
"""


def test_a_service_that_is_gone_is_no_answer_for_a_store_that_connects_for_each_call(runcert: Runcert, tmp_path: Path) -> None:
    file = tmp_path / "stores.py"
    file.write_text(ADAPTER, encoding="utf-8")
    only = ["--only", "RUN-ABSENT-1", "--depth", "quick", "--seed", "1"]

    right = runcert("certify", str(EXAMPLES / "http_store.py"), *only, expected=0)
    wrong = runcert("certify", f"{file}:not_found", *only, expected=1)
    undecided = runcert("certify", f"{file}:remembers", *only, expected=3)

    assert "RUN-ABSENT-1       pass" in right.out
    assert "RUN-ABSENT-1       fail          None" in wrong.out
    assert "RUN-ABSENT-1       inconclusive" in undecided.out
