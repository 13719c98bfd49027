"""What the stores have to know of each database, and which one a URL names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Connection

from runcert_contract import Claims, Misconfigured, StoreError

__all__ = ["CALL_SECONDS", "CONNECT_SECONDS", "LOCK_SECONDS", "POOL_SECONDS", "STATEMENT_SECONDS", "Dialect", "Meaning"]

POOL_SECONDS = 2.0
"""How long a call waits for a connection of its handle."""

CONNECT_SECONDS = 3
"""How long making a connection takes at most."""

LOCK_SECONDS = 3
"""How long a statement waits for the locks of others."""

STATEMENT_SECONDS = 5
"""How long a server works on one statement, locks included."""

CALL_SECONDS = 8.0
"""How long a call on a server takes at most; then its connection is shut.  Below the maximum wait that the stores declare."""

Meaning = tuple[type[StoreError], str]
"""An error of the contract and what to say: what happened, and the way out."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is particular to one database.

    Attributes:
        name: its folder of migrations.
        driver: the driver of the synchronous store, as SQLAlchemy names it.
        async_driver: the driver of the asynchronous one; empty where there is none.
        claims: what is said of the store on it.
        options: for ``create_engine``, of a URL and the longest time in seconds that the server is waited for.
        fileno: the number of the socket of a driver's connection; None for a database without a server.
        set_up: what each new connection is told first, given the connection of the driver and whether the server is MariaDB.
        check: refuses a server whose settings do not do.
        begin_migration: keeps other migrations out, or raises ``Contended``.
        end_migration: the statements after a migration.
    """

    name: str
    driver: str
    async_driver: str
    claims: Claims
    options: Callable[[URL, float], Mapping[str, Any]]
    fileno: Callable[[Any], int] | None
    set_up: Callable[[Any, bool], None]
    check: Callable[[Connection], None]
    begin_migration: Callable[[Connection], None]
    end_migration: tuple[str, ...]

    def url(self, url: URL, *, asynchronous: bool = False) -> URL:
        """Give the URL with the driver that these stores are made for.

        Raises:
            Misconfigured: there is none of that form.
        """
        driver = self.async_driver if asynchronous else self.driver
        if not driver:
            raise Misconfigured(f"there is no asynchronous driver for {self.name} here; use the synchronous store")
        return url.set(drivername=driver)
