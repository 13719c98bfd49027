"""RUN-PATH: an identifier is never read as a path.

The kit gives each namespace a directory ``<root>/outer/<namespace>``; everything else below the root is outside.  Files are
planted there under the names that the hostile ids would reach, so that reading, replacing and deleting show as well.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from runcert.cases import Case
from runcert.checks import Violation, clause
from runcert.wording import operation_in_words, shortened
from runcert_contract import (
    Capability,
    CompareAndSet,
    Create,
    Find,
    FindResumable,
    InvalidIdentifier,
    Namespaces,
    Operation,
    Raised,
    RunStatus,
)
from runcert_suites.run_store.identifiers import fields_and_forms
from runcert_suites.run_store.judging import Judge
from runcert_suites.run_store.records import a_run, moved, updated

_SETTLE_SECONDS = 0.5
_SUFFIXES = ("", ".json", ".db", ".lock", ".tmp", ".txt")


@clause("RUN-PATH-1", isolated=True)
class NothingOutsideTheRootChanges:
    """ids that look like paths (../x, absolute, drive, UNC, NUL, colon, symlinks) change nothing outside the root."""

    def test_on_every_method_and_field(self, case: Case) -> None:
        """Each hostile id, in each field, on each method: what lies outside the store's directory stays as it is.

        At the quick depth it is looked at before and after the call that ends the run, not after each call.
        """
        handle = case.open()
        outside = _Outside(case)
        before = outside.seen()
        count = 0
        for form, field in fields_and_forms(case, outside.hostile_forms()):
            judge = Judge(case)
            calls = _calls(case, field, _name(case, form))
            first_look = case.budget(len(calls) - 2, 0, 0)
            for number, operation in enumerate(calls):
                judge.call(handle, operation)
                if number >= first_look:
                    _same_outside(before, outside.seen(), operation, alone=first_look == 0)
                count += 1
        case.evidence |= {"calls": count, "files planted": len(before)}

    def test_when_handles_are_closed_and_opened(self, case: Case) -> None:
        """Nothing outside changes either when what was accepted is written out, read back, and listed."""
        handle = case.open()
        outside = _Outside(case)
        before = outside.seen()
        judge = Judge(case)
        names = [_name(case, form) for form in outside.hostile_forms()]
        for name in names:
            judge.create(handle, a_run(case, run_id=name))
            judge.create(handle, a_run(case, tenant_id=name))
        again = case.reopen()
        _same_outside(before, outside.seen(), None)
        for name in names:
            again.call(Find(name))
        _same_outside(before, outside.seen(), None)


@clause("RUN-PATH-2", isolated=True)
class ARefusalChangesNothingInside:
    """a refused id that looks like a path changes nothing inside the root."""

    def test_on_every_method_and_field(self, case: Case) -> None:
        """After each refusal the store's directory has the same files, and (where the adapter counts) the same contents."""
        handle = case.open()
        outside = _Outside(case)
        judge = Judge(case)
        judge.accepted(judge.create(handle, a_run(case)), "create of a fresh id")
        inside = _Inside(case)
        before = inside.settled()
        refused = calls = 0
        for form, field in fields_and_forms(case, outside.hostile_forms()):
            judge = Judge(case)
            for operation in sorted(_calls(case, field, _name(case, form)), key=_is_no_create):
                outcome = judge.call(handle, operation)
                calls += 1
                if not isinstance(outcome, Raised) or not isinstance(outcome.error, InvalidIdentifier):
                    before = inside.settled()
                    break  # this name is kept, by every method (ID-6)
                refused += 1
                inside.compare(before, operation)
        case.evidence |= {"calls": calls, "refused": refused, "inventory compared": case.has_hook("inventory")}


class _Outside:
    """What lies below the root of a namespace and does not belong to the store."""

    def __init__(self, case: Case) -> None:
        self._case = case
        namespace = case.namespace()
        self._root = namespace.root
        self._store = namespace.lab.directory
        self._clock = namespace.lab.clock.file
        self._links = self._plant_links()
        self._plant_files()

    def _plant_files(self) -> None:
        for directory in (self._root, self._root / "outer", self._root / "elsewhere"):
            directory.mkdir(exist_ok=True)
            for suffix in _SUFFIXES:
                (directory / f"planted{suffix}").write_text("planted", encoding="ascii")

    def _plant_links(self) -> list[str]:
        """Put a symbolic link to the outside into the store's directory, where the platform allows it."""
        link = self._store / "link"
        try:
            link.symlink_to(self._root / "outer", target_is_directory=True)
        except (OSError, NotImplementedError):
            self._case.evidence["symbolic links"] = False
            return []
        return ["link/planted", "link/{}", "link", "./link/{}"]

    def hostile_forms(self) -> list[str]:
        """Give hostile ids: those of planted files as they are, the others with {} where a fresh part goes."""
        elsewhere = self._root / "elsewhere"
        forms = [
            "../planted", "../{}", "../../planted", "../../{}", "../../elsewhere/{}", "x/../../{}", "../{}/x", "..\\{}",
            "../planted.json", f"{elsewhere}/planted", f"{elsewhere}/{{}}", f"//{elsewhere}/{{}}", f"file://{elsewhere}/{{}}",
            "{}/x", "/{}", "./{}", "{}/", "{}/.", "{}/..", "..", ".", "../", "~/{}", "~{}", "$HOME/{}", "C:\\{}", "C:{}",
            "\\\\server\\share\\{}", "\\\\?\\C:\\{}", "{}:stream", "{}\x00", "{}\x00/../planted", "../planted\x00{}",
            "%2e%2e/{}", "%2e%2e%2f{}", "..%2f{}", "\u2025/{}", "\uff0e\uff0e/{}", "..\uff0f{}", "-{}", "{}|x", "{}\n../planted",
            *self._links,
        ]  # fmt: skip
        if self._case.claims.namespaces is Namespaces.SHARED:
            return [form for form in forms if "{}" in form]  # an earlier run on the same backend may have used the others
        return forms

    def seen(self) -> dict[str, str]:
        """Give what is there: for each path below the root, outside the store's directory, its kind and content."""
        found: dict[str, str] = {}
        for directory, names, files in os.walk(self._root):
            here = Path(directory)
            names[:] = [name for name in names if here / name != self._store]
            for name in (*names, *files):
                path = here / name
                if path != self._clock:
                    found[str(path.relative_to(self._root))] = _content(path)
        return found


class _Inside:
    """What lies in the store's own directory, by name, and what the adapter counts."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._directory = case.namespace().lab.directory

    def seen(self) -> tuple[frozenset[str], dict[str, int]]:
        """Give the names below the directory, and the counts where there is the hook."""
        found = {
            os.path.relpath(os.path.join(directory, name), self._directory)  # noqa: PTH118  # names that are not even UTF-8
            for directory, names, files in os.walk(self._directory)
            for name in (*names, *files)
        }
        return frozenset(found), self._case.inventory() if self._case.has_hook("inventory") else {}

    def settled(self) -> tuple[frozenset[str], dict[str, int]]:
        """Give what is there once it stays the same, because a backend may still be busy with an accepted write."""
        before = self.seen()
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            after = self.seen()
            if after == before:
                break
            before = after
        return before

    def compare(self, before: tuple[frozenset[str], dict[str, int]], operation: Operation) -> None:
        """Insist that what is there is what was there, for good; a file that comes and goes by itself is no change.

        Raises:
            Violation: it is not.
        """
        deadline = time.monotonic() + _SETTLE_SECONDS
        after = self.seen()
        while after != before and time.monotonic() < deadline:
            time.sleep(0.02)
            after = self.seen()
        if after != before:
            new, gone = sorted(after[0] - before[0]), sorted(before[0] - after[0])
            counts = f"; counted {after[1]}" if after[1] != before[1] else ""
            raise Violation(
                f"the refused {operation_in_words(operation)} to leave the store's directory as it was"
                + (f" (counted {before[1]})" if counts else ""),
                shortened(f"new: {new}; gone: {gone}{counts}"),
            )


def _name(case: Case, form: str) -> str:
    return form.replace("{}", case.fresh_id("p"))


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "directory"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return type(error).__name__


def _same_outside(before: dict[str, str], after: dict[str, str], operation: Operation | None, *, alone: bool = True) -> None:
    """Insist that nothing outside the store's directory changed.

    Raises:
        Violation: something did.
    """
    if after == before:
        return
    what = "closing, opening and reading" if operation is None else operation_in_words(operation)
    what = what if alone else f"the calls up to {what}"
    changes = {
        "created": sorted(after.keys() - before.keys()),
        "deleted": sorted(before.keys() - after.keys()),
        "changed": sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    }
    found = "; ".join(f"{kind} {', '.join(names)}" for kind, names in changes.items() if names)
    raise Violation(f"{what} to leave everything outside the store's own directory as it was", f"outside it: {found}")


def _is_no_create(operation: Operation) -> bool:
    return not isinstance(operation, Create)


def _calls(case: Case, field: str, name: str) -> list[Operation]:
    """Give a call of every method that takes a hostile name as the identifier ``field``, updates and the end included."""
    run = a_run(case, **{field: name})
    following = updated(run, stage="updated")
    calls: list[Operation] = [Create(run), CompareAndSet(run, following)]
    if field == "run_id":
        calls = [Find(name), CompareAndSet(run, following), *calls, Find(name)]
    if field == "tenant_id" and case.claims.claims(Capability.ENUMERATES):
        calls = [FindResumable(name), *calls, FindResumable(name)]
    return [*calls, CompareAndSet(following, moved(following, RunStatus.CANCELLED))]
