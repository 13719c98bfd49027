"""The self-check catches every faulty store, and fails when one is missed, behaves well, or is caught for another reason."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from runcert.checks import checks_of
from runcert.faulty import FaultyStore, faulty_stores
from runcert.messages import ANY_CLAUSE, Job, Settings
from runcert.problems import UsageProblem
from runcert.reports.matrix import print_matrix
from runcert.selfcheck import SelfcheckReport, run_selfcheck
from runcert.servers.binaries import Unavailable
from runcert.servers.mariadb import MariaDB
from runcert.supervisor import Supervisor
from runcert.targets import resolve

from .conftest import STORES, Runcert


def test_every_faulty_store_is_caught_by_its_clause(runcert: Runcert) -> None:
    done = runcert("selfcheck", "--seed", "1", expected=0)

    assert "the kit can say no" in done.out
    assert not re.search(r"^RUN-\S+ +(missed|well-behaved|wrong-reason) ", done.out, re.MULTILINE)


def _checked(store: FaultyStore) -> SelfcheckReport:
    return run_selfcheck("run-store", full=False, seed=1, processes=1, stores=[store])


def _red() -> FaultyStore:
    return next(store for store in faulty_stores() if store.name == "create-replaces")


def test_a_faulty_store_is_caught() -> None:
    report = _checked(_red())

    assert ["caught"] == [row.state for row in report.rows]
    assert "AlreadyExists" in report.rows[0].message


@pytest.mark.parametrize(
    ("name", "state"), [("WELL_BEHAVED", "well-behaved"), ("HARMLESS", "missed"), ("BROKEN_TWIN", "wrong-reason")]
)
def test_a_store_that_is_not_caught_fails_the_self_check(name: str, state: str) -> None:
    (target,) = resolve(f"{STORES / 'made_up_faults.py'}:{name}")

    report = _checked(replace(_red(), name=name, adapter=target.adapter, spec=target.spec))

    assert [state] == [row.state for row in report.rows]
    assert 1 == report.exit_code


def test_a_clause_without_a_faulty_store_fails_the_self_check() -> None:
    report = _checked(_red())

    assert "RUN-CREATE-1" in report.idle
    assert 1 == report.exit_code


def test_a_store_that_is_caught_for_another_clause_is_missed() -> None:
    report = _checked(replace(_red(), clause="RUN-CAS-5"))

    assert "caught" not in [row.state for row in report.rows]
    assert 1 == report.exit_code


@pytest.fixture
def without_mariadb(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object) -> None:
        raise Unavailable("not here")

    monkeypatch.setattr(MariaDB, "from_system", unavailable)
    monkeypatch.setattr("runcert.servers.offers.why_no_containers", lambda: "no Docker here")


@pytest.mark.usefixtures("without_mariadb")
def test_stores_on_a_server_that_cannot_be_had_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    on_mariadb = replace(_red(), backend="mariadb")

    report = run_selfcheck("run-store", full=False, seed=1, processes=1, stores=[_red(), on_mariadb])
    print_matrix(report, 1)

    assert ["memory"] == [row.store.backend for row in report.rows]
    assert "1 faulty stores on mariadb were left out: no MariaDB can be had here" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("without_mariadb")
def test_in_continuous_integration_no_faulty_store_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(UsageProblem, match="CI is set"):
        run_selfcheck("run-store", full=False, seed=1, processes=1, stores=[replace(_red(), backend="mariadb")])


def test_a_store_may_be_left_at_its_first_failure_whichever_clause_it_is_of() -> None:
    spec = "runcert_reference.faulty.comparing_and_setting:UpdateIgnoresTheVersion"
    names = [check.id for check in checks_of("run-store") if check.id.startswith(("CompareAndSetByVersion.", "ARefusedUpdate"))]
    with Supervisor(Settings(root="", depth="quick", seed=1)).running() as supervisor:
        results = supervisor.run([("one", [Job(spec, names, until_red=ANY_CLAUSE)])], 1)

    assert [result.verdict for result in results] == [*["pass"] * (len(results) - 1), "fail"]
    assert len(results) < len(names)
