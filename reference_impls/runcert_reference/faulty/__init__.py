"""Stores that must not pass, each for one reason.

One module per topic.  :func:`run_stores` gives every one of them; the entry point ``runcert.faulty`` names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from runcert.faulty import FaultyStore

__all__ = ["run_stores"]


def run_stores() -> tuple[FaultyStore, ...]:
    """Give every faulty run store, by module and line."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = [module for name in names if (module := _module(name)) is not None]
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, FaultyStore))


def _module(name: str) -> ModuleType | None:
    """Import one topic; None where it stands on a server or database whose driver is not installed."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("redis", "sqlalchemy"):
            raise
        return None
