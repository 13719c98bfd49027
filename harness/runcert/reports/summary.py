"""A verdict in words: what is certified, what is not, and what never is.  Terminal and Markdown say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from runcert.certificate import NEVER_COVERED, RunFacts, servers_of
from runcert.grading import ClauseVerdict, Outcome, TargetReport
from runcert.masking import without_passwords
from runcert.reports.failures import replay_command, steps_in_words
from runcert_contract import CATALOGUE, Verdict

__all__ = [
    "evidence_in_words",
    "headline",
    "markdown",
    "not_certified",
    "overview_markdown",
    "selfcheck_in_words",
    "weak_promises",
]


def headline(report: TargetReport, depth: str) -> str:
    """Give the verdict on a target in one sentence, with the depth at which it was tried."""
    introduction = report.introduction
    claims = introduction.description["claims"]
    if report.outcome is Outcome.REFUSED:
        return f"{report.name}: refused: {introduction.refused}"
    counted = sum(1 for clause in report.clauses if clause.verdict.counts)
    about = f"{introduction.contract}, scope {claims['scope']}, depth {depth}, {counted} of {len(report.clauses)} clauses"
    return f"{report.name}: {report.outcome.value} ({about})"


def not_certified(report: TargetReport) -> dict[str, list[str]]:
    """Give the clauses that were not claimed, by the reason why."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for clause in report.clauses:
        if clause.verdict is Verdict.NOT_CLAIMED:
            reasons[clause.reason].append(clause.id)
    return dict(reasons)


def weak_promises(claims: dict[str, Any]) -> list[str]:
    """Give each promise below ``kept`` with its consequence, as sentences."""
    consequences = {"volatile": "everything may be gone afterwards: a run may be created, and executed, twice"}
    return [
        f"after {fault}: {promise} ({consequences.get(promise, 'acknowledged writes may be gone afterwards')})"
        for fault, promise in claims["durability"].items()
        if promise != "kept"
    ]


def selfcheck_in_words(selfcheck: Mapping[str, Any]) -> str:
    """Say how many faulty stores this build of the kit caught, on each backend, as a sentence."""
    backends = selfcheck.get("backends", {})
    if not backends:
        return "Self-check of this build of the kit: not run on this machine; `runcert selfcheck` runs it."
    counts = ", ".join(f"{each['caught']} of {each['stores']} on {name}" for name, each in sorted(backends.items()))
    return f"Self-check of this build of the kit: it caught {counts} faulty stores."


def evidence_in_words(clause: ClauseVerdict) -> str:
    """Give the evidence of a clause, or the reason why there is none, in one line."""
    if clause.verdict is Verdict.FAIL:
        return clause.failures[0].found if clause.failures else clause.reason
    if clause.verdict is Verdict.WAIVED or not clause.verdict.counts:
        return clause.reason
    checks = len(clause.results)
    parts = [f"{checks} check{'s' if checks != 1 else ''}"]
    for evidence in clause.evidence.values():
        parts.extend(f"{name} {_in_words(value)}" for name, value in evidence.items())
    return "; ".join(dict.fromkeys(parts))


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(str(inner) for inner in value) or "none"
    return str(value)


def overview_markdown(reports: list[TargetReport]) -> str:
    """Give the verdicts of a run over several targets as Markdown."""
    lines = ["# runcert", "", "| target | verdict | exit code |", "| --- | --- | --- |"]
    lines += [f"| [{r.name}]({r.name}/summary.md) | {r.outcome.value} | {int(r.exit_code)} |" for r in reports]
    return "\n".join(lines) + "\n"


def markdown(report: TargetReport, facts: RunFacts) -> str:
    """Give the verdict on a target as Markdown."""
    lines = [f"# {headline(report, facts.depth)}", ""]
    lines += [f"Depth {facts.depth}, seed {facts.seed}, catalogue revision {CATALOGUE.revision}.", ""]
    lines += _limits_of_the_verdict(report)
    lines += [f"Server {name}: {said}.\n" for name, said in servers_of(report, facts).items()]
    lines += [selfcheck_in_words(facts.selfcheck), ""]
    lines += ["## Clauses", "", "| clause | verdict | evidence |", "| --- | --- | --- |"]
    lines += [f"| {c.id} | {c.verdict.value} | {_cell(evidence_in_words(c))} |" for c in report.clauses]
    lines.append("")
    for clause in report.clauses:
        for number, failure in enumerate(clause.failures, start=1):
            lines += [f"## {clause.id}: {CATALOGUE.get(clause.id).statement}", ""]
            lines += [
                f"- check: `{failure.check}`",
                f"- expected: {_cell(failure.expected)}",
                f"- found: {_cell(failure.found)}",
            ]
            lines += [f"{n}. `{step}`" for n, step in enumerate(steps_in_words(failure.steps), start=1)]
            lines += ["", f"Replay: `{replay_command(report.introduction.text, failure, facts.depth, facts.seed)}`", ""]
            if number == 3:
                break
    return without_passwords("\n".join(lines))


def _limits_of_the_verdict(report: TargetReport) -> list[str]:
    lines: list[str] = []
    lines += [f"- **{complaint}**" for complaint in report.complaints]
    promises = weak_promises(report.introduction.description["claims"])
    lines += [f"- {promise}" for promise in promises]
    for reason, clauses in not_certified(report).items():
        lines.append(f"- not certified ({reason}): {', '.join(clauses)}")
    lines += ["", "Never covered: " + "; ".join(NEVER_COVERED) + ".", ""]
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
