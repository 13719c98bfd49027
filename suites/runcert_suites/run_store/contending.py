"""Several clients at once: one winner, nothing lost, no raw error, nothing dirty to be seen.

Each check runs every kind of burst that the claims admit: threads that share a handle, threads or tasks with a handle each, and
processes from scope ``host``.
"""

from __future__ import annotations

from collections.abc import Callable

from runcert.burst_programs import OVERTIME
from runcert.bursts import bursts_of
from runcert.cases import Case
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle, Step
from runcert.history import Event
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import (
    AlreadyExists,
    Capability,
    CompareAndSet,
    Contended,
    Create,
    Find,
    Hung,
    Listing,
    Operation,
    Raised,
    Returned,
    Run,
)
from runcert_contract.operations import is_retryable
from runcert_suites.run_store.contention import (
    ATTEMPTS,
    create_each,
    create_until_settled,
    every_operation,
    judge_creates,
    judge_reads,
    judge_that_somebody_updated,
    judge_updates,
    read_while_others_write,
    runs_for,
    touched,
    until_contended,
    update_each,
    update_until_settled,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated


@clause("RUN-CREATE-3", isolated=True, several_clients=True)
class OneOfManyCreatesSucceeds:
    """Of N concurrent creates of one id at most one succeeds; success is never reported for a record that is then absent."""

    def test_in_bursts(self, case: Case) -> None:
        """Clients that create the same ids at once: one success for each id, and its run is the one that is found."""
        handle = case.open()
        for burst in bursts_of(case, handle):
            decided = [0]

            def one_round(
                number: int, run: Callable[..., list[Event]] = burst.run, decided: list[int] = decided
            ) -> list[Event]:
                events = run(create_each, runs_for(case, number))
                decided[0] += judge_creates(case, case.another(handle), events)
                return events

            until_contended(case, burst, one_round)
            _insist_on_winners(decided[0], f"{burst.name}: no create at all succeeded")


@clause("RUN-CAS-6", "RUN-CAS-1", isolated=True, several_clients=True)
class OneOfManyUpdatesSucceeds:
    """Of N contenders for one version at most one gets True, and no version is gained that nobody was told of."""

    def test_in_bursts(self, case: Case) -> None:
        """Clients that update the same runs at once, from version 0 and then from what they find."""
        handle = case.open()
        for burst in bursts_of(case, handle):
            decided = [0]

            def one_round(
                number: int, run: Callable[..., list[Event]] = burst.run, decided: list[int] = decided
            ) -> list[Event]:
                runs = runs_for(case, number, handle)
                events = run(update_each, runs)
                with case.silent():
                    decided[0] += judge_updates(case, case.another(handle), runs, events)
                return events

            until_contended(case, burst, one_round)
            _insist_on_winners(decided[0], f"{burst.name}: no update at all succeeded")


@clause("RUN-CONTENTION-1", "RUN-BOUND-1", "RUN-CAS-1", isolated=True, several_clients=True)
class OutcomesUnderContention:
    """Under contention every call ends in time, and its outcome is success, the contract's own refusal, or Contended."""

    def test_in_bursts(self, case: Case) -> None:
        """Clients that call every operation on the same runs at once are answered in time, and never with a raw or a wrong error."""
        handle = case.open()
        lists = case.claims.claims(Capability.ENUMERATES)
        slowest = [0.0]
        for burst in bursts_of(case, handle):

            def one_round(number: int, run: Callable[..., list[Event]] = burst.run) -> list[Event]:
                events = run(every_operation, {"runs": runs_for(case, number), "lists": lists})
                slowest[0] = max(slowest[0], *(_seconds_in_time(case, event) for event in events))
                for event in events:
                    _judge_outcome(case, event)
                judge_that_somebody_updated(case, events)
                return events

            until_contended(case, burst, one_round, touched)
        case.evidence["slowest call under contention, ms"] = round(slowest[0] * 1000, 1)


@clause("RUN-CONTENTION-2", isolated=True, several_clients=True)
class WhoIsAloneAndWhoRepeats:
    """A caller that is alone never gets Contended; where the callers of a burst repeat on Contended, exactly one wins."""

    def test_alone(self, case: Case) -> None:
        """One caller after another, on two handles, is never told that others are in the way."""
        handle = case.open()
        judge = Judge(case)
        for _ in range(10):
            _work_alone(judge, handle, case.another(handle))

    def test_repeating_in_bursts(self, case: Case) -> None:
        """Where all clients repeat on Contended, each id and each version gets its one winner; afterwards one is alone again."""
        handle = case.open()
        judge = Judge(case)
        for burst in bursts_of(case, handle):

            def creates(number: int, run: Callable[..., list[Event]] = burst.run) -> list[Event]:
                events = run(create_until_settled, runs_for(case, number))
                _insist_on_settled(case, events)
                judge_creates(case, case.another(handle), events)
                return events

            def updates(number: int, run: Callable[..., list[Event]] = burst.run) -> list[Event]:
                runs = runs_for(case, number, handle)
                events = run(update_until_settled, runs)
                _insist_on_settled(case, events)
                with case.silent():
                    judge_updates(case, case.another(handle), runs, events)
                return events

            until_contended(case, burst, creates, what="creates")
            until_contended(case, burst, updates, what="updates")
            _work_alone(judge, handle, case.another(handle))


@clause("RUN-FIND-3", "RUN-FIND-2", isolated=True, several_clients=True)
class OnlyCommittedStateIsRead:
    """Only committed state is returned."""

    def test_after_refused_writes(self, case: Case) -> None:
        """What a refused create or update would have written is never seen, on any handle."""
        handle = case.open()
        judge = Judge(case)
        for _ in range(5):
            run = a_run(case, input={"stored": True})
            judge.accepted(judge.create(handle, run), "create of a fresh id")
            judge.create(handle, updated(run, version=0, input={"refused": True}))
            stale = updated(run, stage="accepted")
            judge.accepted(judge.compare_and_set(handle, run, stale), "an update of the stored version")
            judge.compare_and_set(handle, run, updated(run, stage="refused", input={"refused": True}))
            for reader in (handle, case.another(handle)):
                judge.find(reader, run.run_id)

    def test_in_bursts(self, case: Case) -> None:
        """Readers that look on while others write see only what a successful write stored, and nothing older than before."""
        handle = case.open()
        for burst in bursts_of(case, handle):
            seen = [0]

            def one_round(number: int, run: Callable[..., list[Event]] = burst.run, seen: list[int] = seen) -> list[Event]:
                events = run(read_while_others_write, runs_for(case, min(3, number)))
                seen[0] += judge_reads(case, events)
                return events

            until_contended(case, burst, one_round, touched, at_least=3)
            _insist_on_winners(seen[0], f"{burst.name}: no find gave a run")


def _insist_on_winners(number: int, otherwise: str) -> None:
    """Insist that something was decided at all; a store that only ever says Contended is judged by RUN-CONTENTION-2."""
    if number == 0:
        raise Inconclusive(otherwise)


def _insist_on_settled(case: Case, events: list[Event]) -> None:
    last: dict[tuple[int, object], Event] = {(event.client, touched(event.operation)): event for event in events}
    for event in last.values():
        if is_retryable(event.outcome) and not any(_wins(other, event.operation) for other in last.values()):
            case.steps[:] = [
                Step(f"client {e.client}", e.operation, e.outcome) for e in last.values() if _rivals(e, event.operation)
            ]
            raise Violation(
                "exactly one of several clients that repeat on Contended to win",
                f"nobody won {touched(event.operation)!r}; after {ATTEMPTS} attempts client {event.client} was still given {outcome_in_words(event.outcome)}",
            )


def _rivals(event: Event, operation: Operation) -> bool:
    return touched(event.operation) == touched(operation)


def _wins(event: Event, operation: Operation) -> bool:
    return _rivals(event, operation) and isinstance(event.outcome, Returned) and event.outcome.value is not False


def _work_alone(judge: Judge, first: Handle, second: Handle) -> None:
    run = a_run(judge.case)
    judge.accepted(judge.create(first, run), "create of a fresh id by a caller that is alone")
    judge.create(second, run)
    judge.find(second, run.run_id)
    judge.accepted(judge.compare_and_set(second, run, updated(run)), "an update by a caller that is alone")
    judge.compare_and_set(first, run, updated(run))
    judge.find(first, run.run_id)


def _seconds_in_time(case: Case, event: Event) -> float:
    """Give how long a call took, and insist that it ended within the declared wait (RUN-BOUND-1)."""
    seconds = (event.returned - event.called) / 1e9
    bound = case.claims.limits.maximum_wait.total_seconds()
    if isinstance(event.outcome, Hung) or seconds > bound + OVERTIME:
        case.steps[:] = [Step(f"client {event.client}", event.operation, event.outcome)]
        raise Violation(
            f"{operation_in_words(event.operation)} to end within {bound:g} s, also under contention",
            f"client {event.client}: {outcome_in_words(event.outcome)}, after {seconds:.1f} s",
            "RUN-BOUND-1",
        )
    return seconds


def _judge_outcome(case: Case, event: Event) -> None:
    operation, outcome = event.operation, event.outcome
    if _permitted_under_contention(operation, outcome):
        return
    case.steps[:] = [Step(f"client {event.client}", operation, outcome)]
    own = " or AlreadyExists" if isinstance(operation, Create) else ""
    raise Violation(
        f"{operation_in_words(operation)} under contention to give an answer{own}, or Contended",
        f"client {event.client} was given {outcome_in_words(outcome)}",
    )


def _permitted_under_contention(operation: Operation, outcome: object) -> bool:
    if isinstance(outcome, Raised):
        refusals = (AlreadyExists, Contended) if isinstance(operation, Create) else (Contended,)
        return isinstance(outcome.error, refusals)
    if not isinstance(outcome, Returned):
        return False
    if isinstance(operation, Create):
        return isinstance(outcome.value, Run)
    if isinstance(operation, CompareAndSet):
        return isinstance(outcome.value, bool)
    if isinstance(operation, Find):
        return outcome.value is None or isinstance(outcome.value, Run)
    return isinstance(outcome.value, Listing)
