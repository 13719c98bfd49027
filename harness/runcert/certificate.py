"""The certificate: what was claimed and proved for one target, with what evidence, and what is not certified."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

from runcert.execution import CheckResult
from runcert.fingerprint import environment, kit_digest, kit_version
from runcert.grading import ClauseVerdict, Outcome, TargetReport, combine, exit_code_of, outcome_of
from runcert.masking import without_passwords
from runcert.problems import UsageProblem
from runcert.waivers import Waiver
from runcert_contract import CATALOGUE, Clause, Need, Strength, Verdict
from runcert_contract.catalogue import digest_of

__all__ = [
    "FORMAT",
    "NEVER_COVERED",
    "RunFacts",
    "contradictions",
    "make_certificate",
    "read_certificate",
    "schema",
    "servers_of",
]

FORMAT = "runcert-certificate/1"

NEVER_COVERED = (
    "soak and capacity: how the store behaves over weeks, or on a full disk",
    "backup and restore",
    "several regions",
    "access control, encryption and the backend's own configuration",
    "deceit: a store that recognises the kit, or changes it while it runs",
    "crashes of the caller or of the server, power loss and disk errors, unless a promise for them is listed",
    "every concurrent history: bursts are samples, and linearizability is not checked by this catalogue revision",
)
"""What no certificate of this revision says anything about."""

_ASSUMPTIONS = (
    "the clients of the run were on one machine",
    "the adapter opens the store as it is used in production",
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What holds for a whole run, for its certificates."""

    depth: str
    seed: int
    started: datetime
    ended: datetime
    selfcheck: Mapping[str, Any]
    waivers: Sequence[Waiver] = ()
    servers: Mapping[str, str] = field(default_factory=dict)


def servers_of(report: TargetReport, facts: RunFacts) -> dict[str, str]:
    """Give what the servers are that the adapter of a target asked for, by name."""
    return {name: facts.servers[name] for name in report.introduction.description.get("servers", ()) if name in facts.servers}


def schema() -> dict[str, Any]:
    """Give the JSON schema of certificates."""
    text = files("runcert").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def make_certificate(report: TargetReport, facts: RunFacts) -> dict[str, Any]:
    """Give the certificate of one target as JSON."""
    introduction = report.introduction
    description = introduction.description
    return {
        "format": FORMAT,
        "verdict": report.outcome.value,
        "exit_code": int(report.exit_code),
        "target": {
            "name": introduction.name,
            "text": without_passwords(introduction.text),
            "adapter": description["adapter"],
            "adapter_digest": description["digest"],
        },
        "kit": {"version": kit_version(), "digest": kit_digest()},
        "catalogue": {"revision": CATALOGUE.revision, "digest": CATALOGUE.digest},
        "environment": environment(),
        "servers": servers_of(report, facts),
        "run": {
            "depth": facts.depth,
            "seed": facts.seed,
            "started": facts.started.isoformat(timespec="seconds"),
            "seconds": round((facts.ended - facts.started).total_seconds(), 2),
            "partial": report.partial,
        },
        "contracts": [_section(report)],
        "refused": introduction.refused,
        "complaints": list(report.complaints),
        "waivers": [
            {"clause": w.clause, "reason": w.reason, "expires": w.expires.isoformat(), "target": w.target}
            for w in facts.waivers
        ],
        "selfcheck": dict(facts.selfcheck),
        "reach": "wire" if "wire" in description["options"] else "none",
        "assumptions": list(_ASSUMPTIONS),
        "never_covered": list(NEVER_COVERED),
    }


def _section(report: TargetReport) -> dict[str, Any]:
    description = report.introduction.description
    return {
        "contract": report.introduction.contract,
        "claims": description["claims"],
        "hooks": description["hooks"],
        "options": description["options"],
        "not_a_write": description["not_a_write"],
        "clauses": [_clause(report, verdict) for verdict in report.clauses],
    }


def _clause(report: TargetReport, verdict: ClauseVerdict) -> dict[str, Any]:
    clause = CATALOGUE.get(verdict.id)
    applies = report.introduction.description["clauses"][verdict.id]
    return {
        "id": clause.id,
        "statement": clause.statement,
        "needs": [need.name for need in clause.needs],
        "strength": clause.strength.value,
        "applies": applies["verdict"],
        "verdict": verdict.verdict.value,
        "reason": verdict.reason or applies["reason"],
        "expected_checks": [name for name, clauses in report.introduction.checks if clause.id in clauses],
        "checks": [_check(result) for result in verdict.results],
    }


def _check(result: CheckResult) -> dict[str, Any]:
    return {
        "check": result.check,
        "clause": result.clause,
        "verdict": result.verdict,
        "expected": result.expected,
        "found": result.found,
        "evidence": result.evidence,
        "seed": result.seed,
        "seconds": result.seconds,
    }


def read_certificate(path: Path) -> dict[str, Any]:
    """Read a certificate; a directory stands for the ``certificate.json`` in it.

    Raises:
        UsageProblem: there is no such file, or it is no JSON.
    """
    file = path / "certificate.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageProblem(f"there is no certificate {file}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageProblem(f"{file} is not a certificate: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageProblem(f"{file} is not a certificate of the form {FORMAT}")
    return data


def contradictions(certificate: Mapping[str, Any]) -> list[str]:
    """Say where a certificate contradicts itself; an empty list means that it is consistent.

    This recomputes every verdict from the checks listed and the grade from the verdicts.  It proves consistency, not origin:
    a certificate carries no signature.
    """
    problems = _schema_problems(certificate)
    if problems:
        return problems
    found = _revision_problems(certificate["catalogue"])
    for section in certificate["contracts"]:
        found.extend(_catalogue_problems(certificate, section))
        if certificate["kit"]["digest"] == kit_digest() and certificate["refused"] is None:
            found.extend(_suite_problems(section, partial=certificate["run"]["partial"]))
        for clause in section["clauses"]:
            found.extend(_clause_problems(clause, section, certificate["waivers"], certificate["target"]["name"]))
    found.extend(_waiver_problems(certificate))
    found.extend(_grade_problems(certificate))
    return found


def _schema_problems(certificate: Mapping[str, Any]) -> list[str]:
    from jsonschema import Draft202012Validator

    errors = sorted(Draft202012Validator(schema()).iter_errors(certificate), key=lambda error: error.json_path)
    return [f"{error.json_path}: {error.message}" for error in errors[:10]]


def _revision_problems(catalogue: Mapping[str, Any]) -> list[str]:
    if catalogue["revision"] == CATALOGUE.revision and catalogue["digest"] != CATALOGUE.digest:
        return [f"the catalogue: revision {CATALOGUE.revision} has another digest, {CATALOGUE.digest}"]
    return []


def _catalogue_problems(certificate: Mapping[str, Any], section: Mapping[str, Any]) -> list[str]:
    clauses = [
        Clause(c["id"], c["statement"], tuple(_need(name) for name in c["needs"]), Strength(c["strength"]))
        for c in section["clauses"]
    ]
    problems = _changed_clauses(clauses) if certificate["catalogue"]["revision"] == CATALOGUE.revision else []
    if not certificate["run"]["partial"] and digest_of(clauses) != certificate["catalogue"]["digest"]:
        problems.append(
            f"{section['contract']}: the list of clauses is not the one of the catalogue named (its digest differs)"
        )
    return problems


def _suite_problems(section: Mapping[str, Any], *, partial: bool) -> list[str]:
    """Compare the checks that a certificate of this very build of the kit expects with those that its suites have for these claims.

    In a part of a run a clause that was not asked for is listed where a check of another one broke it, with fewer checks.
    """
    from runcert.checks import checks_of
    from runcert.description import claims_from
    from runcert.execution import applies_to

    claims, hooks, options = claims_from(section["claims"]), frozenset(section["hooks"]), frozenset(section["options"])
    mine = [check for check in checks_of(section["contract"]) if applies_to(check, claims, hooks, options)]
    found: list[str] = []
    for clause in section["clauses"]:
        suite = {check.id for check in mine if clause["id"] in check.clauses}
        listed = set(clause["expected_checks"])
        broken_on_the_way = partial and clause["verdict"] in (Verdict.FAIL.value, Verdict.WAIVED.value)
        if not listed <= suite or (listed != suite and not broken_on_the_way):
            missing, unknown = sorted(suite - listed), sorted(listed - suite)
            found.append(
                f"{clause['id']}: this build of the kit has {len(suite)} checks for it, the certificate expects {len(listed)}"
                f" (missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'})"
            )
    return found


def _changed_clauses(clauses: Sequence[Clause]) -> list[str]:
    """Compare clauses of this very revision with the catalogue, one by one, because a digest can be computed anew by hand."""
    known = {clause.id: digest_of([clause]) for clause in CATALOGUE.clauses}
    changed = [clause.id for clause in clauses if known.get(clause.id) != digest_of([clause])]
    return [f"{name}: it does not read so in revision {CATALOGUE.revision} of the catalogue" for name in changed]


class _UnknownNeed:
    def __init__(self, name: str) -> None:
        self.name = name


def _need(name: str) -> Any:
    """Give a need by name; one of another revision keeps its name, so that the digest can still be computed."""
    return Need[name] if name in Need.__members__ else _UnknownNeed(name)


def _clause_problems(
    clause: Mapping[str, Any], section: Mapping[str, Any], waivers: Sequence[Mapping[str, Any]], target: str
) -> list[str]:
    results = [
        CheckResult(
            spec="",
            target=target,
            check=check["check"],
            clauses=(clause["id"],),
            clause=check["clause"],
            verdict=check["verdict"],
        )
        for check in clause["checks"]
    ]
    applies = None if clause["applies"] is None else Verdict(clause["applies"])
    verdict, _ = combine(clause["id"], applies, clause["reason"], clause["expected_checks"], results)
    stated = Verdict(clause["verdict"])
    if stated is Verdict.WAIVED:
        covered = any(w["clause"] == clause["id"] and w["target"] in (None, target) for w in waivers)
        return [] if verdict is Verdict.FAIL and covered else [f"{clause['id']}: waived, but there is no failure or no waiver"]
    problems = _applies_problems(clause, section)
    names = [result.check for result in results]
    if len(set(names)) != len(names):
        problems.append(f"{clause['id']}: a check is listed twice")
    if verdict is not stated:
        problems.append(f"{clause['id']}: the verdict says {stated.value}, the checks listed say {verdict.value}")
    return problems


def _applies_problems(clause: Mapping[str, Any], section: Mapping[str, Any]) -> list[str]:
    """Compare what is said to apply with the claims, where this kit knows the clause as it stands there."""
    from runcert.description import claims_from

    known = {c.id: c for c in CATALOGUE.clauses}.get(clause["id"])
    if known is None or known.statement != clause["statement"]:
        return []
    answer = known.applies_to(claims_from(section["claims"]), frozenset(section["hooks"]), frozenset(section["options"]))
    stated = None if clause["applies"] is None else Verdict(clause["applies"])
    if answer.verdict is stated:
        return []
    words = {None: "applies", Verdict.NOT_CLAIMED: "is not claimed", Verdict.UNSUPPORTED: "is declared absent"}
    return [f"{clause['id']}: it says that the clause {words.get(stated)}, the claims say that it {words.get(answer.verdict)}"]


def _waiver_problems(certificate: Mapping[str, Any]) -> list[str]:
    """Find waivers for this target of clauses that do not fail: the run would have complained of them.

    One for every target is stale only where it fails on none of them, which one certificate cannot tell.
    """
    verdicts = {clause["id"]: clause["verdict"] for section in certificate["contracts"] for clause in section["clauses"]}
    target = certificate["target"]["name"]
    idle = [
        w["clause"]
        for w in certificate["waivers"]
        if w["target"] == target and verdicts.get(w["clause"], "waived") not in ("fail", "waived")
    ]
    missing = idle if not certificate["complaints"] else []
    return [f"{name}: it is waived and does not fail, of which a run complains; there is no complaint" for name in missing]


def _grade_problems(certificate: Mapping[str, Any]) -> list[str]:
    verdicts = [(c["id"], Verdict(c["verdict"])) for section in certificate["contracts"] for c in section["clauses"]]
    complaints = bool(certificate["complaints"])
    if certificate["refused"] is not None:
        outcome, code = Outcome.REFUSED, 1
    else:
        outcome = outcome_of(verdicts, certificate["run"]["partial"], complaints)
        code = int(exit_code_of(verdicts, complaints))
    problems: list[str] = []
    if certificate["verdict"] != outcome.value:
        problems.append(f"the verdict says {certificate['verdict']!r}, the clauses say {outcome.value!r}")
    if certificate["exit_code"] != code:
        problems.append(f"the exit code says {certificate['exit_code']}, the clauses say {code}")
    return problems


def now() -> datetime:
    """Give the present instant, in UTC."""
    return datetime.now(timezone.utc)
