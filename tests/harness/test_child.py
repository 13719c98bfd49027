"""The child process as its supervisor sees it: what it says to an order, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import pytest

from runcert.messages import ADDRESS, HUNG, KEY, ROOT, Channel, Job, Settings

HOSTILE = Path(__file__).parent.parent / "stores" / "hostile.py"
ORPHANED = 71


class Connected:
    """A child process, and this end of its connection."""

    def __init__(self, root: Path, **variables: str) -> None:
        self.root = root
        root.mkdir()
        listener = Listener(authkey=b"secret of the run")
        environment = os.environ | {ADDRESS: json.dumps(listener.address), KEY: b"secret of the run".hex(), ROOT: str(root)}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "runcert.child"],
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with listener:
            self.channel = Channel(listener.accept())

    def send(self, kind: str, **content: Any) -> None:
        self.channel.send(kind, settings=asdict(Settings(str(self.root), "quick", 1)), **content)

    def answers(self, *last: str) -> list[dict[str, Any]]:
        """Give what it says up to a message of one of these kinds, or to its end."""
        found: list[dict[str, Any]] = []
        while (message := self.channel.receive()) is not None:
            found.append(message)
            if message["kind"] in last:
                break
        return found

    def leave(self) -> None:
        """Ask it to end, which it does without an error."""
        self.send("leave")
        assert ["bye"] == [message["kind"] for message in self.answers()]
        assert 0 == self.popen.wait(timeout=60)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Connected]:
    connected = Connected(tmp_path / "run")
    yield connected
    connected.channel.close()
    connected.popen.wait(timeout=60)


def test_it_introduces_a_target_and_runs_its_checks(child: Connected) -> None:
    child.send("introduce", text="memory")
    introduced, ready = child.answers("ready")
    name = next(check for check, clauses in introduced["checks"] if clauses == ["RUN-CREATE-4"])
    child.send("run", jobs=[Job(introduced["spec"], [name]).to_json()])
    started, result, end = child.answers("end")

    assert ("introduced", "ready") == (introduced["kind"], ready["kind"])
    assert ("memory", name) == (started["target"], started["check"])
    assert ("pass", name) == (result["result"]["verdict"], result["result"]["check"])
    assert 0 == end["status"]
    child.leave()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "there is no target 'nope'"),
        (f"{HOSTILE}:yields_nothing", "yields nothing; it has to yield the open store once"),
    ],
)
def test_a_target_that_cannot_be_tried_is_told_and_the_next_one_is_taken(child: Connected, text: str, message: str) -> None:
    child.send("introduce", text=text)
    (trouble,) = child.answers("trouble", "ready")
    child.send("introduce", text="memory")

    assert "trouble" == trouble["kind"]
    assert message in trouble["message"]
    assert "ready" == child.answers("ready")[-1]["kind"]
    child.leave()


def test_what_cannot_be_read_is_a_defect_of_the_kit_and_ends_it(child: Connected) -> None:
    child.send("run", jobs=[{"spec": "memory"}])
    trouble, bye = child.answers()

    assert ("kit-trouble", "bye") == (trouble["kind"], bye["kind"])
    assert "KeyError" in trouble["message"]
    assert 0 == child.popen.wait(timeout=60)


def test_a_suite_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    shadow = tmp_path / "shadow" / "runcert_suites"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("", encoding="ascii")
    child = Connected(tmp_path / "run", PYTHONPATH=str(shadow.parent))
    child.send("introduce", text="memory")
    (trouble,) = child.answers("kit-trouble", "ready")

    assert "kit-trouble" == trouble["kind"]
    assert "the suite runcert_suites.run_store of the contract 'run-store' cannot be imported" in trouble["message"]
    child.leave()


def test_a_smoke_test_that_hangs_is_told_and_ends_it(child: Connected) -> None:
    child.send("introduce", text=f"{HOSTILE}:hangs_on_first_call")
    (trouble,) = child.answers()

    assert trouble["message"].startswith(f"the smoke test of {HOSTILE}:hangs_on_first_call: create(Run(")
    assert trouble["message"].endswith(" did not end within 1.3 s")
    assert HUNG == child.popen.wait(timeout=60)


def test_without_its_supervisor_it_ends_and_takes_the_directory_of_the_run_along(child: Connected) -> None:
    child.send("introduce", text="memory")
    child.answers("ready")
    child.channel.close()

    assert ORPHANED == child.popen.wait(timeout=60)
    assert not child.root.exists()
