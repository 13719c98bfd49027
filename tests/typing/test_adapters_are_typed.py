from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MOST_LINES = 8

WRONG = {
    "something that is no store": """
from collections.abc import Iterator
from runcert import Lab, RunStore, adapter
from tests.typing.own_stores import NotAStore
@adapter(RunStore)
def my_store(lab: Lab) -> Iterator[RunStore]:
    yield NotAStore()
""",
    "a store of the other form": """
from collections.abc import Iterator
from runcert import Lab, RunStore, adapter
from tests.typing.own_stores import OwnAsyncStore
@adapter(RunStore)
def my_store(lab: Lab) -> Iterator[RunStore]:
    yield OwnAsyncStore(lab.directory)
""",
    "nothing": """
from runcert import Lab, RunStore, adapter
@adapter(RunStore)
def my_store(lab: Lab) -> RunStore:
    yield 1
""",
}


def mypy(path: Path) -> subprocess.CompletedProcess[str]:
    """Check one file in strict mode, with the settings of the project."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def pyright(path: Path, directory: Path) -> dict[str, object]:
    """Check one file with the folders of the project on the path."""
    paths = [str(ROOT), *(str(ROOT / name) for name in ("contract", "harness", "reference_impls", "suites"))]
    settings = directory / "pyrightconfig.json"
    settings.write_text(json.dumps({"include": [str(path)], "extraPaths": paths, "pythonVersion": "3.11"}), encoding="utf-8")
    command = [
        str(Path(sys.executable).with_name("pyright")),
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "-p",
        str(settings),
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    report: dict[str, object] = json.loads(found.stdout)
    return report


def summary(report: dict[str, object]) -> tuple[object, object]:
    counts = report["summary"]
    assert isinstance(counts, dict)
    return counts["filesAnalyzed"], counts["errorCount"]


@pytest.mark.parametrize("name", ["sync_adapter.py", "async_adapter.py"])
def test_an_adapter_of_eight_lines_is_accepted_by_both_type_checkers(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((HERE / name).read_bytes())
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    checked = mypy(path)

    assert len(lines) <= MOST_LINES
    assert checked.returncode == 0, checked.stdout
    assert summary(pyright(path, tmp_path)) == (1, 0)


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_an_adapter_that_yields_the_wrong_thing_is_rejected_by_both(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong_adapter.py"
    path.write_text(text, encoding="utf-8")
    checked = mypy(path)
    files, errors = summary(pyright(path, tmp_path))

    assert checked.returncode == 1, checked.stdout
    assert "wrong_adapter.py" in checked.stdout
    assert files == 1
    assert errors != 0
