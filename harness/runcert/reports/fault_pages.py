"""The reference page of the faulty stores, made from those that are installed: what the kit is known to catch, and by which clause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from runcert.faulty import FaultyStore, faulty_stores

__all__ = ["fault_page"]

_HEAD = """\
# Faulty stores

<!-- Made by `python -m runcert.reports.reference_pages docs/reference`; change the faulty stores, not this page. -->

Each of these stores is a reference store with one fault, and `runcert selfcheck` insists that the clause named for it catches it: a check of that clause fails on
it, passes on the same store without the fault, and the fault really came into play. A store can be tried like any other by its address:
`runcert certify runcert_reference.faulty.comparing_and_setting:UpdateIgnoresTheVersion`.

Where a fault was reported in public, its source is named with a letter and a number, the same for all faults of that kind; *twin* is another shape of it.
What a source reports and no clause of this catalogue judges yet is in [what waits](../explanation/faults-that-wait.md).
"""

_REPORT = re.compile(r"^(?P<number>[A-Z]\d+) (?P<where>[\w.-]+/[\w.-]+#\d+)")
_NUMBER = re.compile(r"^(?P<kind>[A-Z])(?P<number>\d+)\b")


def fault_page() -> str:
    """Give the page as Markdown."""
    stores = faulty_stores()
    return "\n".join([_HEAD, *_counts(stores), *_from_reports(stores), *_from_clauses(stores)])


def _counts(stores: Sequence[FaultyStore]) -> list[str]:
    counted = Counter(store.backend for store in stores)
    clauses = len({store.clause for store in stores})
    said = ", ".join(f"{number} {backend}" for backend, number in sorted(counted.items()))
    return [f"{len(stores)} stores, caught by {clauses} clauses: {said}.", ""]


def _from_reports(stores: Sequence[FaultyStore]) -> list[str]:
    """Give the stores with a fault that was reported, by report."""
    reported = sorted((store for store in stores if _NUMBER.match(store.source)), key=_order)
    where = {found["number"]: found["where"] for store in stores if (found := _REPORT.match(store.source))}
    lines = [
        "## Faults from public reports",
        "",
        "| report | store | on | clause | what it does |",
        "| --- | --- | --- | --- | --- |",
    ]
    for store in reported:
        number = store.source.split(maxsplit=1)[0].rstrip(":")
        report = f"{number} {where[number]}" if number in where else number
        lines.append(f"| {report}{_twin(store)} | {_row(store)} |")
    return [*lines, ""]


def _from_clauses(stores: Sequence[FaultyStore]) -> list[str]:
    """Give the stores whose fault is what a clause forbids."""
    own = (store for store in stores if not _NUMBER.match(store.source))
    lines = ["## Faults that a clause forbids", "", "| store | on | clause | what it does |", "| --- | --- | --- | --- |"]
    return [*lines, *_table(own), ""]


def _table(stores: Iterable[FaultyStore]) -> list[str]:
    return [f"| {_row(store)} |" for store in stores]


def _row(store: FaultyStore) -> str:
    fault = store.fault.replace("|", "\\|")
    return f"`{store.name}` | {store.backend} | [{store.clause}](clauses.md#{store.clause.lower()}) | {fault}"


def _twin(store: FaultyStore) -> str:
    return " (twin)" if " twin" in store.source else ""


def _order(store: FaultyStore) -> tuple[str, int, bool]:
    found = _NUMBER.match(store.source)
    assert found is not None  # only such stores are sorted
    return found["kind"], int(found["number"]), " twin" in store.source
