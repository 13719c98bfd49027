"""What the options of an adapter have to be: of the right kind, not at odds with each other, and testable by this catalogue."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from runcert.problems import UsageProblem
from runcert_contract import (
    Capability,
    Claims,
    Fault,
    Handles,
    Kept,
    Limits,
    Namespaces,
    Numbers,
    Promise,
    Scope,
    Stance,
    StoreError,
    Text,
    Volatile,
)
from runcert_contract.catalogue import TESTABLE_CAPABILITIES, TESTABLE_FAULTS

__all__ = ["check_claims", "check_options"]

_CHOICES: Mapping[str, type[Enum]] = {
    "scope": Scope,
    "handles": Handles,
    "namespaces": Namespaces,
    "numbers": Numbers,
    "text": Text,
}
_FUNCTIONS = ("prepare", "dispose", "parity_with", "damage", "inventory", "age", "purge", "schema", "outage")
_LIMITS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "identifier": ((int, Mapping, type(None)), "a number of code points, or a mapping from fields to numbers"),
    "text": ((int, type(None)), "a number of code points"),
    "depth": ((int, type(None)), "a number of levels"),
    "accepts_up_to": ((int, type(None)), "a number of bytes"),
    "refuses_above": ((int, type(None)), "a number of bytes"),
    "precision": ((timedelta,), "a timedelta"),
    "earliest": ((datetime,), "a datetime with a time zone"),
    "latest": ((datetime,), "a datetime with a time zone"),
    "maximum_wait": ((timedelta,), "a timedelta, for instance timedelta(seconds=5)"),
    "page": ((int,), "a number of records"),
}


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Insist that each option is of its kind.

    Args:
        name: the adapter.
        options: what was given, by name; None stands for what was left out.

    Raises:
        UsageProblem: one of them is not, with what to write instead.
    """
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        wrong = _what_is_wrong(option, value)
        if wrong:
            raise UsageProblem(f"adapter {name}: {option}={value!r} {wrong}")
    limits = given.get("limits", Limits())
    for field, (kinds, kind) in _LIMITS.items():
        value = getattr(limits, field)
        naive = isinstance(value, datetime) and value.tzinfo is None
        if not isinstance(value, kinds) or isinstance(value, bool) or naive:
            raise UsageProblem(f"adapter {name}: limits.{field} is {value!r}; it has to be {kind}")
    if isinstance(limits.identifier, Mapping):
        for field, number in limits.identifier.items():
            if not isinstance(number, int):
                raise UsageProblem(
                    f"adapter {name}: limits.identifier[{field!r}] is {number!r}; it has to be a number of code points"
                )


def _what_is_wrong(option: str, value: Any) -> str:
    """Say what is wrong with the kind of an option; empty where nothing is."""
    if option in _CHOICES:
        return _not_of(_CHOICES[option], option, value)
    if option in _FUNCTIONS:
        return "" if callable(value) else f"cannot be called; write {option}=the function itself"
    if option in ("target", "topology"):
        return "" if isinstance(value, str) and value else f'is no name; write {option}="..."'
    if option == "limits":
        return "" if isinstance(value, Limits) else "is no Limits; write limits=Limits(...)"
    if option == "not_a_write":
        names = isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(each, str) for each in value)
        return "" if names else 'is no set of names; write not_a_write=frozenset({"method"})'
    return _not_a_mapping(option, value)


def _not_of(choices: type[Enum], option: str, value: Any) -> str:
    if isinstance(value, choices):
        return ""
    meant = next((choice for choice in choices if value in (choice.value, choice.name)), next(iter(choices)))
    known = ", ".join(choice.name for choice in choices)
    return f"is no {choices.__name__}; write {option}={choices.__name__}.{meant.name} (there are {known})"


def _not_a_mapping(option: str, value: Any) -> str:
    """Say what is wrong with an option that maps things to what is said of them."""
    if option == "durability":
        fine, way = _maps(value, Fault, (Promise,)), "durability={Fault.CLOSE: Kept()}"
    elif option == "capabilities":
        fine, way = _maps(value, Capability, (Stance,)), "capabilities={Capability.GUARDS_TERMINAL: Stance.CLAIMED}"
    else:
        fine = isinstance(value, Mapping) and all(
            _is_class(k, BaseException) and _is_class(v, StoreError) for k, v in value.items()
        )
        way = f"{option}={{TheirError: StoreUnavailable}}"
    return "" if fine else f"is not what is needed; write for instance {way}"


def _maps(value: Any, key: type, values: tuple[type, ...]) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, key) and isinstance(v, values) for k, v in value.items())


def _is_class(value: Any, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def check_claims(claims: Claims, name: str) -> None:
    """Insist that claims do not contradict themselves, and that this revision of the catalogue can test them.

    Raises:
        UsageProblem: they do, or it cannot.
    """
    for problem in claims.limits.problems():
        raise UsageProblem(f"adapter {name}: {problem}")
    for fault, promise in claims.durability.items():
        if fault not in TESTABLE_FAULTS:
            can = ", ".join(sorted(known.value for known in TESTABLE_FAULTS))
            raise UsageProblem(
                f"adapter {name}: a promise for {fault.value} cannot be tested by this catalogue revision (it tests: {can}); leave it out"
            )
        if not isinstance(promise, (Kept, Volatile)):
            raise UsageProblem(
                f"adapter {name}: for {fault.value} this catalogue revision tests kept and volatile, not {promise.text}"
            )
    for capability, stance in claims.capabilities.items():
        if stance is not Stance.SILENT and capability not in TESTABLE_CAPABILITIES:
            raise UsageProblem(
                f"adapter {name}: capability {capability.value} cannot be tested by this catalogue revision; leave it out"
            )
        if stance is Stance.ABSENT and capability.operation is None:
            raise UsageProblem(
                f"adapter {name}: capability {capability.value} has no operation of its own, so it is claimed or silent, never absent"
            )
