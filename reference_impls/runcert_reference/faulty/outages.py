"""Faults of a store in files whose directory is away."""

from __future__ import annotations

from runcert.faulty import deviates
from runcert_contract import Listing, Run, StoreUnavailable
from runcert_reference.faulty.over_file import faulty_file
from runcert_reference.files import FileRunStore


@faulty_file("RUN-ABSENT-1", "the clause: a disk that is not there")
class MissingDirectoriesAreEmpty(FileRunStore):
    """find gives None where the file cannot be opened, whatever became of its directory."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except StoreUnavailable:
            deviates()
            return None


@faulty_file("RUN-ABSENT-1", "the clause: a listing of a disk that is not there")
class MissingDirectoriesHaveNoRuns(FileRunStore):
    """find_resumable gives an empty listing where the directory cannot be read."""

    def find_resumable(self, tenant_id: str) -> Listing:
        try:
            return super().find_resumable(tenant_id)
        except StoreUnavailable:
            deviates()
            return Listing()


@faulty_file("RUN-CREATE-1", "the clause: a write that is acknowledged before it is made")
class CreatesAreAcknowledgedUnwritten(FileRunStore):
    """create gives the run back although its directory is away, and forgets it."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except StoreUnavailable:
            deviates()
            return run


@faulty_file("RUN-ERROR-1", "the clause: the error of the system")
class MissingDirectoriesAreRawErrors(FileRunStore):
    """find lets the error of the system leave where the directory is away."""

    def find(self, run_id: str) -> Run | None:
        try:
            return super().find(run_id)
        except StoreUnavailable as error:
            deviates()
            raise FileNotFoundError(2, "No such file or directory") from error
