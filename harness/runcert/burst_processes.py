"""The client processes of bursts: started once for a target and kept, because starting them takes longer than a burst."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runcert.burst_programs import CLIENTS, OVERTIME, Program, hanging
from runcert.cases import Case, Namespace
from runcert.faulty import note_deviations
from runcert.history import Event
from runcert.problems import AdapterProblem, KitProblem
from runcert_contract import JsonValue, Outcome, Returned, Scope, decode, encode

__all__ = ["processes", "program_named"]

_KEPT = "burst processes"
_PATIENCE = 60.0


def processes(case: Case, program: Program, work: object) -> list[Event]:
    """Run a program in every client process of the target, and give what they did.

    Raises:
        AdapterProblem: a client process ended, or could not open the store.
        Violation: a call did not end.
    """
    return _pool_of(case).run(case.namespace(), program, work)


def program_named(name: str) -> Program:
    """Give the program ``module:function``, in a client process."""
    module, _, function = name.partition(":")
    program: Program = getattr(importlib.import_module(module), function)
    return program


def _pool_of(case: Case) -> _ProcessPool:
    kept = case.workplace.kept.get(_KEPT)
    if isinstance(kept, _ProcessPool) and kept.alive:
        return kept
    private = case.claims.scope is Scope.CLUSTER
    homes = _private_homes(case.workplace.root) if private else []
    pool = _ProcessPool(case.workplace.spec, case.claims.limits.maximum_wait.total_seconds(), homes)
    case.workplace.kept[_KEPT] = pool
    case.workplace.at_end.append(pool.stop)
    return pool


def _private_homes(root: Path) -> list[Path]:
    homes = [root / f"client-{number}" for number in range(CLIENTS)]
    for home in homes:
        home.mkdir(parents=True, exist_ok=True)
    return homes


class _ProcessPool:
    """The client processes of one target.

    Args:
        spec: how a process resolves the target.
        maximum_wait: the declared maximum wait of a call, in seconds.
        homes: a directory for each client when nothing but the server may join them: then each has its own home, temporary
            directory, directory of the lab, and clock; empty otherwise.
    """

    def __init__(self, spec: str, maximum_wait: float, homes: Sequence[Path]) -> None:
        self._maximum_wait = maximum_wait
        self._homes = homes
        self._clients = [self._start(spec, number) for number in range(CLIENTS)]

    @property
    def alive(self) -> bool:
        return all(client.poll() is None for client in self._clients)

    def _start(self, spec: str, number: int) -> subprocess.Popen[str]:
        home = str(self._homes[number]) if self._homes else ""
        environment = dict(os.environ)
        if home:
            environment |= {"HOME": home, "TMPDIR": home, "TEMP": home, "TMP": home}
        command = [
            sys.executable,
            "-P",
            "-m",
            "runcert.burst_client",
            spec,
            str(number),
            home,
            str(self._maximum_wait + OVERTIME),
        ]
        return subprocess.Popen(  # noqa: S603  # our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def run(self, namespace: Namespace, program: Program, work: object) -> list[Event]:
        order: dict[str, JsonValue] = {
            "lab": namespace.lab.to_json(),
            "program": f"{program.__module__}:{program.__qualname__}",
            "work": encode(work),
        }
        try:
            for client in self._clients:
                _send(client, order)
            for client in self._clients:
                self._expect(client, "ready")
            start_at = time.monotonic_ns() + 3_000_000
            for client in self._clients:
                _send(client, {"start_at": start_at})
            found = [event for client in self._clients for event in self._events(client)]
        except BaseException:
            self.stop()
            raise
        return sorted(found, key=lambda event: event.called)

    def _expect(self, client: subprocess.Popen[str], kind: str) -> dict[str, Any]:
        line = self._line(client)
        if not line:
            raise AdapterProblem(
                "a client process of a burst ended or was silent for too long; does the store end its process or hang?"
            )
        message: dict[str, Any] = json.loads(line)
        if "hung" in message:
            raise hanging(message["hung"], message["client"], self._maximum_wait)
        if "trouble" in message:
            raise AdapterProblem(f"in a client process: {message['trouble']}")
        if kind not in message:
            raise KitProblem(f"a client process of a burst answered {message!r}, expected {kind!r}")
        return message

    def _line(self, client: subprocess.Popen[str]) -> str:
        if client.stdout is None:
            raise KitProblem("a client process of a burst has no output")
        timer = threading.Timer(self._maximum_wait + _PATIENCE, client.kill)
        timer.start()
        try:
            return client.stdout.readline()
        finally:
            timer.cancel()

    def _events(self, client: subprocess.Popen[str]) -> list[Event]:
        message = self._expect(client, "events")
        note_deviations(int(message["deviations"]))
        return [Event(row[0], row[1], decode(row[2]), _outcome(row[3]), row[4], row[5]) for row in message["events"]]  # type: ignore[arg-type]  # written by our client

    def stop(self) -> None:
        """End the processes and remove their directories; a second call does nothing."""
        for client in self._clients:
            with suppress(OSError):
                if client.stdin is not None:
                    client.stdin.close()
        for client in self._clients:
            try:
                client.wait(timeout=2)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
            if client.stdout is not None:
                client.stdout.close()
        for home in self._homes:
            shutil.rmtree(home, ignore_errors=True)


def _outcome(row: JsonValue) -> Outcome:
    try:
        return decode(row)  # type: ignore[return-value]  # written by our client
    except ValueError:
        return Returned(row)  # something that no store of the contract returns; the check says so


def _send(client: subprocess.Popen[str], message: dict[str, JsonValue]) -> None:
    if client.stdin is None:
        raise KitProblem("a client process of a burst has no input")
    try:
        client.stdin.write(json.dumps(message) + "\n")
        client.stdin.flush()
    except OSError as error:
        raise AdapterProblem(f"a client process of a burst is gone ({error}); does the store end its process?") from error
