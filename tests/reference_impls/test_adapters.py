"""Every adapter that is registered serves the clauses that need a hook, a second client or the other form."""

from __future__ import annotations

import pytest
from tests.command_line import Runcert
from tests.servers.places import need

from runcert.targets import adapter_names

ELSEWHERE = {
    "memory": "tests/commands",
    "memory-async": "tests/commands",
    "noop": "tests/commands",
    "mariadb": "test_server_sql_run_store.py",
    "postgresql": "test_server_sql_run_store.py",
}
"""Where the other adapters are certified."""

CERTIFIED = ("sqlite-async", "valkey-async")
"""Those that are certified as a whole here: each is the form of its store in which more can go wrong."""

TRIED = ("file", "postgresql-async", "redis", "redis-async", "sqlite", "valkey")
"""Those that differ from one that is certified in nothing but their form or their server, and those that the README certifies."""

CLAUSES = ("RUN-CREATE-3", "RUN-NAMESPACE-1", "RUN-REUSE-1", "RUN-CORRUPT-1", "RUN-RESIDUE-1", "RUN-PARITY-1")
WAYS = {"postgresql": "wheel", "valkey": "wheel", "redis": "system"}


def need_for(name: str) -> None:
    server = name.removesuffix("-async")
    if server in WAYS:
        need(server, WAYS[server])


def test_no_adapter_is_forgotten() -> None:
    assert sorted(adapter_names()) == sorted([*ELSEWHERE, *CERTIFIED, *TRIED])


@pytest.mark.parametrize("name", CERTIFIED)
def test_the_store_is_certified(runcert: Runcert, name: str) -> None:
    need_for(name)
    done = runcert("certify", name, "--depth", "quick", expected=0)

    assert f"{name}: certified" in done.out


@pytest.mark.parametrize("name", TRIED)
def test_hooks_clients_and_forms_do_what_their_clauses_need(runcert: Runcert, name: str) -> None:
    need_for(name)
    clauses = [clause for clause in CLAUSES if name != "file" or clause != "RUN-PARITY-1"]  # it has one form only
    only = [part for clause in clauses for part in ("--only", clause)]

    done = runcert("certify", name, "--depth", "quick", *only, expected=0)

    assert f"{len(clauses)} of {len(clauses)} clauses" in done.out
