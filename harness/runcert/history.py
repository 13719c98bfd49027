"""The record of what concurrent clients did: one event an operation, call and return on one monotonic clock.

A history is written as JSON Lines: a header, the events, a footer with their number (so that a cut file is noticed).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from runcert_contract import Hung, Operation, Outcome, Raised, Returned, Unknown, decode, encode

__all__ = ["FORMAT", "Event", "HistoryProblem", "overlapping", "read_history", "write_history"]

FORMAT = "runcert-history/1"


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of one client.

    Attributes:
        client: the number of the client.
        process: the operating system's id of the process that it ran in.
        operation: what was called.
        outcome: what came of it; an unknown outcome stays unknown.
        called: when the call began, in nanoseconds of the monotonic clock.
        returned: when it ended.
    """

    client: int
    process: int
    operation: Operation
    outcome: Outcome
    called: int
    returned: int


class HistoryProblem(ValueError):
    """A history file cannot be read; the message names the line."""


def overlapping(events: Iterable[Event], contended: Callable[[Operation], Hashable | None]) -> int:
    """Count the operations that overlapped in time with one of another client on the same thing.

    Args:
        events: what the clients did.
        contended: what an operation contends for; None for operations that contend for nothing.
    """
    groups: dict[Hashable, list[Event]] = defaultdict(list)
    for event in events:
        thing = contended(event.operation)
        if thing is not None:
            groups[thing].append(event)
    return sum(len(_overlapped(group)) for group in groups.values())


def _overlapped(group: Sequence[Event]) -> set[int]:
    found: set[int] = set()
    running: list[tuple[int, Event]] = []
    for number, event in sorted(enumerate(group), key=lambda entry: entry[1].called):
        running = [(other, earlier) for other, earlier in running if earlier.returned >= event.called]
        rivals = [other for other, earlier in running if earlier.client != event.client]
        if rivals:
            found.add(number)
            found.update(rivals)
        running.append((number, event))
    return found


def write_history(events: Sequence[Event], file: IO[str]) -> None:
    """Write a history as JSON Lines.

    Args:
        events: what the clients did.
        file: an open text file.
    """
    file.write(json.dumps({"format": FORMAT}) + "\n")
    for event in events:
        row = [event.client, event.process, encode(event.operation), encode(event.outcome), event.called, event.returned]
        file.write(json.dumps(row) + "\n")
    file.write(json.dumps({"events": len(events)}) + "\n")


def read_history(file: IO[str]) -> list[Event]:
    """Read a history that :func:`write_history` wrote.

    Raises:
        HistoryProblem: the file is no history, is cut, or a line is malformed.
    """
    lines = list(_json_lines(file))
    if not lines or lines[0] != {"format": FORMAT}:
        raise HistoryProblem(f"line 1: expected the header of {FORMAT}")
    events = [_event(number, row) for number, row in enumerate(lines[1:-1], start=2)]
    if lines[-1] != {"events": len(events)}:
        raise HistoryProblem(f"line {len(lines)}: expected a footer that counts {len(events)} events; the file was cut")
    return events


def _json_lines(file: IO[str]) -> Iterator[object]:
    for number, line in enumerate(file, start=1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise HistoryProblem(f"line {number}: not JSON: {error.msg}") from error


def _event(number: int, row: object) -> Event:
    if not isinstance(row, list) or len(row) != 6:
        raise HistoryProblem(f"line {number}: expected [client, process, operation, outcome, called, returned]")
    client, process, operation, outcome, called, returned = row
    if not all(type(value) is int for value in (client, process, called, returned)) or returned < called:
        raise HistoryProblem(f"line {number}: client, process, called and returned are integers, and a return follows its call")
    try:
        return Event(client, process, _operation(decode(operation)), _outcome(decode(outcome)), called, returned)
    except ValueError as error:
        raise HistoryProblem(f"line {number}: {error}") from error


def _operation(value: object) -> Operation:
    if not isinstance(value, Operation):
        raise ValueError(f"expected an operation, found {value!r}")  # noqa: TRY004  # a wrong line of a file, not a wrong type in code
    return value


def _outcome(value: object) -> Outcome:
    if not isinstance(value, (Returned, Raised, Unknown, Hung)):
        raise ValueError(f"expected an outcome, found {value!r}")  # noqa: TRY004  # as above
    return value
