"""The adapters of the reference store in files: in the directory of the kit, and in one that the user names by a URL."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from runcert import Adapter, EnumeratesRuns, Lab, Leftover, Mark, UsageProblem, adapter
from runcert_reference.claimed_options import claimed_options
from runcert_reference.file_names import identifier_of, is_temporary, name_of
from runcert_reference.files import CLAIMS, FileRunStore, retire_run

__all__ = ["file", "file_at_url", "leftovers_at_url", "leftovers_in", "make_namespace", "remove_namespace"]


def damage_file(directory: Path, run_id: str, how: str) -> None:
    """Make the file of a run unreadable, in place: ``how`` is undecodable, cut or empty."""
    path = directory / str(name_of(run_id))
    content = path.read_bytes()
    path.write_bytes({"undecodable": b"\xff\xfe{not json", "cut": content[: len(content) // 2], "empty": b""}[how])


def count_files(directory: Path) -> dict[str, int]:
    """Count what lies in a directory, by kind."""
    return {"records": 0, "temporaries": 0, "other files": 0, **Counter(_kind_of(path.name) for path in directory.iterdir())}


def _kind_of(name: str) -> str:
    if is_temporary(name):
        return "temporaries"
    return "other files" if identifier_of(name) is None else "records"


def away(directory: Path) -> Iterator[None]:
    """Move a directory away, as a disk that is unmounted, and back."""
    elsewhere = directory.with_name(f"{directory.name}-away")
    directory.rename(elsewhere)
    yield
    elsewhere.rename(directory)


def options(directory_of: Callable[[Lab], Path]) -> dict[str, Any]:
    """Give the claims and hooks of the store in files.

    Args:
        directory_of: gives the directory of a namespace.
    """
    return {
        **claimed_options(CLAIMS),
        "damage": lambda lab, _, key, how: damage_file(directory_of(lab), key, how),
        "inventory": lambda lab: count_files(directory_of(lab)),
        "purge": lambda lab, _, key: retire_run(directory_of(lab), key),
        "outage": lambda lab: away(directory_of(lab)),
    }


@adapter(EnumeratesRuns, **options(lambda lab: lab.directory))
def file(lab: Lab) -> Iterator[EnumeratesRuns]:
    """Open the reference store in files."""
    store = FileRunStore(lab.directory)
    yield store
    store.close()


# -- file:///path


def file_at_url(url: str) -> Adapter:
    """Give the adapter of a store in files below a directory of the user's.

    Each namespace is a directory of its own there, which the kit makes, marks as its own and removes; nothing else is touched.

    Args:
        url: ``file:///path/to/an/existing/directory``.

    Raises:
        UsageProblem: it names no directory.
    """
    root = _directory_at(url)

    def directory_of(lab: Lab) -> Path:
        return root / lab.namespace

    @adapter(
        EnumeratesRuns,
        target=f"file-{re.sub('[^A-Za-z0-9._-]+', '-', str(root)).strip('-')}".rstrip("-"),
        prepare=partial(make_namespace, root),
        dispose=partial(remove_namespace, root),
        **options(directory_of),
    )
    def file_below(lab: Lab) -> Iterator[EnumeratesRuns]:
        store = FileRunStore(directory_of(lab))
        yield store
        store.close()

    return file_below


def _directory_at(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.startswith("/"):
        raise UsageProblem(f"{url}: a directory is named by its full path, file:///path/to/directory, without anything else")
    root = Path(url2pathname(parts.path))
    if not root.is_dir():
        what = "is no directory" if root.exists() else "does not exist"
        raise UsageProblem(f"{url}: {root} {what}; make a directory for the kit to work in and name that one")
    return root


_PREFIX = "rc_"
_MARK = "made-by-runcert.json"
_ROOM = 64 * 1024 * 1024
"""What a certification at the standard depth takes at most, in bytes."""


def make_namespace(root: Path, lab: Lab) -> dict[str, str]:
    """Make the directory of a namespace and mark it, so that it is removed by who made it and by nobody else.

    Args:
        root: the directory of the user's.
        lab: names the namespace.

    Returns:
        The mark, kept by the kit as ``lab.prepared``.

    Raises:
        UsageProblem: something of that name is there already, or the directory cannot be written.
    """
    directory = root / lab.namespace
    mark = Mark.new(lab.namespace).to_json()
    _insist_on_room(root)
    beside = _beside(directory)  # from the first moment there is a mark, also where a run is killed in between
    try:
        _write(beside, json.dumps(mark))
        directory.mkdir(mode=0o700)
    except FileExistsError as error:
        if directory.exists():
            _withdraw(beside)
        raise UsageProblem(
            f"{directory} is there already and not this run's; name another directory, or remove it yourself"
        ) from error
    except OSError as error:
        _withdraw(beside)
        raise _cannot_write(root, error) from error
    try:
        beside.rename(directory / _MARK)
    except OSError as error:
        _withdraw(beside)
        with suppress(OSError):
            directory.rmdir()
        raise _cannot_write(root, error) from error
    return mark


def remove_namespace(root: Path, lab: Lab) -> None:
    """Remove the directory of a namespace that :func:`make_namespace` made.

    Raises:
        RuntimeError: it does not have this run's mark.
    """
    directory = root / lab.namespace
    if not lab.namespace.startswith(_PREFIX) or _mark_in(directory) is None or _mark_in(directory) != lab.prepared:
        raise RuntimeError(f"{directory} does not have the mark of this run any more, so it is left as it is")
    shutil.rmtree(directory)


def _mark_in(directory: Path) -> object:
    return _read(directory / _MARK)


def _beside(directory: Path) -> Path:
    """Give the place of a mark whose directory is being made."""
    return directory.with_name(f"{directory.name}.{_MARK}")


def _read(file: Path) -> object:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None


def leftovers_in(root: Path) -> list[Leftover]:
    """Find the directories of namespaces below a directory, with a mark or without."""
    names = {path.name.removesuffix(f".{_MARK}") for path in root.iterdir() if path.name.startswith(_PREFIX)}
    return [_leftover(root / name) for name in sorted(names)]


def _leftover(directory: Path) -> Leftover:
    def found() -> Mark | None:
        mark = Mark.read(_mark_in(directory)) or Mark.read(_read(_beside(directory)))
        return mark if mark is not None and mark.namespace == directory.name else None

    def remove() -> None:
        if mark is None or found() != mark:
            raise RuntimeError(f"{directory} does not have that mark any more, so it is left as it is")
        if directory.exists():
            shutil.rmtree(directory)
        _beside(directory).unlink(missing_ok=True)

    mark = found()
    return Leftover("directory", str(directory), mark, remove)


def leftovers_at_url(url: str) -> list[Leftover]:
    """Find what killed runs left in a directory of the user's.

    Args:
        url: ``file:///path/to/an/existing/directory``.

    Raises:
        UsageProblem: it names no directory.
    """
    return leftovers_in(_directory_at(url))


def _insist_on_room(root: Path) -> None:
    try:
        usage = shutil.disk_usage(root)
    except OSError as error:
        raise _cannot_write(root, error) from error
    if usage.total > 0 and usage.free < _ROOM:
        raise UsageProblem(
            f"{root}: {usage.free // 1024:,} KiB are free, a run takes up to {_ROOM // 1024:,}; make room, or name another directory"
        )


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="ascii") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())


def _withdraw(mark: Path) -> None:
    """Remove a mark whose directory could not be made; on a disk that takes no writes there is none."""
    with suppress(OSError):
        mark.unlink()


def _cannot_write(root: Path, error: OSError) -> UsageProblem:
    return UsageProblem(f"{root} cannot be written ({error.strerror or error}); name a directory in which you may make others")
