"""Waivers: failures that a team knows of and accepts for a while, with a reason and an end.

A waived failure is shown as ``waived`` and does not fail the run, but nothing is certified.  A waiver whose clause passes
(stale) or whose day is over (expired) fails the run, so that none outlives its reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from runcert.problems import UsageProblem
from runcert_contract import CATALOGUE

__all__ = ["Waiver", "read_waivers"]

_FORM = (
    'expected [[waiver]] tables with clause = "RUN-CAS-9", reason = "...", expires = 2027-01-31 and, if wanted, target = "name"'
)


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted failure.

    Attributes:
        clause: the id of the clause.
        reason: why it is accepted.
        expires: the last day on which it is.
        target: the target that it is for; None for every target.
    """

    clause: str
    reason: str
    expires: date
    target: str | None = None

    def covers(self, target: str, clause: str) -> bool:
        """Say whether the waiver is about this clause of this target."""
        return self.clause == clause and self.target in (None, target)


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read a file of waivers.

    Raises:
        UsageProblem: the file is missing or not of the form that it has to have.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageProblem(f"there is no file {path} with waivers") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{path} cannot be read as TOML: {error}") from error
    tables = data.get("waiver", [])
    if set(data) - {"waiver"} or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageProblem(f"{path}: {_FORM}")
    return tuple(_waiver(path, table) for table in tables)


def _waiver(path: Path, table: dict[str, Any]) -> Waiver:
    unknown = set(table) - {"clause", "reason", "expires", "target"}
    kinds = (table.get("clause"), str), (table.get("reason"), str), (table.get("expires"), date), (table.get("target", ""), str)
    if unknown or not all(type(value) is kind for value, kind in kinds) or not table["reason"].strip():
        raise UsageProblem(f"{path}: {table!r} is no waiver; {_FORM}")
    if table["clause"] not in {clause.id for clause in CATALOGUE.clauses}:
        raise UsageProblem(f"{path}: there is no clause {table['clause']!r} in this catalogue; see `runcert clauses`")
    return Waiver(table["clause"], table["reason"], table["expires"], table.get("target"))


def stale_or_expired(waivers: Sequence[Waiver], verdicts: Sequence[tuple[str, str, str]], today: date) -> list[str]:
    """Give a sentence for every waiver that has outlived its reason.

    Args:
        waivers: all waivers of the run.
        verdicts: target, clause and verdict of everything that was judged.
        today: the day of the run.
    """
    sentences: list[str] = []
    for waiver in waivers:
        about = f"the waiver of {waiver.clause}" + (f" for {waiver.target}" if waiver.target else "")
        if waiver.expires < today:
            sentences.append(f"{about} expired on {waiver.expires.isoformat()}; mend the store or renew the waiver")
            continue
        covered = [verdict for target, clause, verdict in verdicts if waiver.covers(target, clause)]
        if covered and not any(verdict in ("fail", "waived") for verdict in covered):
            sentences.append(f"{about} is stale: the clause no longer fails ({covered[0]}); remove the waiver")
    return sentences
