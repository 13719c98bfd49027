"""One place on a server of the user's for all namespaces, where the user may make no schemas or databases.

It is a schema (PostgreSQL) or a database (MariaDB, MySQL).  The kit makes its tables there, with a mark for each process that is at
work, and removes them with the last mark; or it finds tables that somebody made for it, and then removes its own rows only.  Runs of
others are told apart by the word that every id of a process of the kit has in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from sqlalchemy import URL, ColumnElement, Connection, bindparam, delete, func, inspect, or_, select, text

from runcert import Lab, Leftover, Mark, Namespaces, UsageProblem
from runcert_contract import Contended, Misconfigured, StoreError
from runcert_reference.claimed_options import claimed_options
from runcert_reference.server_sql_namespaces import MARK_TABLE, as_usage, make_mark, on_connection, read_marks
from runcert_reference.sql.engines import dialect_of
from runcert_reference.sql.operations import damage_run, retire_run
from runcert_reference.sql.postgresql import in_schema
from runcert_reference.sql.schema import check_schema, upgrade
from runcert_reference.sql.tables import RUNS, SCHEMA_VERSION

__all__ = ["SharedPlace", "leftovers_in", "options_in"]

_Answer = TypeVar("_Answer")

_LOCK: Mapping[str, tuple[str, str]] = {
    "postgresql": (
        "SELECT pg_advisory_lock(hashtext('runcert in ' || current_schema()))",
        "SELECT pg_advisory_unlock(hashtext('runcert in ' || current_schema()))",
    ),
    "mysql": (
        "SELECT GET_LOCK(CONCAT('runcert in ', MD5(DATABASE())), 4)",
        "DO RELEASE_LOCK(CONCAT('runcert in ', MD5(DATABASE())))",
    ),
}
"""What lets one process at a time come to a place, or leave it, by dialect; MySQL takes names of up to 64 characters."""

_MOST_WAITS = 3
"""How often the lock is waited for, 4 s each: together, and once more where it was in vain, less than what preparing a namespace may take."""


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """A schema or database of the user's.

    Attributes:
        url: it, as the stores name it.
    """

    url: URL

    @classmethod
    def named_by(cls, server: URL) -> Self | None:
        """Give the place that a URL with ``?namespaces=shared`` names; None for a URL without.

        Raises:
            UsageProblem: another value, or a schema where there are none.
        """
        said, schema = server.query.get("namespaces"), server.query.get("schema")
        shown = server.render_as_string(hide_password=True)
        if said is None:
            return None
        if said != "shared":
            raise UsageProblem(f"{shown}: namespaces={said} is not known; write namespaces=shared, or leave it out")
        bare = server.difference_update_query(["namespaces", "schema"])
        if schema is None:
            return cls(bare)
        if dialect_of(server).name != "postgresql" or not isinstance(schema, str):
            raise UsageProblem(f"{shown}: only PostgreSQL has schemas in a database, and one is named; leave schema= out")
        return cls(in_schema(bare, schema))


def options_in(place: SharedPlace) -> dict[str, Any]:
    """Give the claims and hooks of the store in a shared place."""
    return {
        **claimed_options(dialect_of(place.url).claims),
        "namespaces": Namespaces.SHARED,
        "prepare": partial(_come, place),
        "dispose": partial(_go, place),
        "damage": lambda lab, _, key, how: _inside(place, lambda connection: damage_run(connection, key, how)),  # noqa: ARG005  # the place is the namespace
        "inventory": lambda lab: _inside(place, partial(_count, lab.namespace)),
        "purge": lambda lab, _, key: _inside(place, lambda connection: retire_run(connection, key)),  # noqa: ARG005  # as above
    }


def _inside(place: SharedPlace, action: Callable[[Connection], _Answer]) -> _Answer:
    return on_connection(place.url, action)


def _in_turn(place: SharedPlace, action: Callable[[Connection], _Answer]) -> _Answer:
    """Do something that only one process at a time may do there; on a busy machine the others may take several times as long as one wait.

    Raises:
        Contended: it never was this one's turn.
    """
    for _ in range(_MOST_WAITS - 1):
        with suppress(Contended):
            return _inside(place, action)
    return _inside(place, action)


def _come(place: SharedPlace, lab: Lab) -> dict[str, str]:
    """Make the tables where they are missing, and mark that this process is at work there.

    Raises:
        UsageProblem: the place cannot be used.
    """
    mark = Mark.new(lab.namespace)
    with as_usage(
        place.url, "use it as a shared place (its tables have to be there, or the user has to be allowed to make them)"
    ):
        try:
            if _in_turn(place, partial(_mark, mark)):
                upgrade(place.url)
            else:
                _inside(place, check_schema)
        except BaseException:
            with suppress(StoreError):  # the first error is the one that matters
                _inside(place, partial(_leave, mark))
            raise
    return mark.to_json()


def _mark(mark: Mark, connection: Connection) -> bool:
    """Leave the mark of this process; say whether the tables there are the kit's."""
    with _alone(connection):
        tables = _tables(connection)
        if RUNS.name in tables and MARK_TABLE not in tables:
            return False
        make_mark(mark, "", connection)
        return True


def _go(place: SharedPlace, lab: Lab) -> None:
    mark = Mark.read(lab.prepared)
    if mark is None:
        raise RuntimeError(f"the namespace {lab.namespace} has no mark, so what is there is left as it is")
    _in_turn(place, partial(_leave, mark))


def _leave(mark: Mark, connection: Connection) -> None:
    """Remove the runs of the process that left a mark, and the tables with the last mark."""
    with _alone(connection):
        tables = _tables(connection)
        if RUNS.name in tables:
            connection.execute(delete(RUNS).where(_made_by(mark.namespace)))
        if MARK_TABLE not in tables:
            return
        connection.execute(text(f"DELETE FROM {MARK_TABLE} WHERE mark = :mark"), {"mark": mark.mark})  # noqa: S608  # a name of ours
        if not read_marks("", connection):
            for name in (RUNS.name, SCHEMA_VERSION.name, MARK_TABLE):
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")


def _count(namespace: str, connection: Connection) -> dict[str, int]:
    query = select(RUNS.c.retired, func.count()).where(_made_by(namespace)).group_by(RUNS.c.retired)
    counted = {bool(retired): int(number) for retired, number in connection.execute(query).all()}
    return {"runs": counted.get(False, 0), "retired": counted.get(True, 0)}


def _made_by(namespace: str) -> ColumnElement[bool]:
    """Give the condition for runs of the process that a namespace belongs to: run id or tenant have its word in them."""
    word = namespace.split("_")[1].encode("ascii")
    pattern = bindparam("pattern", b"%" + word + b"%", type_=RUNS.c.run_id.type)
    return or_(RUNS.c.run_id.op("LIKE", is_comparison=True)(pattern), RUNS.c.tenant_id.op("LIKE", is_comparison=True)(pattern))


def _tables(connection: Connection) -> set[str]:
    """Give the tables of the place.

    Raises:
        Misconfigured: the connection has no schema.
    """
    if connection.dialect.name != "postgresql":
        return set(inspect(connection).get_table_names())
    schema = connection.execute(text("SELECT current_schema()")).scalar()
    if schema is None:
        raise Misconfigured("the user has no schema here; name one that the user may use, &schema=NAME")
    return set(inspect(connection).get_table_names(str(schema)))


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    name = dialect_of(connection.engine.url).name
    lock, unlock = _LOCK[name]
    taken = connection.exec_driver_sql(lock).scalar()
    if name == "mysql" and taken != 1:  # PostgreSQL waits, as long as the connection may
        raise Contended("another run of the kit is coming to this place, or leaving it; try again when it is through")
    try:
        yield
    finally:
        connection.exec_driver_sql(unlock)


def leftovers_in(place: SharedPlace) -> list[Leftover]:
    """Find what killed runs left in a shared place: a mark, and with it runs.

    Raises:
        UsageProblem: the place cannot be used.
    """

    def marks(connection: Connection) -> list[Mark]:
        return read_marks("", connection) if MARK_TABLE in _tables(connection) else []

    with as_usage(place.url, "look for what is left"):
        found = _inside(place, marks)
    return [Leftover("runs", f"of {mark.namespace}", mark, partial(_in_turn, place, partial(_leave, mark))) for mark in found]
