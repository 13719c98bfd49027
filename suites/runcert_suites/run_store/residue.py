"""RUN-RESIDUE: what was refused leaves nothing behind, and what was cut off nothing but temporaries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from runcert.bursts import bursts_of
from runcert.cases import Case
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle
from runcert.history import Event
from runcert.problems import AdapterProblem
from runcert.wire import Cut, Wire
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Fault,
    Find,
    FindResumable,
    Kept,
    Operation,
    Outcome,
    Returned,
    Run,
    RunStatus,
)
from runcert_suites.run_store.contention import until_contended
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated
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


@clause("RUN-RESIDUE-2", isolated=True)
class OnlyTemporariesAreLeftOver:
    """temporaries are never listed, and after a crash they are the only thing left over."""

    def test_writes_that_are_cut_off(self, case: Case) -> None:
        """A client that loses its backend in the middle of a write, at each of its messages, leaves what is stored as it was, or the whole write."""
        wire = case.wire()
        handle = case.open(wire=wire)
        patient = case.another(handle)
        cuts = 0
        for kind in _WRITES:
            messages, whole = _undisturbed(kind(Judge(case), patient), wire, handle)
            case.evidence[f"what {kind.__name__.strip('_')} adds"] = dict(whole)
            for where, number in product(Cut, range(1, messages + 1)):
                case.steps.clear()
                cuts += _cut_off(kind(Judge(case), patient), _Cutting(wire, where, number, handle, patient), whole)
        if not cuts:
            raise Inconclusive("no message of a write was seen on the way to the backend")
        case.evidence["writes cut off"] = cuts


@clause("RUN-RESIDUE-2", isolated=True, several_clients=True)
class WritersKeepApart:
    """writers never share a temporary name."""

    def test_writers_at_the_same_time(self, case: Case) -> None:
        """Writers that create and update runs of their own at once keep their contents apart: none takes another's temporary."""
        handle = case.open()
        bursts = bursts_of(case, handle)
        if not bursts:
            case.evidence["bursts"] = "none: one client at a time is claimed"
        for burst in case.budget(bursts[:2][-1:], bursts, bursts):

            def one_round(number: int, run: Callable[..., list[Event]] = burst.run) -> list[Event]:
                runs = [a_run(case) for _ in range(number)]
                events = run(write_own, runs)
                _own_contents(case, handle, events)
                return events

            until_contended(case, burst, one_round, about=lambda _: "the temporaries")


def write_own(client: int, work: Sequence[Run]) -> Generator[Operation, Outcome, None]:
    """Create and update runs that no other client touches."""
    for given in work:
        run = replace(given, run_id=f"{given.run_id}-{client}", stage=f"client {client}")
        yield Create(run)
        yield CompareAndSet(run, updated(run))


def _own_contents(case: Case, handle: Handle, events: Sequence[Event]) -> None:
    """Find the last content that was acknowledged of each run."""
    judge = Judge(case)
    with judge.backend_away():  # others are at work: what only asks for another try is permitted (CONTENTION-1)
        for event in events:
            judge.judge(event.operation, event.outcome)
    with case.silent():
        for event in events:
            if isinstance(event.operation, CompareAndSet):
                judge.find(handle, event.operation.updated.run_id)


@dataclass(frozen=True, slots=True)
class _Write:
    """A write of a run whose tenant has no other, and a judge that knows what it starts from."""

    judge: Judge
    operation: Create | CompareAndSet
    run: Run


def _create(judge: Judge, patient: Handle) -> _Write:  # noqa: ARG001  # the signature of every kind
    run = a_run(judge.case)
    return _Write(judge, Create(run), run)


def _update(judge: Judge, patient: Handle) -> _Write:
    run = a_run(judge.case)
    judge.accepted(judge.create(patient, run), "create of a fresh id")
    return _Write(judge, CompareAndSet(run, updated(run)), run)


def _end(judge: Judge, patient: Handle) -> _Write:
    run = a_run(judge.case)
    judge.accepted(judge.create(patient, run), "create of a fresh id")
    return _Write(judge, CompareAndSet(run, moved(run, RunStatus.CANCELLED)), run)


_WRITES = (_create, _update, _end)
_TEMPORARIES = "temporaries"
"""The kind in an inventory of which more may be there after a crash."""

_SETTLES = 2.0
"""How long, in seconds, a backend may take to notice that a client is gone and to undo what it had begun."""


@dataclass(frozen=True, slots=True)
class _Cutting:
    """Who loses the backend where, and who looks at what is left."""

    wire: Wire
    where: Cut
    number: int
    handle: Handle
    patient: Handle


def _undisturbed(write: _Write, wire: Wire, handle: Handle) -> tuple[int, Counter[str]]:
    """Give how many messages a write takes that nobody disturbs, and what it adds to the inventory (or takes away: less than nothing)."""
    judge = write.judge
    judge.find(handle, judge.case.fresh_id())  # so that its connection is there
    before, sent = Counter(judge.case.inventory()), wire.traffic.requests
    judge.accepted(judge.call(handle, write.operation), write.operation.method)
    messages, after = wire.traffic.requests - sent, Counter(judge.case.inventory())
    return messages, Counter({kind: after[kind] - before[kind] for kind in {*before, *after} if after[kind] != before[kind]})


def _cut_off(write: _Write, cutting: _Cutting, whole: Counter[str]) -> bool:
    """Cut one write off and look at what is left; False where the cut did not come about."""
    judge, case = write.judge, write.judge.case
    try:
        judge.find(cutting.handle, case.fresh_id())  # so that its connection is there, and sound
    except Violation as violation:
        raise Violation(f"after a write that was cut off, {violation.expected}", violation.found, "RUN-USABLE-1") from None
    before = Counter(case.inventory())
    cutting.wire.cut(cutting.where, cutting.number)
    with judge.backend_away():
        judge.call(cutting.handle, write.operation)
    if not cutting.wire.heal():
        return False
    written = Counter({kind: before[kind] + whole[kind] for kind in {*before, *whole}})
    what = f"{operation_in_words(write.operation)}, cut at {cutting.where.value} (message {cutting.number}),"
    _settles_to(case, (before, written), what)
    judge.find(cutting.patient, write.run.run_id)
    if case.claims.claims(Capability.ENUMERATES):
        judge.find_resumable(cutting.patient, write.run.tenant_id)
    return True


def _settles_to(case: Case, allowed: Sequence[Counter[str]], what: str) -> None:
    deadline = time.monotonic() + _SETTLES
    wanted = [_without_temporaries(inventory) for inventory in allowed]
    while (found := _without_temporaries(Counter(case.inventory()))) not in wanted:
        if time.monotonic() > deadline:
            raise Violation(
                f"{what} to leave what was stored before, {_in_words(wanted[0])}, or the whole write, {_in_words(wanted[1])}",
                _in_words(found),
            )
        time.sleep(0.02)  # between two looks; what is judged is what is there in the end


def _without_temporaries(inventory: Counter[str]) -> dict[str, int]:
    return {kind: number for kind, number in sorted(inventory.items()) if kind != _TEMPORARIES and number}


def _in_words(inventory: dict[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in inventory.items()) or "nothing"


def _unchanged(case: Case, before: dict[str, int], what: str) -> None:
    after = case.inventory()
    if after != before:
        kinds = sorted(kind for kind in {*before, *after} if before.get(kind) != after.get(kind))
        raise Violation(
            f"{what} to leave what is stored as it was: {', '.join(f'{before.get(kind, 0)} {kind}' for kind in kinds)}",
            ", ".join(f"{after.get(kind, 0)} {kind}" for kind in kinds),
        )
