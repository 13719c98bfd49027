"""The supervisor: owns the run's directory and its child processes, and believes only what they say over the connection.

A child that ends without its last message was stopped by something (a store that leaves the interpreter, a signal, a hang);
what it was doing is noted, and another child does the rest.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any, TypeAlias

from runcert import interruption
from runcert.backends import Backends
from runcert.differing import Answer
from runcert.execution import CheckResult
from runcert.leftovers import dispose_of_leftovers
from runcert.masking import remember_password, without_passwords
from runcert.messages import ADDRESS, ANY_CLAUSE, HUNG, KEY, ROOT, Channel, Job, Settings
from runcert.problems import KitProblem, ServerLost, UsageProblem
from runcert.servers.desk import Desk
from runcert.servers.owner import Servers
from runcert.waiting import counted_time
from runcert.wire import LONGEST_SOCKET_PATH
from runcert_contract import Verdict

__all__ = ["Introduction", "Supervisor"]

INTRODUCTION_SECONDS = 90.0
"""How long loading and smoke-testing one target may take."""

SILENCE_SECONDS = 900.0
"""How long a child may say nothing at all while it runs checks."""

_LOOK_SECONDS = 0.5
"""How long a signal that somebody's code lost may go unnoticed."""

_ListenAt: TypeAlias = str | tuple[str, int] | None

_MOST_LOSSES = 3
"""After how many hangs or lost processes the rest of a target's checks is left as not run."""

_REMOVED_VARIABLES = (
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONOPTIMIZE",
    "PYTHONINSPECT",
    "PYTHONSTARTUP",
    "PYTHONBREAKPOINT",
)


@dataclass(frozen=True, slots=True)
class Introduction:
    """One target as its child introduced it.

    Attributes:
        text: how the user named it.
        spec: how another process resolves it.
        description: the adapter as plain data.
        checks: the checks that apply, with their clauses.
        refused: the sentence that refuses a store that keeps nothing.
        asked: what was typed; the process that introduced the target is kept under it.
        bursts: the checks with bursts, which are quickest in one process.
    """

    text: str
    spec: str
    description: dict[str, Any]
    checks: list[tuple[str, tuple[str, ...]]]
    refused: str | None
    asked: str
    bursts: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the target."""
        return str(self.description["target"])

    @property
    def contract(self) -> str:
        """The contract that it claims."""
        return str(self.description["contract"])


@dataclass(slots=True)
class _Process:
    """One child process and what it said."""

    popen: subprocess.Popen[bytes]
    key: bytes
    listener: Listener
    messages: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)
    channel: Channel | None = None
    connected: threading.Event = field(default_factory=threading.Event)
    drain: threading.Thread | None = None
    output: deque[bytes] = field(default_factory=lambda: deque(maxlen=40))


class Supervisor:
    """Runs child processes and gathers what they find.

    Args:
        settings: what holds for the whole run; its root is made by :meth:`running`.
        on_event: told of each message as it comes, for progress.
    """

    def __init__(self, settings: Settings, on_event: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.settings = settings
        self.on_event = on_event
        self._processes: list[_Process] = []
        self._idle: dict[str, _Process] = {}
        self._lock = threading.Lock()
        self._stopping = False
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self.servers = Servers(Path(settings.root), settings.servers)
        self._backends = Backends(())

    @contextmanager
    def running(self) -> Iterator[Supervisor]:
        """Make the run's directory, and leave nothing behind."""
        interruption.clean_up_from_now_on()
        try:
            root = tempfile.mkdtemp(prefix="runcert-")
        except OSError as error:
            raise UsageProblem(
                f"no directory for temporary files can be written ({error.strerror or error}); name one, TMPDIR=/path"
            ) from error
        self.servers = Servers(Path(root), self.settings.servers)
        desk = Desk(self.servers)
        self.settings = replace(self.settings, root=root, desk=desk.address)
        try:
            yield self
        finally:
            with _undisturbed():
                self._stop_all()
                dispose_of_leftovers(Path(root))
                self.servers.stop()
                desk.close()
                _remove(Path(root))

    # -- introducing

    def introduce(self, texts: Sequence[str]) -> list[Introduction]:
        """Load and smoke-test every target, each in a process of its own, before anything is judged.

        Raises:
            UsageProblem: at least one could not be loaded or opened; the message names all of them.
            ServerLost: a server of the kit ended by itself.
            KitProblem: the kit itself failed.
        """
        for address in (*texts, *self.settings.servers.values()):
            remember_password(address)
        started = [(text, self._start()) for text in texts]
        for text, process in started:
            self._send(process, "introduce", text=text)
        found: list[Introduction] = []
        troubles: list[str] = []
        for text, process in started:
            try:
                found.extend(self._introduction(text, process))
                self._idle[text] = process
            except UsageProblem as problem:
                troubles.append(str(problem))
        self.servers.settle()
        if troubles:
            raise UsageProblem("\n".join(troubles))
        return found

    def _introduction(self, text: str, process: _Process) -> list[Introduction]:
        found: list[Introduction] = []
        deadline = counted_time() + INTRODUCTION_SECONDS
        while (message := self._next(process, deadline - counted_time())) is not None:
            if message["kind"] == "introduced":
                checks = [(name, tuple(clauses)) for name, clauses in message["checks"]]
                description, refused = message["description"], message["refused"]
                found.append(
                    Introduction(
                        message["text"], message["spec"], description, checks, refused, text, frozenset(message["bursts"])
                    )
                )
            elif message["kind"] == "ready":
                return found
            elif message["kind"] == "trouble":
                raise UsageProblem(without_passwords(message["message"]))
            elif message["kind"] == "kit-trouble":
                raise KitProblem(message["message"])
            elif message["kind"] == "silence" and counted_time() >= deadline:  # else a server was started meanwhile
                self._kill(process)
                raise UsageProblem(
                    f"{without_passwords(text)}: loading and the smoke test did not end within {INTRODUCTION_SECONDS:g} s"
                )
        status = process.popen.wait()
        raise UsageProblem(
            f"{without_passwords(text)}: the process ended with status {status} while the target was loaded and tried; "
            f"a store must not leave the interpreter{_tail(process)}"
        )

    # -- answering

    def answers(self, introduction: Introduction, *, seed: int, length: int, lists: bool, token: str) -> list[Answer]:
        """Give what a store that was introduced answers to its suite's program of calls.

        Args:
            introduction: the store.
            seed: decides the program.
            length: how many calls.
            lists: True to list, too.
            token: part of every identifier where namespaces are shared.

        Raises:
            UsageProblem: the store hung, ended the process, or its adapter failed.
        """
        process = self._idle[introduction.asked]
        order = {"spec": introduction.spec, "seed": seed, "length": length, "lists": lists, "token": token}
        self._send(process, "answer", **order)
        while (message := self._next(process, SILENCE_SECONDS)) is not None:
            if message["kind"] == "answers":
                return [Answer(**answer) for answer in message["answers"]]
            if message["kind"] == "trouble":
                raise UsageProblem(without_passwords(message["message"]))
            if message["kind"] == "silence":
                self._kill(process)
        status = process.popen.wait()
        raise UsageProblem(
            f"{introduction.name}: the process ended with status {status} in the middle of the calls{_tail(process)}"
        )

    # -- running

    def run(self, jobs: Sequence[tuple[str, Sequence[Job]]], processes: int) -> list[CheckResult]:
        """Run jobs and gather the results.

        Args:
            jobs: lists of jobs, each for one process, with the text of the target whose process may be used again.
            processes: how many processes at once.

        Raises:
            ServerLost: a server ended in the middle.
            KitProblem: the kit itself failed.
        """
        asked = [*self.settings.servers.values(), *dict.fromkeys(text for text, _ in jobs)]
        self._backends = Backends(asked, [Path(self.settings.root)])
        waiting = deque(jobs)
        results: list[CheckResult] = []
        troubles: list[BaseException] = []

        def work() -> None:
            while waiting and not troubles:
                with self._lock:
                    if not waiting:
                        return
                    text, mine = waiting.popleft()
                try:
                    found = self._run_in_processes(text, list(mine))
                except BaseException as error:  # noqa: BLE001  # carried over to the thread that waits
                    troubles.append(error)
                    return
                with self._lock:
                    results.extend(found)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(processes, len(waiting))))]
        self._threads.extend(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=0.2)
                interruption.check()
                self.servers.check()
                if troubles and isinstance(troubles[0], ServerLost):
                    raise troubles[0]  # what the others still find says nothing
        self.servers.settle()
        if troubles:
            raise troubles[0]
        return results

    def _run_in_processes(self, text: str, jobs: list[Job]) -> list[CheckResult]:
        results: list[CheckResult] = []
        losses = 0
        while jobs and losses < _MOST_LOSSES and not self._stopping:
            with self._lock:
                process = self._idle.pop(text, None) or self._start()
            self._send(process, "run", jobs=[job.to_json() for job in jobs])
            found, ended = self._results(process)
            results.extend(found)
            if ended:
                self._let_go(process)
                return results
            losses += 1
            jobs = _what_is_left(jobs, results)
        return results

    def _results(self, process: _Process) -> tuple[list[CheckResult], bool]:
        """Gather results until the child says that it is done (True) or is gone (False)."""
        results: list[CheckResult] = []
        running: dict[str, Any] | None = None
        while (message := self._next(process, SILENCE_SECONDS)) is not None:
            self.on_event(message)
            if message["kind"] == "started":
                running = message
            elif message["kind"] == "result":
                results.append(CheckResult.from_json(message["result"]))
                self._check_backends(results[-1])
                running = None
            elif message["kind"] == "end":
                return results, True
            elif message["kind"] in ("kit-trouble", "trouble"):
                raise KitProblem(f"{message['message']}{_tail(process)}")
            elif message["kind"] == "silence":
                self._kill(process)
        status = process.popen.wait()
        if running is not None:
            results.append(self._lost(running, status, process))
        elif status != HUNG:
            raise KitProblem(f"a child process ended with status {status} between two checks{_tail(process)}")
        return results, False

    def _check_backends(self, result: CheckResult) -> None:
        """Look after the user's servers and disks when a check did not pass.

        Raises:
            ServerLost: one is gone, or full.
        """
        if result.verdict != Verdict.PASS.value and (troubles := self._backends.troubles()):
            raise ServerLost(
                f"{', and '.join(troubles)}, in the middle of the run; what was judged since then says nothing about the store: "
                "put that right, and run again (`runcert clean` with the same URL removes what this run could not)"
            )

    def _lost(self, running: dict[str, Any], status: int, process: _Process) -> CheckResult:
        clauses = tuple(running["clauses"])
        return CheckResult(
            spec=running["spec"],
            target=running["target"],
            check=running["check"],
            clauses=clauses,
            clause=clauses[0],
            verdict=Verdict.ADAPTER_ERROR.value,
            expected="the process to go on after a call",
            found=f"the process ended with status {status} in the middle of the check; a store must not leave the interpreter{_tail(process)}",
            deviations=1,
        )

    # -- processes

    def _start(self) -> _Process:
        with self._starting:
            if self._stopping:
                raise KitProblem("the run was given up")
            return self._start_process()

    def _start_process(self) -> _Process:
        key = secrets.token_bytes(16)
        listener = Listener(self._address(), authkey=key)
        environment = {name: value for name, value in os.environ.items() if name not in _REMOVED_VARIABLES}
        environment |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONUNBUFFERED": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": os.path.join(self.settings.root, "hypothesis"),  # noqa: PTH118  # not the user's directory
            ADDRESS: json.dumps(listener.address),
            KEY: key.hex(),
            ROOT: self.settings.root,
        }
        popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "runcert.child"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=os.name == "posix",
        )
        process = _Process(popen, key, listener)
        self._processes.append(process)
        process.drain = threading.Thread(target=_drain, args=(process,), daemon=True)
        process.drain.start()
        threading.Thread(target=_listen, args=(process, listener), daemon=True).start()
        return process

    def _address(self) -> _ListenAt:
        """Give a socket in the run's directory, so that it goes when the directory goes; elsewhere where there can be none."""
        if os.name != "posix":
            return None  # pipes have names of their own
        path = os.path.join(self.settings.root, f"child-{len(self._processes)}")  # noqa: PTH118  # the system takes a text
        return path if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH else ("127.0.0.1", 0)

    def _send(self, process: _Process, kind: str, **content: Any) -> None:
        deadline = time.monotonic() + INTRODUCTION_SECONDS
        while not process.connected.wait(0.1) and process.popen.poll() is None and time.monotonic() < deadline:
            continue
        if process.channel is None:
            raise KitProblem(f"a child process did not start (status {process.popen.poll()}){_tail(process)}")
        process.channel.send(kind, settings=asdict(self.settings), **content)

    def _next(self, process: _Process, seconds: float) -> dict[str, Any] | None:
        """Give the next message; None when the child is gone, kind "silence" when it said nothing for too long."""
        deadline = time.monotonic() + max(seconds, 0.01)
        while (left := deadline - time.monotonic()) > 0:
            interruption.check()
            with suppress(queue.Empty):
                return process.messages.get(timeout=min(left, _LOOK_SECONDS))
        return {"kind": "silence"}

    def _let_go(self, process: _Process) -> None:
        if process.channel is not None:
            process.channel.send("leave")
        try:
            process.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._kill(process)

    def _kill(self, process: _Process) -> None:
        """Kill a child and every process that it started."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.popen.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            process.popen.kill()
        process.popen.wait()

    def _stop_all(self) -> None:
        with self._starting:  # nothing is started from here on
            self._stopping = True
        for process in self._processes:
            self._kill(process)
            with suppress(OSError):  # closed already, unless the process never connected
                process.listener.close()
            if process.channel is not None:
                process.channel.close()
            if process.drain is not None:
                process.drain.join(timeout=1)
            if process.popen.stdout is not None:
                process.popen.stdout.close()
        for thread in self._threads:
            thread.join(timeout=5)


def _remove(directory: Path) -> None:
    """Remove a directory; once more where something that was just killed had still written into it."""
    for _ in range(5):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal interrupt the body, which cleans up; a second Ctrl-C changes nothing any more."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, signal.SIG_IGN) for number in interruption.SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(process: _Process, listener: Listener) -> None:
    """Accept the child and put what it says into its queue; None marks its end."""
    try:
        process.channel = Channel(listener.accept())
    except (OSError, EOFError, AuthenticationError):  # it was killed while it started, or something else knocked
        process.messages.put(None)
        return
    finally:
        with suppress(OSError):  # the run was given up meanwhile, and its directory is gone
            listener.close()
    process.connected.set()
    while (message := process.channel.receive()) is not None:
        process.messages.put(message)
    process.messages.put(None)


def _drain(process: _Process) -> None:
    """Keep the last lines of what a child prints; the rest is read and thrown away."""
    if process.popen.stdout is not None:
        for line in process.popen.stdout:
            process.output.append(line[:500])


def _tail(process: _Process) -> str:
    """Give the last lines that a child printed, for the message about its end."""
    lines = [line.decode("utf-8", "replace").rstrip() for line in process.output]
    if not lines:
        return ""
    return "\nIt printed last:\n" + without_passwords("\n".join(f"  | {line}" for line in lines[-12:]))


def _what_is_left(jobs: Sequence[Job], results: Sequence[CheckResult]) -> list[Job]:
    done = {(result.spec, result.check) for result in results}
    red = {(result.spec, result.clause) for result in results if result.verdict == Verdict.FAIL.value}
    left: list[Job] = []
    for job in jobs:
        if (job.spec, job.until_red) in red or (job.until_red == ANY_CLAUSE and any(spec == job.spec for spec, _ in red)):
            continue
        checks = [name for name in job.checks if (job.spec, name) not in done]
        if checks:
            left.append(replace(job, checks=checks))
    return left
