"""RUN-ALIAS: store and caller share nothing that can be changed, at any depth."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle, Step
from runcert.wording import outcome_in_words
from runcert_contract import (
    AlreadyExists,
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    InvalidRecord,
    Listing,
    Operation,
    Outcome,
    Result,
    ResultStatus,
    Returned,
    Run,
    RunStatus,
)
from runcert_suites.run_store.editing import EDITS, edit
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, path_to, updated


@clause("RUN-ALIAS-1")
class NothingIsSharedWithWhatIsPassedIn:
    """no mutable state is shared, at any depth, with what is passed in."""

    def test_create(self, case: Case) -> None:
        """Changing a run, at any depth, after it was created changes nothing that is stored."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            writer.edit(run, how, "argument 1")
            writer.find_everywhere(run.run_id)

    def test_compare_and_set(self, case: Case) -> None:
        """Changing either run of an update afterwards changes nothing that is stored."""
        writer = _Writer(case)
        for how in EDITS:
            run = writer.running()
            following = _ended(case, updated(run, **_nested_fields(case)))
            writer.accepted(CompareAndSet(run, following))
            writer.edit(run, how, "argument 1")
            writer.edit(following, how, "argument 2")
            writer.find_everywhere(run.run_id)


@clause("RUN-ALIAS-2")
class NothingIsSharedWithWhatIsHandedOut:
    """no mutable state is shared, at any depth, with what is handed out."""

    def test_what_create_returns(self, case: Case) -> None:
        """Changing the run that create returned changes nothing that is stored."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.edit(_returned_run(writer.create(run)), how)
            writer.find_everywhere(run.run_id)

    def test_what_find_returns(self, case: Case) -> None:
        """Changing the run that find returned changes nothing that is stored, be it new or updated."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            writer.edit(writer.find(run.run_id), how)
            writer.find_everywhere(run.run_id)
            following = _ended(case, updated(run, context={"new": True}))
            writer.accepted(CompareAndSet(run, following))
            writer.edit(writer.find(run.run_id), how)
            writer.find_everywhere(run.run_id)

    def test_what_find_resumable_returns(self, case: Case) -> None:
        """Changing a listing, or a run in it, changes neither the next listing nor the run."""
        if not case.claims.claims(Capability.ENUMERATES):
            return
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            listing = writer.listing(run.tenant_id)
            writer.edit(listing, how)
            writer.listing(run.tenant_id)
            writer.find_everywhere(run.run_id)


@clause("RUN-ALIAS-3")
class NothingIsSharedBetweenTwoReads:
    """no mutable state is shared, at any depth, between two reads."""

    def test_two_finds(self, case: Case) -> None:
        """Two finds give two runs: changing one leaves the other as it is."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            first, second = writer.find(run.run_id), writer.find(run.run_id)
            writer.edit(first, how)
            writer.judge_again(Find(run.run_id), second, "the run that an earlier find returned")

    def test_a_find_and_a_listing(self, case: Case) -> None:
        """A run that was found and the same run in a listing are two."""
        if not case.claims.claims(Capability.ENUMERATES):
            return
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            found = writer.find(run.run_id)
            first, second = writer.listing(run.tenant_id), writer.listing(run.tenant_id)
            writer.edit(first, how)
            writer.judge_again(Find(run.run_id), found, "the run that an earlier find returned")
            writer.judge_again(FindResumable(run.tenant_id), second, "the listing that was returned next")

    def test_what_create_returned_and_a_find(self, case: Case) -> None:
        """The run that create returned and the one that find returns are two."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            returned = _returned_run(writer.create(run))
            found = writer.find(run.run_id)
            writer.edit(returned, how)
            writer.judge_again(Find(run.run_id), found, "the run that find returned")


@clause("RUN-ALIAS-4")
class RejectedWritesLeaveNothing:
    """a rejected write leaves nothing behind."""

    def test_a_stale_update_of_nested_parts(self, case: Case) -> None:
        """What was edited in a run that find returned is not stored when the update with it is refused."""
        writer = _Writer(case)
        for how in EDITS:
            run = writer.running()
            stale = writer.find(run.run_id)
            current = updated(run, stage="newer")
            writer.accepted(CompareAndSet(run, current))
            for base in (stale, replace(writer.find(run.run_id), version=stale.version)):
                writer.edit(base, how)
                edited = updated(base, status=RunStatus.RUNNING, stage="edited", context={"edited": True})
                outcome = writer.call(CompareAndSet(base, edited))
                if outcome != Returned(False):
                    raise Violation("an update with a stale version to give False", outcome_in_words(outcome), "RUN-ALIAS-4")
                writer.find_everywhere(run.run_id)

    def test_a_create_on_an_id_in_use(self, case: Case) -> None:
        """Nothing of a run whose id was taken is stored, nor what was edited in it afterwards."""
        writer = _Writer(case)
        for how in EDITS:
            run = _nested_run(case)
            writer.create(run)
            rival = writer.find(run.run_id)
            writer.edit(rival, how)
            writer.refused(Create(replace(rival, stage="rival")), AlreadyExists)
            writer.find_everywhere(run.run_id)
            writer.edit(rival, how)
            writer.find_everywhere(run.run_id)

    def test_an_update_that_is_wrong_in_itself(self, case: Case) -> None:
        """Nothing of an update that skips a version, or holds what has no JSON form, is stored."""
        writer = _Writer(case)
        run = writer.running()
        found = writer.find(run.run_id)
        writer.edit(found, next(iter(EDITS)))
        writer.refused(CompareAndSet(run, updated(found, version=found.version + 2)), InvalidRecord)
        writer.find_everywhere(run.run_id)
        wrong: Any = {"nested": [{"deep": [1, {2}]}]}
        writer.refused(CompareAndSet(run, updated(run, input={"edited": True}, context=wrong)), InvalidRecord)
        writer.find_everywhere(run.run_id)


# -- runs with nested parts


def _nested_fields(case: Case) -> dict[str, Any]:
    fields = {
        "input": {"list": [1, [2, {"deep": [3]}]], "object": {"inner": {"innermost": ["a"]}}},
        "context": {"nested": [{"deep": ["b"]}]},
        "external_operation_metadata": {"handle": {"parts": [1, 2]}},
    }
    return {name: _cut_at_the_limit(case, value) for name, value in fields.items()}


def _cut_at_the_limit(case: Case, value: Any) -> Any:
    """Leave out what is nested deeper than the store declares to keep."""
    limit = case.claims.limits.depth
    return value if limit is None else _cut(value, limit)


def _cut(value: Any, depth: int) -> Any:
    if isinstance(value, list):
        return [_cut(item, depth - 1) for item in value] if depth else "too deep"
    if isinstance(value, dict):
        return {key: _cut(item, depth - 1) for key, item in value.items()} if depth else "too deep"
    return value


def _nested_run(case: Case) -> Run:
    return a_run(case, **_nested_fields(case))


def _ended(case: Case, run: Run) -> Run:
    """End a run with a nested result, by a move that is legal from everywhere."""
    output = _cut_at_the_limit(case, {"rows": [{"cells": [1, 2]}]})
    return replace(run, status=RunStatus.FAILED, result=Result(ResultStatus.FAILED, output=output))


# -- calls whose steps show what was passed then, not what became of it


class _Writer:
    """Makes the calls of one check, judges them, and keeps steps and judge apart from what is changed later."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._handle = case.open()
        self._reader = case.another(self._handle)
        self._judge = Judge(case)
        self._held: list[tuple[int, str, object]] = []

    def call(self, operation: Operation) -> Outcome:
        """Make a call on the first handle."""
        return self._call(self._handle, operation)

    def _call(self, handle: Handle, operation: Operation) -> Outcome:
        then = deepcopy(operation)
        outcome = handle.call(operation)
        copied = deepcopy(outcome) if isinstance(outcome, Returned) else outcome
        self._case.steps[-1] = Step(handle.name, then, copied)
        self._hold(operation, outcome)
        self._judge.judge(then, copied)
        return outcome

    def _hold(self, operation: Operation, outcome: Outcome) -> None:
        """Remember what the caller holds after a call, and from which step."""
        step = len(self._case.steps)
        self._held += [(step, f"argument {number}", value) for number, value in enumerate(operation.arguments, start=1)]
        if isinstance(outcome, Returned):
            self._held.append((step, "result", outcome.value))

    def edit(self, value: object, how: str, part: str = "result") -> None:
        """Edit in place what the caller holds; a copy of a run that was found has the same nested parts."""
        step = next(step for step, each, held in reversed(self._held) if each == part and _is_same(held, value))
        edit(self._case, value, how, step, part)

    def create(self, run: Run) -> Outcome:
        """Create a run, which has to succeed."""
        self._case.steps.clear()
        self._held.clear()
        return self.accepted(Create(run))

    def running(self) -> Run:
        """Give a run that is stored with the status RUNNING and nested parts."""
        run = _nested_run(self._case)
        self.create(run)
        for status in path_to(RunStatus.RUNNING):
            following = updated(run, status=status)
            self.accepted(CompareAndSet(deepcopy(run), deepcopy(following)))
            run = following
        return deepcopy(run)

    def accepted(self, operation: Operation) -> Outcome:
        """Make a call that has to succeed."""
        outcome = self.call(operation)
        self._judge.accepted(outcome, operation.method)
        return outcome

    def refused(self, operation: Operation, error: type[AlreadyExists | InvalidRecord]) -> None:
        """Make a call that has to be refused."""
        self._judge.refused(self.call(operation), error, operation.method)

    def find(self, run_id: str) -> Run:
        """Find a run that is there."""
        return _returned_run(self.call(Find(run_id)))

    def find_everywhere(self, run_id: str) -> None:
        """Find a run on the same handle, which may remember it, and on a fresh one, which may not."""
        for handle in (self._handle, self._reader):
            self._call(handle, Find(run_id))

    def listing(self, tenant_id: str) -> Listing:
        """List the runs of a tenant."""
        outcome = self.call(FindResumable(tenant_id))
        if not isinstance(outcome, Returned) or not isinstance(outcome.value, Listing):
            raise Violation("find_resumable to give a Listing", outcome_in_words(outcome))
        return outcome.value

    def judge_again(self, operation: Operation, value: object, what: str) -> None:
        """Judge a value that an earlier call returned, now that something else was changed."""
        try:
            self._judge.judge(operation, Returned(value))
        except Violation as violation:
            raise Violation(
                f"{what} to stay as it was when another answer was changed: {violation.expected}", violation.found
            ) from None


def _is_same(held: object, value: object) -> bool:
    if isinstance(held, Run) and isinstance(value, Run):
        return held.input is value.input
    return held is value


def _returned_run(outcome: Outcome) -> Run:
    if not isinstance(outcome, Returned) or not isinstance(outcome.value, Run):
        raise Violation("a Run", outcome_in_words(outcome))
    return outcome.value
