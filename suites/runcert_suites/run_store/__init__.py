"""The suite of the RunStore contract.

One module per topic; a class names its clauses, each method is one consequence of them.  Beside the checks there are the
public parts with which others write their own: :mod:`.records` (runs to start from), :mod:`.generators` (Hypothesis
strategies), :mod:`.judging` (the model as a judge), :mod:`.state_machine` (the Hypothesis state machine).
"""

from __future__ import annotations

from collections.abc import Iterator

from runcert.cases import Case
from runcert.differing import Answer
from runcert.problems import AdapterProblem
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Hung,
    Operation,
    Raised,
    Returned,
    Run,
    RunStoreModel,
    StoreError,
)
from runcert_suites.run_store.programs import comparable, program
from runcert_suites.run_store.records import a_run, updated

__all__ = ["answers", "refused", "smoke"]


def smoke(case: Case) -> None:
    """Call each operation once and judge the wiring only: an answer or a typed error, nothing else.

    Raises:
        AdapterProblem: an operation is missing, hangs, or raises something that is no error of the contract.
    """
    handle = case.open()
    run = a_run(case)
    operations: list[Operation] = [Find(run.run_id), Create(run), CompareAndSet(run, updated(run))]
    if case.claims.claims(Capability.ENUMERATES):
        operations.append(FindResumable(run.tenant_id))
    for operation in operations:
        if not callable(getattr(handle.store, operation.method, None)):
            raise AdapterProblem(
                f"it yielded {type(handle.store).__name__}, which has no method {operation.method}; yield the open store itself"
            )
        outcome = handle.call(operation)
        typed = isinstance(outcome, Raised) and isinstance(outcome.error, StoreError)
        if isinstance(outcome, Hung) or not (typed or isinstance(outcome, Returned)):
            raise AdapterProblem(
                f"{operation_in_words(operation)} gave {outcome_in_words(outcome)}; "
                "expected an answer or an error of the contract (translate yours with @adapter(errors={...}))"
            )
        if isinstance(outcome, Returned) and hasattr(outcome.value, "__await__"):
            raise AdapterProblem(
                f"{operation.method} returns an awaitable; write the adapter as `async def` and claim AsyncRunStore"
            )


def answers(case: Case, length: int, *, lists: bool) -> Iterator[Answer]:
    """Give what this store answers to the one program of calls that every store is given with the same seed.

    Args:
        case: the store; its seed decides the program.
        length: how many calls.
        lists: True to list runs, too.
    """
    handle = case.open()
    model = RunStoreModel(case.claims)
    states = model.initial
    for operation in program(case, length, lists=lists):
        outcome = handle.call(operation)
        following = frozenset(after for state in states for after in model.step(state, operation, outcome))
        permitted = bool(following) if states else None  # after what is not permitted nobody knows what is stored
        states = following
        yield Answer(
            operation_in_words(operation), comparable(outcome, case.claims.numbers), outcome_in_words(outcome), permitted
        )


def refused(case: Case) -> str | None:
    """Give the sentence that refuses a store that keeps nothing; None for any other."""
    handle = case.open()
    runs = [a_run(case) for _ in range(3)]
    for run in runs:
        created, found = handle.call(Create(run)), handle.call(Find(run.run_id))
        if not (isinstance(created, Returned) and isinstance(created.value, Run) and found == Returned(None)):
            return None
    found = handle.call(Find(runs[-1].run_id))  # asked once more: what is there a moment later was kept
    if found != Returned(None):
        return None
    return "a store that keeps nothing (no-op) is refused for everything but synchronous demonstrations"
