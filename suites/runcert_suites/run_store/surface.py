"""RUN-SURFACE: no way around the contract replaces a stored run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import Find, JsonValue, Operation, Outcome, Returned, Run, RunStatus, canonical
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import updated

_CONTRACT = frozenset({"create", "find", "compare_and_set", "find_resumable"})
_REMOVALS = (
    "close",
    "aclose",
    "clear",
    "delete",
    "destroy",
    "discard",
    "dispose",
    "drop",
    "forget",
    "pop",
    "prune",
    "purge",
    "remove",
    "truncate",
    "wipe",
)
_STORED = 3
"""The version at which a run is stored when the callables are tried on it."""


@clause("RUN-SURFACE-1", isolated=True)
class NoOtherWayToReplaceARun:
    """no public callable outside the claimed contracts replaces a stored record (update, save, upsert, force_*)."""

    def test_every_callable_that_takes_a_record(self, case: Case) -> None:
        """Each public method beside the contract that can be called with a run is called, and the stored run stays."""
        handle = case.open()
        reader = case.another(handle)
        said: dict[str, str] = {}
        for name, method in _callables(handle.store, case.adapter.not_a_write):
            said[name] = _try(case, handle, reader, name, method)
        case.evidence["callables"] = dict(sorted(said.items()))
        case.evidence["not a write"] = list[JsonValue](sorted(case.adapter.not_a_write))


def _callables(store: object, excluded: frozenset[str]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(store):
        if name.startswith("_") or name in _CONTRACT or name in excluded:
            continue
        try:
            value = getattr(store, name)
        except Exception:  # noqa: BLE001, S112  # a property that cannot be read is no way to write
            continue
        if callable(value) and not inspect.isclass(value):
            yield name, value


def _try(case: Case, handle: Handle, reader: Handle, name: str, method: Callable[..., Any]) -> str:
    """Call a method in every way in which it may take a record; say what became of it."""
    if name.startswith(_REMOVALS):
        return "listed only: a removal"
    ways = list(_ways(method))
    if not ways:
        return "listed only: takes no record"
    for way in ways:
        case.steps.clear()
        run = _stored_run(case, handle)
        for rival in _rivals(run):
            outcome = _call(case, handle, name, way.arguments(run, rival))
            found = reader.call(Find(run.run_id))
            if found == Returned(None):
                return "called: it removes"
            _unchanged(
                case, run, f"{name}({way.shown}) with version {rival.version} on a run of version {run.version}", outcome, found
            )
    return "called"


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to hand a record to a method."""

    shown: str
    arguments: Callable[[Run, Run], tuple[object, ...]]


_WAYS = (
    _Way("run", lambda _, rival: (rival,)),
    _Way("[run]", lambda _, rival: ([rival],)),
    _Way("expected, updated", lambda _, rival: (_before(rival), rival)),
    _Way("run_id, run", lambda _, rival: (rival.run_id, rival)),
)


def _before(rival: Run) -> Run:
    return updated(rival, version=max(rival.version - 1, 0), stage="expected")


def _ways(method: Callable[..., Any]) -> Iterator[_Way]:
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return
    for way in _WAYS:
        try:
            signature.bind(*([None] * (way.shown.count(",") + 1)))
        except TypeError:
            continue
        yield way


def _stored_run(case: Case, handle: Handle) -> Run:
    judge = Judge(case)
    run = judge.run_in(handle, RunStatus.POLICY_EVALUATED, input={"stored": True}, stage="stored")
    while run.version < _STORED:
        following = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, following), "an update")
        run = following
    return run


def _rivals(run: Run) -> Iterator[Run]:
    """Give records with other content: an old version, one far ahead, the same, the next."""
    for version in (run.version - 2, run.version + 6, run.version, run.version + 1):
        yield updated(run, version=version, stage="replaced", input={"replaced": True})


def _call(case: Case, handle: Handle, name: str, arguments: tuple[object, ...]) -> Outcome:
    """Call a method that is no operation of the contract, bounded and watched like one; whatever it raises is fine."""
    outcome = handle.call(_operation(name, arguments))
    case.steps.pop()  # it has no encoding; the message names it
    if isinstance(outcome, Returned) and inspect.iscoroutine(outcome.value):
        outcome.value.close()
    return outcome


def _operation(name: str, arguments: tuple[object, ...]) -> Operation:
    kind = type("OtherCall", (Operation,), {"method": name, "arguments": arguments, "__slots__": ()})
    operation: Operation = kind()
    return operation


def _unchanged(case: Case, run: Run, what: str, outcome: Outcome, found: Outcome) -> None:
    same = (
        isinstance(found, Returned) and canonical(found.value, case.claims.numbers) == Judge(case).model.stored(run).canonical
    )
    if not same:
        raise Violation(
            f"{what} to leave the stored run alone (or exclude the method with not_a_write, if it is no write)",
            f"the call gave {outcome_in_words(outcome)}, and find then gives {outcome_in_words(found)}",
        )
