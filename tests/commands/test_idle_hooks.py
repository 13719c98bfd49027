"""Hooks that do nothing are noticed: a clause that is seen through them is never green."""

from __future__ import annotations

import pytest

from .conftest import STORES, Runcert

IDLE = STORES / "idle_hooks.py"


@pytest.mark.parametrize(
    ("store", "clause", "message", "code"),
    [
        ("counts_nothing", "RUN-RESIDUE-1", "the hook inventory gave {'runs': 0} before a run was created and the same", 3),
        ("purges_nothing", "RUN-REUSE-1", "the hook purge left the run", 3),
        ("damages_nothing", "RUN-CORRUPT-1", "or the adapter's hook damage changed nothing", 1),
        (
            "changes_no_schema",
            "RUN-SCHEMA-1",
            "the hook schema describes a schema that is newer as it describes the current one",
            3,
        ),
    ],
)
def test_a_hook_that_does_nothing_is_named(runcert: Runcert, store: str, clause: str, message: str, code: int) -> None:
    done = runcert("certify", f"{IDLE}:{store}", "--only", clause, "--depth", "quick", "--seed", "1", expected=code)

    assert message in " ".join(done.out.split())


def test_two_names_of_one_adapter_are_one_target(runcert: Runcert) -> None:
    done = runcert("certify", str(IDLE), "--only", "RUN-CREATE-1", "--depth", "quick", "--seed", "1", expected=0)

    assert done.out.count("partial, no certificate") == 4
