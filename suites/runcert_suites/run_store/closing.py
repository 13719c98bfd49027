"""RUN-CLOSED: a closed handle does nothing any more."""

from __future__ import annotations

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import (
    Capability,
    Closed,
    CompareAndSet,
    Create,
    Fault,
    Find,
    FindResumable,
    Kept,
    Operation,
    Raised,
    Run,
    Scope,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated


@clause("RUN-CLOSED-1", isolated=True)
class ClosedHandles:
    """a closed handle raises Closed and does nothing else."""

    def test_every_method_raises_closed(self, case: Case) -> None:
        """After its handle was closed each method raises Closed, and others see that nothing was done."""
        handle = case.open()
        witness = case.another(handle)
        judge = Judge(case)
        run, fresh = a_run(case), a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        judge.find(handle, run.run_id)
        handle.close()
        for operation in _operations(case, run, fresh):
            _raises_closed(handle, operation)
        if case.claims.scope is Scope.HANDLE:
            if not isinstance(case.claims.promise(Fault.CLOSE), Kept):
                return
            witness = judge.reopen()
        for run_id in (run.run_id, fresh.run_id):
            judge.find(witness, run_id)
        judge.accepted(judge.compare_and_set(witness, run, updated(run)), "an update by a handle that is open")

    def test_closing_one_handle_leaves_the_others_open(self, case: Case) -> None:
        """A handle that was opened beside a closed one works on."""
        first = case.open()
        second = case.open() if case.claims.scope is not Scope.HANDLE else first
        if second is first:
            return
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(first, run), "create of a fresh id")
        first.close()
        judge.find(second, run.run_id)
        judge.accepted(judge.create(second, a_run(case)), "create by a handle beside a closed one")
        judge.find(case.open(), run.run_id)


def _operations(case: Case, run: Run, fresh: Run) -> list[Operation]:
    operations: list[Operation] = [
        Find(run.run_id),
        Find(fresh.run_id),
        Create(fresh),
        Create(run),
        CompareAndSet(run, updated(run)),
        CompareAndSet(fresh, updated(fresh)),
        CompareAndSet(updated(run), updated(updated(run))),
    ]
    if case.claims.claims(Capability.ENUMERATES):
        operations.append(FindResumable(run.tenant_id))
    return operations


def _raises_closed(handle: Handle, operation: Operation) -> None:
    outcome = handle.call(operation)
    if not isinstance(outcome, Raised) or not isinstance(outcome.error, Closed):
        raise Violation(f"{operation.method} on a closed handle to raise Closed", outcome_in_words(outcome))
