"""One function that decides when two records are the same.

Source of the rule: section 1 of the contract, "JSON value" and "Instant": comparison is type-strict, key order and the
sign of zero are not kept, instants are compared in UTC.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from enum import Enum

from runcert_contract.claims import Numbers

__all__ = ["canonical"]


class _Literal(str):
    """Text that goes into the canonical form as it stands."""

    __slots__ = ()


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
    waiting: list[object] = [record]
    path: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Literal):
            pieces.append(value)
        elif isinstance(value, _Leaving):
            path.discard(id(value.container))
        elif isinstance(value, (list, dict)) and id(value) in path:
            pieces.append("cycle")
        elif isinstance(value, (list, dict)):
            path.add(id(value))
            waiting.append(_Leaving(value))
            waiting.extend(_sequence("[", value, "]") if isinstance(value, list) else _mapping(value))
        elif isinstance(value, tuple):
            waiting.extend(_sequence("(", value, ")"))
        elif is_dataclass(value) and not isinstance(value, type):
            waiting.extend(_dataclass(value))
        else:
            pieces.append(_scalar(value, numbers))
    return "".join(pieces)


def _sequence(opening: str, values: list[object] | tuple[object, ...], closing: str) -> list[object]:
    parts: list[object] = [_Literal(closing)]
    for value in reversed(values):
        parts.extend((_Literal(","), value))
    parts.append(_Literal(opening))
    return parts


def _mapping(values: dict[object, object]) -> list[object]:
    parts: list[object] = [_Literal("}")]
    for key, value in sorted(
        ((_scalar(key, Numbers.STRICT), value) for key, value in values.items()), key=_first, reverse=True
    ):
        parts.extend((_Literal(","), value, _Literal(":"), _Literal(key)))
    parts.append(_Literal("{"))
    return parts


def _first(pair: tuple[str, object]) -> str:
    return pair[0]


def _dataclass(value: object) -> list[object]:
    parts: list[object] = [_Literal(")")]
    for field in reversed(fields(value)):  # type: ignore[arg-type]  # the caller checked is_dataclass
        parts.extend((_Literal(","), getattr(value, field.name), _Literal(f"{field.name}=")))
    parts.append(_Literal(f"{type(value).__name__}("))
    return parts


def _scalar(value: object, numbers: Numbers) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, int):
        return f"int {int(value):x}"  # hexadecimal: Python writes no decimal of more than 4,300 digits
    if isinstance(value, float):
        return _number(float(value), numbers)
    if isinstance(value, str):
        return json.dumps(str(value))
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
