"""Bursts run every client in threads, tasks and processes alike, and say what kept one of them from its work."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.records import a_run

from runcert import Adapter, Handles, Scope
from runcert.burst_programs import CLIENTS, Pause
from runcert.bursts import Burst, bursts_of
from runcert.cases import Case, Depth, Workplace
from runcert.checks import Violation
from runcert.problems import AdapterProblem
from runcert.targets import resolve
from runcert_contract import AlreadyExists, Create, Find, Operation, Outcome, Raised, Returned, Run
from runcert_reference.adapters import memory, memory_async
from runcert_suites.run_store.contention import create_each

STORES = Path(__file__).parent.parent / "stores" / "in_bursts.py"

Cases = Callable[..., Case]


@pytest.fixture
def case_on(tmp_path: Path) -> Iterator[Cases]:
    """Give cases on targets; what they opened is closed at the end."""
    workplaces: list[Workplace] = []

    def make(text: str, adapter: Adapter | None = None) -> Case:
        (target,) = resolve(text)
        root = tmp_path / str(len(workplaces))
        workplaces.append(Workplace(target.spec, adapter or target.adapter, root, {}, None))
        return Case(workplaces[-1], Depth.QUICK, 1)

    yield make
    for workplace in workplaces:
        workplace.end()


def claiming(made: Adapter, scope: Scope, handles: Handles) -> Adapter:
    return replace(made, claims=replace(made.claims, scope=scope, handles=handles))


def burst_of(case: Case, name: str) -> Burst:
    return next(burst for burst in bursts_of(case, case.open()) if burst.name == name)


def processes_of(case: Case) -> Burst:
    return burst_of(case, "processes")


def kill(process: int) -> None:
    """Kill a child of this process and wait for its end, which is left for others to take note of."""
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def find_with_a_pause(client: int, work: str) -> Generator[Operation, Outcome, None]:
    yield Pause(0.001)
    yield Find(work)


def some_runs(case: Case) -> list[Run]:
    return [a_run(case.fresh_id()) for _ in range(5)]


@pytest.mark.parametrize(
    ("text", "scope", "handles", "expected"),
    [
        ("memory", Scope.HANDLE, Handles.PER_THREAD, []),
        ("memory", Scope.HANDLE, Handles.SHARED, ["threads, one handle"]),
        ("memory", Scope.PROCESS, Handles.PER_THREAD, ["threads, a handle each"]),
        ("memory", Scope.HOST, Handles.SHARED, ["threads, one handle", "threads, a handle each", "processes"]),
        ("memory-async", Scope.HANDLE, Handles.PER_TASK, []),
        ("memory-async", Scope.PROCESS, Handles.SHARED, ["tasks, one handle", "tasks, a handle each"]),
        ("memory-async", Scope.CLUSTER, Handles.PER_TASK, ["tasks, a handle each", "processes"]),
    ],
)
def test_clients_work_at_once_in_the_ways_that_are_claimed(
    case_on: Cases, text: str, scope: Scope, handles: Handles, expected: list[str]
) -> None:
    made = {"memory": memory, "memory-async": memory_async}[text]
    case = case_on(text, claiming(made, scope, handles))

    assert expected == [burst.name for burst in bursts_of(case, case.open())]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("memory", "threads, one handle"),
        ("memory", "threads, a handle each"),
        ("memory-async", "tasks, a handle each"),
        ("sqlite", "processes"),
    ],
)
def test_one_client_wins_each_run_and_the_others_are_refused(case_on: Cases, target: str, name: str) -> None:
    case = case_on(target)
    runs = some_runs(case)

    events = burst_of(case, name).run(create_each, runs)

    assert len(events) == CLIENTS * len(runs)
    assert [event.called for event in events] == sorted(event.called for event in events)
    for run in runs:
        outcomes = [
            event.outcome
            for event in events
            if isinstance(event.operation, Create) and event.operation.run.run_id == run.run_id
        ]
        assert 1 == sum(isinstance(outcome, Returned) for outcome in outcomes)
        assert CLIENTS - 1 == sum(
            isinstance(outcome, Raised) and isinstance(outcome.error, AlreadyExists) for outcome in outcomes
        )


@pytest.mark.parametrize(("target", "name"), [("memory", "threads, one handle"), ("memory-async", "tasks, a handle each")])
def test_a_pause_is_no_call(case_on: Cases, target: str, name: str) -> None:
    events = burst_of(case_on(target), name).run(find_with_a_pause, "unknown")

    assert [Find("unknown")] * CLIENTS == [event.operation for event in events]
    assert [Returned(None)] * CLIENTS == [event.outcome for event in events]


def test_client_processes_are_kept_from_burst_to_burst_and_replaced_when_they_are_gone(case_on: Cases) -> None:
    case = case_on("sqlite")
    burst = processes_of(case)

    def processes() -> set[int]:
        return {event.process for event in burst.run(create_each, [a_run(case.fresh_id())])}

    first = processes()
    assert first == processes()
    for process in first:
        kill(process)
    second = processes()

    assert CLIENTS == len(second)
    assert first.isdisjoint(second)


def test_clients_of_a_cluster_share_neither_directory_nor_clock(case_on: Cases) -> None:
    """Runs in files are in the directory of the lab, which only the clients of one machine share."""
    (target,) = resolve("file")
    case = case_on("file", replace(target.adapter, claims=replace(target.adapter.claims, scope=Scope.CLUSTER)))
    runs = [a_run(case.fresh_id())]

    events = processes_of(case).run(create_each, runs)

    assert [Create] * CLIENTS == [type(event.operation) for event in events]
    assert all(isinstance(event.outcome, Returned) for event in events)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("raises_on_open", "in a client process: AdapterProblem: the adapter raises_on_open did not open: Connection"),
        ("leaves_the_interpreter", "a client process of a burst ended or was silent for too long"),
        ("hangs_on_open", "a client process of a burst ended or was silent for too long"),
    ],
)
def test_a_client_process_that_cannot_go_on_is_the_adapters_problem(
    case_on: Cases, monkeypatch: pytest.MonkeyPatch, store: str, message: str
) -> None:
    monkeypatch.setattr("runcert.burst_processes._PATIENCE", 2.0)
    case = case_on(f"{STORES}:{store}")
    burst = processes_of(case)

    with pytest.raises(AdapterProblem, match=message):
        burst.run(create_each, some_runs(case))


def test_client_processes_that_are_killed_between_two_orders_are_the_adapters_problem(case_on: Cases) -> None:
    case = case_on("sqlite")
    events = processes_of(case).run(create_each, some_runs(case))
    (pool,) = case.workplace.kept.values()
    for process in {event.process for event in events}:
        kill(process)

    with pytest.raises(AdapterProblem, match="a client process of a burst is gone"):
        pool.run(case.namespace(), create_each, some_runs(case))


@pytest.mark.parametrize(
    ("store", "name"),
    [
        ("never_creates", "threads, one handle"),
        ("never_creates", "processes"),
        ("never_creates_on_the_loop", "tasks, one handle"),
        ("blocks_the_loop", "tasks, one handle"),
    ],
)
def test_a_call_that_does_not_end_breaks_the_bound(case_on: Cases, store: str, name: str) -> None:
    case = case_on(f"{STORES}:{store}")
    burst = burst_of(case, name)

    with pytest.raises(Violation) as raised:
        burst.run(create_each, some_runs(case))

    assert "RUN-BOUND-1" == raised.value.clause
    assert "every call to end within 0.3 s, also under contention" == raised.value.expected
    assert re.search(r"create\(\) of client \d, one of 4 .* had not ended after 1\.3 s", raised.value.found)


def test_what_no_store_of_the_contract_returns_comes_back_as_it_was_told(case_on: Cases) -> None:
    case = case_on(f"{STORES}:creates_an_object")

    events = processes_of(case).run(create_each, [a_run(case.fresh_id())])

    assert [True] * CLIENTS == [
        isinstance(event.outcome, Returned) and not isinstance(event.outcome.value, Run) for event in events
    ]


def test_a_handle_that_cannot_be_opened_twice_stops_the_burst(case_on: Cases) -> None:
    case = case_on(f"{STORES}:opens_once")
    burst = burst_of(case, "threads, a handle each")

    with pytest.raises(AdapterProblem, match="the adapter opens_once did not open: FileExistsError"):
        burst.run(create_each, some_runs(case))
