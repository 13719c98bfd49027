"""The calls that led to a failure as a picture: a lane for each handle or client, time from top to bottom."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from runcert.reports.failures import outcome_of_step
from runcert.wording import operation_in_words
from runcert_contract import JsonValue, decode

__all__ = ["steps_as_svg"]

_LANE = 330
_MARGIN = 12
_LINE = 17
_HEAD = 30
_GAP = 12
_COLUMNS = 40
_MOST_LINES = 6


def steps_as_svg(steps: Sequence[JsonValue]) -> str:
    """Give steps as an SVG element; an empty text where there are none.

    Args:
        steps: as they stand in a failure: handle, operation and outcome, encoded.

    Returns:
        The element for a page: it has a title and a description, and takes its colours from the page
        (classes ``lane``, ``call``, ``last``, ``said``).
    """
    if not steps:
        return ""
    rows = [_row(step) for step in steps]
    lanes = list(dict.fromkeys(lane for lane, _, _ in rows))
    svg = ElementTree.Element("svg", {"class": "steps", "role": "img", "xmlns": "http://www.w3.org/2000/svg"})
    ElementTree.SubElement(svg, "title").text = f"{len(rows)} calls by {', '.join(lanes)}, from top to bottom"
    top = _HEAD
    drawn: list[ElementTree.Element] = []
    for number, (lane, call, said) in enumerate(rows, start=1):
        height = (len(call) + len(said)) * _LINE + _GAP
        last = number == len(rows)
        drawn.append(_box(lanes.index(lane), top, height, last=last))
        drawn += _texts(lanes.index(lane), top, call, said)
        top += height + _GAP
    width = len(lanes) * _LANE
    svg.set("viewBox", f"0 0 {width} {top}")
    svg.set("width", str(width))
    svg.extend(part for index, name in enumerate(lanes) for part in _lane(index, name, top))
    svg.extend(drawn)
    return ElementTree.tostring(svg, encoding="unicode")


def _row(step: Any) -> tuple[str, list[str], list[str]]:
    operation: Any = decode(step[1])
    call = _wrapped(operation_in_words(operation))
    said = _wrapped(outcome_of_step(step), first="→ ") if operation.method else []
    return str(step[0]) or "all handles", call, said


def _wrapped(text: str, first: str = "") -> list[str]:
    lines = textwrap.wrap(f"{first}{text}", _COLUMNS, subsequent_indent="  ", break_long_words=True)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "  …"]


def _lane(index: int, name: str, bottom: int) -> list[ElementTree.Element]:
    x = str(index * _LANE + _MARGIN)
    head = ElementTree.Element("text", {"x": x, "y": "18", "class": "head"})
    head.text = name
    line = ElementTree.Element("line", {"x1": x, "x2": x, "y1": "24", "y2": str(bottom), "class": "lane"})
    return [head, line]


def _box(lane: int, top: int, height: int, *, last: bool) -> ElementTree.Element:
    return ElementTree.Element(
        "rect",
        {
            "x": str(lane * _LANE + _MARGIN),
            "y": str(top),
            "width": str(_LANE - 2 * _MARGIN),
            "height": str(height),
            "rx": "4",
            "class": "call last" if last else "call",
        },
    )


def _texts(lane: int, top: int, call: Sequence[str], said: Sequence[str]) -> list[ElementTree.Element]:
    found: list[ElementTree.Element] = []
    for number, line in enumerate((*call, *said)):
        element = ElementTree.Element(
            "text",
            {
                "x": str(lane * _LANE + 2 * _MARGIN),
                "y": str(top + _LINE + number * _LINE),
                "class": "said" if number >= len(call) else "made",
                "xml:space": "preserve",
            },
        )
        element.text = line
        found.append(element)
    return found
