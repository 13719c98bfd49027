from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import START, a_run, json_objects, json_values, nested, runs, texts

from runcert_contract import JsonValue, Listing, Numbers, ResultStatus, Run, RunStatus, canonical


def same(left: JsonValue, right: JsonValue) -> bool:
    """Say by the words of the contract, one rule a line, whether two JSON values are equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


@given(left=json_values(), right=json_values())
def test_two_json_values_have_one_form_exactly_when_the_contract_calls_them_equal(left: JsonValue, right: JsonValue) -> None:
    expected = same(left, right)

    assert expected is (canonical(left) == canonical(right))


@given(value=json_objects(), data=st.data())
def test_the_order_of_keys_does_not_matter(value: dict[str, JsonValue], data: st.DataObject) -> None:
    shuffled = {key: value[key] for key in data.draw(st.permutations(list(value)))}

    assert canonical(value) == canonical(shuffled)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (1, 1.0),
        (0, -0.5),
        ("", None),
        ([], {}),
        ([], None),
        ([], ""),
        ("1", 1),
        ("null", None),
        (["a", "b"], ["b", "a"]),
        (["a,b"], ["a", "b"]),
        ([[1], 2], [[1, 2]]),
        ([1, 2], (1, 2)),
        ({"a": {"b": 1}}, {"a": {}, "b": 1}),
        ({"": 1}, {}),
        ({"a": None}, {}),
        ("\u00e9", "e\u0301"),
        ("\0", ""),
        (2**63, 2**63 + 1),
        (0.1, math.nextafter(0.1, 1)),
        (RunStatus.SUCCEEDED, ResultStatus.SUCCEEDED),
        (RunStatus.SUCCEEDED, "SUCCEEDED"),
        (Listing([a_run()]), Listing([a_run("run-2")])),
    ],
)
def test_values_that_are_easily_mixed_up_stay_apart(left: object, right: object) -> None:
    assert canonical(left) != canonical(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (0.0, -0.0),
        ([0.0], [-0.0]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        pytest.param(10**5000, 10**5000, id="a long integer"),
        (START, START.astimezone(timezone(timedelta(hours=9)))),
        (math.nan, math.nan),
    ],
)
def test_values_that_the_contract_calls_equal_have_one_form(left: object, right: object) -> None:
    assert canonical(left) == canonical(right)


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), (0, -0.0), ([2**60], [float(2**60)]), ({"n": -3}, {"n": -3.0})])
def test_with_numbers_json_an_integer_and_a_float_of_equal_value_are_one(left: JsonValue, right: JsonValue) -> None:
    assert canonical(left, Numbers.JSON) == canonical(right, Numbers.JSON)


@pytest.mark.parametrize(("left", "right"), [(1, 1.5), (True, 1.0), (2**53 + 1, float(2**53)), ("1", 1)])
def test_with_numbers_json_different_values_stay_apart(left: JsonValue, right: JsonValue) -> None:
    assert canonical(left, Numbers.JSON) != canonical(right, Numbers.JSON)


def test_a_naive_datetime_is_no_instant_and_never_equals_one() -> None:
    naive = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  # naive is the point

    assert canonical(naive) != canonical(naive.replace(tzinfo=UTC))


@given(run=runs())
def test_a_run_equals_a_copy_of_itself_and_differs_once_any_field_differs(run: Run) -> None:
    assert canonical(run) == canonical(replace(run))
    assert canonical(run) != canonical(replace(run, version=run.version + 1))


@given(run=runs(), text=texts())
def test_no_text_moves_from_one_field_into_the_next(run: Run, text: str) -> None:
    first, second = replace(run, stage=text + "x", failure_reason=""), replace(run, stage="", failure_reason=text + "x")

    assert canonical(first) != canonical(second)


def test_the_form_is_made_at_any_depth() -> None:
    expected = canonical(nested(1, 50_000))

    assert expected == canonical(nested(1, 50_000))
    assert expected != canonical(nested(2, 50_000))


def test_a_container_that_contains_itself_has_an_end() -> None:
    ring: list[object] = [1]
    ring.append({"ring": ring})
    twin: list[object] = [1]

    assert canonical(ring) != canonical(twin)


def test_a_container_that_is_used_twice_is_not_taken_for_one_that_contains_itself() -> None:
    shared: list[object] = [1]

    assert canonical([[1], [1]]) == canonical([shared, shared])


def test_something_foreign_is_named_with_its_module() -> None:
    assert canonical({1}) == "builtins.set {1}"
