"""Values of the contract as Python source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

from runcert_contract import Run, canonical

__all__ = ["NoLiteral", "literal", "run_literal"]

_LONG = 200
_WIDTH = 100


class NoLiteral(Exception):  # says what is missing, which is no error of anybody
    """A value has no literal that a person would read."""


def literal(value: object) -> str:
    """Give the source of a value: plain data, instants, and records and choices of the contract.

    Raises:
        NoLiteral: it is something else.
    """
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str) and len(value) > _LONG and len(set(value)) == 1:
        return f"{value[0]!r} * {len(value)}"
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, timedelta):
        return f"timedelta(days={value.days}, seconds={value.seconds}, microseconds={value.microseconds})"
    return _compound(value)


def _compound(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{literal(key)}: {literal(inner)}' for key, inner in value.items())}}}"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(f'{name}={literal(getattr(value, name))}' for name in _told(value))})"
    raise NoLiteral(type(value).__name__)


def _told(value: object) -> list[str]:
    """Give the fields of a record that do not have their default."""
    found = []
    for entry in fields(value):  # type: ignore[arg-type]  # only dataclasses come here, which `object` does not say
        default = entry.default_factory() if callable(entry.default_factory) else entry.default
        if default is MISSING or _differ(getattr(value, entry.name), default):
            found.append(entry.name)
    return found


def run_literal(run: Run, known: Mapping[str, Run]) -> str:
    """Give the source of a run: as another one with some fields changed, where that is shorter to read.

    Args:
        run: the run.
        known: runs that have names already, by name.
    """
    for name, other in reversed(list(known.items())):
        if other.run_id == run.run_id:
            changed = [entry.name for entry in fields(run) if _differ(getattr(run, entry.name), getattr(other, entry.name))]
            return _called("replace", [name, *(f"{each}={literal(getattr(run, each))}" for each in changed)])
    return _called("Run", [f"{each}={literal(getattr(run, each))}" for each in _told(run)])


def _called(name: str, arguments: Sequence[str]) -> str:
    """Give a call, on a line for each argument where it is long."""
    line = f"{name}({', '.join(arguments)})"
    return line if len(line) <= _WIDTH else "\n".join([f"{name}(", *(f"    {each}," for each in arguments), ")"])


def _differ(one: object, other: object) -> bool:
    return type(one) is not type(other) or canonical(one) != canonical(other)


def _instant(value: datetime) -> str:
    parts = [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond]
    while len(parts) > 3 and parts[-1] == 0:
        parts.pop()
    numbers = ", ".join(map(str, parts))
    offset = value.utcoffset()
    if offset is None:
        return f"datetime({numbers})"
    zone = "timezone.utc" if not offset else f"timezone({literal(offset)})"
    if value.tzinfo is not None and not isinstance(value.tzinfo, timezone) and value.tzinfo.utcoffset(None) is None:
        raise NoLiteral("a time zone with rules")
    return f"datetime({numbers}, tzinfo={zone}{', fold=1' if value.fold else ''})"
