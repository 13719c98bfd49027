"""``pytest --certify``: the checks as items in a project of somebody else's, and what is said when they cannot be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runcert.checks import checks_of

from .conftest import STORES

RED = "runcert_reference.faulty.creating:CreateReplaces"
USAGE_ERROR = 4


class Project:
    """A directory with one test of its own, in which pytest is run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        (directory / "test_their_own.py").write_text("def test_of_their_own():\n    pass\n", encoding="ascii")
        self.write_ini()

    def write_ini(self, *lines: str) -> None:
        (self._directory / "pytest.ini").write_text("\n".join(["[pytest]", *lines, ""]), encoding="ascii")

    def pytest(self, *arguments: str, expected: int) -> str:
        """Run pytest and give what it printed; what the plug-in makes for itself is gone afterwards."""
        command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "-v", *arguments]
        environment = os.environ | {"TMPDIR": str(self.temporary)}
        done = subprocess.run(
            command, cwd=self._directory, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        output = done.stdout + done.stderr
        assert expected == done.returncode, output
        assert [] == list(self.temporary.glob("runcert*"))
        return output


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_checks_run_beside_the_projects_own_tests(project: Project) -> None:
    output = project.pytest("--certify", "memory", "--only", "RUN-CREATE-2", "--certify-seed", "5", expected=0)

    assert "test_their_own.py::test_of_their_own PASSED" in output
    assert re.search(r"^runcert::memory::RUN-CREATE-2::\S+ PASSED", output, re.MULTILINE)
    assert re.search(r"checks: \d+ pass; \d+ of 69 clauses were tried; seed 5\. No certificate", output)


def test_targets_of_the_ini_file_are_certified_with_every_run(project: Project) -> None:
    project.write_ini("certify = memory")

    output = project.pytest("-k", "RUN-CREATE-2", expected=0)

    assert "runcert::memory::RUN-CREATE-2::" in output
    assert re.search(r"seed \d+\. No certificate", output)


def test_a_marker_selects_the_items_of_a_clause_and_nothing_else(project: Project) -> None:
    output = project.pytest("--certify", "memory", "-m", "clause(id='RUN-CREATE-4')", expected=0)

    items = re.findall(r"^(\S+) PASSED", output, re.MULTILINE)
    expected = {check.id for check in checks_of("run-store") if "RUN-CREATE-4" in check.clauses}
    assert expected == {".".join(item.split("::")[-2:]) for item in items}


def test_a_failure_says_what_was_expected_and_how_to_see_it_again(project: Project) -> None:
    output = project.pytest("--certify", RED, "--only", "RUN-CREATE-2", "--certify-seed", "1", expected=1)

    assert "RUN-CREATE-2  create on an id in use, in any status, raises AlreadyExists" in output
    assert "  expected  create(Run(" in output
    assert f"  replay    runcert certify {RED} --only RUN-CREATE-2 --depth quick --seed 1" in output
    assert "pytest_items.py" not in output


def test_the_whole_traceback_is_given_to_who_asks_for_it(project: Project) -> None:
    output = project.pytest("--certify", RED, "--only", "RUN-CREATE-2", "--full-trace", expected=1)

    assert "pytest_items.py" in output


def test_workers_share_the_seed_of_their_controller(project: Project) -> None:
    output = project.pytest("-n", "2", "--certify", "memory", "--only", "RUN-CREATE-2", expected=0)

    assert "Different tests were collected" not in output
    assert re.search(r"checks: \d+ pass; \d+ of 69 clauses were tried; seed \d+", output)


def test_help_runs_nothing(project: Project) -> None:
    output = project.pytest("--certify", "no-such-target", "--help", expected=0)

    assert "certify TARGET: a name, path/to/file.py[:attribute]" in " ".join(output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--certify", "nope"], "there is no target 'nope'"),
        (["--certify", "memory", "--only", "RUN-CREATE-99"], "there is no clause 'RUN-CREATE-99' in this catalogue"),
        (["--certify", "memory", "--only", "RUN-CANCEL-1"], "nothing to run: no check applies"),
        (["--certify", "memory", "--certify", "memory"], "'memory'"),
        (["--certify", "noop"], "noop: a store that keeps nothing (no-op) is refused"),
        (["--certify", "memory", "--certify-server", "postgresql"], "expected NAME=URL"),
        (["--certify", f"{STORES / 'hostile.py'}:raises_on_open"], "postgresql://ann:***@127.0.0.1:1/db"),
        (["--certify", "oracle://ann:hunter2@db/x"], "oracle://ann:***@db/x"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error_in_one_message(project: Project, arguments: list[str], message: str) -> None:
    output = project.pytest(*arguments, expected=USAGE_ERROR)

    assert "ERROR: runcert: " in output
    assert message in output
    assert "Traceback" not in output
    assert "hunter2" not in output


def test_a_call_that_hangs_ends_pytest_with_a_message_and_leaves_nothing_on_the_backend(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespaces = tmp_path / "namespaces"
    namespaces.mkdir()
    monkeypatch.setenv("NAMESPACES", str(namespaces))

    output = project.pytest(
        "--certify", f"{STORES / 'hostile.py'}:hangs_beside_its_namespace", "--only", "RUN-CREATE-2", expected=3
    )

    assert re.search(r"runcert: create\(Run\(.* did not end within 1\.3 s; pytest cannot go on in this process", output)
    assert [] == list(namespaces.iterdir())
