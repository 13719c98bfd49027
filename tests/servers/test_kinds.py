"""What adapters are told of each kind of server is what its container is made with."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest

from runcert.servers.offers import KINDS

PASSWORD = "a/b@c:d e%f"


@pytest.mark.parametrize(
    ("name", "scheme", "variables"),
    [
        ("postgresql", "postgresql", {"POSTGRES_USER": "user", "POSTGRES_PASSWORD": "password", "POSTGRES_DB": "database"}),
        ("mariadb", "mysql", {"MARIADB_ROOT_PASSWORD": "password", "MARIADB_DATABASE": "database"}),
    ],
)
def test_the_address_names_user_password_and_database_of_the_container(
    name: str, scheme: str, variables: dict[str, str]
) -> None:
    kind = KINDS[name]
    plan = kind.in_container(PASSWORD, {})
    parts = urlsplit(kind.url(plan.user, PASSWORD, "127.0.0.1", 7))
    told = {"user": parts.username, "password": unquote(parts.password or ""), "database": parts.path.removeprefix("/")}

    assert (scheme, "127.0.0.1", 7) == (parts.scheme, parts.hostname, parts.port)
    assert {variable: told[part] for variable, part in variables.items()} == {
        variable: plan.environment.get(variable) for variable in variables
    }


@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_the_address_of_a_key_value_server_names_its_first_database(name: str) -> None:
    kind = KINDS[name]
    parts = urlsplit(kind.url(kind.user, PASSWORD, "127.0.0.1", 7))

    assert ("redis", "/0", PASSWORD) == (parts.scheme, parts.path, unquote(parts.password or ""))
