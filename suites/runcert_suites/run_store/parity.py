"""RUN-PARITY: the synchronous and the asynchronous form of one store give the same outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from runcert.cases import Case, Workplace
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import (
    LEGAL_MOVES,
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    Listing,
    Numbers,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    StoreError,
    canonical,
)
from runcert_suites.run_store.records import a_run, moved, updated

_TENANTS = 3


@clause("RUN-PARITY-1", isolated=True)
class BothFormsAgree:
    """sync and async form of one store give the same outcomes."""

    def test_the_same_operations_have_the_same_outcomes(self, case: Case) -> None:
        """One random program of accepted, refused and wrong calls runs on both forms, and each outcome is the same."""
        other_form = case.adapter.parity_with
        if other_form is None:
            raise Inconclusive("the adapter names no other form of the store")
        workplace = case.workplace.beside(other_form())
        try:
            _compare(case, workplace, case.budget(150, 1_000, 10_000))
        finally:
            workplace.end()


def _compare(case: Case, workplace: Workplace, length: int) -> None:
    first = case.open()
    second = workplace.open(workplace.make())
    kinds: dict[str, int] = {}
    program = _Program(case, both_list=_both_list(first, second))
    for _ in range(length):
        operation = program.next()
        outcomes = first.call(operation), second.call(operation)
        texts = [_comparable(outcome, case.claims.numbers) for outcome in outcomes]
        if texts[0] != texts[1]:
            raise Violation(
                f"{operation_in_words(operation)} to give on the {_form(second)} form what it gives on the {_form(first)} one, "
                f"{outcome_in_words(outcomes[0])}",
                outcome_in_words(outcomes[1]),
            )
        program.note(operation, outcomes[0])
        kinds[_kind(outcomes[0])] = kinds.get(_kind(outcomes[0]), 0) + 1
    case.evidence["operations"] = length
    case.evidence["outcomes"] = dict(sorted(kinds.items()))


def _form(handle: Handle) -> str:
    return "asynchronous" if handle.adapter.claims.asynchronous else "synchronous"


def _both_list(first: Handle, second: Handle) -> bool:
    return all(handle.adapter.claims.claims(Capability.ENUMERATES) for handle in (first, second))


def _comparable(outcome: Outcome, numbers: Numbers) -> str:
    """Give what has to be the same on both forms: the kind of an error, or the value."""
    if isinstance(outcome, Raised):
        contract_error = isinstance(outcome.error, StoreError)
        return f"raised {_contract_name(outcome.error) if contract_error else type(outcome.error).__qualname__}"
    if not isinstance(outcome, Returned):
        return type(outcome).__name__
    if isinstance(outcome.value, Listing):
        listing = outcome.value
        items = sorted(canonical(item, numbers) for item in listing.items)
        return f"listed {items} {sorted(listing.corrupt)} {listing.complete}"
    return f"returned {canonical(outcome.value, numbers)}"


def _contract_name(error: BaseException) -> str:
    """Give the name of the error of the contract that ``error`` is, whatever subclass a store made of it."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("runcert_contract"))


def _kind(outcome: Outcome) -> str:
    if isinstance(outcome, Raised):
        return type(outcome.error).__name__
    value = outcome.value if isinstance(outcome, Returned) else outcome
    return str(value) if value is None or isinstance(value, bool) else type(value).__name__


class _Program:
    """A random program: what comes next depends on the seed and on what the first form answered."""

    def __init__(self, case: Case, *, both_list: bool) -> None:
        self._case = case
        self._random: Random = case.random
        self._tenants = [case.fresh_id("t") for _ in range(_TENANTS)]
        self._stored: dict[str, Run] = {}
        self._lists = both_list

    def next(self) -> Operation:
        """Give the next call."""
        choices = list(self._choices())
        weights = [weight for weight, _ in choices]
        return self._random.choices([operation for _, operation in choices], weights)[0]

    def note(self, operation: Operation, outcome: Outcome) -> None:
        """Remember what is stored now."""
        if isinstance(operation, Create) and isinstance(outcome, Returned):
            self._stored[operation.run.run_id] = operation.run
        if isinstance(operation, CompareAndSet) and outcome == Returned(True):
            self._stored[operation.updated.run_id] = operation.updated

    def _choices(self) -> Iterator[tuple[int, Operation]]:
        new = a_run(self._case, tenant_id=self._random.choice(self._tenants), input={"n": self._random.randrange(2**60)})
        yield (8 if self._stored else 100), Create(new)
        yield 1, Create(replace(new, version=1))
        yield 1, Create(replace(new, input={"a": [math.nan]}))
        yield 1, Create(replace(new, created_at=new.created_at.replace(tzinfo=None)))
        yield 1, Create(replace(new, run_id="\ud800"))
        yield 1, Find(new.run_id)
        yield 1, Find(self._random.choice(["", "a:b", "A", "../x", "\ud800", "a\0b", "x" * 2000]))
        yield 1, CompareAndSet(new, updated(new))
        if self._lists:
            yield 2, FindResumable(self._random.choice([*self._tenants, new.run_id]))
        if self._stored:
            yield from self._choices_of_stored(self._random.choice(list(self._stored.values())), new)

    def _choices_of_stored(self, run: Run, new: Run) -> Iterator[tuple[int, Operation]]:
        yield 4, Find(run.run_id)
        yield 2, Create(replace(new, run_id=run.run_id))
        yield 4, CompareAndSet(run, updated(run, stage=f"stage {run.version}"))
        yield 1, CompareAndSet(replace(run, version=run.version + 1), updated(run, version=run.version + 2))
        yield 1, CompareAndSet(run, updated(run, version=run.version + 3))
        yield 1, CompareAndSet(run, updated(run, action_id="another"))
        yield 1, CompareAndSet(run, updated(run, context={"a": math.inf}))
        if run.version:
            yield 2, CompareAndSet(replace(run, version=run.version - 1), replace(run, stage="stale"))
        following = sorted(LEGAL_MOVES[run.status], key=lambda status: status.value)
        if following:
            yield 6, CompareAndSet(run, moved(run, self._random.choice(following)))
