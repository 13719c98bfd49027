"""File names of records: every identifier has one name, every name one identifier, on every file system.

A name is ``run-``, the identifier, ``.json``.  Lower-case letters, digits and ``. - _`` stand for themselves, ``+a`` is a capital
``A``, and ``=hh`` is any other byte of the identifier in UTF-8.  So names hold no capitals (safe where case is folded), nothing but
ASCII (safe where Unicode is normalised), no separators, and neither begin nor end with a part of the identifier (``CON``, ``..``,
``a.`` and ``-rf`` are ordinary).
"""

from __future__ import annotations

import os
import re
import secrets

__all__ = ["LONGEST_NAME", "LONGEST_PORTABLE", "identifier_of", "is_temporary", "name_of", "temporary_name"]

_PREFIX = "run-"
_SUFFIX = ".json"

LONGEST_NAME = 255
"""The longest file name in bytes that the usual file systems take."""

LONGEST_PORTABLE = 120
"""A length in code points up to which every portable identifier has a name that is short enough: each letter takes two bytes at most."""

_PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789._-"


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in _PLAIN:
        return character
    return f"+{character.lower()}" if "A" <= character <= "Z" else f"={byte:02x}"


_ESCAPES = {byte: _escaped(byte) for byte in range(256)}

_NAME = re.compile(rf"{_PREFIX}(?P<body>(?:[a-z0-9._-]|\+[a-z]|=[0-9a-f]{{2}})*){re.escape(_SUFFIX)}", re.ASCII)
_ESCAPED = re.compile(r"\+(?P<capital>[a-z])|=(?P<byte>[0-9a-f]{2})", re.ASCII)
_TEMPORARY = re.compile(r"tmp-[0-9]+-[0-9a-f]{16}", re.ASCII)


def name_of(identifier: str) -> str | None:
    """Give the file name of an identifier; None where it would be longer than file systems take.

    Args:
        identifier: any text of Unicode scalar values.
    """
    name = f"{_PREFIX}{identifier.encode().decode('latin-1').translate(_ESCAPES)}{_SUFFIX}"
    return name if len(name) <= LONGEST_NAME else None


def identifier_of(name: str) -> str | None:
    """Give the identifier whose file name this is; None where :func:`name_of` makes no such name, so that the file is somebody else's."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    content = _ESCAPED.sub(_unescaped, found["body"])
    try:
        identifier = content.encode("latin-1").decode()
    except UnicodeDecodeError:
        return None
    return identifier if name_of(identifier) == name else None


def _unescaped(found: re.Match[str]) -> str:
    return found["capital"].upper() if found["capital"] else chr(int(found["byte"], 16))


def temporary_name() -> str:
    """Give a name that no other writer has, in this process or another."""
    return f"tmp-{os.getpid()}-{secrets.token_hex(8)}"


def is_temporary(name: str) -> bool:
    """Say whether :func:`temporary_name` may have made this name."""
    return _TEMPORARY.fullmatch(name) is not None
