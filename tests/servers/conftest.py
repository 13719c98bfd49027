"""What the tests of servers share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.servers.places import Place

from runcert.servers.owner import Servers


@contextmanager
def a_place() -> Iterator[Place]:
    """Make a place that is not below the directory of pytest, which nobody else may enter."""
    directory = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    directory.chmod(0o711)
    yield Place(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Give a place to one test."""
    tmp_path_factory.getbasetemp()  # pytest's own, before a test changes where temporary files go
    with a_place() as made:
        yield made


@pytest.fixture(scope="session")
def lasting() -> Iterator[Servers]:
    """Give servers to tests that do them no harm."""
    with a_place() as made:
        servers = Servers(made.directory, {})
        yield servers
        servers.stop()


@pytest.fixture
def servers(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Give the servers of a run, and stop them; nothing may be left."""
    monkeypatch.setattr(tempfile, "tempdir", str(place.directory))
    root = place.directory / "run"
    root.mkdir(mode=0o700)
    made = Servers(root, {})
    yield made
    made.stop()
    assert [] == [path for path in place.directory.rglob("*") if path != root]
