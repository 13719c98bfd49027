from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.records import a_run, nested

from runcert import Adapter, AsyncRunStore, Clock, Lab, Limits, RunStore, UsageProblem, adapter
from runcert.event_loops import EventLoopThread
from runcert.handles import Handle, Step, translate
from runcert.problems import AdapterProblem
from runcert_contract import (
    AlreadyExists,
    Conflict,
    Create,
    Find,
    FindResumable,
    Hung,
    Listing,
    Raised,
    Result,
    ResultStatus,
    Returned,
    StoreUnavailable,
    Unknown,
    Unsupported,
)
from runcert_reference.adapters import memory, memory_async

Open = Callable[..., Handle]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(f"rc_{abs(hash(tmp_path))}", tmp_path, Clock(tmp_path / "clock"))


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    made = EventLoopThread()
    yield made
    made.stop()


class Row(Exception):
    pass


class DuplicateRow(Row):
    pass


class OwnStore:
    """A store whose find raises what it was made with, or returns it."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def find(self, run_id: str) -> object:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def own(answer: object, **options: Any) -> Adapter:
    def open_own(lab: Lab) -> Iterator[Any]:
        yield OwnStore(answer)

    return adapter(RunStore, **options)(open_own)


def test_a_handle_calls_the_store_and_notes_each_step(lab: Lab) -> None:
    steps: list[Step] = []
    handle = Handle(memory, lab, "handle 1", note=steps.append)
    run = a_run()
    outcomes = [handle.call(Create(run)), handle.call(Find("run-2"))]
    handle.close()

    assert outcomes == [Returned(run), Returned(None)]
    assert steps == [Step("handle 1", Create(run), outcomes[0]), Step("handle 1", Find("run-2"), outcomes[1])]


def test_an_asynchronous_store_is_called_the_same_way(lab: Lab, loop: EventLoopThread) -> None:
    handle = Handle(memory_async, lab, "handle 1", loop=loop)
    outcome = handle.call(Create(a_run()))
    handle.close()

    assert outcome == Returned(a_run())
    assert not handle.open


@pytest.mark.parametrize(
    "error",
    [Row("r"), OSError(5, "I/O error"), RecursionError(), SystemExit(3), GeneratorExit()],
    ids=lambda e: type(e).__name__,
)
def test_whatever_the_store_raises_is_an_outcome(lab: Lab, error: BaseException) -> None:
    assert Handle(own(error), lab, "h").call(Find("r")) == Raised(error)


def test_an_interrupt_by_the_user_is_no_outcome(lab: Lab) -> None:
    handle = Handle(own(KeyboardInterrupt()), lab, "h")

    with pytest.raises(KeyboardInterrupt):
        handle.call(Find("r"))


def test_an_operation_that_the_store_does_not_have_is_unsupported(lab: Lab) -> None:
    outcome = Handle(own(None), lab, "h").call(FindResumable("t"))

    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Unsupported)


@pytest.mark.parametrize(
    ("error", "errors", "expected"),
    [
        (DuplicateRow("d"), {DuplicateRow: AlreadyExists}, AlreadyExists),
        (DuplicateRow("d"), {Row: Conflict}, Conflict),
        (DuplicateRow("d"), {DuplicateRow: AlreadyExists, Row: Conflict}, AlreadyExists),
        (ConnectionResetError("gone"), {OSError: StoreUnavailable}, StoreUnavailable),
    ],
)
def test_errors_of_the_store_are_translated_as_the_adapter_says(
    lab: Lab, error: Exception, errors: dict[type[BaseException], Any], expected: type[Exception]
) -> None:
    outcome = Handle(own(error, errors=errors), lab, "h").call(Find("r"))

    assert isinstance(outcome, Raised)
    assert (type(outcome.error), str(outcome.error), outcome.error.__cause__) == (expected, str(error), error)


def test_an_error_that_nobody_translates_stays_as_it_is() -> None:
    error = Row("r")

    assert error is translate(error, own(None, errors={OSError: StoreUnavailable}))


def test_a_value_is_returned_as_the_store_gave_it(lab: Lab) -> None:
    answer = object()

    assert Handle(own(answer), lab, "h").call(Find("r")) == Returned(answer)


# -- adapters that are wired wrongly


def connect(error: BaseException) -> Any:
    raise error


def raises_before(lab: Lab) -> Iterator[Any]:
    yield connect(ConnectionError("cannot reach the server"))


def exits_before(lab: Lab) -> Iterator[Any]:
    yield connect(SystemExit(0))


def yields_nothing(lab: Lab) -> Iterator[RunStore]:
    yield from ()


def yields_twice(lab: Lab) -> Iterator[Any]:
    yield OwnStore(None)
    yield OwnStore(None)


def raises_after(lab: Lab) -> Iterator[Any]:
    yield OwnStore(None)
    raise RuntimeError("cannot close")


async def raises_before_async(lab: Lab) -> AsyncIterator[Any]:
    yield connect(ConnectionError("cannot reach the server"))


async def yields_nothing_async(lab: Lab) -> AsyncIterator[Any]:
    stores: list[Any] = []
    for store in stores:
        yield store


async def yields_twice_async(lab: Lab) -> AsyncIterator[Any]:
    yield OwnStore(None)
    yield OwnStore(None)


async def raises_after_async(lab: Lab) -> AsyncIterator[Any]:
    yield OwnStore(None)
    raise RuntimeError("cannot close")


OPENING: dict[str, tuple[Any, str]] = {
    "raises": (raises_before, "did not open: ConnectionError: cannot reach the server"),
    "exits": (exits_before, "did not open: SystemExit: 0"),
    "yields nothing": (yields_nothing, "yields nothing; it has to yield the open store once"),
    "raises, async": (raises_before_async, "did not open: ConnectionError: cannot reach the server"),
    "yields nothing, async": (yields_nothing_async, "yields nothing"),
}
CLOSING: dict[str, tuple[Any, str]] = {
    "yields twice": (yields_twice, "yields more than once; it opens one handle and yields one store"),
    "raises": (raises_after, "raised when the handle was closed: RuntimeError: cannot close"),
    "yields twice, async": (yields_twice_async, "yields more than once"),
    "raises, async": (raises_after_async, "raised when the handle was closed: RuntimeError: cannot close"),
}


def adapt(opener: Any) -> Adapter:
    return adapter(AsyncRunStore if opener.__name__.endswith("_async") else RunStore)(opener)


@pytest.mark.parametrize(("opener", "message"), OPENING.values(), ids=list(OPENING))
def test_an_adapter_that_does_not_open_is_named(lab: Lab, loop: EventLoopThread, opener: Any, message: str) -> None:
    with pytest.raises(AdapterProblem, match=f"^the adapter {opener.__name__} {message}"):
        Handle(adapt(opener), lab, "h", loop=loop)


@pytest.mark.parametrize(("opener", "message"), CLOSING.values(), ids=list(CLOSING))
def test_an_adapter_that_does_not_end_is_named_once(lab: Lab, loop: EventLoopThread, opener: Any, message: str) -> None:
    handle = Handle(adapt(opener), lab, "h", loop=loop)
    with pytest.raises(AdapterProblem, match=f"^the adapter {opener.__name__} {message}"):
        handle.close()
    handle.close()

    assert not handle.open


def test_an_asynchronous_store_needs_an_event_loop(lab: Lab) -> None:
    with pytest.raises(AdapterProblem, match="asynchronous and was opened without an event loop"):
        Handle(memory_async, lab, "h")


def test_a_handle_ends_by_going_on_after_the_yield_and_not_by_an_exception(lab: Lab) -> None:
    seen: list[str] = []

    def open_it(lab: Lab) -> Iterator[Any]:
        try:
            yield OwnStore(None)
        except GeneratorExit:
            seen.append("thrown into")
            raise
        seen.append("went on")

    Handle(adapter(RunStore)(open_it), lab, "h").close()

    assert seen == ["went on"]


# -- calls on an event loop


class SlowStore:
    async def find(self, run_id: str) -> None:
        await asyncio.Event().wait()


async def slow_async(lab: Lab) -> AsyncIterator[Any]:
    yield SlowStore()


def test_a_call_that_does_not_end_within_the_declared_wait_hangs(lab: Lab, loop: EventLoopThread) -> None:
    made = adapter(AsyncRunStore, limits=Limits(maximum_wait=timedelta(milliseconds=1)))(slow_async)
    outcome = Handle(made, lab, "h", loop=loop).call(Find("r"))

    assert isinstance(outcome, Hung)
    assert outcome.seconds >= 1.0


def test_a_call_from_a_task_that_is_cancelled_is_unknown(lab: Lab, loop: EventLoopThread) -> None:
    handle = Handle(adapt(slow_async), lab, "h", loop=loop)

    async def cancelled() -> object:
        task = asyncio.ensure_future(handle.call_on_loop(Find("r")))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert handle.on_loop(cancelled) == Unknown("the call was cancelled")


def test_a_call_from_a_task_gives_answers_errors_and_missing_operations(lab: Lab, loop: EventLoopThread) -> None:
    handle = Handle(memory_async, lab, "h", loop=loop)

    async def calls() -> list[Any]:
        return [await handle.call_on_loop(operation) for operation in (Create(a_run()), Create(a_run()), FindResumable("t"))]

    first, second, third = handle.on_loop(calls)
    handle.close()

    assert first == Returned(a_run())
    assert isinstance(second.error, AlreadyExists)
    assert isinstance(third, Returned)


def test_a_handle_for_a_thread_of_a_burst_notes_nothing(lab: Lab) -> None:
    steps: list[Step] = []
    handle = Handle(own(None), lab, "h", note=steps.append)
    handle.unwatched().call(Find("r"))

    assert steps == []
    assert handle.unwatched().store is handle.store


# -- steps


def test_a_step_keeps_what_was_passed_in_and_handed_out_as_it_was_then(lab: Lab) -> None:
    steps: list[Step] = []
    live = a_run(input={"a": [1]}, result=Result(ResultStatus.FAILED, output=[1]))
    handle = Handle(own(Listing([live])), lab, "h", note=steps.append)
    handle.call(Find("r"))
    listed = Handle(own(live), lab, "h", note=steps.append)
    listed.call(Find("r"))
    live.input["a"] = "changed later"
    before = a_run(input={"a": [1]}, result=Result(ResultStatus.FAILED, output=[1]))

    assert [Returned(Listing([before], [])), Returned(before)] == [step.outcome for step in steps]


def test_a_step_keeps_what_cannot_be_copied_as_it_is(lab: Lab) -> None:
    steps: list[Step] = []
    deep = a_run(input={"a": nested(1, 20_000)})
    Handle(own(deep), lab, "h", note=steps.append).call(Find("r"))
    (step,) = steps

    assert isinstance(step.outcome, Returned)
    assert step.outcome.value is not None


def test_a_task_with_a_time_out_of_its_own_is_told_of_the_cancellation(lab: Lab, loop: EventLoopThread) -> None:
    handle = Handle(adapt(slow_async), lab, "h", loop=loop)

    async def timed() -> object:
        task = asyncio.ensure_future(handle.call_on_loop(Find("r"), raise_cancelled=True))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert handle.on_loop(timed) is True


def test_a_task_is_told_of_a_missing_operation(lab: Lab, loop: EventLoopThread) -> None:
    handle = Handle(adapt(slow_async), lab, "h", loop=loop)
    outcome = handle.on_loop(lambda: handle.call_on_loop(FindResumable("t")))

    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Unsupported)


class BlockingStore:
    """A store that blocks the event loop itself until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    async def find(self, run_id: str) -> None:
        self.let_go.wait()


def test_a_call_that_blocks_the_loop_itself_hangs_and_every_later_one_at_once(lab: Lab, loop: EventLoopThread) -> None:
    store = BlockingStore()

    async def open_async(lab: Lab) -> AsyncIterator[Any]:
        yield store

    made = adapter(AsyncRunStore, limits=Limits(maximum_wait=timedelta(milliseconds=1)))(open_async)
    handle = Handle(made, lab, "h", loop=loop)
    first, second = handle.call(Find("r")), handle.call(Find("r"))
    stuck = loop.stuck
    store.let_go.set()
    loop.stuck = False  # it runs again, so that it can be stopped

    assert isinstance(first, Hung)
    assert isinstance(second, Hung)
    assert stuck
    assert second.seconds < first.seconds


async def opens_never_async(lab: Lab) -> AsyncIterator[Any]:
    await asyncio.get_running_loop().create_future()
    yield object()


async def closes_never_async(lab: Lab) -> AsyncIterator[Any]:
    yield object()
    await asyncio.get_running_loop().create_future()


def test_an_asynchronous_store_is_given_up_where_it_does_not_open_or_close(
    lab: Lab, loop: EventLoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runcert.handles.OPEN_SECONDS", 0.2)

    with pytest.raises(AdapterProblem, match=r"the adapter opens_never_async did not open within 0\.2 s"):
        Handle(adapt(opens_never_async), lab, "h", loop=loop)
    with pytest.raises(
        AdapterProblem, match=r"the adapter closes_never_async did not end within 0\.2 s when the handle was closed"
    ):
        Handle(adapt(closes_never_async), lab, "h", loop=loop).close()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UsageProblem("give --server db=URL")], ids=lambda e: type(e).__name__)
def test_what_only_the_user_can_end_or_mend_leaves_the_opening_as_it_is(lab: Lab, error: BaseException) -> None:
    def asks(lab: Lab) -> Iterator[Any]:
        if lab.namespace:
            raise error
        yield object()

    with pytest.raises(type(error)):
        Handle(adapt(asks), lab, "h")


# -- the event loop


def test_a_time_out_of_the_stores_own_is_its_answer_and_no_hang(loop: EventLoopThread) -> None:
    async def gives_up() -> None:
        raise TimeoutError("the store's own")

    with pytest.raises(TimeoutError, match="the store's own"):
        loop.run(gives_up(), 30)
    assert not loop.stuck


def test_what_is_left_on_the_loop_is_cancelled_at_its_end() -> None:
    loop = EventLoopThread()
    ends: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(wait_for_ever())

    task = loop.run(begin(), 30)
    loop.run(asyncio.sleep(0), 30)
    loop.stop()

    assert (["cancelled"], True, True) == (ends, task.cancelled(), loop.loop.is_closed())
