"""False alarms are counted: a store that is honest gives none, one that is not shows what an alarm looks like."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOAK = ROOT / "benchmarks" / "soak.py"
BROKEN = ROOT / "docs" / "tutorial" / "files" / "first_adapter.py"


@pytest.mark.parametrize(
    ("target", "seeds", "status", "total"),
    [("memory", 2, 0, "2 runs, 0 false alarms"), (str(BROKEN), 1, 1, "1 runs, 1 false alarms")],
)
def test_every_run_has_a_line_and_every_alarm_is_kept(tmp_path: Path, target: str, seeds: int, status: int, total: str) -> None:
    command = [sys.executable, str(SOAK), target, "--quick", str(seeds), "--standard", "0", "--out", str(tmp_path / "soak")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()

    assert status == done.returncode, done.stdout + done.stderr
    assert [f"seed {seed}" in line for seed, line in enumerate(lines[:seeds], start=1)] == [True] * seeds
    assert total == lines[seeds]
    assert status == len(list(tmp_path.glob("soak/*/first-store/failures/RUN-CAS-2-1.json")))
    assert status == len(list(tmp_path.glob("soak/*/output.txt")))


def test_a_run_that_cannot_start_is_no_success(tmp_path: Path) -> None:
    command = [sys.executable, str(SOAK), "no-such-store", "--quick", "1", "--standard", "0", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "exit code 2  FALSE ALARM" in done.stdout
