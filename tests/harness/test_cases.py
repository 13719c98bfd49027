from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.records import a_run

from runcert import Adapter, Lab, Namespaces, RunStore, Scope, UsageProblem, adapter
from runcert.cases import Case, Depth, Workplace
from runcert.problems import AdapterProblem, KitProblem
from runcert.watchdog import Watchdog
from runcert.wire import Mode
from runcert_contract import Create, Find, Misconfigured, Returned
from runcert_reference.adapters import memory, memory_async


class Opened:
    """Everything that a made-up adapter was asked for, in order."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def adapter(self, **options: Any) -> Adapter:
        def prepare(lab: Lab) -> str:
            self.notes.append(f"prepare {lab.namespace}")
            return f"prepared {lab.namespace}"

        def dispose(lab: Lab) -> None:
            self.notes.append(f"dispose {lab.namespace}")

        def open_it(lab: Lab) -> Iterator[Any]:
            self.notes.append(f"open {lab.prepared}")
            yield object()
            self.notes.append("close")

        return adapter(RunStore, **({"prepare": prepare, "dispose": dispose} | options))(open_it)


@pytest.fixture
def opened() -> Opened:
    return Opened()


def a_workplace(root: Path, made: Adapter = memory, watchdog: Watchdog | None = None) -> Workplace:
    return Workplace("memory", made, root, {}, watchdog)


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    made = a_workplace(tmp_path)
    yield made
    made.end()


def test_a_namespace_is_prepared_once_and_disposed_of_once(tmp_path: Path, opened: Opened) -> None:
    workplace = a_workplace(tmp_path, opened.adapter())
    namespace = workplace.make_named("ns")
    workplace.open(namespace)
    workplace.open(namespace)
    workplace.end()

    assert opened.notes == ["prepare ns", "open prepared ns", "open prepared ns", "close", "close", "dispose ns"]
    assert list(tmp_path.iterdir()) == []


def test_checks_share_a_namespace_and_an_isolated_one_has_its_own(workplace: Workplace) -> None:
    first, second, alone = (
        Case(workplace, Depth.QUICK, 1),
        Case(workplace, Depth.QUICK, 2),
        Case(workplace, Depth.QUICK, 3, isolated=True),
    )

    assert first.namespace() is second.namespace()
    assert alone.namespace() is alone.namespace()
    assert alone.namespace() is not first.namespace()


def test_where_namespaces_are_shared_an_isolated_check_has_fresh_ids_only(tmp_path: Path) -> None:
    shared = replace(memory, claims=replace(memory.claims, namespaces=Namespaces.SHARED))
    first, second = a_workplace(tmp_path / "1", shared), a_workplace(tmp_path / "2", shared)
    ids = [Case(workplace, Depth.QUICK, 1, isolated=True).fresh_id() for workplace in (first, second)]

    assert Case(first, Depth.QUICK, 1, isolated=True).namespace() is first.common()
    assert len(set(ids)) == 2


def test_fresh_ids_follow_from_the_seed_and_never_come_twice(workplace: Workplace) -> None:
    first, again, other = (Case(workplace, Depth.QUICK, seed) for seed in (1, 1, 2))
    ids = [first.fresh_id() for _ in range(100)]

    assert ids == [again.fresh_id() for _ in range(100)]
    assert len(set(ids) | {other.fresh_id() for _ in range(100)}) == 200


@pytest.mark.parametrize(("scope", "same"), [(Scope.HANDLE, True), (Scope.PROCESS, False)])
def test_another_handle_is_the_same_one_where_the_scope_is_the_handle(tmp_path: Path, scope: Scope, same: bool) -> None:
    case = Case(a_workplace(tmp_path, replace(memory, claims=replace(memory.claims, scope=scope))), Depth.QUICK, 1)
    handle = case.open()

    assert same is (case.another(handle) is handle)
    case.end()


def test_reopening_closes_every_handle_of_the_namespace(workplace: Workplace) -> None:
    case = Case(workplace, Depth.QUICK, 1)
    handles = [case.open(), case.open()]
    handles[0].call(Create(a_run()))
    fresh = case.reopen()

    assert [False, False] == [handle.open for handle in handles]
    assert fresh.call(Find("run-1")) == Returned(None)


def test_ending_a_check_closes_its_handles_and_leaves_those_of_others(workplace: Workplace) -> None:
    mine, yours = Case(workplace, Depth.QUICK, 1), Case(workplace, Depth.QUICK, 2)
    handles = mine.open(), yours.open()
    mine.end()

    assert [False, True] == [handle.open for handle in handles]


def test_another_namespace_is_removed_when_the_check_ends_or_before(workplace: Workplace) -> None:
    case = Case(workplace, Depth.QUICK, 1)
    first, second = case.another_namespace("ab"), case.another_namespace()
    case.dispose(first)
    roots = [first.root.exists(), second.root.exists()]
    case.end()

    assert roots == [False, True]
    assert not second.root.exists()


def test_the_steps_of_a_check_are_kept_but_for_silent_ones(workplace: Workplace) -> None:
    case = Case(workplace, Depth.QUICK, 1)
    handle = case.open()
    handle.call(Find("a"))
    with case.silent():
        handle.call(Find("b"))
    handle.call(Find("c"))

    assert [Find("a"), Find("c")] == [step.operation for step in case.steps]


def test_a_hook_is_called_with_the_lab_of_the_check_and_may_be_asynchronous(tmp_path: Path, opened: Opened) -> None:
    async def inventory(lab: Lab) -> dict[str, int]:
        opened.notes.append(f"count {lab.namespace}")
        return {"rows": 3}

    workplace = a_workplace(tmp_path, opened.adapter(inventory=inventory))
    case = Case(workplace, Depth.QUICK, 1)
    counted = case.inventory()
    name = case.namespace().lab.namespace
    workplace.end()

    assert counted == {"rows": 3}
    assert f"count {name}" in opened.notes
    assert [True, False] == [case.has_hook("inventory"), case.has_hook("damage")]


@pytest.mark.parametrize("answer", [None, 7, {"rows": "many"}, {"rows": None}, ["rows"]])
def test_an_inventory_of_another_form_is_a_problem_of_the_adapter(tmp_path: Path, opened: Opened, answer: object) -> None:
    case = Case(a_workplace(tmp_path, opened.adapter(inventory=lambda lab: answer)), Depth.QUICK, 1)

    with pytest.raises(AdapterProblem, match=r"the hook inventory returned .*; expected a mapping from str to int"):
        case.inventory()


def failing_hook(lab: Lab) -> None:
    raise OSError("no such table")


def asking_hook(lab: Lab) -> None:
    lab.server("postgresql")


def test_a_hook_that_raises_is_a_problem_of_the_adapter(tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(AdapterProblem, match=r"the hook prepare of the adapter open_it raised OSError: no such table"):
        a_workplace(tmp_path, opened.adapter(prepare=failing_hook)).common()


def test_a_hook_that_misses_a_server_is_a_usage_problem(tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(UsageProblem, match="give its address with --server postgresql=URL"):
        a_workplace(tmp_path, opened.adapter(prepare=asking_hook)).common()


def test_a_namespace_that_cannot_be_disposed_of_does_not_keep_the_run_from_ending(tmp_path: Path, opened: Opened) -> None:
    workplace = a_workplace(tmp_path, opened.adapter(dispose=failing_hook))
    case = Case(workplace, Depth.QUICK, 1)
    case.open(case.another_namespace())
    case.abandon()
    workplace.end()

    assert opened.notes.count("close") == 1


def test_what_was_left_to_do_at_the_end_is_done(tmp_path: Path) -> None:
    workplace, done = a_workplace(tmp_path), []
    workplace.at_end.append(lambda: done.append("stopped"))
    workplace.end()

    assert done == ["stopped"]


def test_an_asynchronous_store_has_one_event_loop_for_all_handles(tmp_path: Path) -> None:
    workplace = a_workplace(tmp_path, memory_async)
    case = Case(workplace, Depth.QUICK, 1)
    outcomes = [case.open().call(Create(a_run())), case.open().call(Find("run-1"))]
    loop = workplace.loop
    case.end()
    workplace.end()

    assert outcomes == [Returned(a_run()), Returned(a_run())]
    assert loop is workplace.loop


def test_a_watched_store_is_called_as_any_other(tmp_path: Path) -> None:
    watchdog = Watchdog(lambda hang: None)
    workplace = a_workplace(tmp_path, memory, watchdog)
    case = Case(workplace, Depth.QUICK, 1)
    outcome = case.open().call(Create(a_run()))
    workplace.end()
    watchdog.stop()

    assert outcome == Returned(a_run())


def test_an_outage_takes_the_backend_away_and_brings_it_back_also_after_a_failure(tmp_path: Path, opened: Opened) -> None:
    def outage(lab: Lab) -> Iterator[None]:
        opened.notes.append("away")
        yield
        opened.notes.append("back")

    workplace = a_workplace(tmp_path, opened.adapter(outage=outage, prepare=None, dispose=None))
    case = Case(workplace, Depth.QUICK, 0)
    with pytest.raises(ZeroDivisionError), case.outage():
        _ = 1 / 0

    assert ["away", "back"] == opened.notes
    workplace.end()


def never(lab: Lab) -> Iterator[None]:
    yield from ()


def twice(lab: Lab) -> Iterator[None]:
    yield
    yield


@pytest.mark.parametrize(
    ("outage", "message"),
    [(lambda lab: None, "returned None; it takes"), (never, "never yields"), (twice, "yields more than once")],
    ids=["no generator", "never", "twice"],
)
def test_a_hook_outage_that_is_no_outage_is_a_problem_of_the_adapter(
    tmp_path: Path, opened: Opened, outage: Any, message: str
) -> None:
    workplace = a_workplace(tmp_path, opened.adapter(outage=outage))

    with pytest.raises(AdapterProblem, match=message), Case(workplace, Depth.QUICK, 0).outage():
        pass
    workplace.end()


def test_what_a_store_raises_at_opening_is_given_translated(tmp_path: Path) -> None:
    def refuse() -> object:
        raise PermissionError("not here")

    @adapter(RunStore, errors={PermissionError: Misconfigured})
    def refuses(lab: Lab) -> Iterator[Any]:
        yield refuse()

    workplace = a_workplace(tmp_path, refuses)
    refused = Case(workplace, Depth.QUICK, 0).try_to_open()

    assert isinstance(refused, Misconfigured)
    workplace.end()


def test_a_wire_of_a_check_is_closed_with_it(tmp_path: Path) -> None:
    workplace = a_workplace(tmp_path)
    case = Case(workplace, Depth.QUICK, 0)
    wire = case.wire()
    case.open(wire=wire)
    wire.be(Mode.GONE)

    case.end()

    with pytest.raises(KitProblem, match="closed"):
        wire.be(Mode.PASS)
    workplace.end()
