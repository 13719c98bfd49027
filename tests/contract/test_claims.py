from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runcert_contract import (
    Bounded,
    Capability,
    Claims,
    Clause,
    Fault,
    Handles,
    Kept,
    Limits,
    LostAny,
    LostClean,
    Namespaces,
    Need,
    Promise,
    Scope,
    Stance,
    Undefined,
    Verdict,
    Volatile,
)
from runcert_contract.clauses import Applies


@pytest.mark.parametrize("outer", list(Scope))
@pytest.mark.parametrize("inner", list(Scope))
def test_a_scope_includes_itself_and_every_smaller_one(outer: Scope, inner: Scope) -> None:
    smallest_first = ("handle", "process", "host", "cluster")
    expected = smallest_first.index(outer.value) >= smallest_first.index(inner.value)

    assert expected is outer.includes(inner)


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (Kept(), "kept"),
        (Bounded(timedelta(milliseconds=1500)), "bounded(1.5 s)"),
        (LostClean(), "lost-clean"),
        (LostAny(), "lost-any"),
        (Volatile(), "volatile"),
        (Undefined(), "undefined"),
    ],
)
def test_promises_are_printed_in_the_words_of_the_contract(promise: Promise, text: str) -> None:
    assert text == promise.text


@pytest.mark.parametrize("fault", list(Fault))
def test_nothing_is_promised_for_a_fault_that_is_not_named(fault: Fault) -> None:
    assert Claims().promise(fault) == Undefined()
    assert Claims(durability={fault: Kept()}).promise(fault) == Kept()


@pytest.mark.parametrize("capability", list(Capability))
def test_a_capability_is_silent_until_something_is_said_of_it(capability: Capability) -> None:
    silent, absent, claimed = (
        Claims(),
        Claims(capabilities={capability: Stance.ABSENT}),
        Claims(capabilities={capability: Stance.CLAIMED}),
    )

    assert [Stance.SILENT, Stance.ABSENT, Stance.CLAIMED] == [c.stance(capability) for c in (silent, absent, claimed)]
    assert [False, False, True] == [c.claims(capability) for c in (silent, absent, claimed)]


def test_only_enumerates_has_an_operation_of_its_own() -> None:
    found = {capability: capability.operation for capability in Capability if capability.operation is not None}

    assert found == {Capability.ENUMERATES: "find_resumable"}


@pytest.mark.parametrize(
    ("scope", "handles", "expected"),
    [
        (Scope.HANDLE, Handles.PER_THREAD, False),
        (Scope.HANDLE, Handles.PER_TASK, False),
        (Scope.HANDLE, Handles.SHARED, True),
        (Scope.PROCESS, Handles.PER_THREAD, True),
        (Scope.CLUSTER, Handles.PER_TASK, True),
    ],
)
def test_several_clients_are_admitted_by_a_shared_handle_or_a_wider_scope(
    scope: Scope, handles: Handles, expected: bool
) -> None:
    assert expected is Claims(scope=scope, handles=handles).admits_several_clients


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (Limits(identifier=63), "at least 64 code points"),
        (Limits(identifier={"run_id": 64, "owner": 63}), "at least 64 code points"),
        (Limits(accepts_up_to=10_000), "declared together"),
        (Limits(refuses_above=10_000), "declared together"),
        (Limits(accepts_up_to=10_001, refuses_above=10_000), "must not be greater"),
        (Limits(maximum_wait=timedelta(0)), "greater than zero"),
        (Limits(precision=timedelta(0)), "at least one microsecond"),
        (Limits(page=0), "between 1 and 10,000"),
        (Limits(page=10_001), "between 1 and 10,000"),
        (Limits(precision=timedelta(hours=1)), "at most one minute"),
        (Limits(text=63), "limits.text must be at least 64"),
        (Limits(text=-5), "limits.text must be at least 64"),
        (Limits(depth=7), "limits.depth must be at least 8"),
        (Limits(accepts_up_to=10, refuses_above=10), "limits.accepts_up_to must be at least 8,192"),
        (Limits(earliest=datetime(2027, 1, 1, tzinfo=UTC)), "the years 2020 to 2040"),
        (Limits(latest=datetime(2027, 1, 1, tzinfo=UTC)), "the years 2020 to 2040"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_named(limits: Limits, problem: str) -> None:
    (found,) = limits.problems()

    assert problem in found


def test_every_problem_of_a_declaration_is_named_at_once() -> None:
    assert len(Limits(identifier=1, accepts_up_to=9_000, page=0).problems()) == 3


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(identifier=64),
        Limits(identifier={"run_id": 64}),
        Limits(accepts_up_to=10_000, refuses_above=10_000),
        Limits(page=1),
    ],
)
def test_limits_that_can_be_meant_have_no_problem(limits: Limits) -> None:
    assert limits.problems() == ()


def test_the_length_of_identifiers_is_one_for_all_fields_or_one_for_each() -> None:
    assert Limits().identifier_length("run_id") is None
    assert Limits(identifier=70).identifier_length("run_id") == 70
    assert Limits(identifier={"run_id": 80}).identifier_length("run_id") == 80
    assert Limits(identifier={"run_id": 80}).identifier_length("owner") is None


MET: dict[Need, Claims | str] = {
    Need.ENUMERATES: Claims(capabilities={Capability.ENUMERATES: Stance.CLAIMED}),
    Need.GUARDS_TERMINAL: Claims(capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED}),
    Need.ASYNCHRONOUS: Claims(asynchronous=True),
    Need.OWN_NAMESPACES: Claims(namespaces=Namespaces.OWN),
    Need.CLOSE_PROMISE: Claims(durability={Fault.CLOSE: Volatile()}),
    Need.PARITY: "parity_with",
    Need.DAMAGE: "damage",
    Need.INVENTORY: "inventory",
    Need.PURGE: "purge",
    Need.LIMITS: Claims(limits=Limits(depth=9)),
    Need.CONCURRENCY: Claims(scope=Scope.PROCESS),
    Need.VERSIONED_SCHEMA: Claims(capabilities={Capability.VERSIONED_SCHEMA: Stance.CLAIMED}),
    Need.BOUNDS_SILENCE: Claims(capabilities={Capability.BOUNDS_SILENCE: Stance.CLAIMED}),
    Need.SCHEMA: "schema",
    Need.WIRE: "wire",
    Need.OUTAGE: "outage",
    Need.EVICTING_SERVER: "evicting-server",
}
OPTIONS = {"parity_with", "wire", "evicting-server"}
UNMET = Claims(namespaces=Namespaces.SHARED)


def answer(need: Need, given: Claims | str) -> Applies:
    claims = given if isinstance(given, Claims) else UNMET
    names = frozenset({given}) if isinstance(given, str) else frozenset()
    return Clause("RUN-TEST-1", "a test", (need,)).applies_to(claims, names - OPTIONS, names & OPTIONS)


@pytest.mark.parametrize("need", list(Need))
def test_a_clause_applies_once_its_need_is_met_and_else_says_why_not(need: Need) -> None:
    without = answer(need, UNMET)

    assert answer(need, MET[need]) == Applies(None)
    assert without.verdict is Verdict.NOT_CLAIMED
    assert without.reason


def test_a_clause_about_outages_applies_by_connections_or_by_the_hook() -> None:
    assert answer(Need.OUTAGE, "wire") == answer(Need.OUTAGE, "outage") == Applies(None)


@pytest.mark.parametrize("need", [Need.ENUMERATES, Need.GUARDS_TERMINAL])
def test_a_clause_of_a_capability_that_is_declared_absent_awaits_the_proof(need: Need) -> None:
    capability = {Need.ENUMERATES: Capability.ENUMERATES, Need.GUARDS_TERMINAL: Capability.GUARDS_TERMINAL}[need]
    found = answer(need, Claims(capabilities={capability: Stance.ABSENT}))

    assert found == Applies(Verdict.UNSUPPORTED, f"capability {capability.value} is declared absent")


def test_a_clause_with_two_needs_says_the_first_that_is_not_met() -> None:
    clause = Clause("RUN-TEST-1", "a test", (Need.DAMAGE, Need.INVENTORY))

    assert clause.applies_to(UNMET, frozenset({"damage"}), frozenset()) == Applies(Verdict.NOT_CLAIMED, "no hook inventory")
    assert clause.applies_to(UNMET, frozenset({"damage", "inventory"}), frozenset()) == Applies(None)


@pytest.mark.parametrize(
    "limits", [Limits(identifier=64), Limits(text=9), Limits(depth=9), Limits(accepts_up_to=9, refuses_above=9)]
)
def test_each_declared_limit_makes_the_clause_about_limits_apply(limits: Limits) -> None:
    assert answer(Need.LIMITS, Claims(limits=limits)) == Applies(None)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_pass_and_unsupported_count(verdict: Verdict) -> None:
    expected = verdict.value in {"pass", "unsupported"}

    assert expected is verdict.counts
