"""RUN-ERROR: only errors of the contract leave a store, and none of them shows a secret."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle, Step
from runcert.masking import known_passwords
from runcert.wording import outcome_in_words
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    RunStatus,
    StoreError,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated
from runcert_suites.run_store.refusals import refusals_of

_DEEP = 5000
_HIDDEN = "<the secret>"


@clause("RUN-ERROR-1", isolated=True)
class OnlyErrorsOfTheContract:
    """no raw driver, OS, JSON or recursion error leaves the store."""

    def test_values_that_break_encoders(self, case: Case) -> None:
        """Nesting, integers and texts that encoders and drivers choke on are kept or refused, but never break through."""
        handle = case.open()
        judge = Judge(case)
        stored = a_run(case)
        judge.accepted(judge.create(handle, stored), "create of a fresh id")
        names = _hostile_runs(a_run(case))
        for what, _ in names:
            case.steps.clear()
            fresh = a_run(case)
            hostile = dict(_hostile_runs(fresh))[what]
            _typed(handle, Create(hostile), f"create with {what}")
            _typed(handle, Find(fresh.run_id), f"find after create with {what}")
            base = _stored(case, handle)
            hostile = dict(_hostile_runs(updated(base)))[what]
            _typed(handle, CompareAndSet(base, hostile), f"an update with {what}")
            _typed(handle, CompareAndSet(hostile, updated(base)), f"an update that expects {what}")
            _typed(handle, Find(base.run_id), f"find after an update with {what}")
        case.evidence["values"] = len(names)
        judge.find(handle, stored.run_id)

    def test_identifiers_that_break_drivers(self, case: Case) -> None:
        """Whatever string is given as an identifier, each method answers or refuses it, typed."""
        handle = case.open()
        hostile = {
            "U+0000": "a\0b",
            "a lone surrogate": "a\ud800b",
            "100,000 characters": "x" * 100_000,
            "the empty string": "",
            "a quote": "a'; --\"`",
            "a percent sign": "%s%d{0}",
            "a path": "../../a/b\\c:d",
            "a non-character": "a\uffff\U0010ffff",
            "a line break": "a\r\nb\x1b",
        }
        for what, name in hostile.items():
            case.steps.clear()
            run = a_run(case)
            for field_name in ("run_id", "tenant_id", "idempotency_key", "owner", "attempt_token"):
                given: Any = {field_name: name}
                other = replace(run, **given)
                _typed(handle, Create(other), f"create with {what} in {field_name}")
                _typed(handle, CompareAndSet(other, updated(other)), f"an update with {what} in {field_name}")
            _typed(handle, Find(name), f"find of {what}")
            if case.claims.claims(Capability.ENUMERATES):
                _typed(handle, FindResumable(name), f"find_resumable of {what}")
        case.evidence["values"] = len(hostile)

    def test_versions_that_break_drivers(self, case: Case) -> None:
        """Whatever number is given as a version, each method answers or refuses it, typed."""
        handle = case.open()
        judge = Judge(case)
        stored = _stored(case, handle)
        versions = (2**31 - 1, 2**31, 2**53, 2**63 - 2, 2**63 - 1, 2**63, 2**64, 10**40)
        for version in versions:
            case.steps.clear()
            expected = replace(stored, version=version)
            _typed(handle, CompareAndSet(expected, updated(expected)), f"an update that expects version {version}")
            _typed(handle, CompareAndSet(stored, updated(stored, version=version)), f"an update to version {version}")
            counted = updated(stored, recovery_count=version)
            outcome = _typed(handle, CompareAndSet(stored, counted), f"an update with recovery_count {version}")
            if outcome == Returned(True):
                stored = counted
        judge.accepted(handle.call(CompareAndSet(stored, updated(stored))), "an update after all those")
        case.evidence["versions"] = len(versions)

    def test_every_refusal_is_typed(self, case: Case) -> None:
        """Each refusal that the contract knows is the error of that name, not the driver's or the encoder's."""
        handle = case.open()
        stored = _stored(case, handle)
        for refusal in refusals_of(case, stored):
            outcome = _typed(handle, refusal.operation, refusal.what)
            if not refusal.happened(outcome):
                raise Violation(f"{refusal.what} to give {refusal.in_words}", outcome_in_words(outcome))


@clause("RUN-ERROR-2", isolated=True)
class NoSecretShows:
    """no message, repr, log line or traceback shows a secret (credentials handed out by the kit, attempt tokens)."""

    def test_in_refusals_and_logs(self, case: Case) -> None:
        """Neither the password of this run nor an attempt token stands in a message, its causes, a log line or a repr."""
        with _log_records() as lines:
            handle = case.open()
            secrets = _secrets(case)
            token = secrets["an attempt token"]
            run = a_run(case, attempt_token=token)
            newer = updated(run)
            _no_secret(case, handle, "an answer to create", Create(run), secrets)
            _no_secret(case, handle, "an answer to compare_and_set", CompareAndSet(run, newer), secrets)
            for refusal in refusals_of(case, newer, attempt_token=token):
                _no_secret(case, handle, refusal.what, refusal.operation, secrets)
            broken: Any = {"attempt_token": f"{token}\ud800"}
            _no_secret(case, handle, "create with a wrong attempt token", Create(replace(a_run(case), **broken)), secrets)
            _no_secret(case, handle, "find of an unknown id", Find(case.fresh_id()), secrets)
            done = moved(newer, RunStatus.CANCELLED)
            _no_secret(case, handle, "completion", CompareAndSet(newer, done), secrets)
            late = updated(done, stage="late")
            _no_secret(case, handle, "an update of a run that has ended", CompareAndSet(done, late), secrets)
            _look(f"repr of the store {type(handle.store).__name__}", repr(handle.store), secrets)
            _look(f"str of the store {type(handle.store).__name__}", str(handle.store), secrets)
            handle.close()
            _no_secret(case, handle, "find on a closed handle", Find(run.run_id), secrets)
            _no_secret(case, handle, "create on a closed handle", Create(run), secrets)
        for line in lines:
            _look("a log line", line, secrets)
        case.evidence["log lines"] = len(lines)

    def test_in_what_is_said_of_damaged_records(self, case: Case) -> None:
        """The error that reports a damaged record does not quote it."""
        if not case.has_hook("damage"):
            case.evidence["damaged records"] = 0
            return
        secrets = _secrets(case)
        with _log_records() as lines:
            handle = case.open()
            for how in ("undecodable", "cut", "empty"):
                run = a_run(
                    case, attempt_token=secrets["an attempt token"], context={"pad": "x" * 1000}
                )  # it is in what a cut leaves
                Judge(case).accepted(handle.call(Create(run)), "create of a fresh id")
                case.hook("damage", case.adapter.contract, run.run_id, how)
                reader = case.another(handle)
                _no_secret(case, reader, f"find of a record that is {how}", Find(run.run_id), secrets)
                _no_secret(case, reader, f"an update of a record that is {how}", CompareAndSet(run, updated(run)), secrets)
                _no_secret(case, reader, f"create over a record that is {how}", Create(run), secrets)
        for line in lines:
            _look("a log line", line, secrets)
        case.evidence["damaged records"] = 3


# -- only typed errors


def _typed(handle: Handle, operation: Operation, what: str) -> Outcome:
    outcome = handle.call(operation)
    if isinstance(outcome, Returned) or (isinstance(outcome, Raised) and isinstance(outcome.error, StoreError)):
        return outcome
    raise Violation(f"{what} to end with an answer or an error of the contract", outcome_in_words(outcome))


def _stored(case: Case, handle: Handle) -> Run:
    """Give a run that is stored with version 1."""
    judge = Judge(case)
    run = a_run(case)
    judge.accepted(judge.create(handle, run), "create of a fresh id")
    newer = updated(run)
    judge.accepted(judge.compare_and_set(handle, run, newer), "an update")
    return newer


def _hostile_runs(run: Run) -> list[tuple[str, Run]]:
    far = timezone(timedelta(hours=-14))
    deep_list: Any = []
    deep_object: Any = {}
    for _ in range(_DEEP):
        deep_list, deep_object = [deep_list], {"a": deep_object}
    ring: Any = {}
    ring["ring"] = ring
    changes: dict[str, dict[str, Any]] = {
        f"lists nested {_DEEP} deep": {"input": {"a": deep_list}},
        f"objects nested {_DEEP} deep": {"context": deep_object},
        "an object that contains itself": {"input": ring},
        "an integer of 401 digits": {"input": {"a": 10**400}},
        "an integer of 5,001 digits": {"context": {"a": [-(10**5000)]}},
        "a recovery_count of 401 digits": {"recovery_count": 10**400},
        "a recovery_count of 5,001 digits": {"recovery_count": 10**5000},
        "a negative recovery_count of 5,001 digits": {"recovery_count": -(10**5000)},
        "a version of 401 digits": {"version": 10**400},
        "a version of 5,001 digits": {"version": 10**5000},
        "an integer key of 5,001 digits": {"input": {10**5000: 1}},
        "lone surrogates": {"stage": "\ud800", "input": {"a\udfff": "\udc80"}},
        "U+0000": {"stage": "a\0", "failure_reason": "\0", "input": {"\0": "a\0b"}},
        "the first instant that Python has": {"updated_at": datetime.min.replace(tzinfo=UTC)},
        "the last instant that Python has": {"due_at": datetime.max.replace(tzinfo=far)},
        "a version that is a text": {"version": "0"},
        "a stage of a million characters": {"stage": "x" * 1_000_000},
    }
    return [(what, replace(run, **change)) for what, change in changes.items()]


# -- no secrets


def _secrets(case: Case) -> dict[str, str]:
    found = {"the password of this run": case.workplace.secret, "an attempt token": f"attempt-{case.fresh_id('token')}-hush"}
    return found | {f"password {number} of a server": password for number, password in enumerate(known_passwords(), start=1)}


def _no_secret(case: Case, handle: Handle, what: str, operation: Operation, secrets: dict[str, str]) -> None:
    outcome = handle.call(operation)
    if not isinstance(outcome, Raised):
        return
    text = "".join(traceback.format_exception(outcome.error)) + repr(outcome.error)
    if any(secret in text for secret in secrets.values()):
        case.steps[-1] = Step(handle.name, operation, Raised(StoreError(_masked(str(outcome.error), secrets))))
    _look(f"{type(outcome.error).__name__} for {what}, with its causes", text, secrets)


def _look(where: str, text: str, secrets: dict[str, str]) -> None:
    for name, secret in secrets.items():
        if secret in text:
            at = text.index(secret)
            around = _masked(text[max(at - 60, 0) : at + len(secret) + 60], secrets)
            raise Violation(f"{where} to hold no secret", f"it shows {name}: ...{around}...")


def _masked(text: str, secrets: dict[str, str]) -> str:
    for secret in secrets.values():
        text = text.replace(secret, _HIDDEN)
    return text


class _Lines(logging.Handler):
    """Keeps every log record as the text that it would become, errors included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.lines.append(self.format(record))
        except Exception:  # noqa: BLE001  # a line that cannot be formatted: its parts can be looked at
            self.lines.append(f"{record.msg!r} {record.args!r}")


@contextmanager
def _log_records() -> Iterator[list[str]]:
    """Listen to everything that is logged, down to DEBUG."""
    root = logging.getLogger()
    level, listener = root.level, _Lines()
    root.addHandler(listener)
    root.setLevel(logging.DEBUG)
    try:
        yield listener.lines
    finally:
        root.setLevel(level)
        root.removeHandler(listener)
