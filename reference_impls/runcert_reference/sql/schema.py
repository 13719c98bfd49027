"""How the tables come to be: SQL written by hand for each dialect, run by Alembic revisions of one line."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from sqlalchemy import URL, Connection, select

from runcert_contract import Misconfigured
from runcert_reference.sql.deadlines import ends_within
from runcert_reference.sql.engines import dialect_of, engine
from runcert_reference.sql.failures import translated
from runcert_reference.sql.tables import SCHEMA_VERSION

__all__ = ["check_schema", "folder_of", "latest_revision", "statements_of", "upgrade"]

MIGRATION_SECONDS = 60.0
"""How long a migration takes at most."""

MIGRATIONS = Path(__file__).parent / "migrations"
"""Alembic's script location: ``env.py``, ``versions/`` and one folder of SQL files for each dialect."""


def upgrade(url: URL, revision: str = "head") -> None:
    """Create the tables, or bring them to this revision of the store; all or nothing where the database can undo that.

    Args:
        url: the database.
        revision: how far.

    Raises:
        StoreError: the database cannot be reached or altered.
    """
    dialect, made = dialect_of(url), engine(url)
    try:
        with ends_within(MIGRATION_SECONDS), translated("the schema"):
            connection = made.connect()
        with ends_within(MIGRATION_SECONDS), connection, translated("the schema", writes=True):
            dialect.begin_migration(connection)
            _run_migrations(connection, revision)
            for statement in dialect.end_migration:  # after an error the connection is closed instead, which rolls back
                connection.exec_driver_sql(statement)
    finally:
        made.dispose()


def _run_migrations(connection: Connection, revision: str) -> None:
    # Imported here because only migrations need it: opening a store stays fast.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "runcert_reference.sql:migrations")
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise Misconfigured(f"the schema cannot be migrated ({error}); use the release of the store that made it") from error


def statements_of(dialect: str, name: str) -> tuple[str, ...]:
    """Give the statements of one SQL file; each ends with a semicolon at the end of a line.

    Args:
        dialect: the folder, for instance ``sqlite``.
        name: the name of the file without its ending, for instance ``0001_runs``.
    """
    text = (MIGRATIONS / dialect / f"{name}.sql").read_text(encoding="utf-8")
    return tuple(statement.strip() for statement in text.split(";\n") if statement.strip())


def folder_of(connection: Connection) -> str:
    """Give the folder of SQL files for the database at the other end."""
    return dialect_of(connection.engine.url).name


@lru_cache(maxsize=8)
def latest_revision(dialect: str) -> str:
    """Give the revision that the newest SQL file of a dialect leads to: the number in front of its name."""
    return max(file.name.partition("_")[0] for file in (MIGRATIONS / dialect).glob("*.sql"))


def check_schema(connection: Connection) -> None:
    """Refuse a database whose tables are missing, older or newer; nothing is created or altered.

    Raises:
        Misconfigured: the message says what was found and what to do.
    """
    found = connection.execute(select(SCHEMA_VERSION.c.version_num)).scalars().all()
    wanted = latest_revision(folder_of(connection))
    if list(found) != [wanted]:
        shown = ", ".join(found) or "none"
        raise Misconfigured(
            f"the schema is at revision {shown}, this store needs {wanted}; run the migrations, or another release of the store"
        )
