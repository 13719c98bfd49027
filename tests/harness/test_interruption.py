from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runcert import interruption

POSIX = pytest.mark.skipif(os.name != "posix", reason="sends signals as a terminal does")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP] if os.name == "posix" else []


def run(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "program.py"
    file.write_text(f"import os, signal, sys\nfrom runcert import interruption\n{code}", encoding="utf-8")
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=60)


@POSIX
@pytest.mark.parametrize("number", SIGNALS)
def test_before_anything_is_started_the_process_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    done = run(
        "interruption.take_signals()\ntry:\n"
        f"    os.kill(os.getpid(), {int(number)})\nexcept BaseException:\n    sys.exit('it was raised')\n",
        tmp_path,
    )

    assert done.returncode == 128 + number
    assert done.stderr == "runcert: interrupted; nothing was started yet\n"


@POSIX
def test_afterwards_it_is_raised_and_remembered_also_where_somebody_loses_it(tmp_path: Path) -> None:
    done = run(
        "interruption.take_signals()\ninterruption.clean_up_from_now_on()\ninterruption.check()\ntry:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\n"
        "print(interruption.came())\ntry:\n    interruption.check()\nexcept KeyboardInterrupt:\n    print('stopped')\n",
        tmp_path,
    )

    assert done.stdout == f"{int(signal.SIGINT)}\nstopped\n"


def test_nothing_came_and_nothing_is_stopped(tmp_path: Path) -> None:
    done = run("interruption.check()\nprint(interruption.came())\n", tmp_path)

    assert done.stdout == "None\n"


def test_other_threads_are_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "_came", [2])
    found: list[str] = []

    def look() -> None:
        interruption.check()
        found.append("went on")

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert found == ["went on"]


@POSIX
def test_the_command_takes_signals_before_it_imports_what_takes_time(tmp_path: Path) -> None:
    done = run(
        "import runcert_command\n"
        "class Finder:\n    def find_spec(self, name, path, target=None):\n"
        "        if name == 'runcert.cli':\n            os.kill(os.getpid(), signal.SIGINT)\n        return None\n"
        "sys.meta_path.insert(0, Finder())\nrunning = runcert_command.main()\n",
        tmp_path,
    )

    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "runcert: interrupted; nothing was started yet\n"


@POSIX
@pytest.mark.parametrize(
    "lost", ["except BaseException:\n    pass", "except BaseException as e:\n    raise RuntimeError('wrapped') from e"]
)
def test_an_interruption_that_a_store_loses_or_wraps_ends_the_run(tmp_path: Path, lost: str) -> None:
    program = (
        "import os, signal, sys\nimport runcert.certifying as certifying\nfrom runcert.cli import main\n"
        "def lose(*_):\n    from runcert import interruption\n    interruption.clean_up_from_now_on()\n    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n    "
        + lost.replace("\n", "\n    ")
        + "\n    return [], None\ncertifying.certify = lose\nsys.argv = ['runcert', 'certify', 'memory']\nmain()\n"
    )
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 130
    assert "interrupted; everything that was started is stopped" in done.stderr
    assert "Traceback" not in done.stderr
