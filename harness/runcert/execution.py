"""Running one check on one store, and what is kept of it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from runcert.adapters import Adapter
from runcert.cases import Case, Depth, Workplace
from runcert.checks import Check, Inconclusive, Violation, suite_packages
from runcert.differing import Answer
from runcert.handles import Step
from runcert.masking import masked, without_passwords
from runcert.problems import AdapterProblem, UsageProblem, describe_error
from runcert.reach import EVERYTHING
from runcert.watchdog import Hang
from runcert_contract import CATALOGUE, Claims, JsonValue, Stance, Verdict, encode

__all__ = ["CheckResult", "answers_of", "applicable", "applies_to", "hang_result", "run_check", "seed_of", "smoke"]

_MOST_STEPS = 40


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found on one store.

    Attributes:
        spec: how the target is resolved.
        target: the name of the target.
        check: the id of the check.
        clauses: the clauses that the check judges.
        clause: the clause that a failure belongs to.
        verdict: pass, fail, inconclusive, adapter-error or kit-error.
        expected: for a failure, what the contract permits.
        found: for a failure, what the store did; for the others that are no pass, why.
        steps: the calls that led there, as ``[handle, operation, outcome]`` in the tagged encoding.
        evidence: for a pass, how it was come by.
        seconds: how long it took.
        seed: the seed of the check.
        deviations: how often a faulty store took its wrong turn.
        sound: the verdict of the same check on the store without the fault, where that was asked for.
    """

    spec: str
    target: str
    check: str
    clauses: tuple[str, ...]
    clause: str
    verdict: str
    expected: str = ""
    found: str = ""
    steps: list[JsonValue] = field(default_factory=list)
    evidence: dict[str, JsonValue] = field(default_factory=dict)
    seconds: float = 0.0
    seed: int = 0
    deviations: int = 0
    sound: str = ""

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CheckResult:
        """Make a result from what :meth:`to_json` gave."""
        return cls(**{**data, "clauses": tuple(data["clauses"])})


def seed_of(seed: int, check: Check) -> int:
    """Give the seed of one check, so that it does not depend on which others run."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{check.id}".encode()).digest()[:6])


def applicable(check: Check, adapter: Adapter, reach: frozenset[str] = EVERYTHING) -> bool:
    """Say whether a check runs on a store: the first of its clauses applies, or it proves an absence that is declared.

    Args:
        check: the check.
        adapter: the adapter of the store.
        reach: what the kit was seen to reach of the store; by default whatever it can, for who has not opened it yet.
    """
    return applies_to(check, adapter.claims, frozenset(adapter.hooks), adapter.options | reach)


def applies_to(check: Check, claims: Claims, hooks: frozenset[str], options: frozenset[str]) -> bool:
    """Say the same of a store of which only its claims, and the names of its adapter's hooks and options, are known."""
    if check.proves_absent is not None:
        return claims.stance(check.proves_absent) is Stance.ABSENT
    return CATALOGUE.get(check.clauses[0]).applies_to(claims, hooks, options).verdict is None


def run_check(
    check: Check, workplace: Workplace, depth: Depth, seed: int, *, interruptible: bool = True
) -> tuple[CheckResult, BaseException | None]:
    """Run a check.

    Args:
        check: what to run.
        workplace: the store.
        depth: how long to try.
        seed: the seed of the whole run.
        interruptible: True where a person may press Ctrl-C; else a ``KeyboardInterrupt`` can only come from the store.

    Returns:
        The result, and the exception that decided it (None for a pass).
    """
    case = Case(workplace, depth, seed_of(seed, check), isolated=check.isolated)
    started = time.monotonic()
    error: BaseException | None = None
    try:
        with _same_directory():
            check.function(case)
            case.end()
    except KeyboardInterrupt:
        case.abandon()
        if interruptible:
            raise
        error = AdapterProblem("the store raised KeyboardInterrupt; nobody pressed Ctrl-C")
    except Exception as problem:  # noqa: BLE001  # sorted out below: what it means depends on its kind
        error = problem
        case.abandon()
    return _result(check, case, error, time.monotonic() - started), error


@contextmanager
def _same_directory() -> Iterator[None]:
    """Come back to the directory in which the kit works, wherever a store goes."""
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)


def _result(check: Check, case: Case, error: BaseException | None, seconds: float) -> CheckResult:
    target, clause = case.adapter.target, check.clauses[0]
    secret = case.workplace.secret
    steps = [] if error is None else _encoded(case.steps)
    expected, found, verdict = "", "", Verdict.PASS
    if isinstance(error, Violation):
        clause = _claimed(error.clause, case.workplace) or clause
        expected, found, verdict = error.expected, error.found, Verdict.FAIL
    elif isinstance(error, Inconclusive):
        found, verdict = str(error), Verdict.INCONCLUSIVE
    elif isinstance(error, (AdapterProblem, UsageProblem)):  # a server that cannot be had, a disk that became full
        found, verdict = str(error), Verdict.ADAPTER_ERROR
    elif error is not None:
        found, verdict = f"{describe_error(error)}{_where(error)}", Verdict.KIT_ERROR
    return CheckResult(
        spec=case.workplace.spec,
        target=target,
        check=check.id,
        clauses=check.clauses,
        clause=clause,
        verdict=verdict.value,
        expected=_clean(expected, secret),
        found=_clean(found, secret),
        steps=steps,
        evidence=case.evidence,
        seconds=round(seconds, 4),
        seed=case.seed,
    )


def _claimed(clause: str | None, workplace: Workplace) -> str | None:
    """Give the clause that a violation names, unless the store does not claim it: then the check's own has to do."""
    if clause is None:
        return None
    adapter, options = workplace.adapter, workplace.adapter.options | workplace.reach.names
    applies = CATALOGUE.get(clause).applies_to(adapter.claims, frozenset(adapter.hooks), options)
    return clause if applies.verdict is None else None


def _clean(text: str, secret: str) -> str:
    return without_passwords(text).replace(secret, "<the secret of this run>")


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})"  # noqa: PTH119  # a file name for display


def _encoded(steps: Sequence[Step]) -> list[JsonValue]:
    """Encode the steps of a failure: all of them, or the first few and the last where they are many."""
    shown = list(steps) if len(steps) <= _MOST_STEPS else [*steps[:5], *steps[-(_MOST_STEPS - 5) :]]
    return [[step.handle, masked(encode(step.operation)), masked(encode(step.outcome))] for step in shown]


def hang_result(check: Check, workplace: Workplace, hang: Hang) -> CheckResult:
    """Give the result of a check in which something did not end.

    Args:
        check: the check.
        workplace: the store.
        hang: what did not end; a call of the store breaks BOUND-1 (BOUND-2 in a check of that), opening and closing are the
            adapter's.
    """
    wait = workplace.adapter.claims.limits.maximum_wait.total_seconds()
    prefix = check.clauses[0].partition("-")[0]
    bound = f"{prefix}-BOUND-2" if f"{prefix}-BOUND-2" in check.clauses else f"{prefix}-BOUND-1"
    return CheckResult(
        spec=workplace.spec,
        target=workplace.adapter.target,
        check=check.id,
        clauses=check.clauses,
        clause=bound if hang.is_call else check.clauses[0],
        verdict=(Verdict.FAIL if hang.is_call else Verdict.ADAPTER_ERROR).value,
        expected=f"{hang.description} to end within {wait:g} s" if hang.is_call else "",
        found=f"no end after {hang.seconds:g} s"
        if hang.is_call
        else f"{hang.description} did not end within {hang.seconds:g} s",
        steps=_encoded(workplace.steps),
        seconds=hang.seconds,
        deviations=1,
    )


# -- what a store answers, for whoever compares


def answers_of(workplace: Workplace, seed: int, length: int, *, lists: bool, token: str) -> list[Answer]:
    """Give what a store answers to the suite's program of calls.

    Args:
        workplace: the store.
        seed: decides the program.
        length: how many calls.
        lists: True to list, too.
        token: part of every identifier where namespaces are shared; the same for all stores that are compared.
    """
    package = suite_packages(workplace.adapter.contract)[0]
    with _outside_of_checks(Case(workplace, Depth.QUICK, seed, isolated=True, token=token)) as case:
        return list(package.answers(case, length, lists=lists))


# -- smoke: is the adapter wired right?  It judges no answer.


def smoke(workplace: Workplace) -> str | None:
    """Open, call each operation once, close.

    Returns:
        None when the adapter is wired right; for a store that keeps nothing, the sentence that refuses it.

    Raises:
        AdapterProblem: it does not open, lacks an operation, answers with something that is no error of the contract, or
            does not close.
    """
    package = suite_packages(workplace.adapter.contract)[0]
    with _outside_of_checks(Case(workplace, Depth.QUICK, 0)) as case:
        package.smoke(case)
        refused: str | None = package.refused(case)
    return refused


@contextmanager
def _outside_of_checks(case: Case) -> Iterator[Case]:
    """Let the body use a case that judges nothing, and close what it opened, also after an error."""
    try:
        with _same_directory():
            yield case
            case.end()
    except BaseException:
        case.abandon()
        raise
