"""Several certificates side by side: rows are clauses, columns are targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

__all__ = ["comparison_markdown", "comparison_rows", "comparison_text"]

_ABSENT = "-"


def comparison_rows(certificates: Sequence[Mapping[str, Any]], paths: Sequence[Path] = ()) -> list[list[str]]:
    """Give a header row and a row for each clause.

    Args:
        certificates: what is compared.
        paths: the file of each, by which targets of one name are told apart.
    """
    names = _names(certificates, paths)
    verdicts = [
        {clause["id"]: str(clause["verdict"]) for section in certificate["contracts"] for clause in section["clauses"]}
        for certificate in certificates
    ]
    clauses = list(dict.fromkeys(clause for column in verdicts for clause in column))
    rows = [["clause", *names], ["verdict", *(str(certificate["verdict"]) for certificate in certificates)]]
    return rows + [[clause, *(column.get(clause, _ABSENT) for column in verdicts)] for clause in clauses]


def _names(certificates: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> list[str]:
    """Name each target; those of one name with the part of their path in which they differ, for instance the version in a matrix."""
    names = [str(certificate["target"]["name"]) for certificate in certificates]
    named = list(names)
    for name in set(names):
        columns = [column for column, other in enumerate(names) if other == name and column < len(paths)]
        for column, part in zip(columns, _differing_parts([paths[column] for column in columns]), strict=True):
            named[column] = f"{name} ({part})" if part else name
    return named


def _differing_parts(paths: Sequence[Path]) -> list[str]:
    """Give each path without the folders at its beginning and its end that all of them share; nothing for a single one."""
    parts = [path.parts for path in paths]
    first = _shared(parts)
    last = _shared([each[first:][::-1] for each in parts])
    return ["/".join(each[first : len(each) - last]) for each in parts]


def _shared(rows: Sequence[Sequence[str]]) -> int:
    """Count the elements at the beginning that all rows have in common."""
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False)))


def comparison_text(certificates: Sequence[Mapping[str, Any]], paths: Sequence[Path] = ()) -> str:
    """Give the comparison as aligned columns."""
    rows = comparison_rows(certificates, paths)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def comparison_markdown(certificates: Sequence[Mapping[str, Any]], paths: Sequence[Path] = ()) -> str:
    """Give the comparison as a Markdown table."""
    header, *rows = comparison_rows(certificates, paths)
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
