"""Accounts of this machine: as root, servers that refuse root run as somebody who may do nothing."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Account", "is_reachable", "unprivileged_account"]

_CANDIDATES = ("nobody", "daemon", "postgres", "mysql")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, by number."""

    name: str
    user: int
    group: int


def unprivileged_account() -> Account | None:
    """Give the account for servers that refuse root; None where this process is not root and needs no other.

    Raises:
        LookupError: this process is root, and the machine has none of the usual unprivileged accounts.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    import pwd  # noqa: PLC0415  # not on Windows

    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise LookupError(f"this process is root and none of the accounts {', '.join(_CANDIDATES)} exists")


def is_reachable(path: Path, account: Account | None) -> bool:
    """Say whether an account may read a file, or pass through a directory, and through every directory above it.

    Args:
        path: a file or directory.
        account: the account; None for this process itself.
    """
    if account is None:
        return os.access(path, os.R_OK)
    try:
        real = path.resolve(strict=True)
        above = all(_permits(parent, account, 1) for parent in real.parents)
        return above and _permits(real, account, 1 if real.is_dir() else 4)
    except OSError:
        return False


def _permits(path: Path, account: Account, wanted: int) -> bool:
    """Compare the mode of a file with what is wanted: 4 to read, 1 to pass through or run."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == account.user:
        mode >>= 6
    elif status.st_gid == account.group:
        mode >>= 3
    return mode & wanted == wanted
