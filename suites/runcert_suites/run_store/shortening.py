"""Making a failing sequence of calls shorter: leave calls out as long as the same clause is still broken.

Hypothesis shrinks what it drew; this works on the calls themselves, each try in a namespace of its own, and ends after a fixed
number of tries, so that the same seed gives the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runcert.cases import Case, Namespace
from runcert.checks import Violation
from runcert.handles import Handle, Step
from runcert_contract import AllClosed, Claims, Namespaces, Operation, Outcome, State
from runcert_suites.run_store.judging import Judge

__all__ = ["Naming", "shortened"]

_MOST_TRIES = 150

Naming = Callable[[Operation, frozenset[State], Outcome, Claims], str]
"""Gives the clause that an outcome breaks, from the states before it."""


def shortened(case: Case, steps: Sequence[Step], violation: Violation, naming: Naming) -> tuple[Violation, list[Step]]:
    """Give the violation of the shortest part of ``steps`` that was found to break the same clause, and that part.

    Args:
        case: the check; namespaces are made and removed for the tries.
        steps: the calls that led to the violation.
        violation: what they ended in.
        naming: names the clause that a call breaks.

    Returns:
        The violation and the steps of the last try that failed in the same way; those that were given where none did.
    """
    best: tuple[Violation, list[Step]] = (violation, list(steps))
    if case.claims.namespaces is Namespaces.SHARED:
        return best
    tries = 0
    length = len(steps) // 2
    while length >= 1:
        start = 0
        while start < len(best[1]) - 1 and tries < _MOST_TRIES:
            tries += 1
            found = _violation_of(case, best[1][:start] + best[1][start + length :], violation.clause, naming)
            if found is None:
                start += length
            else:
                best = found
        length //= 2
    return best


def _violation_of(case: Case, steps: Sequence[Step], clause: str | None, naming: Naming) -> tuple[Violation, list[Step]] | None:
    """Make the calls of ``steps`` again, in a fresh namespace; None when they break nothing, or another clause."""
    namespace = case.another_namespace()
    kept = list(case.steps)
    case.steps.clear()
    try:
        violation = _repeated(case, namespace, steps, naming)
        return None if violation is None or violation.clause != clause else (violation, list(case.steps))
    finally:
        case.steps[:] = kept
        case.dispose(namespace)


def _repeated(case: Case, namespace: Namespace, steps: Sequence[Step], naming: Naming) -> Violation | None:
    judge = Judge(case)
    handles: dict[str, Handle] = {}
    for step in steps:
        if isinstance(step.operation, AllClosed):
            handles.clear()
            judge.reopen(namespace)
            continue
        if step.handle not in handles:
            handles[step.handle] = case.open(namespace)
        before = judge.states
        outcome = handles[step.handle].call(step.operation)
        try:
            judge.judge(step.operation, outcome)
        except Violation as found:
            broken = found.clause or naming(step.operation, before, outcome, case.claims)
            return Violation(found.expected, found.found, broken)
    return None
