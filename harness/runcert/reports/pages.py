"""Reports as pages of HTML: one file each, nothing to load, nothing to run, for screens and for paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runcert.certificate import NEVER_COVERED, RunFacts, servers_of
from runcert.comparing import comparison_rows
from runcert.execution import CheckResult
from runcert.grading import ClauseVerdict, TargetReport
from runcert.masking import without_passwords
from runcert.reports.diagrams import steps_as_svg
from runcert.reports.failures import replay_command, steps_in_words
from runcert.reports.summary import evidence_in_words, headline, not_certified, selfcheck_in_words, weak_promises
from runcert_contract import CATALOGUE, Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["comparison_page", "report_page"]

_MOST_OF_A_CLAUSE = 3
_TOPICS = {
    "ABSENT": "an outage is never taken for an answer",
    "ALIAS": "store and caller share nothing that can be changed",
    "BOUND": "calls end in time",
    "CANCEL": "a cancelled call harms no later one",
    "CAS": "updates by version: compare-and-set",
    "CLOSED": "a closed handle does nothing",
    "CONTENTION": "clients that meet on one run",
    "CORRUPT": "a record that cannot be read is named",
    "CREATE": "creating a run",
    "DURABLE": "what was acknowledged is kept",
    "ERROR": "errors are those of the contract",
    "EVICT": "the backend removes no run",
    "FIDELITY": "values come back as they were given",
    "FIND": "finding a run",
    "ID": "identifiers are opaque",
    "IDENTITY": "identity fields never change",
    "INPUT": "wrong input is refused before anything is stored",
    "LIST": "listings are complete and in pages",
    "NAMESPACE": "namespaces are apart",
    "PARITY": "both forms of the store agree",
    "PATH": "an identifier is never a path",
    "RESIDUE": "what was refused leaves nothing behind",
    "RESUMABLE": "the runs that can go on are found",
    "REUSE": "an id is never used twice",
    "SCHEMA": "a schema of another version is refused",
    "SURFACE": "there is no way around the contract",
    "TERMINAL": "a run that has ended stays as it ended",
    "USABLE": "a handle works on after a refusal and after an outage",
}
"""What the topics of clauses are about, in a few words."""
_DECIDED = (Verdict.FAIL, Verdict.PASS, Verdict.UNSUPPORTED, Verdict.NOT_CLAIMED)


def report_page(report: TargetReport, facts: RunFacts) -> str:
    """Give the verdict on a target as a page.

    Args:
        report: the verdict.
        facts: the facts of the run.
    """
    description = report.introduction.description
    return _render(
        "report.html",
        name=report.name,
        outcome=report.outcome.value,
        outcome_class=_as_class(report.outcome.value),
        sentence=headline(report, facts.depth),
        refused=report.introduction.refused,
        complaints=report.complaints,
        kept=[topic for topic in map(_counted, _by_topic(report.clauses)) if topic["count"]],
        failed=[_clause(c) for c in report.clauses if c.verdict is Verdict.FAIL],
        undecided=[_clause(c) for c in report.clauses if c.verdict not in _DECIDED],
        promises=weak_promises(description["claims"]),
        not_claimed=[(reason, ", ".join(clauses)) for reason, clauses in not_certified(report).items()],
        never_covered="; ".join(NEVER_COVERED),
        claims=list(_claims(description["claims"])),
        failures=list(_failures(report, facts)),
        topics=[{"name": name, "clauses": [_clause(c) for c in clauses]} for name, clauses in _by_topic(report.clauses)],
        servers=servers_of(report, facts),
        selfcheck=selfcheck_in_words(facts.selfcheck),
        facts=(
            f"Depth {facts.depth}, seed {facts.seed}, catalogue revision {CATALOGUE.revision}; "
            f"{facts.started.isoformat(timespec='seconds')}, {(facts.ended - facts.started).total_seconds():.0f} s."
        ),
    )


def comparison_page(certificates: Sequence[Mapping[str, Any]], paths: Sequence[Path] = ()) -> str:
    """Give certificates side by side as a page: rows are clauses, columns are targets."""
    header, verdicts, *rows = comparison_rows(certificates, paths)
    table = [{"clause": row[0], "verdicts": row[1:], "differs": len(set(row[1:])) > 1} for row in rows]
    return _render(
        "comparison.html",
        targets=header[1:],
        verdicts=verdicts[1:],
        rows=table,
        differing=sum(row["differs"] is True for row in table),
    )


def _render(template: str, **values: object) -> str:
    # Imported here because only reports need it: everything else starts sooner.
    from markupsafe import Markup  # noqa: PLC0415

    environment = _environment()
    style = files("runcert.reports").joinpath("templates/style.css").read_text(encoding="utf-8")
    page = environment.get_template(template).render(style=Markup(style), **values)  # noqa: S704  # our own file
    return without_passwords(page)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # as above

    loader = PackageLoader("runcert.reports", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _as_class(verdict: str) -> str:
    return verdict.partition(",")[0].replace(" ", "-")


def _by_topic(clauses: Sequence[ClauseVerdict]) -> list[tuple[str, list[ClauseVerdict]]]:
    return [(_TOPICS.get(name, name), list(group)) for name, group in groupby(clauses, key=lambda c: CATALOGUE.get(c.id).topic)]


def _counted(topic: tuple[str, Sequence[ClauseVerdict]]) -> dict[str, object]:
    name, clauses = topic
    return {"name": name, "count": sum(clause.verdict.counts for clause in clauses), "all": len(clauses)}


def _clause(clause: ClauseVerdict) -> dict[str, str]:
    return {
        "id": clause.id,
        "verdict": clause.verdict.value,
        "statement": CATALOGUE.get(clause.id).statement,
        "reason": clause.reason,
        "evidence": evidence_in_words(clause),
    }


def _claims(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in claims.items():
        if isinstance(value, Mapping):
            shown = ", ".join(f"{key} {inner}" for key, inner in value.items() if inner is not None) or "none"
        else:
            shown = str(value)
        yield name.replace("_", " "), shown


def _failures(report: TargetReport, facts: RunFacts) -> Iterator[dict[str, object]]:
    from markupsafe import Markup  # noqa: PLC0415  # as above

    for clause in report.clauses:
        for number, failure in enumerate(clause.failures[:_MOST_OF_A_CLAUSE], start=1):
            diagram = Markup(steps_as_svg(failure.steps))  # noqa: S704  # made as XML, which escapes what stores said
            yield {**_failure(report, failure, facts), "anchor": f"failure-{clause.id}-{number}", "diagram": diagram}


def _failure(report: TargetReport, failure: CheckResult, facts: RunFacts) -> dict[str, object]:
    return {
        "clause": failure.clause,
        "statement": CATALOGUE.get(failure.clause).statement,
        "check": failure.check,
        "expected": failure.expected,
        "found": failure.found,
        "replay": replay_command(report.introduction.text, failure, facts.depth, facts.seed),
        "steps": steps_in_words(failure.steps),
    }
