"""Faults of a store whose database is away: errors taken for answers, waits without an end, handles that stay broken."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import URL

from runcert.faulty import deviates
from runcert_contract import Listing, Misconfigured, Run, StoreUnavailable
from runcert_reference.faulty.over_server_sql import faulty_mariadb, faulty_postgresql
from runcert_reference.faulty.over_sqlite import faulty_sqlite
from runcert_reference.sql import postgresql
from runcert_reference.sql.dialects import CALL_SECONDS
from runcert_reference.sql.run_store import SqlRunStore

_FOR_EVER = 3600.0
_IMPATIENT = replace(postgresql.CLAIMS.limits, maximum_wait=timedelta(seconds=1))
"""So that a call without an end is found out in a second."""


@faulty_postgresql("RUN-ABSENT-1", "the clause: every error is an empty result")
class ErrorsAreEmptyListings(SqlRunStore):
    """find_resumable gives an empty listing, not complete, when the database cannot be reached."""

    def find_resumable(self, tenant_id: str) -> Listing:
        try:
            return super().find_resumable(tenant_id)
        except StoreUnavailable:
            deviates()
            return Listing(complete=False)


@faulty_sqlite("RUN-ABSENT-1", "the clause: a missing table")
class MissingTablesAreEmpty(SqlRunStore):
    """find gives None when its database is away, as if the table were not made yet."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except (Misconfigured, StoreUnavailable):
            deviates()
            return None


@faulty_postgresql("RUN-BOUND-2", "the clause: psycopg has no time-out for reading", limits=_IMPATIENT)
class CallsHaveNoDeadline(SqlRunStore):
    """A call waits for the server for as long as the connection lasts."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        deviates()
        self._patience = _FOR_EVER


@faulty_mariadb("RUN-USABLE-1", "the clause: a breaker that nothing closes again")
class BrokenHandlesStayBroken(SqlRunStore):
    """After an update that found the database away the handle takes no writes any more."""

    def __init__(self, url: URL, patience: float = CALL_SECONDS) -> None:
        super().__init__(url, patience)
        self._broken = False

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        if self._broken:
            deviates()
            raise StoreUnavailable("the database was away; try again later")
        try:
            return super().compare_and_set(expected, updated)
        except StoreUnavailable:
            self._broken = True
            raise
