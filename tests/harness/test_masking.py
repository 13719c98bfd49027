from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcert.masking import without_passwords


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://user:hunter2@host/db", "postgresql://user:***@host/db"),
        ("postgresql+psycopg://user:hunter2@host:5432/db?x=1", "postgresql+psycopg://user:***@host:5432/db?x=1"),
        ("redis://:hunter2@127.0.0.1:6379/0", "redis://:***@127.0.0.1:6379/0"),
        ("HTTP://U:hunter2@h", "HTTP://U:***@h"),
        ("mysql://user:hun@ter2@host/db", "mysql://user:***@host/db"),
        ("mysql://user:hun:ter2@host/db", "mysql://user:***@host/db"),
        ("mysql://user:hunter%402@host/db", "mysql://user:***@host/db"),
        ("pg://u:hunter2@[::1]:5432/db", "pg://u:***@[::1]:5432/db"),
        ("pg://host/db?user=u&password=hunter2&ssl=on", "pg://host/db?user=u&password=***&ssl=on"),
        ("pg://host/db?password=hunter2", "pg://host/db?password=***"),
        ("pg://host/db;PWD=hunter2;x=1", "pg://host/db;PWD=***;x=1"),
        ("pg://host/db?sslpassword=1&passwd=hunter2#f", "pg://host/db?sslpassword=1&passwd=***#f"),
        ("kv://host?token=hunter2", "kv://host?token=***"),
        ("cannot reach a://u:hunter2@h, nor b://v:hunter2@i", "cannot reach a://u:***@h, nor b://v:***@i"),
        ("('pg://u:hunter2@h')", "('pg://u:***@h')"),
    ],
)
def test_the_password_of_a_url_of_any_form_is_replaced(text: str, expected: str) -> None:
    assert expected == without_passwords(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "user@host",
        "a:b@c",
        "pg://host:5432/db",
        "pg://user@host/db",
        "stores.py:attribute",
        "package.module:name",
        "12:30:45 @ noon",
    ],
)
def test_text_without_a_password_stays_as_it_is(text: str) -> None:
    assert text == without_passwords(text)


SECRETS = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789!$*+-._~%@:", min_size=6, max_size=20).map(lambda text: f"zq{text}qz")


@given(secret=SECRETS, user=st.sampled_from(["", "user", "u-1"]), rest=st.sampled_from(["", "/db", ":5432/db?a=b", "?x=y"]))
def test_no_password_is_left_whatever_it_is_made_of(secret: str, user: str, rest: str) -> None:
    found = without_passwords(f"cannot reach db+driver://{user}:{secret}@host{rest} now")

    assert secret not in found
    assert found == f"cannot reach db+driver://{user}:***@host{rest} now"


@given(text=st.text())
def test_masking_twice_is_masking_once(text: str) -> None:
    once = without_passwords(text)

    assert once == without_passwords(once)
