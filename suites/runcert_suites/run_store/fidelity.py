"""RUN-FIDELITY: what was stored comes back equal, through a fresh handle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from runcert.cases import Case
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import Fault, Kept, Result, ResultStatus, RetryDisposition, Returned, Run, RunStatus, Text, canonical
from runcert_contract.identifiers import DEFAULT_LENGTH
from runcert_contract.json_values import depth_of, json_problem, size_of
from runcert_contract.run_store import as_json
from runcert_suites.run_store import generators
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.property_testing import check_property
from runcert_suites.run_store.records import START, a_run, moved, path_to, updated
from runcert_suites.run_store.sizes import nested, of_size, text_of

DEFAULT_TEXT, DEFAULT_DEPTH, DEFAULT_SIZE = 1_000, 20, 262_144
"""The sizes to which a store is tried that declares no limit."""

_LARGEST_TRIED = 20_000_000

JSON_EDGES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    "",
    [],
    {},
    "null",
    "true",
    "0",
    "{}",
    "[]",
    [None],
    [[]],
    [{}],
    [[], {}, None, "", 0, False],
    [True, 1, 1.0, "1"],
    {"": ""},
    {"": {"": []}},
    {"a": None, "b": False, "c": 0},
    {"b": 1, "a": 2, "B": 3, "A": 4},
    {"a.b": 1, "a/b": 2, "$a": 3, "a b": 4, '"': 5, "'": 6, "\\": 7},
    {"__proto__": 1, "constructor": 2, "__class__": "Run", "_id": 3},
    {"$int": "1"},
    {"$record": ["Run", {}]},
    {"py/object": "builtins.list", "@type": "x", "!!python/object": 1},
    {str(number): number for number in range(50)},
    [[["a"], ["b"]], [["a"], ["b"]]],
)
"""JSON values that careless encodings confuse with one another."""

TEXT_EDGES: tuple[str, ...] = (
    " leading and trailing ",
    "\ttab\nnewline\r\nreturn\r",
    "\u0085\u2028\u2029\ufeff",
    "\ufeffafter a byte order mark",
    "caf\u00e9 cafe\u0301 \ufb01 \u212b",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0010ffff\uffff\ufffe\ufdd0",
    "\u202eright to left \u05d0\u0627",
    "'; DROP TABLE runs; --",
    "\\u0041 \\ud83d\\ude00 \\n \\\\ &amp; %41 {0} %s ${x} \\x00",
    "\"quoted\" 'single' `back`",
    "\x01\x02\x1b\x7f\x80\x9f",
    "\0",
    "a\0b",
    "\0\0end",
    "null",
    "NaN",
    "2026-03-04T05:06:07+00:00",
    "s:4:x",
    "\u00df\u1e9e\u0130\u0131",
)
"""Texts that careless encodings, collations and drivers change."""

NUMBER_EDGES: tuple[int | float, ...] = (
    0,
    1,
    -1,
    1.0,
    0.0,
    -0.0,
    0.1,
    0.1 + 0.2,
    -1.5,
    1e15,
    1e16,
    1e22,
    1e23,
    123456789.123456789,
    2**31,
    -(2**31) - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    float(2**53),
    2**63 - 1,
    -(2**63),
    float(2**63),
    5e-324,
    2.2250738585072014e-308,
    1e308,
    1.7976931348623157e308,
)
"""Numbers that careless encodings round, widen, or turn from integer to float and back."""

LARGE_INTEGERS = (2**63, -(2**63) - 1, 2**64 - 1, 2**64, 2**100 + 1, -(10**40))
"""Integers outside 64 bits: kept exactly, or refused."""


@clause("RUN-FIDELITY-1")
class JsonComesBack:
    """JSON edge values come back equal through a fresh handle."""

    def test_edge_values(self, case: Case) -> None:
        """Values that look alike stay apart, in every field that holds JSON."""
        _all_come_back(case, _fitting(case, JSON_EDGES), _in_objects)

    def test_generated_values(self, case: Case) -> None:
        """Whatever JSON value is stored comes back."""
        values = st.tuples(generators.json_objects(case.claims), generators.json_values(case.claims))
        _property(case, values, lambda run, drawn: replace(run, input=drawn[0], context=drawn[0]), lambda drawn: drawn[1])


@clause("RUN-FIDELITY-2")
class TextComesBack:
    """text comes back equal through a fresh handle: non-BMP, U+0000, text that looks escaped."""

    def test_edge_texts(self, case: Case) -> None:
        """Texts come back code point for code point, in the text fields, in JSON, and as keys."""
        _all_come_back(case, _fitting(case, TEXT_EDGES), _in_texts)

    def test_generated_texts(self, case: Case) -> None:
        """Whatever text is stored comes back."""
        _property(case, generators.texts(case.claims), lambda run, text: _in_texts(run, [text]), lambda text: {text: text})


@clause("RUN-FIDELITY-3")
class NumbersComeBack:
    """numbers come back equal in value and type through a fresh handle."""

    def test_edge_numbers(self, case: Case) -> None:
        """Integers within 64 bits and finite floats come back exactly, and 1 is not 1.0 (unless numbers=json is claimed)."""
        _all_come_back(case, _fitting(case, NUMBER_EDGES), _in_objects)

    def test_integers_beyond_64_bits(self, case: Case) -> None:
        """An integer outside 64 bits is kept exactly or refused; it is never rounded, wrapped or turned into text."""
        handle, reader = _pair(case)
        for number in LARGE_INTEGERS:
            case.steps.clear()
            judge = Judge(case)
            run, base = a_run(case, input={"number": number}), a_run(case)
            judge.create(handle, run)
            judge.find(reader, run.run_id)
            judge.accepted(judge.create(handle, base), "create of a fresh id")
            judge.compare_and_set(handle, base, updated(base, context={"numbers": [number, -number]}))
            judge.find(reader, base.run_id)

    def test_counts(self, case: Case) -> None:
        """recovery_count is an integer like any other within 64 bits."""
        handle, reader = _pair(case)
        judge = Judge(case)
        for count in (0, 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1):
            case.steps.clear()
            run = a_run(case, recovery_count=count)
            judge.accepted(judge.create(handle, run), f"create with recovery_count {count}")
            judge.find(reader, run.run_id)

    def test_generated_numbers(self, case: Case) -> None:
        """Whatever number is stored comes back."""
        values = st.lists(generators.numbers(), min_size=1, max_size=3)
        _property(case, values, lambda run, numbers: replace(run, input={"numbers": numbers[0]}), lambda numbers: numbers[-1])


@clause("RUN-FIDELITY-4")
class InstantsComeBack:
    """instants come back as the same instant, aware, through a fresh handle."""

    def test_edge_instants(self, case: Case) -> None:
        """Instants come back in whatever zone they were given: at the ends of the range, to the microsecond, when clocks are set back."""
        handle, reader = _pair(case)
        tried = 0
        edges = _edge_instants(case)
        for chosen in (edges[start : start + 3] for start in range(0, len(edges), 3)):
            case.steps.clear()
            judge = Judge(case)
            what = "; ".join(name for name, _ in chosen)
            first, instant, last = chosen[0][1], chosen[len(chosen) // 2][1], chosen[-1][1]
            run = a_run(case, created_at=first, updated_at=instant, due_at=last)
            judge.accepted(judge.create(handle, run), f"create with instants at {what}")
            judge.find(reader, run.run_id)
            plain = a_run(case)
            judge.accepted(judge.create(handle, plain), "create of a fresh id")
            following = updated(plain, updated_at=last, due_at=instant)
            judge.accepted(judge.compare_and_set(handle, plain, following), f"an update with instants at {what}")
            judge.find(reader, plain.run_id)
            tried += len(chosen)
        case.evidence["values"] = tried

    def test_one_instant_in_several_zones(self, case: Case) -> None:
        """The same instant in another zone is the same value: an update that gives it in that zone changes no identity."""
        handle, reader = _pair(case)
        for zone in generators.zones():
            case.steps.clear()
            judge = Judge(case)
            run = a_run(case)
            judge.accepted(judge.create(handle, run), "create of a fresh id")
            elsewhere = replace(
                updated(run), created_at=run.created_at.astimezone(zone), updated_at=run.updated_at.astimezone(zone)
            )
            judge.accepted(
                judge.compare_and_set(handle, run, elsewhere), f"an update with the same created_at as seen from {zone}"
            )
            judge.find(reader, run.run_id)

    def test_generated_instants(self, case: Case) -> None:
        """Whatever instant is stored comes back."""
        values = st.tuples(*[generators.instants(case.claims)] * 3)
        _property(case, values, lambda run, drawn: replace(run, created_at=drawn[0], updated_at=drawn[1], due_at=drawn[2]))


@clause("RUN-FIDELITY-5")
class EmptyIsNotNull:
    """empty and null stay apart through a fresh handle."""

    def test_empty_and_null_values(self, case: Case) -> None:
        """null, "", [], {}, 0 and False are six values, also where the key could be left out."""
        empty: list[Any] = [None, "", [], {}, 0, False]
        values = [*empty, *({"key": value} for value in empty), *([value] for value in empty), {"": None}]
        _all_come_back(case, _fitting(case, values), _in_objects)

    def test_empty_and_null_fields(self, case: Case) -> None:
        """A result without output is not no result, and a field that may be null comes back as it was given."""
        handle, reader = _pair(case)
        results = [
            None,
            Result(ResultStatus.FAILED),
            *(Result(ResultStatus.FAILED, output=value) for value in _as_json("", [], {})),
        ]
        for result in results:
            case.steps.clear()
            judge = Judge(case)
            run = a_run(case)
            judge.accepted(judge.create(handle, run), "create of a fresh id")
            done = moved(run, RunStatus.FAILED, result=result)
            judge.accepted(judge.compare_and_set(handle, run, done), f"a move to FAILED with the result {result}")
            judge.find(reader, run.run_id)
        for name in ("owner", "approval_id", "attempt_token", "external_operation_id"):
            for value in (None, "", "null", "None", "0"):
                case.steps.clear()
                judge = Judge(case)
                run = a_run(case, **{name: value})
                judge.create(handle, run)  # the empty string may be refused as an identifier
                judge.find(reader, run.run_id)

    def test_a_value_taken_back_to_null(self, case: Case) -> None:
        """A field that held a value and is set to null, or emptied, is null, or empty."""
        handle, reader = _pair(case)
        judge = Judge(case)
        full: dict[str, Any] = {
            "owner": "w1",
            "approval_id": "a1",
            "attempt_token": "t1",
            "external_operation_id": "e1",
            "due_at": START,
            "stage": "stage",
            "failure_reason": "reason",
            "input": {"a": 1},
            "context": {"a": 1},
            "external_operation_metadata": {"a": 1},
        }
        run = a_run(case, **full)
        judge.accepted(judge.create(handle, run), "create of a run with every field set")
        judge.find(reader, run.run_id)
        emptied: dict[str, Any] = {
            name: {} if isinstance(value, dict) else "" if name in ("stage", "failure_reason") else None
            for name, value in full.items()
        }
        following = updated(run, **emptied)
        judge.accepted(judge.compare_and_set(handle, run, following), "an update that empties every field")
        judge.find(reader, run.run_id)
        judge.accepted(judge.compare_and_set(handle, following, updated(following, **full)), "an update that fills them again")
        judge.find(reader, run.run_id)


@clause("RUN-FIDELITY-6")
class SizesUpToTheLimits:
    """sizes and depths up to the declared limits come back equal through a fresh handle."""

    def test_texts_and_identifiers(self, case: Case) -> None:
        """Texts and identifiers of exactly the declared length come back whole, also where a character takes four bytes."""
        limits = case.claims.limits
        length = DEFAULT_TEXT if limits.text is None else limits.text
        run, handles = a_run(case), _pair(case)
        for character in ("x", "é", "\U0001f600"):
            text = text_of(length, character)
            result = Result(ResultStatus.FAILED, code=text, message=text)
            _comes_back(
                case,
                handles,
                f"texts of {length} code points like {character!r}",
                replace(run, stage=text, failure_reason=text),
                result,
            )
        for name in (
            "run_id",
            "tenant_id",
            "action_id",
            "proposal_id",
            "idempotency_key",
            "owner",
            "approval_id",
            "attempt_token",
        ):
            longest = limits.identifier_length(name) or DEFAULT_LENGTH
            prefix = case.fresh_id("x")
            long: Any = {name: prefix + text_of(longest - len(prefix)).replace("!", "_")}
            _comes_back(
                case, handles, f"a {name} of {longest} code points", replace(a_run(case), **long), fresh=name != "run_id"
            )
        case.evidence["length of texts"] = length

    def test_depths(self, case: Case) -> None:
        """JSON nested exactly as deep as declared comes back, in every field that holds it."""
        limit = case.claims.limits.depth
        depth = DEFAULT_DEPTH if limit is None else limit
        value: Any = nested(depth)
        run, result = a_run(case, input=value, context=value), Result(ResultStatus.FAILED, output=value)
        _comes_back(case, _pair(case), f"JSON nested {depth} deep", run, result)
        case.evidence["depth"] = depth

    def test_sizes(self, case: Case) -> None:
        """A record of exactly the declared size comes back whole, whatever its characters take in bytes."""
        limit = case.claims.limits.accepts_up_to
        largest = DEFAULT_SIZE if limit is None else min(limit, _LARGEST_TRIED)
        handles = _pair(case)
        sizes = sorted({min(size, largest) for size in (4_096, 65_535, 65_536, 65_537, largest)} | {largest - 1})
        for size in sizes:
            for character in ("é",) if size > DEFAULT_SIZE or size < largest else ("x", "\U0001f600"):
                _comes_back(
                    case, handles, f"a record of {size} bytes made of {character!r}", of_size(a_run(case), size, character)
                )
        case.evidence["largest record"] = largest

    def test_one_large_value(self, case: Case) -> None:
        """One text, and one list, past the marks at which stores cut come back whole from every place that holds JSON."""
        limit = case.claims.limits.accepts_up_to
        largest = DEFAULT_SIZE if limit is None else limit
        handles = _pair(case)
        lengths = [length for length in (65_537, 140_000) if 4 * length < largest] or [largest // 8]
        for length in lengths:
            text, numbers = "x" * length, [0] * (length // 4)
            values: tuple[Any, ...] = (text, numbers)
            for value in values:
                held = {"large": value}
                what = f"a {type(value).__name__} of {len(value)}"
                _comes_back(case, handles, f"{what} in the input", a_run(case, input=held))
                _comes_back(case, handles, f"{what} in the context", a_run(case, context=held))
                result = Result(ResultStatus.FAILED, output=value)
                _comes_back(case, handles, f"{what} in the output", a_run(case), result)
        case.evidence["largest value"] = lengths[-1]


@clause("RUN-FIDELITY-7")
class WhatAWriteReturns:
    """what a write returns equals what a find then returns; the store sets no field by itself (updated_at included)."""

    def test_nothing_is_set_by_the_store(self, case: Case) -> None:
        """Fields that stores like to maintain (updated_at, recovery_count, owner, stage) stay as the caller gave them."""
        handle, reader = _pair(case)
        limits, day = case.claims.limits, timedelta(days=1)
        past, future = max(START - 4000 * day, limits.earliest + day), min(START + 4000 * day, limits.latest - day)
        for created_at, updated_at in ((START, START), (START, past), (future, START), (past, future)):
            case.steps.clear()
            judge = Judge(case)
            run = a_run(case, created_at=created_at, updated_at=updated_at, recovery_count=5, owner=None, stage="", due_at=past)
            _same_as_found(judge, handle, reader, run)
            for status in (RunStatus.VALIDATING, RunStatus.POLICY_EVALUATED, RunStatus.RUNNING, RunStatus.SUCCEEDED):
                following = moved(
                    run, status, updated_at=updated_at - timedelta(seconds=run.version), recovery_count=5 - run.version % 2
                )
                judge.accepted(judge.compare_and_set(handle, run, following), f"the move to {status.value}")
                for other in (handle, reader):
                    judge.find(other, run.run_id)
                run = following

    def test_an_update_that_touches_nothing(self, case: Case) -> None:
        """An update with the updated_at that is already there keeps it."""
        handle, reader = _pair(case)
        judge = Judge(case)
        run = a_run(case, owner="w1", attempt_token="t1")  # noqa: S106  # an identifier, not a password
        _same_as_found(judge, handle, reader, run)
        for _ in range(3):
            following = replace(run, version=run.version + 1)
            judge.accepted(judge.compare_and_set(handle, run, following), "an update of nothing but the version")
            judge.find(reader, run.run_id)
            run = following

    def test_every_field_in_every_status(self, case: Case) -> None:
        """In each status every moving field takes a value, takes another one, and is taken back to empty or null."""
        handle, reader = _pair(case)
        for status in RunStatus:
            case.steps.clear()
            judge = Judge(case)
            run = judge.run_in(handle, status, **_FULL) if status is RunStatus.REQUESTED else _moved_with(judge, handle, status)
            judge.find(reader, run.run_id)
            changes: tuple[dict[str, Any], ...] = () if status.terminal else (_OTHER, _EMPTY, _FULL)
            for fields in changes:
                following = updated(run, **fields)
                judge.accepted(judge.compare_and_set(handle, run, following), f"an update in {status.value}")
                judge.find(reader, run.run_id)
                run = following

    def test_every_result(self, case: Case) -> None:
        """Each status of a result, with each disposition, comes back with the run that it belongs to."""
        handle, reader = _pair(case)
        outputs: tuple[Any, ...] = (None, [], {}, "", 0, False, {"a": []})
        for number, (status, result_status) in enumerate(_RESULTS_BY_STATUS):
            for offset, retry in enumerate(RetryDisposition):
                case.steps.clear()
                judge = Judge(case)
                result = Result(result_status, "code", "message", outputs[(number + offset) % len(outputs)], retry)
                run = judge.run_in(handle, path_to(status)[-2] if len(path_to(status)) > 1 else RunStatus.REQUESTED)
                following = moved(run, status, result=result, failure_reason="a reason")
                judge.accepted(
                    judge.compare_and_set(handle, run, following), f"a result {result_status.value} in {status.value}"
                )
                judge.find(reader, run.run_id)

    def test_generated_runs(self, case: Case) -> None:
        """Whatever run is created and moved, a find returns what was written and nothing else."""
        writer, reader = _pair(case)
        claims = case.claims
        histories = generators.runs(claims).flatmap(lambda run: st.tuples(st.just(run), generators.moves(run, claims)))

        def body(drawn: tuple[Run, Run]) -> None:
            fresh: Any = {"run_id": case.fresh_id("r"), "tenant_id": case.fresh_id("t")}
            run, following = (replace(part, **fresh) for part in drawn)
            judge = Judge(case)
            _same_as_found(judge, writer, reader, run)
            judge.accepted(judge.compare_and_set(writer, run, following), f"a legal move to {following.status.value}")
            judge.find(reader, run.run_id)

        check_property(case, case.budget(8, 100, 1_000), body, histories)


@clause(
    "RUN-FIDELITY-1", "RUN-FIDELITY-2", "RUN-FIDELITY-3", "RUN-FIDELITY-4", "RUN-FIDELITY-5", "RUN-FIDELITY-6", isolated=True
)
class ComesBackAfterReopening:
    """what was stored comes back equal after every handle was closed, where that is promised."""

    def test_edge_values_after_reopening(self, case: Case) -> None:
        """Every edge value is stored, every handle closed, and each value is read from what was really kept."""
        case.evidence["reopened"] = isinstance(case.claims.promise(Fault.CLOSE), Kept)
        if not case.evidence["reopened"]:
            return
        handle = case.open()
        judge = Judge(case)
        runs: list[tuple[str, Run]] = []
        for name, run in [(name, run) for name, run in _edge_runs(case) if _surely_accepted(case, run)]:
            judge.clause = name
            judge.accepted(judge.create(handle, run), "create of a fresh id")
            runs.append((name, run))
        handle = judge.reopen()
        for name, run in runs:
            judge.clause = name
            judge.find(handle, run.run_id)


def _edge_runs(case: Case) -> list[tuple[str, Run]]:
    """Give a run for each clause that holds all of its edge values."""
    limits = case.claims.limits
    depth = DEFAULT_DEPTH if limits.depth is None else limits.depth
    size = DEFAULT_SIZE if limits.accepts_up_to is None else min(limits.accepts_up_to, _LARGEST_TRIED)
    deep: Any = nested(depth)
    instants = [a_run(case, created_at=instant, updated_at=instant, due_at=instant) for _, instant in _edge_instants(case)]
    return [
        ("RUN-FIDELITY-1", _in_objects(a_run(case), _fitting(case, JSON_EDGES))),
        *(("RUN-FIDELITY-2", _in_texts(a_run(case), [text])) for text in _fitting(case, TEXT_EDGES)),
        ("RUN-FIDELITY-3", _in_objects(a_run(case), _fitting(case, NUMBER_EDGES))),
        *(("RUN-FIDELITY-4", run) for run in instants),
        ("RUN-FIDELITY-5", _in_objects(a_run(case), _fitting(case, (None, "", [], {}, 0, False)))),
        ("RUN-FIDELITY-6", a_run(case, input=deep)),
        ("RUN-FIDELITY-6", of_size(a_run(case), size)),
    ]


# -- handles


def _pair(case: Case) -> tuple[Handle, Handle]:
    """Give a handle to write with and a fresh one to read with, which never saw what was written."""
    writer = case.open()
    return writer, case.another(writer)


# -- many values at once, and one at a time where something is wrong

_Placing = Callable[[Run, Sequence[Any]], Run]


def _in_objects(run: Run, values: Sequence[Any]) -> Run:
    held = _numbered(values)
    return replace(run, input=held, context=held, external_operation_metadata=held)


def _numbered(values: Sequence[Any]) -> Any:
    return {str(number): value for number, value in enumerate(values)}


def _in_texts(run: Run, values: Sequence[Any]) -> Run:
    run = _in_objects(run, values)
    return replace(run, stage=values[0], failure_reason=values[-1], context={str(value): value for value in values})


def _all_come_back(case: Case, values: Sequence[Any], place: _Placing) -> None:
    """Store all values in one run; where that does not come back, try each by itself, so that the message names one."""
    handles = _pair(case)
    try:
        together = _values_come_back(case, handles, values, place)
    except Violation:
        for value in values:
            _values_come_back(case, handles, [value], place)
        raise
    tried = len(values) if together else 0
    if not together or place is _in_texts or case.budget(False, True, True):
        tried = sum(_values_come_back(case, handles, [value], place) for value in values)
    case.evidence["values"] = tried
    if not tried:
        raise Inconclusive("no value is small enough for the size that the store declares")


def _values_come_back(case: Case, handles: tuple[Handle, Handle], values: Sequence[Any], place: _Placing) -> bool:
    run = place(a_run(case), values)
    output = values[0] if len(values) == 1 else _numbered(values)
    what = "the values" if len(values) > 1 else repr(values[0])
    return _comes_back(
        case, handles, what, run, Result(ResultStatus.FAILED, code=run.stage, message=run.failure_reason, output=output)
    )


def _comes_back(
    case: Case, handles: tuple[Handle, Handle], what: str, run: Run, result: Result | None = None, *, fresh: bool = True
) -> bool:
    """Create a run, and end it with a result; both have to be found as they were written.

    Returns:
        False where the store declares a size for which that is too large.
    """
    case.steps.clear()
    if fresh:
        run = replace(run, run_id=case.fresh_id("r"))
    if not _surely_accepted(case, run):
        return False
    judge = Judge(case)
    handle, reader = handles
    judge.accepted(judge.create(handle, run), f"create with {what}")
    judge.find(reader, run.run_id)
    done = moved(run, RunStatus.FAILED, result=result)
    if result is not None and _surely_accepted(case, done):
        judge.accepted(judge.compare_and_set(handle, run, done), f"an update whose result holds {what}")
        judge.find(reader, run.run_id)
    return True


def _surely_accepted(case: Case, run: Run) -> bool:
    limit = case.claims.limits.accepts_up_to
    return limit is None or size_of(as_json(run)) <= limit


def _fitting(case: Case, values: Sequence[Any]) -> list[Any]:
    """Leave out what the store declared that it does not keep."""
    limits = case.claims.limits
    allow_nul = case.claims.text is Text.ANY
    return [
        value
        for value in values
        if json_problem(value, allow_nul=allow_nul) is None
        and (limits.depth is None or depth_of(value) < limits.depth)
        and (limits.text is None or not isinstance(value, str) or len(value) <= limits.text)
    ]


def _as_json(*values: Any) -> tuple[Any, ...]:
    return values


# -- instants


def _edge_instants(case: Case) -> list[tuple[str, datetime]]:
    limits = case.claims.limits
    utc = UTC
    moments = {
        "1970": datetime(1970, 1, 1, tzinfo=utc),
        "a leap day": datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=utc),
        "one microsecond": datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=utc),
        "the last microsecond of a year": datetime(2025, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        "a float that rounds": datetime(2033, 5, 18, 3, 33, 20, 123457, tzinfo=utc),
        "beyond 2038": datetime(2039, 1, 19, 3, 14, 8, 5, tzinfo=utc),
        "beyond 2262": datetime(2300, 1, 1, 1, 2, 3, 4, tzinfo=utc),
        "the first declared instant": limits.earliest,
        "the last declared instant": limits.latest,
        "clocks set back, before": datetime(2026, 10, 25, 0, 30, tzinfo=utc),
        "clocks set back, after": datetime(2026, 10, 25, 1, 30, tzinfo=utc),
        "clocks set forward": datetime(2026, 3, 29, 1, 0, tzinfo=utc),
    }
    found = []
    for number, (what, moment) in enumerate(moments.items()):
        if limits.earliest <= moment <= limits.latest:
            found.append((what, moment))
            zones = generators.zones() if case.budget("clocks" in what, True, True) else generators.zones()[number % 5 :][:1]
            found += [(f"{what}, seen from {zone}", moment.astimezone(zone)) for zone in zones if _fits_calendar(moment)]
    return found


def _fits_calendar(moment: datetime) -> bool:
    """Say whether a moment can be seen from every zone without leaving the years that Python has."""
    return datetime.min.replace(tzinfo=UTC) + timedelta(days=1) < moment < datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


# -- properties


def _property(
    case: Case, values: st.SearchStrategy[Any], place: Callable[[Run, Any], Run], output: Callable[[Any], Any] | None = None
) -> None:
    """Store drawn values by create, and where there is an ``output`` also by an update, and find them by another handle."""
    writer, reader = _pair(case)

    def body(drawn: Any) -> bool:
        judge = Judge(case)
        run = place(a_run(case), drawn)
        if not _surely_accepted(case, run):
            return False
        judge.accepted(judge.create(writer, run), "create of a run inside the domain")
        judge.find(reader, run.run_id)
        if output is not None:
            done = moved(run, RunStatus.FAILED, result=Result(ResultStatus.FAILED, output=output(drawn)))
            if _surely_accepted(case, done):
                judge.accepted(judge.compare_and_set(writer, run, done), "an update inside the domain")
                judge.find(reader, run.run_id)
        return True

    check_property(case, case.budget(10, 100, 1_000), body, values)


_FULL: dict[str, Any] = {
    "stage": "a stage",
    "owner": "worker-1",
    "recovery_count": 3,
    "approval_id": "approval-1",
    "due_at": START + timedelta(days=1),
    "attempt_token": "attempt-1",
    "external_operation_id": "operation-1",
    "external_operation_metadata": {"poll": [1, None]},
    "input": {"in": [1]},
    "context": {"ctx": {"deep": ["x"]}},
    "failure_reason": "a reason",
}
_OTHER: dict[str, Any] = {name: value + "-other" if isinstance(value, str) else value for name, value in _FULL.items()} | {
    "recovery_count": 4,
    "due_at": START + timedelta(days=2),
    "external_operation_metadata": {"poll": [2]},
    "input": {"in": []},
    "context": {"other": True},
}
_EMPTY: dict[str, Any] = {
    "stage": "",
    "owner": None,
    "recovery_count": 0,
    "approval_id": None,
    "due_at": None,
    "attempt_token": None,
    "external_operation_id": None,
    "external_operation_metadata": {},
    "input": {},
    "context": {},
    "failure_reason": "",
}
_RESULTS_BY_STATUS = (
    (RunStatus.SUCCEEDED, ResultStatus.SUCCEEDED),
    (RunStatus.FAILED, ResultStatus.FAILED),
    (RunStatus.FAILED, ResultStatus.VALIDATION_FAILED),
    (RunStatus.DENIED, ResultStatus.DENIED),
    (RunStatus.CANCELLED, ResultStatus.CANCELLED),
    (RunStatus.WAITING_APPROVAL, ResultStatus.PENDING_APPROVAL),
    (RunStatus.WAITING_EXTERNAL, ResultStatus.ACCEPTED),
)


def _moved_with(judge: Judge, handle: Handle, status: RunStatus) -> Run:
    """Bring a run to ``status``, every moving field set by the last move."""
    before = path_to(status)[-2] if len(path_to(status)) > 1 else RunStatus.REQUESTED
    run = judge.run_in(handle, before)
    following = moved(run, status, **_FULL)
    judge.accepted(judge.compare_and_set(handle, run, following), f"the legal move to {status.value}")
    return following


def _same_as_found(judge: Judge, writer: Handle, reader: Handle, run: Run) -> None:
    """Create a run and compare what create returned with what a fresh handle finds."""
    created = judge.create(writer, run)
    judge.accepted(created, "create of a run inside the domain")
    found = judge.find(reader, run.run_id)
    if isinstance(created, Returned) and isinstance(found, Returned):
        numbers = judge.case.claims.numbers
        if canonical(created.value, numbers) != canonical(found.value, numbers):
            raise Violation(f"find to give what create returned, {outcome_in_words(created)}", outcome_in_words(found))
