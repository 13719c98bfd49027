"""``runcert certify`` and the commands that read what it wrote."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .conftest import RUNCERT, STORES, Runcert

RED = "runcert_reference.faulty.creating:CreateReplaces"
QUICK = ("--depth", "quick", "--seed", "7")


def test_the_reference_store_in_memory_is_certified(runcert: Runcert, tmp_path: Path) -> None:
    done = runcert("certify", "memory", *QUICK, "--out", "out", expected=0)

    assert "memory: certified (run-store, scope process" in done.out
    assert "volatile" in done.out
    written = {path.name for path in (tmp_path / "out" / "memory").iterdir()}
    reports = {"badge.json", "badge.svg", "junit.xml", "report.html", "results.sarif", "summary.md"}
    assert {"certificate.json"} | reports == written
    runcert("verify", "out/memory", expected=0)
    twice = ("compare", "out/memory", "out/memory/certificate.json")
    assert re.search(r"^RUN-CREATE-1 +pass +pass$", runcert(*twice, expected=0).out, re.MULTILINE)
    assert "| RUN-CREATE-1 | pass | pass |" in runcert(*twice, "--format", "markdown", expected=0).out
    assert ["verdict", "certified", "certified"] in runcert(*twice, "--format", "json", expected=0).json()


def test_a_store_that_keeps_nothing_is_refused_in_these_words(runcert: Runcert) -> None:
    done = runcert("certify", "noop", *QUICK, "--out", "out", expected=1)

    assert "a store that keeps nothing (no-op) is refused for everything but synchronous demonstrations" in done.out
    runcert("verify", "out/noop", expected=0)


def test_a_red_store_shows_clause_expected_found_steps_and_replay(runcert: Runcert, tmp_path: Path) -> None:
    done = runcert("certify", RED, *QUICK, "--only", "RUN-CREATE-2", "--out", "out", expected=1)

    assert "create on an id in use, in any status, raises AlreadyExists" in done.out
    for part in ("expected  create(Run(", "found     Run(", "steps", "replay    runcert replay out"):
        assert part in done.out
    (case,) = ElementTree.parse(tmp_path / "out" / "CreateReplaces" / "junit.xml").iter("testcase")
    assert case.get("name") == "RUN-CREATE-2"
    assert case.find("failure") is not None


def test_a_failure_replays_with_one_command(runcert: Runcert, tmp_path: Path) -> None:
    runcert("certify", RED, *QUICK, "--only", "RUN-CREATE-2", "--out", "out", expected=1)
    (first, *_) = sorted((tmp_path / "out" / "CreateReplaces" / "failures").iterdir())

    done = runcert("replay", str(first), expected=1)

    assert "failed again, as before" in done.out


def test_a_failure_of_a_store_in_a_file_replays_from_any_directory(runcert: Runcert, tmp_path: Path) -> None:
    tutorial = STORES.parent.parent / "docs" / "tutorial" / "files"
    arguments = (*QUICK, "--only", "RUN-CAS-2", "--out", str(tmp_path / "out"))
    runcert("certify", "first_adapter.py:first_store", *arguments, cwd=tutorial, expected=1)
    (first, *_) = sorted((tmp_path / "out" / "first-store" / "failures").iterdir())

    runcert("replay", str(first), cwd=tmp_path, expected=1)


def test_a_replay_that_passes_has_diverged(runcert: Runcert, tmp_path: Path) -> None:
    runcert("certify", RED, *QUICK, "--only", "RUN-CREATE-2", "--out", "out", expected=1)
    (first, *_) = sorted((tmp_path / "out" / "CreateReplaces" / "failures").iterdir())
    data = json.loads(first.read_text())
    first.write_text(json.dumps(data | {"target": "memory"}))

    done = runcert("replay", str(first), expected=3)

    assert "The replay diverged" in done.out


def test_the_same_seed_gives_the_same_steps(runcert: Runcert) -> None:
    arguments = ("certify", RED, *QUICK, "--only", "RUN-CREATE-2")

    first, second = runcert(*arguments), runcert(*arguments)

    assert _without_times(first.out) == _without_times(second.out)


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+ s", "", text)


def test_only_gives_no_certificate(runcert: Runcert) -> None:
    done = runcert("certify", "memory", *QUICK, "--only", "RUN-CREATE-2", expected=0)

    assert "memory: partial, no certificate" in done.out


def test_a_certificate_can_be_run_again(runcert: Runcert) -> None:
    runcert("certify", "memory", *QUICK, "--only", "RUN-CREATE-2", "--out", "out", expected=0)

    done = runcert("rerun", "out/memory", expected=0)

    assert "repeating memory at depth quick with seed 7" in done.out


def test_a_certificate_of_a_server_with_a_password_cannot_be_run_again_from_it(runcert: Runcert, tmp_path: Path) -> None:
    runcert("certify", "memory", *QUICK, "--only", "RUN-CREATE-2", "--out", "out", expected=0)
    file = tmp_path / "out" / "memory" / "certificate.json"
    data = json.loads(file.read_text())
    data["target"]["text"] = "redis://ann:***@127.0.0.1:6379/0"
    file.write_text(json.dumps(data))

    done = runcert("rerun", str(file), expected=2)

    assert "the password of redis://ann:***@127.0.0.1:6379/0 is not stored; run `runcert certify` with the full URL" in done.err


def test_json_holds_the_certificates_and_nothing_else(runcert: Runcert) -> None:
    done = runcert("certify", "memory", *QUICK, "--only", "RUN-CREATE-2", "--format", "json", expected=0)

    assert 0 == done.json()["exit_code"]
    assert ["memory"] == [c["target"]["name"] for c in done.json()["certificates"]]


def test_red_goes_before_green_among_several_targets(runcert: Runcert) -> None:
    done = runcert("certify", "memory", RED, *QUICK, "--only", "RUN-CREATE-2", "-n", "3", expected=1)

    assert "memory: partial" in done.out
    assert "CreateReplaces: not certified" in done.out


def test_more_processes_than_targets_give_the_same_verdict(runcert: Runcert) -> None:
    done = runcert("certify", "memory", *QUICK, "-n", "3", "--format", "json", expected=0)

    assert "certified" == done.json()["certificates"][0]["verdict"]


@pytest.fixture
def edited(runcert: Runcert, tmp_path: Path) -> Path:
    runcert("certify", RED, *QUICK, "--out", "out", expected=1)
    return tmp_path / "out" / "CreateReplaces" / "certificate.json"


def test_a_verdict_edited_by_hand_is_refused(runcert: Runcert, edited: Path) -> None:
    data: Any = json.loads(edited.read_text())
    edited.write_text(json.dumps(data | {"verdict": "certified", "exit_code": 0}))

    done = runcert("verify", str(edited), expected=1)

    assert "the verdict says 'certified', the clauses say 'not certified'" in done.out
    runcert("compare", str(edited), expected=1)


def test_a_waived_failure_is_shown_and_certifies_nothing(runcert: Runcert, tmp_path: Path) -> None:
    (tmp_path / "waivers.toml").write_text(
        '[[waiver]]\nclause = "RUN-CREATE-2"\nreason = "being mended"\nexpires = 2099-01-01\n'
    )

    done = runcert("certify", RED, *QUICK, "--only", "RUN-CREATE-2", "--waivers", "waivers.toml", "--out", "out", expected=0)

    assert "RUN-CREATE-2       waived        until 2099-01-01: being mended" in done.out
    runcert("verify", "out/CreateReplaces", expected=0)


@pytest.mark.parametrize(
    ("target", "expires", "complaint"),
    [("memory", "2099-01-01", "is stale: the clause no longer fails"), (RED, "2001-01-01", "expired on 2001-01-01")],
)
def test_a_waiver_that_outlived_its_reason_fails(
    runcert: Runcert, tmp_path: Path, target: str, expires: str, complaint: str
) -> None:
    (tmp_path / "waivers.toml").write_text(f'[[waiver]]\nclause = "RUN-CREATE-2"\nreason = "x"\nexpires = {expires}\n')

    done = runcert("certify", target, *QUICK, "--only", "RUN-CREATE-2", "--waivers", "waivers.toml", expected=1)

    assert complaint in done.out


def test_piped_output_is_plain_and_progress_is_silent(runcert: Runcert) -> None:
    done = runcert("certify", "memory", *QUICK, "--only", "RUN-CREATE-2", expected=0)

    assert "\x1b" not in done.out
    assert "" == done.err


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_unless_it_is_refused(tmp_path: Path, variables: dict[str, str], coloured: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "120", "TMPDIR": str(tmp_path), **variables}
    controller, terminal = pty.openpty()
    command = [str(RUNCERT), "certify", "memory", *QUICK, "--only", "RUN-CREATE-2"]
    with subprocess.Popen(
        command, env=environment, stdout=terminal, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        os.close(terminal)
        shown = _read_all(controller)

    assert 0 == process.returncode
    assert "RUN-CREATE-2" in shown
    assert coloured is bool(re.search("\x1b\\[[0-9;]*3[0-9]m", shown))


def _read_all(controller: int) -> str:
    shown = b""
    try:
        while part := os.read(controller, 65536):
            shown += part
    except OSError:  # Linux reports the closed terminal as an error
        pass
    finally:
        os.close(controller)
    return shown.decode()


def test_clauses_are_listed_with_their_sentences(runcert: Runcert) -> None:
    done = runcert("clauses", expected=0)

    assert "RUN-CAS-10" in done.out
    assert 69 == len(runcert("clauses", "--format", "json", expected=0).json()["clauses"])


def test_targets_and_faulty_stores_are_listed(runcert: Runcert) -> None:
    assert {"memory", "sqlite", "noop"} <= set(runcert("list", expected=0).out.split())
    assert RED in runcert("list", "--faulty", expected=0).out


def test_every_command_has_help(runcert: Runcert) -> None:
    for command in ("certify", "clauses", "list", "replay", "verify", "rerun", "compare", "clean", "selfcheck"):
        assert "Usage: runcert" in runcert(command, "--help", expected=0).out


def test_a_store_over_an_asynchronous_form_is_certified(runcert: Runcert) -> None:
    done = runcert("certify", "memory-async", *QUICK, expected=0)

    assert "RUN-CANCEL-1       pass" in done.out


def test_two_targets_of_one_name_are_refused(runcert: Runcert, tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text((STORES / "two_sound.py").read_text())

    done = runcert("certify", f"{STORES / 'two_sound.py'}:first", f"{copy}:first", *QUICK, expected=2)

    assert "the target name 'first' is used more than once" in done.err
