from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import START, a_run, changed, following, terminal_run

from runcert_contract import (
    LEGAL_MOVES,
    AllClosed,
    AlreadyExists,
    Capability,
    Claims,
    Closed,
    CompareAndSet,
    Conflict,
    Contended,
    CorruptRecord,
    Create,
    Fault,
    Find,
    FindResumable,
    Hung,
    InvalidIdentifier,
    InvalidRecord,
    Kept,
    Limits,
    Listing,
    LostClean,
    NotFound,
    Numbers,
    Operation,
    Outcome,
    OutcomeUnknown,
    Raised,
    Result,
    ResultStatus,
    Returned,
    Run,
    RunStatus,
    RunStoreModel,
    Stance,
    State,
    StoreUnavailable,
    TooLarge,
    Unknown,
    Volatile,
)
from runcert_contract.json_values import size_of
from runcert_contract.operations import is_definite, is_retryable
from runcert_contract.run_store import as_json

GUARDED = Claims(capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED, Capability.ENUMERATES: Stance.CLAIMED})
OPEN = Claims()


class Oracle:
    """Keeps the set of states in which a store may be, as a judge does."""

    def __init__(self, claims: Claims = OPEN, *stored: Run) -> None:
        self.model = RunStoreModel(claims)
        state = State()
        for run in stored:
            state = state.with_record(run.run_id, self.model.stored(run))
        self.states = frozenset({state})

    def after(self, operation: Operation, outcome: Outcome) -> frozenset[State]:
        return frozenset().union(*(self.model.step(state, operation, outcome) for state in self.states))

    def permits(self, operation: Operation, outcome: Outcome) -> bool:
        return bool(self.after(operation, outcome))

    def goes_on(self, operation: Operation, outcome: Outcome) -> Oracle:
        self.states = self.after(operation, outcome)
        assert self.states, f"not permitted: {operation} -> {outcome}"
        return self

    def finds(self, run: Run) -> bool:
        return self.permits(Find(run.run_id), Returned(run))

    def finds_nothing(self, run_id: str) -> bool:
        return self.permits(Find(run_id), Returned(None))


NEVER: list[Outcome] = [
    Hung(11.0),
    Raised(RuntimeError("raw")),
    Raised(NotFound()),
    Raised(Closed()),
    Raised(CorruptRecord()),
    Returned("yes"),
    Returned(1),
]
"""Outcomes that no operation of this contract may have while the handle is open and nothing is damaged."""

RUN = a_run()
NEXT = following(RUN, status=RunStatus.VALIDATING)
DONE = terminal_run()
ILLEGAL = following(RUN, status=RunStatus.SUCCEEDED)


def ids(value: object) -> str:
    if isinstance(value, Raised):
        return type(value.error).__name__
    if isinstance(value, Returned):
        return type(value.value).__name__ if not isinstance(value.value, bool) else str(value.value)
    return type(value).__name__


# -- create


@pytest.mark.parametrize(
    ("stored", "outcome", "expected"),
    [
        ((), Returned(RUN), True),
        ((), Returned(replace(RUN, stage="other")), False),
        ((), Returned(None), False),
        ((), Raised(AlreadyExists()), False),
        ((), Raised(InvalidRecord()), False),
        ((), Raised(InvalidIdentifier()), False),
        ((), Raised(TooLarge()), False),
        ((RUN,), Raised(AlreadyExists()), True),
        ((RUN,), Returned(RUN), False),
        ((RUN,), Raised(Conflict()), False),
        ((a_run(tenant_id="another"),), Raised(AlreadyExists()), True),
        ((DONE,), Raised(AlreadyExists()), True),
        ((DONE,), Returned(RUN), False),
        ((a_run("run-10"),), Returned(RUN), True),
    ],
    ids=ids,
)
def test_create_answers_with_the_run_exactly_when_the_id_is_free(
    stored: tuple[Run, ...], outcome: Outcome, expected: bool
) -> None:
    assert expected is Oracle(OPEN, *stored).permits(Create(RUN), outcome)


@pytest.mark.parametrize("outcome", NEVER, ids=ids)
@pytest.mark.parametrize("operation", [Create(RUN), Find("run-1"), CompareAndSet(RUN, NEXT), FindResumable("tenant")], ids=ids)
@pytest.mark.parametrize("stored", [(), (RUN,), (DONE,)], ids=["empty", "open", "done"])
def test_no_operation_may_hang_answer_something_else_or_leak_an_error(
    operation: Operation, outcome: Outcome, stored: tuple[Run, ...]
) -> None:
    assert not Oracle(GUARDED, *stored).permits(operation, outcome)


def test_a_created_run_is_found_from_then_on() -> None:
    oracle = Oracle().goes_on(Create(RUN), Returned(RUN))

    assert oracle.finds(RUN)
    assert not oracle.finds_nothing("run-1")


def test_a_refused_create_changes_nothing() -> None:
    oracle = Oracle(OPEN, RUN).goes_on(Create(a_run(stage="mine")), Raised(AlreadyExists()))

    assert oracle.finds(RUN)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (a_run(version=1), InvalidRecord),
        (a_run(input=[]), InvalidRecord),
        (a_run(owner=7, input=[]), InvalidIdentifier),
        (a_run(run_id="\ud800"), InvalidIdentifier),
    ],
    ids=["version", "record", "identifier first", "identifier"],
)
@pytest.mark.parametrize("stored", [(), (RUN,)], ids=["free", "taken"])
def test_what_the_arguments_rule_out_is_refused_whatever_is_stored(
    run: Run, error: type[Exception], stored: tuple[Run, ...]
) -> None:
    kinds = (InvalidIdentifier, InvalidRecord, TooLarge, AlreadyExists)
    permitted = {kind for kind in kinds if Oracle(OPEN, *stored).permits(Create(run), Raised(kind()))}

    assert permitted == {error}
    assert not Oracle(OPEN, *stored).permits(Create(run), Returned(run))


# -- find


@pytest.mark.parametrize(
    ("stored", "outcome", "expected"),
    [
        ((), Returned(None), True),
        ((), Returned(RUN), False),
        ((), Returned(False), False),
        ((RUN,), Returned(RUN), True),
        ((RUN,), Returned(replace(RUN, context={"a": 1})), False),
        ((RUN,), Returned(replace(RUN, created_at=START + timedelta(microseconds=1))), False),
        ((RUN,), Returned(None), False),
        ((a_run("run-10"), a_run("RUN-1")), Returned(None), True),
        ((a_run("run-10"),), Returned(a_run("run-10")), False),
    ],
    ids=ids,
)
def test_find_answers_with_what_is_stored_under_exactly_that_id(
    stored: tuple[Run, ...], outcome: Outcome, expected: bool
) -> None:
    assert expected is Oracle(OPEN, *stored).permits(Find("run-1"), outcome)


def test_a_find_creates_nothing() -> None:
    oracle = Oracle().goes_on(Find("run-1"), Returned(None))

    assert oracle.permits(Create(RUN), Returned(RUN))
    assert not oracle.permits(Create(RUN), Raised(AlreadyExists()))


# -- compare_and_set


@pytest.mark.parametrize(
    ("stored", "expected", "updated", "permitted"),
    [
        ((), RUN, NEXT, {False}),
        ((RUN,), RUN, NEXT, {True}),
        ((RUN,), replace(RUN, stage="stale", context={"a": 1}), NEXT, {True}),
        ((RUN,), a_run(version=1), a_run(version=2), {False}),
        ((a_run(version=7),), RUN, NEXT, {False}),
        ((RUN,), RUN, following(RUN), {True}),
        ((RUN,), RUN, ILLEGAL, {True, InvalidRecord}),
        ((), RUN, ILLEGAL, {False, InvalidRecord}),
        ((RUN,), RUN, a_run(version=2), {InvalidRecord}),
        ((RUN,), RUN, RUN, {InvalidRecord}),
        ((RUN,), RUN, replace(NEXT, tenant_id="other"), {InvalidRecord}),
        ((RUN,), RUN, replace(NEXT, run_id="other"), {InvalidRecord}),
        ((RUN,), RUN, replace(NEXT, created_at=START + timedelta(1)), {InvalidRecord}),
        ((RUN,), RUN, changed(NEXT, input=None), {InvalidRecord}),
        ((RUN,), RUN, changed(NEXT, input=None, owner=1), {InvalidIdentifier}),
    ],
    ids=ids,
)
def test_compare_and_set_answers(stored: tuple[Run, ...], expected: Run, updated: Run, permitted: set[object]) -> None:
    answers: dict[object, Outcome] = {True: Returned(value=True), False: Returned(value=False)}
    answers |= {kind: Raised(kind()) for kind in (InvalidRecord, InvalidIdentifier, TooLarge, AlreadyExists, Conflict)}
    oracle = Oracle(GUARDED, *stored)

    assert permitted == {name for name, outcome in answers.items() if oracle.permits(CompareAndSet(expected, updated), outcome)}


def test_true_replaces_the_run_and_false_leaves_it() -> None:
    assert Oracle(OPEN, RUN).goes_on(CompareAndSet(RUN, NEXT), Returned(value=True)).finds(NEXT)
    assert Oracle(OPEN, NEXT).goes_on(CompareAndSet(RUN, NEXT), Returned(value=False)).finds(NEXT)


def test_an_update_of_a_missing_run_inserts_nothing() -> None:
    assert Oracle().goes_on(CompareAndSet(RUN, NEXT), Returned(value=False)).finds_nothing("run-1")


SAME_OUTCOME = following(DONE, stage="archived")
OTHER_STATUS = following(DONE, status=RunStatus.FAILED)
OTHER_RESULT = following(DONE, result=Result(ResultStatus.SUCCEEDED, "other"))


UNGUARDED = "True (a store that refuses to change ended runs claims the capability guards-terminal)"


@pytest.mark.parametrize(
    ("claims", "updated", "permitted"),
    [
        (OPEN, SAME_OUTCOME, {UNGUARDED, "InvalidRecord"}),
        (OPEN, OTHER_STATUS, {UNGUARDED, "InvalidRecord"}),
        (OPEN, OTHER_RESULT, {UNGUARDED, "InvalidRecord"}),
        (GUARDED, SAME_OUTCOME, {"True", "False", "InvalidRecord"}),
        (GUARDED, OTHER_STATUS, {"False", "InvalidRecord"}),
        (GUARDED, OTHER_RESULT, {"False", "InvalidRecord"}),
    ],
    ids=ids,
)
def test_a_terminal_run_is_guarded_only_where_that_is_claimed(claims: Claims, updated: Run, permitted: set[str]) -> None:
    assert permitted == set(
        RunStoreModel(claims).permitted(next(iter(Oracle(claims, DONE).states)), CompareAndSet(DONE, updated))
    )


# -- find_resumable


OTHER = a_run("run-2", tenant_id="other")
EMPTY = a_run("run-3", tenant_id="")


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        (Listing([RUN, NEXT_2 := a_run("run-4")]), True),
        (Listing([NEXT_2, RUN]), True),
        (Listing((RUN, NEXT_2)), True),
        (Listing([RUN]), False),
        (Listing([RUN, RUN]), False),
        (Listing([RUN, NEXT_2, NEXT_2]), False),
        (Listing([RUN, NEXT_2, OTHER]), False),
        (Listing([RUN, NEXT_2, EMPTY]), False),
        (Listing([RUN, NEXT_2, terminal_run("run-5")]), False),
        (Listing([RUN, replace(NEXT_2, stage="x")]), False),
        (Listing([RUN, NEXT_2], complete=False), False),
        (Listing([RUN, NEXT_2], ["run-9"]), False),
        ([RUN, NEXT_2], False),
        (None, False),
    ],
)
def test_a_listing_holds_every_open_run_of_the_tenant_once_in_any_order(listing: object, expected: bool) -> None:
    oracle = Oracle(GUARDED, RUN, NEXT_2, OTHER, EMPTY, terminal_run("run-5"))

    assert expected is oracle.permits(FindResumable("tenant"), Returned(listing))


@pytest.mark.parametrize(("tenant", "items"), [("", [EMPTY]), ("other", [OTHER]), ("ten", []), ("%", []), ("Tenant", [])])
def test_the_tenant_is_compared_exactly_and_the_empty_string_is_one(tenant: str, items: list[Run]) -> None:
    assert Oracle(GUARDED, RUN, OTHER, EMPTY).permits(FindResumable(tenant), Returned(Listing(items)))


@pytest.mark.parametrize("tenant", ["\ud800", "x" * 65])
def test_a_tenant_that_cannot_be_one_is_refused(tenant: str) -> None:
    oracle = Oracle(replace(GUARDED, limits=Limits(identifier=64)))

    assert oracle.permits(FindResumable(tenant), Raised(InvalidIdentifier()))
    assert not oracle.permits(FindResumable(tenant), Returned(Listing()))


def test_a_new_store_is_empty() -> None:
    assert RunStoreModel(OPEN).initial == frozenset({State()})


# -- what a store may always say


@pytest.mark.parametrize("error", [Contended(), StoreUnavailable()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("operation", [Create(RUN), Find("run-1"), CompareAndSet(RUN, NEXT), FindResumable("tenant")], ids=ids)
def test_an_error_that_asks_for_another_try_changes_nothing(operation: Operation, error: Exception) -> None:
    oracle = Oracle(OPEN, DONE)

    assert oracle.states == oracle.after(operation, Raised(error))


@pytest.mark.parametrize("outcome", [Unknown("the process was killed"), Raised(OutcomeUnknown())], ids=ids)
def test_a_write_whose_outcome_is_unknown_may_take_effect_now_later_or_never(outcome: Outcome) -> None:
    oracle = Oracle().goes_on(Create(RUN), outcome)
    now = copy.copy(oracle).goes_on(Find("run-1"), Returned(RUN))
    later = copy.copy(oracle).goes_on(Find("run-1"), Returned(None))

    assert later.finds(RUN)
    assert later.finds_nothing("run-1")
    assert not now.finds_nothing("run-1")


def test_a_write_that_is_pending_takes_effect_only_where_it_would_have_been_accepted() -> None:
    oracle = (
        Oracle(OPEN, RUN)
        .goes_on(CompareAndSet(RUN, NEXT), Unknown("cancelled"))
        .goes_on(CompareAndSet(RUN, following(RUN, stage="rival")), Returned(value=True))
    )

    assert not oracle.finds(NEXT)
    assert oracle.finds(following(RUN, stage="rival"))


def test_two_writes_that_are_pending_may_take_effect_in_either_order() -> None:
    mine, yours = a_run(stage="mine"), a_run(stage="yours")
    oracle = Oracle().goes_on(Create(mine), Unknown("lost")).goes_on(Create(yours), Unknown("lost"))

    assert oracle.finds(mine)
    assert oracle.finds(yours)
    assert oracle.finds_nothing("run-1")
    assert not oracle.goes_on(Find("run-1"), Returned(mine)).finds(yours)


def test_pending_updates_of_one_chain_build_on_each_other() -> None:
    third = following(NEXT, stage="third")
    oracle = (
        Oracle(OPEN, RUN)
        .goes_on(CompareAndSet(NEXT, third), Unknown("lost"))
        .goes_on(CompareAndSet(RUN, NEXT), Unknown("lost"))
    )

    assert all(oracle.finds(run) for run in (RUN, NEXT, third))
    assert oracle.permits(CompareAndSet(NEXT, following(NEXT)), Returned(value=True))


def test_a_read_whose_outcome_is_unknown_changes_nothing() -> None:
    oracle = Oracle(OPEN, RUN).goes_on(Find("run-1"), Unknown("cancelled"))

    assert oracle.finds(RUN)
    assert not oracle.finds_nothing("run-1")


def test_an_unknown_write_with_a_value_that_contains_itself_is_judged_too() -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    oracle = Oracle().goes_on(Create(a_run(input=ring)), Unknown("cancelled"))

    assert oracle.finds_nothing("run-1")


# -- identifiers that are not portable


ODD = "a:b/c"


def test_an_odd_identifier_is_kept_or_refused() -> None:
    run = a_run(ODD)

    assert Oracle().permits(Create(run), Returned(run))
    assert Oracle().permits(Create(run), Raised(InvalidIdentifier()))
    assert not Oracle().permits(Create(run), Returned(a_run("a_b_c")))


def test_an_odd_identifier_that_was_kept_once_is_kept_by_every_method() -> None:
    run = a_run(ODD)
    oracle = Oracle().goes_on(Create(run), Returned(run))

    assert oracle.finds(run)
    assert not oracle.permits(Find(ODD), Raised(InvalidIdentifier()))
    assert not oracle.permits(CompareAndSet(run, following(run)), Raised(InvalidIdentifier()))


def test_an_odd_identifier_that_was_refused_once_is_refused_by_every_method() -> None:
    run = a_run(ODD)
    oracle = Oracle().goes_on(Find(ODD), Raised(InvalidIdentifier()))

    assert not oracle.permits(Create(run), Returned(run))
    assert not oracle.finds_nothing(ODD)
    assert oracle.permits(CompareAndSet(run, following(run)), Raised(InvalidIdentifier()))
    assert not oracle.permits(CompareAndSet(run, following(run)), Returned(value=False))


def test_what_is_ruled_for_one_field_says_nothing_of_another() -> None:
    oracle = Oracle(GUARDED).goes_on(Find(ODD), Raised(InvalidIdentifier()))

    assert oracle.permits(FindResumable(ODD), Returned(Listing()))
    assert oracle.permits(Create(a_run(owner=ODD)), Returned(a_run(owner=ODD)))


def test_a_tenant_that_was_refused_is_refused_by_create_and_by_the_listing() -> None:
    oracle = Oracle(GUARDED).goes_on(FindResumable(ODD), Raised(InvalidIdentifier()))

    assert not oracle.permits(Create(a_run(tenant_id=ODD)), Returned(a_run(tenant_id=ODD)))
    assert oracle.permits(Create(a_run(tenant_id=ODD)), Raised(InvalidIdentifier()))
    assert not oracle.permits(FindResumable(ODD), Returned(Listing()))


def test_a_refusal_of_two_odd_identifiers_does_not_say_which_of_them_it_was() -> None:
    run = a_run(ODD, owner=ODD)
    oracle = Oracle().goes_on(Create(run), Raised(InvalidIdentifier()))

    assert oracle.finds_nothing(ODD)
    assert oracle.permits(Find(ODD), Raised(InvalidIdentifier()))


def test_an_odd_identifier_comes_before_a_wrong_record_but_need_not() -> None:
    wrong = a_run(ODD, version=3)
    kept = Oracle().goes_on(Find(ODD), Returned(None))
    refused = Oracle().goes_on(Find(ODD), Raised(InvalidIdentifier()))

    assert Oracle().permits(Create(wrong), Raised(InvalidIdentifier()))
    assert Oracle().permits(Create(wrong), Raised(InvalidRecord()))
    assert not kept.permits(Create(wrong), Raised(InvalidIdentifier()))
    assert not refused.permits(Create(wrong), Raised(InvalidRecord()))


@pytest.mark.parametrize(
    ("identifier", "limits", "error", "kept"),
    [
        ("x" * 64, Limits(), False, True),
        ("x" * 255, Limits(), False, True),
        ("x" * 256, Limits(), True, True),
        ("x" * 64, Limits(identifier=64), False, True),
        ("x" * 65, Limits(identifier=64), True, False),
        ("x" * 65, Limits(identifier={"owner": 64}), False, True),
        ("x" * 1024, Limits(identifier=1024), False, True),
        ("\u00e9" * 65, Limits(identifier=64), True, False),
    ],
    ids=lambda value: f"{value[0]}*{len(value)}" if isinstance(value, str) else "",
)
def test_the_length_up_to_which_a_portable_identifier_has_to_be_kept(
    identifier: str, limits: Limits, error: bool, kept: bool
) -> None:
    oracle = Oracle(Claims(limits=limits))

    assert error is oracle.permits(Find(identifier), Raised(InvalidIdentifier()))
    assert kept is oracle.finds_nothing(identifier)


# -- limits, numbers, instants


SMALL, LARGE = a_run(stage="x" * 100), a_run(stage="x" * 200)
SIZE = size_of(as_json(SMALL))


@pytest.mark.parametrize(
    ("accepts", "refuses", "kept", "refused"),
    [
        (SIZE + 100, SIZE + 200, True, False),
        (SIZE, SIZE + 100, True, False),
        (SIZE - 1, SIZE + 100, True, True),
        (SIZE - 100, SIZE, True, True),
        (SIZE - 100, SIZE - 1, False, True),
    ],
)
def test_between_the_two_declared_sizes_a_record_may_be_kept_or_refused(
    accepts: int, refuses: int, kept: bool, refused: bool
) -> None:
    claims = Claims(limits=Limits(accepts_up_to=accepts, refuses_above=refuses))
    for operation, answer, stored in (
        (Create(SMALL), SMALL, ()),
        (CompareAndSet(RUN, following(RUN, stage="x" * 100)), True, (RUN,)),
    ):
        oracle = Oracle(claims, *stored)

        assert (kept, refused) == (oracle.permits(operation, Returned(answer)), oracle.permits(operation, Raised(TooLarge())))


def test_a_record_that_is_too_large_is_refused_before_the_id_is_looked_at() -> None:
    oracle = Oracle(Claims(limits=Limits(text=150)), RUN)

    assert oracle.permits(Create(LARGE), Raised(TooLarge()))
    assert not oracle.permits(Create(LARGE), Raised(AlreadyExists()))


@pytest.mark.parametrize(
    "change",
    [{"input": {"n": 2**63}}, {"recovery_count": 2**70}, {"result": Result(ResultStatus.ACCEPTED, output=[-(2**64)])}],
    ids=str,
)
def test_an_integer_beyond_64_bits_is_kept_exactly_or_refused(change: dict[str, Any]) -> None:
    run = a_run(**change)
    permitted = {kind for kind in (InvalidRecord, TooLarge, InvalidIdentifier) if Oracle().permits(Create(run), Raised(kind()))}

    assert permitted == {InvalidRecord, TooLarge}
    assert Oracle().permits(Create(run), Returned(run))
    assert not Oracle().permits(Create(run), Returned(replace(run, input={"n": float(2**63)})))


@pytest.mark.parametrize(("numbers", "expected"), [(Numbers.STRICT, False), (Numbers.JSON, True)])
def test_an_integer_may_come_back_as_a_float_of_equal_value_only_with_numbers_json(numbers: Numbers, expected: bool) -> None:
    oracle = Oracle(Claims(numbers=numbers), a_run(input={"n": 1}))

    assert expected is oracle.finds(a_run(input={"n": 1.0}))
    assert not oracle.finds(a_run(input={"n": 1.5}))
    assert not oracle.finds(a_run(input={"n": True}))


def test_an_instant_is_returned_as_it_was_truncated() -> None:
    oracle = Oracle(Claims(limits=Limits(precision=timedelta(seconds=1))))
    cut = a_run(created_at=START.replace(microsecond=0), updated_at=START.replace(microsecond=0))

    assert not oracle.permits(Create(RUN), Returned(RUN))
    assert oracle.goes_on(Create(RUN), Returned(cut)).finds(cut)
    assert not oracle.finds(RUN)


def test_an_update_with_the_untruncated_instant_of_creation_is_still_the_same_run() -> None:
    oracle = Oracle(Claims(limits=Limits(precision=timedelta(seconds=1))), RUN)
    cut = START.replace(microsecond=0)

    assert oracle.goes_on(CompareAndSet(RUN, NEXT), Returned(value=True)).finds(replace(NEXT, created_at=cut, updated_at=cut))


# -- the fault `close`


@pytest.mark.parametrize(
    ("promise", "kept", "gone"),
    [(Kept(), True, False), (Volatile(), True, True)],
    ids=["kept", "volatile"],
)
def test_what_is_there_after_every_handle_was_closed_follows_from_the_promise(
    promise: Kept | Volatile, kept: bool, gone: bool
) -> None:
    second = a_run("run-2")
    oracle = Oracle(Claims(durability={Fault.CLOSE: promise}), RUN, second).goes_on(AllClosed(), Returned(None))

    assert (kept, gone) == (oracle.finds(RUN), oracle.finds_nothing("run-1"))
    if gone:
        assert oracle.goes_on(Find("run-1"), Returned(None)).finds_nothing("run-2")
        assert not oracle.finds(second)


def test_a_write_that_is_pending_is_settled_when_every_handle_was_closed() -> None:
    oracle = (
        Oracle(Claims(durability={Fault.CLOSE: Kept()}))
        .goes_on(Create(RUN), Unknown("cancelled"))
        .goes_on(AllClosed(), Returned(None))
    )
    absent = copy.copy(oracle).goes_on(Find("run-1"), Returned(None))

    assert oracle.finds(RUN)
    assert not absent.finds(RUN)


def test_what_is_known_of_odd_identifiers_outlives_the_fault() -> None:
    claims = Claims(durability={Fault.CLOSE: Volatile()})
    oracle = Oracle(claims).goes_on(Find(ODD), Raised(InvalidIdentifier())).goes_on(AllClosed(), Returned(None))

    assert not oracle.finds_nothing(ODD)


def test_a_promise_that_the_model_cannot_judge_is_refused() -> None:
    oracle = Oracle(Claims(durability={Fault.CLOSE: LostClean()}))

    with pytest.raises(ValueError, match="lost-clean"):
        oracle.permits(AllClosed(), Returned(None))


def test_an_operation_of_another_contract_is_refused() -> None:
    with pytest.raises(TypeError, match="no operation Operation"):
        Oracle().permits(Operation(), Returned(None))


# -- words for messages


def test_what_is_permitted_is_said_in_words() -> None:
    oracle = Oracle(GUARDED, replace(NEXT, stage="checking"))
    (state,) = oracle.states
    words = oracle.model.permitted

    assert words(state, Find("run-1")) == (
        "the stored run, Run(run_id='run-1', version=1, status=VALIDATING, stage='checking')",
    )
    assert words(state, Find("run-2")) == ("None",)
    assert words(state, Create(RUN)) == ("AlreadyExists",)
    assert words(state, FindResumable("tenant")) == ("a complete Listing of 'run-1'",)
    assert words(state, FindResumable("nobody")) == ("a complete Listing of no run",)
    assert words(state, Find(ODD)) == ("InvalidIdentifier", "None")


def test_the_runs_that_may_be_returned_are_given_for_a_comparison_field_by_field() -> None:
    oracle = Oracle(OPEN, RUN).goes_on(CompareAndSet(RUN, NEXT), Unknown("lost"))
    (state,) = oracle.states
    found = {run.version for run in oracle.model.expected_runs(state, Find("run-1"))}

    assert found == {0, 1}


def test_states_are_equal_by_what_they_hold() -> None:
    model = RunStoreModel(OPEN)
    first, second = model.stored(a_run(input={"a": 1, "b": 2})), model.stored(a_run(input={"b": 2, "a": 1}))

    assert State().with_record("run-1", first) == State().with_record("run-1", second)
    assert model.stored(RUN) != model.stored(NEXT)
    assert first != RUN


@pytest.mark.parametrize(
    ("outcome", "definite", "retryable"),
    [
        (Returned(None), True, False),
        (Raised(AlreadyExists()), True, False),
        (Raised(Contended()), True, True),
        (Raised(OutcomeUnknown()), False, False),
        (Raised(ValueError()), False, False),
        (Unknown("killed"), False, False),
        (Hung(1.0), False, False),
    ],
    ids=ids,
)
def test_what_a_caller_knows_after_an_outcome(outcome: Outcome, definite: bool, retryable: bool) -> None:
    assert (definite, retryable) == (is_definite(outcome), is_retryable(outcome))


# -- against a store in a few lines, written without the model


@dataclass
class Naive:
    """The contract as a dictionary; it guards terminal runs and keeps every identifier."""

    runs: dict[str, Run] = field(default_factory=dict)

    def call(self, operation: Operation) -> Outcome:
        match operation:
            case Create(run):
                return self.create(run)
            case Find(run_id):
                return Returned(copy.deepcopy(self.runs.get(run_id)))
            case CompareAndSet(expected, updated):
                return self.compare_and_set(expected, updated)
            case FindResumable(tenant):
                wanted = [run for run in self.runs.values() if run.tenant_id == tenant and run.status.value not in FINAL]
                return Returned(Listing(wanted[::-1]))
        raise AssertionError(operation)

    def create(self, run: Run) -> Outcome:
        if run.version != 0:
            return Raised(InvalidRecord())
        if run.run_id in self.runs:
            return Raised(AlreadyExists())
        self.runs[run.run_id] = copy.deepcopy(run)
        return Returned(run)

    def compare_and_set(self, expected: Run, updated: Run) -> Outcome:
        if updated.version != expected.version + 1 or updated.tenant_id != expected.tenant_id:
            return Raised(InvalidRecord())
        stored = self.runs.get(expected.run_id)
        if stored is None or stored.version != expected.version:
            return Returned(value=False)
        if stored.status.value in FINAL and (stored.status, stored.result) != (updated.status, updated.result):
            return Returned(value=False)
        self.runs[updated.run_id] = copy.deepcopy(updated)
        return Returned(value=True)


FINAL = {"SUCCEEDED", "FAILED", "DENIED", "CANCELLED", "EXPIRED", "RUNTIME_FAILED"}
TENANTS = ("t1", "", "T1")
IDENTIFIERS = ("r1", "r10", "R1", "odd id")


@st.composite
def programs(draw: st.DrawFn) -> list[Operation]:
    """Draw calls that hit the same few runs, with versions near the ones that are stored."""
    tenants = dict(zip(IDENTIFIERS, draw(st.lists(st.sampled_from(TENANTS), min_size=4, max_size=4)), strict=True))
    operations: list[Operation] = []
    for _ in range(draw(st.integers(1, 14))):
        run_id = draw(st.sampled_from(IDENTIFIERS))
        tenant = draw(st.sampled_from(TENANTS)) if draw(st.integers(0, 9)) == 0 else tenants[run_id]
        run = a_run(run_id, tenant_id=tenant, version=draw(st.sampled_from([0, 0, 0, 1, 2])), stage=draw(st.sampled_from("ab")))
        status = draw(st.sampled_from([RunStatus.REQUESTED, RunStatus.VALIDATING, RunStatus.FAILED]))
        step = draw(st.sampled_from([1, 1, 1, 1, 2, 0]))
        updated = replace(
            run, version=run.version + step, tenant_id=tenants[run_id], status=status, stage=draw(st.sampled_from("ab"))
        )
        operations.append(
            draw(
                st.sampled_from(
                    [
                        Create(run),
                        Find(run_id),
                        CompareAndSet(replace(run, tenant_id=tenants[run_id]), updated),
                        FindResumable(tenant),
                    ]
                )
            )
        )
        if not isinstance(operations[-1], Create):
            continue
        tenants[run_id] = tenant
    return operations


def wrong_answers(operation: Operation, right: Outcome, before: Naive) -> Iterator[Outcome]:  # noqa: C901  # a table of cases
    """Give answers that no reading of the contract permits in place of ``right``."""
    yield from NEVER
    match operation, right:
        case Create(run), Returned():
            yield from (
                Returned(replace(run, stage=run.stage + "x")),
                Returned(replace(run, version=1)),
                Returned(None),
                Raised(AlreadyExists()),
            )
        case Create(run), Raised(AlreadyExists()):
            yield from (Returned(run), Returned(before.runs[run.run_id]), Raised(InvalidRecord()))
        case Find(run_id), Returned(None):
            yield from (Returned(a_run(run_id)), Raised(AlreadyExists()))
        case Find(_), Returned(Run() as run):
            yield from (
                Returned(None),
                Returned(replace(run, version=run.version + 1)),
                Returned(replace(run, result=Result(ResultStatus.FAILED))),
            )
        case CompareAndSet(expected, _), Returned(True):
            stored = before.runs[expected.run_id]
            if stored.status.value not in FINAL:
                yield Returned(value=False)
            yield from (Raised(Conflict()), Returned(None))
        case CompareAndSet(), Returned(False):
            yield from (Returned(value=True), Raised(Conflict()), Returned(None))
        case FindResumable(tenant), Returned(Listing(items, _, _)):
            yield from (Returned(Listing([*items, a_run("never", tenant_id=tenant)])), Returned(Listing(items, ["gone"])))
            yield Returned(Listing(items, complete=False))
            if items:
                yield from (Returned(Listing(items[1:])), Returned(Listing([*items, items[0]])), Returned(list(items)))
        case _, Raised(InvalidRecord()):
            yield from (Returned(value=True), Returned(value=False), Returned(a_run()), Raised(AlreadyExists()))


@given(program=programs())
def test_every_answer_of_a_plain_correct_store_is_permitted(program: list[Operation]) -> None:
    store, oracle = Naive(), Oracle(GUARDED)

    for operation in program:
        oracle.goes_on(operation, store.call(operation))


@given(program=programs(), data=st.data())
def test_every_wrong_answer_in_place_of_a_right_one_is_refused(program: list[Operation], data: st.DataObject) -> None:
    store, oracle = Naive(), Oracle(GUARDED)
    for operation in program:
        before = Naive(dict(store.runs))
        right = store.call(operation)
        wrong = data.draw(st.sampled_from(list(wrong_answers(operation, right, before))))

        assert not oracle.permits(operation, wrong), f"{operation} -> {wrong}, right was {right}"
        oracle.goes_on(operation, right)


@given(program=programs(), data=st.data())
def test_a_store_that_loses_or_delays_unknown_writes_is_still_permitted(program: list[Operation], data: st.DataObject) -> None:
    store, oracle = Naive(), Oracle(GUARDED)
    delayed: list[Operation] = []
    unknown = 0
    for operation in program:
        fate = data.draw(st.sampled_from(["answered", "answered", "lost", "applied", "delayed"]))
        if fate == "answered" or unknown == 3:  # each unknown write doubles the states
            oracle.goes_on(operation, store.call(operation))
            continue
        unknown += 1
        if fate == "applied":
            store.call(operation)
        if fate == "delayed":
            delayed.append(operation)
        oracle.goes_on(operation, Unknown("the caller was gone"))
        arrives_now = data.draw(st.booleans())
        if delayed and arrives_now:
            store.call(delayed.pop())

    for run_id in IDENTIFIERS:
        oracle.goes_on(Find(run_id), store.call(Find(run_id)))


@pytest.mark.parametrize("status", [status for status in RunStatus if LEGAL_MOVES[status]])
@pytest.mark.parametrize("target", list(RunStatus))
def test_a_legal_move_has_to_be_accepted_and_an_illegal_one_may_be_refused(status: RunStatus, target: RunStatus) -> None:
    before = a_run(version=3, status=status)
    legal = target is status or target in LEGAL_MOVES[status]
    update = CompareAndSet(before, following(before, status=target))
    oracle = Oracle(GUARDED, before)

    assert oracle.permits(update, Returned(value=True))
    assert legal is not oracle.permits(update, Raised(InvalidRecord()))
