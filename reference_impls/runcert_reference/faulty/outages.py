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
