"""RUN-ABSENT, RUN-BOUND-2 and what RUN-USABLE says of outages: a backend that is away is an error, in time, and nothing else.

The kit stands in the connections of a store whose adapter takes its addresses from ``lab.route``; for a store without connections the
adapter's hook ``outage`` takes the backend away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from runcert.cases import PATIENCE, Case
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle
from runcert.wire import Mode, Wire
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Hung,
    Listing,
    Misconfigured,
    Namespaces,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    Scope,
    StoreError,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated
from runcert_suites.run_store.usability import works

_SLACK = 0.5
"""How long after the declared maximum wait the kit itself ends a silence, in seconds; less than what the watchdog allows."""

_MOST_TRIES = 3
"""How often a call is made that ends without having reached the backend."""

_WARM_UPS = 5
"""How often a client may fail before the outage, on a busy machine with a short patience, before the check is inconclusive."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A stored run, a judge that knows it, and a client whose backend can be taken away.

    Attributes:
        case: the check.
        judge: knows what is stored.
        run: what is stored.
        handle: the client.
        what: what becomes of its backend, for messages.
        lacks_tables: True where the backend itself is there, and ``Misconfigured`` is what the contract asks for.
        created: the ids of runs whose creation was tried meanwhile.
    """

    case: Case
    judge: Judge
    run: Run
    handle: Handle
    what: str
    lacks_tables: bool = False
    created: list[str] = field(default_factory=list)

    def operations(self) -> Iterator[Operation]:
        """Give a call of each method; every one of them would have an answer if the backend were there."""
        yield Find(self.run.run_id)
        yield Find(self.case.fresh_id())
        if self.case.claims.claims(Capability.ENUMERATES):
            yield FindResumable(self.run.tenant_id)
        yield CompareAndSet(self.run, updated(self.run))
        yield Create(a_run(self.case))

    def again(self) -> _Trial:
        """Give the same client with another run and a judge of its own: writes whose outcome stayed open are forgotten."""
        judge, run = Judge(self.case), a_run(self.case)
        judge.accepted(judge.create(self.handle, run), "create of a fresh id")
        return replace(self, judge=judge, run=run, created=[])

    def judge_call(self, operation: Operation, outcome: Outcome) -> None:
        """Judge what came of a call while the backend was away; None, False or nothing is a statement that the store cannot make.

        Raises:
            Violation: the store made one, or raised an error that is none of the contract's.
        """
        _no_statement(operation, outcome, self.what)
        if isinstance(operation, Create):
            self.created.append(operation.run.run_id)
        misconfigured = isinstance(outcome, Raised) and isinstance(outcome.error, Misconfigured)
        if not (misconfigured and self.lacks_tables):
            with self.judge.backend_away():
                self.judge.judge(operation, outcome)

    def while_away(self) -> bool:
        """Make every call twice: the first may meet a connection of before, the second has to make one.

        Returns:
            True where no call was answered.

        Raises:
            Inconclusive: every call was answered, so that the backend cannot have been away for this store.
        """
        outcomes: list[Outcome] = []
        for operation in (operation for _ in range(2) for operation in self.operations()):
            outcomes.append(self.handle.call(operation))
            self.judge_call(operation, outcomes[-1])
        if not any(isinstance(outcome, Raised) for outcome in outcomes):
            raise Inconclusive(f"every call was answered although {self.what}: the store does not use what was taken away")
        errors = self.case.evidence.setdefault(f"errors while {self.what}", {})
        for outcome in outcomes:
            if isinstance(outcome, Raised) and isinstance(errors, dict):
                name = type(outcome.error).__name__
                errors[name] = int(str(errors.get(name, 0))) + 1
        return all(isinstance(outcome, Raised) for outcome in outcomes)


@clause("RUN-ABSENT-1", "RUN-USABLE-1", "RUN-ERROR-1", "RUN-CREATE-1")
class AnOutageIsNoAnswer:
    """None, False and empty answers are statements about stored state; an outage never yields them, and the same handle works after it."""

    def test_a_backend_that_is_gone(self, case: Case) -> None:
        """While nobody listens at the address of the backend, and connections have ended, every call raises a typed error; after that the first works."""
        _through_the_wire(case, Mode.GONE)

    def test_a_backend_that_resets(self, case: Case) -> None:
        """While every connection is reset, every call raises a typed error; after that the first works."""
        _through_the_wire(case, Mode.RESET)

    def test_a_backend_that_the_adapter_takes_away(self, case: Case) -> None:
        """While the adapter's hook `outage` keeps the backend away, every call raises a typed error; after that the first works."""
        if not case.has_hook("outage"):
            case.evidence["hook outage"] = "none"
            return
        for _ in range(case.budget(1, 3, 10)):
            trial = _trial(case, None, "the hook outage has taken its backend away")
            with case.outage():
                trial.while_away()
            _works_again(trial, trial.handle)


@clause("RUN-ABSENT-1", isolated=True)
class MissingTablesAreNoAnswer:
    """None, False and empty answers are statements about stored state; a missing table never yields them."""

    def test_on_an_open_handle(self, case: Case) -> None:
        """A handle whose tables are removed while it is open raises a typed error for every call."""
        if not case.has_hook("schema") or case.claims.namespaces is Namespaces.SHARED:  # whose tables others need
            case.evidence["missing tables"] = 0
            return
        trial = replace(_trial(case, None, "its tables are missing"), lacks_tables=True)
        case.hook("schema", "missing", [])
        trial.while_away()
        case.evidence["missing tables"] = 1


@clause("RUN-BOUND-2", "RUN-ABSENT-1", "RUN-USABLE-1")
class SilenceEnds:
    """every call ends within the declared wait with a backend that accepts and stays silent; a hang is a fail."""

    def test_silence_on_connections_that_are_there(self, case: Case) -> None:
        """A call whose question is swallowed ends in time with a typed error, and the handle works when the silence is over."""
        if not case.claims.claims(Capability.BOUNDS_SILENCE) or not _routes(case):
            case.evidence["silence"] = "not claimed, or no connection through lab.route"
            return
        wire = case.wire()
        trial = _trial(case, wire, "its backend accepts and stays silent")
        operations = list(trial.operations())
        chosen = case.budget([operations[0], operations[-1]], operations, operations)
        handles = [trial.handle, *(_warm(case, wire, trial.run) for _ in chosen[1:])]
        slowest = _silent_calls(trial, wire, list(zip(handles, chosen, strict=True)))
        for handle in handles:
            _works_again(trial, handle)
        case.evidence["slowest call against silence, s"] = round(slowest, 2)
        case.evidence["lab.patience, s"] = PATIENCE

    def test_silence_on_new_connections(self, case: Case) -> None:
        """A call that has to make a new connection, which is accepted and never answered, ends in time too."""
        if not case.claims.claims(Capability.BOUNDS_SILENCE) or not _routes(case):
            case.evidence["silence"] = "not claimed, or no connection through lab.route"
            return
        wire = case.wire()
        trial = _trial(case, wire, "its backend accepts new connections and stays silent")
        wire.be(Mode.GONE)
        wire.be(Mode.PASS)
        operation = Find(trial.run.run_id)
        case.evidence["slowest call against silence, s"] = round(_silent_calls(trial, wire, [(trial.handle, operation)]), 2)
        _works_again(trial, trial.handle)


def _through_the_wire(case: Case, mode: Mode) -> None:
    if not _routes(case):
        case.evidence["connections through lab.route"] = "none"
        return
    wire = case.wire()
    trial = _trial(case, wire, _IN_WORDS[mode])
    for number in range(case.budget(1, 3, 10)):
        trial = trial if number == 0 else trial.again()
        before = wire.traffic.struck
        wire.be(mode)
        nothing_answered = trial.while_away()
        struck = wire.traffic.struck - before
        wire.be(Mode.PASS)
        # nobody sees who wants to connect where nobody listens: a store with a connection for each call is known by its errors
        if not struck and not (mode is Mode.GONE and nothing_answered):
            raise Inconclusive(f"no connection was there to be hit although {trial.what}")
        _works_again(trial, trial.handle)


_IN_WORDS = {Mode.GONE: "its backend is gone", Mode.RESET: "its backend resets every connection"}


def _routes(case: Case) -> bool:
    """Open the store once where nothing did yet, so that it is known whether its adapter takes addresses from ``lab.route``."""
    if "wire" not in case.workplace.reach.names:
        case.close(case.open())
    return "wire" in case.workplace.reach.names


def _trial(case: Case, wire: Wire | None, what: str) -> _Trial:
    """Store a run through a patient client, and open the client whose backend is taken away."""
    case.steps.clear()
    judge = Judge(case)
    run = a_run(case)
    if wire is not None and case.claims.scope is not Scope.HANDLE:
        judge.accepted(judge.create(case.open(), run), "create of a fresh id")
        return _Trial(case, judge, run, _warm(case, wire, run), what)
    handle = case.open() if wire is None else _warm(case, wire, run)
    judge.accepted(judge.create(handle, run), "create of a fresh id")
    return _Trial(case, judge, run, handle, what)


def _warm(case: Case, wire: Wire, run: Run) -> Handle:
    """Open a client through the wire and let it read, so that it has a connection.

    Raises:
        Inconclusive: nothing went through the wire, or the client gave up before there was an outage.
    """
    before = wire.traffic.requests
    handle = case.open(wire=wire)
    outcome = handle.call(Find(run.run_id))
    for _ in range(_WARM_UPS):
        if isinstance(outcome, Returned):
            break
        outcome = handle.call(Find(run.run_id))
    else:
        raise Inconclusive(f"the client that the kit stands before gave up too soon: {outcome_in_words(outcome)}")
    if wire.traffic.requests == before:
        raise Inconclusive("the adapter asked lab.route for an address and sent nothing to it")
    return handle


def _silent_calls(trial: _Trial, wire: Wire, calls: Sequence[tuple[Handle, Operation]]) -> float:
    """Make calls against silence, each on a handle of its own, and give the longest time that one took."""
    bound = trial.case.claims.limits.maximum_wait.total_seconds()
    slowest = 0.0
    for handle, operation in calls:
        for _ in range(_MOST_TRIES):  # the first may only find out that its connection has ended
            seconds, reached = _one_silent_call(trial, wire, handle, operation, bound)
            slowest = max(slowest, seconds)
            if reached:
                break
        else:
            raise Inconclusive(
                f"{operation_in_words(operation)}, made {_MOST_TRIES} times, never reached the backend: each call ended by itself before"
            )
    return slowest


def _one_silent_call(trial: _Trial, wire: Wire, handle: Handle, operation: Operation, bound: float) -> tuple[float, bool]:
    """Make one call against silence; give how long it took, and whether it reached the backend."""
    before = wire.traffic.struck
    wire.be(Mode.SILENT, bound + _SLACK)
    started = time.monotonic()
    outcome = handle.call(operation)
    seconds = time.monotonic() - started
    if wire.gave_up or isinstance(outcome, Hung) or seconds > bound + 2 * _SLACK:
        raise Violation(
            f"{operation_in_words(operation)} to end within {bound:g} s although {trial.what}",
            f"no end after {bound:g} s; then the kit ended the connection",
            "RUN-BOUND-2",
        )
    trial.judge_call(operation, outcome)
    reached = wire.traffic.struck > before
    wire.be(Mode.PASS)
    return seconds, reached


def _no_statement(operation: Operation, outcome: Outcome, what: str) -> None:
    """Insist that an outcome says nothing about what is stored."""
    call = operation_in_words(operation)
    empty = isinstance(outcome, Returned) and (
        outcome.value is None or outcome.value is False or (isinstance(outcome.value, Listing) and not outcome.value.items)
    )
    if empty:
        raise Violation(f"{call} to raise while {what}", outcome_in_words(outcome), "RUN-ABSENT-1")
    if isinstance(outcome, Raised) and not isinstance(outcome.error, StoreError):
        raise Violation(f"{call} to raise an error of the contract while {what}", outcome_in_words(outcome), "RUN-ERROR-1")


def _works_again(trial: _Trial, handle: Handle) -> None:
    after = f"an outage in which {trial.what}"
    try:
        works(trial.case, handle, after)
    except Violation as violation:
        raise Violation(violation.expected, violation.found, "RUN-USABLE-1") from None
    if handle is not trial.handle and trial.case.claims.scope is Scope.HANDLE:
        return  # what one handle stored, another one need not know
    for run_id in (trial.run.run_id, *trial.created):
        try:
            trial.judge.find(handle, run_id)
        except Violation as violation:
            clause_id = "RUN-CREATE-1" if run_id in trial.created else violation.clause
            raise Violation(f"after {after}, {violation.expected}", violation.found, clause_id) from None
