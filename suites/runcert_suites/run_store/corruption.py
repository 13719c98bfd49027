"""RUN-CORRUPT: a record that cannot be read is said to be there and unreadable, by its name."""

from __future__ import annotations

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.handles import Handle
from runcert.wording import outcome_in_words
from runcert_contract import (
    AlreadyExists,
    CompareAndSet,
    CorruptRecord,
    Create,
    Find,
    Outcome,
    Raised,
    Returned,
    Run,
    StoreError,
    canonical,
)
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, updated

_KINDS = ("undecodable", "cut", "empty")


@clause("RUN-CORRUPT-1", isolated=True)
class DamagedRecords:
    """an undecodable, cut or empty stored record is CorruptRecord for find, never absent, never defaults."""

    def test_find_says_which_record_is_damaged(self, case: Case) -> None:
        """A find raises CorruptRecord that names the run, on every handle and every time."""
        for how in _KINDS:
            run, handle = _damaged(case, how)
            for reader in (handle, case.another(handle)):
                _found_corrupt(reader, run, how)
                _found_corrupt(reader, run, how)

    def test_create_does_not_take_the_id(self, case: Case) -> None:
        """A create on its id raises AlreadyExists or CorruptRecord, and the record stays as damaged as it was."""
        for how in _KINDS:
            run, handle = _damaged(case, how)
            _raised(handle.call(Create(run)), (AlreadyExists, CorruptRecord), f"create on the id of a record that is {how} to")
            rival = a_run(case, run_id=run.run_id, stage="rival")
            _raised(
                handle.call(Create(rival)), (AlreadyExists, CorruptRecord), f"create on the id of a record that is {how} to"
            )
            _found_corrupt(case.another(handle), run, how)

    def test_an_update_raises_or_succeeds_by_its_version(self, case: Case) -> None:
        """An update raises CorruptRecord, or succeeds where the version is known, and then the new record is whole."""
        for how in _KINDS:
            run, handle = _damaged(case, how)
            following = updated(run, stage="mended")
            outcome = handle.call(CompareAndSet(run, following))
            if outcome == Returned(True):
                found = case.another(handle).call(Find(run.run_id))
                judge = Judge(case)
                judge.states = frozenset(state.with_record(run.run_id, judge.model.stored(following)) for state in judge.states)
                judge.judge(Find(run.run_id), found)
                continue
            _raised(outcome, (CorruptRecord,), f"an update of a record that is {how} to succeed by its version or to")
            _found_corrupt(case.another(handle), run, how)

    def test_a_stale_update_does_not_replace_it(self, case: Case) -> None:
        """An update with another version than the stored one raises CorruptRecord or gives False."""
        for how in _KINDS:
            run, handle = _damaged(case, how)
            newer = updated(run)
            outcome = handle.call(CompareAndSet(newer, updated(newer, stage="rival")))
            if outcome != Returned(False):
                _raised(outcome, (CorruptRecord,), f"a stale update of a record that is {how} to give False or to")
            _found_corrupt(case.another(handle), run, how)

    def test_other_records_are_not_hurt(self, case: Case) -> None:
        """Runs before and after the damaged one, also of the same tenant, are found, updated and created as ever."""
        handle = case.open()
        judge = Judge(case)
        tenant = case.fresh_id("t")
        others = [a_run(case, tenant_id=tenant), a_run(case)]
        for other in others:
            judge.accepted(judge.create(handle, other), "create of a fresh id")
        for how in _KINDS:
            run = a_run(case, tenant_id=tenant)
            Judge(case).accepted(handle.call(Create(run)), "create of a fresh id")
            _damage(case, run, how)
            _found_corrupt(case.another(handle), run, how)
            for other in others:
                judge.find(case.another(handle), other.run_id)
            others[0] = _advance(judge, handle, others[0])
            judge.accepted(judge.create(handle, a_run(case, tenant_id=tenant)), "create of a fresh id beside a damaged record")


def _damaged(case: Case, how: str) -> tuple[Run, Handle]:
    """Store a run, damage it, and give a fresh handle: one that read the run before may remember it."""
    case.steps.clear()
    handle = case.open()
    run = a_run(case, input={"a": 1}, stage="whole")
    Judge(case).accepted(handle.call(Create(run)), "create of a fresh id")
    _damage(case, run, how)
    return run, case.another(handle)


def _damage(case: Case, run: Run, how: str) -> None:
    case.hook("damage", case.adapter.contract, run.run_id, how)


def _advance(judge: Judge, handle: Handle, run: Run) -> Run:
    following = updated(run)
    judge.accepted(judge.compare_and_set(handle, run, following), "an update of another run than the damaged one")
    return following


def _found_corrupt(handle: Handle, run: Run, how: str) -> None:
    outcome = handle.call(Find(run.run_id))
    if isinstance(outcome, Returned) and canonical(outcome.value) == canonical(run):
        raise Violation(
            f"find of a record that is {how} to raise CorruptRecord",
            f"the run as it was written, {outcome_in_words(outcome)}: the store answers from a copy, or the adapter's hook damage changed nothing",
        )
    error = _raised(outcome, (CorruptRecord,), f"find of a record that is {how} to")
    if run.run_id not in str(error) and getattr(error, "record", None) != run.run_id:
        raise Violation(
            f"CorruptRecord to name the run {run.run_id!r} in its message or as its record", outcome_in_words(outcome)
        )


def _raised(outcome: Outcome, errors: tuple[type[StoreError], ...], what: str) -> BaseException:
    if isinstance(outcome, Raised) and isinstance(outcome.error, errors):
        return outcome.error
    names = " or ".join(error.__name__ for error in errors)
    raise Violation(f"{what} raise {names}", outcome_in_words(outcome))
