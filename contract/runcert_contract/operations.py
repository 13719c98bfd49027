"""Operations that a caller starts and the outcomes that a store gives them, for every contract alike."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias, Union

from runcert_contract.errors import StoreError

__all__ = ["Edited", "Hung", "Operation", "Outcome", "Raised", "Returned", "Unknown", "is_definite", "is_retryable"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a store's method; the fields of a subclass are the arguments in order."""

    method: ClassVar[str] = ""

    @property
    def arguments(self) -> tuple[object, ...]:
        """The arguments of the call."""
        return tuple(getattr(self, entry.name) for entry in fields(self))


@dataclass(frozen=True, slots=True)
class Edited(Operation):
    """No call: the caller edits, in place, a record that it passed to a call or was given by one.

    Attributes:
        step: the number of the step that has the record, from 1.
        part: ``argument 1``, ``argument 2`` or ``result``.
        how: what is done to it, in words.
    """

    step: int
    part: str
    how: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The call returned ``value``."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised ``error``: an error of the contract, or a raw one that should not have left the store."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Unknown:
    """The caller cannot know: the call was cancelled, cut off, or its process was killed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hung:
    """The call had not ended after ``seconds``, more than the declared maximum wait."""

    seconds: float


Outcome: TypeAlias = Union[Returned, Raised, Unknown, Hung]


def is_definite(outcome: Outcome) -> bool:
    """Say whether the caller knows what happened; a raw error says nothing and is therefore not definite."""
    if isinstance(outcome, Raised):
        return isinstance(outcome.error, StoreError) and outcome.error.definite
    return isinstance(outcome, Returned)


def is_retryable(outcome: Outcome) -> bool:
    """Say whether the store asked for the same call again."""
    return isinstance(outcome, Raised) and isinstance(outcome.error, StoreError) and outcome.error.retryable
