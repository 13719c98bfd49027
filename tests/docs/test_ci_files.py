"""The files for CI in the how-to guides are what the services expect, and every command in them exists."""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.command_line import Runcert
from tests.servers.conftest import a_place
from tests.servers.places import need

from runcert.certifying import parse_servers
from runcert.cli import main
from runcert.servers.owner import Servers

ROOT = Path(__file__).parent.parent.parent
FILES = ROOT / "docs" / "how-to" / "files"
GITHUB, GITLAB = FILES / "github-actions.yml", FILES / "gitlab-ci.yml"
NOX_SESSION = re.compile(r"\bnox -s ([\w-]+)")


@pytest.fixture
def lasting_url() -> Iterator[Callable[[str], str]]:
    """Give the address of a server as a job has one beside it."""
    with a_place() as place:
        servers = Servers(place.directory, {})

        def url(name: str) -> str:
            need(name, "wheel")
            return servers.url(name, {})

        yield url
        servers.stop()


def loaded(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def github_lines() -> Iterator[str]:
    """Give each line that a job runs, once for each combination of its matrix."""
    for job in loaded(GITHUB)["jobs"].values():
        matrix = dict(job.get("strategy", {}).get("matrix", {}))
        included = matrix.pop("include", [])
        combinations = (
            [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())] if matrix else []
        )
        for values in [*included, *combinations] or [{}]:
            for step in job["steps"]:
                for line in str(step.get("run", "")).splitlines():
                    yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: str(values[found[1]]), line)  # noqa: B023  # used at once


def gitlab_lines() -> Iterator[str]:
    """Give each line of a job's script, once for each combination of its matrix."""
    for job in loaded(GITLAB).values():
        if not isinstance(job, dict) or "script" not in job:
            continue
        for part in job.get("parallel", {}).get("matrix", [{}]):
            lists = [value if isinstance(value, list) else [value] for value in part.values()]
            for values in itertools.product(*lists):
                for line in job["script"]:
                    yield with_variables(line, dict(zip(part, values, strict=True)))


def with_variables(line: str, values: dict[str, str]) -> str:
    """Put variables into a line as bash does, as far as these files go."""
    line = re.sub(r"\$\{(\w+)//\[:\\/\]/-\}", lambda found: re.sub("[:/]", "-", values[found[1]]), line)
    return re.sub(r"\$(\w+)", lambda found: values.get(found[1], found[0]), line)


def runcert_arguments(line: str) -> list[str] | None:
    """Give the arguments of a line that runs ``runcert``, up to where the shell sends its output; None for other lines."""
    words = shlex.split(line)
    if not words or words[0] != "runcert":
        return None
    return list(itertools.takewhile(lambda word: word not in ("|", "||", "&&", ">", ">>"), words[1:]))


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """Parse a command line as ``runcert`` does, without running it; gives the command and its parameters."""
    with click.Context(main, info_name="runcert") as context:
        command = main.get_command(context, arguments[0])
        assert command is not None, f"there is no command {arguments[0]!r}"
        return arguments[0], command.make_context(arguments[0], arguments[1:], parent=context).params


def commands_in(lines: Iterator[str]) -> list[list[str]]:
    return [arguments for line in lines if (arguments := runcert_arguments(line)) is not None]


@pytest.mark.parametrize(("file", "schema"), [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")])
def test_a_file_follows_the_schema_of_its_service(file: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_github_job_has_a_time_limit() -> None:
    assert [] == [name for name, job in loaded(GITHUB)["jobs"].items() if "timeout-minutes" not in job]


@pytest.mark.parametrize("lines", [github_lines, gitlab_lines])
def test_every_runcert_line_names_a_command_options_and_targets_that_exist(lines: Any) -> None:
    commands = [parsed(arguments) for arguments in commands_in(lines())]
    targets = {entry.name for entry in entry_points(group="runcert.adapters")}

    assert {"certify", "compare"} == {name for name, _ in commands}
    for name, parameters in commands:
        if name == "certify":
            assert set(parameters["targets"]) <= targets
            assert set(parse_servers(parameters["servers"])) <= set(parameters["targets"])


@pytest.mark.parametrize("lines", [github_lines, gitlab_lines])
def test_every_server_and_every_directory_is_certified_once_and_all_are_compared(lines: Any) -> None:
    commands = [parsed(arguments) for arguments in commands_in(lines())]
    places = [parameters["out"] for name, parameters in commands if name == "certify"]
    (compared,) = [parameters["certificates"] for name, parameters in commands if name == "compare"]

    assert len(set(places)) == len(places)
    assert len(places) >= 10
    assert [] == [place for place in places if not (place / "target" / "certificate.json").match(str(compared[0]))]


def test_the_last_job_waits_for_all_others_and_runs_though_they_fail() -> None:
    github, gitlab = loaded(GITHUB)["jobs"], loaded(GITLAB)
    others = {name for name, job in gitlab.items() if isinstance(job, dict) and "script" in job} - {"compare"}

    assert set(github) - {"compare"} == set(github["compare"]["needs"])
    assert github["compare"]["if"] == "always()"
    assert others == {need["job"] for need in gitlab["compare"]["needs"]}
    assert gitlab["compare"]["when"] == "always"


@pytest.mark.parametrize(
    ("line", "message"),
    [("runcert certificate memory", "there is no command"), ("runcert certify memory --depht quick", "No such option")],
)
def test_a_command_line_that_does_not_exist_is_found(line: str, message: str) -> None:
    arguments = runcert_arguments(line)
    assert arguments is not None

    with pytest.raises((AssertionError, click.UsageError)) as raised:
        parsed(arguments)
    assert message in str(raised.value)


# -- nox


def nox_sessions() -> set[str]:
    command = [sys.executable, "-m", "nox", "--list", "--nocolor", "-f", str(ROOT / "noxfile.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(re.findall(r"^[*-] ([\w-]+) -> ", done.stdout, re.MULTILINE))


def test_every_nox_session_that_is_named_anywhere_exists() -> None:
    texts = [ROOT / ".ci" / "run", *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), GITHUB, GITLAB]
    named = {name for file in texts for name in NOX_SESSION.findall(file.read_text(encoding="utf-8"))}

    assert {"certify", "soak"} <= named
    assert named <= nox_sessions()


def test_a_session_without_arguments_takes_every_reference_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    noxfile = runpy.run_path("noxfile.py")

    assert sorted({entry.name for entry in entry_points(group="runcert.adapters")} - {"noop"}) == noxfile["REFERENCE_TARGETS"]


# -- what cannot be read off the files: that the lines do what they say


@pytest.mark.parametrize("target", ["valkey"])
def test_a_line_of_a_job_certifies_and_its_certificates_are_compared(
    runcert: Runcert, lasting_url: Callable[[str], str], tmp_path: Path, target: str
) -> None:
    lines = commands_in(github_lines())
    certify = next(line for line in lines if line[0] == "certify" and line[1] == target)
    (compare,) = [line for line in lines if line[0] == "compare"]
    certify[certify.index("--server") + 1] = f"{target}={lasting_url(target)}"

    runcert(*certify, "--only", "RUN-CREATE-1", expected=0)
    files = [str(file) for file in tmp_path.glob(compare[1])]
    compared = runcert("compare", *files, *compare[2:], expected=1)  # partial certificates certify nothing

    assert len(files) == 1
    assert f"| clause | {target} |" in compared.out
