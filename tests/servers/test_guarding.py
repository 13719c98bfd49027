"""The guardian: it starts, stops and removes what it is told to, and survives whatever happens around it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers.places import wait_until

from runcert.problems import KitProblem
from runcert.servers.guarding import Guarded, GuardianProcess

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

READY = "import pathlib, signal, sys, time\n{before}\npathlib.Path(sys.argv[1]).touch()\nwhile True:\n    signal.pause()\n"

Start = Callable[..., Guarded]


@pytest.fixture
def guardian() -> Iterator[GuardianProcess]:
    made = GuardianProcess()
    yield made
    made.stop()


@pytest.fixture
def start(guardian: GuardianProcess, tmp_path: Path) -> Start:
    """Start a program that waits for a signal, and wait until it does."""

    def begin(before: str = "", stop_signal: int = signal.SIGTERM) -> Guarded:
        ready = tmp_path / f"ready-{len(list(tmp_path.iterdir()))}"
        command = [sys.executable, "-c", READY.format(before=before), str(ready)]
        guarded = guardian.start(command, directory=tmp_path, environment={}, log=tmp_path / "log", stop_signal=stop_signal)
        wait_until(ready.exists)
        return guarded

    return begin


def is_at_work(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_is_started_and_its_end_is_told(guardian: GuardianProcess, tmp_path: Path) -> None:
    script = "import os, sys; print(os.getcwd(), os.environ['WORD']); sys.exit(3)"
    guarded = guardian.start(
        [sys.executable, "-c", script], directory=tmp_path, environment={"WORD": "hello"}, log=tmp_path / "log"
    )
    assert guarded.ended.wait(30)

    assert (3, "ended with status 3") == (guarded.status, guarded.end_in_words)
    assert f"{tmp_path} hello\n" == (tmp_path / "log").read_text(encoding="utf-8")


def test_a_program_that_is_not_there_is_told(guardian: GuardianProcess, tmp_path: Path) -> None:
    guarded = guardian.start([str(tmp_path / "nothing")], directory=tmp_path, environment={}, log=tmp_path / "log")

    assert guarded.ended.is_set()
    assert guarded.end_in_words.startswith("could not be started (FileNotFoundError: ")


def test_a_process_is_stopped_with_its_signal(guardian: GuardianProcess, start: Start) -> None:
    guarded, other = start(), start()
    guardian.stop_process(guarded)
    guardian.stop_process(guarded)

    assert "was ended by signal 15 (SIGTERM)" == guarded.end_in_words
    assert is_at_work(other.pid)


def test_a_process_that_does_not_heed_its_signal_is_killed_in_the_end(guardian: GuardianProcess, start: Start) -> None:
    stubborn = start("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    guardian.stop_process(stubborn)

    assert "was ended by signal 9 (SIGKILL)" == stubborn.end_in_words


def test_at_the_end_processes_directories_and_commands_have_their_turn(
    guardian: GuardianProcess, start: Start, tmp_path: Path
) -> None:
    private, noted = tmp_path / "private", tmp_path / "noted"
    private.mkdir()
    guardian.remove_at_end(private)
    guardian.run_at_end([str(tmp_path / "nothing")])
    guardian.run_at_end([sys.executable, "-c", f"open({str(noted)!r}, 'x').close()"])
    stubborn = start("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    child_of_another = start("import subprocess; print(subprocess.Popen(['sleep', '1000']).pid, flush=True)")
    orphan = int((tmp_path / "log").read_text(encoding="ascii").split()[-1])
    guardian.stop()
    guardian.stop()

    assert [False] * 3 == [is_at_work(pid) for pid in (stubborn.pid, child_of_another.pid, orphan)]
    assert (False, True) == (private.exists(), noted.exists())
    with pytest.raises(KitProblem, match="stopped already"):
        guardian.run_at_end([])


def test_what_a_terminal_sends_to_everybody_does_not_end_it(guardian: GuardianProcess, start: Start) -> None:
    guarded = start()
    popen = guardian._popen
    assert popen is not None
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        popen.send_signal(number)
    guardian.settle()

    assert (None, True) == (popen.poll(), is_at_work(guarded.pid))


def test_asked_to_end_it_ends_everything(guardian: GuardianProcess, start: Start) -> None:
    guarded = start()
    popen = guardian._popen
    assert popen is not None
    popen.terminate()
    assert 0 == popen.wait(timeout=60)

    assert not is_at_work(guarded.pid)


def test_when_it_is_killed_nobody_waits_for_it_and_its_processes_end(guardian: GuardianProcess, start: Start) -> None:
    guarded = start()
    popen = guardian._popen
    assert popen is not None
    popen.kill()
    popen.wait()
    guardian.settle()

    assert guarded.ended.wait(30)
    assert "is gone (the guardian of the servers was killed)" == guarded.end_in_words
    wait_until(lambda: not is_at_work(guarded.pid))
    with pytest.raises(KitProblem, match="the guardian of the servers is gone"):
        guardian.run_at_end([])


def test_before_anything_was_asked_of_it_there_is_none(guardian: GuardianProcess) -> None:
    guardian.settle()
    guardian.stop()

    assert guardian._popen is None
