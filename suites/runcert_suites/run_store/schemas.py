"""RUN-SCHEMA: a schema that is not the store's is refused and left alone, and a migrated one is as good as a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runcert.cases import Case
from runcert.checks import Check, Violation, checks_of, clause
from runcert.execution import applicable
from runcert.handles import Handle
from runcert.problems import AdapterProblem
from runcert.wording import outcome_in_words, value_in_words
from runcert_contract import AlreadyExists, Create, Misconfigured, Raised, Run, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, path_to, updated

_STATES = ("newer", "older", "missing")
_AFTER = "after the migration of an older schema"

_AGAIN = ("RUN-CREATE-1", "RUN-CREATE-2", "RUN-CAS-2", "RUN-TERMINAL-1", "RUN-RESUMABLE-1")
"""The clauses of which one check is made again on a migrated schema at the depth quick."""

_MORE = ("RUN-CREATE-5", "RUN-FIND-2", "RUN-CAS-1", "RUN-CAS-4", "RUN-CAS-5", "RUN-CAS-10", "RUN-IDENTITY-1", "RUN-FIDELITY-2")
_IDENTIFIERS = ("RUN-FIDELITY-3", "RUN-ID-1", "RUN-ID-2", "RUN-ID-3")
"""What is tried at the other depths, with every check."""


@clause("RUN-SCHEMA-1", isolated=True)
class AnotherSchemaIsRefused:
    """opening on a missing, older or newer schema raises Misconfigured and creates or alters nothing."""

    def test_opening_on_each_kind(self, case: Case) -> None:
        """Opening raises Misconfigured, also when it is tried again, and what the hook `schema` sees is the same before and after."""
        current = case.hook("schema", "unchanged", [])
        for state in _STATES:
            case.steps.clear()
            before = case.hook("schema", state, [a_run(case)] if state == "older" else [])
            if before == current:
                raise AdapterProblem(
                    f"the hook schema describes a schema that is {state} as it describes the current one, {value_in_words(current)}: "
                    "let it bring the schema into that state, and say what is there"
                )
            for _ in range(2):
                _refused(case, state)
            after = case.hook("schema", "unchanged", [])
            if after != before:
                raise Violation(
                    f"opening on a schema that is {state} to leave it as it was: {value_in_words(before)}",
                    value_in_words(after),
                )
        case.hook("schema", "current", [])
        Judge(case).accepted(case.open().call(Create(a_run(case))), "create once the schema is the one that the store needs")
        case.evidence["refused"] = list(_STATES)


@clause("RUN-SCHEMA-2", isolated=True)
class AMigratedSchemaIsAsGood:
    """a fresh and a migrated schema pass the same clauses and old records still come back."""

    def test_old_records_come_back_and_other_clauses_hold(self, case: Case) -> None:
        """Runs in every status that an older release wrote are found, listed, updated and still taken after the migration; and checks of other clauses pass."""
        old = _old_runs(case)
        judge, handle = _migrated(case, old)
        judge.all_there(handle, old, _AFTER)
        for run in old:
            judge.refuses(handle, Create(a_run(case, run_id=run.run_id)), AlreadyExists, "create on the id of an old record")
            following = updated(run, stage="after the migration")
            if run.version:
                stale = replace(run, version=run.version - 1)
                judge.compare_and_set(handle, stale, replace(following, version=run.version))
            if not run.status.terminal:
                judge.accepted(judge.compare_and_set(handle, run, following), "an update of an old record")
        repeated = _repeat(case)
        judge.all_there(judge.reopen(), old, _AFTER)
        case.evidence["old records"] = len(old)
        case.evidence["checks passed on the migrated schema"] = repeated


def _repeat(case: Case) -> int:
    """Make checks of other clauses on this schema, and give how many those were."""
    evidence, checks = case.evidence, _checks_to_repeat(case)
    for check in checks:
        case.steps.clear()
        case.evidence = {}  # theirs is that of the fresh schema
        try:
            check.function(case)
        except Violation as violation:
            expected = f"on a schema that was migrated, as {check.clauses[0]} asks, {violation.expected}"
            raise Violation(expected, violation.found) from None
        finally:
            case.evidence = evidence
    return len(checks)


def _checks_to_repeat(case: Case) -> list[Check]:
    everything = (*_AGAIN, *_MORE, *_IDENTIFIERS)
    wanted = case.budget(_AGAIN, everything, everything)
    found = [
        check
        for check in checks_of(case.adapter.contract)
        if len(check.clauses) == 1
        and check.clauses[0] in wanted
        and check.proves_absent is None
        and applicable(check, case.adapter)
    ]
    first_of_each = list({check.clauses[0]: check for check in reversed(found)}.values())
    return case.budget(first_of_each, found, found)


def _refused(case: Case, state: str) -> None:
    opened = case.try_to_open()
    expected = f"opening on a schema that is {state} to raise Misconfigured"
    if isinstance(opened, Handle):
        raise Violation(expected, "it was opened")
    if not isinstance(opened, Misconfigured):
        raise Violation(expected, outcome_in_words(Raised(opened)))


def _old_runs(case: Case) -> list[Run]:
    """Give runs in every status, as they came there by legal moves; plain enough for any older release."""
    runs = []
    tenants = [case.fresh_id("t") for _ in range(2)]
    for number, status in enumerate(RunStatus):
        run = a_run(case, tenant_id=tenants[number % 2], input={"number": number, "old": [True, None, "ä"]}, stage="old")
        for step in path_to(status):
            run = moved(run, step)
        runs.append(run)
    return runs


def _migrated(case: Case, old: Sequence[Run]) -> tuple[Judge, Handle]:
    """Bring the older schema with these records to the present one, and give a judge that knows them."""
    case.hook("schema", "older", list(old))
    case.hook("schema", "current", [])
    judge = Judge(case)
    for run in old:
        judge.states = frozenset(state.with_record(run.run_id, judge.model.stored(run)) for state in judge.states)
    return judge, case.open()
