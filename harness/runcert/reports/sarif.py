"""SARIF 2.1.0: failures as findings at the adapter's function, for code-scanning pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runcert.fingerprint import kit_version
from runcert.grading import ClauseVerdict, TargetReport
from runcert.masking import without_passwords
from runcert.reports.failures import replay_command, steps_in_words
from runcert_contract import CATALOGUE, Strength, Verdict

__all__ = ["sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: TargetReport, depth: str, seed: int) -> str:
    """Give the failures of a target as SARIF.

    Args:
        report: the verdict; a store that was refused gives one finding without a rule.
        depth: the depth of the run.
        seed: its seed.
    """
    broken = [clause for clause in report.clauses if clause.verdict is Verdict.FAIL]
    results = [_result(report, clause, depth, seed) for clause in broken]
    if report.introduction.refused is not None:
        results = [_finding(report, "error", report.introduction.refused)]
    driver = {
        "name": "runcert",
        "semanticVersion": kit_version(),
        "rules": [_rule(clause.id) for clause in broken],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(clause_id: str) -> dict[str, Any]:
    clause = CATALOGUE.get(clause_id)
    return {"id": clause.id, "shortDescription": {"text": clause.statement}, "properties": {"tags": [clause.topic]}}


def _result(report: TargetReport, clause: ClauseVerdict, depth: str, seed: int) -> dict[str, Any]:
    known = CATALOGUE.get(clause.id)
    level = "error" if known.strength is Strength.MUST else "warning"
    first = clause.failures[0] if clause.failures else None
    if first is None:
        return {"ruleId": clause.id, **_finding(report, level, clause.reason or known.statement)}
    steps = "".join(f"\n{number}. {step}" for number, step in enumerate(steps_in_words(first.steps), start=1))
    text = (
        f"{clause.id}: {known.statement}.\nExpected: {first.expected}\nFound: {first.found}"
        f"{steps}\nSee it again: {replay_command(report.introduction.text, first, depth, seed)}"
    )
    # one finding for each clause and target: a page then shows whether the same promise is still broken
    return {
        "ruleId": clause.id,
        **_finding(report, level, text),
        "partialFingerprints": {"clauseOfTarget/v1": f"{report.name}/{clause.id}"},
    }


def _finding(report: TargetReport, level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": without_passwords(text)}, "locations": [_location(report)]}


def _location(report: TargetReport) -> dict[str, Any]:
    source = report.introduction.description["source"]
    path = Path(source["file"])
    try:
        uri = path.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        uri = path.name  # outside of the directory that is looked at: a page cannot show it, but names it
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": source["line"]}}
    return {"physicalLocation": physical, "logicalLocations": [{"name": report.name, "kind": "module"}]}
