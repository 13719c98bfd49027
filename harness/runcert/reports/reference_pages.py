"""The reference pages that are made from what is installed: ``python -m runcert.reports.reference_pages docs/reference`` writes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runcert.reports.clause_pages import clause_page
from runcert.reports.fault_pages import fault_page

__all__ = ["PAGES", "main"]

PAGES: Mapping[str, Callable[[], str]] = {"clauses.md": clause_page, "faulty-stores.md": fault_page}
"""What makes each page, by its name."""


def main(arguments: Sequence[str]) -> int:
    """Write every page into the directory that is given; gives the exit code."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write(
            "give the directory of the reference pages: python -m runcert.reports.reference_pages docs/reference\n"
        )
        return 2
    for name, make in PAGES.items():
        (Path(arguments[0]) / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
