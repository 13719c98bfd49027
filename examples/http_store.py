"""A run store behind HTTP, as its clients see it; the adapter starts the service of http_service.py for each namespace."""

import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import cast
from urllib.parse import quote

from runcert import Capability, Fault, Handles, Kept, Lab, Limits, RunStore, Scope, Stance, adapter
from runcert_contract import (
    AlreadyExists,
    Claims,
    Closed,
    OutcomeUnknown,
    Run,
    StoreError,
    StoreUnavailable,
    check_identifier,
    check_new_run,
    check_update,
    decode,
    encode,
)

LIMITS = Limits(identifier=1024, depth=64, accepts_up_to=2**20, refuses_above=2**20)
CLAIMS = Claims(limits=LIMITS)
PATIENCE = 5.0  # seconds


class HttpRunStore:
    def __init__(self, host: str, port: int, patience: float) -> None:
        self._host, self._port, self._patience, self._open = host, port, patience, True

    def close(self) -> None:
        self._open = False

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if self._put(run, {}) != 204:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        return cast("Run", decode(encode(run)))

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        status, text = self._ask("GET", run_id, StoreUnavailable)
        return None if status == 404 else cast("Run", decode(json.loads(text)))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        return self._put(updated, {"If-Match": str(expected.version)}) == 204

    def _put(self, run: Run, headers: dict[str, str]) -> int:
        content = json.dumps({"version": run.version, "record": json.dumps(encode(run))})
        return self._ask("PUT", run.run_id, OutcomeUnknown, content, headers)[0]

    def _ask(
        self, method: str, run_id: str, lost: type[StoreError], content: str = "", headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        connection = HTTPConnection(self._host, self._port, timeout=self._patience)
        try:
            connection.connect()
        except OSError as error:
            raise StoreUnavailable("the service cannot be reached; nothing was asked") from error
        try:
            connection.request(method, f"/runs/{quote(run_id, safe='')}", content, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException) as error:
            raise lost(f"run {run_id!r}: the service did not answer") from error
        finally:
            connection.close()

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")


SERVICES: dict[str, "subprocess.Popen[str]"] = {}


def start_service(lab: Lab) -> int:
    program = Path(__file__).with_name("http_service.py")
    service = subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    SERVICES[lab.namespace] = service
    assert service.stdout is not None
    return int(service.stdout.readline())


def stop_service(lab: Lab) -> None:
    with SERVICES.pop(lab.namespace) as service:
        service.terminate()


@adapter(
    RunStore,
    scope=Scope.HOST,
    handles=Handles.SHARED,
    limits=LIMITS,
    durability={Fault.CLOSE: Kept()},
    capabilities={Capability.BOUNDS_SILENCE: Stance.CLAIMED},
    prepare=start_service,
    dispose=stop_service,
)
def http_store(lab: Lab) -> Iterator[RunStore]:
    host, port = lab.route("127.0.0.1", int(cast("int", lab.prepared)))
    store = HttpRunStore(host, port, lab.patience or PATIENCE)
    yield store
    store.close()
