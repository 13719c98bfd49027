"""Portable identifiers, which every store accepts everywhere.

Source of the rule: section 1 of the contract, "Identifier".
"""

from __future__ import annotations

import re

__all__ = ["DEFAULT_LENGTH", "PORTABLE_LENGTH", "is_portable"]

PORTABLE_LENGTH = 64
"""The length in code points that every store accepts at least."""

DEFAULT_LENGTH = 255
"""The length to which a field is tested when the store declared none."""

_ALPHABET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")


def is_portable(identifier: str, length: int = PORTABLE_LENGTH) -> bool:
    """Say whether every store has to accept ``identifier``; any other string may be kept exactly or refused.

    Args:
        identifier: the string.
        length: the longest identifier in code points that the store declared for the field, at least 64.
    """
    return len(identifier) <= length and _ALPHABET.match(identifier) is not None
