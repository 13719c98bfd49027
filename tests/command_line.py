"""Runs the command line as a user does: in a process of its own, from a directory of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RUNCERT = Path(sys.executable).parent / "runcert"
STORES = Path(__file__).parent / "stores"


@dataclass(frozen=True)
class Finished:
    """A command that ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Runcert = Callable[..., Finished]


@pytest.fixture
def runcert(tmp_path: Path) -> Runcert:
    """Run ``runcert`` with arguments; nothing of the run may be left in its temporary directory."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    home = tmp_path / "home"
    home.mkdir()

    def run(
        *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, expected: int | None = None
    ) -> Finished:
        environment = {**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(home), **(env or {})}
        command = [str(RUNCERT), *arguments]
        done = subprocess.run(
            command, cwd=cwd or tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        finished = Finished(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in finished.err, finished.err
        assert [] == sorted(temporary.iterdir())
        if expected is not None:
            assert expected == finished.status, finished.out + finished.err
        return finished

    return run
