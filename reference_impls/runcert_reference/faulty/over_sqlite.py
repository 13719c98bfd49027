"""How a faulty store is made of a few lines over the reference store in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from runcert import Lab, RunStore, Scope, adapter
from runcert.adapters import Adapter
from runcert.faulty import FaultyStore
from runcert_reference.faulty.over_memory import make_faulty
from runcert_reference.sql.engines import engine
from runcert_reference.sql.run_store import CLAIMS, SqlRunStore
from runcert_reference.sql_adapters import (
    count_sqlite,
    damage_sqlite,
    database_of,
    outage_of_sqlite,
    prepare_sqlite,
    purge_sqlite,
    schema_of_sqlite,
)

__all__ = ["faulty_sqlite", "with_other_tables"]


def faulty_sqlite(clause: str, source: str = "the clause", **options: Any) -> Callable[[type[SqlRunStore]], FaultyStore]:
    """Make a faulty store of a subclass of the reference store in SQLite.

    Args:
        clause: the clause that has to catch it.
        source: where the fault was seen.
        options: options of the adapter that differ from the reference store's; ``None`` takes a hook away.
    """

    def decorate(store: type[SqlRunStore]) -> FaultyStore:
        return make_faulty(store, clause, source, "sqlite", _adapter(store, options), _sound())

    return decorate


def with_other_tables(*statements: str) -> Callable[[Lab], None]:
    """Give a ``prepare`` that alters the tables after the migration."""

    def prepare(lab: Lab) -> None:
        prepare_sqlite(lab)
        made = engine(database_of(lab))
        try:
            with made.connect() as connection:
                for statement in statements:
                    connection.exec_driver_sql(statement)
        finally:
            made.dispose()

    return prepare


_OPTIONS: dict[str, Any] = {
    "scope": Scope.PROCESS,  # threads show these faults as well as processes do, and sooner
    "handles": CLAIMS.handles,
    "durability": CLAIMS.durability,
    "capabilities": CLAIMS.capabilities,
    "limits": CLAIMS.limits,
    "prepare": prepare_sqlite,
    "damage": damage_sqlite,
    "inventory": count_sqlite,
    "purge": purge_sqlite,
    "schema": schema_of_sqlite,
    "outage": outage_of_sqlite,
}


def _adapter(kind: type[SqlRunStore], options: dict[str, Any]) -> Adapter:
    def open_store(lab: Lab) -> Iterator[RunStore]:
        store = kind(database_of(lab))
        yield store
        store.close()

    return adapter(RunStore, target=kind.__name__, **{**_OPTIONS, **options})(open_store)


@cache
def _sound() -> Adapter:
    """Give one adapter for all of them; it keeps its own tables, because a missing key is part of the fault."""
    return _adapter(SqlRunStore, {})
