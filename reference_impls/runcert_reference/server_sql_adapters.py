"""The adapters of the reference stores in PostgreSQL and MariaDB: on servers of the kit, and on one that the user names by a URL.

Each namespace is a schema (PostgreSQL) or a database (MariaDB, MySQL) that the kit makes, marks as its own and removes; nothing else
on the server is touched.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, make_url

from runcert import Adapter, AsyncEnumeratesRuns, EnumeratesRuns, Handles, Lab, Leftover, UsageProblem, adapter
from runcert_contract import Claims
from runcert_reference.claimed_options import claimed_options
from runcert_reference.server_sql_namespaces import (
    UrlOf,
    leftovers_on,
    make_namespace,
    namespace_url,
    on_connection,
    remove_namespace,
    server_at,
)
from runcert_reference.shared_sql_places import SharedPlace, leftovers_in, options_in
from runcert_reference.sql.dialects import CALL_SECONDS
from runcert_reference.sql.engines import dialect_of
from runcert_reference.sql.operations import count_runs, damage_run, retire_run
from runcert_reference.sql.run_store import AsyncSqlRunStore, SqlRunStore
from runcert_reference.sql.states import bring_to

__all__ = ["leftovers_at_url", "mariadb", "postgresql", "postgresql_async", "server_at_url"]

_Answer = TypeVar("_Answer")


# -- adapters


def routed(inside: URL, lab: Lab) -> URL:
    """Give the URL under which a handle finds a place on a server: through what the kit puts in front of the server, if anything."""
    host, port = lab.route(str(inside.host), inside.port or _PORTS[dialect_of(inside).name])
    return inside.set(host=host, port=port)


_PORTS = {"postgresql": 5432, "mysql": 3306}


def patience_of(lab: Lab) -> float:
    """Give how long a call takes at most, in seconds."""
    return CALL_SECONDS if lab.patience is None else lab.patience


def options(url_of: UrlOf, claims: Claims) -> dict[str, Any]:
    """Give the claims and hooks of the store on a server.

    Args:
        url_of: gives the server.
        claims: what is said of the store on it.
    """

    def inside(lab: Lab, action: Callable[[Connection], _Answer]) -> _Answer:
        return on_connection(namespace_url(url_of(lab), lab), action)

    return {
        **claimed_options(claims),
        "prepare": partial(make_namespace, url_of),
        "dispose": partial(remove_namespace, url_of),
        "damage": lambda lab, _, key, how: inside(lab, lambda connection: damage_run(connection, key, how)),
        "inventory": lambda lab: inside(lab, count_runs),
        "purge": lambda lab, _, key: inside(lab, lambda connection: retire_run(connection, key)),
        "schema": lambda lab, state, runs: bring_to(namespace_url(url_of(lab), lab), state, runs),
    }


def postgresql_of(lab: Lab) -> URL:
    """Ask the kit for PostgreSQL."""
    return _of_kind(lab, "postgresql", "postgresql")


def mariadb_of(lab: Lab) -> URL:
    """Ask the kit for MariaDB; to one that the kit starts, on this machine, TLS is only slow."""
    server = _of_kind(lab, "mariadb", "mysql")
    return server.update_query_dict({"ssl_disabled": "true"}) if lab.starts("mariadb") else server


def _of_kind(lab: Lab, name: str, dialect: str) -> URL:
    """Ask for a server, and insist that its address is that of such a database.

    Raises:
        UsageProblem: the user named something else.
    """
    server = server_at(lab.server(name))
    known = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
    if known.get(server.get_backend_name()) != dialect or "namespaces" in server.query:
        raise UsageProblem(
            f"--server {name}={server.render_as_string(hide_password=True)}: expected {dialect}://user:password@host:port/database; "
            "any other database, and namespaces=shared, are named as the target itself"
        )
    return server


_POSTGRESQL = options(postgresql_of, dialect_of(make_url("postgresql://")).claims)
_MARIADB = options(mariadb_of, dialect_of(make_url("mariadb://")).claims)


def postgresql_async_form() -> Adapter:
    """Give the asynchronous form of the store in PostgreSQL."""
    return postgresql_async


@adapter(EnumeratesRuns, **_POSTGRESQL, parity_with=postgresql_async_form)
def postgresql(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in PostgreSQL."""
    store = SqlRunStore(routed(namespace_url(postgresql_of(lab), lab), lab), patience_of(lab))
    yield store
    store.close()


@adapter(AsyncEnumeratesRuns, **{**_POSTGRESQL, "handles": Handles.PER_TASK}, parity_with=lambda: postgresql)
async def postgresql_async(lab: Lab) -> AsyncIterator[AsyncEnumeratesRuns]:
    """Open the reference store in PostgreSQL for an event loop."""
    store = await AsyncSqlRunStore.open(routed(namespace_url(postgresql_of(lab), lab), lab), patience_of(lab))
    yield store
    await store.close()


@adapter(EnumeratesRuns, **_MARIADB)
def mariadb(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in MariaDB."""
    store = SqlRunStore(routed(namespace_url(mariadb_of(lab), lab), lab), patience_of(lab))
    yield store
    store.close()


# -- postgresql+psycopg://…, mysql+pymysql://…, mariadb+pymysql://…


def server_at_url(url: str) -> Adapter:
    """Give the adapter of a store on a server of the user's.

    Args:
        url: ``postgresql+psycopg://user:password@host:port/database``, or ``mysql+pymysql``, ``mariadb+pymysql``; with
            ``?namespaces=shared`` where the user may make no schemas or databases.

    Raises:
        UsageProblem: it names no server and database.
    """
    server = server_at(url)
    place = SharedPlace.named_by(server)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{server.get_backend_name()}-{server.host}-{server.port or ''}-{server.database}")
    if place is not None:
        return _in_shared_place(place, f"{name}-shared")

    @adapter(EnumeratesRuns, target=name, **options(lambda _: server, dialect_of(server).claims))
    def on_server(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = SqlRunStore(routed(namespace_url(server, lab), lab), patience_of(lab))
        yield store
        store.close()

    return on_server


def _in_shared_place(place: SharedPlace, target: str) -> Adapter:
    @adapter(EnumeratesRuns, target=target, **options_in(place))
    def in_shared_place(lab: Lab) -> Iterator[EnumeratesRuns]:  # every namespace is this place
        store = SqlRunStore(routed(place.url, lab), patience_of(lab))
        yield store
        store.close()

    return in_shared_place


def leftovers_at_url(url: str) -> list[Leftover]:
    """Find what killed runs left on a server of the user's.

    Args:
        url: as for :func:`server_at_url`, also without a driver.

    Raises:
        UsageProblem: it names no server and database, or the server cannot be used.
    """
    server = server_at(url)
    place = SharedPlace.named_by(server)
    return leftovers_on(server) if place is None else leftovers_in(place)
