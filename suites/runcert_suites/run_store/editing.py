"""Ways to edit a run in place, as a caller may who holds one, and how that is noted among the steps of a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runcert.cases import Case
from runcert.handles import Step
from runcert_contract import Edited, Listing, Returned, Run

__all__ = ["EDITS", "edit"]


def _objects(run: Run) -> list[dict[str, Any]]:
    found: list[Any] = [run.input, run.context, run.external_operation_metadata]
    if run.result is not None and isinstance(run.result.output, dict):
        found.append(run.result.output)
    return found


def _add_at_the_top(run: Run) -> None:
    """Add a key at the top of each object."""
    for value in _objects(run):
        value["added"] = "by the caller"


def _add_below_the_top(run: Run) -> None:
    """Change every list and object below the top of each object."""
    waiting: list[Any] = [child for value in _objects(run) for child in value.values()]
    while waiting:
        current = waiting.pop()
        if isinstance(current, list):
            waiting.extend(current)
            current.append("added by the caller")
        elif isinstance(current, dict):
            waiting.extend(current.values())
            current["added"] = "by the caller"


def _empty(run: Run) -> None:
    """Take everything out of each object."""
    for value in _objects(run):
        value.clear()


EDITS: Mapping[str, Callable[[Run], None]] = {
    "something is added below the top": _add_below_the_top,
    "something is added at the top": _add_at_the_top,
    "everything is taken out": _empty,
}
"""Each edit of a run, by what is said of it."""


def edit(case: Case, value: object, how: str, step: int, part: str) -> None:
    """Edit a run, or all that is in a listing, in place.

    Args:
        case: the check, whose steps say so.
        value: what is edited.
        how: one of :data:`EDITS`.
        step: the number of the step that has the value, from 1.
        part: ``argument 1``, ``argument 2`` or ``result``.
    """
    case.steps.append(Step("the caller", Edited(step, part, how), Returned(None)))
    for run in value.items if isinstance(value, Listing) else [value]:
        if isinstance(run, Run):
            EDITS[how](run)
    if isinstance(value, Listing) and isinstance(value.items, list):
        value.items.clear()
