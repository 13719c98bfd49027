"""A Hypothesis state machine for run stores, judged by the model of the contract.

:class:`RunStoreMachine` is public: give it a case, add rules of your own in a subclass, and run it with :func:`check_machine`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Step
from runcert_contract import (
    LEGAL_MOVES,
    Capability,
    Claims,
    CompareAndSet,
    Create,
    Fault,
    Find,
    FindResumable,
    Hung,
    Kept,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStatus,
    Scope,
    State,
    StoreError,
    Volatile,
    canonical,
    check_new_run,
    check_update,
)
from runcert_contract.encoding import INVALID_INPUTS
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.property_testing import settings_for, shrinking_tries
from runcert_suites.run_store.records import a_run, moved, updated
from runcert_suites.run_store.shortening import shortened

__all__ = ["RunStoreMachine", "check_machine", "clause_broken_by"]

_MOST_HANDLES = 3
_MOST_RUNS = 2
_CALLS_BETWEEN = 15
"""So many calls lie between two reopenings: a store that is volatile loses everything with each."""

_WHO = st.integers(0, _MOST_HANDLES - 1)
_TENANT = st.integers(0, 1)
_OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", ""]), st.none() | st.integers(0, 3) | st.lists(st.booleans(), max_size=2), max_size=2
)
_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "stage": st.sampled_from(["", "one", "zwei \N{LATIN SMALL LETTER U WITH DIAERESIS}"]),
        "input": _OBJECTS,
        "context": _OBJECTS,
        "owner": st.sampled_from([None, "worker-1"]),
        "recovery_count": st.integers(0, 3),
    },
)
_INVALID = st.builds(
    lambda field, name: {field: name},
    st.sampled_from(["input", "context"]),
    st.sampled_from(["nan", "tuple", "lone-surrogate", "integer-key", "bytes", "naive-instant"]),
)
_IDENTITY = st.builds(
    lambda field: {field: "other"}, st.sampled_from(["tenant_id", "action_id", "proposal_id", "idempotency_key"])
)


# -- the machine -----------------------------------------------------------------------------------------------------


class RunStoreMachine(RuleBasedStateMachine):
    """Any sequence of calls, on up to three handles, with everything closed and opened again in the middle.

    Args:
        case: the check; its namespace must be its own, because every handle of it gets closed.

    Attributes:
        case: the check.
        judge: what the calls are judged by; it knows what may be stored.
        handles: the handles that are open.
        tenants: the tenants that runs belong to.
    """

    run_ids: Bundle[str] = Bundle("run_ids")

    def __init__(self, case: Case) -> None:
        super().__init__()
        case.steps.clear()
        self.case = case
        self.judge = Judge(case)
        self.handles = [case.open()]
        self.tenants = (case.fresh_id("ta"), case.fresh_id("tb"))
        self._made: list[str] = []
        self._failed = False
        self._calls_since_reopened = 0

    def teardown(self) -> None:
        """Look at everything once more, unless something was wrong already, and close what is open."""
        try:
            if not self._failed:
                self.look_at_everything()
        finally:
            for handle in self.handles:
                self.case.close(handle)

    def look_at_everything(self) -> None:
        """Find every run and list every tenant, on every handle: what went wrong in silence shows now."""
        for who in range(len(self.handles)):
            for run_id in self._made:
                self.perform(who, Find(run_id))
            if self.case.claims.claims(Capability.ENUMERATES):
                for tenant in self.tenants:
                    self.perform(who, FindResumable(tenant))

    def perform(self, who: int, operation: Operation) -> None:
        """Make a call on one of the handles and judge its outcome.

        Raises:
            Violation: the contract does not permit it; it names the clause as well as that can be told.
        """
        self._calls_since_reopened += 1
        before = self.judge.states
        outcome = self.handles[who % len(self.handles)].call(operation)
        try:
            self.judge.judge(operation, outcome)
        except Violation as violation:
            self._failed = True
            broken = violation.clause or clause_broken_by(operation, before, outcome, self.case.claims)
            raise Violation(violation.expected, violation.found, broken) from None

    def stored(self, run_id: str) -> Run:
        """Give the run as it may be stored; one that was never stored where there is none."""
        found = _stored(self.judge.states, run_id)
        return a_run(self.case, run_id=run_id) if found is None else found

    def unfinished(self) -> int:
        """Count the runs that may still move on."""
        found = (_stored(self.judge.states, run_id) for run_id in self._made)
        return sum(run is not None and not run.status.terminal for run in found)

    # -- create

    @precondition(lambda self: self.unfinished() < _MOST_RUNS)
    @rule(target=run_ids, who=_WHO, tenant=_TENANT, changes=_CHANGES)
    def create(self, who: int, tenant: int, changes: dict[str, Any]) -> str:
        """Create a run under a fresh id."""
        run = a_run(self.case, tenant_id=self.tenants[tenant], **changes)
        self._made.append(run.run_id)
        self.perform(who, Create(run))
        return run.run_id

    @rule(who=_WHO, run_id=run_ids, changes=_CHANGES)
    def create_again(self, who: int, run_id: str, changes: dict[str, Any]) -> None:
        """Create a run under an id that was used before."""
        self.perform(who, Create(a_run(self.case, run_id=run_id, tenant_id=self.tenants[0], **changes)))

    @rule(who=_WHO, fields=_INVALID | st.builds(lambda version: {"version": version}, st.integers(1, 3)))
    def create_invalid(self, who: int, fields: dict[str, Any]) -> None:
        """Create a run whose version is not 0, or with a value outside the domain."""
        self.perform(who, Create(a_run(self.case, tenant_id=self.tenants[0], **_made(fields))))

    # -- find

    @rule(who=_WHO, run_id=run_ids)
    def find(self, who: int, run_id: str) -> None:
        """Find a run that was created."""
        self.perform(who, Find(run_id))

    @rule(who=_WHO, update=st.booleans())
    def use_an_unknown_id(self, who: int, update: bool) -> None:
        """Find, or update, a run that nobody created."""
        run = a_run(self.case, tenant_id=self.tenants[0])
        self.perform(who, CompareAndSet(run, updated(run)) if update else Find(run.run_id))

    # -- compare_and_set

    @rule(who=_WHO, run_id=run_ids, changes=_CHANGES)
    def update(self, who: int, run_id: str, changes: dict[str, Any]) -> None:
        """Update a run from what is stored."""
        run = self.stored(run_id)
        self.perform(who, CompareAndSet(run, updated(run, **changes)))

    @rule(who=_WHO, run_id=run_ids, off=st.sampled_from([-1, -2, 1, 2]), changes=_CHANGES)
    def update_another_version(self, who: int, run_id: str, off: int, changes: dict[str, Any]) -> None:
        """Update a run from an older version, or from one that it does not have yet."""
        run = self.stored(run_id)
        if run.version + off >= 0:
            other = replace(run, version=run.version + off)
            self.perform(who, CompareAndSet(other, updated(other, **changes)))

    @rule(who=_WHO, run_id=run_ids)
    def update_without_a_change(self, who: int, run_id: str) -> None:
        """Update a run to what it is, but for the version."""
        run = self.stored(run_id)
        self.perform(who, CompareAndSet(run, replace(run, version=run.version + 1)))

    @rule(
        who=_WHO,
        run_id=run_ids,
        fields=_INVALID | _IDENTITY | st.builds(lambda step: {"step": step}, st.sampled_from([0, 2, 3])),
    )
    def update_invalid(self, who: int, run_id: str, fields: dict[str, Any]) -> None:
        """Update a run to a version that is not the next one, in a field that never changes, or outside the domain."""
        run = self.stored(run_id)
        self.perform(who, CompareAndSet(run, updated(run, **_made(fields, run.version))))

    @rule(who=_WHO, run_id=run_ids, choice=st.integers(-6, 5))
    def move(self, who: int, run_id: str, choice: int) -> None:
        """Move a run to a status that the table of legal moves permits; away from its end, where it has ended."""
        run = self.stored(run_id)
        legal = sorted(LEGAL_MOVES[run.status] or {RunStatus.RUNNING, RunStatus.SUCCEEDED}, key=lambda s: (s.terminal, s.value))
        self.perform(who, CompareAndSet(run, moved(run, legal[max(0, min(choice, len(legal) - 1))])))

    # -- find_resumable

    @precondition(lambda self: self.case.claims.claims(Capability.ENUMERATES))
    @rule(who=_WHO, run_id=run_ids)
    def find_resumable(self, who: int, run_id: str) -> None:
        """List what the tenant of a run has not finished."""
        self.perform(who, FindResumable(self.stored(run_id).tenant_id))

    # -- handles

    @precondition(lambda self: self.case.claims.scope is not Scope.HANDLE and len(self.handles) < _MOST_HANDLES)
    @rule()
    def open_another_handle(self) -> None:
        """Open one more handle."""
        self.handles.append(self.case.open())

    @precondition(lambda self: len(self.handles) > 1)
    @rule(who=_WHO)
    def close_a_handle(self, who: int) -> None:
        """Close one of several handles."""
        self.case.close(self.handles.pop(who % len(self.handles)))

    @precondition(lambda self: self._calls_since_reopened > _CALLS_BETWEEN and _may_be_closed(self.case.claims))
    @rule()
    def reopen_everything(self) -> None:
        """Close every handle and open one again, which is the fault ``close``."""
        for handle in self.handles:
            self.case.close(handle)
        self.handles = [self.judge.reopen()]
        self._calls_since_reopened = 0


def _may_be_closed(claims: Claims) -> bool:
    return isinstance(claims.promise(Fault.CLOSE), (Kept, Volatile))


def _made(fields: dict[str, Any], version: int = 0) -> dict[str, Any]:
    """Make the fields of a run that has to be refused from what was drawn, which is short enough to read in a failure."""
    made: dict[str, Any] = {
        name: {"x": INVALID_INPUTS[value]()} if name in {"input", "context"} else value for name, value in fields.items()
    }
    step = made.pop("step", None)
    return made if step is None else {**made, "version": version + step}


# -- which clause a call breaks --------------------------------------------------------------------------------------


def clause_broken_by(operation: Operation, states: frozenset[State], outcome: Outcome, claims: Claims) -> str:
    """Name the clause that an outcome breaks, as well as one call and what may have been stored before it tell.

    Args:
        operation: the call.
        states: the states in which the store may have been.
        outcome: what came of it, which none of these states permits.
        claims: the claims of the store.
    """
    if isinstance(outcome, Hung):
        return "RUN-BOUND-1"
    if isinstance(outcome, Raised):
        if not isinstance(outcome.error, StoreError):
            return "RUN-ERROR-1"
        if outcome.error.retryable and claims.admits_several_clients:
            return "RUN-CONTENTION-2"
    if isinstance(operation, Create):
        return _broken_by_create(operation, states, outcome, claims)
    if isinstance(operation, Find):
        return _broken_by_find(operation, states, outcome)
    if isinstance(operation, CompareAndSet):
        return _broken_by_update(operation, states, outcome, claims)
    return "RUN-RESUMABLE-1"


def _broken_by_create(operation: Create, states: frozenset[State], outcome: Outcome, claims: Claims) -> str:
    if _refused(lambda: check_new_run(operation.run, claims)):
        return "RUN-INPUT-1" if operation.run.version == 0 else "RUN-CREATE-4"
    if _stored(states, operation.run.run_id) is not None:
        return "RUN-CREATE-2"
    return "RUN-FIDELITY-7" if isinstance(outcome, Returned) else "RUN-CREATE-1"


def _broken_by_find(operation: Find, states: frozenset[State], outcome: Outcome) -> str:
    stored = _stored(states, operation.run_id)
    if stored is None or not isinstance(outcome, Returned):
        return "RUN-FIND-1"
    if not isinstance(outcome.value, Run):
        return "RUN-CREATE-1" if stored.version == 0 else "RUN-FIND-2"
    if outcome.value.version < stored.version:
        return "RUN-FIND-2"
    return "RUN-CAS-2" if outcome.value.version > stored.version else "RUN-FIDELITY-7"


def _broken_by_update(operation: CompareAndSet, states: frozenset[State], outcome: Outcome, claims: Claims) -> str:
    expected, following = operation.expected, operation.updated
    if _refused(lambda: check_update(expected, following, claims)):
        if following.version != expected.version + 1:
            return "RUN-CAS-3"
        identity = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key", "created_at")
        return "RUN-IDENTITY-1" if any(getattr(expected, n) != getattr(following, n) for n in identity) else "RUN-INPUT-1"
    stored = _stored(states, expected.run_id)
    if stored is None:
        return "RUN-CAS-4"
    if stored.version == expected.version and stored.status.terminal and claims.claims(Capability.GUARDS_TERMINAL):
        return "RUN-TERMINAL-1"
    same = canonical(replace(stored, version=following.version)) == canonical(following)
    refused = isinstance(outcome, Returned) and outcome.value is False
    return "RUN-CAS-5" if refused and same and stored.version == expected.version else "RUN-CAS-1"


def _stored(states: frozenset[State], run_id: str) -> Run | None:
    return next((found.run for found in (state.get(run_id) for state in states) if found is not None), None)


def _refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except StoreError:
        return True
    return False


# -- running ---------------------------------------------------------------------------------------------------------


def check_machine(
    case: Case, machine: type[RunStoreMachine] = RunStoreMachine, examples: int | None = None, steps: int | None = None
) -> None:
    """Run a state machine as part of a check; a failure is the violation of the shortest sequence that was found.

    Args:
        case: the check, in a namespace of its own; its seed decides the sequences.
        machine: the machine.
        examples: how many sequences are tried; by default as many as the depth asks for.
        steps: how long a sequence is at most; by default as long as the depth asks for.

    Raises:
        Violation: the contract does not permit what a call gave; the steps of the case are those that led there.
    """
    number = examples or case.budget(20, 120, 1200)
    length = steps or case.budget(50, 60, 80)
    attempt = _Attempt(case, machine, shrinking_tries(case) // 3)
    try:
        run_state_machine_as_test(
            seed(case.seed)(attempt),  # type: ignore[arg-type]  # it is called like a class, and gives a machine
            settings=settings_for(number, stateful_step_count=length),
        )
    except (Flaky, Violation):
        attempt.raise_what_was_seen()
        raise
    case.steps.clear()
    case.evidence["sequences"] = attempt.made
    case.evidence["longest sequence"] = length


class _Attempt:
    """Makes one machine after another, and keeps the last violation with the steps that led to it.

    A hang is not made shorter, because each try would hang again; anything else is for so many tries only.  From then on the
    machines do nothing.
    """

    def __init__(self, case: Case, machine: type[RunStoreMachine], tries: int) -> None:
        self.made = 0
        self._case = case
        self._machine = _watched(machine, self._note)
        self._idle = _idle(machine)
        self._tries = tries
        self._ends_after: int | None = None
        self._seen: tuple[Violation, list[Step]] | None = None

    def __call__(self) -> RuleBasedStateMachine:
        self.made += 1
        ended = self._ends_after is not None and self.made > self._ends_after
        return (self._idle if ended else self._machine)(self._case)

    def _note(self, violation: Violation) -> None:
        self._seen = violation, list(self._case.steps)
        if any(isinstance(step.outcome, Hung) for step in self._case.steps):
            self._ends_after = self.made
        elif self._ends_after is None:
            self._ends_after = self.made + self._tries

    def raise_what_was_seen(self) -> None:
        """Raise the last violation, with its steps, made as short as they get."""
        if self._seen is None:
            return
        violation, steps = self._seen
        if not any(isinstance(step.outcome, Hung) for step in steps):
            violation, steps = shortened(self._case, steps, violation, clause_broken_by)
        self._case.steps[:] = steps
        raise violation


def _watched(machine: type[RunStoreMachine], note: Callable[[Violation], None]) -> type[RunStoreMachine]:
    class Watched(machine):  # type: ignore[misc, valid-type]  # made of the class that was given
        def perform(self, who: int, operation: Operation) -> None:
            try:
                super().perform(who, operation)
            except Violation as violation:
                note(violation)
                raise

    return Watched


def _idle(machine: type[RunStoreMachine]) -> type[RunStoreMachine]:
    class Idle(machine):  # type: ignore[misc, valid-type]  # made of the class that was given
        def perform(self, who: int, operation: Operation) -> None:
            pass

    return Idle


@clause(
    "RUN-FIND-2",
    "RUN-CREATE-1",
    "RUN-CREATE-2",
    "RUN-CREATE-4",
    "RUN-FIND-1",
    "RUN-CAS-1",
    "RUN-CAS-2",
    "RUN-CAS-3",
    "RUN-CAS-4",
    "RUN-CAS-5",
    "RUN-IDENTITY-1",
    "RUN-TERMINAL-1",
    "RUN-RESUMABLE-1",
    isolated=True,
)
class AnySequenceOfCalls:
    """Any sequence of calls, on several handles, reopened in the middle, gives what the model of the contract permits."""

    def test_against_the_model(self, case: Case) -> None:
        """Random sequences of every kind of call; a failure is shown as the shortest sequence that was found."""
        check_machine(case)
