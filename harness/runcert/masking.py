"""Passwords are removed from whatever is shown or stored.

Three ways: every URL in a text loses its password, whoever wrote it; the passwords that this run was given, or gave to adapters, are
replaced wherever a driver quotes one by itself; and those among them that are plain words, such as ``postgres``, only beside a word that
says what they are (``password=postgres``), for elsewhere they may mean anything.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

from runcert_contract import JsonValue

__all__ = ["known_passwords", "masked", "remember_password", "without_known_passwords", "without_passwords"]

_URL_PASSWORD = re.compile(r"(?P<scheme>(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://)(?P<user>[^\s/?#:@]*):(?P<password>[^\s/?#]*)@")
_QUERY_PASSWORD = re.compile(r"(?P<name>[?&;](?:password|passwd|pwd|secret|token)=)[^\s&#;]*", re.IGNORECASE)
_NAMES = ("password", "passwd", "pwd", "secret", "token")
_NAMED = rf"""(?i:{"|".join(_NAMES)})["']?\s*(?:=>?|:)\s*["']?"""
_SHORTEST, _LONG = 6, 12
"""How many characters a password has at least to be told from words: fewer than the second, and it mixes letters with others."""

_known: dict[str, bool] = {}
"""The passwords of this process, and whether each is telling: found by itself in a message, it can be nothing else."""


def remember_password(url: str) -> str:
    """Remember the password in a URL for as long as this process lives; gives the URL back.

    Args:
        url: an address that the user named or the kit made; a text that is none is left alone.
    """
    for password, rest in _passwords_in(url):
        _known[password] = _known.get(password, True) and _is_telling(password) and password not in rest
    return url


def _is_telling(password: str) -> bool:
    mixed = not password.isalpha() and not password.isdecimal()
    return len(password) >= (_SHORTEST if mixed else _LONG)


def _passwords_in(url: str) -> Iterator[tuple[str, str]]:
    """Give each password of a URL, and the URL without it."""
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
        written = [parts.password or "", *(value for name, value in parse_qsl(parts.query) if name.lower() in _NAMES)]
    except ValueError:  # no URL after all
        return
    for password in filter(None, written):
        rest = without_passwords(url)
        yield password, rest
        if unquote(password) != password:
            yield unquote(password), rest


def known_passwords() -> tuple[str, ...]:
    """Give the passwords that a message must not show: those of this process that can be told from other words."""
    return tuple(password for password, telling in _known.items() if telling)


def without_passwords(text: str) -> str:
    """Replace every password in ``text`` by three asterisks: those in URLs, and those that are known.

    Args:
        text: any text, with URLs or without.
    """
    if "://" in text:
        text = _URL_PASSWORD.sub(r"\g<scheme>\g<user>:***@", text)
    return without_known_passwords(_QUERY_PASSWORD.sub(r"\g<name>***", text))


def without_known_passwords(text: str) -> str:
    """Replace the passwords that are known in a text of any form, also as JSON and HTML write them; nothing else is touched."""
    for password in sorted(_known, key=len, reverse=True):
        before = r"(?<!\w)" if _known[password] else f"(?P<name>{_NAMED})"
        for form in {password, json.dumps(password)[1:-1], html.escape(password), repr(password)[1:-1]}:
            if form in text:
                text = re.sub(
                    rf"{before}{re.escape(form)}(?!\w)", lambda found: f"{found.groupdict().get('name', '')}***", text
                )
    return text


def masked(value: JsonValue) -> JsonValue:
    """Replace every password in the texts of a JSON value."""
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    return value
