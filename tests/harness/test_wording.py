from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from tests.records import START, a_run, following, operations, outcomes, runs, terminal_run

from runcert.wording import difference, operation_in_words, outcome_in_words, shortened, value_in_words
from runcert_contract import (
    AllClosed,
    AlreadyExists,
    CompareAndSet,
    Find,
    Hung,
    Listing,
    Numbers,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStatus,
    Unknown,
    decode,
    encode,
)


class Unprintable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (RunStatus.RUNNING, "RUNNING"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ("a\0b", "'a\\x00b'"),
        (a_run(tenant_id="t"), "Run(run_id='run-1', tenant_id='t', version=0, status=REQUESTED)"),
        (
            a_run(tenant_id="t", stage="", owner="o", input={"a": 1}),
            "Run(run_id='run-1', tenant_id='t', version=0, status=REQUESTED, owner='o', input={'a': 1})",
        ),
        (
            a_run(tenant_id="t", recovery_count=False),
            "Run(run_id='run-1', tenant_id='t', version=0, status=REQUESTED, recovery_count=False)",
        ),
        (Listing([a_run("a"), a_run("b")], ("c",), complete=False), "Listing(items=['a', 'b'], corrupt=['c'], complete=False)"),
        (
            Listing([a_run(str(n)) for n in range(9)]),
            "Listing(items=['0', '1', '2', '3', '4', '5', ... 9 in all], corrupt=[], complete=True)",
        ),
        (Unprintable(), "<Unprintable whose repr raises RuntimeError>"),
    ],
)
def test_values_are_short_and_exact_where_it_matters(value: object, words: str) -> None:
    assert words == value_in_words(value)


def test_the_attempt_token_is_in_no_words() -> None:
    assert "the-token" not in value_in_words(a_run(attempt_token="the-token"))


def test_a_long_text_is_cut_in_the_middle_and_says_how_long_it_was() -> None:
    text = "a" * 100 + "b" * 900 + "c" * 40

    assert shortened(text) == "a" * 100 + "..." + "c" * 40 + " (1040 characters)"
    assert shortened("x" * 160) == "x" * 160


def test_a_value_that_cannot_be_printed_for_its_depth_is_described() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    assert value_in_words(deep) == "<list whose repr raises RecursionError>"


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (Find("r1"), "find('r1')"),
        (AllClosed(), "close every handle, open one again"),
        (
            CompareAndSet(a_run(tenant_id="t"), following(a_run(tenant_id="t"), status=RunStatus.VALIDATING)),
            "compare_and_set(Run(run_id='run-1', tenant_id='t', version=0, status=REQUESTED), Run(run_id='run-1', tenant_id='t', version=1, status=VALIDATING))",
        ),
    ],
)
def test_an_operation_is_written_as_a_call(operation: Operation, words: str) -> None:
    assert words == operation_in_words(operation)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Returned(value=True), "True"),
        (Raised(AlreadyExists("run r1 exists")), "AlreadyExists('run r1 exists')"),
        (Raised(KeyError("k")), "the raw error KeyError(\"'k'\")"),
        (Raised(Unprintable()), "the raw error Unprintable('<its message cannot be read: RuntimeError>')"),
        (Hung(11.04), "no end after 11.0 s"),
        (Unknown("the call was cancelled"), "unknown (the call was cancelled)"),
    ],
)
def test_an_outcome_is_given_in_words(outcome: Outcome, words: str) -> None:
    assert words == outcome_in_words(outcome)


@given(operation=operations(), outcome=outcomes())
def test_what_was_written_down_reads_like_what_happened(operation: Operation, outcome: Outcome) -> None:
    again = decode(encode(operation)), decode(encode(outcome))

    assert isinstance(again[0], Operation)
    assert operation_in_words(operation) == operation_in_words(again[0])
    assert outcome_in_words(outcome) == outcome_in_words(again[1])  # type: ignore[arg-type]  # an outcome comes back as one


def test_a_raw_error_that_was_written_down_keeps_its_name() -> None:
    found = decode(encode(Raised(ZeroDivisionError("by zero"))))

    assert isinstance(found, Raised)
    assert outcome_in_words(found) == "the raw error ZeroDivisionError('by zero')"


@given(run=runs())
def test_equal_runs_have_no_difference(run: Run) -> None:
    assert difference(run, replace(run)) is None


def test_a_difference_names_the_fields_on_both_sides() -> None:
    expected, found = a_run(stage="a", owner="x"), a_run(stage="b", owner=None)

    assert difference(expected, found) == ("stage = 'a', owner = 'x'", "stage = 'b', owner = None")


def test_a_difference_follows_the_claim_on_numbers() -> None:
    expected, found = a_run(input={"n": 1}), a_run(input={"n": 1.0})

    assert difference(expected, found) == ("input = {'n': 1}", "input = {'n': 1.0}")
    assert difference(expected, found, Numbers.JSON) is None


def test_the_same_instant_in_another_zone_is_no_difference() -> None:
    assert difference(terminal_run(), terminal_run(created_at=START)) is None
