from __future__ import annotations

import io
import json
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import operations, outcomes

from runcert.history import FORMAT, Event, HistoryProblem, overlapping, read_history, write_history
from runcert_contract import Find, FindResumable, Operation, Raised, Returned, canonical


def events(most: int = 5) -> st.SearchStrategy[list[Event]]:
    made = st.builds(
        lambda client, operation, outcome, called, length: Event(
            client, client + 100, operation, outcome, called, called + length
        ),
        st.integers(0, 5),
        operations(),
        outcomes(),
        st.integers(0, 2**62),
        st.integers(0, 2**40),
    )
    return st.lists(made, max_size=most)


def written(history: list[Event]) -> list[str]:
    file = io.StringIO()
    write_history(history, file)
    return file.getvalue().splitlines(keepends=True)


@given(history=events())
def test_a_history_that_was_written_is_read_again(history: list[Event]) -> None:
    found = read_history(io.StringIO("".join(written(history))))

    assert [canonical(event) for event in history] == [canonical(event) for event in found]


EVENT = Event(1, 2, Find("r1"), Returned(None), 10, 20)
LINES = written([EVENT, EVENT])


def test_a_raw_error_keeps_its_name_through_files_however_often_it_is_copied() -> None:
    once = written([Event(1, 2, Find("r1"), Raised(KeyError("k")), 10, 20)])
    twice = written(read_history(io.StringIO("".join(once))))

    assert once == twice


@pytest.mark.parametrize("kept", range(4))
def test_a_file_that_was_cut_after_a_line_is_noticed(kept: int) -> None:
    with pytest.raises(HistoryProblem, match=r"line \d"):
        read_history(io.StringIO("".join(LINES[:kept])))


@given(length=st.integers(0, len("".join(LINES)) - 2))
def test_a_file_that_was_cut_anywhere_is_noticed(length: int) -> None:
    with pytest.raises(HistoryProblem, match=r"^line \d"):
        read_history(io.StringIO("".join(LINES)[:length]))


def test_an_event_that_is_missing_in_the_middle_is_noticed() -> None:
    with pytest.raises(HistoryProblem, match="line 3: expected a footer that counts 1 events"):
        read_history(io.StringIO("".join([LINES[0], LINES[1], LINES[3]])))


GOOD = json.loads(LINES[1])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "not JSON"),
        ("{}", "expected \\[client, process, operation, outcome, called, returned\\]"),
        (json.dumps(GOOD[:5]), "expected \\[client"),
        (json.dumps([*GOOD, 1]), "expected \\[client"),
        (json.dumps([*GOOD[:4], 20, 10]), "a return follows its call"),
        (json.dumps([*GOOD[:4], 1.0, 2]), "are integers"),
        (json.dumps([True, *GOOD[1:]]), "are integers"),
        (json.dumps([*GOOD[:2], "create", *GOOD[3:]]), "expected an operation, found 'create'"),
        (json.dumps([*GOOD[:2], {"$record": ["Returned", {"value": 1}]}, *GOOD[3:]]), "expected an operation"),
        (json.dumps([*GOOD[:2], {"$unknown": 1}, *GOOD[3:]]), "unknown tag"),
        (json.dumps([*GOOD[:3], {"$record": ["Returned", {}]}, *GOOD[4:]]), "does not take"),
        (json.dumps([*GOOD[:3], "None", *GOOD[4:]]), "expected an outcome, found 'None'"),
        (json.dumps([*GOOD[:3], None, *GOOD[4:]]), "expected an outcome, found None"),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(line: str, message: str) -> None:
    with pytest.raises(HistoryProblem, match=f"^line 3: .*{message}"):
        read_history(io.StringIO("".join([LINES[0], LINES[1], line + "\n", LINES[3]])))


@pytest.mark.parametrize("header", ["", "[]\n", '{"format": "runcert-history/2"}\n', '{"events": 0}\n'])
def test_a_file_without_the_header_is_no_history(header: str) -> None:
    with pytest.raises(HistoryProblem, match=f"line 1: expected the header of {FORMAT}"):
        read_history(io.StringIO(header))


def thing(operation: Operation) -> Hashable | None:
    return operation.run_id if isinstance(operation, Find) else None


def counted_pair_by_pair(history: list[Event]) -> int:
    """Count by the definition: an event counts when some other client's event on the same thing was running at the same time."""
    return sum(
        any(
            other is not event
            and other.client != event.client
            and thing(other.operation) is not None
            and thing(other.operation) == thing(event.operation)
            and other.called <= event.returned
            and event.called <= other.returned
            for other in history
        )
        for event in history
    )


def short_events() -> st.SearchStrategy[list[Event]]:
    operation = st.sampled_from([Find("r1"), Find("r2"), FindResumable("t")])
    made = st.builds(
        lambda client, what, called, length: Event(client, 1, what, Returned(None), called, called + length),
        st.integers(1, 3),
        operation,
        st.integers(0, 30),
        st.integers(0, 8),
    )
    return st.lists(made, max_size=25)


@given(history=short_events())
def test_overlapping_operations_are_counted_as_pair_by_pair(history: list[Event]) -> None:
    expected = counted_pair_by_pair(history)

    assert expected == overlapping(history, thing)


def test_operations_of_one_client_never_overlap_with_each_other() -> None:
    history = [Event(1, 1, Find("r1"), Returned(None), 0, 10), Event(1, 1, Find("r1"), Returned(None), 5, 15)]

    assert overlapping(history, thing) == 0
