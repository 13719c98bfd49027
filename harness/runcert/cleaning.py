"""What killed runs left on a backend of the user's: found by the marks of the kit, and removed when whoever made it is gone.

How to look at a backend is known to whoever knows its URLs: the entry points ``runcert.leftovers``, by scheme, each a function that
takes the URL and gives the :class:`Leftover` objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.metadata import entry_points

from runcert.marks import Maker, Mark
from runcert.masking import without_passwords
from runcert.problems import UsageProblem, describe_error
from runcert.targets import load_entry

__all__ = ["Cleaned", "Leftover", "clean", "leftovers_at"]


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something on a backend that has the name of something of the kit's.

    Attributes:
        kind: what it is there: schema, database, keys, directory, rows.
        name: its name.
        mark: its mark; None where it has none.
        remove: removes it, unless its mark has changed.
    """

    kind: str
    name: str
    mark: Mark | None
    remove: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of one of them.

    Attributes:
        kind: what it is.
        name: its name.
        done: ``removed``, ``would be removed``, ``kept`` or ``failed``.
        why: the reason, as half a sentence.
        settled: False where something of the kit's may still have to be removed.
    """

    kind: str
    name: str
    done: str
    why: str
    settled: bool = True


def leftovers_at(url: str) -> list[Leftover]:
    """Find what has a name of the kit's at a URL.

    Raises:
        UsageProblem: the scheme is not known, or the backend cannot be reached.
    """
    scheme = url.partition("://")[0]
    entries = {entry.name: entry for entry in entry_points(group="runcert.leftovers")}
    if "://" not in url or scheme not in entries:
        raise UsageProblem(
            f"{without_passwords(url)} is no URL that can be cleaned; expected one of {', '.join(f'{name}://' for name in sorted(entries))}"
        )
    find: Callable[[str], list[Leftover]] = load_entry(entries[scheme], url)
    return find(url)


def clean(url: str, hosts: Collection[str], *, dry_run: bool) -> list[Cleaned]:
    """Remove what runs that are over left at a URL.

    Args:
        url: a directory, a database or a server.
        hosts: machines on which no run is going on, so that what was made there can be removed as well.
        dry_run: only say what would be removed.

    Raises:
        UsageProblem: the URL is none that can be cleaned, or cannot be reached.
    """
    return [_cleaned(leftover, hosts, dry_run=dry_run) for leftover in leftovers_at(url)]


def _cleaned(leftover: Leftover, hosts: Collection[str], *, dry_run: bool) -> Cleaned:
    kind, name, mark = leftover.kind, leftover.name, leftover.mark
    if mark is None:
        return Cleaned(kind, name, "kept", "has no mark of the kit, so it is somebody else's")
    maker = f"made by process {mark.process} on {mark.host}"
    if mark.maker is Maker.AT_WORK:
        return Cleaned(kind, name, "kept", f"{maker}, which is still at work")
    if mark.maker is Maker.ELSEWHERE and mark.host not in hosts:
        why = f"{maker}, which cannot be looked at from here; if no run goes on there: --host {mark.host}"
        return Cleaned(kind, name, "kept", why, settled=False)
    if dry_run:
        return Cleaned(kind, name, "would be removed", f"{maker}, which is gone", settled=False)
    try:
        leftover.remove()
    except Exception as error:  # noqa: BLE001  # whatever the backend raises: the others are still to be removed
        return Cleaned(kind, name, "failed", f"{maker}; {without_passwords(describe_error(error))}", settled=False)
    return Cleaned(kind, name, "removed", f"{maker}, which is gone")
