"""Runs to start from, and the legal way from one status to another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from runcert.cases import Case
from runcert_contract import LEGAL_MOVES, Result, ResultStatus, Run, RunStatus

__all__ = ["START", "a_run", "moved", "path_to", "updated"]

START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
"""The instant at which runs of the suite are created; the store sets no field by itself, so any will do."""

_RESULTS = {
    RunStatus.SUCCEEDED: ResultStatus.SUCCEEDED,
    RunStatus.FAILED: ResultStatus.FAILED,
    RunStatus.DENIED: ResultStatus.DENIED,
    RunStatus.CANCELLED: ResultStatus.CANCELLED,
}


def a_run(case: Case, **fields: Any) -> Run:
    """Give a run in REQUESTED with fresh identifiers.

    Args:
        case: gives the identifiers.
        fields: fields of the run that are to be otherwise.
    """
    given: dict[str, Any] = {
        "run_id": case.fresh_id("r"),
        "tenant_id": case.fresh_id("t"),
        "action_id": "action",
        "proposal_id": case.fresh_id("p"),
        "idempotency_key": case.fresh_id("k"),
        "created_at": START,
        "updated_at": START,
    }
    return Run(**(given | fields))


def updated(run: Run, **fields: Any) -> Run:
    """Give the next version of a run, in the same status, a second later.

    Args:
        run: the run as it is.
        fields: what else changes.
    """
    given: dict[str, Any] = {"version": run.version + 1, "updated_at": run.updated_at + timedelta(seconds=1)}
    return replace(run, **(given | fields))


def moved(run: Run, status: RunStatus, **fields: Any) -> Run:
    """Give the next version of a run in another status, with the result that belongs to it.

    Args:
        run: the run as it is.
        status: where it goes.
        fields: what else changes.
    """
    result = Result(_RESULTS[status], code="done") if status in _RESULTS else None
    reason = "runtime failed" if status is RunStatus.RUNTIME_FAILED else ""
    return updated(run, **({"status": status, "result": result, "failure_reason": reason} | fields))


def path_to(status: RunStatus) -> tuple[RunStatus, ...]:
    """Give the shortest legal way from REQUESTED to ``status``, without REQUESTED itself."""
    ways: dict[RunStatus, tuple[RunStatus, ...]] = {RunStatus.REQUESTED: ()}
    waiting = [RunStatus.REQUESTED]
    while waiting:
        current = waiting.pop(0)
        for following in sorted(LEGAL_MOVES[current], key=lambda move: move.value):
            if following not in ways:
                ways[following] = (*ways[current], following)
                waiting.append(following)
    return ways[status]
