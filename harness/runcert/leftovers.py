"""What a child process that was stopped could not remove: the namespaces that it had made on somebody's backend.

Each namespace is noted in its directory below the run's, once it is prepared; the note goes when the namespace is disposed of.  When
the run has ended, however it ended, the supervisor disposes of what is still noted, in a process of its own as a store is not to be
trusted: ``python -m runcert.leftovers DIRECTORY``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from runcert.lab import Lab
from runcert.targets import resolve

__all__ = ["dispose_of_leftovers", "note_namespace"]

_NOTE = "namespace.json"
_SECONDS = 60.0


def note_namespace(directory: Path, spec: str, lab: Lab) -> None:
    """Note a namespace in the directory that is removed together with it.

    Args:
        directory: a directory of the run that belongs to this namespace alone.
        spec: how another process resolves the target.
        lab: the lab of the namespace, prepared.
    """
    (directory / _NOTE).write_text(json.dumps({"spec": spec, "lab": lab.to_json()}), encoding="ascii")


def dispose_of_leftovers(root: Path) -> None:
    """Dispose of every namespace that is still noted below the directory of a run; gives up after a while.

    Args:
        root: the directory of the run, in which no process works any more.
    """
    if next(root.rglob(_NOTE), None) is None:
        return
    command = [sys.executable, "-P", "-m", "runcert.leftovers", str(root)]
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603  # our own interpreter and module
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )


def main(root: Path) -> None:
    """Dispose of what is noted below ``root``; one that fails does not keep the others."""
    for note in sorted(root.rglob(_NOTE)):
        with suppress(Exception):
            _dispose(json.loads(note.read_text(encoding="ascii")))


def _dispose(noted: dict[str, str]) -> None:
    spec, _, other = noted["spec"].partition(" beside ")  # the other form of a store, see Workplace.beside
    adapter = resolve(spec)[0].adapter
    if other and adapter.parity_with is not None:
        adapter = adapter.parity_with()
    if adapter.dispose is None:
        return
    answer = adapter.dispose(Lab.from_json(noted["lab"]))
    if inspect.isawaitable(answer):
        asyncio.run(_wait_for(answer))


async def _wait_for(answer: object) -> None:
    if inspect.isawaitable(answer):
        await answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
