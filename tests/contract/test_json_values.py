from __future__ import annotations

import json
import math
from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum

import pytest
from hypothesis import given
from tests.records import json_values, nested, texts

from runcert_contract import JsonValue
from runcert_contract.json_values import depth_of, holds_large_integer, json_problem, shown, size_of, text_problem


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


def _ring() -> object:
    ring: dict[str, object] = {}
    ring["ring"] = [ring]
    return ring


@given(value=json_values())
def test_every_json_value_lies_in_the_domain(value: JsonValue) -> None:
    assert json_problem(value) is None


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        (math.nan, "$", "nan is not a finite number"),
        ([math.inf], "$[0]", "inf is not a finite number"),
        ({"a": [0, -math.inf]}, "$.a[1]", "-inf is not a finite number"),
        ((1, 2), "$", "tuple is not a JSON type"),
        ({1}, "$", "set is not a JSON type"),
        (b"", "$", "bytes is not a JSON type"),
        (Decimal(1), "$", "Decimal is not a JSON type"),
        (Number.ONE, "$", "Number is not a JSON type"),
        (Text("text"), "$", "Text is not a JSON type"),
        (OrderedDict(), "$", "OrderedDict is not a JSON type"),
        ("\ud800", "$", "a lone surrogate is not a Unicode scalar value"),
        ({"\udfff": 1}, "$", "in a key: a lone surrogate is not a Unicode scalar value"),
        ({1: "one"}, "$", "the key 1 is not a str"),
        ({None: 1}, "$", "the key None is not a str"),
        ({Text("key"): 1}, "$", "the key 'key' is not a str"),
        (_ring(), "$.ring[0]", "a container that contains itself has no JSON form"),
    ],
)
def test_a_value_outside_the_domain_is_named_with_its_place(value: object, where: str, why: str) -> None:
    assert f"{where}: {why}" == json_problem(value)


def test_one_list_used_twice_is_no_cycle() -> None:
    shared: list[object] = []

    assert json_problem([shared, {"again": shared}]) is None


def test_the_place_of_a_problem_stays_short_however_deep_it_lies() -> None:
    problem = json_problem(nested(math.nan, 10_000))

    assert problem is not None
    assert len(problem) < 130


@pytest.mark.parametrize("value", ["\0", ["a\0b"], {"a\0": 1}, {"a": {"b": "\0"}}])
def test_u0000_is_outside_the_domain_only_where_the_store_says_so(value: JsonValue) -> None:
    assert json_problem(value) is None
    assert "U+0000 is not kept by this store" in (json_problem(value, allow_nul=False) or "")


@pytest.mark.parametrize("value", [None, 1, b"text", ["text"]])
def test_what_is_no_str_is_no_text(value: object) -> None:
    assert f"expected a str, found {type(value).__name__}" == text_problem(value)


@given(value=texts())
def test_every_text_of_unicode_scalar_values_is_a_text(value: str) -> None:
    assert text_problem(value) is None


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (None, 0),
        ("[[", 0),
        ([], 1),
        ({}, 1),
        ([1], 1),
        ([[]], 2),
        ({"a": [1, {}], "b": 2}, 3),
        pytest.param(nested(0, 20_000), 20_000, id="deep"),
    ],
)
def test_depth_counts_containers(value: object, depth: int) -> None:
    assert depth == depth_of(value)


@given(value=json_values())
def test_size_is_the_length_of_the_canonical_json_in_utf8(value: JsonValue) -> None:
    expected = len(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())

    assert expected == size_of(value)


@given(value=json_values())
def test_size_at_a_depth_that_json_cannot_write_is_the_sum_of_the_parts(value: JsonValue) -> None:
    expected = size_of(value) + 2 * 30_000

    assert expected == size_of(nested(value, 30_000))


@pytest.mark.parametrize("digits", [78, 1000, 4000])
@pytest.mark.parametrize("sign", [1, -1])
def test_size_of_a_long_integer_at_a_great_depth_is_never_too_small(digits: int, sign: int) -> None:
    number = sign * 10 ** (digits - 1)
    exact = len(str(number))

    assert size_of(nested(number, 30_000)) - 60_000 in (exact, exact + 1)


def test_size_of_an_integer_that_python_does_not_write_in_decimal_is_still_given() -> None:
    assert size_of([10**9_999]) in (10_002, 10_003)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63 - 1, False),
        (2**63, True),
        (-(2**63), False),
        (-(2**63) - 1, True),
        ({"a": [1, {"b": 2**64}]}, True),
        (1e300, False),
        (True, False),
    ],
)
def test_integers_outside_64_bits_are_noticed_at_any_place(value: JsonValue, expected: bool) -> None:
    assert expected is holds_large_integer(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(7, "7"), ("a", "'a'"), (2**256, "an integer of 257 bits"), (-(2**20_000), "an integer of 20001 bits")],
    ids=["7", "a", "256", "20000"],
)
def test_values_are_shown_in_messages_without_writing_endless_digits(value: object, text: str) -> None:
    assert text == shown(value)
