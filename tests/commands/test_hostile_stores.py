"""Stores that misbehave as programs get one clear verdict and the right exit code, and never a green."""

from __future__ import annotations

import pytest

from .conftest import STORES, Runcert

HOSTILE = STORES / "hostile.py"
ONLY = ("--depth", "quick", "--only", "RUN-CREATE-1", "--only", "RUN-CREATE-2", "--seed", "1")


@pytest.mark.parametrize("store", ["prints", "leaks_threads", "changes_directory"])
def test_noise_does_not_disturb_the_verdict(runcert: Runcert, store: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=0)

    assert "noise" not in done.out
    assert "RUN-CREATE-1       pass" in done.out


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("raises_on_open", "did not open: ConnectionRefusedError: no server at postgresql://ann:***@127.0.0.1:1/db"),
        ("raises_on_close", "raised when the handle was closed: RuntimeError: cannot close"),
        ("yields_nothing", "yields nothing; it has to yield the open store once"),
        ("yields_twice", "yields more than once"),
        ("yields_the_wrong_thing", "it yielded dict, which has no method find"),
        ("raises_anything", "gave the raw error ZeroDivisionError('anything')"),
        ("hangs_on_first_call", "did not end within 1.3 s"),
        ("leaves_the_interpreter_on_open", "the process ended with status 0 while the target was loaded"),
        ("closes_standard_output", "did not open: OSError"),
    ],
)
def test_a_store_that_cannot_be_tried_is_exit_2_with_one_message(runcert: Runcert, store: str, message: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=2)

    assert message in done.err
    assert done.out == ""
    assert "hunter2" not in done.err


@pytest.mark.parametrize("store", ["hangs_on_open", "hangs_on_close"])
def test_a_store_that_hangs_outside_of_calls_is_exit_2(runcert: Runcert, store: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=2)

    assert "did not end within 20 s" in done.err


@pytest.mark.parametrize("store", ["hangs_on_call", "hangs_on_async_call"])
def test_a_call_that_hangs_breaks_the_bound(runcert: Runcert, store: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=1)

    assert "RUN-BOUND-1        fail" in done.out
    assert "create(Run(" in done.out


@pytest.mark.parametrize("store", ["raises_system_exit_later", "calls_pytest_exit_later", "skips_later"])
def test_an_exception_that_would_end_or_skip_a_test_is_a_raw_error(runcert: Runcert, store: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=1)

    assert "the raw error" in done.out


@pytest.mark.parametrize("store", ["leaves_the_interpreter", "crashes_the_interpreter"])
def test_a_process_that_ends_in_a_check_is_undecided(runcert: Runcert, store: str) -> None:
    done = runcert("certify", f"{HOSTILE}:{store}", *ONLY, expected=3)

    assert "the process ended with status" in done.out
    assert "a store must not leave the interpreter" in done.out


def test_a_keyboard_interrupt_of_the_store_is_told_from_a_persons(runcert: Runcert) -> None:
    done = runcert("certify", f"{HOSTILE}:raises_keyboard_interrupt_later", *ONLY, expected=3)

    assert "the store raised KeyboardInterrupt; nobody pressed Ctrl-C" in done.out


def test_one_target_that_cannot_start_stops_all_before_anything_is_judged(runcert: Runcert) -> None:
    done = runcert("certify", "memory", f"{HOSTILE}:raises_on_open", "--depth", "quick", expected=2)

    assert done.out == ""
