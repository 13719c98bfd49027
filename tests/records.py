"""Runs for the tests of the kit, and Hypothesis strategies for every value of the contract.

Written independently of the generators of the suites, which are under test themselves.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from runcert_contract import (
    AllClosed,
    AlreadyExists,
    Closed,
    CompareAndSet,
    Contended,
    CorruptRecord,
    Create,
    Find,
    FindResumable,
    Hung,
    InvalidIdentifier,
    InvalidRecord,
    JsonValue,
    Listing,
    Misconfigured,
    NotFound,
    Operation,
    Outcome,
    OutcomeUnknown,
    PolicyRefused,
    Raised,
    Result,
    ResultStatus,
    RetryDisposition,
    Returned,
    Run,
    RunStatus,
    StoreError,
    StoreUnavailable,
    TooLarge,
    Unknown,
    Unsupported,
)

START = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)

ERRORS: tuple[type[StoreError], ...] = (
    AlreadyExists,
    Closed,
    Contended,
    CorruptRecord,
    InvalidIdentifier,
    InvalidRecord,
    Misconfigured,
    NotFound,
    OutcomeUnknown,
    PolicyRefused,
    StoreUnavailable,
    TooLarge,
    Unsupported,
)


def a_run(run_id: str = "run-1", **fields: Any) -> Run:
    """Give a run in REQUESTED."""
    given: dict[str, Any] = {
        "tenant_id": "tenant",
        "action_id": "action",
        "proposal_id": "proposal",
        "idempotency_key": "key",
        "created_at": START,
        "updated_at": START,
    }
    return Run(run_id=run_id, **(given | fields))


def following(run: Run, **fields: Any) -> Run:
    """Give the next version of a run."""
    return replace(run, **({"version": run.version + 1} | fields))


def changed(run: Run, **fields: Any) -> Run:
    """Give a run in which some fields are anything, also what their types forbid."""
    return replace(run, **fields)


def terminal_run(run_id: str = "run-1", **fields: Any) -> Run:
    """Give a run that has succeeded, at version 4."""
    given: dict[str, Any] = {"version": 4, "status": RunStatus.SUCCEEDED, "result": Result(ResultStatus.SUCCEEDED, "done")}
    return a_run(run_id, **(given | fields))


def nested(value: object, depth: int) -> object:
    """Wrap a value into lists."""
    for _ in range(depth):
        value = [value]
    return value


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Give any text of the contract, U+0000 included."""
    return st.text(st.characters(codec="utf-8"), max_size=max_size)


def keys() -> st.SearchStrategy[str]:
    """Give keys of objects, those that look like tags among them."""
    return texts(6) | st.sampled_from(["", "$int", "$record", "$", "$object", "$invalid"])


def json_values() -> st.SearchStrategy[JsonValue]:
    """Give any JSON value of the contract, integers beyond 64 bits included."""
    numbers = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    scalars: st.SearchStrategy[JsonValue] = st.none() | st.booleans() | numbers | texts()
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys(), inner, max_size=3), max_leaves=8
    )


def json_objects() -> st.SearchStrategy[dict[str, JsonValue]]:
    """Give any JSON object of the contract."""
    return st.dictionaries(keys(), json_values(), max_size=3)


def instants() -> st.SearchStrategy[datetime]:
    """Give aware instants in odd zones."""
    offsets = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
    return st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29), timezones=offsets)  # noqa: DTZ001  # bounds of a strategy are naive


def results() -> st.SearchStrategy[Result]:
    """Give any result."""
    return st.builds(
        Result,
        status=st.sampled_from(ResultStatus),
        code=texts(),
        message=texts(),
        output=json_values(),
        retry=st.sampled_from(RetryDisposition),
    )


def runs(run_ids: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Run]:
    """Give any run of the domain, in any status and version."""
    ids = texts()
    return st.builds(
        Run,
        run_id=ids if run_ids is None else run_ids,
        tenant_id=ids,
        action_id=ids,
        proposal_id=ids,
        idempotency_key=ids,
        created_at=instants(),
        updated_at=instants(),
        version=st.integers(min_value=0),
        status=st.sampled_from(RunStatus),
        stage=texts(),
        owner=st.none() | ids,
        recovery_count=st.integers(min_value=0),
        approval_id=st.none() | ids,
        due_at=st.none() | instants(),
        attempt_token=st.none() | ids,
        external_operation_id=st.none() | ids,
        external_operation_metadata=json_objects(),
        input=json_objects(),
        context=json_objects(),
        result=st.none() | results(),
        failure_reason=texts(),
    )


def listings() -> st.SearchStrategy[Listing]:
    """Give any listing."""
    return st.builds(Listing, items=st.lists(runs(), max_size=2), corrupt=st.lists(texts(), max_size=2), complete=st.booleans())


def operations() -> st.SearchStrategy[Operation]:
    """Give any operation of the RunStore contract."""
    return st.one_of(
        st.builds(Create, runs()),
        st.builds(Find, texts()),
        st.builds(CompareAndSet, runs(), runs()),
        st.builds(FindResumable, texts()),
        st.just(AllClosed()),
    )


def errors() -> st.SearchStrategy[StoreError]:
    """Give any error of the contract."""
    return st.builds(lambda kind, message: kind(message), st.sampled_from(ERRORS), texts())


def outcomes() -> st.SearchStrategy[Outcome]:
    """Give any outcome of an operation of the RunStore contract."""
    values = st.one_of(st.none(), st.booleans(), runs(), listings(), json_values())
    return st.one_of(
        st.builds(Returned, values),
        st.builds(Raised, errors()),
        st.builds(Unknown, texts()),
        st.builds(Hung, st.floats(0, 1e6)),
    )
