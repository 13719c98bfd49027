"""From the results of checks to the verdict on each clause, and from those to the verdict on the store.

The list of clauses is the contract's own, never what happened to run: a clause whose checks are missing is ``not-run``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum

from runcert.execution import CheckResult
from runcert.problems import ExitCode
from runcert.supervisor import Introduction
from runcert.waivers import Waiver
from runcert_contract import CATALOGUE, JsonValue, Strength, Verdict

__all__ = ["ClauseVerdict", "Outcome", "TargetReport", "combine", "grade", "overall_exit_code"]


class Outcome(Enum):
    """The verdict on a store, in the words of the certificate."""

    CERTIFIED = "certified"
    NOT_CERTIFIED = "not certified"
    PARTIAL = "partial, no certificate"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClauseVerdict:
    """What is said of one clause.

    Attributes:
        id: the clause.
        verdict: the verdict.
        reason: why, where the verdict is not a pass.
        results: what the checks of this clause found.
    """

    id: str
    verdict: Verdict
    reason: str = ""
    results: tuple[CheckResult, ...] = ()

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The results that failed this clause."""
        return tuple(r for r in self.results if r.verdict == Verdict.FAIL.value and r.clause == self.id)

    @property
    def evidence(self) -> dict[str, dict[str, JsonValue]]:
        """The evidence of its checks, by check, where there is any."""
        return {result.check: dict(result.evidence) for result in self.results if result.evidence}


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The verdict on one target.

    Attributes:
        introduction: the target.
        clauses: the verdict on each clause that was asked for, in the order of the catalogue.
        partial: True when only some clauses were asked for.
        complaints: sentences about waivers that have outlived their reason.
    """

    introduction: Introduction
    clauses: tuple[ClauseVerdict, ...]
    partial: bool = False
    complaints: tuple[str, ...] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.introduction.name

    @property
    def exit_code(self) -> ExitCode:
        """What the run says of this target."""
        if self.introduction.refused is not None:
            return ExitCode.DOES_NOT_HOLD
        return exit_code_of([(c.id, c.verdict) for c in self.clauses], bool(self.complaints))

    @property
    def outcome(self) -> Outcome:
        """The verdict in the words of the certificate."""
        if self.introduction.refused is not None:
            return Outcome.REFUSED
        return outcome_of([(c.id, c.verdict) for c in self.clauses], self.partial, bool(self.complaints))


_UNDECIDED = (Verdict.INCONCLUSIVE, Verdict.NOT_RUN, Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR)
_WORST_FIRST = (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR, Verdict.NOT_RUN, Verdict.INCONCLUSIVE)


def exit_code_of(verdicts: Sequence[tuple[str, Verdict]], complaints: bool) -> ExitCode:
    """Give the exit code that follows from the verdicts on clauses."""
    if complaints or any(verdict is Verdict.FAIL and _blocks(name) for name, verdict in verdicts):
        return ExitCode.DOES_NOT_HOLD
    decided = any(verdict.counts or verdict is Verdict.WAIVED for _, verdict in verdicts)
    if not decided or any(verdict in _UNDECIDED for _, verdict in verdicts):
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS


def outcome_of(verdicts: Sequence[tuple[str, Verdict]], partial: bool, complaints: bool) -> Outcome:
    """Give the verdict on a store that follows from the verdicts on clauses."""
    holds = exit_code_of(verdicts, complaints) is ExitCode.HOLDS
    waived = any(verdict is Verdict.WAIVED for _, verdict in verdicts)
    if not holds or (waived and not partial):
        return Outcome.NOT_CERTIFIED
    return Outcome.PARTIAL if partial else Outcome.CERTIFIED


def _blocks(clause_id: str) -> bool:
    known = {clause.id: clause for clause in CATALOGUE.clauses}
    return clause_id not in known or known[clause_id].strength is Strength.MUST


def overall_exit_code(reports: Iterable[TargetReport]) -> ExitCode:
    """Give the exit code of a run over several targets: does not hold goes before undecided."""
    codes = {report.exit_code for report in reports}
    for code in (ExitCode.DOES_NOT_HOLD, ExitCode.UNDECIDED):
        if code in codes:
            return code
    return ExitCode.HOLDS if codes else ExitCode.UNDECIDED


def combine(
    clause_id: str, applies: Verdict | None, reason: str, expected: Sequence[str], results: Sequence[CheckResult]
) -> tuple[Verdict, str]:
    """Give the verdict on one clause.

    Args:
        clause_id: the clause.
        applies: None where it applies, NOT_CLAIMED or UNSUPPORTED where it does not.
        reason: why it does not apply.
        expected: the ids of the checks that should have run for it.
        results: what ran.
    """
    if applies is Verdict.NOT_CLAIMED:
        return Verdict.NOT_CLAIMED, reason
    if any(r.verdict == Verdict.FAIL.value and r.clause == clause_id for r in results):
        return Verdict.FAIL, ""
    if not expected:
        return Verdict.NOT_RUN, "no check for this clause was found in the suite"
    found = {_own_verdict(clause_id, result) for result in results}
    if set(expected) - {result.check for result in results}:
        found.add(Verdict.NOT_RUN)
    for verdict in _WORST_FIRST:
        if verdict in found:
            return verdict, _why(clause_id, verdict, results)
    return (Verdict.PASS, "") if applies is None else (Verdict.UNSUPPORTED, f"{reason}, and proved")


def _own_verdict(clause_id: str, result: CheckResult) -> Verdict:
    """Give what a check says of this clause: one that was stopped by another clause's failure decided nothing here."""
    verdict = Verdict(result.verdict)
    return Verdict.INCONCLUSIVE if verdict is Verdict.FAIL and result.clause != clause_id else verdict


def _why(clause_id: str, verdict: Verdict, results: Sequence[CheckResult]) -> str:
    for result in results:
        if _own_verdict(clause_id, result) is verdict:
            if result.verdict == Verdict.FAIL.value:
                return f"{result.check} was stopped by a failure of {result.clause}"
            return f"{result.check}: {result.found}"
    return "checks of this clause did not run"


def grade(
    introduction: Introduction,
    results: Sequence[CheckResult],
    only: Sequence[str] = (),
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
) -> TargetReport:
    """Give the verdict on one target.

    Args:
        introduction: the target.
        results: what its checks found.
        only: the clauses that were asked for; all where none is named.
        waivers: accepted failures.
        today: the day on which waivers are judged; None takes no waiver.
    """
    clauses = tuple(
        _waived(introduction.name, _clause_verdict(introduction, clause.id, results), waivers, today)
        for clause in CATALOGUE.of(introduction.contract)
        if not only or clause.id in only or any(r.clause == clause.id and r.verdict == Verdict.FAIL.value for r in results)
    )
    return TargetReport(introduction, clauses, bool(only))


def _clause_verdict(introduction: Introduction, clause_id: str, results: Sequence[CheckResult]) -> ClauseVerdict:
    applies: Mapping[str, str | None] = introduction.description["clauses"][clause_id]
    state = None if applies["verdict"] is None else Verdict(applies["verdict"])
    expected = [name for name, clauses in introduction.checks if clause_id in clauses]
    order = {name: number for number, (name, _) in enumerate(introduction.checks)}  # the suite's, whichever process was first
    found = (r for r in results if clause_id in r.clauses or r.clause == clause_id)
    mine = tuple(sorted(found, key=lambda result: order.get(result.check, len(order))))
    verdict, reason = combine(clause_id, state, str(applies["reason"]), expected, mine)
    return ClauseVerdict(clause_id, verdict, reason, mine)


def _waived(target: str, clause: ClauseVerdict, waivers: Sequence[Waiver], today: date | None) -> ClauseVerdict:
    if clause.verdict is Verdict.FAIL and today is not None:
        for waiver in waivers:
            if waiver.covers(target, clause.id) and waiver.expires >= today:
                return replace(clause, verdict=Verdict.WAIVED, reason=f"until {waiver.expires.isoformat()}: {waiver.reason}")
    return clause
