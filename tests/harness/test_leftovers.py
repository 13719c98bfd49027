"""Namespaces of a child process that could not dispose of them itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from runcert.lab import Clock, Lab
from runcert.leftovers import dispose_of_leftovers, note_namespace

STORES = """
import pathlib
from runcert import AsyncRunStore, RunStore, adapter
DISPOSED = pathlib.Path(__file__).parent / "disposed"
def dispose(lab):
    if lab.namespace == "rc_bad":
        raise OSError("cannot be removed")
    (DISPOSED / f"{lab.namespace} {lab.prepared}").touch()
@adapter(RunStore)
def without_dispose(lab):
    yield None
async def dispose_later(lab):
    (DISPOSED / f"later {lab.namespace}").touch()
@adapter(RunStore, dispose=dispose, parity_with=lambda: later)
def store(lab):
    yield None
@adapter(AsyncRunStore, dispose=dispose_later)
async def later(lab):
    yield None
"""


@pytest.fixture
def disposed(tmp_path: Path) -> Path:
    (tmp_path / "stores.py").write_text(STORES)
    made = tmp_path / "disposed"
    made.mkdir()
    return made


def note(tmp_path: Path, spec: str, name: str) -> None:
    directory = tmp_path / "run" / "store-0" / f"1-{name}"
    directory.mkdir(parents=True)
    lab = Lab(name, directory / "outer" / name, Clock(directory / "clock"), {"schema": name})
    note_namespace(directory, spec, lab)


def test_every_noted_namespace_is_disposed_of_although_one_fails(tmp_path: Path, disposed: Path) -> None:
    spec = f"{tmp_path / 'stores.py'}:store"
    for name in ("rc_1", "rc_bad", "rc_2"):
        note(tmp_path, spec, name)
    note(tmp_path, "no_such_module:store", "rc_3")
    note(tmp_path, f"{spec} beside later", "rc_4")
    note(tmp_path, f"{tmp_path / 'stores.py'}:without_dispose", "rc_5")

    dispose_of_leftovers(tmp_path / "run")

    assert ["later rc_4", "rc_1 {'schema': 'rc_1'}", "rc_2 {'schema': 'rc_2'}"] == sorted(p.name for p in disposed.iterdir())


def test_a_run_without_leftovers_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))

    dispose_of_leftovers(tmp_path)
