"""Passwords are removed from whatever is shown or stored."""

from __future__ import annotations

import re

__all__ = ["without_passwords"]

_URL_PASSWORD = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/?#:@]*):(?P<password>[^\s/?#]*)@")
_QUERY_PASSWORD = re.compile(r"(?P<name>[?&;](?:password|passwd|pwd|secret|token)=)[^\s&#;]*", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """Replace the password in every URL inside ``text`` by three asterisks.

    Args:
        text: any text, with URLs or without.
    """
    return _QUERY_PASSWORD.sub(r"\g<name>***", _URL_PASSWORD.sub(r"\g<scheme>\g<user>:***@", text))
