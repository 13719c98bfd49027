"""RUN-RESIDUE: what was refused leaves nothing behind."""

from __future__ import annotations

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.problems import AdapterProblem
from runcert.wording import outcome_in_words
from runcert_contract import Capability, CompareAndSet, Create, Fault, Find, FindResumable, Kept, Operation, Returned
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated
from runcert_suites.run_store.refusals import refusals_of


@clause("RUN-RESIDUE-1", isolated=True)
class NothingIsLeftBehind:
    """refused and failed operations leave no rows, files, markers, locks."""

    def test_refusals(self, case: Case) -> None:
        """What is stored is counted before and after each refusal, and the counts are the same."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        empty = case.inventory()
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        if isinstance(case.claims.promise(Fault.CLOSE), Kept):
            handle = judge.reopen()  # what may wait in memory is written by now
        _counts(empty, case.inventory())
        stored = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, stored), "an update")
        before = case.inventory()
        number = 0
        for refusal in refusals_of(case, stored):
            case.steps.clear()
            outcome = judge.call(handle, refusal.operation)
            if not refusal.happened(outcome):
                raise Violation(f"{refusal.what} to give {refusal.in_words}", outcome_in_words(outcome))
            _unchanged(case, before, refusal.what)
            number += 1
        case.evidence["refusals"] = number
        case.evidence["inventory"] = dict(before)

    def test_looking_for_what_is_not_there(self, case: Case) -> None:
        """A find of an unknown id and a listing of an unknown tenant store nothing."""
        handle = case.open()
        judge = Judge(case)
        judge.accepted(judge.create(handle, a_run(case)), "create of a fresh id")
        before = case.inventory()
        for _ in range(3):
            judge.find(handle, case.fresh_id())
            _unchanged(case, before, "find of an unknown id")
            if case.claims.claims(Capability.ENUMERATES):
                judge.find_resumable(handle, case.fresh_id("t"))
                _unchanged(case, before, "find_resumable of an unknown tenant")

    def test_failures_on_a_damaged_record(self, case: Case) -> None:
        """Operations that fail because a record cannot be read leave nothing beside it."""
        if not case.has_hook("damage"):
            case.evidence["damaged records"] = 0
            return
        handle = case.open()
        run = a_run(case)
        Judge(case).accepted(handle.call(Create(run)), "create of a fresh id")
        case.hook("damage", case.adapter.contract, run.run_id, "undecodable")
        before = case.inventory()
        operations: list[Operation] = [Find(run.run_id), Create(run), CompareAndSet(run, updated(run, version=1))]
        if case.claims.claims(Capability.ENUMERATES):
            operations.append(FindResumable(run.tenant_id))
        for operation in operations:
            if handle.call(operation) == Returned(True):
                before = case.inventory()  # it was written anew by its version, which is permitted
            _unchanged(case, before, f"{operation.method} on a damaged record")


def _counts(empty: dict[str, int], after_a_create: dict[str, int]) -> None:
    """Insist that the hook counts: one that always gives the same would let everything pass."""
    if after_a_create == empty:
        raise AdapterProblem(
            f"the hook inventory gave {empty or 'nothing'} before a run was created and the same afterwards; "
            "let it count everything that is stored in the lab's namespace"
        )


def _unchanged(case: Case, before: dict[str, int], what: str) -> None:
    after = case.inventory()
    if after != before:
        kinds = sorted(kind for kind in {*before, *after} if before.get(kind) != after.get(kind))
        raise Violation(
            f"{what} to leave what is stored as it was: {', '.join(f'{before.get(kind, 0)} {kind}' for kind in kinds)}",
            ", ".join(f"{after.get(kind, 0)} {kind}" for kind in kinds),
        )
