"""RUN-CAS: an update replaces exactly the version that it was based on, or nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert_contract import (
    LEGAL_MOVES,
    Capability,
    CompareAndSet,
    InvalidRecord,
    Result,
    ResultStatus,
    Returned,
    Run,
    RunStatus,
)
from runcert_suites.run_store.editing import EDITS, edit
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated


@clause("RUN-CAS-1")
class CompareAndSetByVersion:
    """True only if the stored run had expected's id and version; False only if it was absent or its version differed."""

    def test_the_truth_table(self, case: Case) -> None:
        """The stored version gives True; an older, a newer and an absent one give False; both are real booleans."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        absent = a_run(case)
        judge.compare_and_set(handle, absent, updated(absent, stage="absent"))
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        for number in range(4):
            future = replace(run, version=run.version + 1)
            judge.compare_and_set(other, future, updated(future, stage="of a version that is not there yet"))
            following = updated(run, stage=f"stage {number}")
            judge.accepted(judge.compare_and_set(handle, run, following), "an update of the stored version")
            judge.find(other, run.run_id)
            judge.compare_and_set(other, run, updated(run, stage="stale"))
            judge.find(handle, run.run_id)
            run = following

    def test_a_long_life(self, case: Case) -> None:
        """A run that is updated many times keeps taking updates, past the marks at which small numbers end."""
        handle = case.open()
        judge = Judge(case)
        updates = case.budget(140, 1_100, 40_000)
        with case.silent():
            run = _at_version(judge, handle, a_run(case), updates)
        judge.find(case.another(handle), run.run_id)
        case.evidence["updates of one run"] = updates

    def test_every_version_but_the_stored_one_is_refused(self, case: Case) -> None:
        """Of a run at version 5, updates of the versions 0 to 12 and of far larger ones give True for 5 alone."""
        handle = case.open()
        judge = Judge(case)
        run = _at_version(judge, handle, a_run(case), 5)
        versions = [v for v in (*range(13), 2**15 + 5, 2**16 + 5, 2**31 + 5, 2**32 + 5) if v != run.version]
        for version in versions:
            stale = replace(run, version=version)
            judge.compare_and_set(handle, stale, updated(stale, stage=f"of version {version}"))
            judge.find(handle, run.run_id)
        judge.accepted(judge.compare_and_set(handle, run, updated(run)), "the update of version 5")
        case.evidence["versions refused"] = len(versions)

    def test_one_run_does_not_stand_for_another(self, case: Case) -> None:
        """Versions belong to their run: an update of one run leaves every other where it is."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("t")
        runs = [a_run(case, tenant_id=tenant) for _ in range(3)]
        for run in runs:
            judge.create(handle, run)
        for run in runs:
            judge.accepted(
                judge.compare_and_set(handle, run, updated(run, stage=run.run_id)), "an update of the stored version"
            )
            for other in runs:
                judge.find(handle, other.run_id)

    def test_along_every_legal_move(self, case: Case) -> None:
        """Each legal step is answered True and stored, in whatever status the run is."""
        handle = case.open()
        judge = Judge(case)
        for status in RunStatus:
            run = judge.run_in(handle, status)
            judge.find(case.another(handle), run.run_id)

    def test_stale_in_every_status(self, case: Case) -> None:
        """In whatever status a run is, an update of another version gives False for each move, also for one who has its owner and its token."""
        handle = case.open()
        judge = Judge(case)
        refused = 0
        for status in RunStatus:
            case.steps.clear()  # a failure shows the life of its own run
            run = judge.run_in(handle, status, owner="worker-1", attempt_token=case.fresh_id("a"))
            for version in sorted({max(0, run.version - 1), run.version + 1} - {run.version}):
                stale = replace(run, version=version)
                for move in sorted(LEGAL_MOVES[status] | {status}, key=lambda move: move.value):
                    judge.compare_and_set(handle, stale, moved(stale, move))
                    refused += 1
            judge.find(handle, run.run_id)
        case.evidence["stale moves refused"] = refused


@clause("RUN-CAS-2")
class ARefusedUpdateChangesNothing:
    """a refused update changes nothing, nested parts included."""

    def test_a_stale_update_leaves_every_field(self, case: Case) -> None:
        """A stale update that differs in every moving field leaves the stored run as it is, on every handle."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        run = a_run(case, input={"a": {"b": [1, 2]}}, context={"c": [{}]})
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        newer = updated(run, external_operation_metadata={"d": {"e": 1}})
        judge.accepted(judge.compare_and_set(handle, run, newer), "the first update")
        for fields in _other_moving_fields(run):
            judge.compare_and_set(other, run, updated(run, **fields))
            judge.find(other, run.run_id)
            judge.find(handle, run.run_id)
        judge.accepted(judge.compare_and_set(other, newer, updated(newer)), "an update of the version that stayed")

    def test_a_stale_update_made_in_place(self, case: Case) -> None:
        """The run that was found is changed in place, at every depth; after the refusal nothing of that is stored."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case, input={"a": {"b": [1, {"c": 2}]}}, context={"list": [[1]]})
        judge.accepted(judge.create(handle, copy.deepcopy(run)), "create of a fresh id")
        first = CompareAndSet(run, updated(run, stage="newer"))
        outcome = handle.call(copy.deepcopy(first))  # the judge keeps a run of its own, whatever is done to the store's
        judge.judge(first, outcome)
        judge.accepted(outcome, "the first update")
        outcome = judge.find(handle, run.run_id)
        found = outcome.value if isinstance(outcome, Returned) else None
        if not isinstance(found, Run):
            raise Violation("find to give the stored run", f"{found!r}")
        edit(case, found, next(iter(EDITS)), len(case.steps), "result")
        stale = replace(found, version=0)
        judge.compare_and_set(handle, stale, replace(found, version=1))
        judge.find(handle, run.run_id)
        judge.find(case.another(handle), run.run_id)

    def test_an_invalid_update_leaves_every_field(self, case: Case) -> None:
        """An update that is refused as invalid leaves the stored run as it is as well."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case, input={"a": [1]})
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        wrong = updated(run, stage="invalid", input={"a": [float("nan")]})
        judge.refused(judge.compare_and_set(handle, run, wrong), InvalidRecord, "an update with NaN")
        judge.find(handle, run.run_id)
        judge.accepted(judge.compare_and_set(handle, run, updated(run)), "an update of the version that stayed")

    def test_a_refused_update_changes_no_listing(self, case: Case) -> None:
        """A stale update that would end or re-open the run leaves it where it was in the listing (where there is one)."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        newer = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, newer), "the first update")
        judge.compare_and_set(handle, run, moved(run, RunStatus.CANCELLED))
        _find_everywhere(judge, handle, run)
        judge.accepted(judge.compare_and_set(handle, newer, moved(newer, RunStatus.CANCELLED)), "the move to CANCELLED")
        judge.compare_and_set(handle, newer, updated(newer))
        _find_everywhere(judge, handle, run)


@clause("RUN-CAS-3")
class AnUpdateThatDoesNotFitItsExpectation:
    """a version that is not expected + 1, or ids that differ, raise InvalidRecord before storage is touched."""

    def test_wrong_versions(self, case: Case) -> None:
        """The version of an update is the expected one plus one, whether the run is there, absent, or at another version."""
        handle = case.open()
        judge = Judge(case)
        for name, expected in _present_stale_absent(case, judge, handle):
            for version in (expected.version, expected.version + 2, expected.version - 1, expected.version + 100, 0):
                if version == expected.version + 1:
                    continue
                wrong = updated(expected, version=version, stage="wrong version")
                what = f"an update of {name} from version {expected.version} to version {version}"
                judge.refuses(handle, CompareAndSet(expected, wrong), InvalidRecord, what)
                judge.find(handle, expected.run_id)

    def test_other_ids(self, case: Case) -> None:
        """An update under another run id is refused, and neither of the two runs changes or appears."""
        handle = case.open()
        judge = Judge(case)
        neighbour = a_run(case)
        judge.accepted(judge.create(handle, neighbour), "create of a fresh id")
        for name, expected in _present_stale_absent(case, judge, handle):
            for run_id in (neighbour.run_id, case.fresh_id()):
                wrong = updated(expected, run_id=run_id, stage="wrong id")
                what = f"an update of {name}, {expected.run_id!r}, under the other id {run_id!r}"
                judge.refuses(handle, CompareAndSet(expected, wrong), InvalidRecord, what)
                judge.find(handle, run_id)
                judge.find(handle, expected.run_id)


@clause("RUN-CAS-4")
class AnUpdateOfAMissingRun:
    """for a missing run: False, and nothing is inserted."""

    def test_nothing_is_inserted(self, case: Case) -> None:
        """After the refusal the run is still absent, unlisted, and its id is free."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        for version in (0, 1, 7):
            run = a_run(case)
            missing = replace(run, version=version)
            for _ in range(2):
                judge.compare_and_set(handle, missing, updated(missing, stage="of a missing run"))
                judge.find(handle, run.run_id)
                _find_everywhere(judge, other, run)
            judge.accepted(judge.create(other, run), "create of an id that an update had missed")
            judge.find(handle, run.run_id)

    def test_the_end_of_a_missing_run(self, case: Case) -> None:
        """A move to a terminal status inserts nothing either."""
        handle = case.open()
        judge = Judge(case)
        for status in (RunStatus.CANCELLED, RunStatus.FAILED):
            run = a_run(case)
            judge.compare_and_set(handle, run, moved(run, status))
            judge.find(handle, run.run_id)
            judge.accepted(judge.create(handle, run), "create of an id that an update had missed")


@clause("RUN-CAS-5")
class AnUpdateThatChangesNothingElse:
    """an update equal to what is stored (but for the version) succeeds and advances the version."""

    def test_it_advances_the_version(self, case: Case) -> None:
        """The same payload again and again is accepted, each time as the next version."""
        handle = case.open()
        judge = Judge(case)
        for status in (RunStatus.REQUESTED, RunStatus.RUNNING, RunStatus.WAITING_EXTERNAL):
            run = judge.run_in(handle, status, input={"a": [1, None]}, stage="the same")
            for _ in range(3):
                following = replace(run, version=run.version + 1)
                judge.accepted(judge.compare_and_set(handle, run, following), "an update that changes nothing but the version")
                judge.find(case.another(handle), run.run_id)
                run = following

    def test_it_still_conflicts(self, case: Case) -> None:
        """Such an update makes every older version stale, like any other."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        same = replace(run, version=1)
        judge.accepted(judge.compare_and_set(handle, run, same), "an update that changes nothing but the version")
        judge.compare_and_set(handle, run, same)
        judge.compare_and_set(case.another(handle), run, updated(run, stage="stale"))
        judge.find(handle, run.run_id)


@clause("RUN-CAS-8")
class ARefusedUpdateStaysRefused:
    """the store never rebases: it never re-reads to make a refused update fit."""

    def test_it_is_refused_however_often_it_comes(self, case: Case) -> None:
        """The same stale update is refused each time, on every handle, also after a read of the newest version."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        run = judge.run_in(handle, RunStatus.RUNNING)
        stale = updated(run, stage="step started")
        newer = updated(run, stage="somebody was faster")
        judge.accepted(judge.compare_and_set(other, run, newer), "the first update")
        for _ in range(5):
            judge.compare_and_set(handle, run, stale)
            judge.find(handle, run.run_id)
            judge.compare_and_set(other, run, stale)

    def test_work_of_a_run_that_has_ended_is_not_started_again(self, case: Case) -> None:
        """A step based on a running run is refused once the run has ended, and the run stays ended."""
        handle = case.open()
        other = case.another(handle)
        judge = Judge(case)
        for status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.RUNTIME_FAILED):
            run = judge.run_in(handle, RunStatus.RUNNING)
            judge.accepted(judge.compare_and_set(other, run, moved(run, status)), f"the move to {status.value}")
            for _ in range(3):
                judge.compare_and_set(handle, run, updated(run, stage="step started"))
                judge.find(handle, run.run_id)

    def test_it_does_not_take_effect_later(self, case: Case) -> None:
        """A refused update is not applied by a later, accepted one either."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        newer = updated(run, stage="first")
        judge.accepted(judge.compare_and_set(handle, run, newer), "the first update")
        judge.compare_and_set(handle, run, updated(run, input={"refused": True}))
        for number in range(3):
            following = updated(newer, stage=f"later {number}")
            judge.accepted(judge.compare_and_set(handle, newer, following), "an update of the stored version")
            judge.find(handle, run.run_id)
            newer = following


@clause("RUN-CAS-9", isolated=True)
class TheConflictCheckUsesNoClock:
    """the conflict check uses no clock: writes within one tick, and with clocks turned back, still conflict."""

    def test_writes_within_one_tick(self, case: Case) -> None:
        """Two updates of one version with one and the same updated_at: the second conflicts."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        for _ in range(3):
            following = replace(run, version=run.version + 1, stage="first of this tick")
            judge.accepted(judge.compare_and_set(handle, run, following), "an update with the same updated_at")
            judge.compare_and_set(case.another(handle), run, replace(following, stage="second of this tick"))
            judge.find(handle, run.run_id)
            run = following

    def test_updated_at_that_goes_back_or_far_ahead(self, case: Case) -> None:
        """updated_at decides nothing: an earlier one is accepted, and a later one does not make a stale update fit."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        for days in (-1, -365, 2, -2, 365):
            following = updated(run, updated_at=run.updated_at + timedelta(days=days))
            judge.accepted(judge.compare_and_set(handle, run, following), f"an update with updated_at {days} days off")
            later = run.updated_at + timedelta(days=3650)
            judge.compare_and_set(handle, run, updated(run, updated_at=later, stage="stale, but later"))
            judge.find(handle, run.run_id)
            run = following

    def test_clocks_that_are_turned(self, case: Case) -> None:
        """With the clock of the lab turned back or forward, fresh updates are accepted and stale ones conflict."""
        handle = case.open()
        judge = Judge(case)
        for seconds in (-3600.0, 3600.0, -86400.0, 86400.0):
            run = a_run(case)
            judge.create(handle, run)
            with _turned(case, seconds):
                following = updated(run, stage="after the clock was turned")
                judge.accepted(judge.compare_and_set(handle, run, following), f"an update after the clock went {seconds:+g} s")
                judge.compare_and_set(case.another(handle), run, updated(run, stage="stale"))
                judge.find(handle, run.run_id)
            judge.compare_and_set(handle, run, updated(run, stage="stale, and the clock is right again"))
            judge.accepted(judge.compare_and_set(handle, following, updated(following)), "an update with the clock right again")
            judge.find(handle, run.run_id)


@clause("RUN-CAS-10")
class OnlyTheVersionIsCompared:
    """of the moving fields of `expected` only the version is compared."""

    def test_other_moving_fields_of_expected_do_not_matter(self, case: Case) -> None:
        """An expectation with the right version is met, whatever its other moving fields say, one by one and all at once."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case, stage="as stored", owner="worker-1", input={"a": 1})
        judge.create(handle, run)
        for fields in _other_moving_fields(run):
            expected = replace(run, **fields)
            following = updated(run, stage=f"after {', '.join(fields)}"[:60])
            outcome = judge.compare_and_set(handle, expected, following)
            judge.accepted(outcome, f"an update whose expectation differs from the stored run in {', '.join(fields)} only")
            judge.find(case.another(handle), run.run_id)
            run = following

    def test_matching_fields_do_not_help(self, case: Case) -> None:
        """An expectation that equals the stored run in everything but the version is not met."""
        handle = case.open()
        judge = Judge(case)
        run = _at_version(judge, handle, a_run(case, stage="as stored"), 3)
        for version in (0, 2, 4):
            expected = replace(run, version=version)
            judge.compare_and_set(handle, expected, updated(expected, stage="stale"))
            judge.find(handle, run.run_id)


def _at_version(judge: Judge, handle: Handle, run: Run, version: int) -> Run:
    judge.accepted(judge.create(handle, run), "create of a fresh id")
    while run.version < version:
        following = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, following), "an update of the stored version")
        run = following
    return run


def _present_stale_absent(case: Case, judge: Judge, handle: Handle) -> list[tuple[str, Run]]:
    """Give expectations that are met, stale, and of a run that is not there."""
    present = _at_version(judge, handle, a_run(case), 2)
    stale = replace(_at_version(judge, handle, a_run(case), 3), version=1)
    return [("a stored run", present), ("a run that has moved on", stale), ("an absent run", replace(a_run(case), version=2))]


def _other_moving_fields(run: Run) -> list[dict[str, Any]]:
    """Give changes of moving fields but version and status: each alone, then all together."""
    fields: dict[str, Any] = {
        "stage": "another stage",
        "owner": "another-owner",
        "recovery_count": run.recovery_count + 3,
        "approval_id": "another-approval",
        "due_at": run.created_at + timedelta(days=9),
        "attempt_token": "another-token",
        "external_operation_id": "another-operation",
        "external_operation_metadata": {"other": {"nested": [1]}},
        "input": {"other": [{"deep": None}]},
        "context": {"other": "context"},
        "result": Result(ResultStatus.ACCEPTED, code="other", output={"nested": [1]}),
        "failure_reason": "another reason",
        "updated_at": run.updated_at - timedelta(days=1),
    }
    return [{name: value} for name, value in fields.items()] + [fields]


def _find_everywhere(judge: Judge, handle: Handle, run: Run) -> None:
    judge.find(handle, run.run_id)
    if judge.case.claims.claims(Capability.ENUMERATES):
        judge.find_resumable(handle, run.tenant_id)


@contextmanager
def _turned(case: Case, seconds: float) -> Iterator[None]:
    """Turn the clock of the lab for the length of the body."""
    clock = case.namespace().lab.clock
    clock.turn(seconds)
    try:
        yield
    finally:
        clock.turn(-seconds)
