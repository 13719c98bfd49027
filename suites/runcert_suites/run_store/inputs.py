"""RUN-INPUT: what lies outside the domain is refused, typed, in order, before storage is touched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import date
from functools import partial
from typing import Any

from runcert.cases import Case
from runcert.checks import Inconclusive, clause
from runcert.handles import Handle
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    InvalidIdentifier,
    InvalidRecord,
    Operation,
    Result,
    ResultStatus,
    Run,
    RunStatus,
    StoreError,
    Text,
    TooLarge,
)
from runcert_contract.encoding import INVALID_INPUTS
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import START, a_run, updated
from runcert_suites.run_store.refusals import LARGEST_TRIED
from runcert_suites.run_store.sizes import nested, of_size, text_of

_WITHIN_DOMAIN = ("deep",)  # a deep value is no invalid one: it is over a limit, where there is one
_Change = Callable[[Run], Run]

_IDENTIFIERS = ("run_id", "tenant_id", "action_id", "proposal_id", "idempotency_key")
_OPTIONAL_IDENTIFIERS = ("owner", "approval_id", "attempt_token", "external_operation_id")


@clause("RUN-INPUT-1")
class ValuesOutsideTheDomain:
    """values outside the domain are refused, typed, before storage is touched, whatever their kind."""

    def test_json_values(self, case: Case) -> None:
        """Whatever has no JSON form is refused, wherever it stands: at the top, deep inside, or as a key."""
        _all_refused(case, _json_changes(case), InvalidRecord)

    def test_texts(self, case: Case) -> None:
        """A text is a str of Unicode scalar values, and nothing is turned into one."""
        wrong: dict[str, object] = {
            "None": None,
            "an int": 7,
            "bytes": b"text",
            "a list": ["text"],
            "a lone surrogate": "a\ud800",
        }
        if case.claims.text is Text.NO_NUL:
            wrong["U+0000"] = "a\0b"
        _all_refused(case, _each(("stage", "failure_reason"), wrong), InvalidRecord)
        _all_refused(case, _each_of_result(("code", "message"), wrong), InvalidRecord)

    def test_instants(self, case: Case) -> None:
        """A naive datetime names no instant, and nothing else is one."""
        wrong: dict[str, object] = {
            "a naive datetime": START.replace(tzinfo=None),
            "a date": date(2026, 3, 4),
            "a text": START.isoformat(),
            "a number": START.timestamp(),
        }
        _all_refused(case, _each(("created_at", "updated_at", "due_at"), wrong), InvalidRecord)
        _all_refused(case, _each(("created_at", "updated_at"), {"None": None}), InvalidRecord)

    def test_counts_and_statuses(self, case: Case) -> None:
        """True is no number, 1.0 is no version, and the name of a status is not a status."""
        wrong: dict[str, object] = {"True": True, "1.0": 1.0, "'0'": "0", "None": None, "-1": -1, "NaN": math.nan}
        _all_refused(case, _each(("version", "recovery_count"), wrong), InvalidRecord)
        statuses: dict[str, object] = {"a text": "REQUESTED", "None": None, "another enum": ResultStatus.SUCCEEDED, "an int": 1}
        _all_refused(case, _each(("status",), statuses), InvalidRecord)

    def test_results_and_objects(self, case: Case) -> None:
        """A result is a Result, an object is a dict."""
        results: dict[str, object] = {"a dict": {"status": "SUCCEEDED"}, "a text": "SUCCEEDED", "a status": ResultStatus.FAILED}
        _all_refused(case, _each(("result",), results), InvalidRecord)
        parts: dict[str, object] = {"a text": "NEVER", "None": None, "another enum": RunStatus.FAILED}
        _all_refused(case, _each_of_result(("status", "retry"), parts), InvalidRecord)
        objects: dict[str, object] = {"None": None, "a list": [1], "a text": "{}", "pairs": (("a", 1),)}
        _all_refused(case, _each(("input", "context", "external_operation_metadata"), objects), InvalidRecord)

    def test_identifiers(self, case: Case) -> None:
        """An identifier is a text; whatever is not one is refused as an identifier."""
        wrong: dict[str, object] = {"an int": 7, "bytes": b"id", "True": True, "a tuple": ("a",), "a lone surrogate": "a\udfff"}
        _all_refused(case, _each((*_IDENTIFIERS, *_OPTIONAL_IDENTIFIERS), wrong), InvalidIdentifier)
        _all_refused(case, _each(_IDENTIFIERS, {"None": None}), InvalidIdentifier)

    def test_ids_to_look_for(self, case: Case) -> None:
        """Both find and find_resumable refuse what is no text, and do not answer that there is nothing."""
        handle = case.open()
        judge = Judge(case)
        wrong: list[Any] = [None, 7, True, b"id", ("id",), ["id"], {"id": 1}, "a\ud800"]
        for value in wrong:
            operations: list[Operation] = [Find(value)]
            if case.claims.claims(Capability.ENUMERATES):
                operations.append(FindResumable(value))
            for operation in operations:
                _refused(judge, handle, operation, InvalidIdentifier, f"{operation.method} of {value!r}")

    def test_what_is_no_run(self, case: Case) -> None:
        """Both create and compare_and_set take runs and nothing that looks like one."""
        handle = case.open()
        reader = case.another(handle)
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        fresh = a_run(case)
        as_dict = {entry.name: getattr(fresh, entry.name) for entry in fields(fresh)}
        others: list[Any] = [None, as_dict, fresh.run_id, 7, [fresh], Run]
        for other in others:
            what = f"{type(other).__name__} in place of a run"
            _refused(judge, handle, Create(other), InvalidRecord, f"create of {what}")
            _refused(judge, handle, CompareAndSet(run, other), InvalidRecord, f"an update to {what}")
            _refused(judge, handle, CompareAndSet(other, updated(run)), InvalidRecord, f"an update that expects {what}")
        for run_id in (run.run_id, fresh.run_id):
            judge.find(reader, run_id)


@clause("RUN-INPUT-2")
class TheOrderOfRefusals:
    """refusals come in the order identifier, record, size, state."""

    def test_several_faults_in_one_create(self, case: Case) -> None:
        """Of several faults in one call the first in the order is named; that the id is taken comes last."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        rival = replace(a_run(case), run_id=run.run_id)
        for what, changes, error in _combinations(case):
            case.steps.clear()
            faulty = _with_all(rival, changes)
            _refused(judge, handle, Create(faulty), error, f"create on an id in use with {what}")
        judge.find(handle, run.run_id)

    def test_several_faults_in_one_update(self, case: Case) -> None:
        """An update that is wrong in itself is refused as such, and not answered False because it is stale as well."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        newer = updated(run)
        judge.accepted(judge.compare_and_set(handle, run, newer), "an update")
        missing = a_run(case)
        for state, expected in (("a stale version", run), ("a missing run", missing)):
            for what, changes, error in (*_combinations(case), *_contradictions()):
                case.steps.clear()
                faulty = _with_all(updated(expected), changes)
                _refused(judge, handle, CompareAndSet(expected, faulty), error, f"an update of {state} with {what}")
        judge.find(handle, run.run_id)
        judge.find(handle, missing.run_id)

    def test_a_fault_in_each_of_the_two_runs(self, case: Case) -> None:
        """The order holds over both arguments of an update: an identifier of either goes before a record of either."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        for expected, following in (
            (replace(run, stage=_wrong(None)), updated(run, owner=_wrong("\ud800"))),
            (replace(run, owner=_wrong("\ud800")), updated(run, stage=_wrong(None))),
        ):
            operation = CompareAndSet(expected, following)
            _refused(
                judge,
                handle,
                operation,
                InvalidIdentifier,
                "an update with a wrong identifier in one run and a wrong text in the other",
            )
        judge.find(handle, run.run_id)


@clause("RUN-INPUT-3")
class ValuesOverADeclaredLimit:
    """a value over a declared limit is refused before storage is touched, after which the record can still be completed."""

    def test_on_create(self, case: Case) -> None:
        """Just over a limit create is refused, nothing is stored, and a smaller run takes the id."""
        handle = case.open()
        reader = case.another(handle)
        judge = Judge(case)
        tried = 0
        for what, change in _over_limits(case):
            case.steps.clear()
            run = a_run(case)
            _refused(judge, handle, Create(change(run)), TooLarge, f"create with {what}")
            judge.find(reader, run.run_id)
            judge.accepted(judge.create(handle, run), f"create of a smaller run after one with {what} was refused")
            tried += 1
        for name, length in _identifier_limits(case):
            case.steps.clear()
            run = a_run(case)
            longer = _changing(name, "x" * (length + 1))(run)
            _refused(judge, handle, Create(longer), InvalidIdentifier, f"create with a {name} of {length + 1} code points")
            judge.accepted(judge.create(handle, run), f"create with a shorter {name}")
            tried += 1
        _note_tried(case, tried)

    def test_on_completion(self, case: Case) -> None:
        """A run whose result is over a limit stays as it is and can be completed with a smaller one."""
        handle = case.open()
        reader = case.another(handle)
        judge = Judge(case)
        tried = 0
        for what, change in _over_limits(case):
            case.steps.clear()
            run = judge.run_in(handle, RunStatus.RUNNING)
            done = replace(
                updated(run), status=RunStatus.SUCCEEDED, result=Result(ResultStatus.SUCCEEDED, output={"small": True})
            )
            _refused(judge, handle, CompareAndSet(run, change(done)), TooLarge, f"completion with {what}")
            judge.find(reader, run.run_id)
            judge.accepted(
                judge.compare_and_set(handle, run, done), f"completion with a smaller value after one with {what} was refused"
            )
            judge.find(reader, run.run_id)
            tried += 1
        for name, length in _identifier_limits(case):
            if name in _OPTIONAL_IDENTIFIERS:
                case.steps.clear()
                run = judge.run_in(handle, RunStatus.RUNNING)
                longer = updated(run, **{name: "x" * (length + 1)})
                _refused(
                    judge,
                    handle,
                    CompareAndSet(run, longer),
                    InvalidIdentifier,
                    f"an update with a {name} of {length + 1} code points",
                )
                judge.accepted(
                    judge.compare_and_set(handle, run, updated(run, **{name: "x"})), f"an update with a shorter {name}"
                )
                tried += 1
        _note_tried(case, tried)


# -- refusals, judged


def _all_refused(case: Case, changes: Iterator[tuple[str, _Change]], error: type[StoreError]) -> None:
    """Try each change on a new run, on an update, and on what an update expects; nothing may be stored."""
    handle = case.open()
    reader = case.another(handle)
    judge = Judge(case)
    run = a_run(case)
    judge.accepted(judge.create(handle, run), "create of a fresh id")
    tried = 0
    for what, change in changes:
        case.steps.clear()
        fresh = a_run(case)
        _refused(judge, handle, Create(change(fresh)), error, f"create with {what}")
        judge.find(handle, fresh.run_id)
        _refused(judge, handle, CompareAndSet(run, change(updated(run))), error, f"an update with {what}")
        _refused(judge, handle, CompareAndSet(change(run), updated(run)), error, f"an update that expects {what}")
        judge.find(reader, run.run_id)
        tried += 1
    case.evidence["values"] = int(str(case.evidence.get("values", 0))) + tried


def _refused(judge: Judge, handle: Handle, operation: Operation, error: type[StoreError], what: str) -> None:
    outcome = handle.call(operation)
    judge.refused(outcome, error, what)
    judge.judge(operation, outcome)


# -- changes of a run


def _wrong(value: object) -> Any:
    """Give a value that no type of the field allows: that is the point."""
    return value


def _changing(name: str, value: object) -> _Change:
    return lambda run: replace(run, **{name: _wrong(value)})


def _each(names: tuple[str, ...], wrong: dict[str, object]) -> Iterator[tuple[str, _Change]]:
    for name in names:
        for what, value in wrong.items():
            yield f"{name} = {what}", _changing(name, value)


def _each_of_result(names: tuple[str, ...], wrong: dict[str, object]) -> Iterator[tuple[str, _Change]]:
    for name in names:
        for what, value in wrong.items():
            result = replace(Result(ResultStatus.FAILED), **{name: _wrong(value)})
            yield f"result.{name} = {what}", _changing("result", result)


def _json_changes(case: Case) -> Iterator[tuple[str, _Change]]:
    """Put each invalid JSON value into each place; deep inside in one place at quick depth, everywhere beyond."""
    places = ("input", "context", "external_operation_metadata", "result.output")
    values = [(name, make) for name, make in INVALID_INPUTS.items() if name not in _WITHIN_DOMAIN]
    if case.claims.text is Text.NO_NUL:
        values += [("U+0000", lambda: "a\0b"), ("a key with U+0000", lambda: {"a\0b": 1})]
    for number, (name, make) in enumerate(values):
        for where, place in enumerate(places):
            yield f"{name} in {place}", _placing(place, {"value": make()})
            if case.budget(number % len(places) == where, True, True):
                yield f"{name} deep in {place}", _placing(place, {"a": [{"b": [1, {"c": make()}]}]})


def _placing(place: str, value: Any) -> _Change:
    if place == "result.output":
        return lambda run: replace(run, result=Result(ResultStatus.FAILED, output=value))
    return _changing(place, value)


# -- several faults at once

_IDENTIFIER = ("a lone surrogate as owner", _changing("owner", "\ud800"))
_NAN = ("NaN in its input", _changing("input", {"a": math.nan}))
_NAIVE = ("a naive due_at", _changing("due_at", START.replace(tzinfo=None)))


def _combinations(case: Case) -> Iterator[tuple[str, list[_Change], type[StoreError]]]:
    """Give faults that come together, in the opposite order, and the error that has to name the first of them."""
    too_large = next(_over_limits(case), None)
    named: list[tuple[list[tuple[str, _Change]], type[StoreError]]] = [
        ([_NAN], InvalidRecord),
        ([_NAIVE], InvalidRecord),
        ([_IDENTIFIER], InvalidIdentifier),
        ([_NAN, _IDENTIFIER], InvalidIdentifier),
        ([_NAIVE, _IDENTIFIER], InvalidIdentifier),
    ]
    if too_large is not None:
        named += [
            ([too_large], TooLarge),
            ([too_large, _NAIVE], InvalidRecord),
            ([too_large, _IDENTIFIER], InvalidIdentifier),
            ([too_large, _NAIVE, _IDENTIFIER], InvalidIdentifier),
        ]
    for faults, error in named:
        yield " and ".join(what for what, _ in faults), [change for _, change in faults], error


def _contradictions() -> Iterator[tuple[str, list[_Change], type[StoreError]]]:
    yield "a version that is not the expected one + 1", [lambda run: replace(run, version=run.version + 5)], InvalidRecord
    yield "another action_id", [_changing("action_id", "another")], InvalidRecord


def _with_all(run: Run, changes: list[_Change]) -> Run:
    for change in changes:
        run = change(run)
    return run


# -- over a limit


def _over_limits(case: Case) -> Iterator[tuple[str, _Change]]:
    limits = case.claims.limits
    if limits.text is not None:
        text, wide = text_of(limits.text + 1), text_of(limits.text + 1, "\U0001f600")
        yield f"a stage of {len(text)} code points", _changing("stage", text)
        yield f"a failure_reason of {len(wide)} code points beyond the BMP", _changing("failure_reason", wide)
        yield f"a result.code of {len(text)} code points", _changing("result", Result(ResultStatus.SUCCEEDED, code=text))
        yield f"a result.message of {len(wide)} code points", _changing("result", Result(ResultStatus.SUCCEEDED, message=wide))
    if limits.depth is not None:
        deep = nested(limits.depth + 1)
        for place in ("input", "context", "external_operation_metadata", "result.output"):
            yield f"a value nested {limits.depth + 1} deep in {place}", _placing(place, deep)
    if limits.refuses_above is not None and limits.refuses_above <= LARGEST_TRIED:
        over = limits.refuses_above + 1
        for character in case.budget(("x", "\U0001f600"), ("x", "é", "\U0001f600"), ("x", "é", "\U0001f600")):
            yield f"a record of {over} bytes made of {character!r}", partial(of_size, size=over, character=character)


def _identifier_limits(case: Case) -> Iterator[tuple[str, int]]:
    for name in (*_IDENTIFIERS, *_OPTIONAL_IDENTIFIERS):
        length = case.claims.limits.identifier_length(name)
        if length is not None:
            yield name, length


def _note_tried(case: Case, tried: int) -> None:
    case.evidence["limits exceeded"] = tried
    if not tried:
        raise Inconclusive("none of the declared limits is small enough to be exceeded here")
