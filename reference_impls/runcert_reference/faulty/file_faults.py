"""Faults that come from how files are named, written and listed."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import ClassVar

from runcert import Lab
from runcert.faulty import deviates
from runcert_contract import (
    AlreadyExists,
    Contended,
    CorruptRecord,
    InvalidIdentifier,
    Listing,
    Run,
    check_new_run,
    check_update,
    decode,
)
from runcert_reference.faulty.gaps import Gap, let_others_in
from runcert_reference.faulty.over_file import faulty_file
from runcert_reference.file_names import identifier_of, name_of, temporary_name
from runcert_reference.files import CLAIMS, FileRunStore, read_file
from runcert_reference.record_directory import RecordDirectory
from runcert_reference.records import write_record

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# -- names


@faulty_file("RUN-PATH-1", "N5 Brad-Edwards/aptl#522")
class FilesAreNamedByTheRawId(FileRunStore):
    """The run id is joined to the directory as it is given."""

    def _name(self, run_id: str) -> str:
        super()._name(run_id)
        if "\x00" in run_id:
            raise InvalidIdentifier("run_id: U+0000 cannot be in a file name")
        path = Path(os.path.normpath(self._directory.path / f"{run_id}.json"))
        if path.parent != self._directory.path:
            deviates()
        return f"{run_id}.run"


@faulty_file("RUN-ID-1", "D1 authzed/spicedb#3161, in a file system: names without case")
class FileNamesFoldCase(FileRunStore):
    """File names are the run ids in lower case, as a file system that folds case has them."""

    def _name(self, run_id: str) -> str:
        return _another(run_id, super()._name(run_id.lower()))


@faulty_file("RUN-ID-1", "D6 amule-org/amule#312: names in one Unicode form")
class FileNamesAreNormalised(FileRunStore):
    """File names are the run ids in the decomposed Unicode form, as some file systems keep them."""

    def _name(self, run_id: str) -> str:
        return _another(run_id, super()._name(unicodedata.normalize("NFD", run_id)))


@faulty_file("RUN-ID-1", "the clause: what Windows drops at the end of a name")
class DotsAndSpacesAtTheEndAreDropped(FileRunStore):
    """File names are the run ids without dots and spaces at their end."""

    def _name(self, run_id: str) -> str:
        return _another(run_id, super()._name(run_id.rstrip(". ")))


@faulty_file("RUN-ID-2", "D1 twin: names are cut")
class FileNamesAreCut(FileRunStore):
    """File names are cut where they would become long."""

    def _name(self, run_id: str) -> str:
        name = super()._name(run_id)
        return _another(run_id, name if len(name) < 70 else f"{name[:64]}.json")


def _another(run_id: str, name: str) -> str:
    if name != name_of(run_id):
        deviates()
    return name


@faulty_file("RUN-ID-3", "D4 langchain-ai/langgraph#8300: a glob")
class FindMatchesAPattern(FileRunStore):
    """find looks for the file with a pattern that is built from the run id, in which * ? [ ] stay what they are."""

    def _name(self, run_id: str) -> str:
        return re.sub("=(2a|3f|5b|5d)", lambda found: chr(int(found[1], 16)), super()._name(run_id))

    def find(self, run_id: str) -> Run | None:
        pattern = self._name(run_id)
        with self._directory.lock:
            names = sorted(glob(pattern, root_dir=self._directory.path))
            content = self._directory.read(names[0]) if names else None
        if content is None:
            return None
        if names[0] != pattern:
            deviates()
        run = decode(json.loads(content))
        return run if isinstance(run, Run) else None


@faulty_file("RUN-ID-3", "D4 twin: the listing")
class TenantsAreGlobs(FileRunStore):
    """find_resumable takes the runs whose tenant matches the given one as a pattern."""

    def find_resumable(self, tenant_id: str) -> Listing:
        items: list[Run] = []
        for run_id, name in self._record_names():
            with self._directory.lock:
                content = self._directory.read(name)
            run = None if content is None else read_file(content, run_id)
            if run is not None and not run.status.terminal and fnmatchcase(run.tenant_id, tenant_id):
                if run.tenant_id != tenant_id:
                    deviates()
                items.append(run)
        return Listing(items)


@faulty_file("RUN-NAMESPACE-1", "D7 redis-developer/langgraph-redis#187: one directory for all")
class OneDirectoryForAllNamespaces(FileRunStore):
    """All namespaces keep their files in one directory."""

    def __init__(self, directory: Path) -> None:
        deviates()
        common = directory.parents[2] / "all-runs"
        common.mkdir(exist_ok=True)
        super().__init__(common)


# -- writing


@faulty_file("RUN-CREATE-3", "the clause: rename without a unique temporary")
class OneTemporaryForEveryWriter(FileRunStore):
    """create writes to a temporary that is named after the run alone, so that rivals write to the same one."""

    def create(self, run: Run) -> Run:
        name = self._name_in(run)
        check_new_run(run, CLAIMS)
        target = self._directory.path / name
        temporary = target.with_suffix(".tmp")
        record = write_record(run)
        if target.exists():
            raise AlreadyExists(f"run {run.run_id!r} exists")
        temporary.write_text(record, encoding="ascii")
        let_others_in()
        try:
            if temporary.read_text(encoding="ascii") != record:
                deviates()
            os.link(temporary, target)
        except FileExistsError as error:
            raise AlreadyExists(f"run {run.run_id!r} exists") from error
        except FileNotFoundError as error:
            raise Contended(f"run {run.run_id!r} is being created; try again") from error
        finally:
            temporary.unlink(missing_ok=True)
        return run


@faulty_file("RUN-CREATE-3", "E1 square1-io/laravel-idempotency#1: look, then rename")
class CreateLooksAndThenRenames(FileRunStore):
    """create looks whether the file is there and then renames its own into place, without a lock."""

    _gap: ClassVar[Gap] = Gap()

    def create(self, run: Run) -> Run:
        name = self._name_in(run)
        check_new_run(run, CLAIMS)
        if self._directory.read(name) is not None:
            raise AlreadyExists(f"run {run.run_id!r} exists")
        with self._gap.before_writing(run.run_id):
            self._directory.replace(name, write_record(run).encode("ascii"))
        return run


@faulty_file("RUN-CAS-6", "G6 agronholm/apscheduler#959: no lock")
class UpdatesAreNotLocked(FileRunStore):
    """compare_and_set reads the version and then replaces the file, without a lock around both."""

    _gap: ClassVar[Gap] = Gap()

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self.find(expected.run_id)
        if stored is None or stored.version != expected.version or stored.status.terminal:
            return False
        with self._gap.before_writing(expected.run_id):
            self._directory.replace(self._name(expected.run_id), write_record(updated).encode("ascii"))
        return True


@faulty_file("RUN-CAS-6", "the clause: a lock for each handle")
class EachHandleLocksForItself(FileRunStore):
    """Every handle has a lock of its own, which keeps out nobody else."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        deviates()
        self._directory = RecordDirectory(directory)


@faulty_file("RUN-CONTENTION-1", "N2 HKUDS/Vibe-Trading#645")
class UpdatesAreWrittenInPlace(FileRunStore):
    """compare_and_set opens the file of the run for writing, and find does not wait for it."""

    def find(self, run_id: str) -> Run | None:
        content = self._directory.read(self._name(run_id))
        return None if content is None else read_file(content, run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        name = self._name_in(expected)
        check_update(expected, updated, CLAIMS)
        with self._directory.lock:
            stored = self.find(expected.run_id)
            if stored is None or stored.version != expected.version or stored.status.terminal:
                return False
            record = write_record(updated)
            with (self._directory.path / name).open("w", encoding="ascii") as opened:
                deviates()
                opened.write(record[:100])
                opened.flush()
                let_others_in()
                opened.write(record[100:])
        return True


@faulty_file("RUN-RESIDUE-1", "N4 HKUDS/LightRAG#3879: the temporary stays")
class RefusedCreatesLeaveTheirTemporary(FileRunStore):
    """create writes its temporary before it looks at the id, and leaves it there when the id is taken."""

    def create(self, run: Run) -> Run:
        try:
            return super().create(run)
        except AlreadyExists:
            deviates()
            (self._directory.path / temporary_name()).write_text(write_record(run), encoding="ascii")
            raise


def _unlink(lab: Lab, contract: str, key: str) -> None:  # noqa: ARG001  # one contract only
    deviates()
    (lab.directory / str(name_of(key))).unlink()


@faulty_file("RUN-REUSE-1", "the clause: retention removes files", purge=_unlink)
class RetentionRemovesFiles(FileRunStore):
    """Purging a run removes its file, after which nothing knows that the id was used."""


# -- reading


@faulty_file("RUN-CORRUPT-1", "N2 HKUDS/Vibe-Trading#645: an empty file is no file")
class EmptyFilesAreNotFound(FileRunStore):
    """find takes an empty file for one that is not there."""

    def find(self, run_id: str) -> Run | None:
        with suppress(FileNotFoundError):
            if (self._directory.path / self._name(run_id)).stat().st_size == 0:
                deviates()
                return None
        return super().find(run_id)


@faulty_file("RUN-CORRUPT-1", "N2 twin: an empty file read as defaults")
class EmptyFilesAreReadAsDefaults(FileRunStore):
    """find reads an empty file as a run that has nothing but defaults."""

    def find(self, run_id: str) -> Run | None:
        with suppress(FileNotFoundError):
            if (self._directory.path / self._name(run_id)).stat().st_size == 0:
                deviates()
                return Run(run_id, "", "", "", "", _EPOCH, _EPOCH)
        return super().find(run_id)


@faulty_file("RUN-LIST-1", "N7 can1357/oh-my-pi#894")
class TemporariesAreListed(FileRunStore):
    """create links its temporary into place and does not remove it, and the listing reads every file."""

    def create(self, run: Run) -> Run:
        created = super().create(run)
        path = self._directory.path / self._name(run.run_id)
        os.link(path, f"{path}.tmp")
        return created

    def _record_names(self) -> list[tuple[str, str]]:
        names = os.listdir(self._directory.path)
        temporary = [name for name in names if name.endswith(".tmp")]
        if temporary:
            deviates()
        found = [(identifier_of(name.removesuffix(".tmp")), name) for name in names]
        return [(run_id, name) for run_id, name in found if run_id is not None]


@faulty_file("RUN-LIST-4", "the clause: files that cannot be read are passed over")
class UnreadableFilesAreNotListed(FileRunStore):
    """find_resumable passes over a file that it cannot read."""

    def _read_if_resumable(self, name: str, run_id: str, tenant_id: str) -> Run | None:
        try:
            return super()._read_if_resumable(name, run_id, tenant_id)
        except CorruptRecord:
            deviates()
            return None


@faulty_file("RUN-LIST-4", "the clause: one file that cannot be read")
class OneUnreadableFileEndsTheListing(FileRunStore):
    """find_resumable raises CorruptRecord when one file of all cannot be read."""

    def find_resumable(self, tenant_id: str) -> Listing:
        listing = super().find_resumable(tenant_id)
        if listing.corrupt:
            deviates()
            raise CorruptRecord(f"run {listing.corrupt[0]!r} cannot be read", record=listing.corrupt[0])
        return listing
