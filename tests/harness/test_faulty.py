from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from runcert.checks import checks_of
from runcert.faulty import FaultyStore, deviates, deviations, faulty_stores, note_deviations
from runcert.problems import KitProblem
from runcert.reach import EVERYTHING
from runcert.targets import resolve
from runcert_contract import CATALOGUE, Verdict

ROOT = Path(__file__).parents[2]
STORES = faulty_stores()


def of_the_catalogue() -> set[str]:
    return {clause.id for clause in CATALOGUE.clauses}


def of_the_suites() -> set[str]:
    return {clause for check in checks_of("run-store") for clause in check.clauses}


def of_the_reference_page() -> set[str]:
    page = (ROOT / "docs" / "reference" / "clauses.md").read_text(encoding="utf-8")
    return set(re.findall(r"^#+ `?([A-Z]+-[A-Z]+-\d+)`?", page, re.MULTILINE))


def of_the_faulty_stores() -> set[str]:
    return {store.clause for store in STORES}


@pytest.mark.parametrize(
    "found", [of_the_suites, of_the_reference_page, of_the_faulty_stores], ids=lambda function: function.__name__
)
def test_the_clauses_of_the_catalogue_are_those(found: Callable[[], set[str]]) -> None:
    expected = of_the_catalogue()

    assert sorted(expected) == sorted(found())


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_a_faulty_store_says_what_it_does_wrong_and_is_found_by_its_spec(store: FaultyStore) -> None:
    assert len(store.fault.split()) >= 3
    assert store.source
    assert store.adapter is resolve(store.spec)[0].adapter
    assert store.adapter is not store.sound


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_the_clause_that_has_to_catch_a_store_applies_to_it_or_its_absence_is_declared(store: FaultyStore) -> None:
    clause = CATALOGUE.get(store.clause)

    assert clause.applies_to(
        store.adapter.claims, frozenset(store.adapter.hooks), store.adapter.options | EVERYTHING
    ).verdict in (
        None,
        Verdict.UNSUPPORTED,
    )


def test_names_of_faulty_stores_are_used_once() -> None:
    assert [name for name, count in Counter(store.name for store in STORES).items() if count > 1] == []


def test_about_sixty_faults_are_known() -> None:
    assert len(STORES) >= 60


def test_two_faulty_stores_of_one_name_are_a_problem_of_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [EntryPoint(name, "runcert_reference.faulty:run_stores", "runcert.faulty") for name in ("run-store", "again")]
    monkeypatch.setattr("runcert.faulty.entry_points", lambda group: entries)

    with pytest.raises(KitProblem, match="two faulty stores are called"):
        faulty_stores()


def test_the_stores_of_another_contract_are_left_out() -> None:
    assert faulty_stores("kv") == ()
    assert len(faulty_stores("run-store")) == len(STORES)


def test_deviations_are_counted_also_those_of_other_processes() -> None:
    before = deviations()
    deviates()
    note_deviations(3)

    assert deviations() - before == 4


def backends_without(module: str) -> subprocess.CompletedProcess[str]:
    """Load the faulty stores in an interpreter that has not got a module."""
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from runcert.faulty import faulty_stores\n"
        "print(*sorted({store.backend for store in faulty_stores()}))\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("driver", "left_out"),
    [("redis", {"valkey", "valkey-async"}), ("sqlalchemy", {"sqlite", "postgresql", "postgresql-async", "mariadb"})],
)
def test_faulty_stores_whose_driver_is_not_installed_are_left_out(driver: str, left_out: set[str]) -> None:
    done = backends_without(driver)

    assert {store.backend for store in STORES} - left_out == set(done.stdout.split()), done.stderr


def test_a_topic_that_is_missing_for_another_reason_is_no_driver_that_is_not_installed() -> None:
    done = backends_without("runcert_reference.faulty.creating")

    assert "ModuleNotFoundError" in done.stderr
    assert "" == done.stdout
