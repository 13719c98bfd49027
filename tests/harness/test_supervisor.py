"""The supervisor: what it makes of child processes that do not start, do not answer or do not go on."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runcert.messages import Job, Settings
from runcert.problems import KitProblem, UsageProblem
from runcert.supervisor import Supervisor

SLOW = """
import threading
from runcert import RunStore, adapter
from runcert_reference.memory import MemoryRunStore, MemorySpace

print("works with db://ann:hunter2@host", flush=True)

class Slow(MemoryRunStore):
    calls = 0
    def create(self, run):
        self.calls += 1
        if self.calls > 3:
            threading.Event().wait()
        return super().create(run)

@adapter(RunStore)
def slow(lab):
    yield Slow(MemorySpace())
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def supervisor(temporary: Path) -> Iterator[Supervisor]:
    """Give a supervisor at work; nothing of its run may be left."""
    with Supervisor(Settings(root="", depth="quick", seed=1)).running() as running:
        yield running
    assert [] == list(temporary.iterdir())


def test_a_target_that_is_not_loaded_in_time_is_named(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runcert.supervisor.INTRODUCTION_SECONDS", 2.0)
    file = tmp_path / "never_loaded.py"
    file.write_text("import threading\nthreading.Event().wait()\n", encoding="ascii")

    with pytest.raises(UsageProblem, match=r"never_loaded\.py: loading and the smoke test did not end within 2 s"):
        supervisor.introduce([str(file)])


def test_a_child_that_says_nothing_for_too_long_is_killed_and_its_check_is_lost(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stores.py"
    file.write_text(SLOW, encoding="ascii")
    (introduced,) = supervisor.introduce([str(file)])
    check = next(name for name, clauses in introduced.checks if clauses == ("RUN-CREATE-2",))
    monkeypatch.setattr("runcert.supervisor.SILENCE_SECONDS", 2.0)

    (result,) = supervisor.run([(introduced.asked, [Job(introduced.spec, [check])])], 1)

    assert ("adapter-error", check, "RUN-CREATE-2") == (result.verdict, result.check, result.clause)
    assert "the process ended with status -9 in the middle of the check" in result.found
    assert "  | works with db://ann:***@host" in result.found


def test_a_check_that_nobody_knows_is_a_defect_of_the_kit(supervisor: Supervisor) -> None:
    (introduced,) = supervisor.introduce(["memory"])

    with pytest.raises(KitProblem, match=r"Nothing\.test_at_all"):
        supervisor.run([("memory", [Job(introduced.spec, ["Nothing.test_at_all"])])], 1)


def test_an_interpreter_that_does_not_start_is_a_defect_of_the_kit(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(KitProblem, match=r"a child process did not start \(status 1\)"):
        supervisor.introduce(["memory"])


def test_after_its_end_nothing_is_started_any_more(temporary: Path) -> None:
    with Supervisor(Settings(root="", depth="quick", seed=1)).running() as ended:
        pass

    with pytest.raises(KitProblem, match="the run was given up"):
        ended.introduce(["memory"])
    assert [] == list(temporary.iterdir())
