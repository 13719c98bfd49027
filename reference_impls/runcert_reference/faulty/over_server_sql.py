"""How a faulty store is made of a few lines over the reference store in PostgreSQL or MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from runcert import EnumeratesRuns, Lab, Scope, adapter
from runcert.adapters import Adapter
from runcert.faulty import FaultyStore
from runcert_contract import Claims
from runcert_reference.faulty.over_memory import make_faulty
from runcert_reference.server_sql_adapters import mariadb_of, patience_of, postgresql_of, routed
from runcert_reference.server_sql_adapters import options as server_options
from runcert_reference.server_sql_namespaces import UrlOf, make_namespace, namespace_url, on_connection, remove_namespace
from runcert_reference.sql import mysql, postgresql
from runcert_reference.sql.run_store import SqlRunStore

__all__ = ["faulty_mariadb", "faulty_postgresql"]

_SERVERS: dict[str, tuple[UrlOf, Claims]] = {
    "postgresql": (postgresql_of, postgresql.CLAIMS),
    "mariadb": (mariadb_of, mysql.CLAIMS),
}

_Decorator = Callable[[type[SqlRunStore]], FaultyStore]


def faulty_postgresql(clause: str, source: str = "the clause", tables: Sequence[str] = (), **options: Any) -> _Decorator:
    """Make a faulty store of a subclass of the reference store in PostgreSQL.

    Args:
        clause: the clause that has to catch it.
        source: where the fault was seen.
        tables: statements that alter the tables after the migration.
        options: options of the adapter that differ from the reference store's; ``None`` takes a hook away.
    """
    return _decorator("postgresql", clause, source, tables, options)


def faulty_mariadb(clause: str, source: str = "the clause", tables: Sequence[str] = (), **options: Any) -> _Decorator:
    """Make a faulty store of a subclass of the reference store in MariaDB; arguments as in :func:`faulty_postgresql`."""
    return _decorator("mariadb", clause, source, tables, options)


def _decorator(server: str, clause: str, source: str, tables: Sequence[str], options: dict[str, Any]) -> _Decorator:
    if tables:
        options = {**options, "prepare": _with_other_tables(_SERVERS[server][0], tables)}

    def decorate(store: type[SqlRunStore]) -> FaultyStore:
        return make_faulty(store, clause, source, server, _adapter(server, store, options), _sound(server))

    return decorate


def _with_other_tables(url_of: UrlOf, statements: Sequence[str]) -> Callable[[Lab], dict[str, str]]:
    def prepare(lab: Lab) -> dict[str, str]:
        mark = make_namespace(url_of, lab)
        try:
            on_connection(
                namespace_url(url_of(lab), lab),
                lambda connection: [connection.exec_driver_sql(statement) for statement in statements],
            )
        except BaseException:
            remove_namespace(url_of, replace(lab, prepared={**mark}))
            raise
        return mark

    return prepare


def _adapter(server: str, kind: type[SqlRunStore], options: dict[str, Any]) -> Adapter:
    url_of, claims = _SERVERS[server]

    def open_store(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = kind(routed(namespace_url(url_of(lab), lab), lab), patience_of(lab))
        yield store
        store.close()

    # Threads show these faults as well as processes do, and sooner.
    whole = {**server_options(url_of, claims), "scope": Scope.PROCESS, **options}
    return adapter(EnumeratesRuns, target=kind.__name__, **whole)(open_store)


@cache
def _sound(server: str) -> Adapter:
    """Give one adapter for all of them, so that a self-check asks it once; other tables are part of the fault."""
    return _adapter(server, SqlRunStore, {})
