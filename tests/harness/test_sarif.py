from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.harness.conftest import Finished

from runcert.reports.sarif import sarif
from runcert_contract import Verdict


def run_of(finished: Finished) -> dict[str, Any]:
    data = json.loads(sarif(finished.report, "quick", 1))
    assert data["version"] == "2.1.0"
    found: dict[str, Any] = data["runs"][0]
    return found


def test_each_broken_clause_is_one_finding_with_its_rule(failed_run: Finished) -> None:
    run = run_of(failed_run)
    broken = [clause.id for clause in failed_run.report.clauses if clause.verdict is Verdict.FAIL]

    assert broken
    assert [result["ruleId"] for result in run["results"]] == broken
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == broken


def test_a_finding_says_expected_found_steps_and_how_to_see_it_again(failed_run: Finished) -> None:
    text = run_of(failed_run)["results"][0]["message"]["text"]

    assert "Expected: " in text
    assert "Found: " in text
    assert "\n1. " in text
    assert "See it again: runcert certify" in text


def test_a_finding_stands_at_the_function_of_the_adapter(failed_run: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    source = failed_run.report.introduction.description["source"]
    monkeypatch.chdir(Path(source["file"]).parent)
    place = run_of(failed_run)["results"][0]["locations"][0]["physicalLocation"]

    assert place == {"artifactLocation": {"uri": Path(source["file"]).name}, "region": {"startLine": source["line"]}}


def test_no_path_of_this_machine_is_told_for_a_file_elsewhere(
    failed_run: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = run_of(failed_run)["results"][0]["locations"][0]["physicalLocation"]

    assert "/" not in place["artifactLocation"]["uri"]


def test_a_store_that_holds_has_no_findings(partial_run: Finished) -> None:
    assert run_of(partial_run)["results"] == []


def test_a_refused_store_is_one_finding(refused_run: Finished) -> None:
    (result,) = run_of(refused_run)["results"]

    assert result["message"]["text"] == refused_run.report.introduction.refused
    assert result["level"] == "error"


def test_passwords_are_masked(refused_run: Finished) -> None:
    introduction = replace(refused_run.report.introduction, refused="postgresql://ann:hunter2@host/db keeps nothing")

    assert "hunter2" not in sarif(replace(refused_run.report, introduction=introduction), "quick", 1)
