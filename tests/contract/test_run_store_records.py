from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import START, a_run, changed, following, instants, nested, runs

import runcert_contract
from runcert_contract import (
    IDENTITY_FIELDS,
    LEGAL_MOVES,
    AsyncEnumeratesRuns,
    AsyncRunStore,
    Claims,
    EnumeratesRuns,
    InvalidIdentifier,
    InvalidRecord,
    Limits,
    Result,
    ResultStatus,
    RetryDisposition,
    Run,
    RunStatus,
    RunStore,
    StoreError,
    Text,
    TooLarge,
    check_identifier,
    check_new_run,
    check_run,
    check_update,
    errors,
    run_as_stored,
)
from runcert_contract.errors import error_named
from runcert_contract.identifiers import is_portable
from runcert_contract.json_values import size_of
from runcert_contract.run_store import as_json, truncated

ANY = Claims()
TERMINAL = ("SUCCEEDED", "FAILED", "DENIED", "CANCELLED", "EXPIRED", "RUNTIME_FAILED")
IDENTIFIERS = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key")
OPTIONAL_IDENTIFIERS = ("owner", "approval_id", "attempt_token", "external_operation_id")


# -- statuses and moves


@pytest.mark.parametrize("status", list(RunStatus))
def test_the_last_six_statuses_are_terminal(status: RunStatus) -> None:
    expected = status.value in TERMINAL

    assert expected is status.terminal


@pytest.mark.parametrize("status", list(RunStatus))
def test_moves_lead_only_to_statuses_of_the_table_and_never_to_the_same(status: RunStatus) -> None:
    assert LEGAL_MOVES[status] <= set(RunStatus) - {status, RunStatus.REQUESTED}


@pytest.mark.parametrize("status", [status for status in RunStatus if not status.terminal])
def test_every_open_run_can_be_denied_cancelled_expired_and_failed(status: RunStatus) -> None:
    expected = {RunStatus.DENIED, RunStatus.CANCELLED, RunStatus.EXPIRED, RunStatus.FAILED, RunStatus.RUNTIME_FAILED}

    assert expected <= LEGAL_MOVES[status]


def test_every_status_can_be_reached_from_requested() -> None:
    reached = {RunStatus.REQUESTED}
    for _ in RunStatus:
        reached |= {move for status in reached for move in LEGAL_MOVES[status]}

    assert reached == set(RunStatus)


@pytest.mark.parametrize("status", list(RunStatus))
def test_success_is_reached_from_running_and_waiting_external_only(status: RunStatus) -> None:
    expected = status in (RunStatus.RUNNING, RunStatus.WAITING_EXTERNAL)

    assert expected is (RunStatus.SUCCEEDED in LEGAL_MOVES[status])


@pytest.mark.parametrize("status", list(ResultStatus))
def test_only_pending_approval_and_accepted_are_results_that_are_not_final(status: ResultStatus) -> None:
    expected = status.value not in {"PENDING_APPROVAL", "ACCEPTED"}

    assert expected is status.terminal


# -- the record


def test_the_representation_of_a_run_hides_the_attempt_token() -> None:
    run = a_run(attempt_token="whoever-holds-it-completes-the-run")

    assert "whoever-holds-it" not in repr(run)
    assert "whoever-holds-it" not in f"{run}"


def test_a_run_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        a_run().version = 1  # type: ignore[misc]  # that it is refused is the point


def test_the_constructor_checks_nothing() -> None:
    assert a_run(run_id="", version=-1, stage=None).stage is None


def test_two_runs_share_no_default() -> None:
    first, second = a_run(), a_run()

    assert first.input is not second.input


@pytest.mark.parametrize("protocol", [RunStore, AsyncRunStore, EnumeratesRuns, AsyncEnumeratesRuns])
def test_both_forms_of_a_protocol_have_the_same_operations(protocol: type) -> None:
    expected = {"create", "find", "compare_and_set"} | ({"find_resumable"} if "Enumerates" in protocol.__name__ else set())
    found = {name for name in dir(protocol) if not name.startswith("_")}

    assert expected == found
    assert {protocol.__name__.startswith("Async")} == {inspect.iscoroutinefunction(getattr(protocol, name)) for name in found}


def test_everything_public_is_exported_once_and_exists() -> None:
    names = runcert_contract.__all__

    assert sorted(set(names)) == sorted(names)
    assert all(hasattr(runcert_contract, name) for name in names)


# -- errors


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "error_named"])
def test_every_error_is_a_store_error_found_by_its_name(name: str) -> None:
    kind = error_named(name)

    assert issubclass(kind, StoreError)
    assert (kind.definite, kind.retryable) == (name != "OutcomeUnknown", name in {"Contended", "StoreUnavailable"})


def test_a_name_that_is_no_error_is_not_found() -> None:
    with pytest.raises(KeyError):
        error_named("error_named")


def test_a_conflict_and_a_corrupt_record_carry_what_they_are_about() -> None:
    conflict, corrupt = errors.Conflict("c", expected=1, actual=None), errors.CorruptRecord("d", record="run-1")

    assert (conflict.expected, conflict.actual, corrupt.record) == (1, None, "run-1")


# -- identifiers


@pytest.mark.parametrize("value", ["a", "0", "_", "CON", "nul.txt", "a.", "a-b_c.d", "x" * 64])
def test_portable_identifiers(value: str) -> None:
    assert is_portable(value)


@pytest.mark.parametrize("value", ["", ".a", "-a", "a b", "a\n", "\u00e9", "a/b", "a:b", "%", "x" * 65, "a\0"])
def test_any_other_string_is_not_portable(value: str) -> None:
    assert not is_portable(value)


def test_a_store_that_declares_longer_identifiers_accepts_longer_ones() -> None:
    assert is_portable("x" * 70, 70)
    assert not is_portable("x" * 71, 70)


@pytest.mark.parametrize("value", ["", " ", "\0", "../x", "\U0001f600", "x" * 10_000])
def test_an_odd_identifier_may_be_kept_where_no_length_is_declared(value: str) -> None:
    check_identifier(value, "run_id", ANY)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "expected a str, found NoneType"),
        (7, "found int"),
        (b"a", "found bytes"),
        ("\ud800", "lone surrogate"),
        ("x" * 71, "this store keeps 70"),
    ],
)
def test_what_cannot_be_an_identifier_is_refused_with_the_name_of_the_field(value: object, problem: str) -> None:
    with pytest.raises(InvalidIdentifier, match=rf"^owner: .*{problem}"):
        check_identifier(value, "owner", Claims(limits=Limits(identifier=70)))


def test_the_limit_of_one_field_is_not_that_of_another() -> None:
    claims = Claims(limits=Limits(identifier={"run_id": 64}))
    check_identifier("x" * 65, "tenant_id", claims)

    with pytest.raises(InvalidIdentifier, match="run_id"):
        check_identifier("x" * 65, "run_id", claims)


# -- what a store has to refuse from the arguments alone


@given(run=runs())
def test_every_run_of_the_domain_is_accepted(run: Run) -> None:
    check_run(run, ANY)
    check_new_run(replace(run, version=0), ANY)
    check_update(run, following(run), ANY)


@pytest.mark.parametrize("name", [*IDENTIFIERS, *OPTIONAL_IDENTIFIERS])
@pytest.mark.parametrize("value", [7, "\ud800"])
def test_every_identifier_of_a_run_is_looked_at(name: str, value: object) -> None:
    with pytest.raises(InvalidIdentifier, match=name):
        check_run(changed(a_run(), **{name: value}), ANY)


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_that_every_run_has_is_never_null(name: str) -> None:
    with pytest.raises(InvalidIdentifier, match=name):
        check_run(changed(a_run(), **{name: None}), ANY)


NAIVE = datetime(2026, 1, 2)  # noqa: DTZ001  # naive is the point
RECORD_PROBLEMS: list[tuple[str, object, str]] = [
    ("created_at", NAIVE, "created_at: a naive datetime names no instant"),
    ("updated_at", "2026-01-02", "updated_at: expected a datetime, found str"),
    ("updated_at", None, "updated_at: expected a datetime, found NoneType"),
    ("due_at", NAIVE, "due_at: a naive datetime"),
    ("due_at", datetime(1969, 12, 31, tzinfo=UTC), "due_at: .* is outside"),
    ("created_at", datetime(9999, 12, 31, tzinfo=UTC), "created_at: .* is outside"),
    ("version", -1, "version: expected 0 or more, found -1"),
    ("version", True, "version: expected an int, found bool"),
    ("version", 1.0, "version: expected an int, found float"),
    ("recovery_count", None, "recovery_count: expected an int"),
    ("recovery_count", -(2**300), "recovery_count: expected 0 or more, found an integer of 301 bits"),
    ("status", "REQUESTED", "status: expected a RunStatus, found str"),
    ("stage", None, "stage: expected a str"),
    ("failure_reason", "\udfff", "failure_reason: a lone surrogate"),
    ("input", [], "input: expected a dict, found list"),
    ("context", None, "context: expected a dict"),
    ("external_operation_metadata", {1: 2}, "external_operation_metadata: .*the key 1 is not a str"),
    ("input", {"n": float("nan")}, "input: .*not a finite number"),
    ("result", "done", "result: expected a Result or None, found str"),
    ("result", Result("SUCCEEDED"), "result: status is a ResultStatus"),  # type: ignore[arg-type]  # the wrong type is the point
    ("result", Result(ResultStatus.FAILED, retry="NEVER"), "result: status is a ResultStatus and retry"),  # type: ignore[arg-type]  # as above
    ("result", Result(ResultStatus.FAILED, code=None), "result: expected a str"),  # type: ignore[arg-type]  # as above
    ("result", Result(ResultStatus.FAILED, message="\ud800"), "result: a lone surrogate"),
    ("result", Result(ResultStatus.FAILED, output=(1, 2)), "result: .*tuple is not a JSON type"),  # type: ignore[arg-type]  # as above
]


@pytest.mark.parametrize(
    ("name", "value", "problem"), RECORD_PROBLEMS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_value_outside_the_domain_is_refused_with_run_and_field(name: str, value: object, problem: str) -> None:
    with pytest.raises(InvalidRecord, match=f"^run 'run-1': {problem}"):
        check_run(changed(a_run(), **{name: value}), ANY)


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "\0"},
        {"failure_reason": "a\0"},
        {"input": {"\0": 1}},
        {"context": {"a": ["\0"]}},
        {"external_operation_metadata": {"a": "\0"}},
        {"result": Result(ResultStatus.FAILED, code="\0")},
        {"result": Result(ResultStatus.FAILED, message="\0")},
        {"result": Result(ResultStatus.FAILED, output="\0")},
    ],
    ids=str,
)
def test_u0000_is_refused_everywhere_by_a_store_that_keeps_none(change: dict[str, Any]) -> None:
    check_run(changed(a_run(), **change), ANY)

    with pytest.raises(InvalidRecord, match="text=no-nul"):
        check_run(changed(a_run(), **change), Claims(text=Text.NO_NUL))


def test_u0000_in_an_identifier_is_not_forbidden_by_text_no_nul() -> None:
    check_identifier("a\0b", "run_id", Claims(text=Text.NO_NUL))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stage": "xxxx"}, "stage has 4 code points, this store keeps 3"),
        ({"failure_reason": "xxxx"}, "failure_reason has 4"),
        ({"result": Result(ResultStatus.FAILED, code="xxxx")}, "result.code has 4"),
        ({"result": Result(ResultStatus.FAILED, message="xxxx")}, "result.message has 4"),
        ({"input": {"a": [[]]}}, "input is nested 3 deep, this store keeps 2"),
        ({"context": {"a": [{}]}}, "context is nested 3 deep"),
        ({"external_operation_metadata": {"a": [[]]}}, "external_operation_metadata is nested 3 deep"),
        ({"result": Result(ResultStatus.FAILED, output=[[[]]])}, "result.output is nested 3 deep"),
    ],
    ids=str,
)
def test_a_value_over_a_declared_limit_is_too_large(change: dict[str, Any], problem: str) -> None:
    claims = Claims(limits=Limits(text=3, depth=2))

    with pytest.raises(TooLarge, match=f"^run 'run-1': {problem}"):
        check_run(changed(a_run(), **change), claims)


@pytest.mark.parametrize(
    "change",
    [{"stage": "x\U0001f600x"}, {"input": {"a": []}}, {"result": Result(ResultStatus.FAILED, "xxx", "xxx", [[]])}],
    ids=str,
)
def test_a_value_at_a_declared_limit_is_accepted(change: dict[str, Any]) -> None:
    check_run(changed(a_run(), **change), Claims(limits=Limits(text=3, depth=2)))


def test_the_size_of_a_record_is_that_of_its_canonical_json() -> None:
    run = a_run(input={"text": "\u00e9" * 10})
    size = size_of(as_json(run))
    check_run(run, Claims(limits=Limits(accepts_up_to=size, refuses_above=size)))

    with pytest.raises(TooLarge, match=f"the record has {size} bytes as JSON, this store keeps {size - 1}"):
        check_run(run, Claims(limits=Limits(accepts_up_to=size - 1, refuses_above=size - 1)))


def test_the_json_form_of_a_run_holds_every_field_as_plain_json() -> None:
    run = a_run(
        result=Result(ResultStatus.FAILED, "c", "m", [1], RetryDisposition.NEVER),
        due_at=START.astimezone(timezone(timedelta(hours=2))),
    )
    form = as_json(run)

    assert {entry.name for entry in fields(run)} == set(form)
    assert form["result"] == {"status": "FAILED", "code": "c", "message": "m", "output": [1], "retry": "NEVER"}
    assert form["due_at"] == "2026-03-04T05:06:07.891011+00:00"


Check = Callable[[object], None]
NOT_RUNS: dict[str, Check] = {
    "check_run": lambda value: check_run(value, ANY),
    "check_new_run": lambda value: check_new_run(value, ANY),
    "check_update, expected": lambda value: check_update(value, a_run(), ANY),
    "check_update, updated": lambda value: check_update(a_run(), value, ANY),
}


@pytest.mark.parametrize("check", NOT_RUNS.values(), ids=list(NOT_RUNS))
@pytest.mark.parametrize("value", [None, "run-1", {"run_id": "run-1"}, Run])
def test_what_is_no_run_is_an_invalid_record(check: Check, value: object) -> None:
    with pytest.raises(InvalidRecord, match=f"found {type(value).__name__}"):
        check(value)


@pytest.mark.parametrize("version", [1, 2, 2**300])
def test_a_new_run_has_version_0(version: int) -> None:
    with pytest.raises(InvalidRecord, match="a new run has version 0"):
        check_new_run(a_run(version=version), ANY)


@pytest.mark.parametrize("version", [0, 3, 4, 6, 2**300])
def test_an_update_has_the_version_after_the_expected_one(version: int) -> None:
    with pytest.raises(InvalidRecord, match="the version of an update is expected \\+ 1 = 5"):
        check_update(a_run(version=4), a_run(version=version), ANY)


@pytest.mark.parametrize("name", IDENTITY_FIELDS)
def test_an_update_keeps_every_field_of_the_identity(name: str) -> None:
    other = START + timedelta(microseconds=1) if name == "created_at" else "other"

    with pytest.raises(InvalidRecord, match=f"{name} is part of the identity"):
        check_update(a_run(), changed(a_run(version=1), **{name: other}), ANY)


def test_the_same_instant_in_another_zone_is_the_same_identity() -> None:
    check_update(a_run(), a_run(version=1, created_at=START.astimezone(timezone(timedelta(hours=5)))), ANY)


def test_the_two_readings_of_an_hour_that_comes_twice_are_two_identities() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    with pytest.raises(InvalidRecord, match="created_at"):
        check_update(a_run(created_at=first), a_run(version=1, created_at=first.replace(fold=1)), ANY)


LARGE = {"stage": "x" * 4}
LIMITED = Claims(limits=Limits(text=3))
WRONG = {"context": None}
ODD = {"owner": 7}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (LARGE | WRONG | ODD | {"version": 9}, InvalidIdentifier),
        (LARGE | WRONG | {"version": 9}, InvalidRecord),
        (LARGE | {"version": 9}, InvalidRecord),
        (LARGE, TooLarge),
    ],
    ids=["identifier", "record", "version", "size"],
)
def test_refusals_of_a_new_run_come_in_the_order_identifier_record_size(
    change: dict[str, Any], error: type[StoreError]
) -> None:
    with pytest.raises(error) as refusal:
        check_new_run(changed(a_run(), **change), LIMITED)

    assert error is type(refusal.value)


@pytest.mark.parametrize(
    ("expected", "updated", "error"),
    [
        (LARGE | WRONG, LARGE | ODD, InvalidIdentifier),
        (ODD, WRONG, InvalidIdentifier),
        (LARGE, WRONG, InvalidRecord),
        (LARGE, {"version": 7}, InvalidRecord),
        (LARGE, {"tenant_id": "other"}, InvalidRecord),
        (LARGE, {}, TooLarge),
        ({}, LARGE, TooLarge),
    ],
    ids=str,
)
def test_refusals_of_an_update_come_in_that_order_over_both_arguments(
    expected: dict[str, Any], updated: dict[str, Any], error: type[StoreError]
) -> None:
    with pytest.raises(error) as refusal:
        check_update(changed(a_run(), **expected), changed(a_run(), **({"version": 1} | updated)), LIMITED)

    assert error is type(refusal.value)


def test_a_version_that_is_no_number_is_named_before_versions_are_compared() -> None:
    with pytest.raises(InvalidRecord, match="version: expected an int, found str"):
        check_update(a_run(version="1"), a_run(version=2), ANY)


def test_a_value_nested_too_deep_for_json_is_refused_by_its_depth() -> None:
    with pytest.raises(TooLarge, match="nested 20001 deep"):
        check_run(a_run(input={"a": nested(0, 20_000)}), Claims(limits=Limits(depth=64)))


# -- instants


@given(instant=instants(), step=st.timedeltas(timedelta(microseconds=1), timedelta(days=2)))
def test_an_instant_is_truncated_to_a_multiple_of_the_step_towards_the_past(instant: datetime, step: timedelta) -> None:
    cut = truncated(instant, step)

    assert timedelta(0) <= instant - cut < step
    assert (cut - datetime(1970, 1, 1, tzinfo=UTC)) % step == timedelta(0)


def test_an_instant_before_1970_is_truncated_towards_the_past_too() -> None:
    found = truncated(datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC), timedelta(seconds=1))

    assert found == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_a_run_is_stored_with_each_of_its_instants_truncated() -> None:
    stored = run_as_stored(a_run(due_at=START), Limits(precision=timedelta(seconds=1)))
    expected = START.replace(microsecond=0)

    assert (expected, expected, expected) == (stored.created_at, stored.updated_at, stored.due_at)


def test_a_run_without_a_due_time_is_stored_without_one() -> None:
    assert run_as_stored(a_run(), Limits(precision=timedelta(seconds=1))).due_at is None


@given(run=runs())
def test_a_store_that_keeps_microseconds_keeps_a_run_as_it_is(run: Run) -> None:
    assert run is run_as_stored(run, Limits())
