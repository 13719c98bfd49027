"""RUN-IDENTITY: what makes a run this run never changes."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

from runcert.cases import Case
from runcert.checks import clause
from runcert.handles import Handle
from runcert.wording import value_in_words
from runcert_contract import IDENTITY_FIELDS, CompareAndSet, InvalidRecord, Run, RunStatus
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated


@clause("RUN-IDENTITY-1")
class IdentityFieldsNeverChange:
    """an update that differs from `expected` in an identity field raises InvalidRecord (from the two arguments alone)."""

    def test_each_identity_field_of_a_stored_run(self, case: Case) -> None:
        """A change of any identity field, however small, is refused, and the run stays as it is."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.accepted(judge.create(handle, run), "create of a fresh id")
        for fields in _other_identities(case, run):
            _refused(judge, handle, run, updated(run, **fields), "a stored run")
            judge.find(case.another(handle), run.run_id)
        judge.accepted(judge.compare_and_set(handle, run, updated(run)), "an update that changes no identity field")

    def test_together_with_a_legal_move(self, case: Case) -> None:
        """A legal move does not hide a change of identity."""
        handle = case.open()
        judge = Judge(case)
        run = judge.run_in(handle, RunStatus.RUNNING)
        for fields in _other_identities(case, run):
            _refused(judge, handle, run, moved(run, RunStatus.SUCCEEDED, **fields), "a running run that succeeds")
            judge.find(handle, run.run_id)

    def test_when_the_run_is_absent_or_has_moved_on(self, case: Case) -> None:
        """The two arguments alone decide: it is InvalidRecord also where the version is stale or there is no run at all."""
        handle = case.open()
        judge = Judge(case)
        stale = a_run(case)
        judge.create(handle, stale)
        judge.accepted(judge.compare_and_set(handle, stale, updated(stale)), "the first update")
        for name, expected in (("an absent run", a_run(case)), ("a run that has moved on", stale)):
            for fields in _other_identities(case, expected):
                _refused(judge, handle, expected, updated(expected, **fields), name)
                judge.find(handle, expected.run_id)

    def test_the_same_instant_in_another_time_zone_is_no_change(self, case: Case) -> None:
        """created_at is an instant: written with another offset it is the same one, and the update is accepted."""
        handle = case.open()
        judge = Judge(case)
        run = a_run(case)
        judge.create(handle, run)
        same = run.created_at.astimezone(timezone(timedelta(hours=-8)))
        judge.accepted(judge.compare_and_set(handle, run, updated(run, created_at=same)), "an update with the same created_at")
        judge.find(handle, run.run_id)


def _refused(judge: Judge, handle: Handle, expected: Run, update: Run, name: str) -> None:
    """Insist on InvalidRecord, in words that name the fields which would have changed."""
    changes = [
        f"{field} from {value_in_words(getattr(expected, field))} to {value_in_words(getattr(update, field))}"
        for field in IDENTITY_FIELDS
        if getattr(expected, field) != getattr(update, field)
    ]
    what = f"an update of {name}, {expected.run_id!r}, that changes {', '.join(changes)},"
    judge.refuses(handle, CompareAndSet(expected, update), InvalidRecord, what)


def _other_identities(case: Case, run: Run) -> list[dict[str, Any]]:
    names = ("tenant_id", "action_id", "proposal_id", "idempotency_key")
    changes: list[dict[str, Any]] = [{"run_id": case.fresh_id()}]
    for name in names:
        value: str = getattr(run, name)
        changes += [{name: case.fresh_id()}, {name: value.swapcase()}, {name: f"{value}0"}, {name: value[:-1]}]
    changes += [{"created_at": run.created_at + timedelta(days=day)} for day in (-400, 400)]
    changes += [{"created_at": run.created_at + max(case.claims.limits.precision, timedelta(microseconds=1))}]
    return [*changes, {name: f"{getattr(run, name)}x" for name in names}]
