"""RUN-USABLE: after a refusal the same handle works, and sees what refused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import AlreadyExists, Capability, Find, FindResumable, Listing, Outcome, Returned, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated
from runcert_suites.run_store.refusals import Refusal, refusals_of

__all__ = ["works"]


@clause("RUN-USABLE-1")
class HandlesWorkAfterARefusal:
    """after any typed error the same handle works once the backend does."""

    def test_after_each_refusal(self, case: Case) -> None:
        """After each refusal the same handle finds, creates, updates and lists as if nothing had happened."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        stored = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, stored), "an update")
        number = 0
        for refusal in refusals_of(case, stored):
            case.steps.clear()
            _provoke(judge, handle, refusal)
            works(case, handle, refusal.what)
            judge.find(handle, stored.run_id)
            number += 1
        case.evidence["refusals"] = number

    def test_after_many_refusals_in_a_row(self, case: Case) -> None:
        """Refusals add up to nothing: no connection, lock or transaction is left behind by each."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        stored = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, stored), "an update")
        for refusal in list(refusals_of(case, stored)) * case.budget(2, 5, 20):
            _provoke(judge, handle, refusal)
        case.steps.clear()
        works(case, handle, "many refusals")
        judge.find(handle, stored.run_id)


@clause("RUN-USABLE-1", isolated=True)
class HandlesWorkAfterADamagedRecord:
    """after any typed error the same handle works once the backend does."""

    def test_after_each_kind_of_damage(self, case: Case) -> None:
        """A handle that met a record which cannot be read works on with every other record."""
        if not case.has_hook("damage"):
            case.evidence["damaged records"] = 0
            return
        handle = case.open()
        unreadable: list[str] = []
        for how in ("undecodable", "cut", "empty"):
            damaged = a_run(case)
            unreadable.append(damaged.run_id)
            Judge(case).create(handle, damaged)
            case.hook("damage", case.adapter.contract, damaged.run_id, how)
            handle.call(Find(damaged.run_id))  # what it answers is the affair of RUN-CORRUPT-1
            works(case, handle, f"find of a record that is {how}", tuple(unreadable))


@clause("RUN-USABLE-2")
class TheWinnerIsSeen:
    """a find right after a refusal sees the winner."""

    def test_after_already_exists(self, case: Case) -> None:
        """Whoever is told that the id is taken finds the run that took it, although it read before and saw nothing."""
        loser = case.open()
        winner = case.another(loser)
        judge = Judge(case)
        for _ in range(3):
            run = a_run(case, input={"by": "winner"})
            judge.find(loser, run.run_id)
            judge.accepted(judge.create(winner, run), "create of a fresh id")
            rival = a_run(case, run_id=run.run_id, input={"by": "loser"})
            judge.refused(judge.create(loser, rival), AlreadyExists, "create of an id that another handle took")
            judge.find(loser, run.run_id)

    def test_after_a_refused_update(self, case: Case) -> None:
        """Whoever is told False finds the version that won, although it read the older one before."""
        loser = case.open()
        winner = case.another(loser)
        judge = Judge(case)
        for status in (RunStatus.VALIDATING, RunStatus.CANCELLED):
            run = a_run(case)
            judge.accepted(judge.create(loser, run), "create of a fresh id")
            judge.find(loser, run.run_id)
            judge.accepted(judge.compare_and_set(winner, run, moved(run, status)), f"the move to {status.value}")
            refused = judge.compare_and_set(loser, run, updated(run, stage="late"))
            if refused != Returned(False):
                raise Violation("an update with a stale version to give False", outcome_in_words(refused))
            judge.find(loser, run.run_id)


def _provoke(judge: Judge, handle: Handle, refusal: Refusal) -> None:
    outcome = judge.call(handle, refusal.operation)
    if not refusal.happened(outcome):
        raise Violation(f"{refusal.what} to give {refusal.in_words}", outcome_in_words(outcome))


def works(case: Case, handle: Handle, after: str, unreadable: Sequence[str] = ()) -> None:
    """Use every method of the handle once, on records of its own.

    Args:
        case: the check.
        handle: the handle.
        after: what happened before, for the message.
        unreadable: ids that a listing may name as corrupt.

    Raises:
        Violation: a call did not have the answer that it has on a fresh handle.
    """
    try:
        _use(case, handle, unreadable)
    except Violation as violation:
        raise Violation(f"after {after}, {violation.expected}", violation.found, violation.clause) from None


def _use(case: Case, handle: Handle, unreadable: Sequence[str]) -> None:
    judge = Judge(case)
    run = a_run(case)
    judge.accepted(judge.create(handle, run), "create")
    judge.find(handle, run.run_id)
    judge.accepted(judge.compare_and_set(handle, run, updated(run, stage="goes on")), "an update")
    judge.find(handle, run.run_id)
    if case.claims.claims(Capability.ENUMERATES):
        operation = FindResumable(run.tenant_id)
        judge.judge(operation, _without(unreadable, handle.call(operation)))


def _without(unreadable: Sequence[str], outcome: Outcome) -> Outcome:
    """Leave out of a listing what it has to name for every tenant where it cannot tell whose record that is (LIST-4)."""
    if not isinstance(outcome, Returned) or not isinstance(outcome.value, Listing) or not unreadable:
        return outcome
    listing = outcome.value
    return Returned(replace(listing, corrupt=[name for name in listing.corrupt if name not in unreadable]))
