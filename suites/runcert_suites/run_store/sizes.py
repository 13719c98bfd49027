"""Values of an exact size: texts, nesting and records at a limit or just over it."""

from __future__ import annotations

from dataclasses import replace

from runcert_contract import JsonValue, Run
from runcert_contract.json_values import size_of
from runcert_contract.run_store import as_json

__all__ = ["nested", "of_size", "text_of"]


def text_of(length: int, character: str = "x") -> str:
    """Give a text of ``length`` code points that does not end as it begins, so that a cut end shows."""
    return (character * length)[:-1] + "!" if length else ""


def nested(depth: int, bottom: JsonValue = None) -> JsonValue:
    """Give a JSON value of exactly this depth: lists and objects in turn around ``bottom``, objects outside.

    Args:
        depth: how deep; 0 gives ``bottom`` itself.
        bottom: a scalar.
    """
    value: JsonValue = bottom
    for level in range(depth, 0, -1):
        around: JsonValue = {"in": value} if level % 2 else [value]
        value = around
    return value


def of_size(run: Run, size: int, character: str = "x") -> Run:
    """Give ``run`` with an input that makes the whole record ``size`` bytes long as canonical JSON.

    Args:
        run: the record; its input is replaced.
        size: the size in bytes, more than the rest of the record takes.
        character: what the input is made of; several bytes long in UTF-8 for texts that a careless cut breaks.
    """
    empty = replace(run, input={"pad": ""})
    room = size - size_of(as_json(empty))
    width = len(character.encode())
    return replace(empty, input={"pad": character * (room // width) + "x" * (room % width)})
