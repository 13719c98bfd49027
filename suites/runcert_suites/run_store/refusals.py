"""One call for each way in which a store refuses: what the checks of errors, usability, aliasing and residue start from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from runcert.cases import Case
from runcert_contract import (
    AlreadyExists,
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    InvalidIdentifier,
    InvalidRecord,
    Operation,
    Outcome,
    Raised,
    Returned,
    Run,
    StoreError,
    TooLarge,
)
from runcert_suites.run_store.records import START, a_run, updated
from runcert_suites.run_store.sizes import nested, of_size, text_of

__all__ = ["LARGEST_TRIED", "Refusal", "over_a_limit", "refusals_of"]

LARGEST_TRIED = 20_000_000
"""The largest record in bytes that is made only to be refused."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that a store has to refuse.

    Attributes:
        what: the call in words.
        operation: the call.
        error: the error that refuses it; None where the refusal is the answer False.
    """

    what: str
    operation: Operation
    error: type[StoreError] | None

    def happened(self, outcome: Outcome) -> bool:
        """Say whether an outcome is this refusal."""
        if self.error is None:
            return isinstance(outcome, Returned) and outcome.value is False
        return isinstance(outcome, Raised) and isinstance(outcome.error, self.error)

    @property
    def in_words(self) -> str:
        """The refusal in words."""
        return "False" if self.error is None else self.error.__name__


def refusals_of(case: Case, stored: Run, **fields: Any) -> Iterator[Refusal]:
    """Give a call for each refusal that a store can be brought to by its arguments and by what is stored.

    Args:
        case: gives fresh identifiers.
        stored: a run that is stored, with a version of at least 1 and a status that is not terminal.
        fields: fields of the runs that are refused, for instance a secret that no message may show.
    """
    fresh = a_run(case, **fields)
    stale = replace(stored, version=stored.version - 1)
    yield Refusal("create on an id in use", Create(replace(fresh, run_id=stored.run_id)), AlreadyExists)
    yield Refusal("an update with a stale version", CompareAndSet(stale, updated(stale, **fields)), None)
    yield Refusal("an update of a run that is not there", CompareAndSet(fresh, updated(fresh)), None)
    yield Refusal("create with version 3", Create(replace(fresh, version=3)), InvalidRecord)
    yield Refusal("create with NaN in the input", Create(replace(fresh, input={"a": [math.nan]})), InvalidRecord)
    yield Refusal("create with a naive instant", Create(replace(fresh, updated_at=START.replace(tzinfo=None))), InvalidRecord)
    yield Refusal("an update with infinity", CompareAndSet(stored, updated(stored, context={"a": math.inf})), InvalidRecord)
    yield Refusal(
        "an update that skips a version", CompareAndSet(stored, updated(stored, version=stored.version + 2)), InvalidRecord
    )
    yield Refusal("create with a lone surrogate as id", Create(replace(fresh, run_id="\ud800")), InvalidIdentifier)
    yield Refusal("find of a lone surrogate", Find("\ud800"), InvalidIdentifier)
    if case.claims.claims(Capability.ENUMERATES):
        yield Refusal("find_resumable of a lone surrogate", FindResumable("\ud800"), InvalidIdentifier)
    for what, record in over_a_limit(case, fresh):
        yield Refusal(f"create with {what}", Create(record), TooLarge)
    for what, record in over_a_limit(case, updated(stored)):
        yield Refusal(f"an update with {what}", CompareAndSet(stored, record), TooLarge)


def over_a_limit(case: Case, run: Run) -> Iterator[tuple[str, Run]]:
    """Give ``run`` just over each declared limit of texts, depth and size, with words for it."""
    limits = case.claims.limits
    if limits.text is not None:
        yield f"a stage of {limits.text + 1} code points", replace(run, stage=text_of(limits.text + 1))
    if limits.depth is not None:
        deep: Any = {"a": nested(limits.depth)}
        yield f"an input nested {limits.depth + 1} deep", replace(run, input=deep)
    if limits.refuses_above is not None and limits.refuses_above <= LARGEST_TRIED:
        yield f"a record of {limits.refuses_above + 1} bytes", of_size(run, limits.refuses_above + 1)
