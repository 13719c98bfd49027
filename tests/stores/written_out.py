"""Stores that are wrong in ways that their calls show, with adapters of every form that can be written out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from runcert import AsyncRunStore, EnumeratesRuns, Fault, Handles, Kept, Lab, RunStore, Scope, adapter
from runcert_contract import AlreadyExists, Claims, Listing, Run, check_identifier, check_new_run, check_update, decode, encode

CLAIMS = Claims()


class Taken(Exception):
    """An error of the store's own."""


class Files:
    """Runs in files, as they should be."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def _file(self, run_id: str) -> Path:
        check_identifier(run_id, "run_id", CLAIMS)
        return self.directory / run_id.encode().hex()

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if self._file(run.run_id).exists():
            raise AlreadyExists(f"run {run.run_id!r} exists")
        return self._write(run)

    def find(self, run_id: str) -> Run | None:
        file = self._file(run_id)
        return self._read(file) if file.exists() else None

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        runs = [self._read(file) for file in self.directory.iterdir()]
        return Listing([run for run in runs if run.tenant_id == tenant_id and not run.status.terminal])

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version:
            return False
        self._write(updated)
        return True

    def _write(self, run: Run) -> Run:
        self._file(run.run_id).write_text(json.dumps(encode(run)), encoding="ascii")
        return run

    def _read(self, file: Path) -> Run:
        found = decode(json.loads(file.read_text(encoding="ascii")))
        assert isinstance(found, Run)
        return found


class IgnoresVersions(Files):
    """An update is written whatever was expected."""

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        if self.find(expected.run_id) is None:
            return False
        self._write(updated)
        return True


class ReplacesAndRefuses(Files):
    """create says that an id is in use, with an error of its own, and has replaced the run."""

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        taken = self._file(run.run_id).exists()
        self._write(run)
        if taken:
            raise Taken(run.run_id)
        return run


class ListsEveryTenant(Files):
    """find_resumable gives the runs of all tenants."""

    def find_resumable(self, tenant_id: str) -> Listing:
        check_identifier(tenant_id, "tenant_id", CLAIMS)
        return Listing([run for file in self.directory.iterdir() if not (run := self._read(file)).status.terminal])


class Asynchronous:
    """A store over files, asynchronous."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def create(self, run: Run) -> Run:
        return self._files.create(run)

    async def find(self, run_id: str) -> Run | None:
        return self._files.find(run_id)

    async def compare_and_set(self, expected: Run, updated: Run) -> bool:
        return self._files.compare_and_set(expected, updated)


def make_directory(lab: Lab) -> str:
    directory = lab.directory / "runs"
    directory.mkdir()
    return str(directory)


def remove_directory(lab: Lab) -> None:
    for file in directory_of(lab).iterdir():
        file.unlink()


def directory_of(lab: Lab) -> Path:
    return Path(str(lab.prepared))


@adapter(RunStore, handles=Handles.SHARED, durability={Fault.CLOSE: Kept()}, prepare=make_directory, dispose=remove_directory)
def ignores_versions(lab: Lab) -> Iterator[RunStore]:
    yield IgnoresVersions(directory_of(lab))


@adapter(RunStore, scope=Scope.PROCESS, errors={Taken: AlreadyExists})
def replaces_and_refuses(lab: Lab) -> Iterator[RunStore]:
    yield ReplacesAndRefuses(lab.directory)


@adapter(EnumeratesRuns)
def lists_every_tenant(lab: Lab) -> Iterator[EnumeratesRuns]:
    yield ListsEveryTenant(lab.directory)


@adapter(AsyncRunStore, durability={Fault.CLOSE: Kept()})
async def forgets_when_opened(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    for file in lab.directory.iterdir():
        file.unlink()
    yield Asynchronous(Files(lab.directory))


@adapter(RunStore)
def reads_the_clock(lab: Lab) -> Iterator[RunStore]:
    """One for which no test can be written: it asks the lab for more than there is without the kit."""
    lab.clock.now()
    yield IgnoresVersions(lab.directory)
