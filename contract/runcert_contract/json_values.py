"""The domain of JSON values, and what lies outside it.

Source of the rule: section 1 of the contract, "JSON value" (clause INPUT-1).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TypeAlias, Union

__all__ = [
    "JsonObject",
    "JsonValue",
    "depth_of",
    "holds_large_integer",
    "holds_surrogate",
    "json_problem",
    "shown",
    "size_of",
    "text_problem",
]

JsonValue: TypeAlias = Union[bool, int, float, str, list["JsonValue"], dict[str, "JsonValue"], None]
JsonObject: TypeAlias = dict[str, JsonValue]

_SURROGATE = re.compile("[\ud800-\udfff]")
_FEW_BITS = 256


def text_problem(value: object, *, allow_nul: bool = True) -> str | None:
    """Say why ``value`` is not a text of the contract, or give None when it is one.

    Args:
        value: anything.
        allow_nul: False for a store that declared ``text=no-nul``.
    """
    if not isinstance(value, str):
        return f"expected a str, found {type(value).__name__}"
    if holds_surrogate(value):
        return "a lone surrogate is not a Unicode scalar value"
    if not allow_nul and "\0" in value:
        return "U+0000 is not kept by this store (text=no-nul)"
    return None


def holds_surrogate(text: str) -> bool:
    """Say whether a text holds a lone surrogate, which is no Unicode scalar value."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def json_problem(value: object, *, allow_nul: bool = True) -> str | None:
    """Say where and why ``value`` leaves the domain of JSON values, or give None when it does not.

    Args:
        value: anything, nested to any depth.
        allow_nul: False for a store that declared ``text=no-nul``.
    """
    return None if _is_inside(value, allow_nul) else _first_problem(value, allow_nul)


def _is_inside(value: object, allow_nul: bool) -> bool:
    """Say whether a value is surely inside the domain, without noting where anything stands; this is the common case."""
    containers: set[int] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if _own_problem(current, allow_nul) is not None:
            return False
        if isinstance(current, (list, dict)):
            if id(current) in containers:  # it contains itself, or stands in two places
                return False
            containers.add(id(current))
            waiting.extend(current if isinstance(current, list) else current.values())
    return True


def _first_problem(value: object, allow_nul: bool) -> str | None:
    path: set[int] = set()
    waiting: list[tuple[object, str, bool]] = [(value, "$", False)]
    while waiting:
        current, where, leaving = waiting.pop()
        if leaving:
            path.discard(id(current))
            continue
        problem = _own_problem(current, allow_nul)
        if problem is None and id(current) in path:
            problem = "a container that contains itself has no JSON form"
        if problem is not None:
            return f"{where}: {problem}"
        if isinstance(current, (list, dict)):
            path.add(id(current))
            waiting.append((current, where, True))
            waiting.extend((child, f"{where}{step}" if len(where) < 80 else where, False) for step, child in _children(current))
    return None


def _own_problem(value: object, allow_nul: bool) -> str | None:
    kind = type(value)
    if value is None or kind in (bool, int):
        return None
    if kind is float:
        return None if isinstance(value, float) and math.isfinite(value) else f"{value!r} is not a finite number"
    if kind is str:
        return text_problem(value, allow_nul=allow_nul)
    if isinstance(value, dict) and kind is dict:
        return _key_problem(value, allow_nul)
    if kind is list:
        return None
    return f"{kind.__name__} is not a JSON type"


def _key_problem(value: dict[object, object], allow_nul: bool) -> str | None:
    for key in value:
        if type(key) is not str:
            return f"the key {shown(key)} is not a str"
        problem = text_problem(key, allow_nul=allow_nul)
        if problem is not None:
            return f"in a key: {problem}"
    return None


def _children(value: list[object] | dict[object, object]) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        return ((f"[{index}]", child) for index, child in enumerate(value))
    return ((f".{key}", child) for key, child in value.items())


def depth_of(value: object) -> int:
    """Give the nesting depth of a JSON value: 0 for a scalar, 1 for ``[]`` and ``{}``."""
    deepest = 0
    containers = _containers([value])
    while containers:
        deepest += 1
        containers = _containers([child for container in containers for _, child in _children(container)])
    return deepest


def _containers(values: list[object]) -> list[list[object] | dict[object, object]]:
    return [value for value in values if isinstance(value, (list, dict))]


def holds_large_integer(value: object) -> bool:
    """Say whether a JSON value holds an integer outside 64 bits, which a store may refuse instead of keeping it exactly."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if type(current) is int and not -(2**63) <= current < 2**63:
            return True
        if isinstance(current, (list, dict)):
            waiting.extend(child for _, child in _children(current))
    return False


def size_of(value: object) -> int:
    """Give the size in bytes of a JSON value as canonical UTF-8 JSON (sorted keys, no spaces), at any depth."""
    try:
        return _size_of_text(value)
    except (RecursionError, ValueError):  # nested too deep for json, or an integer of more digits than Python writes
        return _size_by_parts(value)


def _size_of_text(value: object) -> int:
    return len(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _size_by_parts(value: object) -> int:
    size = 0
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, (list, dict)):
            size += 2 + max(len(current) - 1, 0)
            waiting.extend(child for _, child in _children(current))
        if isinstance(current, dict):
            size += sum(_size_of_text(key) + 1 for key in current)
        elif type(current) is int and current.bit_length() > _FEW_BITS:
            size += int(current.bit_length() * math.log10(2)) + 1 + (current < 0)
        elif not isinstance(current, list):
            size += _size_of_text(current)
    return size


def shown(value: object) -> str:
    """Give a value for a message; an integer too long to be written in decimal is described."""
    if isinstance(value, int) and value.bit_length() > _FEW_BITS:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)
