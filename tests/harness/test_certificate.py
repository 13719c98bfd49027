from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from tests.harness.conftest import Finished

from runcert import UsageProblem
from runcert.certificate import FORMAT, contradictions, make_certificate, read_certificate, schema
from runcert.certifying import write_results
from runcert.comparing import comparison_markdown, comparison_rows, comparison_text
from runcert.description import claims_from
from runcert.fingerprint import kit_digest
from runcert.grading import grade
from runcert.waivers import Waiver
from runcert_contract import CATALOGUE, Clause, Need
from runcert_contract.catalogue import digest_of
from runcert_reference.adapters import memory

Certificate = dict[str, Any]


@pytest.fixture
def full(full_run: Finished) -> Certificate:
    return copy.deepcopy(make_certificate(full_run.report, full_run.facts))


@pytest.fixture
def partial(partial_run: Finished) -> Certificate:
    return copy.deepcopy(make_certificate(partial_run.report, partial_run.facts))


def clause_of(certificate: Certificate, clause_id: str) -> dict[str, Any]:
    clauses: list[dict[str, Any]] = certificate["contracts"][0]["clauses"]
    return next(clause for clause in clauses if clause["id"] == clause_id)


def test_the_schema_is_a_valid_schema() -> None:
    validator_for(schema()).check_schema(schema())


@pytest.mark.parametrize("run", ["full_run", "partial_run", "failed_run", "refused_run"])
def test_a_certificate_of_a_real_run_fits_the_schema_and_itself(run: str, request: pytest.FixtureRequest) -> None:
    made: Finished = request.getfixturevalue(run)
    certificate = json.loads(json.dumps(make_certificate(made.report, made.facts)))

    assert list(Draft202012Validator(schema()).iter_errors(certificate)) == []
    assert contradictions(certificate) == []


def test_the_store_in_memory_is_certified_over_the_whole_catalogue(full: Certificate) -> None:
    section = full["contracts"][0]

    assert (full["verdict"], full["exit_code"], full["run"]["partial"]) == ("certified", 0, False)
    assert [clause.id for clause in CATALOGUE.of("run-store")] == [clause["id"] for clause in section["clauses"]]
    assert full["catalogue"] == {"revision": CATALOGUE.revision, "digest": CATALOGUE.digest}
    assert full["kit"]["digest"] == kit_digest()


def test_some_clauses_give_no_certificate(partial: Certificate) -> None:
    verdicts = {clause["id"]: clause["verdict"] for clause in partial["contracts"][0]["clauses"]}

    assert (partial["verdict"], partial["exit_code"], partial["run"]["partial"]) == ("partial, no certificate", 0, True)
    assert verdicts == {"RUN-CREATE-2": "pass", "RUN-FIND-1": "pass", "RUN-CANCEL-1": "not-claimed"}


def test_a_faulty_store_is_not_certified(failed_run: Finished) -> None:
    certificate = make_certificate(failed_run.report, failed_run.facts)
    clause = clause_of(certificate, "RUN-CAS-1")

    assert (certificate["verdict"], certificate["exit_code"], clause["verdict"]) == ("not certified", 1, "fail")
    assert any(check["verdict"] == "fail" and check["expected"] and check["found"] for check in clause["checks"])


def test_a_store_that_keeps_nothing_is_refused_in_the_words_of_the_contract(refused_run: Finished) -> None:
    certificate = make_certificate(refused_run.report, refused_run.facts)

    assert (certificate["verdict"], certificate["exit_code"]) == ("refused", 1)
    assert "(no-op) is refused for everything but synchronous demonstrations" in certificate["refused"]


def test_the_claims_in_a_certificate_decide_the_same_clauses_as_the_adapter(full: Certificate) -> None:
    claims = claims_from(full["contracts"][0]["claims"])
    hooks = frozenset(memory.hooks)
    expected = [clause.applies_to(memory.claims, hooks, memory.options) for clause in CATALOGUE.clauses]

    assert expected == [clause.applies_to(claims, hooks, memory.options) for clause in CATALOGUE.clauses]


# -- edits by hand

Edit = Callable[[Certificate], object]


def change(clause_id: str, **fields: Any) -> Edit:
    return lambda certificate: clause_of(certificate, clause_id).update(fields)


def section(**fields: Any) -> Edit:
    return lambda certificate: certificate["contracts"][0].update(fields)


def claims(**fields: Any) -> Edit:
    return lambda certificate: certificate["contracts"][0]["claims"].update(fields)


def top(**fields: Any) -> Edit:
    return lambda certificate: certificate.update(fields)


def without(clause_id: str) -> Edit:
    return lambda certificate: certificate["contracts"][0]["clauses"].remove(clause_of(certificate, clause_id))


def without_a_check(clause_id: str) -> Edit:
    return lambda certificate: clause_of(certificate, clause_id)["checks"].pop()


def never_asked_for(clause_id: str, certificate: Certificate) -> None:
    clause = clause_of(certificate, clause_id)
    clause["expected_checks"].remove(clause["checks"].pop()["check"])


def made_up(clause_id: str, certificate: Certificate) -> None:
    clause = clause_of(certificate, clause_id)
    clause["checks"].append({**clause["checks"][0], "check": "Luck.test_luck"})
    clause["expected_checks"].append("Luck.test_luck")


def with_check(clause_id: str, **fields: Any) -> Edit:
    return lambda certificate: clause_of(certificate, clause_id)["checks"][0].update(fields)


EVERYWHERE: dict[str, tuple[Edit, str]] = {
    "a pass becomes a fail": (
        change("RUN-FIND-1", verdict="fail"),
        "RUN-FIND-1: the verdict says fail, the checks listed say pass",
    ),
    "a pass becomes unsupported": (change("RUN-FIND-1", verdict="unsupported"), "the checks listed say pass"),
    "a pass becomes not claimed": (change("RUN-FIND-1", verdict="not-claimed"), "the checks listed say pass"),
    "a pass becomes waived": (
        change("RUN-FIND-1", verdict="waived"),
        "RUN-FIND-1: waived, but there is no failure or no waiver",
    ),
    "not claimed becomes a pass": (
        change("RUN-CANCEL-1", verdict="pass"),
        "the verdict says pass, the checks listed say not-claimed",
    ),
    "a clause is said not to apply": (
        change("RUN-FIND-1", applies="not-claimed", verdict="not-claimed"),
        "RUN-FIND-1: it says that the clause is not claimed, the claims say that it applies",
    ),
    "a clause is said to be absent": (
        change("RUN-FIND-1", applies="unsupported", verdict="unsupported"),
        "it says that the clause is declared absent",
    ),
    "a clause is said to apply": (change("RUN-CANCEL-1", applies=None), "RUN-CANCEL-1"),
    "an adapter is said to be asynchronous": (
        claims(asynchronous=True),
        "RUN-CANCEL-1: it says that the clause is not claimed",
    ),
    "a check is said to have failed": (with_check("RUN-FIND-1", verdict="fail"), "the checks listed say fail"),
    "a check is said to be undecided": (with_check("RUN-FIND-1", verdict="inconclusive"), "the checks listed say inconclusive"),
    "a check is gone": (without_a_check("RUN-FIND-1"), "the checks listed say not-run"),
    "a check is gone from both lists": (
        lambda certificate: never_asked_for("RUN-FIND-1", certificate),
        "RUN-FIND-1: this build of the kit has",
    ),
    "a check is listed twice": (
        lambda certificate: clause_of(certificate, "RUN-FIND-1")["checks"].append(
            clause_of(certificate, "RUN-FIND-1")["checks"][0]
        ),
        "RUN-FIND-1: a check is listed twice",
    ),
    "a waiver of what does not fail": (
        top(waivers=[{"clause": "RUN-FIND-1", "reason": "known", "expires": "2099-01-01", "target": "memory"}]),
        "RUN-FIND-1: it is waived and does not fail",
    ),
    "a check is made up": (
        lambda certificate: made_up("RUN-FIND-1", certificate),
        "unknown: Luck.test_luck",
    ),
    "no check is expected": (change("RUN-FIND-1", expected_checks=[]), "the checks listed say not-run"),
    "the statement is another": (
        change("RUN-FIND-1", statement="an unknown id gives anything at all"),
        f"RUN-FIND-1: it does not read so in revision {CATALOGUE.revision}",
    ),
    "the needs are others": (change("RUN-FIND-1", needs=["ASYNCHRONOUS"]), "RUN-FIND-1: it does not read so"),
    "a need is one that nobody knows": (change("RUN-FIND-1", needs=["LUCK"]), "RUN-FIND-1: it does not read so"),
    "the strength is another": (change("RUN-FIND-1", strength="SHOULD"), "RUN-FIND-1: it does not read so"),
    "a clause of our own": (change("RUN-FIND-1", id="RUN-MINE-1"), "RUN-MINE-1: it does not read so"),
    "the catalogue is another": (
        top(catalogue={"revision": CATALOGUE.revision, "digest": "0" * 64}),
        f"revision {CATALOGUE.revision} has another digest",
    ),
    "the exit code is another": (top(exit_code=3), "the exit code says 3, the clauses say 0"),
    "the verdict is another": (top(verdict="not certified"), "the verdict says 'not certified', the clauses say"),
    "the store is said to be refused": (top(refused="keeps nothing"), "the clauses say 'refused'"),
    "there are complaints": (top(complaints=["a stale waiver"]), "the clauses say 'not certified'"),
    "a field is added at the top": (top(signed_by="me"), "Additional properties are not allowed"),
    "a field is added to a section": (section(note="fine"), "Additional properties are not allowed"),
    "a field is added to a clause": (change("RUN-FIND-1", note="fine"), "Additional properties are not allowed"),
    "a field is added to a check": (with_check("RUN-FIND-1", note="fine"), "Additional properties are not allowed"),
    "a verdict that there is not": (change("RUN-FIND-1", verdict="probably"), "'probably' is not one of"),
    "a part is gone": (lambda certificate: certificate.pop("reach"), "'reach' is a required property"),
    "no contract is left": (top(contracts=[]), "contracts"),
    "another format": (top(format="runcert-certificate/2"), "was expected"),
}


@pytest.mark.parametrize(("edit", "message"), EVERYWHERE.values(), ids=list(EVERYWHERE))
@pytest.mark.parametrize("which", ["full", "partial"])
def test_an_edit_by_hand_is_noticed(which: str, edit: Edit, message: str, request: pytest.FixtureRequest) -> None:
    certificate: Certificate = request.getfixturevalue(which)
    edit(certificate)
    found = contradictions(certificate)

    assert any(message in problem for problem in found), found


OF_A_WHOLE: dict[str, Edit] = {
    "a clause is gone": without("RUN-FIND-1"),
    "a clause that does not apply is gone": without("RUN-CANCEL-1"),
    "clauses are in another order": lambda certificate: certificate["contracts"][0]["clauses"].reverse(),
    "a clause stands twice": lambda certificate: certificate["contracts"][0]["clauses"].append(
        clause_of(certificate, "RUN-FIND-1")
    ),
}


@pytest.mark.parametrize("edit", OF_A_WHOLE.values(), ids=list(OF_A_WHOLE))
def test_the_list_of_clauses_is_that_of_the_catalogue(full: Certificate, edit: Edit) -> None:
    edit(full)

    assert any("its digest differs" in problem for problem in contradictions(full))


def test_a_digest_that_was_computed_anew_for_a_shorter_list_is_noticed(full: Certificate) -> None:
    without("RUN-FIND-1")(full)
    left = [Clause(c["id"], c["statement"], tuple(Need[n] for n in c["needs"])) for c in full["contracts"][0]["clauses"]]
    full["catalogue"]["digest"] = digest_of(left)

    assert contradictions(full) == [f"the catalogue: revision {CATALOGUE.revision} has another digest, {CATALOGUE.digest}"]


def test_a_part_cannot_be_passed_off_as_a_whole(partial: Certificate) -> None:
    partial["run"]["partial"] = False
    partial["verdict"] = "certified"

    assert any("its digest differs" in problem for problem in contradictions(partial))


def test_a_certificate_of_another_revision_is_judged_by_what_it_says_itself(full: Certificate) -> None:
    clause_of(full, "RUN-FIND-1").update(statement="an unknown id gives None", needs=["LUCK"], applies=None)
    full["catalogue"]["revision"] = CATALOGUE.revision + 1
    rows = [[c["id"], c["statement"], c["needs"], c["strength"]] for c in full["contracts"][0]["clauses"]]
    full["catalogue"]["digest"] = hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()

    assert contradictions(full) == []


def test_a_waived_failure_is_consistent_only_with_its_waiver(failed_run: Finished) -> None:
    waiver = Waiver("RUN-CAS-1", "known", date(9999, 1, 1), failed_run.report.name)
    results = list({result.check: result for clause in failed_run.report.clauses for result in clause.results}.values())
    report = grade(failed_run.report.introduction, results, ["RUN-CAS-1"], [waiver], date(2026, 1, 1))
    certificate = make_certificate(report, replace(failed_run.facts, waivers=[waiver]))
    without_waiver = copy.deepcopy(certificate) | {"waivers": []}

    assert clause_of(certificate, "RUN-CAS-1")["verdict"] == "waived"
    assert contradictions(certificate) == []
    assert contradictions(without_waiver) == ["RUN-CAS-1: waived, but there is no failure or no waiver"]


def test_a_waiver_for_every_target_may_be_needed_by_another_one(partial: Certificate) -> None:
    partial["waivers"] = [{"clause": "RUN-FIND-1", "reason": "known", "expires": "2099-01-01", "target": None}]

    assert contradictions(partial) == []


def test_a_clause_that_was_not_asked_for_and_failed_is_listed_with_the_check_that_broke_it(
    full_run: Finished, failed_run: Finished
) -> None:
    """A check of the clause that was asked for may find that another one is broken."""
    introduction = full_run.report.introduction
    asked = replace(introduction, checks=[(name, clauses) for name, clauses in introduction.checks if "RUN-FIND-2" in clauses])
    (broken,) = (r for c in failed_run.report.clauses for r in c.failures[:1] if c.id == "RUN-CAS-1")
    report = grade(asked, [replace(broken, clauses=("RUN-FIND-2",))], ["RUN-FIND-2"])
    certificate = make_certificate(report, failed_run.facts)

    assert {clause["id"] for clause in certificate["contracts"][0]["clauses"]} == {"RUN-FIND-2", "RUN-CAS-1"}
    assert [problem for problem in contradictions(certificate) if "this build" in problem] == []


# -- files


def test_what_is_written_is_read_again_from_the_file_or_its_directory(tmp_path: Path, partial_run: Finished) -> None:
    write_results([partial_run.report], partial_run.facts, tmp_path)
    file = tmp_path / "memory" / "certificate.json"

    assert read_certificate(file) == read_certificate(file.parent)
    assert contradictions(read_certificate(file)) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"format": "runcert-certificate/9"}', b"7"])
def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "certificate.json"
    file.write_bytes(content)

    with pytest.raises(UsageProblem, match="is not a certificate"):
        read_certificate(file)


def test_a_certificate_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=f"there is no certificate {tmp_path}/certificate.json"):
        read_certificate(tmp_path)


def test_certificates_are_laid_side_by_side(partial: Certificate, failed_run: Finished) -> None:
    other = make_certificate(failed_run.report, failed_run.facts)
    rows = comparison_rows([partial, other])
    name = failed_run.report.name

    assert rows[0] == ["clause", "memory", name]
    assert rows[1] == ["verdict", "partial, no certificate", "not certified"]
    assert ["RUN-FIND-1", "pass", "-"] in rows
    assert ["RUN-CAS-1", "-", "fail"] in rows
    assert (
        len(
            {line.index(row[2]) for line, row in zip(comparison_text([partial, other]).splitlines()[:2], rows[:2], strict=True)}
        )
        == 1
    )
    assert "| RUN-FIND-1 | pass | - |" in comparison_markdown([partial, other])


@pytest.mark.parametrize(
    ("paths", "header"),
    [
        (["out/pg-16/memory/certificate.json", "out/pg-18/memory/certificate.json"], ["memory (pg-16)", "memory (pg-18)"]),
        (["out/pg-16", "out/pg-18"], ["memory (pg-16)", "memory (pg-18)"]),
        (["a.json", "b.json"], ["memory (a.json)", "memory (b.json)"]),
        (["out/memory", "out/new/memory"], ["memory", "memory (new)"]),
        (["out/memory", "out/memory"], ["memory", "memory"]),
    ],
)
def test_targets_of_one_name_are_told_apart_by_their_paths(partial: Certificate, paths: list[str], header: list[str]) -> None:
    rows = comparison_rows([partial, partial], [Path(path) for path in paths])

    assert ["clause", *header] == rows[0]


def test_targets_of_different_names_need_no_paths(partial: Certificate, failed_run: Finished) -> None:
    other = make_certificate(failed_run.report, failed_run.facts)

    assert ["clause", "memory", failed_run.report.name] == comparison_rows([partial, other], [Path("a/b"), Path("a/c")])[0]


def test_the_format_is_named_in_the_schema() -> None:
    assert schema()["properties"]["format"]["const"] == FORMAT
