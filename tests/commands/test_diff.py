"""`runcert diff`: what stores answer to the same calls."""

from __future__ import annotations

import pytest

from .conftest import STORES, Runcert

HOSTILE = STORES / "hostile.py"
FIRST = STORES.parents[1] / "docs" / "tutorial" / "files" / "first_adapter.py"


def test_stores_that_agree_say_so_and_the_seed_says_which_calls(runcert: Runcert) -> None:
    done = runcert("diff", "memory", "memory-async", "sqlite", "--seed", "5", "--length", "120", expected=0)

    assert done.out == "memory, memory-async, sqlite: 120 calls, seed 5; all answers are the same\n"


def test_a_difference_that_the_contract_permits_is_shown_and_holds(runcert: Runcert) -> None:
    done = runcert("diff", "memory", str(FIRST), "--seed", "1", expected=0)

    assert "first-store  True" in done.out
    assert "the contract permits every one of these answers" in done.out
    assert done.out == runcert("diff", "memory", str(FIRST), "--seed", "1", expected=0).out


def test_an_answer_that_breaks_the_contract_is_marked(runcert: Runcert) -> None:
    done = runcert("diff", "memory", f"{STORES / 'differing.py'}:forgetful", "--seed", "1", expected=1)

    assert "None  <- not permitted" in done.out
    assert "forgetful broke the contract: `runcert certify` tells which clause" in done.out


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["memory"], "memory is one store; name at least two"),
        (["memory", "memory"], "the target 'memory' is named twice"),
        (["memory", "noop"], "noop: a store that keeps nothing"),
        (["memory", "nowhere"], "there is no target 'nowhere'"),
        (["memory", f"{HOSTILE}:raises_on_close"], "raised when the handle was closed"),
        (["memory", f"{STORES / 'differing.py'}:leaves"], "the process ended with status 0 in the middle of the calls"),
        (["memory", f"{STORES / 'differing.py'}:hangs_later"], "did not end within"),
    ],
)
def test_what_cannot_be_compared_is_one_message(runcert: Runcert, targets: list[str], message: str) -> None:
    done = runcert("diff", *targets, "--seed", "1", expected=2)

    assert message in done.err
    assert "Traceback" not in done.err
