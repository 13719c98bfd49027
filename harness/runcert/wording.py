"""Records, operations and outcomes in words, short enough to read and exact where it matters."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime
from enum import Enum

from runcert_contract import Edited, Hung, Listing, Numbers, Operation, Outcome, Raised, Returned, Run, StoreError, canonical
from runcert_contract.encoding import RawError
from runcert_contract.identifiers import is_portable

__all__ = ["difference", "operation_in_words", "outcome_in_words", "value_in_words"]

_LONGEST = 160
_ORDINARY_LENGTH = 40
_ALWAYS = ("run_id", "version", "status")
_RARELY = ("action_id", "proposal_id", "idempotency_key", "created_at", "updated_at", "attempt_token")


def value_in_words(value: object) -> str:
    """Give a value as short Python-like text."""
    if isinstance(value, Run):
        return _run(value)
    if isinstance(value, Listing):
        items = ", ".join(value_in_words(getattr(item, "run_id", item)) for item in list(value.items)[:6])
        more = f", ... {len(value.items)} in all" if len(value.items) > 6 else ""
        return f"Listing(items=[{items}{more}], corrupt={list(value.corrupt)!r}, complete={value.complete!r})"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        return shortened(ascii(value))  # ids that only look alike have to be told apart in a report
    except Exception as error:  # noqa: BLE001  # somebody else's __repr__
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def shortened(text: str) -> str:
    """Cut a long text in the middle and say how long it was."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:100]}...{text[-40:]} ({len(text)} characters)"


def _run(run: Run) -> str:
    parts = []
    for entry in fields(run):
        value = getattr(run, entry.name)
        default = entry.default if entry.default is not MISSING else {} if entry.default_factory is not MISSING else None
        shown = entry.name not in _RARELY or _is_remarkable(value)
        if entry.name in _ALWAYS or (shown and (type(value), value) != (type(default), default)):
            parts.append(f"{entry.name}={value_in_words(value)}")
    return f"Run({', '.join(parts)})"


def _is_remarkable(value: object) -> bool:
    """Say whether a value that is mostly of no interest is what a check is about: no short portable identifier."""
    return isinstance(value, str) and not is_portable(value, _ORDINARY_LENGTH)


def operation_in_words(operation: Operation) -> str:
    """Give a call as it would be written."""
    if isinstance(operation, Edited):
        part = "the result" if operation.part == "result" else operation.part
        return f"edit {part} of step {operation.step} in place: {operation.how}"
    if not operation.method:
        return "close every handle, open one again"
    return f"{operation.method}({', '.join(value_in_words(argument) for argument in operation.arguments)})"


def outcome_in_words(outcome: Outcome) -> str:
    """Give what came of a call."""
    if isinstance(outcome, Returned):
        return value_in_words(outcome.value)
    if isinstance(outcome, Raised):
        raw = "" if isinstance(outcome.error, StoreError) else "the raw error "
        return shortened(f"{raw}{_name_of(outcome.error)}({_message_of(outcome.error)!r})")
    if isinstance(outcome, Hung):
        return f"no end after {outcome.seconds:.1f} s"
    return f"unknown ({outcome.reason})"


def _name_of(error: BaseException) -> str:
    """Give the class name of an error, also of a raw one that was written down and read again."""
    return error.kind.rpartition(".")[2] if isinstance(error, RawError) else type(error).__name__


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001  # somebody else's __str__
        return f"<its message cannot be read: {type(problem).__name__}>"


def difference(expected: Run, found: Run, numbers: Numbers = Numbers.STRICT) -> tuple[str, str] | None:
    """Give the fields in which two runs differ, as they were expected and as they were found; None when there are none."""
    names = [e.name for e in fields(expected) if _differ(getattr(expected, e.name), getattr(found, e.name, None), numbers)]
    if not names:
        return None
    return tuple(  # type: ignore[return-value]  # two texts
        ", ".join(f"{name} = {value_in_words(getattr(run, name, None))}" for name in names) for run in (expected, found)
    )


def _differ(expected: object, found: object, numbers: Numbers) -> bool:
    return canonical(expected, numbers) != canonical(found, numbers)
