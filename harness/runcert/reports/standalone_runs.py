"""Tests that were written for failures are run before anybody relies on them: only one that is red for the failure's reason is kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from runcert.reports.standalone import MARK

__all__ = ["those_that_fail"]

_SECONDS = 60
_WITHOUT_THE_KIT = "import sys; sys.modules['runcert'] = None; import pytest; raise SystemExit(pytest.main(sys.argv[1:]))"


def those_that_fail(tests: Sequence[Path]) -> set[Path]:
    """Run tests in a process of their own, in which the kit cannot be imported; give those that fail in their last call.

    Args:
        tests: the files, all in one directory.

    Returns:
        Those that fail where the failure was; not those that pass, that cannot open the store, or that were not reached in
        time.
    """
    if not tests:
        return set()
    with tempfile.TemporaryDirectory(prefix="rc-alone-") as directory:
        results = Path(directory) / "results.xml"
        options = [
            "-q",
            "--continue-on-collection-errors",
            "--tb=native",
            f"--junitxml={results}",
            f"--basetemp={directory}/base",
            f"--rootdir={directory}",
        ]
        command = [sys.executable, "-P", "-c", _WITHOUT_THE_KIT, "-c", os.devnull, "-p", "no:cacheprovider", *options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONOPTIMIZE"))}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            subprocess.run(  # noqa: S603  # our own interpreter
                [*command, *(str(test.resolve()) for test in tests)],
                cwd=directory,
                env=environment,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            failed = _failed_lines(ET.parse(results))  # noqa: S314  # written by pytest a moment ago
        except (subprocess.TimeoutExpired, OSError, ET.ParseError):
            return set()
    return {test for test in tests if _is_in_the_last_call(test, failed.get(test.stem, 0))}


_FRAME = re.compile(r'(?P<stem>test_\w+)\.py", line (?P<line>\d+), in (?:test_\w+|scenario)$', re.MULTILINE)


def _failed_lines(results: ET.ElementTree[Any]) -> dict[str, int]:
    """Give, for each file with a test that failed, the line of the test that was reached."""
    frames = (list(_FRAME.finditer(failure.text or "")) for failure in results.iter("failure"))
    return {found[-1]["stem"]: int(found[-1]["line"]) for found in frames if found}


def _is_in_the_last_call(test: Path, line: int) -> bool:
    lines = test.read_text(encoding="utf-8").splitlines()
    last = next((number for number, text in enumerate(lines, start=1) if text.strip().startswith(MARK)), len(lines))
    return line > last
