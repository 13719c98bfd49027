from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.records import START, a_run, errors, json_values, listings, nested, operations, outcomes, results, runs

from runcert_contract import (
    Conflict,
    JsonValue,
    Listing,
    Operation,
    Outcome,
    Raised,
    Result,
    Returned,
    Run,
    RunStatus,
    StoreError,
    canonical,
    decode,
    encode,
)
from runcert_contract.encoding import INVALID_INPUTS, RawError, Unencodable
from runcert_contract.json_values import json_problem


def through_a_file(value: object) -> object:
    """Encode, write as text, read, decode."""
    return decode(json.loads(json.dumps(encode(value))))


@given(value=json_values())
@example(value={"$int": "5"})
@example(value={"$record": ["Run", {}]})
@example(value={"$unknown": None, "": {}})
@example(value=[-0.0, 0, False, None, ""])
def test_every_json_value_comes_back(value: JsonValue) -> None:
    assert canonical(value) == canonical(through_a_file(value))


@given(value=st.one_of(runs(), results(), listings()))
def test_every_record_comes_back(value: Run | Result | Listing) -> None:
    assert canonical(value) == canonical(through_a_file(value))


@given(value=operations())
def test_every_operation_comes_back(value: Operation) -> None:
    assert canonical(value) == canonical(through_a_file(value))


@given(value=outcomes())
def test_every_outcome_comes_back(value: Outcome) -> None:
    assert canonical(value) == canonical(through_a_file(value))


@given(error=errors())
def test_every_error_of_the_contract_comes_back_as_itself(error: StoreError) -> None:
    found = through_a_file(error)

    assert (type(error), str(error)) == (type(found), str(found))


def test_the_sign_of_zero_is_written_down_although_it_is_not_compared() -> None:
    assert encode(-0.0) == {"$float": "-0.0"}


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), 2**53 + 1, 2**63, 10**1_000, 2**4095, 2**4096, -(10**6_000)], ids=int.bit_length
)
def test_integers_come_back_exactly_however_long(value: int) -> None:
    assert value == through_a_file(value)


@pytest.mark.parametrize(
    "value", [b"", b"\0\xff", RunStatus.RUNNING, START.astimezone(ZoneInfo("Europe/Berlin")), START.replace(tzinfo=None)]
)
def test_scalars_beyond_json_come_back(value: object) -> None:
    found = through_a_file(value)

    assert (type(value), value) == (type(found), found)


def test_both_readings_of_the_hour_in_which_clocks_are_set_back_come_back() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=berlin) for fold in (0, 1))
    found = [canonical(through_a_file(instant)) for instant in (first, second)]

    assert [canonical(first.astimezone(UTC)), canonical(second.astimezone(UTC))] == found


def test_keys_that_json_does_not_have_come_back() -> None:
    value = {1: "one", None: 2, "\udfff": 3, "$int": 4, (1, 2): 5}

    assert value == through_a_file(value)


def test_a_listing_of_tuples_is_written_as_one_of_lists() -> None:
    found = through_a_file(Listing((a_run(),), ("r2",), complete=False))

    assert canonical(Listing([a_run()], ["r2"], complete=False)) == canonical(found)


@pytest.mark.parametrize("name", sorted(set(INVALID_INPUTS) - {"cycle"}))
def test_every_named_input_is_rebuilt_by_its_name(name: str) -> None:
    expected = encode(INVALID_INPUTS[name]())

    assert expected == encode(through_a_file(INVALID_INPUTS[name]()))


@pytest.mark.parametrize("name", sorted(set(INVALID_INPUTS) - {"naive-instant", "bytes", "object", "deep"}))
def test_the_named_inputs_lie_outside_the_domain_before_and_after(name: str) -> None:
    before, after = json_problem(INVALID_INPUTS[name]()), json_problem(through_a_file(INVALID_INPUTS[name]()))

    assert None not in (before, after)


def test_a_named_input_is_made_anew_each_time() -> None:
    assert INVALID_INPUTS["object"]() is not INVALID_INPUTS["object"]()


def test_nan_inside_a_record_is_named_and_comes_back_as_nan() -> None:
    found = through_a_file(a_run(input={"n": math.nan}))

    assert isinstance(found, Run)
    assert str(found.input["n"]) == "nan"


class OwnRow:
    """A value of somebody's store, without equality or representation."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("compare columns instead")

    def __hash__(self) -> int:
        raise TypeError("not hashable")

    def __repr__(self) -> str:
        raise RuntimeError("detached")


def _run_of_somebody_else() -> object:
    @dataclass
    class Run:
        run_id: str

    return Run("r1")


def _status_of_somebody_else() -> object:
    class RunStatus(Enum):
        DONE = "DONE"

    return RunStatus.DONE


class OwnText(str):
    __slots__ = ()


class OwnInstant(datetime):
    pass


class OwnInteger(int):
    pass


def _generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (OwnRow(), "OwnRow"),
        (_run_of_somebody_else(), "Run"),
        (_status_of_somebody_else(), "RunStatus"),
        ((OwnRow(), OwnRow()), "tuple"),
        ((1, 2, 3), "tuple"),
        ({1, 2}, "set"),
        (Decimal("sNaN"), "Decimal"),
        (OwnText("a"), "OwnText"),
        (OwnInteger(1), "OwnInteger"),
        (OwnInstant(2026, 1, 1, tzinfo=UTC), "OwnInstant"),
        (_generator(), "generator"),
        (Run, "type"),
        (1j, "complex"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_else_a_store_answers_keeps_the_name_of_its_type(value: object, kind: str) -> None:
    found = through_a_file(Returned(value))

    assert Returned(Unencodable(kind)) == found
    assert f"<{kind}>" == repr(Unencodable(kind))


def test_a_placeholder_is_written_as_what_it_stands_for() -> None:
    expected = encode(OwnRow())

    assert expected == encode(through_a_file(OwnRow()))


@pytest.mark.parametrize("depth", [199, 200, 300, 100_000])
def test_what_is_nested_deeper_than_anything_sensible_is_named(depth: int) -> None:
    found = through_a_file(Returned(nested("bottom", depth)))

    assert isinstance(found, Returned)
    assert isinstance(found.value, list)


def test_a_container_that_contains_itself_is_named() -> None:
    ring: dict[str, object] = {}
    ring["ring"] = [ring]

    assert encode(ring) == {"ring": [{"$invalid": "cycle"}]}


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_a_raw_error_comes_back_under_its_name() -> None:
    found = through_a_file(Raised(KeyError("k")))

    assert isinstance(found, Raised)
    assert isinstance(found.error, RawError)
    assert (found.error.kind, str(found.error)) == ("builtins.KeyError", "'k'")


def test_an_error_without_words_is_written_all_the_same() -> None:
    found = through_a_file(Unprintable())

    assert str(found) == "<its message cannot be read: RuntimeError>"


def test_an_error_that_a_store_derived_from_one_of_the_contract_is_that_one() -> None:
    class VersionConflict(Conflict):
        pass

    assert type(through_a_file(VersionConflict("v"))) is Conflict


@pytest.mark.parametrize("tag", ["$unknown", "$", "$Run", "$set"])
def test_an_unknown_tag_is_refused_with_the_tags_that_are_known(tag: str) -> None:
    with pytest.raises(ValueError, match=r"unknown tag .* this revision knows .*\$record"):
        decode({tag: 1})


@pytest.mark.parametrize(
    "value",
    [
        {"$int": "one"},
        {"$int": None},
        {"$float": []},
        {"$text": "abc"},
        {"$text": [-1]},
        {"$text": [10**30]},
        {"$instant": "yesterday"},
        {"$bytes": "a"},
        {"$enum": ["RunStatus", "SLEEPING"]},
        {"$enum": ["Colour", "RED"]},
        {"$enum": "RunStatus"},
        {"$record": ["Run", {}]},
        {"$record": ["Run", {"no_such_field": 1}]},
        {"$record": ["Nothing", {}]},
        {"$record": [["Run"], []]},
        {"$error": {"name": "AlreadyExists"}},
        {"$error": {"name": "NoSuchError", "message": "", "raw": False}},
        {"$object": [[[1], 2]]},
        {"$object": [1]},
        {"$object": [[1, 2, 3]]},
        {"$invalid": "row"},
        {"deep": [{"$int": "x"}]},
    ],
    ids=str,
)
def test_a_tag_with_the_wrong_content_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(value)


TAGS = [
    "$int",
    "$float",
    "$text",
    "$instant",
    "$naive",
    "$bytes",
    "$enum",
    "$record",
    "$error",
    "$object",
    "$invalid",
    "$unencodable",
]


@given(tag=st.sampled_from(TAGS), content=json_values())
def test_decoding_gives_a_value_or_refuses_and_nothing_else(tag: str, content: JsonValue) -> None:
    try:
        decode({tag: content})
    except ValueError:
        return


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.floats(),
        st.complex_numbers(),
        st.binary(),
        st.text(),
        st.decimals(),
        st.builds(object),
        st.builds(OwnRow),
        st.builds(KeyError, st.text()),
        st.datetimes(),
        st.dates(),
        st.uuids(),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.none() | st.integers() | st.text(), inner)
    ),
    max_leaves=10,
)


@given(value=JUNK)
def test_whatever_is_encoded_can_be_written_read_and_decoded(value: object) -> None:
    expected = json.dumps(encode(value))

    assert expected == json.dumps(encode(through_a_file(value)))
