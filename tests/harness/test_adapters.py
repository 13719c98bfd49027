from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runcert import (
    AsyncEnumeratesRuns,
    AsyncRunStore,
    Bounded,
    Capability,
    Clock,
    EnumeratesRuns,
    Fault,
    Handles,
    Kept,
    Lab,
    Limits,
    LostAny,
    RunStore,
    Scope,
    Stance,
    Undefined,
    UsageProblem,
    Volatile,
    adapter,
)
from runcert.adapters import with_maximum_wait


def yields_nothing_yet(lab: Lab) -> Iterator[RunStore]:
    yield from ()


async def yields_nothing_async(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    stores: list[Any] = []
    for store in stores:
        yield store


def returns_a_store(lab: Lab) -> object:
    return object()


def test_an_adapter_is_named_after_its_function_and_claims_little_by_default() -> None:
    made = adapter(RunStore)(yields_nothing_yet)

    assert (made.name, made.target, made.contract) == ("yields_nothing_yet", "yields-nothing-yet", "run-store")
    assert (made.claims.scope, made.claims.handles, made.claims.asynchronous) == (Scope.HANDLE, Handles.PER_THREAD, False)
    assert (made.hooks, made.options, dict(made.claims.durability)) == ({}, frozenset(), {})


def test_an_asynchronous_function_makes_an_asynchronous_adapter_with_handles_per_task() -> None:
    made = adapter(AsyncRunStore, target="mine")(yields_nothing_async)

    assert (made.target, made.claims.asynchronous, made.claims.handles) == ("mine", True, Handles.PER_TASK)


@pytest.mark.parametrize(
    ("contract", "opener"), [(EnumeratesRuns, yields_nothing_yet), (AsyncEnumeratesRuns, yields_nothing_async)]
)
def test_claiming_the_protocol_that_enumerates_claims_the_capability(contract: type, opener: Any) -> None:
    assert adapter(contract)(opener).claims.claims(Capability.ENUMERATES)


def test_what_is_said_of_a_capability_goes_before_what_the_protocol_implies() -> None:
    made = adapter(EnumeratesRuns, capabilities={Capability.ENUMERATES: Stance.SILENT})(yields_nothing_yet)

    assert made.claims.stance(Capability.ENUMERATES) is Stance.SILENT


def test_hooks_and_options_are_those_that_are_given() -> None:
    twin = adapter(AsyncRunStore)(yields_nothing_async)
    made = adapter(RunStore, damage=print, outage=print, parity_with=lambda: twin)(yields_nothing_yet)

    assert set(made.hooks) == {"damage", "outage"}
    assert made.options == frozenset({"parity_with"})


def test_calling_an_adapter_opens_a_handle(tmp_path: Path) -> None:
    made = adapter(RunStore)(yields_nothing_yet)

    assert list(made(Lab("n", tmp_path, Clock(tmp_path / "clock")))) == []


def test_the_maximum_wait_can_be_replaced_without_touching_the_adapter() -> None:
    made = adapter(RunStore, limits=Limits(text=500))(yields_nothing_yet)
    changed = with_maximum_wait(made, timedelta(seconds=1))

    assert (changed.claims.limits.maximum_wait, changed.claims.limits.text) == (timedelta(seconds=1), 500)
    assert made.claims.limits.maximum_wait == timedelta(seconds=10)


MISTAKES: dict[str, tuple[tuple[type, ...], Any, dict[str, Any], str]] = {
    "claims nothing": (
        (),
        yields_nothing_yet,
        {},
        r"claims no contract, so there is nothing to certify; write @adapter\(RunStore\)",
    ),
    "an unknown contract": (
        (dict,),
        yields_nothing_yet,
        {},
        "is not a contract of this kit; it knows RunStore, EnumeratesRuns",
    ),
    "returns": ((RunStore,), returns_a_store, {}, "must yield the open store"),
    "async def for a synchronous contract": (
        (RunStore,),
        yields_nothing_async,
        {},
        r"write @adapter\(AsyncRunStore\)",
    ),
    "def for an asynchronous contract": ((AsyncRunStore,), yields_nothing_yet, {}, r"write @adapter\(RunStore\)"),
    "limits that are none": ((RunStore,), yields_nothing_yet, {"limits": {"depth": 3}}, r"write limits=Limits\(\.\.\.\)"),
    "a limit that cannot be": ((RunStore,), yields_nothing_yet, {"limits": Limits(identifier=3)}, "at least 64 code points"),
    "a fault that cannot be tested": (
        (RunStore,),
        yields_nothing_yet,
        {"durability": {Fault.POWER_LOSS: Kept()}},
        "power-loss cannot be tested .*it tests: close",
    ),
    "bounded": (
        (RunStore,),
        yields_nothing_yet,
        {"durability": {Fault.CLOSE: Bounded(timedelta(1))}},
        "tests kept and volatile, not bounded",
    ),
    "lost-any": ((RunStore,), yields_nothing_yet, {"durability": {Fault.CLOSE: LostAny()}}, "not lost-any"),
    "undefined": ((RunStore,), yields_nothing_yet, {"durability": {Fault.CLOSE: Undefined()}}, "not undefined"),
    "a capability that cannot be tested": (
        (RunStore,),
        yields_nothing_yet,
        {"capabilities": {Capability.REPAIRS: Stance.CLAIMED}},
        "capability repairs cannot be tested",
    ),
    "absent without an operation": (
        (RunStore,),
        yields_nothing_yet,
        {"capabilities": {Capability.GUARDS_TERMINAL: Stance.ABSENT}},
        "claimed or silent, never absent",
    ),
}


@pytest.mark.parametrize(("contracts", "opener", "options", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_in_an_adapter_is_named_with_the_adapter_and_the_way_out(
    contracts: tuple[type, ...], opener: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageProblem, match=rf"^adapter {opener.__name__}.*{message}"):
        adapter(*contracts, **options)(opener)


KINDS: dict[str, tuple[Any, str]] = {
    "scope": ("process", r"scope='process' is no Scope; write scope=Scope.PROCESS \(there are HANDLE, PROCESS, HOST, CLUSTER"),
    "handles": (3, r"handles=3 is no Handles; write handles=Handles\."),
    "namespaces": ("SHARED", r"write namespaces=Namespaces.SHARED"),
    "numbers": ("json", r"write numbers=Numbers.JSON"),
    "text": (True, r"text=True is no Text"),
    "durability": ({"close": Kept()}, r"write for instance durability=\{Fault.CLOSE: Kept\(\)\}"),
    "durability ": ({Fault.CLOSE: "kept"}, r"write for instance durability="),
    "capabilities": ({Capability.ENUMERATES: True}, r"write for instance capabilities=\{Capability.GUARDS_TERMINAL: Stance"),
    "capabilities ": ([Capability.ENUMERATES], r"write for instance capabilities="),
    "errors": ({ValueError: "x"}, r"write for instance errors=\{TheirError: StoreUnavailable\}"),
    "errors ": ([ValueError], r"write for instance errors="),
    "damage": (5, "damage=5 cannot be called; write damage=the function itself"),
    "parity_with": ("other", "write parity_with=the function itself"),
    "target": ("", r'target=\'\' is no name; write target="..."'),
    "topology": (5, r'topology=5 is no name; write topology="..."'),
    "not_a_write": ("drain", r"is no set of names; write not_a_write=frozenset"),
    "limits": (Limits(maximum_wait=5), r"limits.maximum_wait is 5; it has to be a timedelta"),  # type: ignore[arg-type]
    "limits ": (Limits(text=True), "limits.text is True; it has to be a number of code points"),
    "limits  ": (Limits(earliest=datetime(2000, 1, 1)), "has to be a datetime with a time zone"),  # noqa: DTZ001  # the mistake
    "limits   ": (Limits(identifier={"run_id": "64"}), r"limits.identifier\['run_id'\] is '64'"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("option", "given", "message"), [(option.strip(), *each) for option, each in KINDS.items()])
def test_an_option_of_another_kind_is_named_with_what_to_write(option: str, given: Any, message: str) -> None:
    with pytest.raises(UsageProblem, match=rf"^adapter yields_nothing_yet: .*{message}"):
        adapter(RunStore, **{option: given})(yields_nothing_yet)


def test_options_that_are_left_out_are_no_mistake() -> None:
    made = adapter(RunStore, capabilities={}, limits=Limits(identifier={"run_id": 64}), not_a_write=frozenset({"drain"}))(
        yields_nothing_yet
    )

    assert made.claims.limits.identifier_length("run_id") == 64


@pytest.mark.parametrize("promise", [Kept(), Volatile()], ids=["kept", "volatile"])
def test_the_promises_that_can_be_tested_are_taken(promise: Kept | Volatile) -> None:
    assert adapter(RunStore, durability={Fault.CLOSE: promise})(yields_nothing_yet).claims.promise(Fault.CLOSE) == promise


def test_a_capability_that_cannot_be_tested_may_be_left_silent() -> None:
    made = adapter(RunStore, capabilities={Capability.REPAIRS: Stance.SILENT})(yields_nothing_yet)

    assert made.claims.stance(Capability.REPAIRS) is Stance.SILENT
