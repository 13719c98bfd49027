"""RUN-BOUND: every call ends within the wait that the store declares; under contention, `contending` looks at it."""

from __future__ import annotations

import time

from runcert.burst_programs import OVERTIME
from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import Capability, CompareAndSet, Create, Find, FindResumable, Hung, Operation
from runcert_suites.run_store.records import a_run, updated


@clause("RUN-BOUND-1")
class EveryCallEnds:
    """Every call ends within the declared wait with a live backend; a hang is a fail."""

    def test_one_caller(self, case: Case) -> None:
        """Each operation, accepted and refused, on two handles, ends in time."""
        handle = case.open()
        slowest = 0.0
        for caller in (handle, case.another(handle)):
            run = a_run(case)
            operations: list[Operation] = [
                Find(run.run_id),
                Create(run),
                Create(run),
                Find(run.run_id),
                CompareAndSet(run, updated(run)),
                CompareAndSet(run, updated(run)),
            ]
            if case.claims.claims(Capability.ENUMERATES):
                operations.append(FindResumable(run.tenant_id))
            slowest = max(slowest, *(_timed(case, caller, operation) for operation in operations))
        case.evidence["slowest call alone, ms"] = round(slowest * 1000, 1)


def _timed(case: Case, handle: Handle, operation: Operation) -> float:
    started = time.monotonic()
    outcome = handle.call(operation)
    seconds = time.monotonic() - started
    bound = case.claims.limits.maximum_wait.total_seconds()
    if isinstance(outcome, Hung) or seconds > bound + OVERTIME:
        raise Violation(
            f"{operation_in_words(operation)} to end within {bound:g} s", f"{outcome_in_words(outcome)}, after {seconds:.1f} s"
        )
    return seconds
