"""The namespaces of the reference stores in PostgreSQL and MariaDB: each is a schema, or a database, that the kit makes, marks as its own and removes.

Nothing else on the server is touched.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from runcert import Lab, Leftover, Mark, UsageProblem
from runcert_contract import Misconfigured, StoreError
from runcert_reference.sql.deadlines import ends_within
from runcert_reference.sql.engines import dialect_of, engine
from runcert_reference.sql.failures import translated
from runcert_reference.sql.mysql import in_database
from runcert_reference.sql.postgresql import in_schema
from runcert_reference.sql.schema import upgrade

__all__ = [
    "MARK_TABLE",
    "UrlOf",
    "as_usage",
    "forget",
    "leftovers_on",
    "make_mark",
    "make_namespace",
    "namespace_url",
    "on_connection",
    "read_marks",
    "remove_namespace",
    "server_at",
]

_Answer = TypeVar("_Answer")

UrlOf = Callable[[Lab], URL]
"""Gives the server of a lab."""

_SECONDS = 15.0
"""How long making or removing a namespace takes at most."""


def server_at(url: str) -> URL:
    """Read the URL of a database on a server.

    Raises:
        UsageProblem: it names no server and database.
    """
    try:
        server = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise UsageProblem("the URL of the database cannot be read; write scheme://user:password@host:port/database") from error
    if not server.host or not server.database:
        missing = "host" if not server.host else "database"
        raise UsageProblem(
            f"{server.render_as_string(hide_password=True)} names no {missing}; write {server.drivername}://user:password@host:port/database"
        )
    return server


def namespace_url(server: URL, lab: Lab) -> URL:
    """Give the URL of a namespace on its server."""
    inside = in_schema if dialect_of(server).name == "postgresql" else in_database
    return inside(server, lab.namespace)


def make_namespace(url_of: UrlOf, lab: Lab) -> dict[str, str]:
    """Make a schema or database, mark it, and make the tables in it.

    Args:
        url_of: gives the server.
        lab: names the namespace.

    Returns:
        The mark, kept by the kit as ``lab.prepared``.

    Raises:
        UsageProblem: the server cannot be used, or something of that name is there already.
    """
    server = url_of(lab)
    inside = namespace_url(server, lab)
    mark = Mark.new(lab.namespace)
    with as_usage(server, f"make {lab.namespace}", "; a user who may make none adds ?namespaces=shared to the URL"):
        on_connection(server, partial(_create, mark))
        try:
            upgrade(inside)
        except BaseException:
            on_connection(server, partial(_drop, lab.namespace, mark.mark))
            raise
    return mark.to_json()


def remove_namespace(url_of: UrlOf, lab: Lab) -> None:
    """Remove the schema or database that :func:`make_namespace` made.

    Raises:
        RuntimeError: it does not have this run's mark.
    """
    mark = lab.prepared.get("mark") if isinstance(lab.prepared, dict) else None
    server = url_of(lab)
    forget(namespace_url(server, lab))
    on_connection(server, partial(_drop, lab.namespace, str(mark)))


MARK_TABLE = "made_by_runcert"
"""The table with the marks of a schema or database."""

_PREFIX = "rc_"


def _create(mark: Mark, connection: Connection) -> None:
    quoted = connection.dialect.identifier_preparer.quote(mark.namespace)
    kind = _kind(connection)
    rows = connection.execute(
        text("SELECT 1 FROM information_schema.schemata WHERE schema_name = :name"), {"name": mark.namespace}
    ).all()
    if rows:
        raise UsageProblem(
            f"the {kind.lower()} {mark.namespace} is there already and not this run's; remove it yourself if it is yours"
        )
    # A run that is killed here leaves nothing without a mark: PostgreSQL makes all of it or nothing, MariaDB from 10.5 on keeps it as a
    # comment.  MySQL and older MariaDB have no place for it; there a database without a mark may stay, which nobody removes.
    if kind == "SCHEMA":
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(f"CREATE SCHEMA {quoted}")
        make_mark(mark, f"{quoted}.", connection)
        connection.exec_driver_sql("COMMIT")
        return
    comment = json.dumps(mark.to_json()).replace("'", "''")
    connection.exec_driver_sql(f"CREATE DATABASE {quoted} /*M!100500 COMMENT '{comment}' */")
    try:
        make_mark(mark, f"{quoted}.", connection)
    except BaseException:
        connection.exec_driver_sql(f"DROP DATABASE {quoted}")  # made just now, by this very call
        raise


def make_mark(mark: Mark, place: str, connection: Connection) -> None:
    """Write a mark into its table, which is made where it is missing.

    Args:
        mark: the mark.
        place: the schema or database, quoted and with a point; empty for that of the connection.
        connection: an open connection.
    """
    columns = "namespace VARCHAR(64), mark VARCHAR(64), host VARCHAR(255), process VARCHAR(20), started VARCHAR(120)"
    connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {place}{MARK_TABLE} ({columns})")
    values = ":namespace, :mark, :host, :process, :started"
    connection.execute(text(f"INSERT INTO {place}{MARK_TABLE} VALUES ({values})"), mark.to_json())  # noqa: S608  # quoted by the caller


def read_marks(place: str, connection: Connection) -> list[Mark]:
    """Read the marks of a place; see :func:`make_mark`."""
    rows = connection.execute(text(f"SELECT namespace, mark, host, process, started FROM {place}{MARK_TABLE}")).mappings()  # noqa: S608  # quoted by the caller
    return [mark for row in rows if (mark := Mark.read(dict(row))) is not None]


def _mark_of(namespace: str, connection: Connection) -> Mark | None:
    """Read the mark of a namespace: from its table, or where a run was killed before that was there, from the comment."""
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = :name AND table_name = :table"
    if connection.execute(text(query), {"name": namespace, "table": MARK_TABLE}).all():
        marks = read_marks(f"{connection.dialect.identifier_preparer.quote(namespace)}.", connection)
        if marks:
            return marks[0] if len(marks) == 1 and marks[0].namespace == namespace else None
    if not getattr(connection.dialect, "is_mariadb", False) or connection.dialect.server_version_info < (10, 5):  # type: ignore[operator]  # known once connected
        return None
    query = "SELECT schema_comment FROM information_schema.schemata WHERE schema_name = :name"
    try:
        mark = Mark.read(json.loads(str(connection.execute(text(query), {"name": namespace}).scalar())))
    except ValueError:
        return None
    return mark if mark is not None and mark.namespace == namespace else None


def _drop(namespace: str, mark: str, connection: Connection) -> None:
    quoted = connection.dialect.identifier_preparer.quote(namespace)
    kind = _kind(connection)
    found = _mark_of(namespace, connection)
    if found is None or found.mark != mark:
        raise RuntimeError(f"the {kind.lower()} {namespace} does not have the mark of this run, so it is left as it is")
    connection.exec_driver_sql(f"DROP {kind} {quoted}{' CASCADE' if kind == 'SCHEMA' else ''}")


def _kind(connection: Connection) -> str:
    return "SCHEMA" if connection.dialect.name == "postgresql" else "DATABASE"


_MOST_ENGINES = 4
_engines: OrderedDict[URL, Engine] = OrderedDict()
"""Engines of the owner of namespaces, beside the stores; the connection of each is used again, because making one takes longer than a hook."""


def on_connection(url: URL, action: Callable[[Connection], _Answer]) -> _Answer:
    """Do something on a connection of its own, beside the store."""
    made = _engines.pop(url, None) or engine(url)
    _engines[url] = made
    while len(_engines) > _MOST_ENGINES:
        _engines.popitem(last=False)[1].dispose()
    with ends_within(_SECONDS), made.connect() as connection:
        try:
            return action(connection)
        except BaseException:
            connection.invalidate()  # whatever was begun or locked ends with it; the next one begins anew
            raise


def forget(url: URL) -> None:
    """Close the connection that hooks used in a namespace."""
    made = _engines.pop(url, None)
    if made is not None:
        made.dispose()


@contextmanager
def as_usage(server: URL, what: str, way_out: str = "") -> Iterator[None]:
    """Say in one sentence why a server cannot be used.

    Args:
        server: the server.
        what: what cannot be done then, as the end of a sentence.
        way_out: what to do where the server answers and refuses.

    Raises:
        UsageProblem: in place of an error of the contract or of the driver.
    """
    try:
        with translated(f"{server.render_as_string(hide_password=True)}: cannot {what}"):
            yield
    except StoreError as error:
        cause = error.__cause__
        said = " ".join(str(cause.orig).split()) if isinstance(cause, DBAPIError) and cause.orig is not None else ""
        hint = way_out if isinstance(error, Misconfigured) else ""
        raise UsageProblem(f"{error}{hint}{f' (the server says: {said})' if said else ''}") from error


def leftovers_on(server: URL) -> list[Leftover]:
    """Find the schemas or databases of namespaces that killed runs left on a server of the user's.

    Raises:
        UsageProblem: the server cannot be used.
    """
    with as_usage(server, "look for what is left"):
        return on_connection(server, partial(_leftovers, server))


def _leftovers(server: URL, connection: Connection) -> list[Leftover]:
    query = "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE :prefix ESCAPE '!' ORDER BY schema_name"
    names = connection.execute(text(query), {"prefix": f"{_PREFIX.replace('_', '!_')}%"}).scalars().all()
    return [_leftover(server, str(name), connection) for name in names]


def _leftover(server: URL, namespace: str, connection: Connection) -> Leftover:
    mark = _mark_of(namespace, connection)
    remove = partial(on_connection, server, partial(_drop, namespace, mark.mark if mark is not None else ""))
    return Leftover(_kind(connection).lower(), namespace, mark, remove)
