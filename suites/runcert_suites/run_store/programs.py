"""One random program of calls that several stores, or several forms of one, are given alike.

What comes next depends on the seed alone, never on what a store answered: each call is made so that it is known beforehand whether the
contract has it accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from runcert.cases import Case
from runcert_contract import (
    LEGAL_MOVES,
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

__all__ = ["comparable", "kind_of", "program"]

_TENANTS = 3
_ODD_IDS = ("", "a:b", "A", "../x", "\ud800", "a\0b", "x" * 2000)


def program(case: Case, length: int, *, lists: bool) -> Iterator[Operation]:
    """Give calls that are accepted, refused and wrong, on a few runs of a few tenants.

    Args:
        case: gives the seed and fresh identifiers.
        length: how many calls.
        lists: True to list runs, too.
    """
    runs = _Runs(case, lists=lists)
    for _ in range(length):
        choice = runs.choose()
        yield choice.operation
        if choice.then is not None:
            choice.then()


@dataclass(frozen=True, slots=True)
class _Choice:
    """A call that may come next: how often, and what is known of the runs after it."""

    weight: int
    operation: Operation
    then: Callable[[], None] | None = None


class _Runs:
    """The runs of a program, as they stand where every call did what the contract says."""

    def __init__(self, case: Case, *, lists: bool) -> None:
        self._case = case
        self._random: Random = case.random
        self._tenants = [case.fresh_id("t") for _ in range(_TENANTS)]
        self._stored: dict[str, Run] = {}
        self._ended: dict[str, Run] = {}
        self._lists = lists

    def choose(self) -> _Choice:
        """Give the next call."""
        choices = [*self._on_a_new_run(), *self._on_a_stored_run(), *self._on_an_ended_run()]
        return self._random.choices(choices, [choice.weight for choice in choices])[0]

    def _keep(self, run: Run) -> Callable[[], None]:
        def then() -> None:
            self._stored.pop(run.run_id, None)
            (self._ended if run.status.terminal else self._stored)[run.run_id] = run

        return then

    def _on_a_new_run(self) -> Iterator[_Choice]:
        new = a_run(self._case, tenant_id=self._random.choice(self._tenants), input={"n": self._random.randrange(2**60)})
        yield _Choice(8 if self._stored else 100, Create(new), self._keep(new))
        yield _Choice(1, Create(replace(new, version=1)))
        yield _Choice(1, Create(replace(new, input={"a": [math.nan]})))
        yield _Choice(1, Create(replace(new, created_at=new.created_at.replace(tzinfo=None))))
        yield _Choice(1, Create(replace(new, run_id="\ud800")))
        yield _Choice(1, Find(new.run_id))
        yield _Choice(1, Find(self._random.choice(_ODD_IDS)))
        yield _Choice(1, CompareAndSet(new, updated(new)))
        if self._lists:
            yield _Choice(2, FindResumable(self._random.choice([*self._tenants, new.run_id])))

    def _on_a_stored_run(self) -> Iterator[_Choice]:
        if not self._stored:
            return
        run = self._random.choice(list(self._stored.values()))
        following = updated(run, stage=f"stage {run.version}")
        yield _Choice(4, Find(run.run_id))
        yield _Choice(2, Create(replace(a_run(self._case), run_id=run.run_id)))
        yield _Choice(4, CompareAndSet(run, following), self._keep(following))
        yield _Choice(1, CompareAndSet(replace(run, version=run.version + 1), updated(run, version=run.version + 2)))
        yield _Choice(1, CompareAndSet(run, updated(run, version=run.version + 3)))
        yield _Choice(1, CompareAndSet(run, updated(run, action_id="another")))
        yield _Choice(1, CompareAndSet(run, updated(run, context={"a": math.inf})))
        if run.version:
            yield _Choice(2, CompareAndSet(replace(run, version=run.version - 1), replace(run, stage="stale")))
        legal = sorted(LEGAL_MOVES[run.status], key=lambda status: status.value)
        if legal:
            next_run = moved(run, self._random.choice(legal))
            yield _Choice(6, CompareAndSet(run, next_run), self._keep(next_run))

    def _on_an_ended_run(self) -> Iterator[_Choice]:
        if not self._ended:
            return
        run = self._random.choice(list(self._ended.values()))
        yield _Choice(2, Find(run.run_id))
        yield _Choice(1, Create(replace(a_run(self._case), run_id=run.run_id)))
        # whether it is accepted is the store's affair, so that this run is left alone afterwards
        yield _Choice(1, CompareAndSet(run, updated(run, stage="late")), lambda: self._leave(run))

    def _leave(self, run: Run) -> None:
        del self._ended[run.run_id]


def comparable(outcome: Outcome, numbers: Numbers) -> str:
    """Give what has to be the same for two outcomes to be the same: the kind of an error, or the value."""
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


def kind_of(outcome: Outcome) -> str:
    """Give what kind of outcome it is, in a word."""
    if isinstance(outcome, Raised):
        return type(outcome.error).__name__
    value = outcome.value if isinstance(outcome, Returned) else outcome
    return str(value) if value is None or isinstance(value, bool) else type(value).__name__
