from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcert.masking import known_passwords, masked, remember_password, without_known_passwords, without_passwords


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


# -- passwords that are known


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("pg://user:hunter2@host/db", "hunter2"),
        ("pg://user:hun%40ter2@host/db", "hun@ter2"),
        ("pg://user:hun%40ter2@host/db", "hun%40ter2"),
        ("pg://host/db?user=u&password=hunter2", "hunter2"),
        ("pg://user:correcthorsebattery@host/db", "correcthorsebattery"),
    ],
)
def test_a_known_password_is_replaced_where_it_stands_by_itself(url: str, password: str) -> None:
    assert url == remember_password(url)

    assert password in known_passwords()
    assert "login failed (***), tried '***'" == without_passwords(f"login failed ({password}), tried {password!r}")
    assert "reachunter2x" == without_passwords("reachunter2x")


@pytest.mark.parametrize("word", ["memory", "seed", "1234", "test", "x1", "hunter"])
def test_a_password_that_may_mean_anything_is_replaced_only_where_it_is_called_one(word: str) -> None:
    remember_password(f"pg://user:{word}@host/db")

    assert known_passwords() == ()
    assert f'{{"{word}": "{word}"}}' == without_known_passwords(f'{{"{word}": "{word}"}}')
    assert f"{word}: password=***, host={word}" == without_passwords(f"{word}: password={word}, host={word}")
    assert "{'user': 'u', 'Password': '***'}" == without_passwords(f"{{'user': 'u', 'Password': '{word}'}}")
    assert '"passwd": "***"' == without_passwords(f'"passwd": "{word}"')


def test_a_password_that_is_also_a_name_in_its_url_is_none_to_look_for() -> None:
    remember_password("pg://tester1:tester1@host/db")

    assert known_passwords() == ()


def test_text_that_is_no_url_is_not_remembered() -> None:
    for text in ("memory", "stores.py:user", "pg://[broken:hunter2@host"):
        remember_password(text)

    assert known_passwords() == ()


def test_known_passwords_are_replaced_as_json_and_html_write_them() -> None:
    remember_password('pg://user:a"b<1>\\c@host/db')

    for written in ('a\\"b<1>\\\\c', "a&quot;b&lt;1&gt;\\c", 'a"b<1>\\c'):
        assert "said ***." == without_known_passwords(f"said {written}.")


def test_every_text_of_a_json_value_is_masked() -> None:
    remember_password("pg://user:hunter2@host/db")

    assert {"a": ["***", 1, None, {"b": "pg://u:***@h"}]} == masked({"a": ["hunter2", 1, None, {"b": "pg://u:zzz@h"}]})


def test_long_texts_are_masked_in_linear_time() -> None:
    """A search that starts at each letter of a million takes hours; the time limit of the tests is the judge."""
    remember_password("pg://user:hunter2@host/db")
    for text in ("x" * 1_000_000, "a://" * 250_000, "a:" * 500_000, "://" + "x" * 1_000_000):
        assert text == without_passwords(text)
