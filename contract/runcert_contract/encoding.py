"""One tagged JSON encoding for everything that is written down: operations, outcomes, records, instants, bytes.

Histories and failure files use it, and stores in other languages will.  Rules:

* null, booleans, strings and lists stand for themselves; so do objects without a key that starts with ``$``.
* Anything else is an object with one key, its tag: ``{"$int": "9007199254740993"}`` for integers outside 53 bits
  (hexadecimal, ``0x...``, from 4,096 bits on),
  ``{"$float": "1.0"}`` for every float, ``{"$instant": "..."}``, ``{"$bytes": base64}``, ``{"$enum": ["Scope", "host"]}``,
  ``{"$record": ["Run", {...}]}``, ``{"$error": {...}}``, ``{"$object": [[key, value], ...]}`` for objects whose keys need it.
* Inputs outside the domain are named, not shown: ``{"$invalid": "nan"}``; :data:`INVALID_INPUTS` rebuilds them.
* Whatever else a store may answer with keeps only the name of its type: ``{"$unencodable": "Row"}``.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from enum import Enum

from runcert_contract import errors, run_store, run_store_model
from runcert_contract.errors import StoreError
from runcert_contract.json_values import JsonValue, holds_surrogate
from runcert_contract.operations import Edited, Hung, Raised, Returned, Unknown

__all__ = ["INVALID_INPUTS", "RawError", "Unencodable", "decode", "encode"]

_DEEPEST = 200
_EXACT = 2**53
_LONG_INTEGER = 4096


def _cycle() -> object:
    ring: list[object] = []
    ring.append(ring)
    return ring


def _deep() -> object:
    value: object = "bottom"
    for _ in range(5000):
        value = [value]
    return value


INVALID_INPUTS: Mapping[str, Callable[[], object]] = {
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "minus-infinity": lambda: -math.inf,
    "lone-surrogate": lambda: "\ud800",
    "tuple": lambda: (1, 2),
    "set": lambda: {1},
    "integer-key": lambda: {1: "one"},
    "null-key": lambda: {None: "none"},
    "surrogate-key": lambda: {"\udfff": 1},
    "cycle": _cycle,
    "deep": _deep,
    "decimal": lambda: Decimal("1.5"),
    "object": object,
    "bytes": lambda: b"bytes",
    "naive-instant": lambda: datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # naive is the point
}
"""Inputs outside the domain, by name; each call makes a new one."""


class RawError(Exception):
    """Stands for an error that is not one of the contract's, after decoding; ``kind`` is its class name."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Unencodable:
    """Stands for a value that has no encoding, after decoding; ``kind`` is the name of its type."""

    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind}>"


_RECORDS: Mapping[str, type] = {
    record.__name__: record
    for record in (
        run_store.Run,
        run_store.Result,
        run_store.Listing,
        run_store_model.Create,
        run_store_model.Find,
        run_store_model.CompareAndSet,
        run_store_model.FindResumable,
        run_store_model.AllClosed,
        Edited,
        Returned,
        Raised,
        Unknown,
        Hung,
    )
}
_ENUMS: Mapping[str, type[Enum]] = {
    kind.__name__: kind for kind in (run_store.RunStatus, run_store.ResultStatus, run_store.RetryDisposition)
}


def encode(value: object) -> JsonValue:
    """Turn a value of the contract into JSON.

    Never fails: what has no encoding becomes ``{"$invalid": name}`` for an input that :data:`INVALID_INPUTS` names, and
    ``{"$unencodable": type}`` for anything else.
    """
    return _encode(value, 0, frozenset())


def _encode(value: object, depth: int, path: frozenset[int]) -> JsonValue:
    if depth > _DEEPEST:
        return {"$invalid": "deep"}
    if isinstance(value, (list, dict)):
        if id(value) in path:
            return {"$invalid": "cycle"}
        return _encode_container(value, depth + 1, path | {id(value)})
    if isinstance(value, BaseException):
        return _encode_error(value)
    if _RECORDS.get(type(value).__name__) is type(value):
        parts = {entry.name: _encode(_part(value, entry.name), depth + 1, path) for entry in fields(value)}  # type: ignore[arg-type]  # records are dataclasses
        return {"$record": [type(value).__name__, parts]}
    return _encode_scalar(value)


def _part(value: object, name: str) -> object:
    """Give one field of a record; a listing may hold any sequences, which are all written as lists."""
    part = getattr(value, name)
    return list(part) if isinstance(value, run_store.Listing) and type(part) is tuple else part


def _encode_container(value: list[object] | dict[object, object], depth: int, path: frozenset[int]) -> JsonValue:
    if isinstance(value, list):
        return [_encode(item, depth, path) for item in value]
    pairs = [(key, _encode(item, depth, path)) for key, item in value.items()]
    if all(isinstance(key, str) and not key.startswith("$") and not holds_surrogate(key) for key, _ in pairs):
        return {str(key): item for key, item in pairs}
    return {"$object": [[_encode_scalar(key), item] for key, item in pairs]}


def _encode_scalar(value: object) -> JsonValue:
    kind = type(value)
    if value is None or kind is bool:
        return value  # type: ignore[return-value]  # None or bool, both JSON
    if kind is str and isinstance(value, str):
        return {"$text": [ord(character) for character in value]} if holds_surrogate(value) else value
    if kind is int and isinstance(value, int):
        return (
            value if -_EXACT <= value <= _EXACT else {"$int": str(value) if value.bit_length() < _LONG_INTEGER else hex(value)}
        )
    if kind is float and isinstance(value, float):
        return {"$float": repr(value)} if math.isfinite(value) else {"$invalid": _NOT_FINITE[repr(value)]}
    if kind is datetime and isinstance(value, datetime):
        return {"$instant" if value.utcoffset() is not None else "$naive": value.isoformat()}
    if kind is bytes and isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Enum) and _ENUMS.get(kind.__name__) is kind:
        return {"$enum": [kind.__name__, str(value.value)]}
    return {"$invalid": kind.__name__.lower()} if _is_named_input(value) else {"$unencodable": _kind_of(value)}


def _is_named_input(value: object) -> bool:
    if isinstance(value, (tuple, set)):  # what is inside may be anything, and may not even compare
        return type(value) in (tuple, set) and all(type(part) is int for part in value) and value in ((1, 2), {1})
    return type(value) is object or (type(value) is Decimal and str(value) == "1.5")


def _kind_of(value: object) -> str:
    return value.kind if isinstance(value, Unencodable) else type(value).__name__


_NOT_FINITE = {"nan": "nan", "inf": "infinity", "-inf": "minus-infinity"}


def _encode_error(error: BaseException) -> JsonValue:
    raw = not isinstance(error, StoreError)
    name = _raw_name(error) if raw else _contract_error(error)
    return {"$error": {"name": name, "message": _message_of(error), "raw": raw}}


def _raw_name(error: BaseException) -> str:
    return error.kind if isinstance(error, RawError) else f"{type(error).__module__}.{type(error).__qualname__}"


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001  # somebody else's __str__
        return f"<its message cannot be read: {type(problem).__name__}>"


def _contract_error(error: BaseException) -> str:
    names = (kind.__name__ for kind in type(error).__mro__)
    return next(name for name in names if name in errors.__all__)


def decode(value: JsonValue) -> object:
    """Turn JSON written by :func:`encode` back into the value.

    Raises:
        ValueError: an unknown tag, or a tag with the wrong content.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag.startswith("$"):
            return _decode_tagged(tag, content)
    return {key: decode(item) for key, item in value.items()}


def _decode_tagged(tag: str, content: JsonValue) -> object:
    if tag not in _DECODERS:
        raise ValueError(f"unknown tag {tag!r}; this revision knows {', '.join(sorted(_DECODERS))}")
    try:
        return _DECODERS[tag](content)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the tag {tag!r} does not take {content!r}") from error


def _decode_record(content: JsonValue) -> object:
    name, parts = _pair(content)
    return _RECORDS[str(name)](**{key: decode(item) for key, item in _object(parts).items()})


def _decode_enum(content: JsonValue) -> object:
    name, member = _pair(content)
    return _ENUMS[str(name)](member)


def _decode_error(content: JsonValue) -> BaseException:
    parts = _object(content)
    name, message = str(parts["name"]), str(parts["message"])
    return RawError(name, message) if parts["raw"] else errors.error_named(name)(message)


def _decode_object(content: JsonValue) -> object:
    return {decode(key): decode(item) for key, item in (_pair(entry) for entry in _list(content))}


def _pair(content: JsonValue) -> tuple[JsonValue, JsonValue]:
    first, second = _list(content)
    return first, second


def _list(content: JsonValue) -> list[JsonValue]:
    if not isinstance(content, list):
        raise TypeError("expected a list")
    return content


def _object(content: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(content, dict):
        raise TypeError("expected an object")
    return content


_DECODERS: Mapping[str, Callable[[JsonValue], object]] = {
    "$int": lambda content: int(str(content), 0),
    "$float": lambda content: float(str(content)),
    "$text": lambda content: "".join(chr(int(str(point))) for point in _list(content)),
    "$instant": lambda content: datetime.fromisoformat(str(content)),
    "$naive": lambda content: datetime.fromisoformat(str(content)),
    "$bytes": lambda content: base64.b64decode(str(content)),
    "$enum": _decode_enum,
    "$record": _decode_record,
    "$error": _decode_error,
    "$object": _decode_object,
    "$invalid": lambda content: INVALID_INPUTS[str(content)](),
    "$unencodable": lambda content: Unencodable(str(content)),
}
