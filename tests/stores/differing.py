"""Stores that differ from the one in memory only after some calls."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta

from runcert import Capability, Lab, Limits, RunStore, Stance, adapter
from runcert_contract import Run
from runcert_reference.memory import MemoryRunStore, space_of

_CALLS = 40
GUARDED = {Capability.GUARDS_TERMINAL: Stance.CLAIMED}


class Changing(MemoryRunStore):
    """Counts finds; :meth:`late` is called from the fortieth on."""

    _finds = 0

    def find(self, run_id: str) -> Run | None:
        """Do as ever, then differently."""
        self._finds += 1
        return super().find(run_id) if self._finds < _CALLS else self.late(run_id)

    def late(self, run_id: str) -> Run | None:
        """Answer."""
        raise NotImplementedError  # each store says how


class Forgetful(Changing):
    """Forgets every run."""

    def late(self, run_id: str) -> Run | None:
        return None


class Leaving(Changing):
    """Leaves the interpreter."""

    def late(self, run_id: str) -> Run | None:
        os._exit(0)


class Hanging(Changing):
    """Never answers."""

    def late(self, run_id: str) -> Run | None:
        time.sleep(600)
        return None


@adapter(RunStore, capabilities=GUARDED)
def forgetful(lab: Lab) -> Iterator[RunStore]:
    store = Forgetful(space_of(lab.namespace))
    yield store
    store.close()


@adapter(RunStore, capabilities=GUARDED)
def leaves(lab: Lab) -> Iterator[RunStore]:
    store = Leaving(space_of(lab.namespace))
    yield store
    store.close()


@adapter(RunStore, capabilities=GUARDED, limits=Limits(maximum_wait=timedelta(seconds=0.3)))
def hangs_later(lab: Lab) -> Iterator[RunStore]:
    store = Hanging(space_of(lab.namespace))
    yield store
    store.close()
