"""The process in which stores run: it introduces the targets, waits for its jobs, and runs them under pytest.

Nothing that a store does here can reach the supervisor but through messages; when the process ends without its last
message, the run was not green.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runcert.cases import Workplace
from runcert.checks import Check, checks_of
from runcert.description import describe_adapter
from runcert.execution import answers_of, applicable, smoke
from runcert.messages import HUNG, ROOT, Channel, Settings, connect
from runcert.problems import AdapterProblem, KitProblem, UsageProblem, describe_error
from runcert.pytest_items import PROPERTY, Certification, Planned
from runcert.targets import Target, resolve
from runcert.watchdog import Hang, Watchdog

_ORPHANED = 71


class Child:
    """One child process.

    Args:
        channel: the connection to the supervisor.
        inbox: what the supervisor says.
    """

    def __init__(self, channel: Channel, inbox: _Inbox) -> None:
        self._channel = channel
        self._inbox = inbox
        self._during = "starting"
        self._running: Planned | None = None
        self._certification: Certification | None = None
        self._watchdog = Watchdog(self._hang)
        self._settings = Settings(root="")
        self._targets: dict[str, Target] = {}

    def serve(self) -> None:
        """Do what the supervisor says until it says no more."""
        while (message := self._inbox.next())["kind"] != "leave":
            self._settings = Settings(**message["settings"])
            if message["kind"] == "introduce":
                self._introduce(message["text"])
            elif message["kind"] == "answer":
                self._answer(message)
            else:
                self._run(message["jobs"])

    # -- introducing

    def _introduce(self, text: str) -> None:
        self._during = f"loading {text}"
        try:
            targets = resolve(text)
            for target in targets:
                self._targets[target.spec] = target
                self._channel.send("introduced", **self._describe(target))
        except (UsageProblem, AdapterProblem) as problem:
            self._channel.send("trouble", message=str(problem))
            return
        except KitProblem as problem:
            self._channel.send("kit-trouble", message=str(problem))
            return
        self._channel.send("ready")

    def _describe(self, target: Target) -> dict[str, Any]:
        self._during = f"the smoke test of {target.text}"
        root = Path(self._settings.root) / f"smoke-{os.getpid()}-{target.name}"
        workplace = Workplace(target.spec, target.adapter, root, self._settings.servers, self._watchdog, self._settings.desk)
        try:
            refused = smoke(workplace)
        except AdapterProblem as problem:
            raise AdapterProblem(f"{target.text}: {problem}") from problem
        finally:
            workplace.end()
        reach = workplace.reach.names
        checks = [check for check in checks_of(target.adapter.contract) if applicable(check, target.adapter, reach)]
        return {
            "text": target.text,
            "spec": target.spec,
            "description": {**describe_adapter(target.adapter, reach), "servers": workplace.reach.servers},
            "checks": [[check.id, list(check.clauses)] for check in checks],
            "bursts": [check.id for check in checks if check.several_clients],
            "refused": refused,
        }

    # -- answering

    def _answer(self, message: dict[str, Any]) -> None:
        target = self._targets[message["spec"]]
        self._during = f"{target.text}: the program of calls"
        root = Path(self._settings.root) / f"answers-{os.getpid()}-{target.name}"
        workplace = Workplace(target.spec, target.adapter, root, self._settings.servers, self._watchdog, self._settings.desk)
        asked = {name: message[name] for name in ("seed", "length", "lists", "token")}
        try:
            found = answers_of(workplace, **asked)
        except (UsageProblem, AdapterProblem) as problem:
            self._channel.send("trouble", message=f"{target.text}: {problem}")
            return
        finally:
            workplace.end()
        self._channel.send("answers", answers=[answer.to_json() for answer in found])

    # -- running

    def _run(self, jobs: Sequence[dict[str, Any]]) -> None:
        certification = Certification(
            [planned for job in jobs for planned in self._planned(job)],
            self._settings,
            lambda result: f"{result.clause}: expected {result.expected}; found {result.found}",
            self._watchdog,
            self._start,
            interruptible=False,
        )
        self._certification = certification
        directory = Path(self._settings.root) / f"pytest-{os.getpid()}"
        directory.mkdir(parents=True)
        (directory / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
        self._during = "running"
        arguments = ["-c", str(directory / "pytest.ini"), f"--rootdir={directory}", "--noconftest", "-p", "no:cacheprovider"]
        arguments += ["-p", "no:terminal", "-p", "no:faulthandler", str(directory)]
        status = pytest.main(arguments, plugins=[certification, _Reporter(self._channel)])
        self._channel.send("end", status=int(status))

    def _planned(self, job: dict[str, Any]) -> list[Planned]:
        target = self._targets.get(job["spec"]) or resolve(job["spec"])[0]
        self._targets[job["spec"]] = target
        known = {check.id: check for check in checks_of(target.adapter.contract)}
        sound = resolve(f"{job['spec']}.sound")[0].adapter if job["faulty"] else None
        wanted: list[Check] = [known[name] for name in job["checks"]]
        return [Planned(job["spec"], target.adapter, check, job["until_red"], sound) for check in wanted]

    def _start(self, planned: Planned) -> None:
        self._running = planned
        self._channel.send(
            "started",
            spec=planned.spec,
            target=planned.adapter.target,
            check=planned.check.id,
            clauses=planned.check.clauses,
        )

    # -- hanging

    def _hang(self, hang: Hang) -> None:
        running, certification = self._running, self._certification
        if running is None or certification is None:
            message = f"{self._during}: {hang.description} did not end within {hang.seconds:g} s"
            self._channel.send("trouble", message=message)
        else:
            self._channel.send("result", result=certification.hung(running, hang).to_json())
        os._exit(HUNG)


class _Reporter:
    """Sends each result as soon as pytest has it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY:
                self._channel.send("result", result=json.loads(str(value)))

    def pytest_internalerror(self, excrepr: object) -> None:
        self._channel.send("kit-trouble", message=str(excrepr)[-2000:])


class _Inbox:
    """Reads from the supervisor at all times, so that its end is noticed in the middle of a check too.

    Args:
        channel: the connection.
        root: the directory of the run, removed when the supervisor is gone.
    """

    def __init__(self, channel: Channel, root: str) -> None:
        self._channel = channel
        self._root = root
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, name="runcert-inbox", daemon=True).start()

    def next(self) -> dict[str, Any]:
        """Wait for the next message."""
        return self._messages.get()

    def _read(self) -> None:
        while (message := self._channel.receive()) is not None:
            self._messages.put(message)
        if self._root:
            shutil.rmtree(self._root, ignore_errors=True)
        os._exit(_ORPHANED)


def main() -> None:
    """Run the child process; always ends it, whatever threads a store left behind."""
    channel = connect()
    inbox = _Inbox(channel, os.environ.get(ROOT, ""))
    try:
        Child(channel, inbox).serve()
    except BaseException as error:  # noqa: BLE001  # the supervisor is told, whatever it is
        channel.send("kit-trouble", message=describe_error(error))
    channel.send("bye")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
