from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcert.description import describe_adapter
from runcert.execution import CheckResult
from runcert.grading import ClauseVerdict, Outcome, TargetReport, combine, exit_code_of, grade, outcome_of, overall_exit_code
from runcert.problems import ExitCode
from runcert.supervisor import Introduction
from runcert.waivers import Waiver
from runcert_contract import CATALOGUE, Capability, Catalogue, Stance, Strength, Verdict
from runcert_reference.adapters import memory

RAN = ("pass", "fail", "inconclusive", "adapter-error", "kit-error")
CLAUSE = "RUN-CAS-1"


def a_result(check: str = "Suite.test_one", verdict: str = "pass", clause: str = CLAUSE, **fields: Any) -> CheckResult:
    return CheckResult(spec="memory", target="memory", check=check, clauses=(CLAUSE,), clause=clause, verdict=verdict, **fields)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (("pass",), Verdict.PASS),
        (("pass", "pass"), Verdict.PASS),
        (("fail",), Verdict.FAIL),
        (("pass", "fail"), Verdict.FAIL),
        (("fail", "kit-error"), Verdict.FAIL),
        (("fail", "adapter-error", "inconclusive"), Verdict.FAIL),
        (("pass", "inconclusive"), Verdict.INCONCLUSIVE),
        (("inconclusive", "kit-error"), Verdict.KIT_ERROR),
        (("kit-error", "adapter-error"), Verdict.ADAPTER_ERROR),
        (("pass", "adapter-error"), Verdict.ADAPTER_ERROR),
    ],
)
def test_the_worst_verdict_of_its_checks_is_that_of_the_clause(verdicts: tuple[str, ...], expected: Verdict) -> None:
    names = [f"Suite.test_{n}" for n in range(len(verdicts))]
    results = [a_result(name, verdict, found="because") for name, verdict in zip(names, verdicts, strict=True)]
    verdict, reason = combine(CLAUSE, None, "", names, results)

    assert expected is verdict
    assert expected in (Verdict.PASS, Verdict.FAIL) or reason.endswith(": because")


@given(verdicts=st.lists(st.sampled_from(RAN), max_size=4), missing=st.booleans(), absent=st.booleans())
def test_a_clause_counts_only_where_every_check_that_should_have_run_passed(
    verdicts: list[str], missing: bool, absent: bool
) -> None:
    names = [f"Suite.test_{n}" for n in range(len(verdicts))]
    results = [a_result(name, verdict) for name, verdict in zip(names, verdicts, strict=True)]
    verdict, _ = combine(
        CLAUSE, Verdict.UNSUPPORTED if absent else None, "absent", [*names, *(["Suite.lost"] if missing else [])], results
    )
    expected = bool(verdicts) and not missing and set(verdicts) == {"pass"}

    assert expected is verdict.counts
    assert not expected or verdict is (Verdict.UNSUPPORTED if absent else Verdict.PASS)


def test_a_clause_without_any_check_did_not_run() -> None:
    assert combine(CLAUSE, None, "", [], []) == (Verdict.NOT_RUN, "no check for this clause was found in the suite")


def test_a_check_that_did_not_run_is_not_made_up_for_by_those_that_did() -> None:
    verdict, reason = combine(CLAUSE, None, "", ["Suite.test_one", "Suite.test_two"], [a_result()])

    assert (verdict, reason) == (Verdict.NOT_RUN, "checks of this clause did not run")


def test_a_clause_that_does_not_apply_is_not_claimed_whatever_ran() -> None:
    assert combine(CLAUSE, Verdict.NOT_CLAIMED, "no hook damage", ["Suite.test_one"], [a_result()]) == (
        Verdict.NOT_CLAIMED,
        "no hook damage",
    )


def test_an_absence_counts_only_with_its_proof() -> None:
    assert combine(CLAUSE, Verdict.UNSUPPORTED, "absent", ["Suite.test_one"], [a_result()]) == (
        Verdict.UNSUPPORTED,
        "absent, and proved",
    )
    assert combine(CLAUSE, Verdict.UNSUPPORTED, "absent", [], [])[0] is Verdict.NOT_RUN
    assert combine(CLAUSE, Verdict.UNSUPPORTED, "absent", ["Suite.test_one"], [a_result(verdict="fail")])[0] is Verdict.FAIL


def test_a_check_that_was_stopped_by_another_clause_decides_nothing_here() -> None:
    verdict, reason = combine(CLAUSE, None, "", ["Suite.test_one"], [a_result(verdict="fail", clause="RUN-FIND-2")])

    assert (verdict, reason) == (Verdict.INCONCLUSIVE, "Suite.test_one was stopped by a failure of RUN-FIND-2")


# -- from clauses to exit codes and words

WORST = {
    Verdict.PASS: ExitCode.HOLDS,
    Verdict.UNSUPPORTED: ExitCode.HOLDS,
    Verdict.NOT_CLAIMED: ExitCode.HOLDS,
    Verdict.WAIVED: ExitCode.HOLDS,
    Verdict.FAIL: ExitCode.DOES_NOT_HOLD,
    Verdict.INCONCLUSIVE: ExitCode.UNDECIDED,
    Verdict.NOT_RUN: ExitCode.UNDECIDED,
    Verdict.ADAPTER_ERROR: ExitCode.UNDECIDED,
    Verdict.KIT_ERROR: ExitCode.UNDECIDED,
}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_one_clause_beside_a_pass_decides_the_exit_code(verdict: Verdict) -> None:
    assert WORST[verdict] is exit_code_of([("RUN-CAS-1", Verdict.PASS), ("RUN-CAS-2", verdict)], complaints=False)


def test_a_claim_of_nothing_is_undecided_and_never_certified() -> None:
    verdicts = [("RUN-CAS-1", Verdict.NOT_CLAIMED), ("RUN-CAS-2", Verdict.NOT_CLAIMED)]

    assert exit_code_of(verdicts, complaints=False) is ExitCode.UNDECIDED
    assert outcome_of(verdicts, partial=False, complaints=False) is Outcome.NOT_CERTIFIED


def test_nothing_but_waived_failures_ends_well_and_is_never_certified() -> None:
    verdicts = [("RUN-CAS-1", Verdict.WAIVED), ("RUN-CAS-2", Verdict.WAIVED)]

    assert exit_code_of(verdicts, complaints=False) is ExitCode.HOLDS
    assert outcome_of(verdicts, partial=False, complaints=False) is Outcome.NOT_CERTIFIED


def test_an_empty_selection_is_undecided() -> None:
    assert exit_code_of([], complaints=False) is ExitCode.UNDECIDED


verdict_lists = st.lists(st.sampled_from(Verdict), max_size=6)


@given(verdicts=verdict_lists, partial=st.booleans(), complaints=st.booleans())
def test_a_store_is_certified_exactly_when_everything_claimed_counts(
    verdicts: list[Verdict], partial: bool, complaints: bool
) -> None:
    named = [(f"RUN-CAS-{n}", verdict) for n, verdict in enumerate(verdicts, start=1)]
    counting = {Verdict.PASS, Verdict.UNSUPPORTED}
    sound = (
        bool(counting & set(verdicts)) and set(verdicts) <= counting | {Verdict.NOT_CLAIMED} and not complaints and not partial
    )

    assert sound is (outcome_of(named, partial, complaints) is Outcome.CERTIFIED)


@given(verdicts=verdict_lists)
def test_a_failure_goes_before_everything_undecided(verdicts: list[Verdict]) -> None:
    named = [(f"RUN-CAS-{n}", verdict) for n, verdict in enumerate(verdicts, start=1)]
    expected = max(
        (WORST[verdict] for verdict in verdicts),
        key=[ExitCode.HOLDS, ExitCode.UNDECIDED, ExitCode.DOES_NOT_HOLD].index,
        default=ExitCode.UNDECIDED,
    )
    if expected is ExitCode.HOLDS and not any(verdict.counts or verdict is Verdict.WAIVED for verdict in verdicts):
        expected = ExitCode.UNDECIDED

    assert expected is exit_code_of(named, complaints=False)
    assert exit_code_of(named, complaints=True) is ExitCode.DOES_NOT_HOLD


def test_a_failed_should_is_shown_and_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    clauses = tuple(replace(c, strength=Strength.SHOULD) if c.id == "RUN-CAS-2" else c for c in CATALOGUE.clauses)
    monkeypatch.setattr("runcert.grading.CATALOGUE", Catalogue(1, clauses))

    assert exit_code_of([("RUN-CAS-1", Verdict.PASS), ("RUN-CAS-2", Verdict.FAIL)], complaints=False) is ExitCode.HOLDS


def test_a_failure_of_a_clause_that_this_kit_does_not_know_blocks() -> None:
    assert (
        exit_code_of([("RUN-CAS-1", Verdict.PASS), ("RUN-FUTURE-1", Verdict.FAIL)], complaints=False) is ExitCode.DOES_NOT_HOLD
    )


# -- a whole target


def an_introduction(refused: str | None = None, **capabilities: Stance) -> Introduction:
    claims = replace(
        memory.claims, capabilities={**memory.claims.capabilities, **{Capability(n): s for n, s in capabilities.items()}}
    )
    description = describe_adapter(replace(memory, claims=claims))
    checks: list[tuple[str, tuple[str, ...]]] = [(f"Suite.{clause.id}", (clause.id,)) for clause in CATALOGUE.of("run-store")]
    return Introduction("memory", "memory", description, checks, refused, "memory")


def passing(introduction: Introduction, *except_for: str) -> list[CheckResult]:
    return [
        CheckResult("memory", "memory", name, clauses, clauses[0], "pass")
        for name, clauses in introduction.checks
        if clauses[0] not in except_for
    ]


def failing(clause: str) -> CheckResult:
    return CheckResult("memory", "memory", f"Suite.{clause}", (clause,), clause, "fail", "the one", "the other")


def test_a_target_whose_every_check_passed_is_certified() -> None:
    introduction = an_introduction()
    report = grade(introduction, passing(introduction))

    assert (report.outcome, report.exit_code, report.name) == (Outcome.CERTIFIED, ExitCode.HOLDS, "memory")
    assert [clause.id for clause in report.clauses] == [clause.id for clause in CATALOGUE.of("run-store")]


@pytest.mark.parametrize(
    "clause", [name for name, answer in describe_adapter(memory)["clauses"].items() if answer["verdict"] is None]
)
def test_the_list_of_clauses_is_the_catalogues_so_a_missing_one_is_not_run(clause: str) -> None:
    introduction = an_introduction()
    report = grade(introduction, passing(introduction, clause))

    assert [c.id for c in report.clauses if c.verdict is Verdict.NOT_RUN] == [clause]
    assert (report.outcome, report.exit_code) == (Outcome.NOT_CERTIFIED, ExitCode.UNDECIDED)


def test_a_failure_is_given_with_its_clause() -> None:
    introduction = an_introduction()
    report = grade(introduction, [*passing(introduction, CLAUSE), failing(CLAUSE)])
    (clause,) = (clause for clause in report.clauses if clause.failures)

    assert (clause.id, clause.verdict, clause.failures) == (CLAUSE, Verdict.FAIL, (failing(CLAUSE),))
    assert (report.outcome, report.exit_code) == (Outcome.NOT_CERTIFIED, ExitCode.DOES_NOT_HOLD)


def test_a_check_that_breaks_another_clause_fails_that_one_too() -> None:
    introduction = an_introduction()
    stray = CheckResult("memory", "memory", "Suite.RUN-CAS-1", ("RUN-CAS-1",), "RUN-FIND-2", "fail")
    verdicts = {c.id: c.verdict for c in grade(introduction, [*passing(introduction, "RUN-CAS-1"), stray]).clauses}

    assert (verdicts["RUN-FIND-2"], verdicts["RUN-CAS-1"]) == (Verdict.FAIL, Verdict.INCONCLUSIVE)


def test_a_selection_gives_no_certificate() -> None:
    introduction = an_introduction()
    report = grade(introduction, passing(introduction), only=[CLAUSE])

    assert [clause.id for clause in report.clauses] == [CLAUSE]
    assert (report.outcome, report.exit_code) == (Outcome.PARTIAL, ExitCode.HOLDS)


def test_a_selection_shows_a_failure_of_a_clause_that_was_not_asked_for() -> None:
    introduction = an_introduction()
    report = grade(introduction, [*passing(introduction, CLAUSE), failing("RUN-FIND-2")], only=[CLAUSE])

    assert {clause.id for clause in report.clauses} == {CLAUSE, "RUN-FIND-2"}
    assert report.exit_code is ExitCode.DOES_NOT_HOLD


def test_a_store_that_is_refused_fails_with_its_sentence() -> None:
    report = grade(an_introduction(refused="keeps nothing"), [])

    assert (report.outcome, report.exit_code) == (Outcome.REFUSED, ExitCode.DOES_NOT_HOLD)


TODAY = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("waiver", "today", "verdict"),
    [
        (Waiver(CLAUSE, "known", TODAY), TODAY, Verdict.WAIVED),
        (Waiver(CLAUSE, "known", TODAY, "memory"), TODAY, Verdict.WAIVED),
        (Waiver(CLAUSE, "known", TODAY, "sqlite"), TODAY, Verdict.FAIL),
        (Waiver("RUN-CAS-2", "known", TODAY), TODAY, Verdict.FAIL),
        (Waiver(CLAUSE, "known", TODAY - timedelta(days=1)), TODAY, Verdict.FAIL),
        (Waiver(CLAUSE, "known", TODAY), None, Verdict.FAIL),
    ],
)
def test_a_failure_is_waived_up_to_the_last_day_for_its_own_target_and_clause(
    waiver: Waiver, today: date | None, verdict: Verdict
) -> None:
    introduction = an_introduction()
    report = grade(introduction, [*passing(introduction, CLAUSE), failing(CLAUSE)], waivers=[waiver], today=today)
    found = {clause.id: clause.verdict for clause in report.clauses}

    assert verdict is found[CLAUSE]
    assert report.outcome is Outcome.NOT_CERTIFIED
    assert (report.exit_code is ExitCode.HOLDS) is (verdict is Verdict.WAIVED)


@pytest.mark.parametrize("verdict", ["inconclusive", "adapter-error", "kit-error"])
def test_only_a_failure_is_waived(verdict: str) -> None:
    introduction = an_introduction()
    results = [*passing(introduction, CLAUSE), replace(failing(CLAUSE), verdict=verdict)]
    report = grade(introduction, results, waivers=[Waiver(CLAUSE, "known", TODAY)], today=TODAY)

    assert report.exit_code is ExitCode.UNDECIDED


def a_report(verdict: Verdict, complaints: tuple[str, ...] = ()) -> TargetReport:
    return TargetReport(an_introduction(), (ClauseVerdict(CLAUSE, verdict),), complaints=complaints)


def test_a_complaint_about_a_waiver_fails_the_run() -> None:
    report = a_report(Verdict.PASS, ("the waiver is stale",))

    assert (report.outcome, report.exit_code) == (Outcome.NOT_CERTIFIED, ExitCode.DOES_NOT_HOLD)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((), ExitCode.UNDECIDED),
        ((Verdict.PASS,), ExitCode.HOLDS),
        ((Verdict.PASS, Verdict.INCONCLUSIVE), ExitCode.UNDECIDED),
        ((Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.PASS), ExitCode.DOES_NOT_HOLD),
    ],
)
def test_over_several_targets_a_failure_goes_before_undecided(verdicts: tuple[Verdict, ...], expected: ExitCode) -> None:
    assert expected is overall_exit_code(a_report(verdict) for verdict in verdicts)


def test_evidence_is_kept_by_check() -> None:
    clause = ClauseVerdict(CLAUSE, Verdict.PASS, results=(a_result(evidence={"values": 7}), a_result("Suite.test_two")))

    assert clause.evidence == {"Suite.test_one": {"values": 7}}
