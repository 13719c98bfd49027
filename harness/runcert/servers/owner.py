"""The servers of one run: each is started when it is first asked for, shared by everybody who asks for the same, and watched."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runcert.masking import remember_password, without_passwords
from runcert.problems import KitProblem, ServerLost, UsageProblem
from runcert.servers.binaries import Unavailable
from runcert.servers.containers import Containers
from runcert.servers.guarding import GuardianProcess
from runcert.servers.kinds import Kind, Settings
from runcert.servers.offers import find, is_address, kind_named
from runcert.servers.private import PrivateServers, Running
from runcert.waiting import not_counted

__all__ = ["Servers"]


@dataclass(slots=True)
class _Shared:
    """One server, or what came of starting it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    running: Running | None = None
    problem: UsageProblem | KitProblem | None = None


class Servers:
    """The servers of one run.

    Args:
        root: the directory of the run.
        told: what the user said of servers, by name: an address, or a way.
        port: gives a free port; for tests.
    """

    def __init__(self, root: Path, told: Mapping[str, str], port: Callable[[], int] | None = None) -> None:
        self._told = dict(told)
        self._guardian = GuardianProcess()
        self._root = root
        self._private = PrivateServers(root, self._guardian, port)
        self._containers = Containers(self._guardian)
        self._lock = threading.Lock()
        self._shared: dict[tuple[str, tuple[tuple[str, str], ...]], _Shared] = {}

    def url(self, name: str, settings: Mapping[str, object]) -> str:
        """Give the address of a server, and start it where nobody asked for it before.

        Args:
            name: the kind of server.
            settings: its settings, in its own words.

        Raises:
            UsageProblem: it cannot be had.
            ServerLost: it ended by itself.
            KitProblem: the servers of this run are stopped already.
        """
        told = self._told.get(name)
        if told is not None and is_address(told):
            return remember_password(told)
        kind = kind_named(name)
        checked = kind.checked(settings)
        with self._lock:
            shared = self._shared.setdefault((name, tuple(checked.items())), _Shared())
        with not_counted(), shared.lock:
            if shared.running is None and shared.problem is None:
                self._start(shared, kind, told, checked)
        self.check()
        if shared.problem is not None:
            raise shared.problem
        if shared.running is None:
            raise KitProblem(f"the server {name} was neither started nor refused")
        return shared.running.url

    @property
    def in_words(self) -> dict[str, str]:
        """What each server is that was used, by name: its version and how it was had, or the address that the user gave."""
        found = {name: f"at {without_passwords(told)}" for name, told in self._told.items() if is_address(told)}
        with self._lock:
            for (name, _), shared in self._shared.items():
                if shared.running is not None:
                    running = shared.running
                    found.setdefault(name, f"{running.title} {running.version} ({running.way})")
        return found

    def check(self) -> None:
        """Raise what there is to say of servers that ended by themselves.

        Raises:
            ServerLost: one did.
        """
        lost = [_loss(running) for running in self.running() if running.process is not None and running.process.ended.is_set()]
        if lost:
            raise ServerLost("\n".join(lost))

    def settle(self) -> None:
        """Wait until every end so far is known, and :meth:`check`."""
        self._guardian.settle()
        self.check()

    def running(self) -> list[Running]:
        """Give the servers that run."""
        with self._lock:
            return [shared.running for shared in self._shared.values() if shared.running is not None]

    def stop(self) -> None:
        """Stop every server and remove what it wrote; a second call does nothing."""
        self._guardian.stop()
        for directory in self._private.directories:  # there only where the guardian was killed
            shutil.rmtree(directory, ignore_errors=True)

    def _start(self, shared: _Shared, kind: Kind, wanted: str | None, settings: Settings) -> None:
        try:
            binaries = find(kind, wanted)
            self._guardian.remove_at_end(self._root)
            if binaries is not None:
                shared.running = self._private.start(kind, binaries, settings)
            else:
                shared.running = self._containers.start(kind, settings)
        except (UsageProblem, KitProblem) as problem:
            shared.problem = problem
        except Unavailable as problem:
            shared.problem = UsageProblem(
                f"no {kind.title} can be started here: {problem}; give an address, --server {kind.name}=URL"
            )
        except OSError as error:
            shared.problem = UsageProblem(f"{kind.title} cannot be started here: {error.strerror or error}: {error.filename}")


def _loss(running: Running) -> str:
    end = running.process.end_in_words if running.process is not None else "ended"
    return (
        f"the server {running.title} {running.version} ({running.way}) {end} in the middle of the run; "
        f"what was judged since then says nothing about the store{running.log_tail}"
    )
