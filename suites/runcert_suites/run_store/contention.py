"""What clients do in a burst, how long bursts are repeated, and what the contract permits them to have done.

The programs are functions of this module so that client processes find them by name.  Who wrote a record can be told from its
``stage``; a client never writes the same version of a run twice.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from runcert.burst_programs import CLIENTS, Pause
from runcert.bursts import Burst
from runcert.cases import Case
from runcert.checks import Inconclusive, Violation
from runcert.handles import Handle, Step
from runcert.history import Event, overlapping
from runcert.wording import operation_in_words, outcome_in_words, value_in_words
from runcert_contract import (
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Hung,
    JsonValue,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStoreModel,
    StoreError,
    Unknown,
    canonical,
)
from runcert_contract.operations import is_retryable
from runcert_suites.run_store.records import a_run, updated

__all__ = [
    "ATTEMPTS",
    "create_each",
    "create_until_settled",
    "every_operation",
    "judge_creates",
    "judge_reads",
    "judge_that_somebody_updated",
    "judge_updates",
    "read_while_others_write",
    "runs_for",
    "touched",
    "until_contended",
    "update_each",
    "update_until_settled",
]

ATTEMPTS = 40
"""How often a client repeats a call before it gives up."""

_Steps = Generator[Operation, Outcome, None]


# -- programs: what one client does ----------------------------------------------------------------------------------


def create_each(client: int, work: Sequence[Run]) -> _Steps:
    """Create every run, as this client would have it."""
    for run in work:
        yield Create(_by(client, run))


def update_each(client: int, work: Sequence[Run]) -> _Steps:
    """Update every run from version 0, then a few times more from what is found: a hot record keeps the clients together."""
    for run in work:
        yield CompareAndSet(run, _by(client, updated(run)))
        for _ in range(3):
            found = yield Find(run.run_id)
            if isinstance(found, Returned) and isinstance(found.value, Run):
                yield CompareAndSet(found.value, _by(client, updated(found.value)))


def every_operation(client: int, work: dict[str, Any]) -> _Steps:
    """Call every operation on every run: create, find, update and, where it is claimed, the listing."""
    for run in work["runs"]:
        mine = _by(client, run)
        yield Create(mine)
        yield Find(run.run_id)
        yield CompareAndSet(mine, updated(mine))
        if work["lists"]:
            yield FindResumable(run.tenant_id)


def create_until_settled(client: int, work: Sequence[Run]) -> _Steps:
    """Create every run, and repeat while the store only says that others are in the way."""
    for run in work:
        settled = yield from _repeat(Create(_by(client, run)), client)
        if not settled:
            return


def update_until_settled(client: int, work: Sequence[Run]) -> _Steps:
    """Update every run from version 0, then from what is found, and repeat while the store only says that others are in the way."""
    for run in work:
        known = run
        for _ in range(3):
            settled = yield from _repeat(CompareAndSet(known, _by(client, updated(known))), client)
            if not settled:
                return
            found = yield Find(run.run_id)
            if isinstance(found, Returned) and isinstance(found.value, Run):
                known = found.value


def _repeat(operation: Operation, client: int) -> Generator[Operation, Outcome, bool]:
    """Repeat an operation with growing pauses; after a second of them the others are through, unless nobody ever gets through."""
    for attempt in range(ATTEMPTS):
        if not is_retryable((yield operation)):
            return True
        yield Pause(min(0.032, 0.001 * 2**attempt) * (1 + client / CLIENTS))
    return False


def read_while_others_write(client: int, work: Sequence[Run]) -> _Steps:
    """Half of the clients create and update every run, the others read it until its last version is there."""
    for run in work:
        if client % 2 == 0:
            mine = _by(client, run)
            yield Create(mine)
            for _ in range(_UPDATES):
                following = updated(mine)
                yield CompareAndSet(mine, following)
                mine = following
        else:
            yield from _read(run.run_id)


_UPDATES = 4
_MOST_READS = 400
_LAST_READS = 10


def _read(run_id: str) -> _Steps:
    last_reads = 0
    for _ in range(_MOST_READS):
        found = yield Find(run_id)
        if not isinstance(found, Returned) or not isinstance(found.value, Run):
            yield Pause(0.0002)  # not there yet: the writers are behind
        elif found.value.version >= _UPDATES:
            last_reads += 1
            if last_reads == _LAST_READS:  # the slower writer is refused meanwhile
                return


def _by(client: int, run: Run) -> Run:
    return replace(run, stage=f"client {client}")


# -- repeating -------------------------------------------------------------------------------------------------------


def runs_for(case: Case, number: int, handle: Handle | None = None) -> list[Run]:
    """Give runs with fresh ids; stored already where a handle is given to store them with.

    Raises:
        Violation: one of them is refused, though nobody else is at work.
    """
    runs = [a_run(case) for _ in range(number)]
    if handle is not None:
        with case.silent():
            for run in runs:
                outcome = handle.call(Create(run))
                if not isinstance(outcome, Returned):
                    raise Violation(
                        f"create of {value_in_words(run)} to be accepted", outcome_in_words(outcome), "RUN-CREATE-1"
                    )
    return runs


def contended(operation: Operation) -> Hashable | None:
    """Give what a write contends for: the id of the run."""
    if isinstance(operation, Create):
        return operation.run.run_id
    return operation.expected.run_id if isinstance(operation, CompareAndSet) else None


def touched(operation: Operation) -> Hashable | None:
    """Give the id of the run that a write or a find is about."""
    return operation.run_id if isinstance(operation, Find) else contended(operation)


def until_contended(
    case: Case,
    burst: Burst,
    one_round: Callable[[int], list[Event]],
    about: Callable[[Operation], Hashable | None] = contended,
    what: str = "",
    at_least: int = 1,
) -> None:
    """Repeat rounds of a burst until enough operations overlapped with a rival's, and keep the numbers as evidence.

    Args:
        case: the check.
        burst: the way in which the clients work.
        one_round: runs and judges one round with that many runs, and gives its events.
        about: what an operation contends for.
        what: what the clients do, where a check has several bursts of one kind.
        at_least: how many rounds there are at least; each one brings the clients together again.

    Raises:
        Inconclusive: too few operations overlapped before the time for it was over.
    """
    name = f"{burst.name}{what and ': '}{what}"
    enough, budget = (
        case.budget(50, 500, 5000),
        case.budget(40.0, 90.0, 600.0),
    )  # seconds, spent only where a machine is too busy
    ends = time.monotonic() + budget
    rounds = operations = overlapped = 0
    while overlapped < enough or rounds < at_least:
        before = None if burst.suspensions is None else burst.suspensions.copy()
        events = one_round(min(64, 12 * 2**rounds))
        rounds += 1
        operations += len(events)
        overlapped += overlapping(events, about)
        evidence: dict[str, JsonValue] = {
            "clients": CLIENTS,
            "rounds": rounds,
            "operations": operations,
            "overlapping": overlapped,
        }
        case.evidence[name] = evidence
        if before is not None and burst.suspensions is not None and rounds > 1:
            methods = {event.operation.method for event in events if about(event.operation) is not None}
            if all(burst.suspensions[method] == before[method] for method in methods):
                evidence["suspensions inside calls"] = 0
                return  # no call gives up the event loop, so none can overlap with another
        if overlapped < enough and time.monotonic() > ends:
            raise Inconclusive(
                f"{name}: {overlapped} of {operations} operations overlapped with a rival's in {budget:g} s; {enough} are needed to decide"
            )


# -- judging ---------------------------------------------------------------------------------------------------------


class _Group:
    """The calls of a burst that were about one run, sorted by what came of them."""

    def __init__(self, case: Case, run_id: str, events: Sequence[Event]) -> None:
        self.run_id = run_id
        self._case = case
        self.events = events
        self.won = [event for event in events if _succeeded(event.outcome)]
        self.unknown = [event for event in events if _is_unknown(event.outcome)]
        self.retryable = [event for event in events if is_retryable(event.outcome)]

    def violation(self, expected: str, found: str, clause: str | None = None) -> Violation:
        """Give a violation, with the calls about this run alone as its steps."""
        self._case.steps[:] = [Step(f"client {event.client}", event.operation, event.outcome) for event in self.events]
        return Violation(expected, found, clause)


def _groups(case: Case, events: Iterable[Event], kind: type[Operation]) -> list[_Group]:
    by_run: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if isinstance(event.outcome, Hung):
            what = f"{operation_in_words(event.operation)} of client {event.client}"
            raise Violation(
                "every call to end within the declared wait", f"{what}: {outcome_in_words(event.outcome)}", "RUN-BOUND-1"
            )
        if isinstance(event.operation, kind):
            by_run[str(touched(event.operation))].append(event)
    return [_Group(case, run_id, group) for run_id, group in by_run.items()]


def _succeeded(outcome: Outcome) -> bool:
    return isinstance(outcome, Returned) and outcome.value is not False


def _is_unknown(outcome: Outcome) -> bool:
    """Say whether nobody can know what a call did: the store says so, or something leaves it that says nothing."""
    if isinstance(outcome, Raised):
        return not isinstance(outcome.error, StoreError) or not outcome.error.definite
    return isinstance(outcome, Unknown)


def _clients(events: Iterable[Event]) -> str:
    return ", ".join(f"client {event.client}" for event in events) or "nobody"


def _written(event: Event) -> Run:
    operation = event.operation
    if isinstance(operation, Create):
        return operation.run
    if isinstance(operation, CompareAndSet):
        return operation.updated
    raise TypeError(f"{operation.method} writes nothing")


class _Content:
    """Compares what is found with what was written, as this store keeps it."""

    def __init__(self, case: Case) -> None:
        self._model = RunStoreModel(case.claims)
        self._numbers = case.claims.numbers

    def same(self, found: object, run: Run) -> bool:
        return canonical(found, self._numbers) == self._model.stored(run).canonical


def _find(handle: Handle, group: _Group) -> object:
    outcome = handle.call(Find(group.run_id))
    if not isinstance(outcome, Returned):
        raise group.violation(f"find({group.run_id!r}) after the burst to give an answer", outcome_in_words(outcome))
    return outcome.value


def judge_creates(case: Case, handle: Handle, events: Sequence[Event]) -> int:
    """Judge a burst of creates (RUN-CREATE-3): one winner for each id, and it is the winner's run that is then found.

    Returns:
        How many ids had exactly one winner.

    Raises:
        Violation: the contract does not permit it.
    """
    content = _Content(case)
    decided = 0
    for group in _groups(case, events, Create):
        what = f"one of {CLIENTS} concurrent creates of {group.run_id!r} to succeed"
        with case.silent():
            found = _find(handle, group)
        if len(group.won) > 1:
            raise group.violation(f"at most {what}", f"{len(group.won)} reported success: {_clients(group.won)}")
        if group.won:
            _judge_winner(group, content, found)
            decided += 1
        elif not group.unknown and not group.retryable:
            raise group.violation(f"exactly {what}", "every one was refused, and none was retryable or unknown")
        elif found is not None and not any(content.same(found, _written(event)) for event in group.unknown):
            raise group.violation(f"find({group.run_id!r}) to give None, since no create succeeded", value_in_words(found))
    return decided


def _judge_winner(group: _Group, content: _Content, found: object) -> None:
    winner = group.won[0]
    if found is None:
        raise group.violation(
            f"find({group.run_id!r}) after the burst to give the run of client {winner.client}, whose create reported success",
            "None: success was reported for a record that is not there",
        )
    if not content.same(found, _written(winner)):
        raise group.violation(
            f"find({group.run_id!r}) to give {value_in_words(_written(winner))}, whose create was the one that reported success",
            value_in_words(found),
        )


def judge_updates(case: Case, handle: Handle, runs: Sequence[Run], events: Sequence[Event]) -> int:
    """Judge a burst of updates of runs that stood at version 0 (RUN-CAS-6).

    Returns:
        How many versions had exactly one winner.

    Raises:
        Violation: the contract does not permit it.
    """
    content = _Content(case)
    start = {run.run_id: run for run in runs}
    groups = _groups(case, events, CompareAndSet)
    for judge in (_judge_winners, _judge_early_refusals):
        for group in groups:
            judge(group)
    return sum(_judge_updates_of_one(group, handle, content, start[group.run_id]) for group in groups)


def judge_that_somebody_updated(case: Case, events: Sequence[Event]) -> None:
    """Judge a burst in which every client updates what it created itself: some update of each run has to succeed (RUN-CAS-1).

    As long as none does, the run stands at version 0, which is what all of them expect.

    Raises:
        Violation: all of them were refused, and none was retryable or unknown.
    """
    creators = {(str(touched(event.operation)), event.client) for event in events if _created(event)}
    for group in _groups(case, events, CompareAndSet):
        by_creators = [event for event in group.events if (group.run_id, event.client) in creators]
        if by_creators and not (group.won or group.unknown or group.retryable):
            first = by_creators[0]
            raise group.violation(
                f"one of the updates of {group.run_id!r} from version 0 to give True: it stood at version 0 during all of them",
                f"{operation_in_words(first.operation)} of client {first.client}: {outcome_in_words(first.outcome)}, and so for all others",
                "RUN-CAS-1",
            )


def _created(event: Event) -> bool:
    return isinstance(event.operation, Create) and _succeeded(event.outcome)


def _judge_updates_of_one(group: _Group, handle: Handle, content: _Content, start: Run) -> int:
    found = _find(handle, group)
    if not isinstance(found, Run):
        raise group.violation(f"find({group.run_id!r}) after the burst to give the run", value_in_words(found))
    won, unknown = _by_version(group.won), _by_version(group.unknown)
    trues, unknowns = len(group.won), len(group.unknown)
    if not trues <= found.version <= trues + unknowns:
        raise group.violation(
            f"{group.run_id!r} to gain {trues} versions, one for each True"
            + (f", and up to {unknowns} more" if unknowns else ""),
            f"it gained {found.version} (it stands at version {found.version}, from 0)",
        )
    _judge_refusals(group, won, unknown, found.version)
    last = found.version
    writers = [_written(event) for event in (*won[last - 1], *unknown[last - 1])] if last else [start]
    if not any(content.same(found, run) for run in writers):
        who = " or ".join(value_in_words(run) for run in writers) or "what a winner wrote"
        raise group.violation(f"find({group.run_id!r}) to give {who}, as the winner wrote it", value_in_words(found))
    return trues


def _by_version(events: Iterable[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        found[_expected_version(event)].append(event)
    return found


def _expected_version(event: Event) -> int:
    operation = event.operation
    return operation.expected.version if isinstance(operation, CompareAndSet) else -1


def _judge_winners(group: _Group) -> None:
    for version, winners in sorted(_by_version(group.won).items()):
        if len(winners) > 1:
            raise group.violation(
                f"at most one of the contenders for version {version} of {group.run_id!r} to get True",
                f"{len(winners)} got True: {_clients(winners)}",
            )


def _judge_early_refusals(group: _Group) -> None:
    """Judge each False: the client knew its version to be stored, so somebody has to have begun to move the run on."""
    won, unknown = _by_version(group.won), _by_version(group.unknown)
    for event in group.events:
        movers = [*won[_expected_version(event)], *unknown[_expected_version(event)]]
        if _is_false(event) and movers and not any(mover.called < event.returned for mover in movers):
            raise group.violation(
                f"{operation_in_words(event.operation)} by client {event.client} to give True: "
                f"version {_expected_version(event)} was stored, and nobody had begun to update it successfully when the call ended",
                "False",
                "RUN-CAS-1",
            )


def _judge_refusals(group: _Group, won: dict[int, list[Event]], unknown: dict[int, list[Event]], last: int) -> None:
    """Judge the versions that nobody won, though somebody tried who knew them to be stored."""
    retryable = _by_version(group.retryable)
    for version in sorted({_expected_version(event) for event in group.events if _is_false(event)}):
        if version <= last and not won[version] and not unknown[version] and not retryable[version]:
            raise group.violation(
                f"exactly one of the contenders for version {version} of {group.run_id!r} to get True",
                f"all got False, though the run stands at version {last} and nothing was retryable or unknown",
            )


def _is_false(event: Event) -> bool:
    return isinstance(event.outcome, Returned) and event.outcome.value is False


def judge_reads(case: Case, events: Sequence[Event]) -> int:
    """Judge what readers saw while others wrote: only what was, or may have been, written (RUN-FIND-3), and never older (RUN-FIND-2).

    Returns:
        How many finds gave a run.

    Raises:
        Violation: the contract does not permit it.
    """
    content = _Content(case)
    return sum(_judge_reads_of_one(group, content) for group in _groups(case, events, Operation))


def _judge_reads_of_one(group: _Group, content: _Content) -> int:
    writes = [event for event in (*group.won, *group.unknown) if not isinstance(event.operation, Find)]
    newest: dict[int, int] = defaultdict(lambda: -1)
    seen = 0
    for event in group.events:
        if not isinstance(event.operation, Find) or not isinstance(event.outcome, Returned):
            continue
        found = event.outcome.value
        if found is not None and not any(content.same(found, _written(write)) for write in writes):
            raise group.violation(
                f"find({group.run_id!r}) to give only what a successful write stored: {_versions(writes)}",
                f"client {event.client} was given {value_in_words(found)}, which no successful write stored",
                "RUN-FIND-3",
            )
        version = found.version if isinstance(found, Run) else -1
        _judge_age(group, event, writes, version, newest[event.client])
        newest[event.client] = version
        seen += found is not None
    return seen


def _judge_age(group: _Group, event: Event, writes: Sequence[Event], version: int, seen_before: int) -> None:
    acknowledged = max((_written(w).version for w in writes if _succeeded(w.outcome) and w.returned < event.called), default=-1)
    if version < max(acknowledged, seen_before):
        why = "a write of it was acknowledged before" if version < acknowledged else "the same client had seen it before"
        raise group.violation(
            f"find({group.run_id!r}) to give version {max(acknowledged, seen_before)} or newer: {why}",
            f"client {event.client} was given {'None' if version < 0 else f'version {version}'}",
            "RUN-FIND-2",
        )


def _versions(writes: Sequence[Event]) -> str:
    texts = sorted((_written(w).version, _written(w).stage) for w in writes)
    return ", ".join(f"version {version} by {stage}" for version, stage in texts) or "nothing"
