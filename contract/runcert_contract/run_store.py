"""The RunStore contract: authoritative run records with a versioned compare-and-set.

Read from top to bottom: the record, its legal moves, the protocols, the clauses, and what a store has to refuse.
The executable model is in :mod:`runcert_contract.run_store_model`.  Source: section 3 of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Protocol, runtime_checkable

from runcert_contract.canonical import canonical
from runcert_contract.claims import Claims, Limits, Text
from runcert_contract.clauses import Clause, Need
from runcert_contract.errors import InvalidIdentifier, InvalidRecord, TooLarge
from runcert_contract.json_values import JsonObject, JsonValue, depth_of, json_problem, shown, size_of, text_problem

__all__ = [
    "CLAUSES",
    "IDENTITY_FIELDS",
    "LEGAL_MOVES",
    "AsyncEnumeratesRuns",
    "AsyncRunStore",
    "EnumeratesRuns",
    "Listing",
    "Result",
    "ResultStatus",
    "RetryDisposition",
    "Run",
    "RunStatus",
    "RunStore",
    "as_json",
    "check_identifier",
    "check_new_run",
    "check_run",
    "check_update",
    "run_as_stored",
    "truncated",
]


# -- the record ------------------------------------------------------------------------------------------------------


class RunStatus(Enum):
    """Where a run stands; the last six are terminal."""

    REQUESTED = "REQUESTED"
    VALIDATING = "VALIDATING"
    POLICY_EVALUATED = "POLICY_EVALUATED"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    RUNNING = "RUNNING"
    WAITING_EXTERNAL = "WAITING_EXTERNAL"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DENIED = "DENIED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    RUNTIME_FAILED = "RUNTIME_FAILED"

    @property
    def terminal(self) -> bool:
        """True when no move leads away from this status."""
        return not LEGAL_MOVES[self]


_ABANDONED = (RunStatus.DENIED, RunStatus.CANCELLED, RunStatus.EXPIRED, RunStatus.FAILED, RunStatus.RUNTIME_FAILED)

LEGAL_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    RunStatus.REQUESTED: frozenset({RunStatus.VALIDATING, *_ABANDONED}),
    RunStatus.VALIDATING: frozenset({RunStatus.POLICY_EVALUATED, *_ABANDONED}),
    RunStatus.POLICY_EVALUATED: frozenset({RunStatus.WAITING_APPROVAL, RunStatus.RUNNING, *_ABANDONED}),
    RunStatus.WAITING_APPROVAL: frozenset({RunStatus.VALIDATING, *_ABANDONED}),
    RunStatus.RUNNING: frozenset({RunStatus.WAITING_EXTERNAL, RunStatus.SUCCEEDED, *_ABANDONED}),
    RunStatus.WAITING_EXTERNAL: frozenset({RunStatus.SUCCEEDED, *_ABANDONED}),
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.DENIED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.EXPIRED: frozenset(),
    RunStatus.RUNTIME_FAILED: frozenset(),
}
"""Which status may follow which; staying in a status that is not terminal is legal too."""


class ResultStatus(Enum):
    """The outcome that a result reports; PENDING_APPROVAL and ACCEPTED are not terminal."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DENIED = "DENIED"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    CANCELLED = "CANCELLED"
    PENDING_APPROVAL = "PENDING_APPROVAL"
    ACCEPTED = "ACCEPTED"

    @property
    def terminal(self) -> bool:
        """True when the result is final."""
        return self not in (ResultStatus.PENDING_APPROVAL, ResultStatus.ACCEPTED)


class RetryDisposition(Enum):
    """What a caller may do after a result that is not a success."""

    NEVER = "NEVER"
    AFTER_BACKOFF = "AFTER_BACKOFF"
    AFTER_CORRECTION = "AFTER_CORRECTION"
    AFTER_APPROVAL = "AFTER_APPROVAL"
    MANUAL_REVIEW = "MANUAL_REVIEW"


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to."""

    status: ResultStatus
    code: str = ""
    message: str = ""
    output: JsonValue = None
    retry: RetryDisposition = RetryDisposition.NEVER


@dataclass(frozen=True, slots=True)
class Run:
    """One governed attempt of an action; the source of truth about its lifecycle.

    The constructor checks nothing: a store does (section 1 of the contract).  ``repr`` leaves out the attempt token,
    because whoever holds it may complete the run.
    """

    run_id: str
    tenant_id: str
    action_id: str
    proposal_id: str
    idempotency_key: str
    created_at: datetime
    updated_at: datetime
    version: int = 0
    status: RunStatus = RunStatus.REQUESTED
    stage: str = ""
    owner: str | None = None
    recovery_count: int = 0
    approval_id: str | None = None
    due_at: datetime | None = None
    attempt_token: str | None = field(default=None, repr=False)
    external_operation_id: str | None = None
    external_operation_metadata: JsonObject = field(default_factory=dict)
    input: JsonObject = field(default_factory=dict)
    context: JsonObject = field(default_factory=dict)
    result: Result | None = None
    failure_reason: str = ""


IDENTITY_FIELDS = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key", "created_at")
"""The fields that an update never changes (RUN-IDENTITY-1)."""

_IDENTIFIERS = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key")
_OPTIONAL_IDENTIFIERS = ("owner", "approval_id", "attempt_token", "external_operation_id")


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer of a listing.

    Attributes:
        items: every record that could be read, once, in any order.
        corrupt: the ids of the records that could not be read.
        complete: True only when each record is in ``items`` or in ``corrupt``.
    """

    items: Sequence[Run] = ()
    corrupt: Sequence[str] = ()
    complete: bool = True


# -- the protocols ---------------------------------------------------------------------------------------------------


@runtime_checkable
class RunStore(Protocol):
    """A synchronous store of runs."""

    def create(self, run: Run) -> Run:
        """Store a new run with version 0 and return it as it was stored (RUN-CREATE-1 to -5)."""
        ...

    def find(self, run_id: str) -> Run | None:
        """Give the committed run, or None when there is none under that id (RUN-FIND-1 to -3)."""
        ...

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still ``expected.version``; say whether it was (RUN-CAS-1 to -10)."""
        ...


@runtime_checkable
class EnumeratesRuns(RunStore, Protocol):
    """A synchronous store of runs with the capability ``enumerates``."""

    def find_resumable(self, tenant_id: str) -> Listing:
        """Give every run of exactly that tenant that is not terminal (RUN-RESUMABLE-1, LIST-1 to -4)."""
        ...


@runtime_checkable
class AsyncRunStore(Protocol):
    """An asynchronous store of runs."""

    async def create(self, run: Run) -> Run:
        """Store a new run with version 0 and return it as it was stored (RUN-CREATE-1 to -5)."""
        ...

    async def find(self, run_id: str) -> Run | None:
        """Give the committed run, or None when there is none under that id (RUN-FIND-1 to -3)."""
        ...

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        """Replace the run if its version is still ``expected.version``; say whether it was (RUN-CAS-1 to -10)."""
        ...


@runtime_checkable
class AsyncEnumeratesRuns(AsyncRunStore, Protocol):
    """An asynchronous store of runs with the capability ``enumerates``."""

    async def find_resumable(self, tenant_id: str) -> Listing:
        """Give every run of exactly that tenant that is not terminal (RUN-RESUMABLE-1, LIST-1 to -4)."""
        ...


# -- the clauses -----------------------------------------------------------------------------------------------------

_SEVERAL = (Need.CONCURRENCY,)
_LISTS = (Need.ENUMERATES,)

CLAUSES: tuple[Clause, ...] = (
    Clause("RUN-CREATE-1", "create stores the run; a find that begins afterwards, on any handle in scope, returns it"),
    Clause(
        "RUN-CREATE-2", "create on an id in use, in any status, raises AlreadyExists and leaves the stored record untouched"
    ),
    Clause(
        "RUN-CREATE-3",
        "of N concurrent creates of one id at most one succeeds; exactly one if no call ended retryable or unknown; success is never reported for a record that is then absent",
        _SEVERAL,
    ),
    Clause("RUN-CREATE-4", "create takes version 0; anything else is InvalidRecord"),
    Clause("RUN-CREATE-5", "run ids are unique across tenants"),
    Clause("RUN-FIND-1", "an unknown id gives None, raises nothing (but InvalidIdentifier), creates nothing"),
    Clause(
        "RUN-FIND-2",
        "a find that begins after an acknowledged write, on any handle in scope, sees it or something newer; answers never go back",
    ),
    Clause("RUN-FIND-3", "only committed state is returned"),
    Clause(
        "RUN-CAS-1",
        "compare_and_set gives True only if the stored run had expected's id and version, and then the version is expected + 1; False only if at some moment of the call the run was absent, its version differed, or a claimed guard forbade the move; any other obstacle raises",
    ),
    Clause("RUN-CAS-2", "a refused update changes nothing, nested parts included"),
    Clause(
        "RUN-CAS-3", "a version that is not expected + 1, or ids that differ, raise InvalidRecord before storage is touched"
    ),
    Clause("RUN-CAS-4", "compare_and_set of a missing run gives False, and nothing is inserted"),
    Clause("RUN-CAS-5", "an update equal to what is stored (but for the version) succeeds and advances the version"),
    Clause(
        "RUN-CAS-6",
        "of N contenders for one version at most one gets True; exactly one if none ended retryable or unknown; Trues <= versions gained <= Trues + unknowns",
        _SEVERAL,
    ),
    Clause(
        "RUN-CAS-8",
        "the store never rebases: it may resubmit the same expected version after a definite abort, and never re-reads to make a refused update fit",
    ),
    Clause(
        "RUN-CAS-9", "the conflict check uses no clock: writes within one tick, and with clocks turned back, still conflict"
    ),
    Clause("RUN-CAS-10", "of the moving fields of expected only the version is compared"),
    Clause(
        "RUN-IDENTITY-1",
        "an update that differs from expected in an identity field raises InvalidRecord (from the two arguments alone)",
    ),
    Clause(
        "RUN-TERMINAL-1",
        "an update that changes status or result of a terminal run gives False; any other update of it may give True or False",
        (Need.GUARDS_TERMINAL,),
    ),
    Clause("RUN-REUSE-1", "an id is never accepted again by create, also after purge or retention", (Need.PURGE,)),
    Clause(
        "RUN-RESUMABLE-1",
        'find_resumable returns every non-terminal run of exactly that tenant ("" is a tenant) and nothing else',
        _LISTS,
    ),
)
"""The clauses of this contract alone; section 2's topics are applied in :mod:`runcert_contract.catalogue`."""


# -- what a store has to refuse from the arguments alone -------------------------------------------------------------


def check_identifier(value: object, field_name: str, claims: Claims) -> None:
    """Refuse what cannot be an identifier of ``field_name``, or is longer than declared.

    A store may refuse more strings than this (anything that is not a portable identifier), but none of fewer.

    Args:
        value: the identifier as it was given.
        field_name: the field that it stands in; limits are declared for each.
        claims: the claims of the store.

    Raises:
        InvalidIdentifier: ``value`` is not a text, or is longer than the store declared.
    """
    problem = text_problem(value)
    limit = claims.limits.identifier_length(field_name)
    if problem is None and isinstance(value, str) and limit is not None and len(value) > limit:
        problem = f"{len(value)} code points, this store keeps {limit}"
    if problem is not None:
        raise InvalidIdentifier(f"{field_name}: {problem}; give another identifier")


def check_run(run: object, claims: Claims) -> None:
    """Refuse a run that lies outside the domain or over a limit: identifier first, then record, then size (INPUT-2).

    Args:
        run: the record as it was given.
        claims: the claims of the store.

    Raises:
        InvalidIdentifier: an identifier is no text or too long.
        InvalidRecord: a field has the wrong type, or a value has no place in the domain.
        TooLarge: a declared limit on depth, text or size is exceeded.
    """
    if not isinstance(run, Run):
        raise InvalidRecord(f"expected a Run, found {type(run).__name__}")
    _check_all((run,), claims)


def check_new_run(run: object, claims: Claims) -> None:
    """Do what :func:`check_run` does, and refuse any version but 0 (RUN-CREATE-4).

    Raises:
        InvalidIdentifier, InvalidRecord, TooLarge: as in :func:`check_run`.
    """
    if not isinstance(run, Run):
        raise InvalidRecord(f"expected a Run, found {type(run).__name__}")
    _check_all((run,), claims, lambda: _new_run_problem(run))


def check_update(expected: object, updated: object, claims: Claims) -> None:
    """Refuse an update whose two arguments already rule it out (RUN-CAS-3, RUN-IDENTITY-1).

    Raises:
        InvalidIdentifier, InvalidRecord, TooLarge: as in :func:`check_run`, for either argument; InvalidRecord also for a
            version that is not ``expected.version + 1`` and for identity fields that differ.
    """
    if not isinstance(expected, Run) or not isinstance(updated, Run):
        wrong = expected if not isinstance(expected, Run) else updated
        raise InvalidRecord(f"expected two Runs, found {type(wrong).__name__}")
    _check_all((expected, updated), claims, lambda: _update_problem(expected, updated))


def _check_all(runs: Sequence[Run], claims: Claims, problem_of_all: Callable[[], str | None] = lambda: None) -> None:
    for run in runs:
        _check_identifiers(run, claims)
    for run in runs:
        problem = _record_problem(run, claims)
        if problem is not None:
            raise InvalidRecord(f"run {run.run_id!r}: {problem}")
    problem = problem_of_all()  # only now: it compares fields, whose types have to be right
    if problem is not None:
        raise InvalidRecord(f"run {runs[-1].run_id!r}: {problem}")
    for run in runs:
        problem = _size_problem(run, claims.limits)
        if problem is not None:
            raise TooLarge(f"run {run.run_id!r}: {problem}")


def _new_run_problem(run: Run) -> str | None:
    if type(run.version) is int and run.version != 0:
        return f"a new run has version 0, found {shown(run.version)}"
    return None


def _update_problem(expected: Run, updated: Run) -> str | None:
    if updated.version != expected.version + 1:
        return f"the version of an update is expected + 1 = {shown(expected.version + 1)}, found {shown(updated.version)}"
    for name in IDENTITY_FIELDS:
        if canonical(getattr(expected, name)) != canonical(
            getattr(updated, name)
        ):  # by instant, also where clocks are set back
            return f"{name} is part of the identity and never changes; create another run instead"
    return None


def _check_identifiers(run: Run, claims: Claims) -> None:
    for name in _IDENTIFIERS:
        check_identifier(getattr(run, name), name, claims)
    for name in _OPTIONAL_IDENTIFIERS:
        if getattr(run, name) is not None:
            check_identifier(getattr(run, name), name, claims)


_Check = Callable[[object, Claims], "str | None"]


def _record_problem(run: Run, claims: Claims) -> str | None:
    for name, check in _FIELD_CHECKS.items():
        problem = check(getattr(run, name), claims)
        if problem is not None:
            return f"{name}: {problem}"
    return None


def _count_problem(value: object, _claims: Claims) -> str | None:
    if type(value) is not int:
        return f"expected an int, found {type(value).__name__}"
    return None if value >= 0 else f"expected 0 or more, found {shown(value)}"


def _text_problem(value: object, claims: Claims) -> str | None:
    return text_problem(value, allow_nul=claims.text is Text.ANY)


def _object_problem(value: object, claims: Claims) -> str | None:
    if type(value) is not dict:
        return f"expected a dict, found {type(value).__name__}"
    return json_problem(value, allow_nul=claims.text is Text.ANY)


def _instant_problem(value: object, claims: Claims) -> str | None:
    if not isinstance(value, datetime):
        return f"expected a datetime, found {type(value).__name__}"
    if value.utcoffset() is None:
        return "a naive datetime names no instant; give one with a time zone"
    if not claims.limits.earliest <= value <= claims.limits.latest:
        return f"{value.isoformat()} is outside {claims.limits.earliest.isoformat()} to {claims.limits.latest.isoformat()}"
    return None


def _optional_instant_problem(value: object, claims: Claims) -> str | None:
    return None if value is None else _instant_problem(value, claims)


def _status_problem(value: object, _claims: Claims) -> str | None:
    return None if isinstance(value, RunStatus) else f"expected a RunStatus, found {type(value).__name__}"


def _result_problem(value: object, claims: Claims) -> str | None:
    if value is None:
        return None
    if not isinstance(value, Result):
        return f"expected a Result or None, found {type(value).__name__}"
    kinds: tuple[object, object] = (value.status, value.retry)
    if not isinstance(kinds[0], ResultStatus) or not isinstance(kinds[1], RetryDisposition):
        return "status is a ResultStatus and retry a RetryDisposition"
    allow_nul = claims.text is Text.ANY
    return (
        text_problem(value.code, allow_nul=allow_nul)
        or text_problem(value.message, allow_nul=allow_nul)
        or json_problem(value.output, allow_nul=allow_nul)
    )


_FIELD_CHECKS: Mapping[str, _Check] = {
    "created_at": _instant_problem,
    "updated_at": _instant_problem,
    "due_at": _optional_instant_problem,
    "version": _count_problem,
    "recovery_count": _count_problem,
    "status": _status_problem,
    "stage": _text_problem,
    "failure_reason": _text_problem,
    "external_operation_metadata": _object_problem,
    "input": _object_problem,
    "context": _object_problem,
    "result": _result_problem,
}


def _size_problem(run: Run, limits: Limits) -> str | None:
    result = run.result
    texts = {"stage": run.stage, "failure_reason": run.failure_reason}
    values: dict[str, JsonValue] = {
        "external_operation_metadata": run.external_operation_metadata,
        "input": run.input,
        "context": run.context,
    }
    if result is not None:
        texts |= {"result.code": result.code, "result.message": result.message}
        values["result.output"] = result.output
    for name, text in texts.items():
        if limits.text is not None and len(text) > limits.text:
            return f"{name} has {len(text)} code points, this store keeps {limits.text}"
    for name, value in values.items():
        if limits.depth is not None and (depth := depth_of(value)) > limits.depth:
            return f"{name} is nested {depth} deep, this store keeps {limits.depth}"
    if limits.accepts_up_to is not None and (size := size_of(as_json(run))) > limits.accepts_up_to:
        return f"the record has {size} bytes as JSON, this store keeps {limits.accepts_up_to}"
    return None


def as_json(run: Run) -> JsonObject:
    """Give the plain JSON form of a run, by which its size is measured (instants in UTC, enums by value)."""
    return {entry.name: _plain(getattr(run, entry.name)) for entry in fields(run)}


def _plain(value: object) -> JsonValue:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="microseconds")
    if isinstance(value, Result):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    return value  # type: ignore[return-value]  # every other field of a run is a JSON value by its type


def truncated(instant: datetime, step: timedelta) -> datetime:
    """Cut an instant to a multiple of ``step`` since 1970, towards the past (section 1, "Instant").

    Args:
        instant: an aware datetime.
        step: the declared precision, at least a microsecond.
    """
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return epoch + (instant - epoch) // step * step


def run_as_stored(run: Run, limits: Limits) -> Run:
    """Give ``run`` as a store with these limits keeps it: its instants truncated to the declared precision."""
    if limits.precision == timedelta(microseconds=1):
        return run
    due_at = None if run.due_at is None else truncated(run.due_at, limits.precision)
    return replace(
        run,
        created_at=truncated(run.created_at, limits.precision),
        updated_at=truncated(run.updated_at, limits.precision),
        due_at=due_at,
    )
