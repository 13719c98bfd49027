"""Every command in the documents runs, every file that they show is the file, and every generated page is up to date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from runcert.faulty import faulty_stores
from runcert.reports.reference_pages import PAGES as PAGES_MADE
from runcert_contract import CATALOGUE

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"\bnox\b|--pdb\b")
"""What runs the tests, and what talks to a person."""


def _blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [dedent(block["text"]) for block in found if block["language"] == language]


def _commands(page: Path) -> list[str]:
    return [command for block in _blocks(page, "console") for command in COMMAND.findall(block)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a copy of what a checkout holds."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            target = tmp_path / "checkout" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return tmp_path / "checkout"


@pytest.mark.parametrize("page", [page for page in PAGES if _commands(page)], ids=str)
def test_every_command_runs(page: Path, checkout: Path) -> None:
    script = "set -e\n" + "\n".join(_commands(page))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(checkout.parent),
    }

    done = subprocess.run(["bash", "-c", script], cwd=checkout, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_that_are_not_run_are_those_that_run_the_tests_or_talk_to_a_person(page: Path) -> None:
    skipped = [command for block in _blocks(page, "shell") for command in COMMAND.findall(block)]

    assert [] == [command for command in skipped if not NOT_RUN.search(command)]


@pytest.mark.parametrize(
    ("page", "language", "directory"),
    [
        ("docs/tutorial/certify-your-first-store.md", "python", "docs/tutorial/files"),
        ("docs/tutorial/stores-over-packages.md", "python", "examples"),
        ("docs/how-to/waive-a-failure.md", "toml", "docs/how-to/files"),
        ("docs/how-to/run-in-github-actions.md", "yaml", "docs/how-to/files"),
        ("docs/how-to/run-in-gitlab-ci.md", "yaml", "docs/how-to/files"),
    ],
)
def test_files_are_shown_as_they_are(page: str, language: str, directory: str) -> None:
    files = [file.read_text(encoding="utf-8") for file in (ROOT / directory).iterdir() if file.is_file()]
    blocks = _blocks(Path(page), language)

    assert blocks
    shown = [(block, indent(block, "    ")) for block in blocks]  # a method is shown without the indentation of its class
    assert [] == [forms[0] for forms in shown if not any(form in file for form in forms for file in files)]


@pytest.mark.parametrize("name", PAGES_MADE)
def test_the_pages_that_are_made_are_up_to_date(name: str) -> None:
    made = PAGES_MADE[name]()

    assert made == (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8"), (
        "python -m runcert.reports.reference_pages docs/reference makes it again"
    )


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in target]

    assert [] == [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (line,) = [command for block in _blocks(Path("README.md"), "shell") for command in COMMAND.findall(block)]

    assert line in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_a_report_waits_only_for_clauses_that_are_not_there_and_is_no_faulty_store_yet() -> None:
    text = (ROOT / "docs" / "explanation" / "faults-that-wait.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z]\d+) \S+ \| .* \| (.*) \|$", text, re.MULTILINE)
    clauses = {clause for _, wanted in rows for clause in re.findall(r"[A-Z]+-[A-Z]+-\d", wanted)}

    assert len(rows) >= 19
    assert {number for number, _ in rows} & {
        store.source.split(maxsplit=1)[0].rstrip(":") for store in faulty_stores()
    } == set()
    assert clauses & {clause.id for clause in CATALOGUE.clauses} == set()


def _built(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(checkout.parent / "site")]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


def test_the_site_is_built_without_a_warning_and_every_page_is_in_it(checkout: Path) -> None:
    done = _built(checkout)

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in [page for page in PAGES if page.parts[0] == "docs" and page.name != "README.md"]:
        assert (checkout.parent / "site" / page.relative_to("docs").with_suffix("") / "index.html").is_file()


def test_a_link_that_leads_nowhere_is_a_failure_of_the_site(checkout: Path) -> None:
    page = checkout / "docs" / "explanation" / "trust.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[nowhere](../../examples/nowhere.py)\n", encoding="utf-8")

    assert _built(checkout).returncode == 1
