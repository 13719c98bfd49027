"""One directory of records, one file a record: reading, and writing so that a record is always old or new, and whole.

A write goes: a temporary of its own in the same directory, all bytes, fsync of the file, rename, fsync of the directory.  Only then is
it acknowledged.  Nothing here knows what a record is.

Every handle of a process that is opened on a directory shares one :class:`RecordDirectory` and holds its lock for each read and each
read-and-write.  There are no lock files, so nothing is promised between processes; still a new record is put in its place without
replacing one that appeared there.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runcert_contract import CorruptRecord, Misconfigured, OutcomeUnknown, StoreError, StoreUnavailable
from runcert_reference.file_names import is_temporary, temporary_name

__all__ = ["NameTaken", "RecordDirectory", "record_directory"]

LEFTOVER_SECONDS = 3600.0
"""From which age on a temporary belongs to nobody living: a write takes seconds.

A writer that slept for longer finds its temporary gone and fails before the rename; so a wrong guess costs a retry, never a record.
"""

REPLACE_SECONDS = 1.0
"""How long a rename is tried again while another program (a scanner, an indexer) holds the file open, as Windows lets it."""

_LONGEST_PAUSE = 0.1
_MODE = 0o600  # records hold attempt tokens
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 20

_WITHOUT_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP})
_SET_UP_WRONGLY = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTSUP}
)
_NO_RECORD = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO})


class NameTaken(Exception):
    """A file of that name appeared before a new one could take it."""


class RecordDirectory:
    """The files of one directory; every method is called with :attr:`lock` held.

    Args:
        path: the directory; it has to exist.

    Raises:
        OSError: it cannot be read, or the system cannot make its entries durable.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self._prefix = os.path.join(path, "")
        self._identity = _identity(path.stat())
        self._in_doubt: set[str] = set()
        self._remove_leftovers()
        self._sync()  # what a killed writer had renamed and not synced is visible, so it has to be made durable first

    # -- reading

    def read(self, name: str) -> bytes | None:
        """Give the content of a file; None only where there certainly is none.

        Raises:
            StoreError: it cannot be read, or the directory is not there.
        """
        if name in self._in_doubt:
            self._settle(name)
        return self._content(name)

    def names(self) -> list[str]:
        """Give the name of everything in the directory.

        Raises:
            StoreError: the directory cannot be read.
        """
        with failures(f"the directory {self.path}"):
            self._check_identity()
            return os.listdir(self.path)  # names, without a path made of each

    def _content(self, name: str) -> bytes | None:
        with failures(f"the file {name}"):
            try:
                descriptor = os.open(self._prefix + name, _READ)
            except FileNotFoundError:
                self._check_identity()
                return None
            except OSError as error:
                if error.errno in _NO_RECORD:
                    raise _NotAFile(name) from error
                raise
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise _NotAFile(name)
                return _read_all(descriptor)
            finally:
                os.close(descriptor)

    def _check_identity(self) -> None:
        """Insist that the directory is the one that was opened, so that one which was moved or unmounted is not an empty one.

        Raises:
            StoreUnavailable: it is not.
        """
        try:
            same = _identity(self.path.stat()) == self._identity
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreUnavailable(f"the directory {self.path} was moved or unmounted; bring it back, or open a new handle")

    # -- writing

    def create(self, name: str, content: bytes) -> None:
        """Write a new file.

        Raises:
            NameTaken: a file of that name appeared; it is left as it is.
            StoreError: the system refused; OutcomeUnknown where the file is there but may not survive a loss of power.
        """
        self._write(name, content, _put_new)

    def replace(self, name: str, content: bytes) -> None:
        """Replace the content of a file.

        Raises:
            StoreError: the system refused; OutcomeUnknown where the new content is there but may not survive a loss of power.
        """
        self._write(name, content, os.replace)

    def _write(self, name: str, content: bytes, put: Callable[[str, str], None]) -> None:
        with failures(f"the file {name}"):
            try:
                self._put(name, content, put)
            except _NotSynced as error:
                raise OutcomeUnknown(
                    f"the file {name} was written, but not made durable ({error}); read the run before you go on"
                ) from error

    def _put(self, name: str, content: bytes, put: Callable[[str, str], None]) -> None:
        temporary, target = self._prefix + temporary_name(), self._prefix + name
        try:
            written = _write_whole(temporary, content)
            self._in_doubt.add(name)
            try:
                _patiently(put, temporary, target)
            except (OSError, NameTaken):
                # Some file systems report an error for a rename that they did: what lies there decides.
                if not _is(target, written):
                    self._in_doubt.discard(name)
                    raise
        finally:
            with suppress(OSError):
                os.unlink(temporary)
        try:
            self._sync()
        except OSError as error:
            raise _NotSynced(error.strerror or str(error)) from error
        self._in_doubt.discard(name)

    def _settle(self, name: str) -> None:
        """Make durable what an earlier write left in doubt, before anybody is told of it.

        The file is written anew: after a failed fsync a second one may report success for bytes that were dropped.

        Raises:
            StoreUnavailable: that failed too.
        """
        try:
            content = self._content(name)
            if content is None:
                self._sync()
            else:
                self._put(name, content, os.replace)
        except (OSError, _NotSynced) as error:
            self._in_doubt.add(name)
            raise StoreUnavailable(
                f"the file {name} holds a write that could not be made durable ({error}); try again when the disk is sound"
            ) from error
        self._in_doubt.discard(name)

    def _sync(self) -> None:
        """Make the entries of the directory durable; Windows has no such call and does it with the rename."""
        if os.name == "nt":
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # -- leftovers

    def _remove_leftovers(self) -> None:
        """Remove the temporaries of writers that were killed: those older than any living write can be."""
        oldest = time.time() - LEFTOVER_SECONDS
        with os.scandir(self.path) as entries:
            for entry in entries:
                if is_temporary(entry.name):
                    with suppress(OSError):  # one that cannot be removed does no harm, and may be gone already
                        if entry.stat(follow_symlinks=False).st_mtime < oldest:
                            os.unlink(entry.path)


class _NotSynced(Exception):
    """A file is in its place, and its directory could not be synced."""


class _NotAFile(Exception):
    """Something that is no regular file has the name of a record."""


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is(path: str | Path, identity: tuple[int, int]) -> bool:
    """Say whether a file is at ``path``; True also where nobody can tell, because then the write is in doubt."""
    try:
        return _identity(os.lstat(path)) == identity
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _read_all(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, _CHUNK):
        parts.append(part)
    return b"".join(parts)


def _write_whole(path: str, content: bytes) -> tuple[int, int]:
    """Write a new file to its last byte and onto the disk, and give its identity."""
    descriptor = os.open(path, _WRITE, _MODE)
    try:
        rest = memoryview(content)
        while rest:
            taken = os.write(descriptor, rest)
            if taken == 0:
                raise OSError(errno.EIO, "the system takes no more bytes")
            rest = rest[taken:]
        os.fsync(descriptor)
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _put_new(temporary: str, target: str) -> None:
    """Give a file its name unless the name is taken.

    Raises:
        NameTaken: it is taken.
    """
    try:
        if os.name == "nt":
            os.rename(temporary, target)  # there it refuses a name that is taken
        else:
            os.link(temporary, target)
    except FileExistsError as error:
        raise NameTaken(target) from error
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if os.path.lexists(target):
            raise NameTaken(target) from error
        os.replace(temporary, target)


def _patiently(put: Callable[[str, str], None], temporary: str, target: str) -> None:
    """Try again for a while when somebody holds the file open."""
    deadline = time.monotonic() + REPLACE_SECONDS
    pause = 0.005
    while True:
        try:
            put(temporary, target)
        except PermissionError as error:
            if time.monotonic() + pause > deadline:
                raise OSError(errno.EBUSY, "another program holds it open") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            return


@contextmanager
def failures(what: str) -> Iterator[None]:
    """Let no error of the system out of the body.

    Args:
        what: what the body works on, for messages.

    Raises:
        StoreError: what the error of the system means; nothing was written.
    """
    try:
        yield
    except _NotAFile as error:
        raise CorruptRecord(f"{what} is no regular file; put back the file from a backup") from error
    except OSError as error:
        raise _meaning(error)(f"{what}: {_words(error)}") from error


def _meaning(error: OSError) -> type[StoreError]:
    return Misconfigured if error.errno in _SET_UP_WRONGLY else StoreUnavailable


def _words(error: OSError) -> str:
    if error.errno in _SET_UP_WRONGLY:
        return f"{error.strerror}; give the store a directory that it may read, write and sync"
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return f"{error.strerror}; make room and try again"
    if error.errno == errno.EBUSY:
        return f"{error.strerror}; close it and try again"
    return f"{error.strerror or error}; try again when the disk is sound"


# -- one for each directory


_directories: weakref.WeakValueDictionary[str, RecordDirectory] = weakref.WeakValueDictionary()
_directories_lock = threading.Lock()


def record_directory(path: Path) -> RecordDirectory:
    """Give the one :class:`RecordDirectory` of this process for a directory, by whatever path it is named.

    Raises:
        StoreError: there is no such directory, or it cannot be used.
    """
    with _directories_lock, failures(f"the directory {path}"):
        if not path.exists():
            raise Misconfigured(f"the directory {path} does not exist; make it first")
        resolved = path.resolve(strict=True)
        identity = _identity(resolved.stat())
        for known in _directories.values():
            # Links, mounts and case give a directory several paths; and the number of a removed one is given out again.
            if known._identity == identity and _is(known.path, identity):
                return known
        if not resolved.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        made = _directories[str(resolved)] = RecordDirectory(resolved)
        return made
