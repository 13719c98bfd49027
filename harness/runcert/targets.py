"""From the text on the command line to an adapter.

A target is, in this order: a URL (contains ``://``), a file (``stores.py`` or ``stores.py:attribute``), an attribute of a
module (``package.module:attribute``), or a name that an installed package registered under ``runcert.adapters``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from runcert.adapters import Adapter
from runcert.masking import remember_password, without_passwords
from runcert.problems import UsageProblem, describe_error

__all__ = ["Target", "adapter_names", "load_entry", "resolve", "split_file_target"]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to certify.

    Attributes:
        text: how the user named it, passwords removed.
        spec: how another process resolves it to exactly this adapter.
        adapter: the adapter.
    """

    text: str
    spec: str
    adapter: Adapter

    @property
    def name(self) -> str:
        """The name of the target in reports and directories."""
        return self.adapter.target


def adapter_names() -> tuple[str, ...]:
    """Give the names that installed packages registered, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group="runcert.adapters")}))


def resolve(text: str) -> tuple[Target, ...]:
    """Find the adapters that ``text`` names; a file without an attribute names all adapters in it.

    Args:
        text: a target as typed.

    Raises:
        UsageProblem: there is no such target, or loading it failed; the message says what to do.
    """
    if "://" in text:
        return (_from_url(text),)
    file = split_file_target(text)
    if file is not None:
        return _from_file(*file)
    if ":" in text:
        module_name, _, attribute = text.partition(":")
        return (_from_module(text, module_name, attribute),)
    return (_from_name(text),)


def split_file_target(text: str) -> tuple[Path, str | None] | None:
    """Split ``stores.py:attribute`` into path and attribute; None when ``text`` names no file."""
    if text.endswith(".py"):
        return Path(text), None
    path, separator, attribute = text.rpartition(":")
    return (Path(path), attribute) if separator and path.endswith(".py") else None


def check_unique(names: Iterable[str]) -> None:
    """Refuse two targets of one name, which could not be told apart in a report.

    Args:
        names: the name of each target.

    Raises:
        UsageProblem: a name is used twice.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageProblem(
                f"the target name {name!r} is used more than once; give one adapter another name with @adapter(target=...)"
            )


def _from_url(text: str) -> Target:
    scheme = remember_password(text).partition("://")[0]
    entries = {entry.name: entry for entry in entry_points(group="runcert.url_schemes")}
    if scheme not in entries:
        known = ", ".join(sorted(entries)) or "none yet"
        near = [name for name in entries if name.partition("+")[0] == scheme] or (["redis"] if scheme == "valkey" else [])
        meant = f"did you mean {' or '.join(sorted(near))}? " if near and set(near) <= set(entries) else ""
        shown = without_passwords(text)
        raise UsageProblem(
            f"no reference store for the URL {shown}: scheme {scheme!r} is not known (known schemes: {known}); {meant}"
            "write an adapter of a few lines and name its file instead"
        )
    make = load_entry(entries[scheme], text)
    return Target(without_passwords(text), text, _as_adapter(make(text), without_passwords(text)))


def _from_file(path: Path, attribute: str | None) -> tuple[Target, ...]:
    module = _import_file(path)
    if attribute is not None:
        return (Target(f"{path}:{attribute}", f"{path.resolve()}:{attribute}", _attribute(module, attribute, str(path))),)
    found: dict[str, Adapter] = {}
    for name, value in vars(module).items():
        own = isinstance(value, Adapter) and value.open.__module__ == module.__name__
        if own and all(value is not known for known in found.values()):  # a second name for one adapter names nothing new
            found[name] = value
    if not found:
        raise UsageProblem(f"{path} holds no adapter; decorate the function that opens your store with @adapter(RunStore)")
    return tuple(Target(f"{path}:{name}", f"{path.resolve()}:{name}", value) for name, value in found.items())


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageProblem(f"there is no file {path} (looked in {Path.cwd()})")
    name = "runcert_target_" + "".join(c if c.isalnum() else "_" for c in str(path.resolve().with_suffix("")))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageProblem(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _append_to_path(path.resolve().parent)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _import_problem(str(path), error) from error
    return module


def _append_to_path(directory: Path) -> None:
    """Let the adapter import what lies beside it; at the end, so that nothing there shadows an installed module."""
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def _from_module(text: str, module_name: str, attribute: str) -> Target:
    _append_to_path(Path.cwd())
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        raise _import_problem(module_name, error) from error
    return Target(text, text, _attribute(module, attribute, module_name))


def _import_problem(name: str, error: BaseException) -> UsageProblem:
    if isinstance(error, (KeyboardInterrupt, UsageProblem)):
        raise error
    if isinstance(error, SyntaxError):
        return UsageProblem(f"{name} has a syntax error in line {error.lineno}: {error.msg}")
    if isinstance(error, ModuleNotFoundError):
        return UsageProblem(
            f"{name} cannot be imported: there is no module {error.name!r}; install what provides it, or mind the spelling"
        )
    return UsageProblem(f"{name} cannot be imported: {without_passwords(describe_error(error))}{_line_of(name, error)}")


def _line_of(name: str, error: BaseException) -> str:
    """Say in which line of the adapter's own file an import failed, where that is known."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == Path(name).name
    ]
    return f" (line {lines[-1]})" if lines else ""


def _attribute(module: ModuleType, name: str, where: str) -> Adapter:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is None:
        found = [key for key, value in vars(module).items() if isinstance(value, Adapter)]
        hint = f"; it holds the adapters {', '.join(found)}" if found else "; it holds no adapter"
        raise UsageProblem(f"{where} has no attribute {name!r}{hint}")
    return _as_adapter(value, f"{where}:{name}")


def _as_adapter(value: object, where: str) -> Adapter:
    if isinstance(value, Adapter):
        return value
    inner = getattr(value, "adapter", None)
    if isinstance(inner, Adapter):
        return inner
    raise UsageProblem(f"{where} is {type(value).__name__}, not an adapter; decorate a function with @adapter(RunStore)")


def _from_name(text: str) -> Target:
    entries = [entry for entry in entry_points(group="runcert.adapters") if entry.name == text]
    if not entries:
        known = ", ".join(adapter_names()) or "none"
        raise UsageProblem(
            f"there is no target {text!r}; registered names are {known}; a file is named path/to/file.py, an attribute module:attribute"
        )
    if len({entry.value for entry in entries}) > 1:
        owners = ", ".join(sorted(entry.value for entry in entries))
        raise UsageProblem(
            f"the target name {text!r} is registered more than once ({owners}); name the one you mean as module:attribute"
        )
    return Target(text, text, _as_adapter(load_entry(entries[0], text), text))


def load_entry(entry: EntryPoint, text: str) -> Any:
    """Load what an installed package registered.

    Args:
        entry: the entry point.
        text: what the user typed, for messages.

    Raises:
        UsageProblem: it cannot be loaded; where an extra of the kit is missing, the message names it.
    """
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        way_out = f"pip install 'runcert[{extra}]'" if extra else "install what provides it"
        raise UsageProblem(
            f"target {without_passwords(text)!r} needs the module {error.name!r}, which is not installed: {way_out}"
        ) from error
    except Exception as error:
        raise UsageProblem(f"target {without_passwords(text)!r} cannot be loaded: {describe_error(error)}") from error


_EXTRAS = {
    "sqlalchemy": "sql",
    "alembic": "sql",
    "aiosqlite": "sql",
    "psycopg": "sql",
    "pymysql": "sql",
    "redis": "kv",
}
