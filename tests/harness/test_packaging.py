from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runcert", "runcert_contract", "runcert_reference", "runcert_suites")
EXPECTED = re.compile(
    r"""
    runcert/certificate\.schema\.json
    | runcert/reports/templates/[a-z]+\.(html|css)
    | (runcert|runcert_command|runcert_contract|runcert_reference|runcert_suites)/py\.typed
    | (runcert|runcert_command|runcert_contract|runcert_reference|runcert_suites)/([a-z][a-z0-9_]*/)*(__init__|__main__|[a-z][a-z0-9_]*)\.py
    | runcert_reference/sql/migrations/[a-z]+/[0-9]{4}_[a-z0-9_]+\.sql
    | runcert_reference/sql/migrations/versions/[a-z0-9_]+\.py
    | runcert-[0-9.]+\.dist-info/(METADATA|RECORD|WHEEL|entry_points\.txt|licenses/LICENSE)
    """,
    re.VERBOSE,
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel as a user's pip would."""
    directory = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "--disable-pip-version-check",
        "-w",
        str(directory),
        str(ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = directory.glob("*.whl")
    return zipfile.ZipFile(path)


def in_the_tree(folder: str) -> set[str]:
    """Give every file of a folder but the caches of tools."""
    paths = [path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {path.as_posix() for path in paths if not any(part.startswith(".") or part == "__pycache__" for part in path.parts)}


def test_the_wheel_holds_nothing_but_the_five_packages(wheel: zipfile.ZipFile) -> None:
    assert [name for name in wheel.namelist() if not EXPECTED.fullmatch(name)] == []


def test_the_wheel_holds_every_file_of_the_five_packages(wheel: zipfile.ZipFile) -> None:
    expected = set().union(*(in_the_tree(folder) for folder in ("contract", "harness", "reference_impls", "suites")))
    found = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert sorted(expected) == sorted(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(wheel: zipfile.ZipFile, package: str) -> None:
    assert f"{package}/py.typed" in wheel.namelist()


def test_migrations_and_schema_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    assert "runcert/certificate.schema.json" in wheel.namelist()
    assert any(name.endswith(".sql") for name in wheel.namelist())


def test_the_metadata_name_version_licence_and_python(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())

    assert (metadata["Name"], metadata["License-Expression"], metadata["Requires-Python"]) == (
        "runcert",
        "Apache-2.0",
        ">=3.11",
    )
    assert f"runcert-{metadata['Version']}.dist-info" in name


def test_the_wheel_was_built_from_no_path_of_this_machine(wheel: zipfile.ZipFile) -> None:
    found = [name for name in wheel.namelist() if str(ROOT).encode() in wheel.read(name)]

    assert found == []
