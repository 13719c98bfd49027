"""Bad input is exit 2 with one message and the way out: no traceback, no password, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import RUNCERT, Runcert


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["certify"], ["Missing argument 'TARGET...'"]),
        (["certify", "nope"], ["there is no target 'nope'", "registered names are file, mariadb, memory"]),
        (["certify", "memory", "memory"], ["the target 'memory' is named twice"]),
        (["certify", "no_such_module:store"], ["there is no module 'no_such_module'"]),
        (["certify", "runcert_reference.adapters:nope"], ["has no attribute 'nope'", "memory"]),
        (["certify", "runcert_reference.adapters:count_memory"], ["is function, not an adapter"]),
        (["certify", "missing.py"], ["there is no file missing.py"]),
        (["certify", "oracle://ann:hunter2@db/x"], ["oracle://ann:***@db/x", "scheme 'oracle' is not known"]),
        (["certify", "memory", "--depth", "deepest"], ["'deepest' is not one of"]),
        (["certify", "memory", "--only", "RUN-CREATE-99"], ["there is no clause 'RUN-CREATE-99'", "RUN-CREATE-1"]),
        (["certify", "memory", "--only", "RUN-CANCEL-1"], ["nothing to run on memory", "RUN-CANCEL-1 does not apply"]),
        (["certify", "memory", "--contract", "nope"], ["there is no contract 'nope'"]),
        (["certify", "memory", "--waivers", "missing.toml"], ["there is no file missing.toml"]),
        (["certify", "memory", "--server", "postgresql"], ["expected NAME=URL"]),
        (["certify", "memory", "--server", "postgresql=somewhere"], ["expected a URL or one of wheel, system, containers"]),
        (
            ["certify", "memory", "--server", "cassandra=wheel"],
            ["a server 'cassandra', which the kit cannot start", "--server cassandra=URL"],
        ),
        (["certify", "memory", "--server", "a=b://c", "--server", "a=b://d"], ["given twice"]),
        (["certify", "memory", "-n", "0"], ["0 is not in the range"]),
        (["certify", "memory", "--frobnicate"], ["No such option"]),
        (["clauses", "--contract", "nope"], ["there is no contract 'nope'"]),
        (["selfcheck", "--contract", "nope"], ["there is no contract 'nope'"]),
        (["replay", "missing.json"], ["there is no file missing.json"]),
        (["verify", "missing.json"], ["there is no certificate missing.json"]),
        (["rerun", "missing.json"], ["there is no certificate missing.json"]),
        (["compare", "missing.json"], ["there is no certificate missing.json"]),
        (["frobnicate"], ["No such command"]),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_says_what_is_wrong(runcert: Runcert, arguments: list[str], messages: list[str]) -> None:
    done = runcert(*arguments, expected=2)

    for message in messages:
        assert message in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n", "has a syntax error in line 1"),
        ("import no_such_driver\n", "there is no module 'no_such_driver'"),
        ("raise ValueError('mysql://root:hunter2@db/x is down')\n", "ValueError: mysql://root:***@db/x is down"),
        ("raise SystemExit(0)\n", "cannot be imported: SystemExit: 0"),
        ("x = 1\n", "holds no adapter"),
        ("from runcert import RunStore, adapter\n@adapter()\ndef nothing(lab):\n    yield 1\n", "claims no contract"),
        ("from runcert import RunStore, adapter\n@adapter(RunStore)\ndef plain(lab):\n    return 1\n", "use `yield store`"),
        ("import os\nos._exit(0)\n", "the process ended with status 0 while the target was loaded"),
        (
            (
                "from runcert import Fault, Kept, RunStore, adapter\n"
                "@adapter(RunStore, durability={Fault.POWER_LOSS: Kept()})\ndef bold(lab):\n    yield 1\n"
            ),
            "a promise for power-loss cannot be tested by this catalogue revision",
        ),
        (
            (
                "from runcert import Capability, RunStore, Stance, adapter\n"
                "@adapter(RunStore, capabilities={Capability.REPAIRS: Stance.CLAIMED})\ndef bold(lab):\n    yield 1\n"
            ),
            "capability repairs cannot be tested by this catalogue revision",
        ),
    ],
)
def test_a_file_that_is_no_adapter_says_what_is_wrong(runcert: Runcert, tmp_path: Path, source: str, message: str) -> None:
    file = tmp_path / "stores.py"
    file.write_text(source)

    done = runcert("certify", str(file), expected=2)

    assert message in done.err
    assert "hunter2" not in done.err


def test_a_server_that_nobody_named_is_asked_for(runcert: Runcert, tmp_path: Path) -> None:
    file = tmp_path / "stores.py"
    file.write_text(
        "from runcert import RunStore, adapter\n@adapter(RunStore)\ndef theirs(lab):\n    yield lab.server('cassandra')\n"
    )

    done = runcert("certify", str(file), expected=2)

    assert "--server cassandra=URL" in done.err


def test_the_password_of_a_server_is_never_shown(runcert: Runcert, tmp_path: Path) -> None:
    file = tmp_path / "stores.py"
    file.write_text(
        "import socket\nfrom runcert import RunStore, adapter\n@adapter(RunStore)\ndef theirs(lab):\n"
        "    url = lab.server('db')\n    raise ConnectionRefusedError(f'cannot reach {url}')\n    yield\n"
    )

    done = runcert("certify", str(file), "--server", "db=db://ann:hunter2@127.0.0.1:1/x", expected=2)

    assert "cannot reach db://ann:***@127.0.0.1:1/x" in done.err
    assert "hunter2" not in done.err + done.out


def test_an_output_directory_that_cannot_be_written_is_exit_2(runcert: Runcert, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = runcert(
        "certify", "memory", "--depth", "quick", "--only", "RUN-CREATE-2", "--out", str(tmp_path / "file" / "out"), expected=2
    )

    assert "cannot write there" in done.err


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as a terminal does")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_run_that_is_stopped_leaves_nothing_behind(tmp_path: Path, stop: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = tmp_path / "started"
    file = tmp_path / "stores.py"
    file.write_text(
        "import pathlib, threading\nfrom runcert import RunStore, adapter\n@adapter(RunStore)\ndef slow(lab):\n"
        f"    pathlib.Path({str(started)!r}).write_text('')\n    threading.Event().wait()\n    yield\n"
    )
    command = [sys.executable, "-m", "runcert", "certify", str(file)]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not started.exists():
            assert process.poll() is None
        process.send_signal(stop)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 128 + stop
    assert "interrupted; everything that was started is stopped" in err
    assert "Traceback" not in err
    assert [] == list(temporary.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_supervisor_takes_its_children_and_its_directory_along(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = tmp_path / "started"
    file = tmp_path / "stores.py"
    file.write_text(
        "import os, pathlib, threading\nfrom runcert import RunStore, adapter\n@adapter(RunStore)\ndef slow(lab):\n"
        f"    part = pathlib.Path({str(started)!r} + '.part'); part.write_text(str(os.getpid())); part.rename({str(started)!r})\n"
        "    threading.Event().wait()\n    yield\n"
    )
    command = [sys.executable, "-m", "runcert", "certify", str(file)]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not started.exists():
            assert process.poll() is None
        child = int(started.read_text())
        process.kill()

    _wait_for_the_end_of(child)
    assert [] == list(temporary.iterdir())


def _wait_for_the_end_of(pid: int) -> None:
    """Poll the process table; the test's own time-out is the bound."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if (status := Path(f"/proc/{pid}/stat")).exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return


def test_output_that_nobody_reads_any_more_is_no_defect(tmp_path: Path) -> None:
    command = [str(RUNCERT), "clauses", "--format", "json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()

    assert (3, "") == (process.returncode, err)


@pytest.mark.parametrize("shown", [False, True])
def test_a_defect_of_the_kit_is_one_message_and_its_traceback_for_who_asks(tmp_path: Path, shown: bool) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import runcert_contract\n\n"
        "class Broken:\n"
        "    @property\n"
        "    def clauses(self):\n"
        "        raise ZeroDivisionError('at db://ann:hunter2@host')\n\n"
        "runcert_contract.CATALOGUE = Broken()\n",
        encoding="ascii",
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)} | ({"RUNCERT_TRACEBACK": "1"} if shown else {})

    done = subprocess.run([str(RUNCERT), "clauses"], env=environment, capture_output=True, text=True, check=False)

    if shown:
        assert "Traceback" in done.stderr
        assert "in clauses" in done.stderr
        return
    assert 3 == done.returncode
    assert "runcert: the kit failed, which is a defect to report: ZeroDivisionError: at db://ann:***@host" in done.stderr
    assert "(set RUNCERT_TRACEBACK=1 to see where)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_long_way_to_the_directory_for_temporary_files_is_no_hindrance(runcert: Runcert, tmp_path: Path) -> None:
    """The address of a UNIX socket holds about a hundred bytes."""
    temporary = tmp_path / ("x" * 120)
    temporary.mkdir()
    done = runcert(
        "certify", "memory", "--only", "RUN-CREATE-2", "--depth", "quick", expected=0, env={"TMPDIR": str(temporary)}
    )

    assert "RUN-CREATE-2       pass" in done.out
    assert [] == list(temporary.iterdir())
