"""RUN-SURFACE: no way around the contract replaces a stored run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import Find, JsonValue, Outcome, Returned, Run, RunStatus, canonical
from runcert_contract.run_store import as_json
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
_WRITING_OPERATORS = ("__setitem__", "__call__")
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
    """Give what can be called on a store, and on those of its public parts that come from the same package.

    Parts of other packages (a driver's connection, say) are left alone: who calls whatever they offer may empty a database.
    """
    for name, value in _public(store):
        if name in _CONTRACT or name in excluded:
            continue
        if callable(value) and not inspect.isclass(value):
            yield name, value
        elif _package_of(value) == _package_of(store):
            for inner, method in _public(value):
                if callable(method) and not inspect.isclass(method) and f"{name}.{inner}" not in excluded:
                    yield f"{name}.{inner}", method


def _public(thing: object) -> Iterator[tuple[str, Any]]:
    for name in dir(thing):
        if name.startswith("_") and name not in _WRITING_OPERATORS:
            continue
        try:
            value = getattr(thing, name)
        except Exception:  # noqa: BLE001, S112  # a property that cannot be read is no way to write
            continue
        yield name, value


def _package_of(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]


def _try(case: Case, handle: Handle, reader: Handle, name: str, method: Callable[..., Any]) -> str:
    """Call a method in every way in which it may take a record; say what became of it."""
    if name.rpartition(".")[2].startswith(_REMOVALS):
        return "listed only: a removal"
    ways = list(_ways(method))
    if not ways:
        return "listed only: takes no record"
    answered = False
    for way in ways:
        case.steps.clear()
        run = _stored_run(case, handle)
        for rival in _rivals(run):
            outcome = _call(handle, name, partial(_make, method, way, rival))
            answered |= isinstance(outcome, Returned)
            found = reader.call(Find(run.run_id))
            if found == Returned(None):
                return "called: it removes"
            _unchanged(
                case, run, f"{name}({way.shown}) with version {rival.version} on a run of version {run.version}", outcome, found
            )
    return "called" if answered else "called: it raised whatever form of a record it was given"


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to hand a record to a method: first what it is about, then a text for every argument more that it insists on."""

    shown: str
    arguments: Callable[[Run], tuple[object, ...]]


_WAYS = (
    _Way("run", lambda rival: (rival,)),
    _Way("[run]", lambda rival: ([rival],)),
    _Way("expected, updated", lambda rival: (_before(rival), rival)),
    _Way("run_id, run", lambda rival: (rival.run_id, rival)),
    _Way("{run_id: run}", lambda rival: ({rival.run_id: rival},)),
    _Way("asdict(run)", lambda rival: (asdict(rival),)),
    _Way("run as JSON", lambda rival: (as_json(rival),)),
    _Way("run_id, asdict(run)", lambda rival: (rival.run_id, asdict(rival))),
)
_MOST_MORE = 3
_TEXT = "runcert"


def _before(rival: Run) -> Run:
    return updated(rival, version=max(rival.version - 1, 0), stage="expected")


@dataclass(frozen=True, slots=True)
class _Call:
    """A method bound to one way: what it is given, by position and by name."""

    shown: str
    arguments: Callable[[Run], tuple[object, ...]]
    named: Callable[[Run], dict[str, object]]


def _ways(method: Callable[..., Any]) -> Iterator[_Call]:
    """Give every way in which the signature lets a record be handed over."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return
    required = [p for p in signature.parameters.values() if p.default is p.empty]
    by_name = [p.name for p in required if p.kind is p.KEYWORD_ONLY]
    places = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in required)
    for way in _WAYS:
        size = way.shown.count(",") + 1
        more = max(places - size, 0)
        if more > _MOST_MORE or not _binds(signature, size + more, by_name):
            continue
        yield _positional(way, more, by_name)
    yield from _by_name(signature, by_name)


def _positional(way: _Way, more: int, by_name: Sequence[str]) -> _Call:
    return _Call(
        ", ".join((way.shown, *[repr(_TEXT)] * more)),
        lambda rival: (*way.arguments(rival), *[_TEXT] * more),
        lambda _: dict.fromkeys(by_name, _TEXT),
    )


def _binds(signature: inspect.Signature, places: int, names: Sequence[str]) -> bool:
    try:
        signature.bind(*([None] * places), **dict.fromkeys(names))
    except TypeError:
        return False
    return True


def _by_name(signature: inspect.Signature, required: Sequence[str]) -> Iterator[_Call]:
    """Give the ways in which a record is handed over as an argument that has to be named."""
    keyword_only = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in keyword_only:
        if _binds(signature, 0, [*required, name]):
            yield _named("", name, required, lambda _: ())
        elif _binds(signature, 1, [*required, name]):
            yield _named("run_id, ", name, required, lambda rival: (rival.run_id,))


def _named(before: str, name: str, required: Sequence[str], arguments: Callable[[Run], tuple[object, ...]]) -> _Call:
    return _Call(f"{before}{name}=run", arguments, lambda rival: {**dict.fromkeys(required, _TEXT), name: rival})


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


def _make(method: Callable[..., Any], way: _Call, rival: Run) -> object:
    return method(*way.arguments(rival), **way.named(rival))


def _call(handle: Handle, name: str, call: Callable[[], object]) -> Outcome:
    """Call a method that is no operation of the contract; whatever it raises is fine."""
    outcome = handle.call_aside(name, call)
    if isinstance(outcome, Returned) and inspect.iscoroutine(outcome.value):
        outcome.value.close()
    return outcome


def _unchanged(case: Case, run: Run, what: str, outcome: Outcome, found: Outcome) -> None:
    same = (
        isinstance(found, Returned) and canonical(found.value, case.claims.numbers) == Judge(case).model.stored(run).canonical
    )
    if not same:
        raise Violation(
            f"{what} to leave the stored run alone (or exclude the method with not_a_write, if it is no write)",
            f"the call gave {outcome_in_words(outcome)}, and find then gives {outcome_in_words(found)}",
        )
