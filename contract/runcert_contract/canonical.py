"""One function that decides when two records are the same.

Source of the rule: section 1 of the contract, "JSON value" and "Instant": comparison is type-strict, key order and the
sign of zero are not kept, instants are compared in UTC.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from enum import Enum
from json.encoder import encode_basestring_ascii as encoded_text
from typing import Any

from runcert_contract.claims import Numbers

__all__ = ["canonical"]


class _Literal:
    """Text that goes into the canonical form as it stands."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Leaving:
    """Marks in the work that is left where a container ends."""

    __slots__ = ("container",)

    def __init__(self, container: object) -> None:
        self.container = container


def canonical(record: object, numbers: Numbers = Numbers.STRICT) -> str:
    """Give a text that is equal for two records exactly when the contract calls them equal.

    Args:
        record: a record of the contract, or any JSON value, instant, enum member, tuple or None inside one.
        numbers: ``Numbers.JSON`` makes an integer and a float of equal value one (a claim of the store).

    Returns:
        A text that can be compared, hashed and remembered in place of the record.  Works at any nesting depth, and ends
        for a container that contains itself (which no store keeps, but a caller may hand in).
    """
    pieces: list[str] = []
    waiting: list[Any] = [record]
    path: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Literal):
            pieces.append(value.text)
        elif isinstance(value, _Leaving):
            path.discard(id(value.container))
        elif isinstance(value, (list, dict)):
            if id(value) in path:
                pieces.append("cycle")
                continue
            path.add(id(value))
            waiting.append(_Leaving(value))
            waiting.extend(_sequence("[", value, "]") if isinstance(value, list) else _mapping(value))
        elif isinstance(value, tuple):
            waiting.extend(_sequence("(", value, ")"))
        elif (names := _fields_of(type(value))) is not None:
            waiting.extend(_record(value, names))
        else:
            pieces.append(_scalar(value, numbers))
    return "".join(pieces)


_COMMA = _Literal(",")
_COLON = _Literal(":")


def _sequence(opening: str, values: list[object] | tuple[object, ...], closing: str) -> list[object]:
    parts: list[object] = [_Literal(closing)]
    for value in reversed(values):
        parts += (_COMMA, value)
    parts.append(_Literal(opening))
    return parts


def _mapping(values: dict[object, object]) -> list[object]:
    parts: list[object] = [_Literal("}")]
    for key, value in sorted(
        ((_scalar(key, Numbers.STRICT), value) for key, value in values.items()), key=_first, reverse=True
    ):
        parts += (_COMMA, value, _COLON, _Literal(key))
    parts.append(_Literal("{"))
    return parts


def _first(pair: tuple[str, object]) -> str:
    return pair[0]


_Fields = tuple[tuple[str, _Literal], ...]

_known_records: dict[type[Any], _Fields | None] = {}


def _fields_of(kind: type[Any]) -> _Fields | None:
    """Give the fields of a kind of record from the last to the first, the name and how it is written; None if it is no record."""
    if kind not in _known_records:
        names = [field.name for field in fields(kind)] if is_dataclass(kind) else None
        _known_records[kind] = None if names is None else tuple((name, _Literal(f",{name}=")) for name in reversed(names))
    return _known_records[kind]


def _record(value: object, names: _Fields) -> list[object]:
    parts: list[object] = [_Literal(")")]
    for name, literal in names:
        parts += (getattr(value, name), literal)
    parts.append(_Literal(f"{type(value).__name__}("))
    return parts


def _scalar(value: object, numbers: Numbers) -> str:
    if type(value) is str:  # most of a record
        return encoded_text(value)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, int):
        return f"int {int(value):x}"  # hexadecimal: Python writes no decimal of more than 4,300 digits
    if isinstance(value, float):
        return _number(float(value), numbers)
    if isinstance(value, str):
        return encoded_text(str(value))
    if isinstance(value, datetime):
        return _instant(value)
    return f"{type(value).__module__}.{type(value).__qualname__} {value!r}"


def _number(value: float, numbers: Numbers) -> str:
    if numbers is Numbers.JSON and value.is_integer():
        return f"int {int(value):x}"
    return f"float {value + 0.0!r}"


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return f"naive {value.isoformat()}"
    return f"instant {value.astimezone(timezone.utc).isoformat(timespec='microseconds')}"
