"""RUN-CANCEL: a cancelled call of an asynchronous store is indefinite, and costs the handle nothing."""

from __future__ import annotations

from collections.abc import Callable

from runcert.cancellation import Cancelled, Moment, call_cancelled
from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import Capability, CompareAndSet, Create, Find, FindResumable, Hung, Operation, Raised, Returned, Unknown
from runcert_contract.operations import is_retryable
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated

_MOST_SUSPENSIONS = 40
"""At most so many suspensions of one call are tried, each in turn."""


@clause("RUN-CANCEL-1")
class CancelledCalls:
    """A call cancelled or timed out at any await is indefinite; the handle stays usable, and nothing stays held."""

    def test_create(self, case: Case) -> None:
        """create, cancelled at each place where it gives up the event loop."""
        _cancel_everywhere(case, lambda judge, _: Create(a_run(judge.case)))

    def test_find(self, case: Case) -> None:
        """Find of a stored run, cancelled at each place; a later find of another run gets its own answer."""
        _cancel_everywhere(case, lambda judge, handle: Find(_stored(judge, handle).expected.run_id))

    def test_compare_and_set(self, case: Case) -> None:
        """compare_and_set, cancelled at each place."""
        _cancel_everywhere(case, _stored)

    def test_find_resumable(self, case: Case) -> None:
        """find_resumable, where it is claimed, cancelled at each place."""
        if case.claims.claims(Capability.ENUMERATES):
            _cancel_everywhere(case, lambda judge, handle: FindResumable(_stored(judge, handle).expected.tenant_id))
        else:
            case.evidence["find_resumable"] = "not claimed"

    def test_many_in_a_row(self, case: Case) -> None:
        """Many cancelled calls in a row leave no lock, lease or pool slot held."""
        handle = case.open()
        operations = (lambda: Create(a_run(case)), lambda: Find(a_run(case).run_id))
        places = [max(1, _cancel(case, handle, make(), 0, Moment.WAITING).suspensions) for make in operations]
        landed = 0
        for attempt in range(case.budget(42, 210, 1050)):
            kind = attempt % 2
            moment = list(Moment)[attempt % len(Moment)]
            at = 1 if moment is Moment.TIMEOUT else 1 + attempt // 6 % places[kind]
            landed += _cancel(case, handle, operations[kind](), at, moment).landed
        case.evidence["cancelled in a row"] = landed
        for user in (handle, case.another(handle)):
            _insist_on_usable(case, user, f"{landed} cancelled calls on one handle")


def _stored(judge: Judge, handle: Handle) -> CompareAndSet:
    """Store a run, and give the update that would follow."""
    run = a_run(judge.case)
    judge.accepted(judge.create(handle, run), "create of a fresh id")
    return CompareAndSet(run, updated(run, stage="by the cancelled call"))


def _cancel_everywhere(case: Case, make: Callable[[Judge, Handle], Operation]) -> None:
    handle = case.open()
    other = case.another(handle)
    cancelled, suspensions = 0, 0
    for moment in Moment:
        for at in range(1, _MOST_SUSPENSIONS + 1):
            judge = Judge(case)
            operation = make(judge, handle)
            trial = _cancel(case, handle, operation, at, moment)
            suspensions = max(suspensions, trial.suspensions)
            cancelled += trial.landed
            judge.judge(operation, trial.outcome)
            what = f"{operation_in_words(operation)} was cancelled {moment.value}, at its suspension {at}"
            _insist_on_usable(case, handle, what)
            _insist_on_usable(case, other, what)
            _look_again(judge, handle, operation)
            if not trial.landed or moment is Moment.TIMEOUT:
                break
    case.evidence["suspensions of the call"] = suspensions
    case.evidence["cancelled"] = cancelled


def _cancel(case: Case, handle: Handle, operation: Operation, at: int, moment: Moment) -> Cancelled:
    trial = call_cancelled(handle, operation, at, moment, case.steps.append)
    if isinstance(trial.outcome, Hung):
        raise Violation(
            f"{operation_in_words(operation)} to end when it is cancelled {moment.value}, at its suspension {at}",
            outcome_in_words(trial.outcome),
        )
    if trial.landed and isinstance(trial.outcome, Raised):
        # Whatever a store makes of its own cancellation, the caller knows nothing of the call.
        return Cancelled(Unknown(f"cancelled, and {outcome_in_words(trial.outcome)}"), True, trial.suspensions)
    return trial


def _insist_on_usable(case: Case, handle: Handle, what: str) -> None:
    """Create, find and update two runs; each call has to end in time and to get its own answer."""
    first, second = a_run(case, stage="first"), a_run(case, stage="second")
    judge = Judge(case)
    for operation in (
        Create(first),
        Create(second),
        Find(first.run_id),
        Find(second.run_id),
        CompareAndSet(first, updated(first)),
        CompareAndSet(second, updated(second)),
        Find(first.run_id),
    ):
        outcome = handle.call(operation)
        stuck = isinstance(outcome, Hung) or is_retryable(outcome)
        permitted = judge.permitted(operation)
        if stuck or not _is_own_answer(judge, operation, outcome):
            raise Violation(
                f"{operation_in_words(operation)} on {handle.name} to give {permitted}, after {what}",
                outcome_in_words(outcome),
            )


def _is_own_answer(judge: Judge, operation: Operation, outcome: object) -> bool:
    if not isinstance(outcome, (Returned, Raised)):
        return False
    try:
        judge.judge(operation, outcome)
    except Violation:
        return False
    return True


def _look_again(judge: Judge, handle: Handle, operation: Operation) -> None:
    """Find the run of the cancelled call: it is as before or as written, whole."""
    if isinstance(operation, Create):
        judge.find(handle, operation.run.run_id)
    elif isinstance(operation, CompareAndSet):
        judge.find(handle, operation.expected.run_id)
    elif isinstance(operation, Find):
        judge.find(handle, operation.run_id)
