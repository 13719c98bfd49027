"""Faults of stores that make file names of identifiers.

Each mirrors its runs into the directory of its namespace, one file a run; the sound one escapes the id, so that no id is a
path.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from runcert.faulty import deviates
from runcert_contract import InvalidIdentifier, Listing, Run
from runcert_reference.faulty.over_memory import MemoryRunStoreInLab, faulty_memory


class MirroredRunStore(MemoryRunStoreInLab):
    """Writes the version of each run into a file as well, named by the escaped id."""

    def _name(self, run_id: str) -> str:
        return quote(run_id, safe="").replace(".", "%2E")[:200]

    def _file(self, run_id: str) -> Path:
        path = Path(os.path.normpath(self._lab.directory / self._name(run_id)))
        if not path.resolve().is_relative_to(self._lab.directory.resolve()):
            deviates()
        return path

    def _mirror(self, run: Run) -> None:
        # what the file system refuses is nobody's fault here: the question is what it accepts
        with suppress(OSError, ValueError):
            path = self._file(run.run_id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(run.version), encoding="ascii")

    def create(self, run: Run) -> Run:
        created = super().create(run)
        self._mirror(run)
        return created

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        accepted = super().compare_and_set(expected, updated)
        if accepted:
            self._mirror(updated)
        return accepted


def _check(run_id: str) -> None:
    if any(character in run_id for character in "/\\:\x00") or run_id.startswith("."):
        raise InvalidIdentifier(f"{run_id!r} cannot be a file name; give another identifier")


# -- RUN-PATH-1: outside the root


@faulty_memory("RUN-PATH-1", source="N5 Brad-Edwards/aptl#522", sound=MirroredRunStore)
class RunIdsAreFileNames(MirroredRunStore):
    """create and compare_and_set join the raw run id to the directory."""

    def _name(self, run_id: str) -> str:
        return run_id


@faulty_memory("RUN-PATH-1", source="N5 twin: only `..` at the beginning is refused", sound=MirroredRunStore)
class OnlyLeadingDotsAreRefused(MirroredRunStore):
    """run ids that begin with a dot are refused, absolute ones and those with `..` inside are joined."""

    def _name(self, run_id: str) -> str:
        return run_id

    def create(self, run: Run) -> Run:
        self._refuse_dots(run.run_id)
        return super().create(run)

    def find(self, run_id: str) -> Run | None:
        self._refuse_dots(run_id)
        return super().find(run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._refuse_dots(expected.run_id)
        return super().compare_and_set(expected, updated)

    def _refuse_dots(self, run_id: str) -> None:
        if run_id.startswith("."):
            raise InvalidIdentifier(f"{run_id!r} begins with a dot; give another identifier")


@faulty_memory("RUN-PATH-1", source="N5 twin: the tenant is not checked", sound=MirroredRunStore)
class TenantsAreDirectories(MirroredRunStore):
    """the run id is escaped, the tenant is a directory name as it is given."""

    def _mirror(self, run: Run) -> None:
        with suppress(OSError, ValueError):
            directory = Path(os.path.normpath(self._lab.directory / run.tenant_id))
            if not directory.is_relative_to(self._lab.directory):
                deviates()
            directory.mkdir(parents=True, exist_ok=True)
            (directory / self._name(run.run_id)).write_text(str(run.version), encoding="ascii")


@faulty_memory("RUN-PATH-1", source="N5 twin: `..` is refused, symbolic links are followed", sound=MirroredRunStore)
class SymbolicLinksAreFollowed(MirroredRunStore):
    """a path is kept if it has no `..` and is not absolute, although a link in the directory may lead out of it."""

    def _name(self, run_id: str) -> str:
        plain = run_id.startswith("/") or ".." in run_id or "\\" in run_id
        return super()._name(run_id) if plain else run_id


@faulty_memory("RUN-PATH-1", source="N5 twin: find is not checked", sound=MirroredRunStore)
class FindTouchesLockFiles(MirroredRunStore):
    """find takes a lock file that is named by the raw run id, and removes it afterwards with whatever was there."""

    def find(self, run_id: str) -> Run | None:
        found = super().find(run_id)
        with suppress(OSError, ValueError):
            lock = self._lab.directory / f"{run_id}.lock"
            if ".." in run_id:
                deviates()
            lock.touch()
            lock.unlink()
        return found


# -- RUN-PATH-2: inside the root


class _RefusesPaths(MirroredRunStore):
    """Refuses ids that look like paths, and leaves something behind where create does."""

    def create(self, run: Run) -> Run:
        try:
            _check(run.run_id)
        except InvalidIdentifier:
            deviates()
            self._leave(run)
            raise
        return super().create(run)

    def find(self, run_id: str) -> Run | None:
        _check(run_id)
        return super().find(run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        _check(expected.run_id)
        return super().compare_and_set(expected, updated)

    @abstractmethod
    def _leave(self, run: Run) -> None:
        """Do what had been done before the id was looked at."""


@faulty_memory("RUN-PATH-2", sound=MirroredRunStore)
class RefusedCreatesLeaveDirectories(_RefusesPaths):
    """create makes the directory of the tenant before it looks at the run id."""

    def _leave(self, run: Run) -> None:
        (self._lab.directory / quote(run.tenant_id, safe="")).mkdir(exist_ok=True)


@faulty_memory("RUN-PATH-2", source="the clause: the row comes first", sound=MirroredRunStore)
class RefusedCreatesLeaveRows(_RefusesPaths):
    """create stores the row, fails to make the file, and refuses the id without removing the row."""

    def _leave(self, run: Run) -> None:
        with self._space.lock:
            self._put(run)


@faulty_memory("RUN-PATH-2", source="N5 twin: listing", sound=MirroredRunStore)
class RefusedListingsLeaveIndexes(MirroredRunStore):
    """find_resumable opens an index for the tenant, which makes its file, before it refuses the name."""

    def create(self, run: Run) -> Run:
        _check(run.tenant_id)
        return super().create(run)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        _check(expected.tenant_id)
        return super().compare_and_set(expected, updated)

    def find_resumable(self, tenant_id: str) -> Listing:
        try:
            _check(tenant_id)
        except InvalidIdentifier:
            deviates()
            (self._lab.directory / f"{quote(tenant_id, safe='')[:100]}.index").touch()
            raise
        return super().find_resumable(tenant_id)
