"""What lies around a user's project cannot change a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import STORES, Runcert

ONLY = ("--depth", "quick", "--only", "RUN-CREATE-2", "--seed", "1")
RED = "runcert_reference.faulty.creating:CreateReplaces"

CONFTEST = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.clear()

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""


@pytest.fixture
def surprises(tmp_path: Path) -> Path:
    """Make a directory in which every file is a trap."""
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --collect-only --maxfail=1\n")
    (directory / "tox.ini").write_text("[pytest]\naddopts = -k nothing\n")
    for name in ("json", "pytest", "runcert", "hypothesis", "runcert_suites", "click", "rich", "sitecustomize", "asyncio"):
        (directory / f"{name}.py").write_text("raise SystemExit(0)\n")
    (directory / "test_trap.py").write_text("def test_trap():\n    assert False\n")
    return directory


def test_a_red_store_stays_red_among_traps(runcert: Runcert, surprises: Path) -> None:
    environment = {"PYTEST_ADDOPTS": "--collect-only", "PYTHONOPTIMIZE": "2", "PYTEST_PLUGINS": "conftest"}

    done = runcert("certify", RED, *ONLY, cwd=surprises, env=environment, expected=1)

    assert "RUN-CREATE-2       fail" in done.out


def test_a_sound_store_stays_green_among_traps(runcert: Runcert, surprises: Path) -> None:
    environment = {"PYTEST_ADDOPTS": "-p no:python", "PYTHONOPTIMIZE": "1"}

    runcert("certify", "memory", *ONLY, cwd=surprises, env=environment, expected=0)


def test_an_adapter_imports_what_lies_beside_it(runcert: Runcert, tmp_path: Path) -> None:
    (tmp_path / "their_store.py").write_text("from runcert_reference.memory import MemoryRunStore, MemorySpace\n")
    (tmp_path / "adapters.py").write_text(
        "from runcert import Capability, RunStore, Stance, adapter\n"
        "import their_store\n\n"
        "@adapter(RunStore, capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED})\n"
        "def theirs(lab):\n"
        "    yield their_store.MemoryRunStore(their_store.MemorySpace())\n"
    )

    runcert("certify", "adapters.py", *ONLY, cwd=tmp_path, expected=0)


def test_a_file_without_an_attribute_means_every_adapter_in_it(runcert: Runcert) -> None:
    done = runcert("certify", str(STORES / "two_sound.py"), *ONLY, "--format", "json", expected=0)

    assert ["first", "second"] == sorted(c["target"]["name"] for c in done.json()["certificates"])


def test_a_missing_suite_is_never_a_green(runcert: Runcert, tmp_path: Path) -> None:
    """A suite that is not installed, or cannot be imported, leaves the run undecided."""
    fake = tmp_path / "shadow" / "runcert_suites"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("")

    done = runcert("certify", "memory", *ONLY, env={"PYTHONPATH": str(fake.parent)}, expected=3)

    assert "cannot be imported" in done.err


def test_a_suite_that_lost_its_checks_is_never_a_green(runcert: Runcert, tmp_path: Path) -> None:
    package = tmp_path / "shadow" / "runcert_suites" / "run_store"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("def smoke(case):\n    case.open()\n\ndef refused(case):\n    return None\n")

    done = runcert("certify", "memory", "--depth", "quick", env={"PYTHONPATH": str(package.parent.parent)})

    assert done.status in (2, 3)
