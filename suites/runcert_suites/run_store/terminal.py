"""RUN-TERMINAL and RUN-REUSE: an ended run stays ended, and its id stays taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.problems import AdapterProblem
from runcert.wording import outcome_in_words
from runcert_contract import (
    AlreadyExists,
    Fault,
    Find,
    Kept,
    Result,
    ResultStatus,
    RetryDisposition,
    Returned,
    Run,
    RunStatus,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated

_ENDED = tuple(status for status in RunStatus if status.terminal)


@clause("RUN-TERMINAL-1")
class ATerminalRunStaysAsItEnded:
    """an update that changes status or result of a terminal run gives False; any other update of it may give True or False."""

    def test_no_other_status(self, case: Case) -> None:
        """From every terminal status, a move to any other status is refused and leaves the run as it ended."""
        handle = case.open()
        judge = Judge(case)
        for status in _ENDED:
            run = judge.run_in(handle, status)
            for other in (other for other in RunStatus if other is not status):
                _refused(judge, handle, run, moved(run, other))
        case.evidence["moves refused"] = len(_ENDED) * (len(RunStatus) - 1)

    def test_no_other_result(self, case: Case) -> None:
        """In every terminal status, the result is final: code, message, nested output, retry, and whether there is one."""
        handle = case.open()
        judge = Judge(case)
        for status in _ENDED:
            run = _ended_with_output(judge, handle, status)
            for result in _other_results(run.result):
                _refused(judge, handle, run, updated(run, result=result))

    def test_the_same_status_from_a_late_report(self, case: Case) -> None:
        """A second report of the same status with another result is refused as well: the first result is final."""
        handle = case.open()
        judge = Judge(case)
        for status in (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED):
            run = judge.run_in(handle, status)
            late = moved(run, status, result=Result(ResultStatus.SUCCEEDED, code="late"), stage="late report")
            _refused(judge, case.another(handle), run, late)

    def test_other_updates_keep_what_it_came_to(self, case: Case) -> None:
        """Whether other fields may still change is the store's choice; the status and result do not change after that either."""
        handle = case.open()
        judge = Judge(case)
        accepted = 0
        for status in _ENDED:
            run = judge.run_in(handle, status)
            for fields in _harmless(run):
                following = updated(run, **fields)
                outcome = judge.compare_and_set(handle, run, following)
                run = following if outcome == Returned(True) else run
                accepted += outcome == Returned(True)
                judge.find(handle, run.run_id)
            _refused(judge, handle, run, updated(run, result=Result(ResultStatus.CANCELLED, code="too late")))
            _refused(judge, handle, run, moved(run, RunStatus.RUNNING))
        case.evidence["other updates accepted"] = accepted


@clause("RUN-REUSE-1")
class APurgedIdIsNotAcceptedAgain:
    """an id is never accepted again by create, also after purge or retention."""

    def test_create_after_purge(self, case: Case) -> None:
        """The id of a run that was purged is refused, again and again, on every handle, for every tenant."""
        handle = case.open()
        judge = Judge(case)
        for status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.EXPIRED):
            run = judge.run_in(handle, status)
            _purge(case, handle, run)
            _refuses_the_id(judge, handle, run)
            _refuses_the_id(judge, case.another(handle), run)
            judge.accepted(judge.create(handle, a_run(case)), "create of an id that was never used")

    def test_create_after_purge_and_reopening(self, case: Case) -> None:
        """Where records are kept when every handle is closed, so is the knowledge that an id was used."""
        handle = case.open()
        judge = Judge(case)
        run = judge.run_in(handle, RunStatus.FAILED)
        _purge(case, handle, run)
        _refuses_the_id(judge, handle, run)
        kept = isinstance(case.claims.promise(Fault.CLOSE), Kept)
        case.evidence["reopened"] = kept
        if kept:
            _refuses_the_id(judge, judge.reopen(), run)


def _purge(case: Case, handle: Handle, run: Run) -> None:
    """Let the adapter's hook remove a run, and insist that it did: a record that is still there proves nothing about its id."""
    case.hook("purge", case.adapter.contract, run.run_id)
    outcome = case.another(handle).call(Find(run.run_id))
    if isinstance(outcome, Returned) and isinstance(outcome.value, Run):
        raise AdapterProblem(
            f"the hook purge left the run {run.run_id!r} where it was: find still gives {outcome_in_words(outcome)}; "
            "let it remove the run as your retention does"
        )


def _refused(judge: Judge, handle: Handle, run: Run, update: Run) -> None:
    """Let the judge see an update that the guard has to refuse, and that the run stays as it ended."""
    judge.compare_and_set(handle, run, update)
    judge.find(handle, run.run_id)


def _ended_with_output(judge: Judge, handle: Handle, status: RunStatus) -> Run:
    """Give a run in a terminal status whose result, where that status has one, has a nested output."""
    before = judge.run_in(handle, RunStatus.RUNNING)
    ended = moved(before, status)
    if ended.result is not None:
        ended = replace(ended, result=replace(ended.result, output={"a": {"b": [1, 2]}}))
    judge.accepted(judge.compare_and_set(handle, before, ended), f"the legal move to {status.value}")
    return ended


def _other_results(result: Result | None) -> list[Result | None]:
    if result is None:
        return [Result(ResultStatus.SUCCEEDED), Result(ResultStatus.CANCELLED, code="late", output=[1])]
    other = ResultStatus.VALIDATION_FAILED
    return [
        None,
        replace(result, status=other),
        replace(result, code="another code"),
        replace(result, message="another message"),
        replace(result, output={"a": {"b": [1, 3]}}),
        replace(result, output=None),
        replace(result, retry=RetryDisposition.MANUAL_REVIEW),
    ]


def _harmless(run: Run) -> list[dict[str, Any]]:
    """Give changes that neither status nor result is part of."""
    return [
        {},
        {"stage": "archived"},
        {"context": {"note": [1]}},
        {"recovery_count": run.recovery_count + 1},
        {"owner": "archivist", "failure_reason": "annotated"},
    ]


def _refuses_the_id(judge: Judge, handle: Handle, run: Run) -> None:
    """Insist that a used id is refused, and that the refusal leaves behind nothing that find would then give."""
    before = outcome_in_words(handle.call(Find(run.run_id)))
    fresh = replace(run, version=0, status=RunStatus.REQUESTED, result=None, failure_reason="")
    for rival in (fresh, replace(a_run(judge.case, stage="rival"), run_id=run.run_id)):
        judge.refused(judge.create(handle, rival), AlreadyExists, f"create on the id of a purged run, {run.run_id!r},")
    after = outcome_in_words(handle.call(Find(run.run_id)))
    if after != before:
        raise Violation(f"find({run.run_id!r}) to give {before}, as before the refused create", after)
