"""Failures as tests of their own: red without the kit, green on a store that is right, and none where the calls do not show it."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from textwrap import dedent
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import runcert_contract
from runcert.reports.adapter_source import adapter_source
from runcert.reports.literals import NoLiteral, literal, run_literal
from runcert.reports.standalone_runs import those_that_fail
from runcert_contract import Result, ResultStatus, Run, RunStatus, canonical

WRITTEN_OUT = Path(__file__).parent.parent / "stores" / "written_out.py"
WITHOUT_THE_KIT = "import sys; sys.modules['runcert'] = None; import pytest; raise SystemExit(pytest.main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certify the stores that are written out, once."""
    out = tmp_path_factory.mktemp("standalone")
    command = [str(Path(sys.executable).parent / "runcert"), "certify", str(WRITTEN_OUT), "--depth", "quick", "--seed", "1"]
    only = [
        part for clause in ("CAS-1", "CREATE-2", "RESUMABLE-1", "DURABLE-1", "ID-3") for part in ("--only", f"RUN-{clause}")
    ]
    done = subprocess.run([*command, *only, "--out", str(out)], cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (out / "printed").write_text(done.stdout, encoding="utf-8")
    return out


def _run(directory: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", f"--rootdir={directory}", f"--basetemp={directory}/base"]
    command = [sys.executable, "-P", "-c", WITHOUT_THE_KIT, *options, *map(str, files)]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )


@pytest.mark.parametrize(
    ("store", "clause", "mended", "shown"),
    [
        (
            "ignores-versions",
            "cas_1_1",
            ("class IgnoresVersions(Files):", "class Wrong(Files):\n    pass\n\n\nclass IgnoresVersions(Files):"),
            "shown(False)",
        ),
        (
            "replaces-and-refuses",
            "create_2_1",
            ("        self._write(run)\n        if taken:", "        if taken:"),
            "of_the_store(AlreadyExists)",
        ),
        (
            "lists-every-tenant",
            "resumable_1_2",
            (
                "return Listing([run for file in self.directory.iterdir() if not",
                "return Listing([run for file in self.directory.iterdir() if (run := self._read(file)).tenant_id == tenant_id and not",
            ),
            "shown(Listing(",
        ),
        (
            "forgets-when-opened",
            "durable_1_2",
            ("        file.unlink()\n    yield Asynchronous", "        pass\n    yield Asynchronous"),
            "await handles.aclose()",
        ),
    ],
)
def test_a_failure_is_red_without_the_kit_and_green_once_the_store_is_mended(
    results: Path, tmp_path: Path, store: str, clause: str, mended: tuple[str, str], shown: str
) -> None:
    test = results / store / "failures" / f"test_run_{clause}.py"
    text = test.read_text(encoding="utf-8")
    again = tmp_path / test.name
    before, after = mended
    if store == "ignores-versions":
        text = text.replace("yield IgnoresVersions(", "yield Files(")
        assert "yield Files(" in text
    else:
        assert before in text
        text = text.replace(before, after)
        if store == "replaces-and-refuses":
            text = text.replace(
                "            raise Taken(run.run_id)\n        return run",
                "            raise Taken(run.run_id)\n        return self._write(run)",
            )
    again.write_text(text, encoding="utf-8")

    red, green = _run(tmp_path, test), _run(tmp_path, again)

    assert shown in text
    assert (1, 0) == (red.returncode, green.returncode), red.stdout + green.stdout
    assert "1 failed" in red.stdout
    assert f"alone     pytest {test}  (without the kit)" in (results / "printed").read_text(encoding="utf-8")


def test_every_test_that_is_kept_is_red_and_says_why(results: Path) -> None:
    tests = sorted(results.glob("*/failures/test_*.py"))

    assert {"ignores-versions", "replaces-and-refuses", "lists-every-tenant", "forgets-when-opened"} == {
        t.parts[-3] for t in tests
    }
    for directory in {test.parent for test in tests}:
        mine = [test for test in tests if test.parent == directory]
        assert set(mine) == those_that_fail(mine)
    for test in tests:
        text = test.read_text(encoding="utf-8")
        assert text.startswith(f'"""RUN-{test.stem.split("_run_")[1].rpartition("_")[0].replace("_", "-").upper()}: ')
        assert "# expected  " in text
        assert "# found     " in text
        compile(text, str(test), "exec")


def test_what_passes_or_cannot_open_the_store_is_not_kept(tmp_path: Path) -> None:
    files = {
        "test_passes.py": "def test_passes():\n    # the contract permits: all\n    assert True\n",
        "test_fails.py": "def test_fails():\n    # the contract permits: nothing\n    assert False\n",
        "test_fails_before.py": "def test_fails_before():\n    assert False\n    # the contract permits: nothing\n    assert False\n",
        "test_imports.py": "import runcert\n\n\ndef test_imports():\n    # the contract permits: nothing\n    assert False\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert {tmp_path / "test_fails.py"} == those_that_fail([tmp_path / name for name in files])
    assert set() == those_that_fail([])


def test_paths_from_the_working_directory_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = Path("failures") / "test_fails.py"
    (tmp_path / "failures").mkdir()
    (tmp_path / test).write_text("def test_fails():\n    # the contract permits: nothing\n    assert False\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert {test} == those_that_fail([test])


def test_a_store_that_ends_the_interpreter_leaves_none(tmp_path: Path) -> None:
    (tmp_path / "test_ends.py").write_text("import os\n\n\ndef test_ends():\n    os._exit(0)\n", encoding="utf-8")

    assert set() == those_that_fail([tmp_path / "test_ends.py"])


# -- the adapter's source


def _adapter(tmp_path: Path, text: str, name: str = "store") -> Any:
    (tmp_path / "adapter.py").write_text(dedent(text), encoding="utf-8")
    return adapter_source(tmp_path / "adapter.py", name)


def test_only_what_the_adapter_uses_is_taken(tmp_path: Path) -> None:
    source = _adapter(
        tmp_path,
        """
        import json, os.path
        from collections.abc import Iterator
        from runcert import Fault, Kept, Lab, RunStatus, RunStore, adapter
        from stores import Store, Other

        LIMIT: int = 3
        A = B = LIMIT
        UNUSED = json

        def unused(): ...

        def where(lab):
            return os.path.join(lab.directory, str(A), RunStatus.RUNNING.value)

        @adapter(RunStore, durability={Fault.CLOSE: Kept()}, errors={OSError: KeyError})
        def store(lab: Lab) -> Iterator[RunStore]:
            with Store(where(lab)) as opened:
                yield opened
        """,
    )

    assert source.imports.splitlines() == [
        "import os.path",
        "from runcert_contract import RunStatus",
        "from stores import Store",
    ]
    assert source.code.startswith("LIMIT: int = 3\n\n\nA = B = LIMIT\n\n\ndef where(lab):")
    assert "unused" not in source.code
    assert ("", "", "{OSError: KeyError}", False) == (source.prepare, source.dispose, source.errors, source.asynchronous)


@pytest.mark.parametrize(
    "text",
    [
        "def store(lab):\n    yield 1\n",
        "@adapter(RunStore, **OPTIONS)\ndef store(lab):\n    yield 1\n",
        "@adapter(RunStore)\n@other\ndef store(lab):\n    yield 1\n",
        "@adapter(RunStore, prepare=lambda lab: 1)\ndef store(lab):\n    yield 1\n",
        "@adapter(RunStore)\ndef store(lab):\n    yield lab.server('valkey')\n",
        "from runcert import connect_somehow\n@adapter(RunStore)\ndef store(lab):\n    yield connect_somehow()\n",
        "import runcert\n@adapter(RunStore)\ndef store(lab):\n    yield runcert.RunStore\n",
        "store = adapter(RunStore)(make)\n",
        "this is no Python\n",
    ],
)
def test_an_adapter_that_needs_the_kit_has_no_source_of_its_own(tmp_path: Path, text: str) -> None:
    assert _adapter(tmp_path, text) is None


def test_a_file_that_is_not_there_has_no_source(tmp_path: Path) -> None:
    assert adapter_source(tmp_path / "nowhere.py", "store") is None


# -- values as source


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2.5,
        float("inf"),
        "a\ud800\0",
        "x" * 1000,
        b"\0",
        [1, [None]],
        (1,),
        {"a": {"b": ()}},
        datetime(2026, 1, 2, tzinfo=timezone.utc),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=-3))),
        datetime(2026, 1, 2, 3, fold=1, tzinfo=timezone.utc),
        datetime(2026, 1, 2, 3),  # noqa: DTZ001  # what a caller may pass
        timedelta(days=-1, microseconds=7),
        RunStatus.RUNNING,
        Result(ResultStatus.FAILED, output={"a": 1}),
    ],
)
def test_a_literal_gives_the_value_again(value: object) -> None:
    names = {**vars(runcert_contract), "datetime": datetime, "timedelta": timedelta, "timezone": timezone}
    again = eval(literal(value), names)  # our own text

    assert (type(value), value) == (type(again), again)


@pytest.mark.parametrize("value", [object(), {1, 2}, datetime(2026, 1, 2, tzinfo=ZoneInfo("Europe/Berlin"))])
def test_what_nobody_would_read_has_no_literal(value: object) -> None:
    with pytest.raises(NoLiteral):
        literal([value])


def test_a_run_is_written_by_what_differs_from_one_that_has_a_name() -> None:
    now = datetime(2026, 1, 2, tzinfo=timezone.utc)
    first = Run("r1", "t", "action", "proposal", "key", now, now)
    second = Run("r1", "t", "action", "proposal", "key", now, now, version=1, recovery_count=False)
    text = run_literal(second, {"run_1": first})

    assert text == "replace(run_1, version=1, recovery_count=False)"
    names = {**vars(runcert_contract), "datetime": datetime, "timezone": timezone}
    assert canonical(first) == canonical(eval(run_literal(first, {}), names))  # as above
