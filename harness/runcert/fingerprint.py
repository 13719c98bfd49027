"""Which kit, on which machine: digests and versions for certificates."""

from __future__ import annotations

import hashlib
import platform
import sqlite3
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["environment", "kit_digest", "kit_version"]

_PACKAGES = ("runcert", "runcert_contract", "runcert_reference", "runcert_suites")
_NAMED = ("aiosqlite", "alembic", "hypothesis", "pytest", "sqlalchemy")


@cache
def kit_digest() -> str:
    """Give a digest of every file of the kit, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        spec = find_spec(package)
        for location in sorted(spec.submodule_search_locations or ()) if spec is not None else ():
            for path in sorted(Path(location).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    digest.update(f"{package}/{path.relative_to(location).as_posix()}\0".encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


def kit_version() -> str:
    """Give the version of the installed kit."""
    return version("runcert")


def environment() -> dict[str, str]:
    """Give the versions of what a run depends on."""
    found = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
        "sqlite": sqlite3.sqlite_version,
    }
    for name in _NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
