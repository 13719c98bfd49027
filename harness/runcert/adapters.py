"""How a store is plugged in: one decorated function that opens one handle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from runcert.adapter_options import check_claims, check_options
from runcert.lab import Lab
from runcert.problems import UsageProblem
from runcert_contract import (
    AsyncEnumeratesRuns,
    AsyncRunStore,
    Capability,
    Claims,
    EnumeratesRuns,
    Fault,
    Handles,
    Limits,
    Namespaces,
    Numbers,
    Promise,
    RunStore,
    Scope,
    Stance,
    StoreError,
    Text,
)

__all__ = ["HOOKS", "Adapter", "Opener", "adapter"]

HOOKS = ("damage", "inventory", "age", "purge", "schema", "outage")
"""The hooks that an adapter may give; a clause that needs one which is missing is not claimed."""

Opener = Callable[[Lab], Any]
"""A generator function, or an asynchronous one, that yields one open store."""

_PROTOCOLS: Mapping[type[object], tuple[str, bool, tuple[Capability, ...]]] = {
    RunStore: ("run-store", False, ()),
    EnumeratesRuns: ("run-store", False, (Capability.ENUMERATES,)),
    AsyncRunStore: ("run-store", True, ()),
    AsyncEnumeratesRuns: ("run-store", True, (Capability.ENUMERATES,)),
}


@dataclass(frozen=True, slots=True)
class Adapter:
    """A store as the kit knows it: how to open a handle, what is claimed, and what else the author gave.

    Attributes:
        name: the name of the function.
        target: the name under which adapters of one backend belong together.
        contract: the contract that the store claims.
        open: opens one handle.
        claims: what is said of the store.
        errors: how exceptions of the store translate into errors of the contract.
        hooks: the hooks by name.
        prepare: makes a namespace ready, once, and returns plain data for ``lab.prepared``.
        dispose: removes what belongs to a namespace.
        parity_with: the adapter of the other form, synchronous or asynchronous, of the same store.
        not_a_write: public methods that the author excludes from SURFACE-1.
    """

    name: str
    target: str
    contract: str
    open: Opener
    claims: Claims
    errors: Mapping[type[BaseException], type[StoreError]] = field(default_factory=dict)
    hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    prepare: Callable[[Lab], Any] | None = None
    dispose: Callable[[Lab], Any] | None = None
    parity_with: Callable[[], Adapter] | None = None
    not_a_write: frozenset[str] = frozenset()

    @property
    def options(self) -> frozenset[str]:
        """The options that decide whether a clause applies."""
        return frozenset({"parity_with"}) if self.parity_with is not None else frozenset()

    def __call__(self, lab: Lab) -> Any:
        """Open one handle, as the decorated function does."""
        return self.open(lab)


def adapter(
    *contracts: type[object],
    target: str | None = None,
    scope: Scope = Scope.HANDLE,
    handles: Handles | None = None,
    namespaces: Namespaces = Namespaces.OWN,
    durability: Mapping[Fault, Promise] | None = None,
    capabilities: Mapping[Capability, Stance] | None = None,
    limits: Limits | None = None,
    numbers: Numbers = Numbers.STRICT,
    text: Text = Text.ANY,
    topology: str = "",
    errors: Mapping[type[BaseException], type[StoreError]] | None = None,
    prepare: Callable[[Lab], Any] | None = None,
    dispose: Callable[[Lab], Any] | None = None,
    parity_with: Callable[[], Adapter] | None = None,
    not_a_write: frozenset[str] = frozenset(),
    damage: Callable[..., Any] | None = None,
    inventory: Callable[..., Any] | None = None,
    age: Callable[..., Any] | None = None,
    purge: Callable[..., Any] | None = None,
    schema: Callable[..., Any] | None = None,
    outage: Callable[..., Any] | None = None,
) -> Callable[[Opener], Adapter]:
    """Make an adapter of a function that opens one handle of a store and yields it.

    Args:
        contracts: what the store is: ``RunStore`` or ``AsyncRunStore``; ``EnumeratesRuns`` and ``AsyncEnumeratesRuns``
            claim the capability ``enumerates`` as well.
        target: the name of the target; the function's name where it is not given.
        scope: between whom the store coordinates.
        handles: who may use one handle; by default only the thread, or task, that opened it.
        namespaces: ``Namespaces.SHARED`` where the store cannot keep namespaces apart.
        durability: a promise for each fault that one is made for.
        capabilities: what is said of each optional part.
        limits: declared limits.
        numbers: ``Numbers.JSON`` where an integer and a float of equal value are one.
        text: ``Text.NO_NUL`` where strings with U+0000 are refused.
        topology: the topology of the backend in words, for the certificate.
        errors: exceptions of the store and the errors of the contract that they stand for.
        prepare: called once for each namespace; may be asynchronous; returns plain data.
        dispose: called once when a namespace is no longer needed; may be asynchronous.
        parity_with: gives the adapter of the other form of the same store (a function, so that both may name each other).
        not_a_write: public methods that are no writes, excluded from SURFACE-1 and printed.
        damage: ``damage(lab, contract, key, how)`` makes a stored record unreadable: ``how`` is undecodable, cut or empty.
        inventory: ``inventory(lab)`` counts what is stored, as a mapping from a kind (rows, files, keys) to a number.
        age: ``age(lab, contract, key)`` makes a record look old.
        purge: ``purge(lab, contract, key)`` removes a record as retention would.
        schema: ``schema(lab, state, runs)`` brings the schema into a state (missing; older, with these runs; newer; current; unchanged)
            and returns what is there then, as something that can be compared.
        outage: ``outage(lab)``, a generator function, takes the backend away, yields, and brings it back.

    Returns:
        A decorator that turns the function into an :class:`Adapter`.

    Raises:
        UsageProblem: a claim that contradicts itself or that this revision of the catalogue cannot test.
    """
    hooks = {"damage": damage, "inventory": inventory, "age": age, "purge": purge, "schema": schema, "outage": outage}
    given = {name: hook for name, hook in hooks.items() if hook is not None}

    others = {"target": target, "limits": limits, "errors": errors, "not_a_write": not_a_write, "topology": topology or None}
    promises = {"durability": durability, "capabilities": capabilities}
    choices = {"scope": scope, "handles": handles, "namespaces": namespaces, "numbers": numbers, "text": text}
    functions = {"prepare": prepare, "dispose": dispose, "parity_with": parity_with, **hooks}

    def decorate(opener: Opener) -> Adapter:
        name = getattr(opener, "__name__", "adapter")
        check_options(name, {**choices, **promises, **others, **functions})
        asynchronous = _form_of(opener, name)
        contract, implied = _contract_of(contracts, asynchronous, name)
        claims = Claims(
            scope=scope,
            handles=handles or (Handles.PER_TASK if asynchronous else Handles.PER_THREAD),
            namespaces=namespaces,
            durability=dict(durability or {}),
            capabilities={**dict.fromkeys(implied, Stance.CLAIMED), **(capabilities or {})},
            limits=limits or Limits(),
            numbers=numbers,
            text=text,
            topology=topology,
            asynchronous=asynchronous,
        )
        check_claims(claims, name)
        return Adapter(
            name=name,
            target=target or name.replace("_", "-"),
            contract=contract,
            open=opener,
            claims=claims,
            errors=dict(errors or {}),
            hooks=given,
            prepare=prepare,
            dispose=dispose,
            parity_with=parity_with,
            not_a_write=not_a_write,
        )

    return decorate


def with_maximum_wait(adapter_: Adapter, wait: timedelta) -> Adapter:
    """Give the same adapter with another declared maximum wait."""
    limits = replace(adapter_.claims.limits, maximum_wait=wait)
    return replace(adapter_, claims=replace(adapter_.claims, limits=limits))


def _form_of(opener: Opener, name: str) -> bool:
    if inspect.isasyncgenfunction(opener):
        return True
    if inspect.isgeneratorfunction(opener):
        return False
    raise UsageProblem(f"adapter {name}: the function must yield the open store (use `yield store`, not `return store`)")


def _contract_of(contracts: tuple[type[object], ...], asynchronous: bool, name: str) -> tuple[str, tuple[Capability, ...]]:
    if not contracts:
        raise UsageProblem(f"adapter {name} claims no contract, so there is nothing to certify; write @adapter(RunStore)")
    known = ", ".join(protocol.__name__ for protocol in _PROTOCOLS)
    for contract in contracts:
        if contract not in _PROTOCOLS:
            raise UsageProblem(f"adapter {name}: {contract!r} is not a contract of this kit; it knows {known}")
    found = [_PROTOCOLS[contract] for contract in contracts]
    if any(form is not asynchronous for _, form, _ in found):
        wanted = "AsyncRunStore" if asynchronous else "RunStore"
        way = "`async def`, which opens an AsyncRunStore" if asynchronous else "`def`, which opens a RunStore"
        raise UsageProblem(
            f"adapter {name} is written with {way}, and claims the other form; write @adapter({wanted}), or change the function"
        )
    return found[0][0], tuple(capability for _, _, implied in found for capability in implied)
