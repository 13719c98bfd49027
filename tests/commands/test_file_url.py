"""``file:///path``: the kit works in directories of its own below one of the user's, and leaves nothing there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from runcert import Lab, UsageProblem
from runcert.lab import Clock
from runcert_reference.file_adapters import file_at_url, make_namespace, remove_namespace

from .conftest import Runcert


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "the user's #1 é"
    made.mkdir()
    return made


def lab_named(name: str, tmp_path: Path, prepared: dict[str, str] | None = None) -> Lab:
    return Lab(name, tmp_path / "unused", Clock(tmp_path / "clock"), dict(prepared) if prepared else None)


def test_a_certified_directory_is_left_as_it_was(runcert: Runcert, root: Path, tmp_path: Path) -> None:
    (root / "notes.txt").write_text("the user's")
    (root / "rc_of_somebody_else").mkdir()
    (root / "rc_of_somebody_else" / "run-r1.json").write_text("theirs")

    only = ["--only", "RUN-CREATE-3", "--only", "RUN-NAMESPACE-1", "--only", "RUN-REUSE-1", "--only", "RUN-CORRUPT-1"]
    done = runcert("certify", root.as_uri(), "--depth", "quick", *only, "--out", str(tmp_path / "out"), expected=0)

    assert "4 of 4 clauses" in done.out
    assert ["notes.txt", "rc_of_somebody_else"] == sorted(path.name for path in root.iterdir())
    assert (root / "rc_of_somebody_else" / "run-r1.json").read_text() == "theirs"
    (certificate,) = (tmp_path / "out").glob("file-*/certificate.json")
    assert json.loads(certificate.read_text())["target"]["text"] == root.as_uri()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///no/such/directory", "/no/such/directory does not exist; make a directory"),
        ("file:///etc/hostname", "/etc/hostname is no directory"),
        ("file://runs/here", "named by its full path, file:///path/to/directory"),
        ("file:///tmp?mode=rw", "named by its full path"),
    ],
)
def test_a_url_that_names_no_directory_is_exit_2(runcert: Runcert, url: str, message: str) -> None:
    done = runcert("certify", url, expected=2)

    assert message in done.err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_exit_2(runcert: Runcert, root: Path) -> None:
    root.chmod(0o500)

    done = runcert("certify", root.as_uri(), expected=2)

    assert "cannot be written (Permission denied)" in done.err


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a file system in which nobody may make a directory")
def test_a_file_system_that_takes_no_directory_is_exit_2(runcert: Runcert) -> None:
    done = runcert("certify", "file:///proc/self", expected=2)

    assert "cannot be written" in done.err


def test_a_read_only_directory_and_a_full_disk_are_said(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_named("rc_1", tmp_path)

    def refusing(number: int) -> object:
        def call(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        return call

    for number in (30, 28, 122):  # EROFS, ENOSPC, EDQUOT
        for name in ("mkdir", "fsync"):
            with monkeypatch.context() as patched:
                patched.setattr(os, name, refusing(number))
                with pytest.raises(UsageProblem, match=os.strerror(number)):
                    make_namespace(root, lab)
            assert [] == list(root.iterdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - 4096, 4096))
    with pytest.raises(UsageProblem, match="4 KiB are free"):
        make_namespace(root, lab)


def test_a_name_that_is_taken_is_refused_and_left_alone(root: Path, tmp_path: Path) -> None:
    (root / "rc_1").mkdir()
    (root / "rc_1" / "theirs").write_text("")

    with pytest.raises(UsageProblem, match="is there already and not this run's"):
        make_namespace(root, lab_named("rc_1", tmp_path))
    with pytest.raises(RuntimeError, match="left as it is"):
        remove_namespace(root, lab_named("rc_1", tmp_path))

    assert (root / "rc_1" / "theirs").exists()


def test_only_the_run_that_made_a_directory_removes_it(root: Path, tmp_path: Path) -> None:
    mark = make_namespace(root, lab_named("rc_1", tmp_path))

    with pytest.raises(RuntimeError, match="left as it is"):
        remove_namespace(root, lab_named("rc_1", tmp_path, {**mark, "mark": "another"}))
    assert (root / "rc_1").is_dir()
    remove_namespace(root, lab_named("rc_1", tmp_path, mark))
    assert [] == list(root.iterdir())


def test_two_directories_have_two_names_in_reports(tmp_path: Path) -> None:
    names = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        names.append(file_at_url((tmp_path / name).as_uri()).target)

    assert len(set(names)) == 2
    assert all(name.startswith("file-") and "/" not in name for name in names)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as a terminal does")
def test_a_run_that_is_stopped_leaves_nothing_in_the_users_directory(root: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "runcert", "certify", root.as_uri(), "--depth", "standard"]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(root.glob("rc_*/run-*.json")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted" in err
    assert [] == list(root.iterdir())
    assert [] == list(temporary.iterdir())
