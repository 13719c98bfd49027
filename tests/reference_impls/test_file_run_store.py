"""The reference store in files, where the suites cannot look: names, crashes, a disk that refuses, what is left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records import a_run, following, texts

from runcert_contract import (
    AlreadyExists,
    Closed,
    CorruptRecord,
    InvalidIdentifier,
    Misconfigured,
    OutcomeUnknown,
    Run,
    RunStatus,
    StoreUnavailable,
)
from runcert_reference import record_directory
from runcert_reference.file_names import (
    LONGEST_NAME,
    LONGEST_PORTABLE,
    identifier_of,
    is_temporary,
    name_of,
    temporary_name,
)
from runcert_reference.files import FileRunStore, retire_run

RESERVED = (
    "CON",
    "con",
    "nul.txt",
    "COM1",
    "a.",
    "a ",
    ".",
    "..",
    "",
    "-rf",
    "~",
    "../x",
    "/etc/passwd",
    "C:\\x",
    "a:b",
    "a\0b",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileRunStore]:
    with closing(FileRunStore(tmp_path)) as opened:
        yield opened


def path_of(directory: Path, run_id: str) -> Path:
    return directory / str(name_of(run_id))


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def temporaries(directory: Path) -> list[str]:
    return [name for name in names_in(directory) if is_temporary(name)]


# -- names


@given(texts(max_size=40) | st.sampled_from(RESERVED) | st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}", fullmatch=True))
def test_a_name_goes_back_to_its_identifier(identifier: str) -> None:
    name = name_of(identifier)

    assert name is None or identifier == identifier_of(name)


@given(st.lists(texts(max_size=8) | st.sampled_from(RESERVED), min_size=2, max_size=2, unique=True))
def test_two_identifiers_have_two_names_also_where_case_and_unicode_forms_are_folded(identifiers: list[str]) -> None:
    names = [str(name_of(identifier)) for identifier in identifiers]

    assert names[0] != names[1]
    assert all(name.isascii() and name == name.lower() for name in names)


@given(st.text(st.sampled_from("abz09.-_+=~AZ%é"), max_size=12).map(lambda body: f"run-{body}.json"))
def test_a_name_that_the_store_would_not_make_is_nobodys(name: str) -> None:
    identifier = identifier_of(name)

    assert identifier is None or name == name_of(identifier)


@pytest.mark.parametrize("identifier", RESERVED)
def test_reserved_names_separators_and_ends_are_ordinary(identifier: str) -> None:
    name = str(name_of(identifier))

    assert not set(name) & set('<>:"/\\|?*\0 ')
    assert name.startswith("run-")
    assert name.endswith(".json")
    assert not is_temporary(name)


@pytest.mark.parametrize("letter", ["a", "Z", "9", ".", "_", "-"])
def test_every_portable_identifier_up_to_the_declared_length_has_a_name(letter: str) -> None:
    identifier = "A" + letter * (LONGEST_PORTABLE - 1)

    assert len(str(name_of(identifier))) <= LONGEST_NAME


def test_an_identifier_whose_name_would_be_too_long_is_refused_by_every_method_alike(
    store: FileRunStore, tmp_path: Path
) -> None:
    run = a_run("\N{SLIGHTLY SMILING FACE}" * 40)
    calls: list[Callable[[], object]] = [
        lambda: store.create(run),
        lambda: store.find(run.run_id),
        lambda: store.compare_and_set(run, following(run)),
    ]

    for call in calls:
        with pytest.raises(InvalidIdentifier, match="255 bytes"):
            call()
    assert [] == names_in(tmp_path)


def test_no_two_temporary_names_are_alike() -> None:
    names = {temporary_name() for _ in range(1000)}

    assert len(names) == 1000
    assert all(is_temporary(name) for name in names)


# -- crashes


_CRASHES = """
import os, sys
from pathlib import Path
from runcert_reference.files import FileRunStore
from tests.records import a_run, following
store = FileRunStore(Path(sys.argv[1]))
setattr(os, sys.argv[2], lambda *_: os._exit(9))
run = a_run("r1")
store.create(run) if sys.argv[3] == "create" else store.compare_and_set(run, following(run))
"""


def crash(directory: Path, where: str, operation: str) -> None:
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", _CRASHES, str(directory), where, operation]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": root}, timeout=60, check=False)
    assert done.returncode == 9


@pytest.mark.parametrize("where", ["write", "fsync", "link"])
def test_a_crash_before_the_new_file_has_its_name_leaves_nothing_but_the_temporary(tmp_path: Path, where: str) -> None:
    crash(tmp_path, where, "create")

    with closing(FileRunStore(tmp_path)) as store:
        assert store.find("r1") is None
        assert [] == list(store.find_resumable("tenant").items)
        assert a_run("r1") == store.create(a_run("r1"))
    assert len(temporaries(tmp_path)) == 1


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_crash_before_the_rename_leaves_the_old_run(tmp_path: Path, where: str) -> None:
    with closing(FileRunStore(tmp_path)) as store:
        store.create(a_run("r1"))

    crash(tmp_path, where, "update")

    with closing(FileRunStore(tmp_path)) as store:
        assert a_run("r1") == store.find("r1")
        assert [a_run("r1")] == list(store.find_resumable("tenant").items)
        assert store.compare_and_set(a_run("r1"), following(a_run("r1")))
    assert len(temporaries(tmp_path)) == 1


def test_only_temporaries_that_are_too_old_to_be_written_are_removed_at_opening(tmp_path: Path) -> None:
    young, old, other = temporary_name(), temporary_name(), "tmp-of-somebody-else"
    for name in (young, old, other):
        (tmp_path / name).write_bytes(b"")
    long_ago = time.time() - 2 * record_directory.LEFTOVER_SECONDS
    for name in (old, other):
        os.utime(tmp_path / name, (long_ago, long_ago))

    FileRunStore(tmp_path).close()

    assert sorted([young, other]) == names_in(tmp_path)


def test_opening_a_second_handle_leaves_the_temporaries_of_the_first_alone(store: FileRunStore, tmp_path: Path) -> None:
    name = temporary_name()
    (tmp_path / name).write_bytes(b"")
    os.utime(tmp_path / name, (0, 0))

    FileRunStore(tmp_path).close()

    assert [name] == temporaries(tmp_path)


# -- a disk that refuses


def failing(number: int, calls: int | None = None, after: int = 0) -> Callable[..., None]:
    """Give a call of the system that fails: always, or as often as said, after so many that work."""
    left = [after, calls]
    real = os.fsync

    def call(descriptor: int) -> None:
        if left[0]:
            left[0] = int(left[0] or 0) - 1
            return real(descriptor)
        if left[1] == 0:
            return real(descriptor)
        if left[1] is not None:
            left[1] -= 1
        raise OSError(number, os.strerror(number))

    return call


def write(store: FileRunStore, operation: str) -> object:
    run = a_run("r1")
    return store.create(a_run("r2")) if operation == "create" else store.compare_and_set(run, following(run, stage="new"))


@pytest.mark.parametrize("operation", ["create", "update"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_an_fsync_of_the_file_that_fails_is_not_acknowledged_and_changes_nothing(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, operation: str
) -> None:
    store.create(a_run("r1"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing(number))
        with pytest.raises(StoreUnavailable, match=os.strerror(number)) as caught:
            write(store, operation)

    assert caught.value.definite
    assert a_run("r1") == store.find("r1")
    assert store.find("r2") is None
    assert [str(name_of("r1"))] == names_in(tmp_path)
    assert write(store, operation)


@pytest.mark.parametrize("operation", ["create", "update"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
def test_an_fsync_of_the_directory_that_fails_leaves_the_outcome_unknown(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, operation: str
) -> None:
    store.create(a_run("r1"))
    written = a_run("r2") if operation == "create" else following(a_run("r1"), stage="new")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing(number, after=1))
        with pytest.raises(OutcomeUnknown, match="read the run"):
            write(store, operation)
        reads: list[Callable[[], object]] = [lambda: store.find(written.run_id), lambda: store.find_resumable("tenant")]
        for read in reads:
            with pytest.raises(StoreUnavailable, match="could not be made durable"):
                read()  # nobody is told of what may be gone after a loss of power

    assert [] == temporaries(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    assert written == store.find(written.run_id)
    assert len(synced) == 2  # the file was written anew, and its directory synced
    assert written == store.find(written.run_id)
    assert len(synced) == 2


def test_another_run_is_not_hurt_by_one_that_is_in_doubt(store: FileRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(a_run("r1"))
    monkeypatch.setattr(os, "fsync", failing(errno.EIO, after=1))
    with pytest.raises(OutcomeUnknown):
        store.create(a_run("r2"))

    assert a_run("r1") == store.find("r1")


def test_a_directory_that_cannot_be_synced_is_refused_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EINVAL))

    with pytest.raises(Misconfigured, match="may read, write and sync"):
        FileRunStore(tmp_path)


def test_short_writes_are_gone_on_with(store: FileRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:7]))
    run = a_run("r1", input={"text": "x" * 1000})

    assert run == store.create(run)
    assert run == store.find("r1")


@pytest.mark.parametrize("end", ["nothing more", "an error"])
def test_a_write_that_ends_early_is_not_acknowledged(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    store.create(a_run("r1"))
    real, taken = os.write, [0]

    def cut(descriptor: int, content: memoryview) -> int:
        taken[0] += 1
        if taken[0] == 1:
            return real(descriptor, content[:10])
        if end == "an error":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return 0

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", cut)
        with pytest.raises(StoreUnavailable):
            store.compare_and_set(a_run("r1"), following(a_run("r1")))

    assert a_run("r1") == store.find("r1")
    assert [] == temporaries(tmp_path)


def test_a_rename_that_others_hold_up_is_tried_again(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = os.replace, [0]

    def replace(source: str, target: str) -> None:
        if refused[0] < 2:
            refused[0] += 1
            raise PermissionError(errno.EACCES, "the file is in use")
        real(source, target)

    store.create(a_run("r1"))
    monkeypatch.setattr(os, "replace", replace)

    assert store.compare_and_set(a_run("r1"), following(a_run("r1")))
    assert refused == [2]
    assert [] == temporaries(tmp_path)


def test_a_rename_that_is_held_up_for_ever_fails_in_time_and_changes_nothing(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(source: str, target: str) -> None:
        raise PermissionError(errno.EACCES, "the file is in use")

    store.create(a_run("r1"))
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(record_directory, "REPLACE_SECONDS", 0.05)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="another program holds it open"):
        store.compare_and_set(a_run("r1"), following(a_run("r1")))

    assert time.monotonic() - started < 2
    assert a_run("r1") == store.find("r1")
    assert [] == temporaries(tmp_path)


def test_a_rename_that_was_done_although_an_error_says_not_is_done(
    store: FileRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(source: str, target: str) -> None:
        real(source, target)
        raise OSError(errno.EIO, "the reply was lost")

    store.create(a_run("r1"))
    monkeypatch.setattr(os, "replace", replace)

    assert store.compare_and_set(a_run("r1"), following(a_run("r1")))
    assert following(a_run("r1")) == store.find("r1")


@pytest.mark.parametrize("number", [None, errno.EPERM], ids=["links", "no links"])
def test_create_never_replaces_a_file_that_appeared(
    store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    real_fsync, real_link = os.fsync, os.link

    def appears(descriptor: int) -> None:
        path_of(tmp_path, "r1").write_bytes(b"of somebody else")
        real_fsync(descriptor)

    def link(source: str, target: str) -> None:
        if number is not None:
            raise OSError(number, os.strerror(number))
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", appears)
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(AlreadyExists):
        store.create(a_run("r1"))

    assert path_of(tmp_path, "r1").read_bytes() == b"of somebody else"
    assert [] == temporaries(tmp_path)


def test_create_works_where_there_are_no_links(store: FileRunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "link", link)

    assert a_run("r1") == store.create(a_run("r1"))
    with pytest.raises(AlreadyExists):
        store.create(a_run("r1"))
    assert [str(name_of("r1"))] == names_in(tmp_path)


# -- what else may be in the way


def test_a_directory_that_is_missing_or_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(Misconfigured, match="missing does not exist"):
        FileRunStore(tmp_path / "missing")
    with pytest.raises(Misconfigured):
        FileRunStore(tmp_path / "file")
    assert ["file"] == names_in(tmp_path)


def test_a_directory_that_went_away_or_was_changed_for_another_is_no_empty_store(tmp_path: Path) -> None:
    directory = tmp_path / "runs"
    directory.mkdir()
    with closing(FileRunStore(directory)) as store:
        store.create(a_run("r1"))
        directory.rename(tmp_path / "moved")
        calls: list[Callable[[], object]] = [
            lambda: store.find("r1"),
            lambda: store.find_resumable("tenant"),
            lambda: store.create(a_run("r2")),
            lambda: store.compare_and_set(a_run("r1"), following(a_run("r1"))),
        ]
        for make in (False, True):
            if make:
                directory.mkdir()
            for call in calls:
                with pytest.raises(StoreUnavailable, match="moved or unmounted"):
                    call()

        assert [] == names_in(directory)


@pytest.mark.parametrize("what", ["directory", "pipe", "link"])
def test_what_is_no_file_is_named_corrupt_and_neither_followed_nor_waited_for(
    store: FileRunStore, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "run.json"
    outside.write_bytes(b"outside")
    path = path_of(tmp_path, "r1")
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside)
    store.create(a_run("r2"))

    calls: list[Callable[[], object]] = [lambda: store.find("r1"), lambda: store.create(a_run("r1"))]
    for call in calls:
        with pytest.raises(CorruptRecord) as caught:
            call()
        assert "r1" in str(caught.value)
    listing = store.find_resumable("tenant")

    assert (["r1"], [a_run("r2")]) == (list(listing.corrupt), list(listing.items))
    assert outside.read_bytes() == b"outside"


@pytest.mark.parametrize("content", [b"", b"\0" * 900, b"{", b"{}", b"\xff", b'{"$retired":"r2"}', b"[" * 100_000])
def test_a_file_that_holds_no_run_is_named_corrupt_to_every_tenant(store: FileRunStore, tmp_path: Path, content: bytes) -> None:
    store.create(a_run("r1"))
    store.create(a_run("r2"))
    path_of(tmp_path, "r1").write_bytes(content)

    with pytest.raises(CorruptRecord) as caught:
        store.find("r1")
    with pytest.raises((CorruptRecord, AlreadyExists)):
        store.create(a_run("r1"))
    with pytest.raises(CorruptRecord):
        store.compare_and_set(a_run("r1"), following(a_run("r1")))
    listings = [store.find_resumable(tenant) for tenant in ("tenant", "another")]

    assert caught.value.record == "r1"
    assert [(["r1"], [a_run("r2")]), (["r1"], [])] == [(list(found.corrupt), list(found.items)) for found in listings]
    assert content == path_of(tmp_path, "r1").read_bytes()


def test_the_file_of_one_run_under_the_name_of_another_is_corrupt(store: FileRunStore, tmp_path: Path) -> None:
    store.create(a_run("r1"))
    path_of(tmp_path, "r2").write_bytes(path_of(tmp_path, "r1").read_bytes())

    with pytest.raises(CorruptRecord):
        store.find("r2")
    assert ["r2"] == list(store.find_resumable("another").corrupt)


def test_files_of_others_are_neither_listed_nor_touched(store: FileRunStore, tmp_path: Path) -> None:
    names = ["README", ".hidden", "run-.txt", "run-A.json", "run-=61.json", "run-=ff.json", "Run-a.json", temporary_name()]
    for name in names:
        (tmp_path / name).write_bytes(b"of somebody else")

    listing = store.find_resumable("tenant")

    assert ([], [], True) == (list(listing.items), list(listing.corrupt), listing.complete)
    assert sorted(names) == names_in(tmp_path)


def test_a_purged_id_is_never_accepted_again(store: FileRunStore, tmp_path: Path) -> None:
    store.create(a_run("r1"))
    retire_run(tmp_path, "r1")
    retire_run(tmp_path, "unknown")

    assert store.find("r1") is None
    assert not store.compare_and_set(a_run("r1"), following(a_run("r1")))
    assert ([], []) == (list(store.find_resumable("tenant").items), list(store.find_resumable("tenant").corrupt))
    with pytest.raises(AlreadyExists):
        store.create(a_run("r1"))


def test_records_are_for_the_eyes_of_their_owner(store: FileRunStore, tmp_path: Path) -> None:
    store.create(a_run("r1", attempt_token="secret"))

    assert path_of(tmp_path, "r1").stat().st_mode & 0o077 == 0


# -- handles


def test_every_path_to_a_directory_leads_to_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "runs", tmp_path / "link", Path("runs"), tmp_path / "link" / ".." / "runs"]

    directories = [record_directory.record_directory(path) for path in paths]

    assert all(directory is directories[0] for directory in directories)


def test_a_directory_made_again_under_the_same_path_has_nothing_of_the_old_one(tmp_path: Path) -> None:
    directory = tmp_path / "runs"
    kept = []
    for number in range(5):
        directory.mkdir()
        store = FileRunStore(directory)
        kept.append(store)
        assert store.create(a_run("r1", stage=str(number))) == store.find("r1")
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
        other = tmp_path / f"other-{number}"
        other.mkdir()  # may well be given the number of the one that was removed
        kept.append(FileRunStore(other))
        assert kept[-1].find("r1") is None


def test_of_many_threads_with_two_handles_one_wins_each_version(tmp_path: Path) -> None:
    stores = [FileRunStore(tmp_path), FileRunStore(tmp_path)]
    run = stores[0].create(a_run("r1"))
    wins: list[int] = []
    barrier = threading.Barrier(4)

    def work(store: FileRunStore) -> None:
        barrier.wait()
        for _ in range(30):
            found = store.find("r1")
            assert found is not None
            if store.compare_and_set(found, following(found)):
                wins.append(found.version)

    threads = [threading.Thread(target=work, args=(stores[number % 2],)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = stores[1].find("r1")
    for store in stores:
        store.close()

    assert last is not None
    assert sorted(wins) == list(range(run.version, last.version))


def test_closing_one_handle_leaves_the_other_and_a_call_after_closing_does_nothing(tmp_path: Path) -> None:
    first, second = FileRunStore(tmp_path), FileRunStore(tmp_path)
    first.close()
    first.close()

    with pytest.raises(Closed):
        first.create(a_run("r1"))
    assert second.find("r1") is None
    assert a_run("r1") == second.create(a_run("r1"))
    second.close()


def test_closing_waits_for_the_call_that_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileRunStore(tmp_path)
    real, inside, go_on = os.fsync, threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        inside.set()
        assert go_on.wait(timeout=30)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    writer = threading.Thread(target=lambda: store.create(a_run("r1")))
    writer.start()
    assert inside.wait(timeout=30)
    closer = threading.Thread(target=store.close)
    closer.start()
    closer.join(timeout=0.05)
    waited = closer.is_alive()
    go_on.set()
    writer.join()
    closer.join()

    assert waited
    assert path_of(tmp_path, "r1").exists()


def test_a_long_listing_lets_writers_in(store: FileRunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        store.create(a_run(f"r{number}"))
    real = store._read_if_resumable
    seen: list[Run | None] = []

    def reading(name: str, run_id: str, tenant_id: str) -> Run | None:
        if not seen:
            ended = a_run("r7", version=1, status=RunStatus.CANCELLED)
            assert store.compare_and_set(a_run("r7"), ended)
        seen.append(real(name, run_id, tenant_id))
        return seen[-1]

    monkeypatch.setattr(store, "_read_if_resumable", reading)
    found = {run.run_id for run in store.find_resumable("tenant").items}

    assert {f"r{number}" for number in range(20) if number != 7} <= found
