"""The errors of a store, and the story of an operation that each one belongs to.

A caller starts an operation.  The store first looks at the arguments alone:

1. an identifier that it does not keep           -> :class:`InvalidIdentifier`
2. a value outside the domain of the record      -> :class:`InvalidRecord`
3. a value over a limit that the store declared  -> :class:`TooLarge`

Only then does it look at what is stored:

4. the id is taken                               -> :class:`AlreadyExists`
5. there is nothing under that id                -> :class:`NotFound`
6. the stored version or revision is another one -> :class:`Conflict`
7. somebody else holds the lease                 -> :class:`Held`
8. a rule of the domain forbids it               -> :class:`PolicyRefused`
9. what is stored cannot be read                 -> :class:`CorruptRecord`

The system below may stand in the way:

10. others are in the way just now               -> :class:`Contended` (try again)
11. the backend cannot be reached                -> :class:`StoreUnavailable` (try again)
12. set up wrongly, and trying again will not help -> :class:`Misconfigured`
13. the handle was closed                        -> :class:`Closed`
14. the store has no such operation              -> :class:`Unsupported`

All of these are *definite*: nothing was written.  One is not:

15. the write may or may not have happened       -> :class:`OutcomeUnknown`

No other exception leaves a store, except cancellation and ``KeyboardInterrupt`` (clause ERROR-1).
Messages name the record and the way out and hold no secret (clause ERROR-2).
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AlreadyExists",
    "Closed",
    "Conflict",
    "Contended",
    "CorruptRecord",
    "Held",
    "InvalidIdentifier",
    "InvalidRecord",
    "Misconfigured",
    "NotFound",
    "OutcomeUnknown",
    "PolicyRefused",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "Unsupported",
    "error_named",
]


class StoreError(Exception):
    """What every error of a store derives from.

    Attributes:
        definite: True when the error promises that nothing was written.
        retryable: True when the same call may succeed later without any change.
    """

    definite: ClassVar[bool] = True
    retryable: ClassVar[bool] = False


class InvalidIdentifier(StoreError):
    """The store does not keep this identifier; storage was not touched."""


class InvalidRecord(StoreError):
    """A value lies outside the domain of the record; storage was not touched."""


class TooLarge(StoreError):
    """A value exceeds a limit that the store declared; storage was not touched."""


class AlreadyExists(StoreError):
    """The id is in use, in whatever status; the stored record is unchanged."""


class NotFound(StoreError):
    """The operation needs a record that is not there."""


class Conflict(StoreError):
    """What is stored is not what the caller expected.

    Args:
        message: names the record and what to do next.
        expected: the version or revision that the caller gave.
        actual: the one that was stored, or None for absent.
    """

    def __init__(self, message: str = "", *, expected: object = None, actual: object = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class Held(StoreError):
    """Another holder has the lease."""


class PolicyRefused(StoreError):
    """A rule of the domain forbids the operation; the message names what blocks it."""


class Unsupported(StoreError):
    """The store does not have this operation."""


class Contended(StoreError):
    """Other callers were in the way for too long; nothing was written, try again."""

    retryable = True


class StoreUnavailable(StoreError):
    """The backend cannot be reached; nothing was written, try again."""

    retryable = True


class Misconfigured(StoreError):
    """The store is set up wrongly (schema, permission, setting); trying again does not help."""


class Closed(StoreError):
    """The handle was closed."""


class CorruptRecord(StoreError):
    """What is stored under an id cannot be read.

    Args:
        message: names the record.
        record: the id of the record.
    """

    def __init__(self, message: str = "", *, record: str | None = None) -> None:
        super().__init__(message)
        self.record = record


class OutcomeUnknown(StoreError):
    """The write may or may not have taken effect: read before deciding what to do."""

    definite = False


def _all_errors() -> dict[str, type[StoreError]]:
    own: list[type[StoreError]] = [StoreError, *StoreError.__subclasses__()]
    return {error.__name__: error for error in own if error.__name__ in __all__}


def error_named(name: str) -> type[StoreError]:
    """Give the error class called ``name``.

    Args:
        name: the class name, for instance ``"AlreadyExists"``.

    Raises:
        KeyError: there is no such error in the contract.
    """
    return _all_errors()[name]
