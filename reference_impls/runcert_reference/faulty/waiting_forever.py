"""A synchronous call that does not end: nobody can interrupt it, so the process that made it is given up."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

from runcert.faulty import deviates
from runcert_contract import AlreadyExists, Run
from runcert_reference.faulty.over_memory import faulty_memory
from runcert_reference.memory import CLAIMS, MemoryRunStore


@faulty_memory("RUN-BOUND-1", limits=replace(CLAIMS.limits, maximum_wait=timedelta(seconds=0.3)))
class CreateWaitsForTheIdToBeFree(MemoryRunStore):
    """create on an id in use waits for the other run to go away instead of raising AlreadyExists."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            threading.Event().wait()
            raise
